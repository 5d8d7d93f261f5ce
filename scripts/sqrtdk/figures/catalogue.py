"""The figures: one module per figure, found by looking into this folder.

A figure module is a module with a line `NUMBER = <its place in the report>`. Beside it stand `INPUTS` (result tables by
name) and the functions `data(frames)`, `draw(frames)` and `describe(frames)`. The name of a figure is its module's name
with dashes; its title, question and sentences stand in report/words/ under `figure-<name>`. Importing this module, or
a figure module, imports nothing heavy.
"""

import importlib
import re
from dataclasses import dataclass
from pathlib import Path

from sqrtdk.words.sentences import Sentence

LICENCE = "CC BY 4.0"
LICENCE_URL = "https://creativecommons.org/licenses/by/4.0/"
_NUMBER = re.compile(r"^NUMBER = (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Description:
    """The words beside a figure: caption, alternative text, what to read from it, and its limits, sentence by sentence.

    A sentence's key is one of the figure's own words (`caption`, `reading.rises`) or of those under `shared.`.
    """

    caption: tuple[Sentence, ...]
    alt: tuple[Sentence, ...]
    reading: tuple[Sentence, ...] = ()
    caveat: tuple[Sentence, ...] = ()


def names() -> list[str]:
    """Return the names of all figures in the order of their numbers."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        number = _NUMBER.search(path.read_text(encoding="utf-8"))
        if number:
            found[path.stem.replace("_", "-")] = int(number[1])
    if len(set(found.values())) < len(found):
        raise ValueError(f"two figures share a number: {found}")
    return sorted(found, key=found.get)


def load(name: str):
    """Return the module of a figure; an unknown name raises ValueError with the names that exist."""
    if name not in names():
        raise ValueError(f"no figure {name!r}; figures: {', '.join(names())}")
    return importlib.import_module(f"{__package__}.{name.replace('-', '_')}")
