"""Parameters with their domain, as ensembles and variants of attention declare them, and the name that was meant."""

import dataclasses
import difflib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

LONGEST_NAME = 64
"""Comparing is quadratic in length: what is longer is no name."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a family and its domain; `default` None means that it must be given."""

    name: str
    description: str
    default: float | None = None
    low: float = -math.inf
    high: float = math.inf
    low_open: bool = True
    high_open: bool = True
    kind: str = "number"

    @property
    def domain(self) -> str:
        """The allowed values in words, such as `a number in (0, 1]`."""
        noun = {"number": "a number", "integer": "a whole number"}[self.kind]
        if math.isinf(self.low) and math.isinf(self.high):
            return noun
        if math.isinf(self.high):
            return f"{noun} {'above' if self.low_open else 'of at least'} {self.low:g}"
        brackets = ("(" if self.low_open else "[", ")" if self.high_open else "]")
        return f"{noun} in {brackets[0]}{self.low:g}, {self.high:g}{brackets[1]}"

    def read(self, value: Any) -> float | int | None:
        """Return the value as the number that it exactly is, or None where it is outside the domain."""
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return None
        if self.kind == "integer" and value != int(value):
            return None
        inside = (value > self.low or (value == self.low and not self.low_open)) and (
            value < self.high or (value == self.high and not self.high_open)
        )
        return (int(value) if self.kind == "integer" else float(value)) if inside else None


def listed(names: Iterable[str], most: int = 12) -> str:
    """Spell the names of a catalogue for a message, which is not to grow with the catalogue."""
    every = list(names)
    rest = len(every) - most
    return ", ".join(every[:most]) + (f" and {rest} more" if rest > 0 else "")


def number_text(value: float) -> str:
    """Spell a number, as shortly as it reads back as the same."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def parameter(description: str, **domain: Any) -> Any:
    """Declare a parameter of a family as a dataclass field: what it means, its default and its domain."""
    default = domain.get("default")
    extra = {} if default is None else {"default": default}
    return dataclasses.field(**extra, metadata={"description": description, **domain})


def nearest_name(name: object, known: Iterable[str]) -> str | None:
    """Return the known name that is most like the given one, in whatever case it is given; None where none is near."""
    if not isinstance(name, str):
        return None
    lower = {known_name.lower(): known_name for known_name in known}
    close = difflib.get_close_matches(name[:LONGEST_NAME].lower(), lower, n=1)
    return lower[close[0]] if close else None
