"""The figures: one module per figure, found by looking into this folder.

A figure module is what `Figure` says, with its number in a line of its own. The name of a figure is its module's name
with dashes; its title, question and sentences stand in report/words/ under `figure-<name>`. Importing this module, or
a figure module, imports nothing heavy.
"""

from __future__ import annotations

import functools
import importlib
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
_NUMBER = re.compile(r"^NUMBER\b.*= *(\d+)", re.MULTILINE)
_DESCRIBES = re.compile(r"^def describe\(", re.MULTILINE)


@dataclass(frozen=True)
class Description:
    """The words beside a figure: caption, alternative text, what to read from it, and its limits, sentence by sentence.

    A sentence's key is one of the figure's own words (`caption`, `reading.rises`) or of those under `shared.`.
    """

    caption: tuple[Sentence, ...]
    alt: tuple[Sentence, ...]
    reading: tuple[Sentence, ...] = ()
    caveat: tuple[Sentence, ...] = ()


class Figure(Protocol):
    """What a figure module holds: its place in the report, the result tables that it reads by name, and three views."""

    NUMBER: int
    INPUTS: tuple[str, ...]

    def data(self, frames: Mapping[str, DataFrame]) -> DataFrame:
        """Return what is plotted, one row for each mark."""

    def draw(self, frames: Mapping[str, DataFrame], target: Target = ...) -> MatplotlibFigure:
        """Draw it, laid out for a target."""

    def describe(self, frames: Mapping[str, DataFrame]) -> Description:
        """Say what it shows."""


def names() -> list[str]:
    """Return the names of all figures in the order of their numbers."""
    numbers: dict[int, str] = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        name, text = path.stem.replace("_", "-"), path.read_text(encoding="utf-8")
        if found := _NUMBER.search(text):
            if other := numbers.get(int(found[1])):
                raise ValueError(f"the figures {other} and {name} share the number {found[1]}")
            numbers[int(found[1])] = name
        elif _DESCRIBES.search(text):
            raise ValueError(f"the figure {name} has no line NUMBER = <its place in the report>")
    return [numbers[number] for number in sorted(numbers)]


@functools.cache
def load(name: str) -> Figure:
    """Return the module of a figure; an unknown name raises ValueError with the names that exist."""
    if name not in names():
        raise ValueError(f"no figure {name!r}; figures: {', '.join(names())}")
    return cast(Figure, importlib.import_module(f"{__package__}.{name.replace('-', '_')}"))
