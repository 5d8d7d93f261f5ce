"""Say at the end of a run where the report is, what it cost and what it found; also keep that in results/run.json."""

import csv
import datetime
import json
import re
import resource
import time
from pathlib import Path

from program import CPU_LINE, write_text

KERNELS = ("simulate_moments", "simulate_softmax", "describe_heads")
"""The rules whose programs spend their time in numerical kernels once they have started."""


def finish_run(started: float, cores: int, results: Path) -> str:
    """Write run.json and return the summary for the terminal. Times belong to this run only, so no hash holds them."""
    cost = _cost(started, results)
    record = {
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cores": cores,
        **cost,
    }
    write_text(results / "run.json", json.dumps(record, indent=2) + "\n")
    share = f"{cost['kernel_share']:.0%} of CPU time in kernels, " if cost["kernel_share"] else ""
    return "\n".join(
        [
            f"report:   {results / 'report.html'}",
            f"took:     {cost['wall_seconds']:.0f} s on {cores} cores, {share}{cost['peak_memory_mb']:.0f} MB at most",
            f"headline: {headline(results / 'variance_laws.csv')}",
        ]
    )


def headline(path: Path) -> str:
    """Return the exponent of the first ensemble whose power law could be fitted."""
    if not path.exists():
        return "none yet, since no law was fitted"
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["parameter"] == "exponent" and row["estimate"]:
                exponent, se = float(row["estimate"]), float(row["se"])
                power = f"{exponent:.5f} ± {se:.5f} (standard error)"
                return f"Var(q·k) of {row['ensemble']} grows as d_k to the power {power}"
    return "no ensemble has enough d_k for an exponent"


def _cost(started: float, results: Path) -> dict:
    kernel = 0.0
    for rule in KERNELS:
        for log in (results / "logs" / rule).rglob("*.log"):
            found = re.search(CPU_LINE.format(r"([\d.]+)", r"[\d.]+"), log.read_text("utf-8"))
            if found and log.stat().st_mtime >= started:
                kernel += float(found[1])
    own, jobs = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = own.ru_utime + own.ru_stime + jobs.ru_utime + jobs.ru_stime
    return {
        "wall_seconds": time.time() - started,
        "cpu_seconds": cpu,
        "kernel_cpu_seconds": kernel,
        "kernel_share": kernel / cpu,
        "peak_memory_mb": max(own.ru_maxrss, jobs.ru_maxrss) / 1024,
    }
