"""A rule held against 1/√d_k in training, as sentences say it: one verdict, and the measures that it rests on."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from sqrtdk.report.setting import WANTED_D_K
from sqrtdk.results.grid import nearest
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

WORDS = {"hurts": "hurts", "helps": "helps", "no difference": "same", "undecided": "undecided"}
"""How the words name the verdicts."""
DECIDED = ("hurts", "helps")
TEXT, SOLVED = "text", 0.99
"""The task whose best loss nobody knows, and the share of right answers from which on a task counts as solved."""
MEASURES = ("loss", "accuracy", "speed")
"""What a verdict on a rule at its best rate rests on."""


def optimiser(row: dict[str, Any]) -> Sentence:
    """Return the name of the optimiser of a training run."""
    return Sentence(f"optimisers.{row['optimiser']}")


def task(row: dict[str, Any]) -> Sentence:
    """Return the name of the task of a training run."""
    return Sentence(f"article.tasks.{row['task']}")


def held(
    verdicts: pd.DataFrame, scaling: str, comparisons: tuple[str, ...] = MEASURES, **where: Any
) -> dict[str, dict[str, Any]]:
    """Return the comparisons of a rule by name, of the first experiment that has it, at the width nearest to 64."""
    rows = verdicts[(verdicts["scaling"] == scaling) & verdicts["comparison"].isin(comparisons)]
    rows = rows[rows["estimate"].notna()]
    for name, value in where.items():
        rows = rows[rows[name] == value]
    if rows.empty:
        return {}
    rows = rows[rows["experiment"] == rows["experiment"].iloc[0]]
    rows = rows[rows["d_k"] == nearest(rows["d_k"], WANTED_D_K)]
    return {row["comparison"]: row for row in rows.to_dict("records")}


def lower(verdicts: pd.DataFrame, scaling: str) -> tuple[Sentence, ...]:
    """Say in which tasks a rule ends at a lower loss than 1/√d_k, and whether that counts as a difference."""
    rows = [held(verdicts, scaling, ("loss",), task=name).get("loss") for name in dict.fromkeys(verdicts["task"])]
    below: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row is not None and row["estimate"] < 0:
            below.setdefault(WORDS[row["verdict"]], []).append(row)
    return tuple(
        Sentence(
            f"article.chapters.training.lower.{word}",
            {"tasks": Listing(tuple(map(task, found))), "margin": f"{found[0]['margin']:g}"},
        )
        for word, found in below.items()
    )


def verdict(rows: dict[str, dict[str, Any]]) -> str:
    """Return one verdict, as the words name it, on all measures: undecided where they are, or contradict each other."""
    found = {row["verdict"] for row in rows.values()}
    if {"hurts", "helps"} <= found:
        return "undecided"
    return WORDS[next((one for one in ("hurts", "helps", "undecided") if one in found), "no difference")]


def times(row: dict[str, Any]) -> object:
    """Spell how many times the steps of 1/√d_k a rule takes."""
    return numbers.significant(row["estimate"], 2)


def values(rows: dict[str, dict[str, Any]], spell: Callable[[dict[str, Any]], object] = times) -> dict[str, object]:
    """Return how sentences name the runs, and `compared`, the measures in words, with times that `spell` spells."""
    row = next(iter(rows.values()))
    named: dict[str, object] = {"task": task(row), "d_k": str(row["d_k"]), "optimiser": optimiser(row)}
    return named | {"compared": compared(rows, spell)}


def compared(rows: dict[str, dict[str, Any]], spell: Callable[[dict[str, Any]], object] = times) -> Sentence:
    """Spell the one measure of a rule beside that of 1/√d_k which tells most.

    Losses of text, and where nothing else was compared; right answers where these decide; steps where these do, or
    where both answer nearly all; else right answers.
    """
    if "accuracy" not in rows or next(iter(rows.values()))["task"] == TEXT:
        return Sentence("article.trained.loss", both(rows["loss"] if "loss" in rows else next(iter(rows.values()))))
    right, speed = rows["accuracy"], rows.get("speed")
    decided = right["verdict"] in DECIDED
    solved = min(right["value"], right["reference_value"]) >= SOLVED
    if not decided and speed and speed["reached"] == 1 and (solved or speed["verdict"] in DECIDED):
        ends = {rows[name]["verdict"] for name in ("loss", "accuracy") if name in rows}
        word = "alike" if ends == {"no difference"} else "open" if ends <= {"no difference", "undecided"} else "only"
        return Sentence(f"article.trained.speed.{word}", {"times": spell(speed)})
    return Sentence("article.trained.right", both(right, numbers.share))


def lost(rows: dict[str, dict[str, Any]]) -> Sentence:
    """Say what a rule costs a task that it hurts: right answers, else loss, else time."""
    measure = next(name for name in ("accuracy", "loss", "speed") if rows.get(name, {}).get("verdict") == "hurts")
    return Sentence(f"article.trained.lost.{measure}", {"task": task(rows[measure])})


_COLUMNS = {"own": "value", "reference": "reference_value"}


def both(row: dict[str, Any], spell: Callable[[float, int], str] = numbers.significant) -> dict[str, str]:
    """Spell what a rule and 1/√d_k reach."""
    return dict(zip(_COLUMNS, numbers.apart([row[column] for column in _COLUMNS.values()], spell), strict=True))
