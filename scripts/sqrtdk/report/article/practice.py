"""What to use when: one row for each situation, with what was measured of it."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from sqrtdk.report import longer_runs
from sqrtdk.report.facts import Facts
from sqrtdk.report.macro_names import letters
from sqrtdk.report.setting import Setting
from sqrtdk.report.tables.cells import Cell, Table
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Sentence

COLUMNS = ("situation", "use", "measured", "evidence")
EVIDENCE = {
    "plain": ("tab-contrast", "fig-saturation", "tab-other-factors"),
    "start": ("tab-initialisation", "fig-initialisation"),
    "rmsnorm": ("tab-normalisation",),
    "cosine": ("tab-normalisation", "tab-mistakes"),
    "mup": ("tab-scale-rules", "fig-training-curves", "tab-other-factors"),
    "long": ("tab-scale-rules", "fig-planted-key"),
    "fold": ("tab-initialisation", "methods-training"),
    "linear": ("tab-linear-attention",),
    "sparse": ("tab-normalisers",),
    "bits": ("tab-rounding", "fig-rounding"),
}
"""The rows in their order, and the anchors that each rests on."""


TRAINED = {"plain": ("longer.brief.plain", "none"), "mup": ("longer.brief.linear", "1/d_k")}
"""The rows that also say what training makes of a rule: the words, and the rule."""


def practice(longer: Mapping[str, pd.DataFrame], at: Setting, facts: Facts) -> Table:
    """Return the table; a row says what is measured at the width nearest to 64 unless it names another."""
    rows = tuple(_row(name, told) for name, told in measured(longer, at, facts).items())
    return Table("practice", COLUMNS, rows, room="article")


def _row(name: str, told: tuple[Sentence, ...]) -> tuple[Cell, ...]:
    words = (Cell(word=f"article.practice.{name}.{column}") for column in COLUMNS[:2])
    return (*words, Cell(sentences=told), Cell(evidence=EVIDENCE[name]))


def measured(longer: Mapping[str, pd.DataFrame], at: Setting, facts: Facts) -> dict[str, tuple[Sentence, ...]]:
    """Return what was measured of each situation; one whose numbers a run lacks is left out.

    `longer` are the tables of the longer training run that ships with the project.
    """

    def quoted(name: str, **names: str) -> Sentence | None:
        if not facts.all(*names.values()):
            return None
        return _said(name, facts.quote(names))

    plain, scaled = (letters(rule or "") for rule in (at.plain, at.scaled))
    found = {
        "plain": quoted("plain", plain=f"LogitStd{plain}", scaled=f"LogitStd{scaled}"),
        "start": quoted("start", xavier="WeightsXavierUniformStd", linear="WeightsLinearDefaultStd"),
        "rmsnorm": quoted("rmsnorm", kept="HeadsRmsnormStd", dropped="HeadsRmsnormUnscaledStd"),
        "cosine": quoted("cosine", root="HeadsLTwoSqrtStd", left="HeadsLTwoTwiceStd"),
        "mup": quoted("mup", linear=f"{letters('1/d_k')}Std", eight=f"{letters('8/d_k')}Std"),
        "long": _long(facts),
        "fold": quoted("fold", std="WeightsTFiveStd"),
        "linear": quoted("linear", elu="EluScaleChange", favor="FavorScaleChange"),
        "sparse": quoted("sparse", scaled="SparsemaxNoGradientNarrow", plain="SparsemaxNoGradientWide"),
        "bits": quoted("bits", plain="RoundingChangeUnscaled", scaled="RoundingChangeOneOverSqrtDK"),
    }
    trained = {name: longer_runs.brief(longer["training_verdicts"], *rule) for name, rule in TRAINED.items()}
    return {name: (sentence, *trained.get(name, ())) for name, sentence in found.items() if sentence is not None}


def _said(name: str, values: dict[str, Any]) -> Sentence:
    return Sentence(f"article.practice.{name}.measured", values)


def _long(facts: Facts) -> Sentence | None:
    """Say how many of the most keys are effective, with 1/√d_k and with a factor that grows with them."""
    names = {"root": "LongOneOverSqrtDKKeys", "log": "LongSsmaxKeys"}
    if not facts.all(*names.values()):
        return None
    most = {"most": numbers.count(facts[names["log"]].row["n_keys"])}
    return _said("long", most | facts.quote(names))
