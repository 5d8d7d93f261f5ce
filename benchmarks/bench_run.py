"""A whole run: what it costs and on what, a run that has nothing to do, an edit of words, one width more."""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml
from bench_timing import ROOT, Goal, Line, Process, Spread, number, run_process

PARTS = {
    "kernels": "numerical kernels",
    "drawing": "drawing figures",
    "imports": "starts and imports",
    "snakemake": "Snakemake itself",
    "other_programs": "other programs: tables, fits, the report",
    "rest": "shells and the ends of processes",
}
"""What a run's CPU seconds go into, as results/run.json calls it."""
KERNELS = Goal(0.6, least=True)
MEMORY = Goal(1000.0, least=False, unit=" MB")
QUICK = ("--configfile", str(ROOT / "config/quick.yaml"))
EXTRA_WIDTH = 96


def _snakemake(folder: Path, *options: str) -> Process:
    command = [sys.executable, "-m", "snakemake", "--cores", "all", "-d", str(folder), "-s", str(ROOT / "Snakefile")]
    return run_process([*command, *options], threads=None)


def run_lines(pairs: int, quick: bool = False) -> Iterator[Line]:
    """Run the default configuration (or the quick one) in a temporary folder, then edit it; yield the lines on that.

    The whole run and the added width are measured once, since they take minutes; what takes seconds, `pairs` times.
    """
    name, options = ("quick run", QUICK) if quick else ("default run", ())
    folder = Path(tempfile.mkdtemp(prefix="sqrtdk-bench-"))
    try:
        _snakemake(folder, *options)
        record = json.loads((folder / "results/run.json").read_text("utf-8"))
        yield from whole_run(name, record)
        nothing = [_snakemake(folder, *options) for _ in range(pairs)]
        yield _edit("nothing to do", nothing)
        titles = (f"title=Title {i}" for i in range(pairs))
        yield _edit("an edit of words", [_snakemake(folder, *options, "--config", title) for title in titles])
        widths = yaml.safe_load((ROOT / "config/config.yaml").read_text("utf-8"))["d_k"]
        if quick:
            widths = yaml.safe_load((ROOT / "config/quick.yaml").read_text("utf-8"))["d_k"]
        more = json.dumps(sorted({*widths, EXTRA_WIDTH}))
        yield _edit("one d_k added", [_snakemake(folder, *options, "--config", f"d_k={more}")])
    finally:
        shutil.rmtree(folder)


def whole_run(name: str, record: dict) -> Iterator[Line]:
    """Yield the lines on a run from what its run.json holds."""
    cpu, parts = record["cpu_seconds"], record["cpu_seconds_in"]
    part = f"4 {name}"
    yield Line(part, f"wall time on {record['cores']} cores", f"{number(record['wall_seconds'])} s", "")
    yield Line(part, "CPU time", f"{number(cpu)} s", "")
    for key, words in PARTS.items():
        share = parts[key] / cpu
        seconds = f"{number(parts[key])} s, {share:.0%}"
        yield Line(part, f"share of {words}", seconds, "", share, KERNELS if key == "kernels" else None)
    peak = record["peak_memory_mb"] * 1024**2 / 1e6
    yield Line(part, "memory of the largest process", f"{number(peak)} MB", "", peak, MEMORY)


def _edit(case: str, runs: list[Process]) -> Line:
    wall, cpu = (Spread.of([getattr(run, kind) for run in runs]) for kind in ("wall", "cpu"))
    spelled = str(wall) if len(runs) > 1 else number(wall.median)
    return Line("4 after it", case, f"{spelled} s of wall time", f"{number(cpu.median)} s of CPU time")
