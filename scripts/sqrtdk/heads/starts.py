"""The scale where the size of the scores is known: at the start of training, or from q and k that are normalised."""

import math
from collections.abc import Callable

from sqrtdk.heads.cases import ERRORS, Case
from sqrtdk.heads.findings import BUG, NOTE, WARNING, Finding

CLOSE = 0.07
"""Sizes that differ by less, or by less than five standard errors, are one: weights are drawn by chance."""
WIDE, LARGE = 1.5, 2.5
"""Logits so many times as wide as they should be are suspicious, then a bug, where a missing scale makes them so."""
AS_NORMALISED = 0.9
"""Root mean square of the components of q and k from which on no gain of a norm stands in for the scale."""
STARTS: dict[str, Callable[[int], float]] = {
    "": lambda d_model: 1.0,
    " with nn.Linear's own start": lambda d_model: 1 / 3,
    " with nn.MultiheadAttention's own start": lambda d_model: 1 / 2,
    " with small init": lambda d_model: 2 / 5,
    " with a start of 0.02": lambda d_model: 4e-4 * d_model,
    " with He's start": lambda d_model: 2.0,
}
"""Ways to start, and the standard deviation of q·k that they give over that of unit-variance components."""


def width_of(case: Case) -> int | None:
    """Return d_k of scores alone, from what was declared of the model."""
    d_model = case.options.d_model
    return d_model // case.heads if d_model and d_model % case.heads == 0 and d_model > case.heads else None


def scale_at_start(case: Case) -> Finding | None:
    """Hold scores alone, before training, against what they are without a scale, or with it twice."""
    d_model, width, unit = case.options.d_model, width_of(case), case.options.convention.unit
    spread, se = case.facts["row_logit_std"], case.facts["row_logit_std_se"]
    if case.d_k is not None or case.options.stage != "init" or spread is None or not spread > 0:
        return None
    if d_model is None or width is None or unit is None:
        return None
    rights = case.options.convention.right(width, case.n_keys)
    if not rights:
        return None
    usual = rights[0] * unit(width)
    ratio, slack = spread / usual, max(CLOSE, ERRORS * (se or 0.0) / spread)
    heads = "num_heads" if case.options.num_heads else "heads of the file"
    of = f"standard deviation {spread:.4g} within rows; at d_k = d_model / {heads} = {width} it should be {usual:.4g}"

    def close(factor: float, start: str = "") -> bool:
        return abs(math.log(ratio / (factor * STARTS[start](d_model)))) < slack

    if ratio > WIDE:
        for start in STARTS:
            for name, factor in (("no scale", 1 / rights[0]), ("inverted", 1 / rights[0] ** 2)):
                if close(factor, start):
                    size = factor * usual * STARTS[start](d_model)
                    evidence = f"{of}, and {'without a scale' if name == 'no scale' else name} is {size:.4g}{start}"
                    advice = "multiply q·k by the scale" if name == "no scale" else "divide by the root of d_k"
                    if sound := next((start for start in STARTS if close(1.0, start)), None):
                        evidence += f"; so it is with the right scale{sound}"
                        return Finding("scale may be missing", NOTE, factor, (name,), evidence, advice)
                    level = BUG if ratio > LARGE else WARNING
                    return Finding("wrong scale", level, factor, (name,), evidence, advice)
        if ratio > LARGE:
            evidence = f"{of}, {ratio:.4g} times as much"
            advice = "look at the scale, and at the size of W_q and W_k"
            return Finding("too-large initialisation", BUG, ratio, ("weights initialised too large",), evidence, advice)
        return None
    if rights[0] < 1 and close(rights[0]) and not any(close(1.0, start) for start in STARTS):
        evidence = f"{of}, and with the scale applied twice is {rights[0] * usual:.4g}"
        advice = "scale once: a library's attention may do it already, and q or k may carry it"
        return Finding("scale may be applied twice", WARNING, None, ("applied twice",), evidence, advice)
    return None


def scaled_before(case: Case) -> Finding | None:
    """Warn where q, k or both carry the scale by their size at the start, and attention applies it again."""
    d_k, actual = case.d_k, case.actual
    if case.options.stage != "init" or d_k is None or d_k < 4 or actual is None or case.normalised:
        return None
    unit, scale = case.options.convention.unit, 1 / math.sqrt(d_k)
    if unit is None or unit(d_k) != math.sqrt(d_k) or not case.same(actual, scale) or not case.is_right(actual):
        return None
    sizes = [case.facts[f"{side}_rms"] for side in "qk"]
    errors = [(case.facts[f"{side}_norm_se"] or 0.0) / (case.facts[f"{side}_norm"] or 1.0) for side in "qk"]
    if not all(sizes):
        return None
    slack = min(max(0.05, ERRORS * math.hypot(*errors)), math.log(d_k) / 8)
    difference = math.log(sizes[0] / sizes[1])
    carrier = next(
        (side for side, sign in (("q", 1), ("k", -1)) if abs(sign * difference - math.log(scale)) < slack), ""
    )
    if not carrier:
        # Split over both, which a usual start of small weights may look like.
        usual = [start(case.options.d_model or case.heads * d_k) for start in STARTS.values()]
        both = all(abs(math.log(size / math.sqrt(scale))) < min(slack, 0.05) for size in sizes)
        if not both or any(abs(size**2 / start - 1) < 0.1 for size in sizes for start in usual):
            return None
    evidence = (
        f"rms of q {sizes[0]:.4g}, of k {sizes[1]:.4g}, where 1/√d_k is {scale:.4g}; logits spread by "
        f"{case.facts['row_logit_std']:.3g} within rows{case.at_scale}"
    )
    words = f"{carrier} carries the scale already" if carrier else "q and k carry half of the scale each"
    advice = "scale once: leave it out of attention (scale=1.0), or declare that q and k start so small on purpose"
    return Finding("scale may be applied twice", WARNING, None, (words,), evidence, advice)


def unscaled_norms(case: Case) -> Finding | None:
    """Warn where q and k are as long as a norm makes them, √d_k or more, and nothing multiplies their product.

    A learned gain may take the scale's place, as it does in Gemma 3n; it has not done so where neither is below 1.
    """
    if case.d_k is None or case.actual is None or not case.options.convention.assumed or not case.normalised:
        return None
    sizes, scale = [case.facts[f"{side}_rms"] for side in "qk"], 1 / math.sqrt(case.d_k)
    if min(sizes) < AS_NORMALISED or not case.same(case.actual, 1.0) or case.same(case.actual, scale):
        return None
    evidence = (
        f"{case.source} 1, and q and k are normalised: rms {sizes[0]:.4g} and {sizes[1]:.4g}, so that q·k of unlike "
        f"directions spreads by {sizes[0] * sizes[1] / scale:.4g}; here logits spread by "
        f"{case.facts['row_logit_std']:.3g} within rows"
    )
    advice = (
        "multiply q·k by 1/√d_k, or let the gains of the norms start at d_k^(-1/4); where they are to learn the scale "
        "from 1 on, declare --convention normalised"
    )
    level = NOTE if case.options.stage == "trained" else WARNING
    return Finding("scale may be missing", level, 1 / scale, ("no scale after normalisation",), evidence, advice)
