"""Say at the end of a run where the report is, what it cost and what it found; also keep that in results/run.json."""

import datetime
import json
import re
import resource
import time
from collections.abc import Container
from pathlib import Path

from program import CPU_LINE
from sqrtdk.results.reading import rows
from sqrtdk.results.writing import write_text

KERNELS = ("simulate_", "train_", "tabulate_", "sample_", "count_", "describe_heads", "audit_heads")
"""How the rules are called whose programs spend their time in numerical kernels once they have started."""
DRAWING = ("draw_",)


def finish_run(started: float, cores: int | None, results: Path, cells: Container[str]) -> str:
    """Write run.json and return the summary for the terminal. Times belong to this run only, so no hash holds them.

    Without cores the jobs ran on other machines, whose CPU time and memory are not known here: these are None then.
    cells: paths in results/cells that the configuration has; that there are others is said.
    """
    cost = _cost(started, results)
    if cores is None:
        cost |= dict.fromkeys(("cpu_seconds", "cpu_seconds_in", "kernel_share", "peak_memory_mb"))
    record = {
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cores": cores,
        **cost,
    }
    write_text(results / "run.json", json.dumps(record, indent=2) + "\n")
    took = f"{cost['wall_seconds']:.0f} s "
    if cores is None:
        took += "on a cluster"
    else:
        share = f"{cost['kernel_share']:.0%} of CPU time in kernels, " if cost["kernel_share"] else ""
        took += f"on {cores} cores, {share}{cost['peak_memory_mb']:.0f} MB at most"
    report = results / "report.html"
    lines = [f"report:   {report}"] if report.exists() else []
    lines += [f"took:     {took}", f"headline: {headline(results / 'variance_laws.csv')}"]
    if others := left(results, cells):
        files = f"{len(others)} files" if len(others) > 1 else "1 file"
        lines.append(f"kept:     {files} of cells that this configuration does not have, such as {others[0]}")
    return "\n".join(lines)


def left(results: Path, cells: Container[str]) -> list[str]:
    """Return the files of cells that only other configurations have: given one again, they are not computed again."""
    found = sorted(str(path) for path in (results / "cells").rglob("*") if path.is_file())
    return [path for path in found if path not in cells]


def headline(path: Path) -> str:
    """Return the exponent of the first ensemble whose power law could be fitted."""
    if not path.exists():
        return "none yet, since no law was fitted"
    for row in rows(path):
        if row["parameter"] == "exponent" and row["estimate"] is not None:
            power = f"{row['estimate']:.5f} ± {row['se']:.5f} (standard error)"
            return f"Var(q·k) of {row['ensemble']} grows as d_k to the power {power}"
    return "no ensemble has enough d_k for an exponent"


def programs(logs: Path, since: float = 0.0) -> dict[str, tuple[float, float]]:
    """Return, for each rule, the CPU seconds of its programs, and those of their starts and imports.

    logs: folder of the logs, one file or folder for each rule. since: what is older is of another run.
    """
    found = {}
    for log in logs.rglob("*.log"):
        said = re.search(CPU_LINE.format(r"([\d.]+)", r"([\d.]+)"), log.read_text("utf-8"))
        if said and log.stat().st_mtime >= since:
            rule = log.relative_to(logs).parts[0].removesuffix(".log")
            work, total = map(float, said.groups())
            before = found.get(rule, (0.0, 0.0))
            found[rule] = before[0] + work, before[1] + total - work
    return found


def divide(by_rule: dict[str, tuple[float, float]], snakemake: float, jobs: float) -> dict[str, float]:
    """Divide the CPU seconds of a run, those of Snakemake itself and of all its jobs, among what they went into.

    The rest is what no program sees of itself: shells, ends of processes, and what programs start warm from.
    """
    parts = {"kernels": 0.0, "drawing": 0.0, "other_programs": 0.0, "imports": 0.0, "snakemake": snakemake}
    for rule, (work, start) in by_rule.items():
        kind = "kernels" if rule.startswith(KERNELS) else "drawing" if rule.startswith(DRAWING) else "other_programs"
        parts[kind] += work
        parts["imports"] += start
    return parts | {"rest": snakemake + jobs - sum(parts.values())}


def _cost(started: float, results: Path) -> dict:
    own, jobs = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    snakemake, others = (usage.ru_utime + usage.ru_stime for usage in (own, jobs))
    parts = divide(programs(results / "logs", started), snakemake, others)
    return {
        "wall_seconds": time.time() - started,
        "cpu_seconds": snakemake + others,
        "cpu_seconds_in": parts,
        "kernel_share": parts["kernels"] / (snakemake + others),
        "peak_memory_mb": max(own.ru_maxrss, jobs.ru_maxrss) / 1024,
    }
