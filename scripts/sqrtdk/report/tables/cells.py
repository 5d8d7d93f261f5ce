"""What tables for people are made of: cells, numbers with their errors, rows picked from frames."""

import math
import re
from dataclasses import dataclass, field
from typing import Any

from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Phrase, Sentence


@dataclass(frozen=True)
class Cell:
    """What one cell says: `text`, the words at `word`, or the TeX `formula`; `note` is a second, smaller line.

    Text and note are the same in every language, or a value that the words of a language spell. `sentences` follow the
    text, then links to the anchors of `evidence`.
    """

    text: str | Sentence | Phrase | Listing = ""
    word: str = ""
    formula: str = ""
    note: str | Sentence | Phrase | Listing = ""
    note_word: str = ""
    number: bool = False
    sentences: tuple[Sentence, ...] = ()
    evidence: tuple[str, ...] = ()


NONE = Cell(word="tables.none")


@dataclass(frozen=True)
class Table:
    """A table: its words stand at `<room>.<key>`: caption, note and columns; `values` are what the caption names."""

    key: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    values: dict[str, str] = field(default_factory=dict)
    room: str = "tables"

    @property
    def words(self) -> str:
        """The key of its words."""
        return f"{self.room}.{self.key}".removeprefix(".")

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Say of each column whether it holds numbers, which are set flush right."""
        return tuple(any(row[place].number for row in self.rows) for place in range(len(self.columns)))


def code(name: str) -> Sentence:
    """Return a name that one types, to be set as code."""
    return Sentence("article.literal", {"text": name})


def estimate(value: Any, se: float, note: str = "", note_word: str = "") -> Cell:
    """Return a number with its standard error, rounded by it; where there is no number, a dash."""
    if missing(value):
        return NONE
    return Cell(numbers.with_error(value, se), note=note, note_word=note_word if note else "", number=True)


def plain(value: Any, digits: int = 4) -> Cell:
    """Return a number without an error."""
    return Cell(exact(value, digits), number=True)


def missing(value: Any) -> bool:
    """Say whether there is no number (an empty cell of the CSV file)."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def signed(value: Any, places: int = 1) -> str:
    """Spell a deviation with its sign, of which zero has none."""
    return (
        "" if missing(value) else f"{round(value, places) or 0.0:+.{places}f}".replace("-", "−").replace("+0.0", "0.0")
    )


def exact(value: Any, digits: int = 5) -> str:
    """Spell a number that has no error, without the zeros that would look like known digits."""
    text = numbers.significant(value, digits)
    return re.sub(r"\.?0+(?=$| ×)", "", text) if "." in text else text


def text(value: Any) -> str:
    """Return a text cell of a frame; an empty one is read as NaN."""
    return value if isinstance(value, str) else ""
