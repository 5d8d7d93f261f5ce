"""What to use when: one row for each situation, with what was measured of it."""

from typing import Any

import pandas as pd

from sqrtdk.report.article.points import error, percentage
from sqrtdk.report.article.questions import BASE, at_width, normalised, rule_values, trained
from sqrtdk.report.setting import WANTED_D_K
from sqrtdk.report.tables.cells import Cell, Table, missing
from sqrtdk.report.tables.normalisers import D_K, N_KEYS, NARROW, WIDE
from sqrtdk.report.trained import held, values, verdict
from sqrtdk.results.grid import nearest
from sqrtdk.results.picking import find, pick
from sqrtdk.studies.normalisation import BETWEEN
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

COLUMNS = ("situation", "use", "measured", "evidence")
VARIANTS = {
    "mup.training": ("hurts", "helps", "same", "undecided"),
    "learned.training": ("hurts", "helps", "same", "undecided"),
    "constant.training": ("hurts", "helps", "same", "undecided"),
}
"""What training says of a row, chosen by the verdict."""
EVIDENCE = {
    "plain": ("tab-contrast", "fig-saturation", "tab-training-shipped"),
    "start": ("tab-initialisation", "fig-initialisation"),
    "rmsnorm": ("tab-normalisation",),
    "cosine": ("tab-normalisation", "tab-mistakes"),
    "mup": ("tab-scale-rules", "fig-training-curves"),
    "long": ("tab-scale-rules", "fig-planted-key", "fig-phase-map"),
    "fold": ("tab-initialisation", "methods-training"),
    "linear": ("tab-linear-attention",),
    "sparse": ("tab-normalisers",),
    "bits": ("tab-rounding", "fig-rounding"),
    "learned": ("tab-training-shipped", "methods-training"),
    "constant": ("tab-mistakes", "tab-training-shipped"),
}
"""The rows in their order, and the anchors that each rests on."""


def practice(frames: dict[str, pd.DataFrame], shipped: dict[str, pd.DataFrame]) -> Table:
    """Return the table; a row says what is measured at the width nearest to 64 unless it names another."""
    rows = tuple(_row(name, told) for name, told in measured(frames, shipped).items())
    return Table("practice", COLUMNS, rows, room="article")


def _row(name: str, told: tuple[Sentence, ...]) -> tuple[Cell, ...]:
    words = (Cell(word=f"article.practice.{name}.{column}") for column in COLUMNS[:2])
    return (*words, Cell(sentences=told), Cell(evidence=EVIDENCE[name]))


def measured(frames: dict[str, pd.DataFrame], shipped: dict[str, pd.DataFrame]) -> dict[str, tuple[Sentence, ...]]:
    """Return what was measured of each situation."""
    verdicts = shipped["training_verdicts"]
    found = {
        "plain": (
            _said("plain", rule_values(frames["alternatives"], scaled="1/sqrt(d_k)", plain="none")),
            _without(verdicts),
        ),
        "start": (_said("start", _start(frames)),),
        "rmsnorm": (_said("rmsnorm", _normalised(frames, kept="rmsnorm", dropped="rmsnorm_unscaled")),),
        "cosine": (_said("cosine", _normalised(frames, root="l2_sqrt", ten="l2_10", left="l2_twice")),),
        "mup": (
            _said("mup", rule_values(frames["alternatives"], linear="1/d_k", eight="8/d_k")),
            trained(frames["training_verdicts"], "article.practice.mup.training", "1/d_k"),
        ),
        "long": (_long(frames["alternatives"]),),
        "fold": (_said("fold", {"std": error(_weights(frames, "t5"))}),),
        "linear": (_said("linear", _linear(frames["linear_attention"])),),
        "sparse": (_said("sparse", _sparse(frames["normalisers"])),),
        "bits": (_said("bits", _bits(frames["rounding"])),),
        "learned": (trained(verdicts, "article.practice.learned.training", "learnable", ("same_rate",)),),
        "constant": (
            _said("constant", rule_values(frames["alternatives"], half="d_v_for_d_k")),
            trained(verdicts, "article.practice.constant.training", "d_v_for_d_k(ratio=2)"),
        ),
    }
    told = {name: tuple(one for one in several if one is not None) for name, several in found.items()}
    return {name: several for name, several in told.items() if several}


def _without(verdicts: pd.DataFrame) -> Sentence | None:
    """Say what leaving the factor out does in each task and under each optimiser, at the width nearest to 64."""
    told, seen = [], set()
    for experiment in dict.fromkeys(verdicts.loc[verdicts["scaling"] == "none", "experiment"]):
        rows = held(verdicts, "none", experiment=experiment)
        kind = tuple(next(iter(rows.values()))[name] for name in ("task", "optimiser")) if rows else None
        if kind is not None and kind not in seen:
            seen.add(kind)
            told.append(Sentence(f"article.practice.plain.task.{verdict(rows)}", values(rows)))
    return Sentence("article.practice.plain.training", {"tasks": Listing(tuple(told), "semicolon")}) if told else None


def _said(name: str, values: dict[str, Any]) -> Sentence:
    return Sentence(f"article.practice.{name}.measured", values)


def _normalised(frames: dict[str, pd.DataFrame], **schemes: str) -> dict[str, Any]:
    values: dict[str, Any] = {name: error(normalised(frames, scheme)) for name, scheme in schemes.items()}
    wide = normalised(frames, next(reversed(schemes.values())), d_model=2 * BASE)
    values |= {f"{name}_wide": error(normalised(frames, scheme, 2 * BASE)) for name, scheme in schemes.items()}
    return values | {"d_k": str(normalised(frames, next(iter(schemes.values())))["d_k"]), "wide": str(wide["d_k"])}


def _weights(frames: dict[str, pd.DataFrame], scheme: str) -> dict[str, Any]:
    return pick(frames["initialisation"], "initialisation.csv", scheme=scheme, quantity="logit_std")


def _start(frames: dict[str, pd.DataFrame]) -> dict[str, Any]:
    schemes = {"xavier": "xavier_uniform", "attention": "xavier_fused", "linear": "linear_default"}
    values: dict[str, Any] = {name: error(_weights(frames, scheme)) for name, scheme in schemes.items()}
    fixed = frames["initialisation"]
    fixed = fixed[(fixed["scheme"] == "normal_0.02") & (fixed["quantity"] == "logit_std")].sort_values("d_model")
    for name, row in (("narrow", fixed.iloc[0]), ("wide", fixed.iloc[-1])):
        values |= {f"{name}_model": numbers.count(row["d_model"]), name: error(row)}
    return values


def _long(frame: pd.DataFrame) -> Sentence:
    """Say the effective keys over the fewest and the most keys, with 1/√d_k and with a factor that grows as ln n."""
    _, values = at_width(frame)
    frame = frame[(frame["d_k"] == int(values["d_k"])) & (frame["measure"] == "effective_keys")]
    few, many = int(frame["n_keys"].min()), int(frame["n_keys"].max())
    values |= {"few": str(few), "many": str(many)}
    for name, rule in (("root", "1/sqrt(d_k)"), ("log", "ssmax")):
        for end, n_keys in (("few", few), ("many", many)):
            values[f"{name}_{end}"] = error(find(frame, variant=rule, n_keys=n_keys))
    return Sentence(f"article.practice.long.{'measured' if few != many else 'measured_one'}", values)


def _linear(frame: pd.DataFrame) -> dict[str, Any]:
    values: dict[str, Any] = {"d_k": str(D_K), "n_keys": str(N_KEYS)}
    for name, attention in (("relu", "relu"), ("elu", "elu+1"), ("favor", "favor+"), ("softmax", "softmax")):
        row = pick(frame[frame["d_k"] == D_K], "linear_attention.csv", attention=attention, scaling=BETWEEN)
        values[name] = error(row)
    return values


def _sparse(frame: pd.DataFrame) -> dict[str, Any]:
    values = {"n_keys": str(N_KEYS), "narrow": f"{NARROW:g}", "wide": f"{WIDE:g}"}
    for name, spread in (("scaled", NARROW), ("plain", WIDE)):
        where = {"normaliser": "sparsemax", "logit_std": spread, "n_keys": N_KEYS, "measure": "zero_gradient_mass"}
        row = pick(frame, "normalisers.csv", **where)
        values[name] = f"{numbers.with_error(100 * row['estimate'], 100 * row['se'])} %"
    return values


def _bits(frame: pd.DataFrame) -> dict[str, Any]:
    d_k = nearest(frame["d_k"], WANTED_D_K)
    values: dict[str, Any] = {"d_k": str(d_k)}
    for name, rule in (("plain", "none"), ("scaled", "1/sqrt(d_k)")):
        where = {"d_k": d_k, "scaling": rule}
        values[name] = error(find(frame, format="bfloat16", rounded="logits", measure="total_variation", **where))
        row = find(frame, format="float16", rounded="naive_exp", measure="overflow_share", **where)
        values[f"overflow_{name}"] = percentage(row["estimate"] if missing(row["exact"]) else row["exact"])
    return values
