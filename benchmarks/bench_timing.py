"""What the benchmarks share: calls timed in turn, processes with their cost, lines of the table, the machine."""

import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RSS_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes in which the system counts resident memory."""


def in_turn(pairs: int, *functions: Callable[[], object]) -> list[list[float]]:
    """Call functions one after another, so many times over; return the CPU seconds of the calls of each.

    What slows the machine down for a while slows all of them. The first round, in which caches fill, is thrown away.
    """
    found: list[list[float]] = [[] for _ in functions]
    for turn in range(pairs + 1):
        for times, function in zip(found, functions, strict=True):
            before = time.process_time()
            function()
            if turn:
                times.append(time.process_time() - before)
    return found


@dataclass(frozen=True)
class Spread:
    """The median of repeated values, and the least and the largest of them."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(statistics.median(values), min(values), max(values))

    def __str__(self) -> str:
        return f"{number(self.median)} ({number(self.low)} to {number(self.high)})"


def ratios(top: Sequence[float], bottom: Sequence[float], factor: float = 1.0) -> Spread:
    """Return the spread of factor × top/bottom over pairs."""
    return Spread.of([factor * a / b for a, b in zip(top, bottom, strict=True)])


@dataclass(frozen=True)
class Goal:
    """What a value is to be: at least or at most so much."""

    bound: float
    least: bool
    unit: str = ""

    def met(self, value: float) -> bool:
        return value >= self.bound if self.least else value <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.least else '≤'} {self.bound:g}{self.unit}"


@dataclass(frozen=True)
class Line:
    """One line of the table: of which part, for which case, ours and what it is compared with, and their ratio.

    value: what the goal is held against; a spread where it was measured in pairs. profile: what our time goes into.
    """

    part: str
    case: str
    ours: str
    other: str
    value: Spread | float | None = None
    goal: Goal | None = None
    profile: str = ""

    @property
    def reached(self) -> bool | None:
        """Whether the goal is met, None where there is none. The median counts."""
        if self.goal is None or self.value is None:
            return None
        return self.goal.met(self.value.median if isinstance(self.value, Spread) else self.value)

    @property
    def cells(self) -> tuple[str, ...]:
        value = self.value if isinstance(self.value, Spread) else "" if self.value is None else number(self.value)
        verdict = {None: "", True: "met", False: "missed"}[self.reached]
        return self.part, self.case, self.ours, self.other, str(value), f"{self.goal or ''} {verdict}".strip()


HEAD = ("part", "case", "ours", "compared with", "ratio (least to largest)", "goal")


def number(value: float) -> str:
    """Spell a number with three significant digits and without an exponent where it is of ordinary size."""
    if value and not 1e-4 <= abs(value) < 1e6:
        return f"{value:.2e}"
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"


@dataclass(frozen=True)
class Process:
    """A process that has ended: its output, wall and CPU seconds, and its peak of resident memory in MB of 10^6 bytes.

    CPU seconds include those of its own children; the peak is that of the largest of them.
    """

    output: str
    wall: float
    cpu: float
    peak: float


_LAUNCH = """
import json, os, sys, time
start = time.perf_counter()
pid = os.fork()
if not pid:
    os.execvp(sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(pid, 0)
cost = time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss
with open(sys.argv[1], "w") as file:
    json.dump([os.waitstatus_to_exitcode(status), *cost], file)
"""
"""Starts a command from a process that is small, since a process inherits the peak of memory of what started it."""


def run_process(command: Sequence[str], cwd: Path | None = None, threads: int | None = 1) -> Process:
    """Run a command; RuntimeError with what it said where it fails. threads: of BLAS, None to leave that alone."""
    environment = dict(os.environ)
    if threads is not None:
        environment["OPENBLAS_NUM_THREADS"] = str(threads)
    with tempfile.TemporaryDirectory() as folder:
        cost = Path(folder) / "cost.json"
        launch = [sys.executable, "-S", "-c", _LAUNCH, str(cost), *map(str, command)]
        done = subprocess.run(
            launch, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd=cwd, check=True
        )
        code, wall, cpu, peak = json.loads(cost.read_text("utf-8"))
    if code:
        raise RuntimeError(f"{' '.join(map(str, command[:4]))} ... failed:\n{done.stdout}")
    return Process(done.stdout, wall, cpu, peak * RSS_UNIT / 1e6)


def machine() -> dict[str, str]:
    """Describe the machine and the libraries, without names of hosts, people or places."""
    import numpy as np

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    packages = ("numpy", "scipy", "pandas", "matplotlib", "snakemake")
    return {
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "processor": _processor(),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "BLAS": f"{blas['name']} {blas['version']}",
        "Python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in packages},
        "date": datetime.date.today().isoformat(),
    }


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        fields = dict(
            tuple(text.strip() for text in line.split(":", 1))
            for line in information.read_text("utf-8", "replace").splitlines()
            if ":" in line
        )
        if "model name" in fields:
            numbers = [f"{name} {fields[name]}" for name in ("cpu family", "model", "stepping") if name in fields]
            cache = f", {fields['cache size']} of cache" if "cache size" in fields else ""
            return f"{fields['model name']} ({', '.join(numbers)}){cache}"
    return platform.processor() or platform.machine()


def _memory() -> str:
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return "unknown"
    return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 1e9:.0f} GB"
