"""A verdict as an object: what `sqrtdk audit` prints, for a program or a notebook."""

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sqrtdk.heads import page
from sqrtdk.heads.cases import STAGES, Options
from sqrtdk.heads.conventions import convention as read_convention
from sqrtdk.heads.conventions import declared_scale
from sqrtdk.heads.dumps import Dump, dump_of, read_dumps
from sqrtdk.heads.errors import InputError
from sqrtdk.heads.findings import BUG, WARNING
from sqrtdk.heads.verdict import Verdict
from sqrtdk.heads.verdict import audit as judge

KEPT_MEMORY = 2**22
"""Bytes: glibc, once as much was given back, keeps what smaller arrays give back for the next ones. Asking the system
for each, which zeroes its pages, took as long as all else."""
SCREEN = 40
"""Lines that the text of a judgement takes at most."""


@dataclass(frozen=True)
class Judgement:
    """The verdict on all heads.

    heads: one verdict each, with its row of facts. assumed: what was assumed in reading. unchecked: what was not looked
    at, and why. took: words on the time.
    """

    heads: tuple[Verdict, ...]
    assumed: tuple[str, ...]
    unchecked: tuple[str, ...]
    took: str = ""

    @property
    def ok(self) -> bool:
        """Whether no bug was found; warnings and notes are no bugs."""
        return not self.bugs

    @property
    def bugs(self) -> list[page.SharedFinding]:
        """The mistakes, each once for all heads that share it."""
        return [group for group in page.grouped(self.heads) if group.finding.level == BUG]

    @property
    def warnings(self) -> list[page.SharedFinding]:
        """What should be explained before training goes on, each once."""
        return [group for group in page.grouped(self.heads) if group.finding.level == WARNING]

    @property
    def notes(self) -> list[page.SharedFinding]:
        """Facts worth a look, each once."""
        return [group for group in page.grouped(self.heads) if group.finding.level not in (BUG, WARNING)]

    @property
    def not_checked(self) -> list[str]:
        """What the input did not let be looked at, in words."""
        return list(self.unchecked)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The facts of each head, as the CSV has them: `pandas.DataFrame(judgement.rows)`."""
        return [dict(verdict.row) for verdict in self.heads]

    def has(self, level: str) -> bool:
        """Say whether a head has a finding of a level: bug, warning or note."""
        return any(finding.level == level for verdict in self.heads for finding in verdict.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as what JSON can hold."""
        return {
            "ok": self.ok,
            "headline": page.headline(self.heads),
            "basis": page.basis(self.heads),
            "findings": [
                {
                    "level": group.finding.level,
                    "kind": group.finding.kind,
                    "factor": _finite(group.finding.shown_factor),
                    "explanations": list(group.finding.explanations),
                    "evidence": group.finding.evidence,
                    "advice": group.finding.advice,
                    "dump": group.dump,
                    "heads": [list(place) for place in group.places],
                }
                for group in page.grouped(self.heads)
            ],
            "not_checked": self.not_checked,
            "assumed": list(self.assumed),
            "heads": [{name: _finite(value) for name, value in verdict.row.items()} for verdict in self.heads],
        }

    def to_json(self) -> str:
        """Return the verdict as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    def __str__(self) -> str:
        lines = page.terminal(self.heads, self.assumed, self.took, self.unchecked).split("\n")
        if len(lines) <= SCREEN:
            return "\n".join(lines)
        return "\n".join([*lines[: SCREEN - 1], f"... {len(lines) - SCREEN + 1} more lines; .rows has all heads"])

    __repr__ = __str__


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def audit(
    source: Any,
    *,
    scale: str | float | Callable[[int, int], float] | None = None,
    convention: str | None = None,
    stage: str = "unknown",
    mask: str = "auto",
    layout: str = "auto",
    d_model: int | None = None,
    num_heads: int | None = None,
    d_v: int | None = None,
    progress: Callable[[int, int, float], None] | None = None,
) -> Judgement:
    """Judge attention heads: `sqrtdk audit` as a function, whose options are those of the command.

    Args:
        source: a path or several, a capture, or a mapping of arrays named as in a file.
        scale: what the model multiplies q·k by, where the source does not say: a number, code such as `d_k**-0.5`, or
            a function of d_k and the number of keys.
        progress: told how many heads are done, of how many, and the seconds since the start.

    Raises InputError, a ValueError, for input that cannot be used.
    """
    if stage not in STAGES:
        raise InputError(f"stage {stage!r}: not one of {', '.join(STAGES)}")
    sizes: dict[str, Any] = {"d_model": d_model, "num_heads": num_heads, "d_v": d_v}
    for name, number in sizes.items():
        if number is not None and not (isinstance(number, int | np.integer) and number >= 1):
            raise InputError(f"{name}={number!r}: has to be a whole number of at least 1")
    bytes(KEPT_MEMORY)
    start, reading = time.perf_counter(), []
    declared = scale if scale is None or callable(scale) else declared_scale(str(scale))
    options = Options(read_convention(convention), declared, stage, d_model, num_heads, d_v)
    if isinstance(source, str | Path):
        source = [source]
    if hasattr(source, "arrays"):
        source = source.arrays()
    if isinstance(source, Mapping):
        arrays = {str(name): np.asarray(array) for name, array in source.items()}
        if not arrays:
            raise InputError("nothing to judge: no arrays")
        dumps = [dump_of(arrays, layout, mask)]
    elif not isinstance(source, list | tuple) or not source or not all(isinstance(one, str | Path) for one in source):
        kind = type(source).__name__
        raise InputError(f"a {kind} is nothing to judge: give a file or a list of files, a capture, or arrays by name")
    else:
        dumps = read_dumps([Path(path) for path in source], layout, mask)
    count = sum(len(dump.heads) for dump in dumps)

    def read(seconds: float) -> None:
        reading.append(seconds)
        if progress:
            progress(len(reading), count, time.perf_counter() - start)

    verdicts = judge(dumps, options, read)
    took = f"{time.perf_counter() - start:.1f} s, of which reading the arrays {sum(reading):.1f} s."
    several = len(dumps) > 1
    assumed = [f"{dump.name}: {words}" if several else words for dump in dumps for words in dump.assumed]
    return Judgement(tuple(verdicts), tuple(assumed), tuple(_unchecked(dumps, verdicts, stage)), took)


def _unchecked(dumps: list[Dump], verdicts: list[Verdict], stage: str) -> list[str]:
    """Say what the input did not let be looked at."""
    found = []
    if stage != "init":
        found.append("size of the initialisation and normalisation before the projections: only at stage init")
    if len(dumps) < 2:
        found.append("growth of the logits: needs dumps of several steps")
    sources = {verdict.row["scale_source"] for verdict in verdicts}
    if sources & {"declared", "assumed"}:
        found.append("the scale at work: nothing here was computed with it")
    if "captured" in sources:
        names = {name for dump in dumps for head in dump.heads for name in head.given.unchecked}
        unknown = sorted(names, reverse=True)
        if unknown:
            found.append(f"whether {' and '.join(unknown)} carries a factor before attention, in some modules")
    return found
