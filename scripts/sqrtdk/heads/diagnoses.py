"""Diagnoses: what is wrong with a head, with what evidence, and all explanations that give the number.

A diagnosis is one function from a case to a finding or None, registered in `DIAGNOSES`. A wrong factor is explained by
every entry of `EXPLANATIONS` that gives it; a new one is one entry.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from sqrtdk.heads.conventions import Convention

BUG, NOTE = "bug", "note"
STAGES = ("init", "trained", "unknown")
SAME = 2e-3
"""Two factors that differ by less are one: scales are written with three digits."""
ERRORS = 5.0
"""How many standard errors a measured number has to be off."""
TRUSTED_R2 = 0.9
"""Given scores of which q·k explains less say nothing about the factor."""
UNEXPLAINED = 2.0
"""How many times the unexplained part of given scores a measured factor may be off."""
WIDE_SPREAD, LARGE_SPREAD = 1.5, 2.5
"""Scores so many times wider than those of unit variance are noted at the start, then a bug: He gives 2 and trains."""
CONSTANT_NORM = 0.01
"""Norms that vary less than this belong to normalised vectors."""
UNEVEN_NORM = 0.35
COLLAPSED = 0.1
"""Entropy over its maximum below which a head counts as collapsed."""
SHARP = 0.25
"""The same for a head that is very sharp."""
SINGLE_SHARE = 0.25
"""A collapsed head is a single one where no more of its layer's other heads are collapsed."""
DEAD = 0.01
"""Within-row standard deviation of the logits below which attention is uniform for all purposes."""
ROUNDED = 128.0
"""From here on bfloat16 rounds a logit by up to 0.5."""
GROWTH = 1.5
CARRIED_START, CARRIED = 2.0, 1.5
"""Unscaled scores of no more spread than this at the start, or than this times d_k^(1/4), halfway to an unscaled head,
later, could come from arrays that carry the scale."""


COMPARED = ("entropy collapse", "very sharp", "precision at risk", "logit growth")
"""Findings whose factor compares with other heads, dumps or a limit, and is none that a scale should be divided by."""


@dataclass(frozen=True)
class Options:
    """What was declared: a scale is (d_k, n_keys) -> number, or None; sizes are numbers or None."""

    convention: Convention
    scale: Callable[[int, int], float] | None = None
    stage: str = "unknown"
    d_model: int | None = None
    num_heads: int | None = None
    d_v: int | None = None


@dataclass(frozen=True)
class Finding:
    """One finding on one head. factor: how many times the number is what it should be, None where there is no such.

    explanations: names of all that give the number. evidence: what was measured. advice: what to do.
    """

    kind: str
    level: str
    factor: float | None
    explanations: tuple[str, ...]
    evidence: str
    advice: str

    @property
    def shown_factor(self) -> float | None:
        """The factor, where it says how far off a scale or a size is; the evidence says what others are measured by."""
        return None if self.kind in COMPARED else self.factor


@dataclass
class Case:
    """A head with what is known of it and of its neighbours.

    peers: the other heads of its layer. before: the same head in earlier dumps. others: (d_k, factor) of all heads,
    where they have several d_k. usual_spread: median within-row standard deviation of q·k over its dump.
    """

    facts: dict
    options: Options
    heads: int
    peers: list[dict] = field(default_factory=list)
    before: list[dict] = field(default_factory=list)
    others: list[tuple[int, float]] = field(default_factory=list)
    usual_spread: float = math.inf

    @property
    def d_k(self) -> int | None:
        """Width without the coordinates that are padding."""
        return self.facts["effective_d_k"] or self.facts["d_k"]

    @property
    def n_keys(self) -> int:
        return round(math.exp(self.facts["uniform_entropy"]))

    @property
    def normalised(self) -> bool:
        """Whether all queries have one length and all keys too, or had before learned weights of the components."""
        sides = ((self.facts[f"{side}_norm_cv"], self.facts[f"{side}_on_ellipsoid"]) for side in "qk")
        constant = (fitted or (cv is not None and cv < CONSTANT_NORM) for cv, fitted in sides)
        return self.d_k is not None and self.d_k > 1 and all(constant)

    @property
    def measured(self) -> float | None:
        trusted = self.facts["measured_r2"] is not None and self.facts["measured_r2"] >= TRUSTED_R2
        return self.facts["measured_factor"] if trusted else None

    @property
    def declared(self) -> float | None:
        scale = self.options.scale
        return None if scale is None or self.d_k is None else scale(self.d_k, self.n_keys)

    @property
    def seen(self) -> float | None:
        """The factor that was seen at work, in the given scores or by a capture."""
        return self.measured if self.measured is not None else self.facts.get("captured_factor")

    @property
    def actual(self) -> float | None:
        """The factor at work, as it was seen or as declared; None where neither is known."""
        return self.seen if self.seen is not None else self.declared

    @property
    def source(self) -> str:
        """Words for where the factor at work is known from, before its number."""
        if self.measured is not None:
            return "the scores, regressed on q·k, show"
        if self.seen is not None:
            return f"at work ({self.facts['captured_from']}) is"
        return "declared is"

    @property
    def right(self) -> tuple[float, ...]:
        """The right factors, the usual one first; empty where any is."""
        rights = self.options.convention.right(self.d_k, self.n_keys)
        if self.options.convention.assumed and self.normalised:
            # Where norms are fixed, a learned multiplier may stand for the scale; unit vectors need one.
            return () if self.unit_norms else (*rights, 1.0)
        return rights

    @property
    def at_scale(self) -> str:
        """Words for the scale behind a number that depends on it."""
        source = {"assumed": " (assumed)", "measured": " (measured)", "captured": " (captured)"}.get(
            self.facts["scale_source"], ""
        )
        return "" if self.facts["scale_source"] == "scores" else f" at scale {self.facts['factor']:.4g}{source}"

    @property
    def unit_norms(self) -> bool:
        return self.normalised and all(abs(self.facts[f"{side}_norm"] - 1) < 0.02 for side in "qk")

    def same(self, one: float, other: float) -> bool:
        """Say whether two factors are one, up to their spelling or the error of a measured one."""
        slack = SAME * abs(other)
        if self.measured is not None:
            # What a soft cap takes from the slope is of the size of what it leaves unexplained.
            unexplained = math.sqrt(max(1 - self.facts["measured_r2"], 0.0))
            error = self.facts["measured_factor_se"] or 0.0
            slack = max(slack, ERRORS * error, UNEXPLAINED * unexplained * abs(other))
        return abs(one - other) <= slack


# --- a wrong factor


def _root(value) -> float | None:
    return 1 / math.sqrt(value) if value else None


EXPLANATIONS: dict[str, tuple[Callable[[Case], float | None], str]] = {
    "no scale": (lambda c: 1.0, "multiply q·k by the scale"),
    "1/d_k": (lambda c: 1 / c.d_k, "take the root: 1/sqrt(d_k)"),
    "applied twice": (
        lambda c: c.right[0] ** 2,
        "scale once: a library's attention may do it already, and q or k may carry it",
    ),
    "muP (1/d_k)": (lambda c: 1 / c.d_k, "if muP is meant, declare --convention mup"),
    "muP (8/d_k)": (lambda c: 8 / c.d_k, "if muP is meant, declare --convention mup"),
    "inverted": (lambda c: 1 / c.right[0], "divide by the root, do not multiply by it"),
    "wrong sign": (lambda c: -c.right[0], "attend to what is alike, not to what is opposite"),
    "d_model in place of d_k": (lambda c: _root(c.options.d_model or c.heads * c.d_k), "use the width of one head"),
    "number of heads in place of d_k": (lambda c: _root(c.heads), "use the width of one head"),
    "d_v in place of d_k": (lambda c: _root(c.options.d_v), "use the width of q and k, not that of the values"),
    "padded width in place of d_k": (
        lambda c: _root(c.facts["d_k"]) if c.facts["d_k"] != c.d_k else None,
        "use the width before padding",
    ),
    "d_model / number of heads in place of d_k": (
        lambda c: _root(c.options.d_model / c.heads) if c.options.d_model else None,
        "use head_dim where it is set apart from d_model / num_heads",
    ),
    "a constant that does not follow d_k": (
        lambda c: next((factor for d_k, factor in c.others if d_k != c.d_k and c.same(c.actual, factor)), None),
        "compute the scale from d_k",
    ),
    "q or k carries the scale already": (
        lambda c: 1.0,
        "if q or k carries the scale, declare --convention pre-scaled, split or folded",
    ),
}
"""Name -> the factor that it gives, or None where it does not apply, and what to do."""
LEGITIMATE = {"muP (1/d_k)", "muP (8/d_k)", "q or k carries the scale already"}
"""Explanations that are no mistakes; they accompany the others, and do not make a finding of their own."""


def explain(case: Case) -> list[str]:
    """Return all explanations that give the factor at work, the mistakes first."""
    found = []
    for name, (number, _) in EXPLANATIONS.items():
        value = number(case)
        if value is not None and case.same(case.actual, value):
            found.append(name)
    return sorted(found, key=lambda name: name in LEGITIMATE)


def scale_factor(case: Case) -> Finding | None:
    """Find a factor that is not the convention's."""
    if case.d_k is None or case.actual is None:
        return None
    actual, rights = case.actual, case.right
    source = case.source
    against = case.options.convention.name + (" (assumed)" if case.options.convention.assumed else "")
    if case.same(actual, 0.0) and actual <= 1e-12:
        return Finding(
            "zero scale", BUG, 0.0, ("zero scale",), f"{source} a factor of 0", "every key gets the same weight: set it"
        )
    if not rights or any(case.same(actual, right) for right in rights):
        return None
    ratio = actual / rights[0]
    names = explain(case)
    evidence = f"{source} {actual:.6g} at d_k = {case.d_k}, {ratio:.5g} times {against} = {rights[0]:.6g}"
    if case.declared is not None and case.seen is not None and not case.same(actual, case.declared):
        evidence += f"; declared was {case.declared:.6g}"
    mistakes = [name for name in names if name not in LEGITIMATE]
    if not names:
        level = NOTE if case.options.convention.assumed else BUG
        advice = "no known explanation; if it is meant, declare it with --convention"
        return Finding("unexplained scale", level, ratio, (), evidence, advice)
    carried = case.options.convention.assumed and "q or k carries the scale already" in names
    spread = CARRIED_START if case.options.stage == "init" else CARRIED * case.d_k**0.25
    level = NOTE if (carried and case.usual_spread <= spread) or not mistakes else BUG
    advice = "; ".join(dict.fromkeys(EXPLANATIONS[name][1] for name in names))
    return Finding("wrong scale", level, ratio, tuple(names), evidence, advice)


def declared_otherwise(case: Case) -> Finding | None:
    """Find scores that were not made with the declared factor, even if that of the scores is right."""
    if case.seen is None or case.declared is None or case.same(case.seen, case.declared):
        return None
    ratio = case.seen / case.declared if case.declared else None
    evidence = f"declared is {case.declared:.6g}, {case.source} {case.seen:.6g}"
    advice = "find where else the scores are scaled; scores saved before they are scaled are no logits: leave them out"
    return Finding("other than declared", BUG, ratio, (), evidence, advice)


def not_a_multiple(case: Case) -> Finding | None:
    """Note scores that are not q·k times a number."""
    r2 = case.facts["measured_r2"]
    if r2 is None or r2 >= TRUSTED_R2:
        return None
    evidence = f"q·k explains {100 * r2:.3g} % of the scores' variance within rows"
    advice = "capture q and k after position encoding; a bias or a soft cap shows here too"
    return Finding("scores are not q·k", NOTE, None, (), evidence, advice)


# --- initialisation and normalisation


def too_large_start(case: Case) -> Finding | None:
    """Find scores far wider than unit-variance components would give, before training."""
    unit, spread = case.options.convention.unit, case.facts["row_score_std"]
    if case.options.stage != "init" or unit is None or case.d_k is None or case.normalised:
        return None
    ratio = spread / unit(case.d_k)
    if not ratio > WIDE_SPREAD or not _clear(ratio, spread, case.facts["row_score_std_se"]):
        return None
    names = ["weights initialised too large", "inputs of the projections not normalised"]
    d_model = case.options.d_model
    for side in ("q", "k"):
        square = (case.facts[f"{side}_rms"] or 0.0) ** 2
        if d_model and abs(square / d_model - 1) < 0.25:
            names.append(f"W_{side} with variance 1 in place of 1/d_model")
        if d_model and abs(square / (0.0004 * d_model) - 1) < 0.25:
            names.append(f"W_{side} with standard deviation 0.02 at this d_model")
    evidence = (
        f"q·k has standard deviation {spread:.4g} within rows, {ratio:.4g} times that of unit-variance components; "
        f"rms of q {case.facts['q_rms']:.4g}, of k {case.facts['k_rms']:.4g}"
    )
    advice = f"divide the gain of W_q and W_k by {math.sqrt(ratio):.3g} each, or restore the normalisation before them"
    level = BUG if ratio > LARGE_SPREAD else NOTE
    return Finding("too-large initialisation", level, ratio, tuple(names), evidence, advice)


def _clear(ratio: float, value: float, se: float | None) -> bool:
    """Say whether ln(ratio) is more than ERRORS standard errors from 0, the error being that of `value`."""
    return se is not None and value > 0 and abs(math.log(ratio)) > ERRORS * se / value


def broken_normalisation(case: Case) -> Finding | None:
    """Find norms that normalised inputs would not have, before training."""
    if case.options.stage != "init" or case.d_k is None or case.d_k < 2:
        return None
    if case.unit_norms and case.actual is not None and case.actual <= 1.01 / math.sqrt(case.d_k):
        evidence = f"q and k have length 1, and their cosine is multiplied by {case.actual:.4g}"
        names = ("q and k normalised to length 1, with 1/sqrt(d_k) left in place",)
        advice = "multiply the cosine by a learned g of about sqrt(d_k), or normalise to length sqrt(d_k)"
        return Finding("broken normalisation", BUG, case.actual / math.sqrt(case.d_k), names, evidence, advice)
    limit = max(UNEVEN_NORM, 2 / math.sqrt(2 * case.d_k))
    names = "no normalisation before the projections"
    if case.options.convention.normalised:
        limit, names = CONSTANT_NORM, "not normalised per head, as the convention says"
    uneven = []
    for side, n in (("q", case.facts["n_queries"]), ("k", case.facts["n_keys"])):
        cv = case.facts[f"{side}_norm_cv"]
        # The limit's own error, that of normal deviates, is what chance could make of a sound head.
        if cv is not None and cv > limit * (1 + ERRORS / math.sqrt(2 * n)):
            uneven.append((side, cv))
    if not uneven:
        return None
    evidence = ", ".join(f"norm of {side} varies by {100 * cv:.3g} % between tokens" for side, cv in uneven)
    words = tuple(f"{side}: {names}" for side, _ in uneven)
    return Finding("broken normalisation", BUG, None, words, evidence, "check which tensor the norm is applied to")


# --- what training made of it


def entropy_collapse(case: Case) -> Finding | None:
    """Note a head whose rows are nearly one-hot; where it is the only one before training, it is a bug."""
    facts = case.facts
    entropy, spread = facts["relative_entropy"], facts["row_logit_std"]
    if spread is None or entropy > SHARP or case.n_keys < 4 or _recognised(case):
        return None
    usual = sorted(peer["row_logit_std"] for peer in case.peers if peer["row_logit_std"])
    alike = sum(peer["relative_entropy"] <= COLLAPSED for peer in case.peers)
    single = entropy <= COLLAPSED and alike <= SINGLE_SHARE * len(case.peers)
    evidence = (
        f"entropy {facts['entropy']:.3g} of {facts['uniform_entropy']:.3g}, largest weight {facts['max_weight']:.3g}; "
        f"logits spread by {spread:.4g} within rows{case.at_scale} (random ones freeze at "
        f"{math.sqrt(2 * facts['uniform_entropy']):.3g} for {case.n_keys} keys)"
    )
    advice = "a fact of a trained head, and normal for some; if it came early: QK-norm, or a lower learning rate"
    level = BUG if single and case.options.stage == "init" else NOTE
    factor = spread / usual[len(usual) // 2] if usual else None
    return Finding("entropy collapse" if single else "very sharp", level, factor, (), evidence, advice)


def _recognised(case: Case) -> bool:
    """Say whether the head is normalised per head and any multiplier is right, so that its size is no news."""
    return case.normalised and case.actual is not None and any(case.same(case.actual, r) for r in (*case.right, 1.0))


def dead_head(case: Case) -> Finding | None:
    """Note a head that attends to all keys alike; at initialisation, where muP starts q at zero, that is nothing."""
    spread = case.facts["row_logit_std"]
    if case.options.stage == "init" or spread is None or spread > DEAD or case.facts["factor"] == 0:
        return None
    evidence = f"logits spread by {spread:.2g} within rows{case.at_scale}; entropy {case.facts['entropy']:.5g}"
    return Finding("dead head", NOTE, None, (), evidence, "attention is a plain mean of the values; it may be pruned")


def precision_at_risk(case: Case) -> Finding | None:
    """Note logits or scores that half-precision numbers cannot hold."""
    facts = case.facts
    largest = max(abs(facts["logit_min"] or 0.0), abs(facts["logit_max"] or 0.0))
    share = facts["fp16_score_overflow"] or 0.0
    if largest < ROUNDED and not share:
        return None
    error = 2.0 ** (math.frexp(largest)[1] - 9)
    words = [f"largest logit {largest:.4g}{case.at_scale}, which bfloat16 rounds by up to {error:g}"]
    if share:
        words.append(f"{100 * share:.2g} % of q·k is beyond float16")
    advice = "scale q before the product, and take the softmax in float32"
    return Finding("precision at risk", NOTE, largest / ROUNDED, (), "; ".join(words), advice)


def logit_growth(case: Case) -> Finding | None:
    """Note logits that grow from dump to dump, from the first to this one, the last."""
    if not case.before:
        return None
    first, last = case.before[0], case.facts
    errors = [one["row_logit_std_se"] for one in (first, last)]
    sizes = [one["row_logit_std"] for one in (first, last)]
    if None in errors or None in sizes or min(sizes) <= 0:
        return None
    ratio = sizes[1] / sizes[0]
    error = math.hypot(*(se / size for se, size in zip(errors, sizes, strict=True)))
    if ratio < GROWTH or math.log(ratio) < ERRORS * error:
        return None
    evidence = (
        f"logits spread by {sizes[0]:.4g} in the first of {len(case.before) + 1} dumps and by {sizes[1]:.4g} in the "
        f"last{case.at_scale}"
    )
    advice = "growth that goes on ends in collapse: QK-norm, a lower learning rate or weight decay on W_q and W_k"
    return Finding("logit growth", NOTE, ratio, (), evidence, advice)


DIAGNOSES = (
    *(scale_factor, declared_otherwise, not_a_multiple, too_large_start, broken_normalisation),
    *(entropy_collapse, dead_head, precision_at_risk, logit_growth),
)


def diagnose(case: Case) -> list[Finding]:
    """Return all findings on one head."""
    return [finding for one in DIAGNOSES if (finding := one(case)) is not None]
