"""What to use when: one row for each situation, with what was measured of it."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from sqrtdk.report import longer_runs
from sqrtdk.report.article.points import reading
from sqrtdk.report.facts import Facts
from sqrtdk.report.macro_names import letters
from sqrtdk.report.setting import WANTED_D_K, Setting
from sqrtdk.report.tables.cells import Cell, Table
from sqrtdk.report.tables.normalisers import D_K, N_KEYS, NARROW, WIDE
from sqrtdk.results.grid import nearest
from sqrtdk.results.picking import find, pick
from sqrtdk.studies.normalisation import BETWEEN
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


def practice(
    frames: Mapping[str, pd.DataFrame], longer: Mapping[str, pd.DataFrame], at: Setting, facts: Facts
) -> Table:
    """Return the table; a row says what is measured at the width nearest to 64 unless it names another."""
    rows = tuple(_row(name, told) for name, told in measured(frames, longer, at, facts).items())
    return Table("practice", COLUMNS, rows, room="article")


def _row(name: str, told: tuple[Sentence, ...]) -> tuple[Cell, ...]:
    words = (Cell(word=f"article.practice.{name}.{column}") for column in COLUMNS[:2])
    return (*words, Cell(sentences=told), Cell(evidence=EVIDENCE[name]))


def measured(
    frames: Mapping[str, pd.DataFrame], longer: Mapping[str, pd.DataFrame], at: Setting, facts: Facts
) -> dict[str, tuple[Sentence, ...]]:
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
        "long": _long(frames["alternatives"]),
        "fold": quoted("fold", std="WeightsTFiveStd"),
        "linear": _said("linear", _linear(frames["linear_attention"])),
        "sparse": _said("sparse", _sparse(frames["normalisers"])),
        "bits": _said("bits", _bits(frames["rounding"])),
    }
    trained = {name: longer_runs.brief(longer["training_verdicts"], *rule) for name, rule in TRAINED.items()}
    return {name: (sentence, *trained.get(name, ())) for name, sentence in found.items() if sentence is not None}


def _said(name: str, values: dict[str, Any]) -> Sentence:
    return Sentence(f"article.practice.{name}.measured", values)


def _long(frame: pd.DataFrame) -> Sentence:
    """Say the share of the keys that are effective over the fewest and the most keys, with 1/√d_k."""
    d_k = nearest(frame["d_k"], WANTED_D_K)
    frame = frame[(frame["d_k"] == d_k) & (frame["measure"] == "effective_keys")]
    most = int(frame["n_keys"].max())
    values: dict[str, Any] = {"most": numbers.count(most)}
    values |= {name: reading(find(frame, variant=rule, n_keys=most)) for name, rule in _LONG}
    return _said("long", values)


_LONG = (("root", "1/sqrt(d_k)"), ("log", "ssmax"))


def _linear(frame: pd.DataFrame) -> dict[str, Any]:
    here = frame[frame["d_k"] == D_K]
    rows = {name: pick(here, "linear_attention.csv", attention=name, scaling=BETWEEN) for name in ("elu+1", "favor+")}
    return {"elu": numbers.share(rows["elu+1"]["estimate"]), "favor": numbers.share(rows["favor+"]["estimate"])}


def _sparse(frame: pd.DataFrame) -> dict[str, Any]:
    values = {}
    for name, spread in (("scaled", NARROW), ("plain", WIDE)):
        where = {"normaliser": "sparsemax", "logit_std": spread, "n_keys": N_KEYS, "measure": "zero_gradient_mass"}
        values[name] = numbers.share(pick(frame, "normalisers.csv", **where)["estimate"])
    return values


def _bits(frame: pd.DataFrame) -> dict[str, Any]:
    where = {"d_k": nearest(frame["d_k"], WANTED_D_K), "format": "bfloat16", "rounded": "logits"}
    rules = (("plain", "none"), ("scaled", "1/sqrt(d_k)"))
    rows = {name: find(frame, scaling=rule, measure="total_variation", **where) for name, rule in rules}
    return {name: numbers.share(row["estimate"]) for name, row in rows.items() if row is not None}
