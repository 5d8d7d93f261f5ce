"""Questions that people ask about the factor, folded below the chapters that they belong to."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from sqrtdk.report import longer_runs
from sqrtdk.report.article.points import Point, near_one
from sqrtdk.report.comparing import compare
from sqrtdk.report.facts import Facts
from sqrtdk.report.key_numbers import HEAD
from sqrtdk.report.macro_names import letters
from sqrtdk.report.setting import WANTED_D_K, Setting
from sqrtdk.report.tables.cells import missing
from sqrtdk.report.trained import MEASURES, TEXT, both, held, values, verdict
from sqrtdk.results.grid import nearest
from sqrtdk.results.picking import find, pick
from sqrtdk.rows.softmax import SATURATED_WEIGHT
from sqrtdk.sampling import one_product
from sqrtdk.studies.rounding import RULES
from sqrtdk.variants.scalings import SCALINGS
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Sentence

Frames = Mapping[str, pd.DataFrame]
CONTEXT = 131_072
"""The keys of a long context that people ask about."""
SMALL, TOLD = 2, 1.6
"""The widths of the product of a small test, and what its variance came out as."""
FROZEN = 0.5
"""A head counts as saturated where more than this share of its queries has one weight above SATURATED_WEIGHT."""

CHAPTERS = {
    "scores": ("component", "low_rank", "small_test"),
    "attention": ("keys", "precision"),
    "factor": ("width", "twice", "fold"),
    "training": ("language", "rules"),
    "start": ("layernorm", "qk_norm"),
    "heads": ("heads",),
}
"""The questions of each chapter, in their order."""
EVIDENCE = {
    "component": ("fig-variance-law", "tab-families"),
    "low_rank": ("tab-families",),
    "small_test": ("methods-sampling", "tab-ensembles"),
    "keys": ("fig-saturation", "fig-freezing", "fig-phase-map"),
    "precision": ("fig-rounding", "tab-rounding"),
    "width": ("tab-mistakes", "tab-training-shipped"),
    "twice": ("tab-mistakes", "methods-training"),
    "fold": ("tab-initialisation", "tab-start-rate", "methods-training"),
    "language": ("tab-other-factors", "tab-training-shipped"),
    "rules": ("tab-other-factors", "fig-training-curves"),
    "layernorm": ("tab-normalisation", "fig-initialisation"),
    "qk_norm": ("tab-normalisation", "tab-mistakes", "tab-training-shipped"),
    "heads": ("tab-real-heads", "tab-audit"),
}
"""What each answer rests on: anchors of figures, tables and methods."""
_TRAINED = ("hurts", "helps", "same", "undecided")
VARIANTS = {
    "width.training": _TRAINED,
    "twice.training": _TRAINED,
    "language.text": _TRAINED,
    "fold.start": ("same", "other"),
    "layernorm.inputs": ("needed", "redundant"),
    "precision.error": ("larger", "level", "smaller"),
    "keys.weight": ("larger", "level", "smaller"),
    "heads.saturated": ("none", "few", "many"),
}
"""Sentences that the numbers choose, and what they choose from."""


class Questions:
    """The answers of a run; `longer` are the tables of the longer training run that ships with the project."""

    def __init__(self, frames: Frames, longer: Frames, at: Setting, facts: Facts):
        self.frames, self.longer, self.at, self.facts = frames, longer, at, facts

    def of(self, chapter: str) -> tuple[Point, ...]:
        """Return the questions of a chapter that this run can answer."""
        found = ((name, getattr(self, name)()) for name in CHAPTERS.get(chapter, ()))
        return tuple(Point(name, sentences, EVIDENCE[name]) for name, sentences in found if sentences)

    def quote(self, key: str, more: dict[str, Any] | None = None, **names: str) -> Sentence | None:
        """Return a sentence that quotes numbers by their names, at the width of the question; None without them."""
        if not self.facts.all(*names.values()):
            return None
        return _said(
            key, {"d_k": str(self.at.d_k), "n_keys": str(self.at.n_keys)} | (more or {}) | self.facts.quote(names)
        )

    def component(self) -> tuple[Sentence, ...]:
        """Say whose variance is 1."""
        return (_said("component.answer"), _said("component.size"), _said("component.score"))

    def low_rank(self) -> tuple[Sentence, ...]:
        """Say what low rank means."""
        return (_said("low_rank.answer"), _said("low_rank.effect"))

    def small_test(self) -> tuple[Sentence, ...]:
        """Make a small test: how far one product scatters, what the usual variance has for its mean, what it takes."""
        scatter = {
            "small": str(SMALL),
            "told": f"{TOLD:g}",
            "error": numbers.share(one_product.relative_error(SMALL, SMALL)),
            "below": numbers.share(one_product.chance_below(TOLD)),
            "mean": f"{one_product.centred_mean(SMALL, SMALL):g}",
        }
        row = pick(self.frames["moments"], "moments.csv", ensemble=self.at.ensemble, d_k=self.at.d_k)
        told = [_said(f"small_test.{part}", scatter) for part in ("scatter", "below", "centred")]
        if not missing(row["relative_se"]):
            reached = {"blocks": numbers.count(row["n_blocks"]), "reached": numbers.share(row["relative_se"])}
            told.append(_said("small_test.better", reached))
        return tuple(told)

    def keys(self) -> tuple[Sentence, ...]:
        """Many keys: the largest weight without the factor, where one key takes half, and how the factor dilutes."""
        at, frame = self.at, self.frames["softmax_saturation"]
        here = frame[(frame["ensemble"] == at.ensemble) & (frame["d_k"] == at.d_k)]
        few, many = int(here["n_keys"].min()), int(here["n_keys"].max())
        frozen = self._freezing()
        if few == many or at.plain is None or at.scaled is None:
            return frozen
        weights = [find(here, n_keys=n, measure="max_weight", scaling=at.plain) for n in (many, few)]
        spread = [find(here, n_keys=n, measure="effective_keys", scaling=at.scaled) for n in (many, few)]
        told: dict[str, Any] = {"few": numbers.count(few), "many": numbers.count(many), "d_k": str(at.d_k)}
        for name, rows in (("weight", weights), ("keys", spread)):
            column = "theory" if all(row is not None and not missing(row["theory"]) for row in rows) else "estimate"
            spelled = numbers.apart([math.nan if row is None else row[column] for row in rows])
            told |= dict(zip((f"{name}_many", f"{name}_few"), spelled, strict=True))
        found = compare(*(row[column] for row in weights for column in ("estimate", "se")))
        law = {"context": numbers.count(CONTEXT), "spread": numbers.significant(CONTEXT / math.e, 2)}
        spread_out = (_said("keys.spread", told), _said("keys.law", law), _said("keys.log"))
        return (_said(f"keys.weight.{found}", told), *frozen, *spread_out)

    def _freezing(self) -> tuple[Sentence, ...]:
        frontier = self.frames["freezing_frontier"].dropna(subset=["half_d_k"]).sort_values("n_keys")
        if len(frontier) < 2 or not frontier["n_keys"].min() <= CONTEXT <= frontier["n_keys"].max():
            return ()
        # Between the numbers of keys that were simulated it grows as their logarithm.
        half = np.interp(math.log(CONTEXT), np.log(frontier["n_keys"]), frontier["half_d_k"])
        return (_said("keys.freezing", {"context": numbers.count(CONTEXT), "half": numbers.significant(half, 2)}),)

    def precision(self) -> tuple[Sentence, ...]:
        """Few bits: what rounding of the logits does to the weights, and that overflow is cured by another step."""
        frame = self.frames["rounding"]
        d_k = nearest(frame["d_k"], WANTED_D_K)
        here = frame[(frame["d_k"] == d_k) & (frame["format"] == "bfloat16")]
        rows = [pick(here, "rounding.csv", rounded="logits", measure="total_variation", scaling=rule) for rule in RULES]
        found = compare(*(row[column] for row in rows for column in ("estimate", "se")))
        plain, scaled = (f"RoundingChange{letters(rule)}" for rule in RULES)
        error = self.quote(f"precision.error.{found}", plain=plain, scaled=scaled)
        return _told(error, _said("precision.overflow"))

    def width(self) -> tuple[Sentence, ...]:
        """Whose width: what others in its place leave, and whether training minds."""
        heads = f"{SCALINGS['d_model_for_d_k'].parameters[0].default:g}"
        return _told(
            _said("width.head"),
            _said("width.other"),
            self.quote("width.model", {"heads": heads}, std=f"{letters('d_model_for_d_k')}Std"),
            self.quote("width.heads", std=f"{letters('heads_for_d_k')}Std"),
            trained(self.longer["training_verdicts"], "width.training", "d_v_for_d_k(ratio=2)"),
        )

    def twice(self) -> tuple[Sentence, ...]:
        """Twice: split over q and k the factor is the same, on top of that it is 1/d_k."""
        return _told(
            _said("twice.split"),
            _said("twice.again"),
            self.quote("twice.keys", keys=f"{letters('applied_twice')}Keys"),
            trained(self.frames["training_verdicts"], "twice.training", "1/d_k", ("same_rate",)),
        )

    def fold(self) -> tuple[Sentence, ...]:
        """Folded into the weights: the start is the same, the learning rates are not; which of these does the work."""
        start = "same" if near_one(self.facts["WeightsTFiveStd"].value) else "other"
        return _told(
            self.quote(f"fold.start.{start}", std="WeightsTFiveStd"),
            _said("fold.rates"),
            _said("fold.power"),
            *longer_runs.halves(self.longer["start_rate"], "none")[1:],
            _said("fold.limits"),
        )

    def language(self) -> tuple[Sentence, ...]:
        """Say whether it matters for a language model."""
        rows = held(self.longer["training_verdicts"], "none", ("loss",), task=TEXT)
        text = None
        if rows:
            spelled = {"costs": "estimate", "low": "low", "high": "high"}
            told = {word: numbers.significant(rows["loss"][column], 2) for word, column in spelled.items()}
            text = _said(f"language.text.{verdict(rows)}", told | both(rows["loss"]))
        return _told(text, _said("language.answer"), _said("language.known"), _said("language.use"))

    def rules(self) -> tuple[Sentence, ...]:
        """Say what 1/d_k does in each task, and how little tells apart what has solved its task."""
        return _told(
            longer_runs.verdicts(self.longer["training_verdicts"], "longer.linear", "1/d_k"),
            longer_runs.rounding(self.longer["training_summary"]),
        )

    def layernorm(self) -> tuple[Sentence, ...]:
        """LayerNorm of the inputs, without the factor; of queries and keys the chapter speaks."""
        name = "HeadsPlainUnscaledStd"
        needed = "redundant" if near_one(self.facts[name].value) else "needed"
        return _told(self.quote(f"layernorm.inputs.{needed}", std=name))

    def qk_norm(self) -> tuple[Sentence, ...]:
        """QK-norm: a cosine needs a multiplier that grows as √d_k and no 1/√d_k."""
        return _told(
            self.quote("qk_norm.cosine", std="HeadsLTwoOneStd"),
            _said("qk_norm.multiplier"),
            self.quote("qk_norm.left", keys=f"{letters('qk_norm_and_root')}Keys"),
            _said("qk_norm.use"),
            longer_runs.verdicts(self.longer["training_verdicts"], "longer.cosine", "qk_norm"),
        )

    def heads(self) -> tuple[Sentence, ...]:
        """Trained heads: how many are saturated, and what they would be without their factor."""
        frame, audit = self.frames["real_heads"], self.frames["audit"]
        if frame.empty:
            return ()
        told = []
        if len(audit):
            known = audit.merge(frame[["dump", *HEAD]], on=["dump", "layer", "head"], validate="one_to_one")
            shares = known.groupby(HEAD)["saturated_share"].max()
            saturated = int((shares > FROZEN).sum())
            level = "none" if saturated == 0 else "many" if saturated > FROZEN * len(shares) else "few"
            named = {"saturated": str(saturated), "heads": str(len(shares)), "weight": f"{SATURATED_WEIGHT:g}"}
            told.append(_said(f"heads.saturated.{level}", named))
            ends = {"median": audit["logit_max"].median(), "largest": audit["logit_max"].max()}
            told.append(_said("heads.logit", {name: numbers.significant(value, 2) for name, value in ends.items()}))
        columns = ("entropy", "unscaled_entropy")
        spelled = numbers.apart([frame[column].mean() for column in columns])
        entropy = dict(zip(("entropy", "unscaled"), spelled, strict=True))
        uniform = numbers.significant(frame["uniform_entropy"].mean(), 2)
        return _told(
            *told,
            self.quote("heads.weight", median="MedianHeadWeight"),
            _said("heads.without", entropy),
            _said("heads.uniform", {"uniform": uniform}),
        )


def _said(key: str, told: dict[str, Any] | None = None) -> Sentence:
    return Sentence(f"article.questions.{key}", told or {})


def _told(*sentences: Sentence | None) -> tuple[Sentence, ...]:
    return tuple(sentence for sentence in sentences if sentence is not None)


def trained(verdicts: pd.DataFrame, key: str, scaling: str, comparisons: tuple[str, ...] = MEASURES) -> Sentence | None:
    """Return the sentence on a rule against 1/√d_k at the width nearest to 64; None where it was not trained."""
    rows = held(verdicts, scaling, comparisons)
    return _said(f"{key}.{verdict(rows)}", values(rows)) if rows else None
