"""The key numbers of a run: what a text about it would quote, each named once, from its result tables."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from sqrtdk.report import figure_numbers, study_numbers
from sqrtdk.report.comparing import MARGIN
from sqrtdk.report.facts import RATIO, SHARE, KeyNumber, cell, count, named, said
from sqrtdk.report.macro_names import letters
from sqrtdk.report.setting import Setting
from sqrtdk.report.tables.cells import missing
from sqrtdk.report.tables.moments import logit_std
from sqrtdk.report.tables.rows import SATURATION_MEASURES
from sqrtdk.results.picking import pick, simulated
from sqrtdk.rows.softmax import SATURATED_WEIGHT, VANISHING_NORM
from sqrtdk.statistics.distribution import THRESHOLDS

LIMITS = {"saturated": f"{SATURATED_WEIGHT:g}", "vanishing": f"{VANISHING_NORM:g}"}
"""What counts as saturated and as vanished, for the words."""
VANISHED = "1e-3"
GRADIENTS = {"grad_logits": "LogitsGradient", "grad_query": "QueryGradient", "grad_key": "KeyGradient"}
HEAD = ["model", "layer", "head"]
"""What a head is: the same one may have read several inputs."""
SHARES = ("saturated_share", "vanishing_share")
"""Measures of rows that are parts of a whole."""


def of_run(frames: dict[str, pd.DataFrame], at: Setting, start_rate: pd.DataFrame | None = None) -> list[KeyNumber]:
    """Return the key numbers of a run from its result tables by name.

    Tables that a run need not have (claims) may be missing. start_rate: that of the longer training run that ships.
    """
    found = [
        *_about(frames, at),
        *_laws(frames["variance_laws"], frames["moments"], at),
        *_logits(frames["moments"], at),
        *_softmax(frames["softmax_saturation"], at),
        *_gradients(frames["gradient_magnitude"], at),
        *_distribution(frames["gradient_distribution"], at),
        *_crossovers(frames["gradient_crossovers"], at),
        *study_numbers.of_run(frames),
        *figure_numbers.of_run(frames, start_rate),
    ]
    return named(found)


def _about(frames: dict[str, Any], at: Setting) -> Iterator[KeyNumber]:
    moments, heads = simulated(frames["moments"]), frames["real_heads"]
    yield KeyNumber("Width", at.d_k, said("width"), "softmax_saturation.csv", {"d_k": at.d_k}, ("d_k",), unit="count")
    keys = {"n_keys": at.n_keys}
    yield KeyNumber("Keys", at.n_keys, said("keys"), "softmax_saturation.csv", keys, ("n_keys",), unit="count")
    for name, value, key in (
        ("Ensembles", moments["ensemble"].nunique(), "ensembles"),
        ("Widths", moments["d_k"].nunique(), "widths"),
        ("NarrowestWidth", moments["d_k"].min(), "narrowest"),
        ("WidestWidth", moments["d_k"].max(), "widest"),
        ("Cells", len(moments), "cells"),
    ):
        yield count(name, value, key, "moments.csv", {})
    yield count("Heads", len(heads), "heads", "real_heads.csv", {})
    distinct = 0 if heads.empty else len(heads.drop_duplicates(HEAD))
    yield count("DistinctHeads", distinct, "heads_distinct", "real_heads.csv")


def _laws(fits: pd.DataFrame, moments: pd.DataFrame, at: Setting) -> Iterator[KeyNumber]:
    exponents = fits[(fits["law"] == "power") & (fits["parameter"] == "exponent")]
    rows = [row for row in exponents.to_dict("records") if row["estimable"]]
    keys, columns = ("ensemble", "law", "parameter"), ("estimate", "se", "ci_low", "ci_high")
    for row in rows:
        own = row["ensemble"] == at.ensemble
        yield cell(
            f"{letters(row['ensemble'])}Exponent",
            *(row, keys, columns, said("exponent", ensemble=row["ensemble"]), "variance_laws.csv"),
            known="exact",
            n=int(row["n_points"]),
            headline=own,
        )
        if own and not missing(row["exact"]):
            told = said("exponent_exact", ensemble=row["ensemble"])
            yield cell("ExactExponent", row, keys, ("exact",), told, "variance_laws.csv")
    inside = sum(row["ci_low"] <= 1 <= row["ci_high"] for row in rows)
    where = {"law": "power", "parameter": "exponent", "estimable": True}
    yield count("ExponentsEstimable", len(rows), "exponents", "variance_laws.csv", where)
    yield count("ExponentsWithOne", inside, "exponents_inside", "variance_laws.csv", where, headline=True)
    for row in simulated(moments)[lambda frame: frame["d_k"] == at.d_k].to_dict("records"):
        place = {"ensemble": row["ensemble"], "d_k": row["d_k"]}
        own = row["ensemble"] == at.ensemble
        if not missing(row["variance"]):
            yield cell(
                f"{letters(row['ensemble'])}Variance",
                *(row, ("ensemble", "d_k"), ("variance", "variance_se"), said("variance", **place), "moments.csv"),
                known="exact_variance",
                n=int(row["n_scores"]),
                headline=own,
            )
        if own and not missing(row["exact_variance"]):
            yield cell(
                "ExactVariance",
                row,
                ("ensemble", "d_k"),
                ("exact_variance",),
                said("variance_exact", **place),
                "moments.csv",
            )


def _logits(moments: pd.DataFrame, at: Setting) -> Iterator[KeyNumber]:
    row = pick(moments, "moments.csv", ensemble=at.ensemble, d_k=at.d_k)
    for rule in filter(None, (at.plain, at.scaled)):
        std, se = logit_std(row, rule, at.n_keys)
        exact = logit_std({**row, "variance": row["exact_variance"]}, rule, at.n_keys)
        if missing(std):
            continue
        yield KeyNumber(
            f"LogitStd{letters(rule)}",
            *(std, said("logit_std", ensemble=at.ensemble, d_k=at.d_k, rule=rule), "moments.csv"),
            {"ensemble": at.ensemble, "d_k": at.d_k},
            ("variance", "variance_se"),
            se=None if missing(se) else se,
            n=int(row["n_scores"]),
            calculation=f"factor of {rule} times the square root of the variance",
            headline=True,
            truth=None if missing(exact[0]) else exact[0],
        )
    if at.scaled:
        rows = simulated(moments).dropna(subset=["variance"])
        rows = rows[rows["d_k"] == at.d_k].to_dict("records")
        stds = [logit_std(one, at.scaled, at.n_keys)[0] for one in rows]
        near = sum(abs(std - 1) <= MARGIN for std in stds)
        told: dict[str, Any] = {"d_k": at.d_k, "rule": at.scaled, "margin": f"{MARGIN:g}"}
        yield count("EnsemblesMeasured", len(stds), "ensembles_measured", "moments.csv", {"d_k": at.d_k}, **told)
        yield count("EnsemblesNearOne", near, "ensembles_near", "moments.csv", {"d_k": at.d_k}, headline=True, **told)
    keys = ("ensemble", "d_k")
    for name, columns in (("", ("excess_kurtosis", "excess_kurtosis_se")), ("Exact", ("exact_excess_kurtosis",))):
        if not missing(row[columns[0]]):
            what = said(f"{name.lower() or 'measured'}_kurtosis", ensemble=at.ensemble, d_k=at.d_k)
            yield cell(f"{name}ExcessKurtosis", row, keys, columns, what, "moments.csv", n=int(row["n_scores"]))


def _rows(
    frame: pd.DataFrame, source: str, at: Setting, **where: Any
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield the headline's rules with their rows of a table, and what a description of them names."""
    for rule in filter(None, (at.plain, at.scaled)):
        keys = {"ensemble": at.ensemble, "d_k": at.d_k, "n_keys": at.n_keys, "scaling": rule} | where
        yield rule, pick(frame, source, **keys), {**keys, "rule": rule, **LIMITS}


CELL = ("ensemble", "d_k", "n_keys", "scaling", "measure")


def _softmax(saturation: pd.DataFrame, at: Setting) -> Iterator[KeyNumber]:
    for measure in SATURATION_MEASURES:
        for rule, row, keys in _rows(saturation, "softmax_saturation.csv", at, measure=measure):
            if missing(row["estimate"]):
                continue
            yield cell(
                f"{letters(measure)}{letters(rule)}",
                *(row, CELL, ("estimate", "se"), said(f"measures.{measure}", **keys), "softmax_saturation.csv"),
                n=int(row["n_rows"]),
                unit=SHARE if measure in SHARES else "1",
                headline=measure in ("max_weight", "effective_keys"),
            )


def _gradients(gradients: pd.DataFrame, at: Setting) -> Iterator[KeyNumber]:
    here = gradients[(gradients["ensemble"] == at.ensemble) & (gradients["n_keys"] == at.n_keys)]
    for measure, name in GRADIENTS.items():
        for kind, columns in (("Rms", ("estimate", "se")), ("Median", ("median", "median_se"))):
            pair = []
            for rule, row, keys in _rows(gradients, "gradient_magnitude.csv", at, measure=measure):
                pair.append(row)
                told = said(f"gradients.{measure}.{kind.lower()}", **keys)
                yield cell(
                    *(f"{name}{kind}{letters(rule)}", row, CELL, columns, told, "gradient_magnitude.csv"),
                    n=int(row["n_rows"]),
                    headline=measure != "grad_key",
                )
            yield from _ratio(f"{name}{kind}Ratio", pair, columns, f"ratios.{measure}.{kind.lower()}", at)
            if measure == "grad_query" and at.plain and at.scaled:
                widest = replace(at, d_k=int(here["d_k"].max()))
                pair = []
                for rule, row, keys in _rows(gradients, "gradient_magnitude.csv", widest, measure=measure):
                    pair.append(row)
                    told = said(f"gradients.{measure}.{kind.lower()}", **keys)
                    whole = f"Widest{name}{kind}{letters(rule)}"
                    yield cell(whole, row, CELL, columns, told, "gradient_magnitude.csv", n=int(row["n_rows"]))
                yield from _ratio(f"Widest{name}{kind}Ratio", pair, columns, f"ratios.{measure}.{kind.lower()}", at)


def _ratio(
    name: str, pair: list[dict[str, Any]], columns: tuple[str, str], key: str, at: Setting
) -> Iterator[KeyNumber]:
    """Yield how many times a gradient without the scale is that with it, with the error of independent sizes."""
    if len(pair) < 2 or not pair[1][columns[0]]:
        return
    (plain, plain_se), (scaled, scaled_se) = ([row[column] for column in columns] for row in pair)
    row = {key: pair[0][key] for key in ("ensemble", "d_k", "n_keys", "measure")}
    yield KeyNumber(
        *(name, plain / scaled, said(key, **row, rule=at.scaled), "gradient_magnitude.csv", row, columns),
        se=math.hypot(plain_se, plain / scaled * scaled_se) / scaled,
        n=int(pair[0]["n_rows"]),
        unit=RATIO,
        calculation=f"with scaling none over with scaling {at.scaled}; the error takes both as independent",
        headline=True,
    )


def _distribution(spread: pd.DataFrame, at: Setting) -> Iterator[KeyNumber]:
    for statistic, name in ((f"below_{VANISHED}", "VanishingRows"), ("top_tenth_energy", "TopTenthEnergy")):
        for rule, row, keys in _rows(
            spread, "gradient_distribution.csv", at, measure="grad_logits", statistic=statistic
        ):
            if missing(row["estimate"]):
                continue
            told = said(f"distribution.{name}", **keys, threshold=f"{THRESHOLDS[VANISHED]:g}")
            columns = ("estimate", "se", "low", "high")
            yield cell(
                f"{name}{letters(rule)}",
                *(row, (*CELL, "statistic"), columns, told, "gradient_distribution.csv"),
                n=int(row["n_rows"]),
                unit=SHARE,
                headline=True,
            )


def _crossovers(crossings: pd.DataFrame, at: Setting) -> Iterator[KeyNumber]:
    """Yield where gradients without the scale become the smaller ones, over the headline's keys and the fewest."""
    if crossings.empty:
        return
    here = crossings[crossings["ensemble"] == at.ensemble].dropna(subset=["d_k_star"])
    few = here["n_keys"].min()
    keys = ("ensemble", "n_keys", "measure", "quantity")
    for row in here[here["n_keys"].isin([at.n_keys, few])].to_dict("records"):
        measure, quantity = row["measure"], row["quantity"]
        yield cell(
            f"{'' if row['n_keys'] == at.n_keys else 'FewKeys'}"
            f"Crossover{GRADIENTS.get(measure) or letters(measure)}{letters(quantity)}",
            *(row, keys, ("d_k_star", "ci_low", "ci_high"), said("crossover", **{key: row[key] for key in keys})),
            "gradient_crossovers.csv",
            headline=(row["n_keys"], measure, quantity) == (at.n_keys, "grad_logits", "median"),
        )
