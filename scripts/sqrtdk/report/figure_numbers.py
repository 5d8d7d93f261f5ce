"""The numbers that the titles of the article's figures print, each with a name, so that a text can quote it."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from sqrtdk.figures import catalogue, gradients, hero, initialisation, training_start, variance_law
from sqrtdk.report.facts import SHARE, Facts, KeyNumber, cell, count, said
from sqrtdk.report.macro_names import letters
from sqrtdk.report.setting import Setting
from sqrtdk.results.grid import nearest
from sqrtdk.results.picking import find
from sqrtdk.words.sentences import Sentence

MAP_WIDTH, MAP_KEYS = 1024, 16
"""The widest head whose attention is drawn as a map, and its keys."""


_HEADS = ("Heads", "HeadsNearOne", "NarrowestHeadStd", "WidestHeadStd")
_SEVERAL = ("TrainedModels", "TrainedModelsNearOne", "LowestModelStd", "HighestModelStd")
"""Numbers of trained heads of one model, and of several models."""


def of_run(frames: dict[str, pd.DataFrame], start_rate: pd.DataFrame | None) -> Iterator[KeyNumber]:
    """Yield the numbers, each as the data of its figure have it; a table that a run need not have may be missing.

    start_rate: that of the longer training run that ships with the project.
    """
    if "one_query" in frames:
        yield from _typical(frames)
    yield from _precision(frames)
    yield from _maps(frames["softmax_saturation"])
    if "key_crossovers" in frames:
        yield from _crossovers(frames["key_crossovers"])
    if start_rate is not None:
        yield from _halves(start_rate)
    if "initialisation" in frames:
        yield from _starts(frames)


def titles(at: Setting, facts: Facts) -> dict[str, tuple[KeyNumber, ...]]:
    """Return the numbers of each title by the figure's name, as far as the run has them."""
    rules = [letters(rule) for rule in (at.plain, at.scaled) if rule]
    names = {
        "hero": [f"TypicalKeys{rule}" for rule in rules],
        "variance-law": ["LargestVarianceDeviation"],
        "attention-maps": [f"MapKeys{rule}" for rule in rules],
        "saturation": [f"EffectiveKeys{rule}" for rule in rules],
        "gradient-distribution": [f"TopTenthEnergy{rule}" for rule in rules],
        "gradients": [f"{end}KeysMedianCrossover" for end in ("Few", "Many")],
        "training-start": [f"{half}HalfSteps" for half in ("Neither", "Start", "Rate", "Both")],
        "planted-key": [f"Capacity{letters(rule)}" for rule in ("1/sqrt(d_k)", "1/d_k")],
        "initialisation": [f"{name}{what}" for name, what in _STARTS],
        "real-heads": _SEVERAL if _SEVERAL[-1] in facts else _HEADS,
    }
    return {name: tuple(facts[one] for one in several if one in facts) for name, several in names.items()}


def _typical(frames: dict[str, pd.DataFrame]) -> Iterator[KeyNumber]:
    table = hero.data(frames)
    keys = ("d_k", "n_keys", "scaling", "key")
    for row in table.drop_duplicates("scaling").to_dict("records"):
        told = said("typical_keys", rule=row["scaling"], d_k=row["d_k"], n_keys=row["n_keys"])
        yield cell(f"TypicalKeys{letters(row['scaling'])}", row, keys, ("effective_keys",), told, "one_query.csv")


def _precision(frames: dict[str, pd.DataFrame]) -> Iterator[KeyNumber]:
    unit = variance_law.independent(variance_law.data(frames))
    if len(unit):
        what, how = said("farthest_variance"), "largest |variance/d_k - 1| of ensembles whose exact variance is d_k"
        columns = ("variance",)
        yield KeyNumber(
            "LargestVarianceDeviation",
            *(variance_law.farthest(unit), what, "moments.csv", {}, columns),
            n=len(unit),
            unit=SHARE,
            calculation=how,
        )


def _maps(frame: pd.DataFrame) -> Iterator[KeyNumber]:
    if frame.empty:
        return
    keys = ("ensemble", "d_k", "n_keys", "scaling", "measure")
    for rule in dict.fromkeys(frame["scaling"]):
        place: dict[str, Any] = {"d_k": nearest(frame["d_k"], MAP_WIDTH), "n_keys": MAP_KEYS, "scaling": rule}
        row = find(frame, ensemble="gaussian", measure="effective_keys", **place)
        if row is not None:
            told = said("measures.effective_keys", ensemble="gaussian", rule=rule, d_k=row["d_k"], n_keys=MAP_KEYS)
            yield cell(f"MapKeys{letters(rule)}", row, keys, ("estimate", "se"), told, "softmax_saturation.csv")


def _crossovers(table: pd.DataFrame) -> Iterator[KeyNumber]:
    keys, columns = ("n_keys", "measure", "quantity"), ("d_k_star", "ci_low", "ci_high")
    for end, row in gradients.ends(table).items():
        told = said("median_crossover", n_keys=row["n_keys"])
        yield cell(f"{end.capitalize()}KeysMedianCrossover", row, keys, columns, told, "key_crossovers.csv")


def _halves(start_rate: pd.DataFrame) -> Iterator[KeyNumber]:
    keys = ("experiment", "scaling", "d_k", "start", "rate", "measure")
    for half, row in training_start.halves(training_start.data({"start_rate": start_rate})).items():
        told = said("halves", half=Sentence(f"figure-training-start.halves.{half}"), d_k=row["d_k"])
        yield cell(
            f"{half.capitalize()}HalfSteps",
            *(row | {"measure": "speed"}, keys, ("estimate", "low", "high"), told, catalogue.source("start_rate")),
            n=row["n_seeds"],
        )


_STARTS = (
    *(("Initialisations", what) for what in ("", "NearOne", "Low", "High")),
    *(("Normalisations", what) for what in ("", "NearOne")),
)
_GROUPS = {"Initialisations": "weights", "Normalisations": "heads"}
_WHAT = {"": "all", "NearOne": "near", "Low": "low", "High": "high"}


def _starts(frames: dict[str, pd.DataFrame]) -> Iterator[KeyNumber]:
    table = initialisation.data(frames)
    for name, what in _STARTS:
        group, key = _GROUPS[name], _WHAT[what]
        found, where = initialisation.counted(table, group), {"group": group}
        if key in ("all", "near"):
            yield count(f"{name}{what}", found[key], f"started.{group}.{key}", "initialisation.csv", where)
        elif found["all"]:
            told = said(f"started.{group}.{key}")
            how = {"low": "smallest", "high": "largest"}[key]
            yield KeyNumber(
                f"{name}{what}", found[key], told, "initialisation.csv", where, ("estimate",), calculation=how
            )
