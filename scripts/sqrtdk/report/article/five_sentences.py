"""The answer in five sentences: why divide, when it holds, what softmax, gradients and training make of it."""

from typing import Any

import pandas as pd

from sqrtdk.report.article.points import Point, extremes, models, near_one
from sqrtdk.report.comparing import MARGIN, agreement, compare, ratio
from sqrtdk.report.setting import WANTED_SCALING, Setting
from sqrtdk.report.tables.cells import missing
from sqrtdk.report.tables.moments import logit_std
from sqrtdk.report.trained import held, values, verdict
from sqrtdk.results.picking import find, pick, simulated
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

_FAMILY = "article.five"
TOLD = 2
"""Ensembles at either end that the second sentence names."""
VERDICTS = ("larger", "level", "smaller")
VARIANTS = {
    "why": ("holds", "differs", "unsure", "missing"),
    "when": ("all", "some", "one", "none"),
    "when.heads": ("none", "all", "most", "few"),
    "softmax": (*VERDICTS, "one_rule"),
    "gradient": (*(f"{rms}_{median}" for rms in VERDICTS for median in VERDICTS), "one_rule"),
    "training": ("hurts", "helps", "same", "undecided", "none"),
    "training.others": ("some", "none"),
    "training.mup": ("hurts", "helps", "same", "undecided", "none"),
}
"""The families of sentences, and what chooses one of each."""


def five_sentences(frames: dict[str, pd.DataFrame], setting: Setting) -> list[Point]:
    """Return the five sentences of a run in their order, each chosen by its numbers."""
    return [
        Point("why", (why(frames, setting),), ("fig-variance-law", "tab-variance-laws")),
        Point("when", (when(frames, setting),), ("fig-exponents", "tab-ensembles", "tab-real-heads")),
        Point("softmax", (softmax(frames["softmax_saturation"], setting),), ("fig-saturation", "tab-contrast")),
        Point("gradient", (gradient(frames["gradient_magnitude"], setting),), ("fig-gradients", "tab-gradients")),
        Point("training", (training(frames),), ("fig-training-curves", "tab-training")),
    ]


def _said(key: str, values: dict[str, Any] | None = None) -> Sentence:
    return Sentence(f"{_FAMILY}.{key}", values or {})


def why(frames: dict[str, pd.DataFrame], setting: Setting) -> Sentence:
    """Say that the variance is d_k, its exponent 1, and what the root does to the logits; or that it is not so."""
    row = pick(frames["moments"], "moments.csv", ensemble=setting.ensemble, d_k=setting.d_k)
    values: dict[str, Any] = {"ensemble": setting.ensemble, "d_k": str(setting.d_k)}
    if missing(row["variance"]):
        return _said("why.missing", values)
    plain, scaled = (logit_std(row, rule, setting.n_keys) for rule in ("none", WANTED_SCALING))
    values |= {
        "variance": numbers.plus_minus(row["variance"], row["variance_se"]),
        "plain": numbers.with_error(*plain),
        "scaled": numbers.with_error(*scaled),
        "exponent": _exponent(frames["variance_laws"], setting.ensemble),
    }
    if missing(row["variance_se"]):
        return _said("why.unsure", values)
    holds = agreement(row["variance"], row["variance_se"], float(setting.d_k)) == "agrees" and near_one(scaled[0])
    return _said("why.holds" if holds else "why.differs", values)


def _exponent(fits: pd.DataFrame, ensemble: str) -> Sentence:
    row = pick(fits, "variance_laws.csv", ensemble=ensemble, law="power", parameter="exponent")
    if not row["estimable"]:
        return _said("why.exponent.not_estimable")
    values = {"exponent": numbers.with_error(row["estimate"], row["se"]), "points": str(row["n_points"])}
    return _said("why.exponent.estimated", values)


def when(frames: dict[str, pd.DataFrame], setting: Setting) -> Sentence:
    """Count the ensembles whose scaled logits have standard deviation 1, name the farthest, and add trained heads."""
    rows = simulated(frames["moments"]).dropna(subset=["variance"])
    rows = rows[rows["d_k"] == setting.d_k].sort_values("variance", kind="stable").to_dict("records")
    found = [(row["ensemble"], *logit_std(row, WANTED_SCALING, setting.n_keys)) for row in rows]
    heads = _heads(frames["real_heads"])
    values = {"count": str(len(found)), "d_k": str(setting.d_k), "heads": heads, "margin": numbers.percent(MARGIN, 0)}
    if not found:
        return _said("when.none", values)
    far = [one for one in found if not near_one(one[1])]
    small, large = ([one for one in far if one[1] < 1], [one for one in far if one[1] > 1])
    told = [*small[:TOLD], *large[-TOLD:]]
    values |= {
        "near": str(len(found) - len(far)),
        "far": Listing(tuple(_said("when.ensemble", {"name": name, "std": _std(std, se)}) for name, std, se in told)),
    }
    if len(found) == 1:
        return _said("when.one", values | {"name": found[0][0], "std": _std(*found[0][1:])})
    return _said("when.some" if far else "when.all", values)


def _std(std: float, se: float) -> str:
    return numbers.significant(std, 3) if missing(se) else numbers.with_error(std, se)


def _heads(heads: pd.DataFrame) -> Sentence:
    if heads.empty:
        return _said("when.heads.none")
    near = heads["logit_std"].map(near_one)
    values = {"count": str(len(heads)), "near": str(int(near.sum())), "models": models(heads)}
    values |= extremes(heads, "logit_std")
    return _said(f"when.heads.{'all' if near.all() else 'most' if near.mean() > 0.5 else 'few'}", values)


def _pair(frame: pd.DataFrame, what: str, measure: str, setting: Setting) -> list[dict[str, Any]]:
    where = {"ensemble": setting.ensemble, "d_k": setting.d_k, "n_keys": setting.n_keys, "measure": measure}
    return [pick(frame, what, scaling=rule, **where) for rule in (setting.plain, setting.scaled)]


def _both(rows: list[dict[str, Any]], name: str, value: str = "estimate", se: str = "se") -> dict[str, str]:
    """Spell a number without and with the scale."""
    return {
        key: numbers.with_error(row[value], row[se])
        for key, row in zip((f"{name}_plain", f"{name}_scaled"), rows, strict=True)
    }


def softmax(saturation: pd.DataFrame, setting: Setting) -> Sentence:
    """Say the largest weight and the effective keys without the scale and with it."""
    values: dict[str, Any] = {"n_keys": str(setting.n_keys), "d_k": str(setting.d_k)}
    values["rule"] = setting.scaled or setting.plain
    if setting.plain is None or setting.scaled is None:
        return _said("softmax.one_rule", values)
    weights, keys = (
        _pair(saturation, "softmax_saturation.csv", measure, setting) for measure in ("max_weight", "effective_keys")
    )
    found = compare(*(row[column] for row in weights for column in ("estimate", "se")))
    return _said(f"softmax.{found}", values | _both(weights, "weight") | _both(keys, "keys"))


def gradient(gradients: pd.DataFrame, setting: Setting) -> Sentence:
    """Say how the gradient of the logits without the scale compares as root mean square and in the median row."""
    values: dict[str, Any] = {"n_keys": str(setting.n_keys), "d_k": str(setting.d_k)}
    values["rule"] = setting.scaled or setting.plain
    if setting.plain is None or setting.scaled is None:
        return _said("gradient.one_rule", values)
    rows, verdicts = _pair(gradients, "gradient_magnitude.csv", "grad_logits", setting), []
    for kind, value, se in (("rms", "estimate", "se"), ("median", "median", "median_se")):
        plain, scaled = rows
        verdicts.append(compare(plain[value], plain[se], scaled[value], scaled[se]))
        values |= {f"{kind}_ratio": ratio(plain[value], scaled[value])} | _both(rows, kind, value, se)
    query = _pair(gradients, "gradient_magnitude.csv", "grad_query", setting)
    values["query"] = _said("gradient.query", _both(query, "rms") | _both(query, "median", "median", "median_se"))
    return _said(f"gradient.{'_'.join(verdicts)}", values)


def training(frames: dict[str, pd.DataFrame]) -> Sentence:
    """Say what leaving the scale out does in training, and 1/d_k in its place, in each task of this run."""
    verdicts = frames["training_verdicts"]
    rows = held(verdicts, "none")
    if not rows:
        return _said("training.none")
    first = rows["loss"]
    told = values(rows) | _trained(frames["training_summary"], first)
    others = [name for name in dict.fromkeys(verdicts["experiment"]) if name != first["experiment"]]
    told |= {"others": _others(verdicts, "none", others)}
    linear = held(verdicts, "1/d_k", experiment=first["experiment"])
    said = values(linear) | {"others": _others(verdicts, "1/d_k", others)} if linear else {}
    told |= {"mup": _said(f"training.mup.{verdict(linear) if linear else 'none'}", said)}
    return _said(f"training.{verdict(rows)}", told)


def _others(verdicts: pd.DataFrame, scaling: str, experiments: list[str]) -> Sentence:
    """Say the same of a rule in other experiments, which may say the opposite."""
    found = [rows for name in experiments if (rows := held(verdicts, scaling, experiment=name))]
    told = tuple(_said(f"training.other.{verdict(rows)}", values(rows)) for rows in found)
    return _said("training.others.some", {"tasks": Listing(told)}) if told else _said("training.others.none")


def _trained(summary: pd.DataFrame, row: dict[str, Any]) -> dict[str, str]:
    """Spell how long and at how many rates models were trained."""
    plain = find(summary, scaling=row["scaling"], experiment=row["experiment"], d_k=row["d_k"])
    return {"rates": str(int(plain["n_rates"])), "steps": str(int(plain["steps"]))}
