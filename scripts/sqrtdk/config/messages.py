"""How a mistake is told to people: its key, the value as it was given, what is allowed, the nearest name."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MAX_TEXT, MAX_ITEMS, MAX_DEPTH = 60, 8, 3
MAX_PROBLEMS = 10
MAX_ALLOWED = 400
"""Characters of what is allowed, and of a value that is shown: a page holds ten of each."""


class NotGiven:
    """Stands for a value that was not given."""

    def __repr__(self) -> str:
        return "not given"


MISSING = NotGiven()


@dataclass(frozen=True)
class Problem:
    """One mistake: `path` such as `("d_k", 3)`, the value as given, what is allowed, the nearest valid name."""

    path: tuple[Any, ...]
    value: object
    allowed: str
    nearest: str | None = None

    @property
    def key(self) -> str:
        """The path as people write it, such as `d_k[3]` or `ensembles.mine.df`."""
        return key_text(self.path)

    def __str__(self) -> str:
        value = "not given" if self.value is MISSING else f"= {show(self.value)}"
        lines = [f"  {_short(self.key)} {_short(value)}".rstrip(), f"      {_short(self.allowed)}"]
        if self.nearest is not None:
            lines.append(f"      did you mean {self.nearest}?")
        return "\n".join(lines)


class ConfigError(ValueError):
    """The configuration cannot be used; `problems` holds every mistake found in it, the text the first ten."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        # What prints the same is the same mistake, found in two ways.
        self.problems = list({str(problem): problem for problem in problems}.values())
        count = len(self.problems)
        head = f"The configuration has {count} mistake{'' if count == 1 else 's'}; nothing was run."
        rest = [f"  and {count - MAX_PROBLEMS} more"] if count > MAX_PROBLEMS else []
        super().__init__("\n".join([head, *map(str, self.problems[:MAX_PROBLEMS]), *rest]))


def key_text(path: Iterable[Any]) -> str:
    """Spell a path: names joined by dots, positions (from 0) in brackets, anything unusual quoted."""
    text = ""
    for step in path:
        if isinstance(step, int) and not isinstance(step, bool) and text:
            text += f"[{show(step)}]"
        else:
            name = step if isinstance(step, str) and PLAIN_KEY.fullmatch(step) and len(step) <= MAX_TEXT else show(step)
            text += f"{'.' if text else ''}{name}"
    return text or "configuration"


def _short(text: str) -> str:
    return text if len(text) <= MAX_ALLOWED else f"{text[: MAX_ALLOWED - 3]}..."


def show(value: object, depth: int = 0) -> str:
    """Spell a value on one line as YAML would, shortened, with every unprintable character escaped. Never raises."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return repr(value if len(value) <= MAX_TEXT else f"{value[: MAX_TEXT - 3]}...")
    if isinstance(value, int):
        # Python refuses to spell integers of thousands of digits.
        digits = int(value.bit_length() * math.log10(2)) + 1
        return int.__repr__(value) if digits < 40 else f"a whole number of about {digits} digits"
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, date):
        return f"the date {value}"
    if depth == MAX_DEPTH:
        return "..."
    if isinstance(value, list | tuple):
        return f"[{_join((show(item, depth + 1) for item in value[:MAX_ITEMS]), len(value))}]"
    if isinstance(value, Mapping):
        first = [pair for pair, _ in zip(value.items(), range(MAX_ITEMS), strict=False)]
        return f"{{{_join((f'{_bare(k, depth)}: {show(v, depth + 1)}' for k, v in first), len(value))}}}"
    return f"a value of type {type(value).__name__}"


def _bare(key: object, depth: int) -> str:
    return key if isinstance(key, str) and PLAIN_KEY.fullmatch(key) and len(key) <= MAX_TEXT else show(key, depth + 1)


def _join(shown: Iterable[str], count: int) -> str:
    return ", ".join([*shown, *([f"... {count - MAX_ITEMS} more"] if count > MAX_ITEMS else [])])
