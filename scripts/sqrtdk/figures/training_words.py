"""What the figures on training share: looks and words of trained rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqrtdk.figures import speaking, style
from sqrtdk.words.sentences import Sentence

if TYPE_CHECKING:
    import pandas as pd


def looks(names: Sequence[str]) -> dict[str, style.Look]:
    """Return a look for each rule that was trained: the known one, or the next free one under the rule's own name."""
    names = list(dict.fromkeys(names))
    free = style.ensembles([name for name in names if not _known(name)])
    return {name: style.scaling(name) if _known(name) else free[name] for name in names}


def words(name: str) -> Sentence:
    """Return a rule in the words of a sentence."""
    return speaking.rule(name) if _known(name) else Sentence("shared.rule.with", {"rule": name})


def _known(name: str) -> bool:
    try:
        style.scaling(name)
        style.scaling_words(name)
    except style.UnknownKey:
        return False
    return True


_TASKS = {"recall": "recall", "induction": "induction", "text": "English text"}
_OPTIMISERS = {"adam": "Adam", "sgd": "gradient descent"}


def label(rows: pd.DataFrame) -> str:
    """Return what an experiment is called inside a figure: its task and its optimiser."""
    task, optimiser = rows.iloc[0][["task", "optimiser"]]
    own = "" if _usual(rows) else f" ({rows.iloc[0]['experiment']})"
    return f"{_TASKS.get(task, task)}, {_OPTIMISERS.get(optimiser, optimiser)}{own}"


def task(rows: pd.DataFrame) -> object:
    """Return the task of an experiment as a value of a sentence."""
    name = rows.iloc[0]["task"]
    return Sentence(f"shared.task.{name}") if name in _TASKS else name


def experiment(rows: pd.DataFrame) -> Sentence:
    """Name an experiment: its task and its optimiser, and its own name where that says more."""
    optimiser, name = rows.iloc[0][["optimiser", "experiment"]]
    values = {
        "task": task(rows),
        "optimiser": Sentence(f"shared.optimiser.{optimiser}") if optimiser in _OPTIMISERS else optimiser,
        "name": name,
    }
    return Sentence(f"shared.experiment.{'usual' if _usual(rows) else 'named'}", values)


def _usual(rows: pd.DataFrame) -> bool:
    task, optimiser, name = rows.iloc[0][["task", "optimiser", "experiment"]]
    return name in (task, f"{task}_{optimiser}")


def rate(value: float) -> str:
    """Spell a learning rate as it was written."""
    return f"{value:g}"
