"""The numbers that a text about a run would quote: each with a name, an error, and the row that it comes from."""

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from sqrtdk.report import calibrating
from sqrtdk.report.comparing import MARGIN
from sqrtdk.report.macro_names import fingerprint, letters
from sqrtdk.report.setting import WANTED_D_K, Setting
from sqrtdk.report.tables.cells import exact, missing
from sqrtdk.report.tables.moments import logit_std
from sqrtdk.report.tables.rows import SATURATION_MEASURES
from sqrtdk.results.grid import nearest
from sqrtdk.results.picking import pick, simulated
from sqrtdk.rows.softmax import SATURATED_WEIGHT, VANISHING_NORM
from sqrtdk.statistics.distribution import THRESHOLDS
from sqrtdk.statistics.intervals import NORMAL
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Sentence

LIMITS = {"saturated": f"{SATURATED_WEIGHT:g}", "vanishing": f"{VANISHING_NORM:g}"}
"""What counts as saturated and as vanished, for the words."""
VANISHED = "1e-3"
GRADIENTS = {"grad_logits": "LogitsGradient", "grad_query": "QueryGradient", "grad_key": "KeyGradient"}
RATIO = "ratio"
"""Unit of a number that says how many times something is something else."""


@dataclass(frozen=True)
class KeyNumber:
    """A number of a run.

    name: letters alone, starting with a capital. `value` has a standard error `se`, or a 95 % interval `low` to `high`
    (an end may be infinite), or neither where it is exact. source: the file that it comes from, in results/.
    row: the values of the columns that pick its row, or rows. columns: where value, se, low and high stand there, in
    this order; where the number is calculated from them, `calculation` says how. n: observations behind it.
    """

    name: str
    value: float
    description: Sentence
    source: str
    row: dict[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    se: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    unit: str = "1"
    calculation: str = ""
    headline: bool = False

    @property
    def spelled(self) -> str:
        """Return the number in words, rounded by its own error."""
        if self.se is not None and self.se > 0:
            return numbers.with_error(self.value, self.se)
        if self.low is not None and self.high is not None:
            if math.isfinite(self.low) and math.isfinite(self.high) and self.high > self.low:
                return numbers.rounded(self.value, (self.high - self.low) / (2 * NORMAL))
            if not math.isfinite(self.high - self.low):
                return numbers.significant(self.value, 2)
        return str(self.value) if self.unit == "count" else exact(self.value, 4)

    @property
    def identity(self) -> str:
        """Return what distinguishes this number from all others of a run, its name aside."""
        return f"{self.source} {sorted(self.row.items())!r} {self.columns!r} {self.calculation} {self.description.key}"


def named(found: list[KeyNumber]) -> list[KeyNumber]:
    """Return the numbers with names that are different: those that share one all get letters of what they are.

    Raises ValueError where two numbers cannot be told apart.
    """
    names = [number.name for number in found]
    unique = [
        number if names.count(number.name) == 1 else replace(number, name=number.name + fingerprint(number.identity))
        for number in found
    ]
    seen: dict[str, KeyNumber] = {}
    for number in unique:
        if number.name in seen or not re.fullmatch("[A-Z][A-Za-z]*", number.name):
            raise ValueError(f"no name of its own for the number {number.identity}: {number.name!r}")
        seen[number.name] = number
    return unique


def of_run(frames: dict[str, pd.DataFrame], at: Setting) -> list[KeyNumber]:
    """Return the key numbers of a run from its result tables by name.

    Tables that a run need not have (claims) may be missing.
    """
    found = [
        *_about(frames, at),
        *_laws(frames["variance_laws"], frames["moments"], at),
        *_logits(frames["moments"], at),
        *_softmax(frames["softmax_saturation"], at),
        *_gradients(frames["gradient_magnitude"], at),
        *_distribution(frames["gradient_distribution"], at),
        *_crossovers(frames["gradient_crossovers"], at),
        *_training(frames["training_verdicts"], frames["training_summary"]),
        *_heads(frames["real_heads"]),
        *_trust(frames),
        *_claims(frames.get("claims")),
    ]
    return named(found)


def _say(key: str, **values: Any) -> Sentence:
    return Sentence(f"numbers.{key}", {name: str(value) for name, value in values.items()})


def _count(
    name: str,
    value: Any,
    key: str,
    source: str,
    row: dict[str, Any] | None = None,
    headline: bool = False,
    **values: Any,
) -> KeyNumber:
    calculation = "number of rows" if row is not None else ""
    described = _say(key, **values)
    return KeyNumber(
        name, int(value), described, source, row or {}, unit="count", calculation=calculation, headline=headline
    )


def _cell(
    name: str,
    row: dict[str, Any],
    keys: tuple[str, ...],
    columns: tuple[str, ...],
    said: Sentence,
    source: str,
    **more: Any,
) -> KeyNumber:
    """Return a number that stands in one row; `columns` are those of its value and error, or value and interval."""
    values: list[Any] = [None if missing(row[column]) else float(row[column]) for column in columns]
    where = {key: row[key] for key in keys}
    ends = {"low": values[-2], "high": values[-1]} if len(columns) > 2 else {}
    se = values[1] if len(columns) in (2, 4) else None
    return KeyNumber(name, values[0], said, source, where, columns, se=se, **ends, **more)


def _about(frames: dict[str, Any], at: Setting) -> Iterator[KeyNumber]:
    moments, heads = simulated(frames["moments"]), frames["real_heads"]
    yield KeyNumber("Width", at.d_k, _say("width"), "softmax_saturation.csv", {"d_k": at.d_k}, ("d_k",), unit="count")
    keys = {"n_keys": at.n_keys}
    yield KeyNumber("Keys", at.n_keys, _say("keys"), "softmax_saturation.csv", keys, ("n_keys",), unit="count")
    for name, value, key in (
        ("Ensembles", moments["ensemble"].nunique(), "ensembles"),
        ("Widths", moments["d_k"].nunique(), "widths"),
        ("NarrowestWidth", moments["d_k"].min(), "narrowest"),
        ("WidestWidth", moments["d_k"].max(), "widest"),
        ("Cells", len(moments), "cells"),
    ):
        yield _count(name, value, key, "moments.csv", {})
    yield _count("Heads", len(heads), "heads", "real_heads.csv", {})


def _laws(fits: pd.DataFrame, moments: pd.DataFrame, at: Setting) -> Iterator[KeyNumber]:
    exponents = fits[(fits["law"] == "power") & (fits["parameter"] == "exponent")]
    rows = [row for row in exponents.to_dict("records") if row["estimable"]]
    keys, columns = ("ensemble", "law", "parameter"), ("estimate", "se", "ci_low", "ci_high")
    for row in rows:
        own = row["ensemble"] == at.ensemble
        yield _cell(
            f"{letters(row['ensemble'])}Exponent",
            *(row, keys, columns, _say("exponent", ensemble=row["ensemble"]), "variance_laws.csv"),
            n=int(row["n_points"]),
            headline=own,
        )
        if own and not missing(row["exact"]):
            said = _say("exponent_exact", ensemble=row["ensemble"])
            yield _cell("ExactExponent", row, keys, ("exact",), said, "variance_laws.csv")
    inside = sum(row["ci_low"] <= 1 <= row["ci_high"] for row in rows)
    where = {"law": "power", "parameter": "exponent", "estimable": True}
    yield _count("ExponentsEstimable", len(rows), "exponents", "variance_laws.csv", where)
    yield _count("ExponentsWithOne", inside, "exponents_inside", "variance_laws.csv", where, headline=True)
    for row in simulated(moments)[lambda frame: frame["d_k"] == at.d_k].to_dict("records"):
        cell = {"ensemble": row["ensemble"], "d_k": row["d_k"]}
        own = row["ensemble"] == at.ensemble
        if not missing(row["variance"]):
            yield _cell(
                f"{letters(row['ensemble'])}Variance",
                *(row, ("ensemble", "d_k"), ("variance", "variance_se"), _say("variance", **cell), "moments.csv"),
                n=int(row["n_scores"]),
                headline=own,
            )
        if own and not missing(row["exact_variance"]):
            yield _cell(
                "ExactVariance",
                row,
                ("ensemble", "d_k"),
                ("exact_variance",),
                _say("variance_exact", **cell),
                "moments.csv",
            )


def _logits(moments: pd.DataFrame, at: Setting) -> Iterator[KeyNumber]:
    row = pick(moments, "moments.csv", ensemble=at.ensemble, d_k=at.d_k)
    for rule in filter(None, (at.plain, at.scaled)):
        std, se = logit_std(row, rule, at.n_keys)
        if missing(std):
            continue
        yield KeyNumber(
            f"LogitStd{letters(rule)}",
            *(std, _say("logit_std", ensemble=at.ensemble, d_k=at.d_k, rule=rule), "moments.csv"),
            {"ensemble": at.ensemble, "d_k": at.d_k},
            ("variance", "variance_se"),
            se=None if missing(se) else se,
            n=int(row["n_scores"]),
            calculation=f"factor of {rule} times the square root of the variance",
            headline=True,
        )
    if at.scaled:
        rows = simulated(moments).dropna(subset=["variance"])
        rows = rows[rows["d_k"] == at.d_k].to_dict("records")
        stds = [logit_std(one, at.scaled, at.n_keys)[0] for one in rows]
        near = sum(abs(std - 1) <= MARGIN for std in stds)
        named: dict[str, Any] = {"d_k": at.d_k, "rule": at.scaled, "margin": f"{MARGIN:g}"}
        yield _count("EnsemblesMeasured", len(stds), "ensembles_measured", "moments.csv", {"d_k": at.d_k}, **named)
        yield _count("EnsemblesNearOne", near, "ensembles_near", "moments.csv", {"d_k": at.d_k}, headline=True, **named)
    keys = ("ensemble", "d_k")
    for name, columns in (("", ("excess_kurtosis", "excess_kurtosis_se")), ("Exact", ("exact_excess_kurtosis",))):
        if not missing(row[columns[0]]):
            said = _say(f"{name.lower() or 'measured'}_kurtosis", ensemble=at.ensemble, d_k=at.d_k)
            yield _cell(f"{name}ExcessKurtosis", row, keys, columns, said, "moments.csv", n=int(row["n_scores"]))


def _rows(frame: pd.DataFrame, at: Setting, **where: Any) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield the headline's rules with their rows of a table, and what a description of them names."""
    for rule in filter(None, (at.plain, at.scaled)):
        keys = {"ensemble": at.ensemble, "d_k": at.d_k, "n_keys": at.n_keys, "scaling": rule} | where
        yield rule, pick(frame, "the table", **keys), {**keys, "rule": rule, **LIMITS}


CELL = ("ensemble", "d_k", "n_keys", "scaling", "measure")


def _softmax(saturation: pd.DataFrame, at: Setting) -> Iterator[KeyNumber]:
    for measure in SATURATION_MEASURES:
        for rule, row, keys in _rows(saturation, at, measure=measure):
            if missing(row["estimate"]):
                continue
            yield _cell(
                f"{letters(measure)}{letters(rule)}",
                *(row, CELL, ("estimate", "se"), _say(f"measures.{measure}", **keys), "softmax_saturation.csv"),
                n=int(row["n_rows"]),
                headline=measure in ("max_weight", "effective_keys"),
            )


def _gradients(gradients: pd.DataFrame, at: Setting) -> Iterator[KeyNumber]:
    here = gradients[(gradients["ensemble"] == at.ensemble) & (gradients["n_keys"] == at.n_keys)]
    for measure, name in GRADIENTS.items():
        for kind, columns in (("Rms", ("estimate", "se")), ("Median", ("median", "median_se"))):
            pair = []
            for rule, row, keys in _rows(gradients, at, measure=measure):
                pair.append(row)
                said = _say(f"gradients.{measure}.{kind.lower()}", **keys)
                yield _cell(
                    *(f"{name}{kind}{letters(rule)}", row, CELL, columns, said, "gradient_magnitude.csv"),
                    n=int(row["n_rows"]),
                    headline=measure != "grad_key",
                )
            yield from _ratio(f"{name}{kind}Ratio", pair, columns, f"ratios.{measure}.{kind.lower()}", at)
            if measure == "grad_query" and at.plain and at.scaled:
                widest = replace(at, d_k=int(here["d_k"].max()))
                pair = []
                for rule, row, keys in _rows(gradients, widest, measure=measure):
                    pair.append(row)
                    said = _say(f"gradients.{measure}.{kind.lower()}", **keys)
                    whole = f"Widest{name}{kind}{letters(rule)}"
                    yield _cell(whole, row, CELL, columns, said, "gradient_magnitude.csv", n=int(row["n_rows"]))
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
        *(name, plain / scaled, _say(key, **row, rule=at.scaled), "gradient_magnitude.csv", row, columns),
        se=math.hypot(plain_se, plain / scaled * scaled_se) / scaled,
        n=int(pair[0]["n_rows"]),
        unit=RATIO,
        calculation=f"with scaling none over with scaling {at.scaled}; the error takes both as independent",
        headline=True,
    )


def _distribution(spread: pd.DataFrame, at: Setting) -> Iterator[KeyNumber]:
    for statistic, name in ((f"below_{VANISHED}", "VanishingRows"), ("top_tenth_energy", "TopTenthEnergy")):
        for rule, row, keys in _rows(spread, at, measure="grad_logits", statistic=statistic):
            if missing(row["estimate"]):
                continue
            said = _say(f"distribution.{name}", **keys, threshold=f"{THRESHOLDS[VANISHED]:g}")
            columns = ("estimate", "se", "low", "high")
            yield _cell(
                f"{name}{letters(rule)}",
                *(row, (*CELL, "statistic"), columns, said, "gradient_distribution.csv"),
                n=int(row["n_rows"]),
                headline=True,
            )


def _crossovers(crossings: pd.DataFrame, at: Setting) -> Iterator[KeyNumber]:
    if crossings.empty:
        return
    here = crossings[(crossings["ensemble"] == at.ensemble) & (crossings["n_keys"] == at.n_keys)]
    for row in here.dropna(subset=["d_k_star"]).to_dict("records"):
        measure, quantity = row["measure"], row["quantity"]
        keys = ("ensemble", "n_keys", "measure", "quantity")
        said = _say("crossover", **{key: row[key] for key in keys})
        yield _cell(
            f"Crossover{GRADIENTS.get(measure) or letters(measure)}{letters(quantity)}",
            *(row, keys, ("d_k_star", "ci_low", "ci_high"), said, "gradient_crossovers.csv"),
            headline=(measure, quantity) == ("grad_logits", "median"),
        )


def _training(verdicts: pd.DataFrame, summary: pd.DataFrame) -> Iterator[KeyNumber]:
    """Yield the comparisons of the first experiment: all of them at the width nearest to 64, losses at every width."""
    if verdicts.empty:
        return
    rows = verdicts[verdicts["experiment"] == verdicts["experiment"].iloc[0]]
    d_k = nearest(rows["d_k"], WANTED_D_K)
    keys = ("experiment", "scaling", "d_k", "comparison", "margin")
    for row in rows[(rows["d_k"] == d_k) | (rows["comparison"] == "loss")].to_dict("records"):
        if missing(row["estimate"]):
            continue
        said = _say(f"training.{row['comparison']}", rule=row["scaling"], **row)
        yield _cell(
            "".join(letters(str(row[key])) for key in keys[:4]),
            *(row, keys, ("estimate", "low", "high"), said, "training_verdicts.csv"),
            n=int(row["n_seeds"]),
            unit=RATIO if row["unit"] == "ratio" else row["unit"],
            headline=row["d_k"] == d_k and row["comparison"] == "loss",
        )
    best = rows[(rows["d_k"] == d_k) & (rows["comparison"] == "loss")].to_dict("records")
    for column, row in [*(("rate", row) for row in best), *(("reference_rate", row) for row in best[:1])]:
        rule, what = (letters(row["scaling"]), "Rate") if column == "rate" else ("", "ReferenceRate")
        said = _say(f"training.{column}", rule=row["scaling"], **row)
        name = f"{letters(row['experiment'])}{rule}{letters(str(d_k))}{what}"
        yield _cell(name, row, keys, (column,), said, "training_verdicts.csv")
    here = summary[(summary["experiment"] == rows["experiment"].iloc[0]) & (summary["d_k"] == d_k)]
    for row, (word, column) in itertools.product(here.to_dict("records"), (("right", "accuracy"), ("steps", "steps"))):
        name = "".join(letters(str(row[key])) for key in keys[:3]) + word.capitalize()
        said = _say(f"training.{word}", rule=row["scaling"], **row)
        yield _cell(name, row, keys[:3], (column,), said, "training_summary.csv", n=int(row["n_seeds"]))


def _heads(frame: pd.DataFrame) -> Iterator[KeyNumber]:
    for dump, heads in [] if frame.empty else frame.groupby("dump", sort=False):
        name, source, where = letters(dump), "real_heads.csv", {"dump": dump}
        margin = MARGIN
        near = int(((heads["logit_std"] - 1).abs() <= margin).sum())
        near_one: dict[str, Any] = {"dump": dump, "margin": f"{margin:g}"}
        yield _count(f"{name}HeadsNearOne", near, "heads_near", source, where, headline=True, **near_one)
        yield _count(f"{name}Heads", len(heads), "heads_of", source, where, dump=dump)
        for end, place in (("Lowest", heads["logit_std"].idxmin()), ("Highest", heads["logit_std"].idxmax())):
            row = heads.loc[place].to_dict()
            said = _say(f"heads_{end.lower()}", **{key: row[key] for key in ("dump", "layer", "head")})
            yield _cell(
                f"{name}{end}LogitStd",
                *(row, ("dump", "layer", "head"), ("logit_std", "logit_std_se"), said, source),
                n=int(row["n_scores"]),
                headline=True,
            )
        for part, column, statistic in (
            ("MedianLogitStd", "logit_std", "median"),
            ("LowestIndependenceRatio", "independence_ratio", "min"),
            ("HighestIndependenceRatio", "independence_ratio", "max"),
        ):
            value, said = float(getattr(heads[column], statistic)()), _say(f"heads_statistics.{part}", dump=dump)
            calculation = {"median": "median", "min": "smallest", "max": "largest"}[statistic]
            yield KeyNumber(
                f"{name}{part}", value, said, source, where, (column,), n=len(heads), calculation=calculation
            )


def _trust(frames: dict[str, Any]) -> Iterator[KeyNumber]:
    scores, left_out = calibrating.scores(frames["moments"]), 0
    yield from _covered("Moments", scores, "moments.csv")
    theory, left_out = calibrating.theory_scores(frames["softmax_saturation"], frames["gradient_magnitude"])
    source = "softmax_saturation.csv and gradient_magnitude.csv"
    yield from _covered("Rows", theory, source)
    if len(theory):
        yield _count("RowsNotTrusted", left_out, "trust.left_out", source)


def _covered(name: str, scores: Any, source: str) -> Iterator[KeyNumber]:
    if not len(scores):
        return
    calculation = "distances (estimate - exact)/se of all estimates with an exact value and a trusted error"
    share = sum(score <= NORMAL for score in scores) / len(scores)
    common: dict[str, Any] = dict(source=source, calculation=calculation, n=len(scores))
    yield KeyNumber(f"{name}Compared", len(scores), _say(f"trust.{name}.count"), **common, unit="count")
    yield KeyNumber(
        f"{name}Covered",
        share,
        _say(f"trust.{name}.share", covered=numbers.significant(NORMAL)),
        **common,
        headline=True,
    )
    yield KeyNumber(f"{name}Farthest", float(max(scores)), _say(f"trust.{name}.worst"), **common)


def _claims(claims: pd.DataFrame | None) -> Iterator[KeyNumber]:
    """Yield how many claims of the ledger got each verdict."""
    if claims is None or claims.empty:
        return
    yield _count("Claims", len(claims), "claims.all", "claims.csv", {}, headline=True)
    for verdict, number in claims["verdict"].value_counts(sort=False).items():
        name = f"Claims{letters(str(verdict))}"
        where = {"verdict": str(verdict)}
        yield _count(name, number, "claims.verdict", "claims.csv", where, headline=True, verdict=verdict)
