"""Diagnoses: what is wrong with a head, and with what evidence.

A diagnosis is one function from a case to a finding or None, registered in `DIAGNOSES`. What explains a wrong factor
stands in `explanations`.
"""

import math

from sqrtdk.heads.cases import CONSTANT_NORM, ERRORS, Case
from sqrtdk.heads.explanations import EXPLANATIONS, LEGITIMATE, WEAK, explain
from sqrtdk.heads.findings import BUG, NOTE, WARNING, Finding
from sqrtdk.heads.patterns import words_of
from sqrtdk.heads.regression import TRUSTED
from sqrtdk.heads.starts import scale_at_start, scaled_before, unscaled_norms

WIDE_SPREAD, LARGE_SPREAD = 1.5, 2.5
"""Scores so many times wider than those of unit variance are noted at the start, then a bug: He gives 2 and trains."""
UNEVEN_NORM = 0.35
COLLAPSED = 0.1
"""Entropy over its maximum below which a head counts as collapsed."""
SHARP = 0.25
"""The same for a head that is very sharp."""
DEAD = 0.01
"""Within-row standard deviation of the logits below which attention is uniform for all purposes."""
ROUNDED = 128.0
"""From here on bfloat16 rounds a logit by up to 0.5."""
GROWTH = 1.5
CARRIED_START, CARRIED = 2.0, 1.5
"""Unscaled scores of no more spread than this at the start, or than this times d_k^(1/4), halfway to an unscaled head,
later, could come from arrays that carry the scale."""

# --- a wrong factor


def scale_factor(case: Case) -> Finding | None:
    """Find a factor that is not the convention's, or not the declared one."""
    if case.d_k is None or case.actual is None:
        return None
    actual, rights, convention = case.actual, case.right, case.options.convention
    if case.same(actual, 0.0) and abs(actual) <= 1e-12:
        evidence = f"{case.source} a factor of 0"
        return Finding("zero scale", BUG, 0.0, ("zero scale",), evidence, "every key gets the same weight: set it")
    other = case.seen is not None and case.declared is not None and not case.same(actual, case.declared)
    if case.is_right(actual):
        return _other_than_declared(case, ()) if other else None
    ratio, names = actual / rights[0], explain(case)
    against = convention.name + (" (assumed)" if convention.assumed else "")
    evidence = f"{case.source} {actual:.6g} at d_k = {case.d_k}, {ratio:.5g} times {against} = {rights[0]:.6g}"
    evidence += f"; declared was {case.declared:.6g}" if other else ""
    evidence += f"; the scores hold {case.facts['biased']} beside q·k" if case.facts.get("biased") else ""
    advice = "; ".join(dict.fromkeys(EXPLANATIONS[name][1] for name in names))
    level = _level(case, names)
    if other and level != BUG:
        return _other_than_declared(case, tuple(names))
    if names == ["1/layer number"]:
        return Finding("scale follows the layer", level, None, tuple(names), evidence, advice)
    if not names:
        advice = "no known explanation; if it is meant, declare it with --convention (learned, if it is learned)"
        return Finding("unexplained scale", level, ratio, (), evidence, advice)
    kind = "scale of another convention" if level != BUG and set(names) <= LEGITIMATE else "wrong scale"
    return Finding(kind, level, ratio, tuple(names), evidence, advice)


def _level(case: Case, names: list[str]) -> str:
    """Return how grave a factor is that is not the convention's, by what explains it."""
    convention, start = case.options.convention, case.options.stage == "init"
    mistakes = [name for name in names if name not in LEGITIMATE]
    if convention.name == "mup" and mistakes == ["1/sqrt(d_k) in place of the convention's"]:
        # Right for the base model itself.
        return WARNING
    if not convention.assumed:
        return NOTE if names == ["1/layer number"] else BUG
    if mistakes:
        spread = CARRIED_START if start else CARRIED * case.width**0.25
        carried = "q or k carries the scale already" in names and case.usual_spread <= spread
        return NOTE if carried else BUG
    # At the start of training nothing has adapted to the number yet.
    return WARNING if start and set(names) <= WEAK else NOTE


def _other_than_declared(case: Case, names: tuple[str, ...]) -> Finding:
    """Return the finding of scores that were not made with the declared factor, even if that of the scores is right."""
    ratio = case.seen / case.declared if case.seen is not None and case.declared else None
    evidence = f"declared is {case.declared:.6g}, {case.source} {case.seen:.6g}"
    advice = "find where else the scores are scaled; scores saved before they are scaled are no logits: leave them out"
    return Finding("other than declared", BUG, ratio, names, evidence, advice)


def not_a_multiple(case: Case) -> Finding | None:
    """Say what scores are that are not q·k times a number."""
    r2, fits = case.facts["measured_r2"], case.facts.get("fits")
    if fits == "tiled" and case.key_heads is not None:
        shared = case.shape[0] // case.key_heads
        evidence = f"the scores are those of key head h mod {case.key_heads}, and not of h // {shared}"
        advice = "repeat_interleave repeats key heads, repeat and tile do not; weights are trained for one of the two"
        return Finding("key/value heads tiled instead of repeated", WARNING, None, (), evidence, advice)
    if fits == "transposed":
        evidence = "the scores are q·k when their last two axes are exchanged"
        return Finding("scores are transposed", WARNING, None, (), evidence, "softmax goes over keys, the last axis")
    if r2 is None or r2 >= TRUSTED:
        return None
    evidence = f"q·k explains {100 * r2:.3g} % of the scores' variance within rows"
    advice = "capture q and k after position encoding; a bias that differs from head to head and token shows here too"
    return Finding("scores are not q·k", NOTE, None, (), evidence, advice)


def sizes_disagree(case: Case) -> Finding | None:
    """Say where the heads that were declared are not those of the file, as where tokens and heads are exchanged."""
    heads, queries, keys = case.shape
    declared, d_model, d_k = case.options.num_heads, case.options.d_model, case.facts["d_k"]
    evidence = ""
    if declared is not None and (heads > declared or queries == declared != heads):
        evidence = f"--num-heads {declared}, and the file has {heads} heads of {queries} queries"
    elif declared is None and d_model and d_k and heads * d_k != d_model and queries * d_k == d_model:
        evidence = (
            f"--d-model {d_model} is {queries} heads of {d_k}, and the file has {heads} heads of {queries} queries"
        )
    elif queries != keys and heads > queries and queries % keys == 0:
        evidence = f"{heads} heads of {queries} queries and {keys} keys"
    if not evidence:
        return None
    if declared is not None and queries != declared:
        return Finding("other number of heads than declared", WARNING, None, (), evidence, "correct one of the two")
    advice = "if tokens come before heads, declare --layout BSHD or SHD"
    return Finding("tokens and heads may be exchanged", WARNING, None, (), evidence, advice)


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
    missing = "no normalisation before the projections"
    if case.options.convention.normalised:
        limit, missing = CONSTANT_NORM, "not normalised per head, as the convention says"
    uneven = []
    for side, n in (("q", case.facts["n_queries"]), ("k", case.facts["n_keys"])):
        cv = case.facts[f"{side}_norm_cv"]
        # The limit's own error, that of normal deviates, is what chance could make of a sound head.
        if cv is not None and cv > limit * (1 + ERRORS / math.sqrt(2 * n)):
            uneven.append((side, cv))
    if not uneven:
        return None
    evidence = ", ".join(f"norm of {side} varies by {100 * cv:.3g} % between tokens" for side, cv in uneven)
    words = tuple(f"{side}: {missing}" for side, _ in uneven)
    return Finding("broken normalisation", BUG, None, words, evidence, "check which tensor the norm is applied to")


# --- what training made of it


def entropy_collapse(case: Case) -> Finding | None:
    """Note a head whose rows are nearly one-hot; before training, with a scale that is right, it is a bug."""
    facts = case.facts
    entropy, spread = facts["relative_entropy"], facts["row_logit_std"]
    if spread is None or entropy > SHARP or case.n_keys < 4 or _recognised(case):
        return None
    usual = sorted(peer["row_logit_std"] for peer in case.peers if peer["row_logit_std"])
    alike = 1 + sum(peer["relative_entropy"] <= SHARP for peer in case.peers)
    where, normal = words_of(facts)
    evidence = (
        f"entropy {facts['entropy']:.3g} of {facts['uniform_entropy']:.3g}, largest weight {facts['max_weight']:.3g}; "
        f"{where}; {alike} of {1 + len(case.peers)} heads of the layer are as sharp; logits spread by {spread:.4g} "
        f"within rows{case.at_scale} (random ones freeze at {math.sqrt(2 * facts['uniform_entropy']):.3g} for "
        f"{case.n_keys} keys)"
    )
    factor = spread / usual[len(usual) // 2] if usual else None
    kind = "entropy collapse" if entropy <= COLLAPSED else "very sharp"
    if case.options.stage != "init":
        advice = f"a fact of a trained head: {normal}; if it came early: QK-norm, or a lower learning rate"
        return Finding(kind, NOTE, factor, (), evidence, advice)
    # What a wrong scale or too large weights make of a head is no second mistake.
    caused = any(one is not None and one.level == BUG for one in (scale_factor(case), too_large_start(case)))
    caused |= case.facts["d_k"] is None and scale_at_start(case) is not None
    level = BUG if kind == "entropy collapse" and not caused else NOTE
    advice = (
        "follows from the other finding" if caused else "no head should be so sharp before training: look at q and k"
    )
    return Finding(kind, level, factor, (), evidence, advice)


def _recognised(case: Case) -> bool:
    """Say whether the head is normalised per head and any multiplier is right, so that its size is no news."""
    return case.normalised and case.actual is not None and (case.is_right(case.actual) or case.same(case.actual, 1.0))


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
    *(scale_factor, scale_at_start, scaled_before, unscaled_norms, not_a_multiple, sizes_disagree, too_large_start),
    *(broken_normalisation, entropy_collapse, dead_head, precision_at_risk, logit_growth),
)


def diagnose(case: Case) -> list[Finding]:
    """Return all findings on one head, those of its arrays first."""
    return [*case.found, *(finding for one in DIAGNOSES if (finding := one(case)) is not None)]
