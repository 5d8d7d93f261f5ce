"""The answer in numbers: which sentence of the report's words is true of this run, and the numbers that it holds."""

import math
from typing import Any

import pandas as pd

from sqrtdk.report import calibrating, vanishing
from sqrtdk.report.comparing import MARGIN, agreement, compare, ratio
from sqrtdk.report.setting import Setting
from sqrtdk.report.tables.cells import exact, missing, text
from sqrtdk.report.tables.moments import logit_std
from sqrtdk.results.picking import pick, simulated
from sqrtdk.sampling import laws
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Phrase, Sentence


def exponent(variance_laws: pd.DataFrame, setting: Setting) -> list[Sentence]:
    """Say the fitted exponent of the variance of the headline's ensemble."""
    row = pick(variance_laws, "variance_laws.csv", ensemble=setting.ensemble, law="power", parameter="exponent")
    if not row["estimable"]:
        values = {"ensemble": setting.ensemble, "reason": Phrase(text(row["reason"]))}
        return [Sentence("answer.exponent.not_estimable", values)]
    values = {
        "ensemble": setting.ensemble,
        "exponent": numbers.plus_minus(row["estimate"], row["se"]),
        "interval": numbers.interval(row["ci_low"], row["ci_high"]),
        "points": str(row["n_points"]),
        "exact": exact(row["exact"]),
    }
    return [Sentence(f"answer.exponent.{agreement(row['estimate'], row['se'], row['exact'])}", values)]


def intervals(variance_laws: pd.DataFrame) -> list[Sentence]:
    """Count the ensembles whose exponent is 1 within its interval, and name the others."""
    rows = variance_laws[(variance_laws["law"] == "power") & (variance_laws["parameter"] == "exponent")]
    rows = rows[rows["estimable"].astype(bool)]
    if len(rows) < 2:
        return []
    inside = (rows["ci_low"] <= 1) & (rows["ci_high"] >= 1)
    top = rows.loc[rows["estimate"].idxmax()]
    values = {
        "inside": str(int(inside.sum())),
        "count": str(len(rows)),
        "top": numbers.with_error(top["estimate"], top["se"]),
        "top_ensemble": top["ensemble"],
    }
    return [Sentence(f"answer.intervals.{'all' if inside.all() else 'some' if inside.any() else 'nowhere'}", values)]


def variance(moments: pd.DataFrame, setting: Setting) -> list[Sentence]:
    """Say the variance at the headline's width beside the exact one, and the size of the logits that follows."""
    row = pick(moments, "moments.csv", ensemble=setting.ensemble, d_k=setting.d_k)
    if missing(row["variance"]):
        return [Sentence("answer.variance.missing", {"d_k": str(setting.d_k), "reason": Phrase(text(row["reason"]))})]
    std = logit_std(row, "none", setting.n_keys)
    values = {
        "d_k": str(setting.d_k),
        "ensemble": setting.ensemble,
        "variance": numbers.plus_minus(row["variance"], row["variance_se"]),
        "exact": exact(row["exact_variance"]),
        "std": numbers.plus_minus(*std),
    }
    verdict = agreement(row["variance"], row["variance_se"], row["exact_variance"])
    sentences = [Sentence(f"answer.variance.{verdict}", values)]
    if setting.scaled is not None:
        scaled = numbers.plus_minus(*logit_std(row, setting.scaled, setting.n_keys))
        sentences.append(Sentence("answer.variance.scaled", {"rule": setting.scaled, "std": scaled}))
    return sentences


def _two(
    frame: pd.DataFrame, what: str, measure: str, setting: Setting, n_keys: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the rows of a measure without and with the headline's scale rule."""
    where = {"ensemble": setting.ensemble, "d_k": setting.d_k, "n_keys": n_keys, "measure": measure}
    plain, scaled = (pick(frame, what, scaling=rule, **where) for rule in (setting.plain, setting.scaled))
    return plain, scaled


def softmax(saturation: pd.DataFrame, setting: Setting) -> list[Sentence]:
    """Say what softmax makes of the logits: the largest weight and the effective keys, with and without the scale."""
    if setting.plain is None or setting.scaled is None:
        return [Sentence("answer.one_rule", {"rule": setting.plain or setting.scaled})]
    what = "softmax_saturation.csv"
    weights, keys = (
        _two(saturation, what, measure, setting, setting.n_keys) for measure in ("max_weight", "effective_keys")
    )
    verdict = compare(*(row[column] for row in weights for column in ("estimate", "se")))
    values = {"n_keys": str(setting.n_keys), "d_k": str(setting.d_k), "rule": setting.scaled}
    for name, row in zip(("weight", "weight_scaled", "keys", "keys_scaled"), (*weights, *keys), strict=True):
        values[name] = numbers.plus_minus(row["estimate"], row["se"])
    return [Sentence(f"answer.softmax.{verdict}", values)]


def gradient(gradients: pd.DataFrame, setting: Setting, measure: str) -> list[Sentence]:
    """Say how a gradient without the scale compares with it, as root mean square and as median, and what both mean."""
    if setting.plain is None or setting.scaled is None:
        return []
    plain, scaled = _two(gradients, "gradient_magnitude.csv", measure, setting, setting.n_keys)
    sentences, verdicts = [], []
    for kind, value, se in (("rms", "estimate", "se"), ("median", "median", "median_se")):
        verdict = compare(plain[value], plain[se], scaled[value], scaled[se])
        verdicts.append(verdict)
        values = {
            "plain": numbers.plus_minus(plain[value], plain[se]),
            "scaled": numbers.plus_minus(scaled[value], scaled[se]),
            "ratio": ratio(plain[value], scaled[value]),
            "rule": setting.scaled,
        }
        sentences.append(Sentence(f"answer.gradient.{measure}.{kind}.{verdict}", values))
    return [*sentences, Sentence(f"answer.gradient.together.{verdicts[0]}_{verdicts[1]}")]


def real_heads(frame: pd.DataFrame) -> list[Sentence]:
    """Say, for each dump of a trained model, how far its logits are from standard deviation 1."""
    if frame.empty:
        return [Sentence("answer.heads.none")]
    sentences = []
    for dump, heads in frame.groupby("dump", sort=False):
        near = (heads["logit_std"] - 1).abs() <= MARGIN
        low, high = heads.loc[heads["logit_std"].idxmin()], heads.loc[heads["logit_std"].idxmax()]
        values = {
            "dump": dump,
            "count": str(len(heads)),
            "near": str(int(near.sum())),
            "margin": numbers.percent(MARGIN, 0),
            "rule": high["scaling"],
            "d_k": Listing(tuple(dict.fromkeys(heads["d_k"])), "comma"),
            "low": numbers.with_error(low["logit_std"], low["logit_std_se"]),
            "high": numbers.with_error(high["logit_std"], high["logit_std_se"]),
            "low_head": Sentence("place.head", {"layer": low["layer"], "head": low["head"]}),
            "high_head": Sentence("place.head", {"layer": high["layer"], "head": high["head"]}),
            "median": numbers.significant(heads["logit_std"].median(), 3),
            "ratio_low": numbers.significant(heads["independence_ratio"].min(), 3),
            "ratio_high": numbers.significant(heads["independence_ratio"].max(), 3),
        }
        verdict = "all" if near.all() else "most" if near.mean() > 0.5 else "few"
        sentences.append(Sentence(f"answer.heads.{verdict}", values))
    return sentences


def selected_laws(variance_laws: pd.DataFrame) -> list[Sentence]:
    """Group the ensembles by the law that was selected for their variance, and name those whose law is rejected."""
    groups: dict[str, list[str]] = {}
    rejected = []
    for name, fits in variance_laws.groupby("ensemble", sort=False):
        chosen = fits[fits["selected"].astype(bool)]
        groups.setdefault("none" if chosen.empty else chosen["law"].iloc[0], []).append(name)
        rejected += [] if chosen.empty or chosen["p_value"].iloc[0] >= laws.REJECTED else [name]
    if rejected:
        groups["rejected"] = rejected
    return [Sentence(f"follows.selected.{law}", {"names": ", ".join(names)}) for law, names in groups.items()]


def spread(moments: pd.DataFrame, setting: Setting) -> list[Sentence]:
    """Say between which standard deviations the scale rule leaves the logits of the ensembles, at the largest width."""
    rows = simulated(moments).dropna(subset=["variance"])
    if setting.scaled is None or rows.empty:
        return []
    d_k = int(rows["d_k"].max())
    rows = rows[rows["d_k"] == d_k].sort_values("variance", kind="stable").to_dict("records")
    stds = [logit_std(row, setting.scaled, setting.n_keys) for row in rows]
    values = {
        "d_k": str(d_k),
        "rule": setting.scaled,
        "low": numbers.with_error(*stds[0]),
        "low_ensemble": rows[0]["ensemble"],
        "high": numbers.with_error(*stds[-1]),
        "high_ensemble": rows[-1]["ensemble"],
    }
    return [Sentence(f"follows.spread.{'one' if all(abs(std - 1) <= MARGIN for std, _ in stds) else 'many'}", values)]


def shape(moments: pd.DataFrame, setting: Setting) -> list[Sentence]:
    """Say how far the score of the headline's ensemble is from a normal one, at the headline's width."""
    row = pick(moments, "moments.csv", ensemble=setting.ensemble, d_k=setting.d_k)
    if missing(row["excess_kurtosis"]):
        return []
    verdict = agreement(row["excess_kurtosis"], row["excess_kurtosis_se"], row["exact_excess_kurtosis"])
    values = {
        "ensemble": setting.ensemble,
        "d_k": str(setting.d_k),
        "kurtosis": numbers.plus_minus(row["excess_kurtosis"], row["excess_kurtosis_se"]),
        "exact": exact(row["exact_excess_kurtosis"]),
    }
    return [Sentence(f"follows.shape.{verdict}", values)]


def keys_matter(saturation: pd.DataFrame, setting: Setting) -> list[Sentence]:
    """Say how the largest weight and the effective keys change from the fewest keys to the most."""
    here = saturation[(saturation["ensemble"] == setting.ensemble) & (saturation["d_k"] == setting.d_k)]
    few, many = int(here["n_keys"].min()), int(here["n_keys"].max())
    if few == many or setting.plain is None or setting.scaled is None:
        return []
    values = {"few": str(few), "many": str(many), "rule": setting.scaled, "d_k": str(setting.d_k)}
    weights: list[Any] = []
    for name, n_keys in (("few", few), ("many", many)):
        weight, _ = _two(saturation, "softmax_saturation.csv", "max_weight", setting, n_keys)
        _, keys = _two(saturation, "softmax_saturation.csv", "effective_keys", setting, n_keys)
        values |= {
            f"weight_{name}": numbers.with_error(weight["estimate"], weight["se"]),
            f"share_{name}": numbers.percent(keys["estimate"] / n_keys, 0),
        }
        weights = [weight, *weights]
    verdict = compare(*(row[column] for row in weights for column in ("estimate", "se")))
    return [Sentence(f"follows.keys.{verdict}", values)]


def gradient_by_keys(gradients: pd.DataFrame, setting: Setting) -> list[Sentence]:
    """Say how the gradient of the logits changes with the number of keys under the headline's scale rule."""
    where = {"ensemble": setting.ensemble, "d_k": setting.d_k, "measure": "grad_logits", "scaling": setting.scaled}
    keys = gradients.loc[gradients["ensemble"] == setting.ensemble, "n_keys"]
    few, many = int(keys.min()), int(keys.max())
    if few == many or setting.scaled is None:
        return []
    rows = [pick(gradients, "gradient_magnitude.csv", n_keys=n_keys, **where) for n_keys in (many, few)]
    verdict = compare(*(row[column] for row in rows for column in ("estimate", "se")))
    values = {"few": str(few), "many": str(many), "rule": setting.scaled, "d_k": str(setting.d_k)}
    for name, row in zip(("value_many", "value_few"), rows, strict=True):
        values[name] = numbers.with_error(row["estimate"], row["se"])
    return [Sentence(f"follows.gradient.{verdict}", values)]


def tails(moments: pd.DataFrame) -> list[Sentence]:
    """Say how many ensembles have a nearly normal score at the largest width, and which is the farthest from it."""
    rows = simulated(moments).dropna(subset=["excess_kurtosis"])
    if rows.empty:
        return []
    rows = rows[rows["d_k"] == rows["d_k"].max()]
    size = rows["excess_kurtosis"].abs()
    top = rows.loc[size.idxmax()]
    values = {
        "d_k": str(top["d_k"]),
        "near": str(int((size <= MARGIN).sum())),
        "count": str(len(rows)),
        "margin": f"{MARGIN:g}",
        "top": numbers.with_error(top["excess_kurtosis"], top["excess_kurtosis_se"]),
        "top_ensemble": top["ensemble"],
    }
    return [Sentence(f"follows.tails.{'all' if (size <= MARGIN).all() else 'some'}", values)]


def sharpened(heads: pd.DataFrame) -> list[Sentence]:
    """Say what removing the model's scale would do to the entropy of the real heads."""
    if heads.empty:
        return []
    lower = int((heads["unscaled_entropy"] < heads["entropy"]).sum())
    values = {
        "lower": str(lower),
        "count": str(len(heads)),
        "with_scale": numbers.significant(heads["entropy"].mean(), 3),
        "without": numbers.significant(heads["unscaled_entropy"].mean(), 3),
        "uniform": Listing(
            tuple(numbers.significant(math.log(n), 3) for n in dict.fromkeys(heads["n_tokens"])), "comma"
        ),
    }
    return [Sentence("follows.sharpened", values)]


def follows(frames: dict[str, pd.DataFrame], setting: Setting) -> dict[str, list[Sentence]]:
    """Return what follows from each figure, by figure id; a figure that is not here says it by its caption alone."""
    moments = frames["moments"]
    return {
        "variance-law": spread(moments, setting),
        "exponents": selected_laws(frames["variance_laws"]),
        "score-density": shape(moments, setting),
        "saturation": keys_matter(frames["softmax_saturation"], setting),
        "gradients": gradient_by_keys(frames["gradient_magnitude"], setting),
        "real-heads": sharpened(frames["real_heads"]),
        "kurtosis": tails(moments),
        "calibration": calibrating.moments(moments),
    }


def headline(frames: dict[str, pd.DataFrame], setting: Setting) -> dict[str, list[Sentence]]:
    """Return the answer by topic: variance, softmax, gradients, real heads, and whether its errors can be trusted."""
    moments, fits, gradients = frames["moments"], frames["variance_laws"], frames["gradient_magnitude"]
    return {
        "law": [*exponent(fits, setting), *intervals(fits)],
        "variance": variance(moments, setting),
        "softmax": softmax(frames["softmax_saturation"], setting),
        "gradient_logits": gradient(gradients, setting, "grad_logits"),
        "gradient_query": gradient(gradients, setting, "grad_query"),
        "vanishing": vanishing.sentences(frames, setting),
        "heads": real_heads(frames["real_heads"]),
        "trust": [*calibrating.moments(moments), *calibrating.theory(frames["softmax_saturation"], gradients)],
    }
