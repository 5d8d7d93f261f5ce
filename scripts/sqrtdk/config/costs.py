"""What a unit of work costs, fitted to the logs of finished runs, and what a planned run will cost by that.

A job's CPU time is that of starting its program plus, for each unit of its work (`planning.py`), a measured number of
seconds. Snakemake itself costs time for each job and to start with. Costs are those of the machine that was measured.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sqrtdk.config import planning

SAID = re.compile(
    r"^Memory: ([\d.]+) MB at most\nCPU seconds: ([\d.]+) in the program, ([\d.]+) with its start", re.MULTILINE
)
"""What each program says last, into its log."""
FLOOR = 0.05
"""Seconds: errors of a job's cost are weighed relative to it, but to no less than this."""
SNAKEMAKE_START = 3.5
"""CPU seconds of reading the workflow, of planning, and of importing what programs start warm with."""
LAST = ("publish_figures", "render_report")
MB = 1e6
"""Bytes."""
LEAST_MEMORY = 45
"""MB of a Python that has loaded NumPy."""


@dataclass(frozen=True)
class RuleCost:
    """What the jobs of one rule will cost: number, CPU seconds of all and of the longest, MB of memory of one."""

    rule: str
    n_jobs: int
    cpu_seconds: float
    longest: float
    memory_mb: float


@dataclass(frozen=True)
class Forecast:
    """What a run will cost. Wall time on any number of cores: `wall_seconds`."""

    rules: list[RuleCost]
    snakemake_seconds: float
    disk_mb: float
    memory_mb: float

    @property
    def n_jobs(self) -> int:
        return sum(rule.n_jobs for rule in self.rules)

    @property
    def cpu_seconds(self) -> float:
        return sum(rule.cpu_seconds for rule in self.rules) + self.snakemake_seconds

    @property
    def chain_seconds(self) -> float:
        """The longest simulation, then the longest of what follows it: no number of cores makes a run shorter."""
        simulations = [rule.longest for rule in self.rules if rule.rule in planning.CELLS | planning.SINGLE]
        drawing = sum(rule.longest for rule in self.rules if rule.rule in ("draw_figure", *LAST))
        collecting = max(rule.longest for rule in self.rules if rule.rule.startswith(("collect", "fit", "map")))
        return max(simulations) + collecting + drawing

    def wall_seconds(self, cores: int) -> float:
        """Share the work among the cores; what is left is Snakemake, which has one, and the longest chain of jobs."""
        return max(self.cpu_seconds / cores, self.snakemake_seconds, SNAKEMAKE_START + self.chain_seconds)


def measured(results: Path) -> dict[str, dict[str, tuple[float, float, float]]]:
    """Return rule -> job -> (CPU seconds of the program, of its start, MB) from a run's logs."""
    found: dict[str, dict[str, Any]] = {}
    for log in sorted((results / "logs").rglob("*.log")):
        said = SAID.search(log.read_text(encoding="utf-8"))
        if said:
            path = log.relative_to(results / "logs").with_suffix("")
            memory, program, both = (float(text) for text in said.groups())
            found.setdefault(path.parts[0], {})["/".join(path.parts[1:])] = (program, both - program, memory)
    return found


def calibrate(runs: Sequence[Path]) -> dict[str, Any]:
    """Return a table of costs fitted to finished runs, each a folder of results; the first gives the sizes of files.

    Least squares of relative errors with costs of at least 0. A rule that no run had is left out.
    """
    observed: dict[str, list[tuple[planning.Work, float, float, float]]] = {}
    rest = []
    for results in runs:
        record, found = json.loads((results / "run.json").read_text(encoding="utf-8")), measured(results)
        for rule, jobs in planning.jobs(_configuration(results)).items():
            for name, work in jobs.items():
                if name in found.get(rule, {}):
                    observed.setdefault(rule, []).append((work, *found[rule][name]))
        n_jobs = sum(map(len, found.values()))
        spent = sum(program + start for jobs in found.values() for program, start, _ in jobs.values())
        rest.append((record["cpu_seconds"] - spent - SNAKEMAKE_START) / n_jobs)
    rules = {rule: _fit(rows) for rule, rows in observed.items()}
    return {
        "snakemake_per_job": _rounded(max(0.0, min(rest))),
        "memory_mb": round(max(record_of(results)["memory_mb"] for results in runs)),
        "rules": rules,
        "disk": _disk(runs[0]),
    }


def _fit(rows: Sequence[tuple[planning.Work, float, float, float]]) -> dict[str, Any]:
    from scipy.optimize import nnls

    works, seconds, start, memory = zip(*rows, strict=True)
    program, units = np.array(seconds), list(works[0])
    entry = {"start": _rounded(float(np.mean(start))), "memory_mb": round(max(LEAST_MEMORY, *memory))}
    if not units:
        return entry | {"seconds": {"jobs": _rounded(float(program.mean()))}}
    amounts = np.array([[work[unit] for unit in units] for work in works], float)
    weights, scale = 1 / (FLOOR + program), amounts.max(axis=0)
    costs = nnls(amounts / scale * weights[:, None], program * weights)[0] / scale
    return entry | {"seconds": {unit: _rounded(float(cost)) for unit, cost in zip(units, costs, strict=True)}}


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def _configuration(results: Path) -> dict[str, Any]:
    return json.loads((results / "provenance.json").read_text(encoding="utf-8"))["configuration"]


def _disk(results: Path) -> dict[str, Any]:
    """MB of one job's cell in results/cells/, by its folder, and of what neither they nor their tables take."""
    cells, rest = {}, _size(results)
    for folder in sorted((results / "cells").iterdir()):
        jobs = {str(path.relative_to(folder)).partition(".")[0] for path in folder.rglob("*") if path.is_file()}
        cells[folder.name] = _rounded(_size(folder) / len(jobs))
        rest -= _copies(folder.name) * _size(folder)
    return {"cells": cells, "other": _rounded(rest)}


def _copies(folder: str) -> int:
    """Return how often the size of cells is taken: tables hold as much again, but for blocks that are kept."""
    return 1 if folder == "moments" else 2


def _size(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / MB


def record_of(results: Path) -> dict[str, float]:
    """Return what a run took as a whole, to hold a forecast against."""
    run = json.loads((results / "run.json").read_text(encoding="utf-8"))
    return {
        "jobs": sum(map(len, measured(results).values())),
        "cores": run["cores"],
        "wall_seconds": round(run["wall_seconds"], 1),
        "cpu_seconds": round(run["cpu_seconds"], 1),
        "memory_mb": round(run["peak_memory_mb"]),
        "disk_mb": round(_size(results), 1),
    }


def forecast(configuration: Mapping[str, Any], table: Mapping[str, Any]) -> Forecast:
    """Return what a validated configuration will cost by a table of costs.

    Raises KeyError for a rule that the table does not have: it has to be calibrated anew.
    """
    rules = []
    jobs = planning.jobs(configuration)
    for rule, works in jobs.items():
        cost = table["rules"][rule]
        times = [cost["start"] + _seconds(work or {"jobs": 1}, cost["seconds"]) for work in works.values()]
        if times:
            rules.append(RuleCost(rule, len(times), sum(times), max(times), cost["memory_mb"]))
    n_jobs = sum(rule.n_jobs for rule in rules)
    snakemake = SNAKEMAKE_START + n_jobs * table["snakemake_per_job"]
    sizes = table["disk"]["cells"].items()
    cells = sum(_copies(folder) * size * len(jobs[CELL_FOLDERS[folder]]) for folder, size in sizes)
    memory = max(table["memory_mb"], *(rule.memory_mb for rule in rules))
    return Forecast(rules, snakemake, cells + table["disk"]["other"], memory)


CELL_FOLDERS = {
    "moments": "simulate_moments",
    "heads": "describe_heads",
    "softmax": "simulate_softmax",
    "softmax_theory": "tabulate_softmax_theory",
    "alternatives": "simulate_alternatives",
    "random_energy": "simulate_random_energy",
    "training": "train_models",
}
"""Folder in results/cells/ -> the rule that fills it."""


def _seconds(work: planning.Work, costs: Mapping[str, float]) -> float:
    return sum(amount * costs[unit] for unit, amount in work.items())
