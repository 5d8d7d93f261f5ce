"""A rule held against 1/√d_k in training, as sentences say it: one verdict, and the measures that it rests on."""

import math
from typing import Any

import pandas as pd

from sqrtdk.report.comparing import with_ends
from sqrtdk.report.setting import WANTED_D_K
from sqrtdk.results.grid import nearest
from sqrtdk.results.picking import at
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

WORDS = {"hurts": "hurts", "helps": "helps", "no difference": "same", "undecided": "undecided"}
"""How the words name the verdicts."""
MEASURES = ("loss", "accuracy", "speed")
"""What a verdict on a rule at its best rate rests on."""


def optimiser(row: dict[str, Any]) -> Sentence:
    """Return the name of the optimiser of a training run."""
    return Sentence(f"optimisers.{row['optimiser']}")


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


def verdict(rows: dict[str, dict[str, Any]]) -> str:
    """Return one verdict, as the words name it, on all measures: undecided where they are, or contradict each other."""
    found = {row["verdict"] for row in rows.values()}
    if {"hurts", "helps"} <= found:
        return "undecided"
    return WORDS[next((one for one in ("hurts", "helps", "undecided") if one in found), "no difference")]


def values(rows: dict[str, dict[str, Any]]) -> dict[str, object]:
    """Return how sentences name the runs, and `compared`, the measures in words."""
    row = next(iter(rows.values()))
    named = {"task": row["task"], "d_k": str(row["d_k"]), "optimiser": optimiser(row), "seeds": str(row["n_seeds"])}
    return named | {"compared": compared(rows)}


def compared(rows: dict[str, dict[str, Any]]) -> Sentence:
    """Spell the measures of a rule beside those of 1/√d_k."""
    first = next(iter(rows.values()))
    told: dict[str, object] = {
        "unit": Sentence(f"article.trained.unit.{'character' if first['task'] == 'text' else 'nats'}")
    }
    ends = with_ends(first["estimate"], first["low"], first["high"])
    told |= {name: text.replace("-", "−") for name, text in ends.items()}
    told |= {"loss": numbers.significant(first["value"], 2)}
    told |= {"reference_loss": numbers.significant(first["reference_value"], 2)}
    if "speed" not in rows:
        return Sentence("article.trained.same_rate", told)
    right, speed = rows["accuracy"], rows["speed"]
    told |= {"accuracy": numbers.percent(right["value"])}
    told |= {"reference_accuracy": numbers.percent(right["reference_value"])}
    if not (speed["reached"] == 1 and math.isfinite(speed["estimate"])):
        return Sentence("article.trained.unreached", told)
    ends = with_ends(speed["estimate"], speed["low"], speed["high"])
    return Sentence("article.trained.reached", told | {f"speed{_end(name)}": text for name, text in ends.items()})


def _end(name: str) -> str:
    return "" if name == "estimate" else f"_{name}"


def halves(frame: pd.DataFrame, key: str, scaling: str) -> Sentence | None:
    """Say which half of a repair around a rule makes learning faster at every width: start, rate, either or neither.

    frame: start_rate.csv. Of its first experiment that has the rule; None where there is none.
    """
    rows = frame[(frame["scaling"] == scaling) & (frame["measure"] == "speed")]
    if rows.empty:
        return None
    rows = rows[rows["experiment"] == rows["experiment"].iloc[0]].sort_values("d_k")
    first = rows.iloc[0].to_dict()
    told: dict[str, object] = {"task": first["task"], "optimiser": optimiser(first)}
    helps = {}
    for name, arm in (("start", (True, False)), ("rate", (False, True)), ("both", (True, True))):
        found = at(rows, start=arm[0], rate=arm[1])
        told[name] = Listing(tuple(numbers.significant(value, 2) for value in found["against_neither"]))
        helps[name] = bool((found["verdict_neither"] == "helps").all())
    told["widths"] = Listing(tuple(map(str, dict.fromkeys(rows["d_k"]))))
    word = {(True, True): "either", (True, False): "start", (False, True): "rate"}.get((helps["start"], helps["rate"]))
    return Sentence(f"{key}.{word or 'mixed'}", told)
