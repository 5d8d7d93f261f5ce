"""Questions that people ask about the factor, answered by the tables and figures of the run."""

import math
from typing import Any

import pandas as pd

from sqrtdk.report.article.points import Point, error, extremes, models, near_one, percentage
from sqrtdk.report.comparing import compare
from sqrtdk.report.setting import WANTED_D_K, Setting
from sqrtdk.report.tables.cells import missing
from sqrtdk.report.trained import MEASURES, halves, held, values, verdict
from sqrtdk.report.training_answers import MUP
from sqrtdk.results.grid import nearest
from sqrtdk.results.picking import find, pick
from sqrtdk.rows.softmax import SATURATED_WEIGHT
from sqrtdk.sampling import one_product
from sqrtdk.studies.rounding import RULES
from sqrtdk.variants.scalings import SCALINGS
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Sentence

SMALL, TOLD = 2, 1.6
"""The widths of the product of the fourth question, and what its variance came out as."""
LARGE_ROWS = 512
UNIFORM = 0.9
"""Attention counts as almost uniform from this share of effective keys on."""
FROZEN = 0.5
"""A head counts as saturated where more than this share of its rows has one weight above SATURATED_WEIGHT."""
BASE = 512
"""Width of the model of the layers with initial weights."""

VARIANTS = {
    "root.start": ("uniform", "spread"),
    "root.halves": ("start", "rate", "either", "mixed"),
    "root.training": ("hurts", "helps", "same", "undecided"),
    "width.training": ("hurts", "helps", "same", "undecided"),
    "twice.training": ("hurts", "helps", "same", "undecided"),
    "fold.start": ("same", "other"),
    "fold.halves": ("start", "rate", "either", "mixed"),
    "layernorm.inputs": ("needed", "redundant"),
    "layernorm.heads": ("needed", "redundant"),
    "qk_norm.training": ("hurts", "helps", "same", "undecided"),
    "precision.error": ("larger", "level", "smaller"),
    "keys.weight": ("larger", "level", "smaller"),
    "heads.saturated": ("none", "few", "many"),
}
"""Sentences that the numbers choose, and what they choose from."""


def questions(frames: dict[str, pd.DataFrame], shipped: dict[str, pd.DataFrame], setting: Setting) -> list[Point]:
    """Return the questions with their answers; `shipped` are the tables of the longer training run."""
    found = [
        Point("root", root(frames, shipped), ("tab-scale-rules", "fig-planted-key", "fig-training-curves")),
        Point("width", width(frames, shipped), ("tab-mistakes", "tab-training-shipped")),
        Point("twice", twice(frames), ("tab-mistakes", "methods-training")),
        Point("small_test", small_test(frames, setting), ("methods-sampling", "tab-ensembles")),
        Point("fold", fold(frames, shipped), ("tab-initialisation", "tab-start-rate", "methods-training")),
        Point("layernorm", layernorm(frames), ("tab-normalisation", "fig-initialisation")),
        Point("qk_norm", qk_norm(frames, shipped), ("tab-normalisation", "tab-mistakes", "tab-training-shipped")),
        Point("precision", precision(frames), ("fig-rounding", "tab-rounding")),
        Point("keys", keys(frames, setting), ("fig-saturation", "fig-freezing", "fig-phase-map")),
        Point("heads", heads(frames), ("tab-real-heads", "tab-audit")),
    ]
    return [point for point in found if point.sentences]


def _said(key: str, values: dict[str, Any] | None = None) -> Sentence:
    return Sentence(f"article.questions.{key}", values or {})


def _told(*sentences: Sentence | None) -> tuple[Sentence, ...]:
    return tuple(sentence for sentence in sentences if sentence is not None)


def rule_values(frame: pd.DataFrame, **rules: str) -> dict[str, Any]:
    """Spell the spread of the logits and the effective keys under scale rules, at the width nearest to 64."""
    here, values = at_width(frame)
    for name, rule in rules.items():
        for measure, key in (("logit_std", f"{name}_std"), ("effective_keys", f"{name}_keys")):
            values[key] = error(pick(here, "alternatives.csv", variant=rule, measure=measure))
    return values


def at_width(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the rows of alternatives.csv at the width and number of keys nearest to 64, and how these are spelled."""
    d_k, n_keys = nearest(frame["d_k"], WANTED_D_K), nearest(frame["n_keys"], WANTED_D_K)
    here = frame[(frame["d_k"] == d_k) & (frame["n_keys"] == n_keys)]
    return here, {"d_k": str(d_k), "n_keys": str(n_keys)}


def trained(verdicts: pd.DataFrame, key: str, scaling: str, comparisons: tuple[str, ...] = MEASURES) -> Sentence | None:
    """Return the sentence on a rule against 1/√d_k at the width nearest to 64; None where it was not trained."""
    rows = held(verdicts, scaling, comparisons)
    return Sentence(f"{key}.{verdict(rows)}", values(rows)) if rows else None


def root(frames: dict[str, pd.DataFrame], shipped: dict[str, pd.DataFrame]) -> tuple[Sentence, ...]:
    """Why the root: what 1/d_k does before training, how far one key stands out, and what training says."""
    values = rule_values(frames["alternatives"], root="1/sqrt(d_k)", mup=MUP)
    here, _ = at_width(frames["alternatives"])
    share = pick(here, "alternatives.csv", variant=MUP, measure="effective_keys")["estimate"]
    start = "uniform" if share >= UNIFORM * int(values["n_keys"]) else "spread"
    return _told(
        _said(f"root.start.{start}", values),
        _capacity(frames["planted_capacity"]),
        trained(frames["training_verdicts"], "article.questions.root.training", MUP),
        halves(shipped["start_rate"], "article.questions.root.halves", "1/sqrt(d_k)"),
    )


def _capacity(frame: pd.DataFrame) -> Sentence | None:
    frame = frame[frame["measure"] == "weight"]
    frame = frame[frame["rho"] == frame["rho"].max()]
    here = frame[frame["d_k"] == nearest(frame["d_k"], WANTED_D_K)] if len(frame) else frame
    rows = [find(here, scaling=rule) for rule in ("1/sqrt(d_k)", MUP)]
    if any(row is None or missing(row["capacity"]) for row in rows):
        return None
    spelled = {name: numbers.significant(row["capacity"], 3) for name, row in zip(("root", "mup"), rows, strict=True)}
    return _said("root.capacity", spelled | {"d_k": str(rows[0]["d_k"]), "cosine": f"{rows[0]['rho']:g}"})


def width(frames: dict[str, pd.DataFrame], shipped: dict[str, pd.DataFrame]) -> tuple[Sentence, ...]:
    """Whose width: what that of the model or the number of heads in its place leaves, and whether training minds."""
    values = rule_values(frames["alternatives"], model="d_model_for_d_k", heads="heads_for_d_k")
    values["heads"] = f"{SCALINGS['d_model_for_d_k'].parameters[0].default:g}"
    return _told(
        _said("width.head"),
        _said("width.mistakes", values),
        trained(shipped["training_verdicts"], "article.questions.width.training", "d_v_for_d_k(ratio=2)"),
    )


def twice(frames: dict[str, pd.DataFrame]) -> tuple[Sentence, ...]:
    """Twice: split over q and k the factor is the same, on top of that it is 1/d_k."""
    values = rule_values(frames["alternatives"], twice="applied_twice")
    values["quarter"] = numbers.significant(int(values["d_k"]) ** -0.25, 3)
    return _told(
        _said("twice.split", values),
        _said("twice.again", values),
        trained(frames["training_verdicts"], "article.questions.twice.training", MUP, ("same_rate",)),
    )


def small_test(frames: dict[str, pd.DataFrame], setting: Setting) -> tuple[Sentence, ...]:
    """Make a small test: how far one product scatters, what the usual variance has for its mean, and what it takes."""
    values = {
        "small": str(SMALL),
        "told": f"{TOLD:g}",
        "error": percentage(one_product.relative_error(SMALL, SMALL), 3),
        "below": percentage(one_product.chance_below(TOLD)),
        "mean": f"{one_product.centred_mean(SMALL, SMALL):g}",
    }
    large = {"rows": str(LARGE_ROWS), "d_k": str(WANTED_D_K)}
    large["error"] = percentage(one_product.relative_error(LARGE_ROWS, WANTED_D_K))
    row = pick(frames["moments"], "moments.csv", ensemble=setting.ensemble, d_k=setting.d_k)
    if missing(row["relative_se"]):
        return _told(_said("small_test.scatter", values), _said("small_test.centred", values))
    reached = {"blocks": numbers.count(row["n_blocks"]), "reached": percentage(row["relative_se"])}
    reached |= {"ensemble": setting.ensemble, "at": str(setting.d_k)}
    return _told(
        _said("small_test.scatter", values),
        _said("small_test.centred", values),
        _said("small_test.better", large | reached),
    )


def fold(frames: dict[str, pd.DataFrame], shipped: dict[str, pd.DataFrame]) -> tuple[Sentence, ...]:
    """Folded into the weights: the start is the same, the learning rates are not; and which of these does the work."""
    row = pick(frames["initialisation"], "initialisation.csv", scheme="t5", quantity="logit_std")
    values = {"d_k": str(WANTED_D_K), "std": numbers.with_error(row["estimate"], row["se"])}
    values |= {"weights": numbers.significant(WANTED_D_K**-0.25, 3), "sgd": f"{math.sqrt(WANTED_D_K):g}"}
    values |= {"adam": numbers.significant(WANTED_D_K**0.25, 3)}
    start = "same" if near_one(row["estimate"]) else "other"
    return _told(
        _said(f"fold.start.{start}", values),
        _said("fold.rates", values),
        halves(shipped["start_rate"], "article.questions.fold.halves", "none"),
        _said("fold.limits"),
    )


def normalised(
    frames: dict[str, pd.DataFrame], scheme: str, d_model: int = BASE, group: str = "heads"
) -> dict[str, Any]:
    """Return the row of the standard deviation of the logits that a normalisation leaves."""
    where = {"group": group, "scheme": scheme, "d_model": d_model, "quantity": "logit_std"}
    return pick(frames["initialisation"], "initialisation.csv", **where)


def layernorm(frames: dict[str, pd.DataFrame]) -> tuple[Sentence, ...]:
    """LayerNorm: of the inputs, and of queries and keys; without the factor logits are as large as the width makes."""
    inputs, with_factor = normalised(frames, "plain_unscaled"), normalised(frames, "plain")
    inside = normalised(frames, "rmsnorm_unscaled")
    values = {"d_k": str(inputs["d_k"]), "unscaled": error(inputs), "scaled": error(with_factor)}
    return _told(
        _said(f"layernorm.inputs.{'redundant' if near_one(inputs['estimate']) else 'needed'}", values),
        _said(
            f"layernorm.heads.{'redundant' if near_one(inside['estimate']) else 'needed'}",
            {"unscaled": error(inside), "scaled": error(normalised(frames, "rmsnorm")), "d_k": str(inside["d_k"])},
        ),
    )


def qk_norm(frames: dict[str, pd.DataFrame], shipped: dict[str, pd.DataFrame]) -> tuple[Sentence, ...]:
    """QK-norm: a cosine needs a multiplier that grows as √d_k and no 1/√d_k."""
    wide = normalised(frames, "l2_10", d_model=2 * BASE)
    values = {"d_k": str(normalised(frames, "l2_1")["d_k"]), "wide": str(wide["d_k"]), "ten_wide": error(wide)}
    for name, scheme in (("bare", "l2_1"), ("ten", "l2_10"), ("root", "l2_sqrt")):
        values[name] = error(normalised(frames, scheme))
    left = rule_values(frames["alternatives"], left="qk_norm_and_root")
    return _told(
        _said("qk_norm.cosine", values),
        _said("qk_norm.left", left),
        trained(shipped["training_verdicts"], "article.questions.qk_norm.training", "qk_norm"),
    )


def precision(frames: dict[str, pd.DataFrame]) -> tuple[Sentence, ...]:
    """Few bits: what rounding of the logits does to the weights, and that overflow is cured by another step."""
    frame = frames["rounding"]
    d_k = nearest(frame["d_k"], WANTED_D_K)
    here = frame[(frame["d_k"] == d_k) & (frame["format"] == "bfloat16")]
    rows = [pick(here, "rounding.csv", rounded="logits", measure="total_variation", scaling=rule) for rule in RULES]
    values = {"d_k": str(d_k), "n_keys": str(rows[0]["n_keys"]), "plain": error(rows[0]), "scaled": error(rows[1])}
    if rows[1]["estimate"] > 0:
        values["ratio"] = numbers.significant(rows[0]["estimate"] / rows[1]["estimate"], 2)
    found = compare(*(row[column] for row in rows for column in ("estimate", "se")))
    overflow = [
        find(frame, d_k=d_k, format="float16", rounded="naive_exp", measure="undefined_rows", scaling=rule)
        for rule in RULES
    ]
    told = [_said(f"precision.error.{found}", values)]
    if all(overflow):
        shares = [row["estimate"] if missing(row["exact"]) else row["exact"] for row in overflow]
        told.append(_said("precision.overflow", dict(zip(("plain", "scaled"), map(percentage, shares), strict=True))))
    return tuple(told)


def keys(frames: dict[str, pd.DataFrame], setting: Setting) -> tuple[Sentence, ...]:
    """Many keys: the largest weight without the factor, where rows freeze, and how the factor dilutes attention."""
    frame = frames["softmax_saturation"]
    here = frame[(frame["ensemble"] == setting.ensemble) & (frame["d_k"] == setting.d_k)]
    few, many = int(here["n_keys"].min()), int(here["n_keys"].max())
    if few == many or setting.plain is None or setting.scaled is None:
        return _told(_freezing(frames["freezing_frontier"]))
    weights = [find(here, n_keys=n, measure="max_weight", scaling=setting.plain) for n in (many, few)]
    spread = [find(here, n_keys=n, measure="effective_keys", scaling=setting.scaled) for n in (many, few)]
    found = compare(*(row[column] for row in weights for column in ("estimate", "se")))
    values: dict[str, Any] = {"few": str(few), "many": str(many), "d_k": str(setting.d_k), "rule": setting.scaled}
    for name, rows in (("weight", weights), ("keys", spread)):
        values |= {f"{name}_many": error(rows[0]), f"{name}_few": error(rows[1])}
    return _told(
        _said(f"keys.weight.{found}", values),
        _freezing(frames["freezing_frontier"]),
        _said("keys.spread", values),
    )


def _freezing(frontier: pd.DataFrame) -> Sentence | None:
    frontier = frontier.dropna(subset=["half_d_k"])
    if len(frontier) < 2:
        return None
    near, most = find(frontier, n_keys=nearest(frontier["n_keys"], WANTED_D_K)), frontier.iloc[-1]
    values = {"n_keys": numbers.count(near["n_keys"]), "half": numbers.significant(near["half_d_k"], 3)}
    values |= {"most": numbers.count(most["n_keys"]), "half_most": numbers.significant(most["half_d_k"], 3)}
    return _said("keys.freezing", values)


def heads(frames: dict[str, pd.DataFrame]) -> tuple[Sentence, ...]:
    """Trained heads: how many are saturated, and what they would be without their factor."""
    frame, audit = frames["real_heads"], frames["audit"]
    if frame.empty:
        return ()
    told = []
    if len(audit):
        saturated = int((audit["saturated_share"] > FROZEN).sum())
        level = "none" if saturated == 0 else "many" if saturated > FROZEN * len(audit) else "few"
        values: dict[str, Any] = {"saturated": str(saturated), "count": str(len(audit))}
        values["weight"] = f"{SATURATED_WEIGHT:g}"
        values |= {"median": numbers.significant(frame["max_weight"].median(), 2), "models": models(audit)}
        told.append(_said(f"heads.saturated.{level}", values))
    values = {"median": numbers.significant(frame["logit_std"].median(), 3), "count": str(len(frame))}
    values |= extremes(frame, "logit_std")
    values |= {
        "entropy": numbers.significant(frame["entropy"].mean(), 3),
        "unscaled": numbers.significant(frame["unscaled_entropy"].mean(), 3),
        "uniform": numbers.significant(frame["n_tokens"].map(math.log).mean(), 3),
    }
    return (*told, _said("heads.spread", values), _said("heads.without", values))
