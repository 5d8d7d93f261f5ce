"""Speed and scale in one table: against what people write, against floors, of a whole run, of growth, of the audit.

    python benchmarks/bench.py [--quick] [--only 1 2 3] [--pairs 5] [--output docs/benchmarks.md]

Prints the table as it comes, and writes it with a description of the machine. Wants a quiet machine: everything that is
compared is timed in turn, in CPU seconds, but memory and caches are shared with whatever else runs. --quick tries
everything on a small scale; --only takes some of the parts.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded
ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "benchmarks")]

import audit_cost  # noqa: E402 - after the environment and the path are set
import bench_kernels  # noqa: E402
import bench_page  # noqa: E402
import bench_run  # noqa: E402
import growth  # noqa: E402
from bench_timing import HEAD, Goal, Line, number, ratios, run_process  # noqa: E402

from program import KEPT_MEMORY  # noqa: E402

PARTS = (1, 2, 3, 4, 5, 6)
AUDIT = Goal(5, least=False)
"""How many times the CPU time of reading an audit may take."""
DUMP = (4, 8, 1024, 128)
QUICK_DUMP = (1, 4, 128, 64)
"""Layers, heads, tokens and d_k of the dump that is audited."""


def growth_lines(quick: bool) -> Iterator[Line]:
    """Yield how time and memory of the saturation stage grow; each point is one process."""
    part, largest = "5 growth", 0.0
    for name, points in growth.SERIES.items():
        if quick:
            points = [(d_k, n) for d_k, n in points if d_k * n <= 2**22]
        found = list(growth.series(points, {"family": "gaussian"}, 32, 1))
        slope, error, n = growth.fitted(found)
        largest = max(largest, *(peak for *_, peak in found))
        d_k, n_keys, seconds, peak = found[-1]
        words = f"{number(seconds)} s and {peak:.0f} MB at d_k = {d_k}, n_keys = {n_keys:,}"
        yield Line(part, name, f"time ∝ size^{slope:.3f} ± {error:.3f} ({n} points)", words)
    yield Line(part, "memory of the largest process", f"{largest:.0f} MB", "", largest, bench_run.MEMORY)


def audit_lines(pairs: int, quick: bool) -> Iterator[Line]:
    """Yield what an audit costs beside a process that reads the same arrays, both in turn."""
    shape = QUICK_DUMP if quick else DUMP
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dump.npz"
        # In a process of its own, since what is as large as this leaves its mark on the memory of this one.
        code = f"import sys; sys.path.insert(0, {str(ROOT / 'benchmarks')!r}); import audit_cost, pathlib; "
        run_process([sys.executable, "-c", code + f"audit_cost.write_dump(pathlib.Path({str(path)!r}), *{shape})"])
        size = path.stat().st_size / 1e6
        both = [(audit_cost.read(path), audit_cost.audit(path, "auto")) for _ in range(pairs)]
    reading, audits = ([pair[i].cpu for pair in both] for i in (0, 1))
    peak = max(done.peak for _, done in both)
    case = f"{shape[0] * shape[1]} heads of {shape[2]} tokens, d_k = {shape[3]}, {size:.0f} MB"
    spelled = [f"{number(min(times))} s of CPU time" for times in (audits, reading)]
    found = ratios(audits, reading)
    yield Line("6 audit over reading its file", case, spelled[0], f"{spelled[1]} reading", found, AUDIT)
    yield Line("6 audit over reading its file", "memory", f"{number(peak)} MB", "", peak, bench_run.MEMORY)


def lines(parts: set[int], pairs: int, quick: bool) -> Iterator[Line]:
    """Yield the lines of the table, in the order of its parts."""
    # The run comes first: what else runs here later is large, and a run should not share the machine with it.
    whole = list(bench_run.run_lines(pairs, quick)) if 4 in parts else []
    if parts & {1, 2}:
        widths = bench_kernels.WIDTHS[::3] if quick else bench_kernels.WIDTHS
        found = list(bench_kernels.moment_lines(pairs, widths))
        for part in sorted(parts & {1, 2}):
            yield from (line for line in found if line.part.startswith(f"{part} "))
    if 3 in parts:
        yield from bench_kernels.row_lines(pairs, bench_kernels.ROWS[:2] if quick else bench_kernels.ROWS)
    yield from whole
    if 5 in parts:
        yield from growth_lines(quick)
    if 6 in parts:
        yield from audit_lines(pairs, quick)


def positive(text: str) -> int:
    """Return the whole number of at least 1 that a text spells; ValueError without one."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no whole number of at least 1")
    return int(text)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small scale, and docs/benchmarks.md is left alone")
    parser.add_argument("--only", type=int, nargs="+", choices=PARTS, default=PARTS, help="numbers of parts")
    parser.add_argument("--pairs", type=positive, help="rounds of what is timed in turn (default 5, quick 2)")
    parser.add_argument("--output", type=Path, help="the page to write (default docs/benchmarks.md for all parts)")
    chosen = parser.parse_args(arguments)
    if chosen.output is not None and (chosen.output.is_dir() or not chosen.output.parent.is_dir()):
        parser.error(f"--output: {chosen.output} is no file in a folder that exists")
    pairs = chosen.pairs or (2 if chosen.quick else 5)
    output = chosen.output
    if output is None and not chosen.quick and set(chosen.only) == set(PARTS):
        output = ROOT / "docs/benchmarks.md"
    # Memory is kept as in the programs of a run, for what is compared alike.
    bytes(KEPT_MEMORY)
    started, table = time.time(), []
    print("\t".join(HEAD))
    for line in lines(set(chosen.only), pairs, chosen.quick):
        table.append(line)
        print("\t".join(line.cells), flush=True)
    seconds = time.time() - started
    missed = [line for line in table if line.reached is False]
    print(f"\n{len(table)} lines in {seconds:.0f} s; {len(missed)} goals missed")
    if output is not None:
        output.write_text(bench_page.page(table, pairs, seconds), encoding="utf-8")
        print(f"written: {output.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
