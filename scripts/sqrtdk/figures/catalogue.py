"""The figures: one module per figure, found by looking into this folder.

A figure module is what `Figure` says, with its place in a line of its own. The name of a figure is its module's name
with dashes; its title, question and sentences stand in report/words/ under `figure-<name>`. Its number follows from
where it stands: 1, 2, ... in the article, E1, E2, ... in the atlas behind it. Importing this module, or a figure
module, imports nothing heavy.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from sqrtdk.words.sentences import Sentence

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure
    from pandas import DataFrame

    from sqrtdk.figures.targets import Target

LICENCE = "CC BY 4.0"
LICENCE_URL = "https://creativecommons.org/licenses/by/4.0/"
PARTS = ("article", "atlas")
TOPICS = ("answer", "scores", "attention", "gradients", "factor", "training", "start", "heads", "methods")
"""Chapters of the article, and topics of the atlas, in their order; figures of one topic come by name."""
SHIPPED = ("start_rate",)
"""Tables of the longer training that ships with the project: a usual run makes them without a row."""
_PLACE = re.compile(r"""^PLACE\b.*= *["'](.*)["']""", re.MULTILINE)
_DESCRIBES = re.compile(r"^def describe\(", re.MULTILINE)


@dataclass(frozen=True)
class Description:
    """The words beside a figure: title, caption, alternative text, what to read from it, and its limits.

    Sentence by sentence; the title is what the numbers show where they choose it, else the figure's own `title`.

    A sentence's key is one of the figure's own words (`caption`, `reading.rises`) or of those under `shared.`.
    """

    caption: tuple[Sentence, ...]
    alt: tuple[Sentence, ...]
    reading: tuple[Sentence, ...] = ()
    caveat: tuple[Sentence, ...] = ()
    title: tuple[Sentence, ...] = (Sentence("title"),)


class Figure(Protocol):
    """What a figure module holds: `<part>/<topic>`, the result tables that it reads by name, and three views."""

    PLACE: str
    INPUTS: tuple[str, ...]

    def data(self, frames: Mapping[str, DataFrame]) -> DataFrame:
        """Return what is plotted, one row for each mark."""

    def draw(self, frames: Mapping[str, DataFrame], target: Target = ...) -> MatplotlibFigure:
        """Draw it, laid out for a target."""

    def describe(self, frames: Mapping[str, DataFrame]) -> Description:
        """Say what it shows."""


@dataclass(frozen=True)
class Place:
    """Where a figure stands: in the article or the atlas, in which topic, and its number there."""

    part: str
    topic: str
    number: str


@functools.cache
def places() -> dict[str, Place]:
    """Return the place of each figure by name, in the order in which they stand."""
    found = []
    for path in sorted(Path(__file__).parent.glob("*.py")):
        name, text = path.stem.replace("_", "-"), path.read_text(encoding="utf-8")
        if line := _PLACE.search(text):
            part, _, topic = line[1].partition("/")
            if part not in PARTS or topic not in TOPICS:
                known = f"{' or '.join(PARTS)}, a slash, and one of {', '.join(TOPICS)}"
                raise ValueError(f"the figure {name} has the place {line[1]!r}; a place is {known}")
            found.append((PARTS.index(part), TOPICS.index(topic), name))
        elif _DESCRIBES.search(text):
            raise ValueError(f'the figure {name} has no line PLACE = "<part>/<topic>"')
    numbers = {part: itertools.count(1) for part in PARTS}
    placed = ((PARTS[part], TOPICS[topic], name) for part, topic, name in sorted(found))
    return {
        name: Place(part, topic, f"{'E' if part == 'atlas' else ''}{next(numbers[part])}")
        for part, topic, name in placed
    }


def source(table: str) -> str:
    """Return where the table that a figure reads stands: in results/, or in the project where it ships with it."""
    return f"{'resources/training' if table in SHIPPED else 'results'}/{table}.csv"


def order(number: str) -> tuple[bool, int]:
    """Return what sorts the numbers of figures as they stand: 1, 2, 10, E1, E2."""
    return number.startswith("E"), int(number.removeprefix("E"))


def names() -> list[str]:
    """Return the names of all figures in the order in which they stand."""
    return list(places())


@functools.cache
def load(name: str) -> Figure:
    """Return the module of a figure; an unknown name raises ValueError with the names that exist."""
    if name not in names():
        raise ValueError(f"no figure {name!r}; figures: {', '.join(names())}")
    return cast(Figure, importlib.import_module(f"{__package__}.{name.replace('-', '_')}"))
