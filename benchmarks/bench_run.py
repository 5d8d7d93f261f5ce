"""A whole run: what it costs and on what, and what each kind of edit after it costs, against goals."""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml
from bench_timing import ROOT, Goal, Line, Process, Spread, number, run_process

PARTS = {
    "kernels": "numerical kernels",
    "drawing": "drawing figures",
    "imports": "starts and imports",
    "snakemake": "Snakemake itself",
    "other_programs": "other programs: tables, fits, the report",
    "rest": "shells, ends of processes, and what programs start warm from",
}
"""What a run's CPU seconds go into, as results/run.json calls it."""
KERNELS = Goal(0.6, least=True)
OUTSIDE = Goal(90.0, least=False, unit=" s")
MEMORY = Goal(1000.0, least=False, unit=" MB")
QUICK = ("--configfile", str(ROOT / "config/quick.yaml"))
EXTRA_WIDTH = 96


COPIED = (
    *("Snakefile", "config", "profiles", "report", "resources", "scripts", "workflow", "CITATION.cff"),
    "environment.yml",
)
WORDS = "report/words/en/page.yaml"
EDITS = {
    "make quick": 40,
    "nothing to do": 4,
    "another title": 6,
    "another word": 6,
    "another language": 15,
    "one d_k added": 25,
    "one ensemble added, softmax included": 20,
}
"""What a user does -> seconds of wall time that it is to take on two quiet cores."""


def _snakemake(folder: Path, *options: str) -> Process:
    """Run the workflow of `source` beside it."""
    source = folder / "source/Snakefile"
    command = [sys.executable, "-m", "snakemake", "--cores", "all", "-d", str(folder / "run"), "-s", str(source)]
    return run_process([*command, *options], threads=None)


def run_lines(pairs: int, quick: bool = False) -> Iterator[Line]:
    """Run the default configuration (or the quick one) in a temporary folder, then edit it; yield the lines on that.

    Runs and edits that take minutes are measured once; what takes seconds, `pairs` times. The source is a copy, since
    one of the edits is of a word.
    """
    name, options = ("quick run", QUICK) if quick else ("default run", ())
    folder = Path(tempfile.mkdtemp(prefix="sqrtdk-bench-"))
    try:
        copy_source(folder / "source")
        first = _snakemake(folder, *QUICK)
        yield _edit("make quick", [first])
        if not quick:
            shutil.rmtree(folder / "run")
            _snakemake(folder)
        yield from whole_run(name, json.loads((folder / "run/results/run.json").read_text("utf-8")))
        yield _edit("nothing to do", [_snakemake(folder, *options) for _ in range(pairs)])
        titles = (f"title=Title {i}" for i in range(pairs))
        yield _edit("another title", [_snakemake(folder, *options, "--config", title) for title in titles])
        _snakemake(folder, *options)
        yield _edit("another word", [_with_a_word(folder, i, options) for i in range(pairs)])
        yield _edit("another language", [_snakemake(folder, *options, "--config", "language=zh")])
        _snakemake(folder, *options)
        files = [ROOT / "config/config.yaml", *([Path(QUICK[1])] if quick else [])]
        widths = yaml.safe_load(files[-1].read_text("utf-8"))["d_k"]
        more = json.dumps(sorted({*widths, EXTRA_WIDTH}))
        yield _edit("one d_k added", [_snakemake(folder, *options, "--config", f"d_k={more}")])
        _snakemake(folder, *options)
        added = "ensembles={heavy: {family: student_t, df: 6}}"
        yield _edit("one ensemble added, softmax included", [_snakemake(folder, *options, "--config", added)])
    finally:
        shutil.rmtree(folder)


def copy_source(folder: Path) -> None:
    """Copy what a run is made from."""
    folder.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder)


def _with_a_word(folder: Path, number: int, options: Sequence[str]) -> Process:
    with (folder / "source" / WORDS).open("a", encoding="utf-8") as file:
        file.write(f"# {number}\n")
    return _snakemake(folder, *options)


def whole_run(name: str, record: dict) -> Iterator[Line]:
    """Yield the lines on a run from what its run.json holds."""
    cpu, parts = record["cpu_seconds"], record["cpu_seconds_in"]
    part = f"4 {name}"
    yield Line(part, f"wall time on {record['cores']} cores", f"{number(record['wall_seconds'])} s", "")
    yield Line(part, "CPU time", f"{number(cpu)} s", "")
    outside = cpu - parts["kernels"]
    yield Line(part, "CPU time outside of kernels", f"{number(outside)} s", "", outside, OUTSIDE)
    for key, words in PARTS.items():
        share = parts[key] / cpu
        seconds = f"{number(parts[key])} s, {share:.0%}"
        yield Line(part, f"share of {words}", seconds, "", share, KERNELS if key == "kernels" else None)
    peak = record["peak_memory_mb"] * 1024**2 / 1e6
    yield Line(part, "memory of the largest process", f"{number(peak)} MB", "", peak, MEMORY)


def _edit(case: str, runs: list[Process]) -> Line:
    wall, cpu = (Spread.of([getattr(run, kind) for run in runs]) for kind in ("wall", "cpu"))
    spelled = str(wall) if len(runs) > 1 else number(wall.median)
    goal = Goal(EDITS[case], least=False, unit=" s")
    return Line("4 edits", case, f"{spelled} s of wall time", f"{number(cpu.median)} s of CPU time", wall, goal)
