"""A fact: one number that a text about a run quotes, with its name, its error, and the row that it comes from."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqrtdk.figures.style import ensemble_label
from sqrtdk.report.macro_names import fingerprint
from sqrtdk.report.tables.cells import exact, missing
from sqrtdk.statistics.intervals import NORMAL
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Phrase, Quantity, Sentence

RATIO, SHARE, COUNT = "ratio", "share", "count"
"""Units of a number that says how many times, what part of a whole, or how many."""


@dataclass(frozen=True)
class KeyNumber:
    """A number of a run.

    name: letters alone, starting with a capital. `value` has a standard error `se`, or a 95 % interval `low` to `high`
    (an end may be infinite), or neither where it is exact. truth: the exact value beside a measured one. source: the
    file that it comes from, in results/ or, below resources/, in the project. row: the values of the columns that pick
    its row, or rows. columns: where value, se, low and high stand there, in this order; where it is calculated from
    them, `calculation` says how. n: observations behind it.
    """

    name: str
    value: float
    description: Sentence
    source: str
    row: dict[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    se: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    unit: str = "1"
    calculation: str = ""
    headline: bool = False
    truth: float | None = None

    @property
    def spelled(self) -> str:
        """Return the number in words, rounded by its own error."""
        if self.se is not None and self.se > 0:
            return numbers.with_error(self.value, self.se)
        if self.low is not None and self.high is not None:
            if math.isfinite(self.low) and math.isfinite(self.high) and self.high > self.low:
                return numbers.rounded(self.value, (self.high - self.low) / (2 * NORMAL))
            if not math.isfinite(self.high - self.low):
                return numbers.significant(self.value, 2)
        return str(self.value) if self.unit == COUNT else exact(self.value, 4)

    @property
    def full(self) -> str:
        """Return the number as `spelled`, with its interval where it has one and no standard error."""
        if self.se is None and self.low is not None and self.high is not None:
            return f"{self.spelled} {numbers.interval(self.low, self.high)}"
        return self.spelled

    @property
    def known(self) -> float:
        """The exact value where there is one, else the measured one."""
        return self.value if self.truth is None else float(f"{self.truth:.9g}")

    def read(self, digits: int) -> str:
        """Return the number rounded for reading; what is exact has a digit more."""
        if self.unit == COUNT:
            return numbers.count(self.value)
        if self.unit == SHARE:
            return numbers.share(self.value, digits)
        return numbers.significant(self.value, digits) if self.truth is None else exact(self.truth, digits + 1)

    @property
    def reading(self) -> str:
        """Return the number rounded for reading where nothing is compared with it."""
        return self.read(2)

    @property
    def identity(self) -> str:
        """Return what distinguishes this number from all others of a run, its name aside."""
        return f"{self.source} {sorted(self.row.items())!r} {self.columns!r} {self.calculation} {self.description.key}"


def named(found: list[KeyNumber]) -> list[KeyNumber]:
    """Return the numbers with names that are different: those that share one all get letters of what they are.

    What is not a number, as of heads that are all dead, is left out. Raises ValueError where two numbers cannot be told
    apart.
    """
    found = [number for number in found if not missing(number.value)]
    names = [number.name for number in found]
    unique = [
        number if names.count(number.name) == 1 else replace(number, name=number.name + fingerprint(number.identity))
        for number in found
    ]
    seen: dict[str, KeyNumber] = {}
    for number in unique:
        if number.name in seen or not re.fullmatch("[A-Z][A-Za-z]*", number.name):
            raise ValueError(f"no name of its own for the number {number.identity}: {number.name!r}")
        seen[number.name] = number
    return unique


class Facts:
    """The numbers of a run by name, as texts quote them; `quoted` keeps those that were, in their order."""

    def __init__(self, found: Iterable[KeyNumber]):
        self.by_name = {number.name: number for number in found}
        self.quoted: dict[str, KeyNumber] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.by_name

    def __getitem__(self, name: str) -> KeyNumber:
        return self.by_name[name]

    def quote(self, names: Mapping[str, str]) -> dict[str, Quantity]:
        """Return the numbers of a sentence by their places in it, told apart where they differ.

        Raises KeyError for one that the run does not have.
        """
        found = {word: self.by_name[name] for word, name in names.items()}
        self.quoted |= {one.name: one for one in found.values()}
        texts: dict[tuple[str, float], str] = {}
        for unit in {one.unit for one in found.values()}:
            same = {one.known: one for one in found.values() if one.unit == unit}
            spelled = numbers.apart(same, lambda value, digits: same[value].read(digits))  # noqa: B023
            texts |= {(unit, value): text for value, text in zip(same, spelled, strict=True)}
        return {word: Quantity(texts[one.unit, one.known], one.name, one.full) for word, one in found.items()}

    def all(self, *names: str) -> bool:
        """Say whether the run has all of these numbers."""
        return all(name in self.by_name for name in names)


NAMES = ("rule", "reference", "scheme", "measure", "quantity", "verdict")
"""Values that are names, which a language may have a word for."""


def said(key: str, **values: Any) -> Sentence:
    """Return what a number is, in the words of `numbers.<key>`; an ensemble goes by its label."""
    if "ensemble" in values:
        values["ensemble"] = ensemble_label(values["ensemble"])
    told = {
        name: value if isinstance(value, Sentence) else Phrase(str(value)) if name in NAMES else str(value)
        for name, value in values.items()
    }
    return Sentence(f"numbers.{key}", told)


def count(
    name: str,
    value: Any,
    key: str,
    source: str,
    row: dict[str, Any] | None = None,
    headline: bool = False,
    **values: Any,
) -> KeyNumber:
    """Return a number of rows; `row` are the values that pick them."""
    calculation = "number of rows" if row is not None else ""
    described = said(key, **values)
    return KeyNumber(
        name, int(value), described, source, row or {}, unit=COUNT, calculation=calculation, headline=headline
    )


def cell(
    name: str,
    row: dict[str, Any],
    keys: tuple[str, ...],
    columns: tuple[str, ...],
    said: Sentence,
    source: str,
    known: str = "",
    **more: Any,
) -> KeyNumber:
    """Return a number that stands in one row.

    columns: those of its value and error, or value and interval. known: the column of its exact value.
    """
    values: list[Any] = [None if missing(row[column]) else float(row[column]) for column in columns]
    where = {key: row[key] for key in keys}
    ends = {"low": values[-2], "high": values[-1]} if len(columns) > 2 else {}
    se = values[1] if len(columns) in (2, 4) else None
    truth = float(row[known]) if known and not missing(row[known]) else None
    return KeyNumber(name, values[0], said, source, where, columns, se=se, **ends, truth=truth, **more)
