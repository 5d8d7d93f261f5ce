"""Explanations of a factor: every mistake and every convention that gives the number, by name.

A new one is one entry of `EXPLANATIONS`.
"""

import math
from collections.abc import Callable, Iterable

from sqrtdk.heads.cases import Case
from sqrtdk.heads.conventions import mup_factors


def _root(value: float | None) -> float | None:
    return 1 / math.sqrt(value) if value else None


def _among(case: Case, factors: Iterable[float | None]) -> float | None:
    """Return the first of some factors that is the one at work."""
    return next((factor for factor in factors if factor and case.at_work(factor)), None)


def _parts(d_k: int) -> tuple[float | None, float | None]:
    """Return the widths of the part without and of that with rotation in MLA: 2 to 1, or 512 + 64 in the latent."""
    if d_k == ABSORBED:
        return 512, 64
    return (2 * d_k / 3, d_k / 3) if d_k % 3 == 0 else (None, None)


def _rounded_up(case: Case) -> float | None:
    """Return the factor of the width rounded up to a power of two or a multiple that kernels ask for."""
    d_k = case.width
    widths = {2 ** math.ceil(math.log2(d_k)), *(step * math.ceil(d_k / step) for step in (8, 16, 32, 64, 128))}
    return _among(case, [_root(width) for width in sorted(widths - {d_k})])


def _yarn(case: Case) -> float | None:
    """Return the right factor times YaRN's, (0.1 ln s + 1)² for a context s times as long (Peng et al. 2023)."""
    stretches = [0.1 * math.log(s) + 1 for s in (2, 4, 8, 16, 32, 40, 64, 128)]
    # DeepSeek-V2 has mscale_all_dim = 0.707 at s = 40.
    stretches.append(0.0707 * math.log(40) + 1)
    return _among(case, [case.right[0] * stretch**2 for stretch in stretches])


def _by_layer(case: Case) -> float | None:
    """Return the right factor over the number of the layer, where all layers of a dump follow that."""
    for first in (1, 0):
        if len(case.layers) > 1 and all(abs(ratio * (layer + first) - 1) < 0.02 for layer, ratio in case.layers):
            return case.right[0] / (case.layer + first)
    return None


ABSORBED = 576
"""Width of q and k of MLA whose key weights are absorbed: DeepSeek's latent of 512 and the rotary part of 64."""
FEW_KEYS = 8
"""A number of keys or of heads below this is too common a number to be an explanation that nobody declared."""

EXPLANATIONS: dict[str, tuple[Callable[[Case], float | None], str]] = {
    "no scale": (lambda c: 1.0, "multiply q·k by the scale"),
    "1/d_k": (lambda c: 1 / c.width, "take the root: 1/sqrt(d_k)"),
    "applied twice": (
        lambda c: c.right[0] ** 2,
        "scale once: a library's attention may do it already, and q or k may carry it",
    ),
    "inverted": (lambda c: 1 / c.right[0], "divide by the root, do not multiply by it"),
    "wrong sign": (lambda c: -c.right[0], "attend to what is alike, not to what is opposite"),
    "1/sqrt(d_k) in place of the convention's": (lambda c: _root(c.width), "scale as the convention says"),
    "d_model in place of d_k": (lambda c: _root(c.options.d_model or c.heads * c.width), "use the width of one head"),
    "number of heads in place of d_k": (lambda c: _root(c.heads), "use the width of one head"),
    "d_v in place of d_k": (lambda c: _root(c.options.d_v), "use the width of q and k, not that of the values"),
    "padded width in place of d_k": (
        lambda c: _root(c.facts["d_k"]) if c.facts["d_k"] != c.width else None,
        "use the width before padding",
    ),
    "d_model / number of heads in place of d_k": (
        lambda c: _root(c.options.d_model / c.heads) if c.options.d_model else None,
        "use head_dim where it is set apart from d_model / num_heads",
    ),
    "scaled on one side only": (
        lambda c: c.width**-0.25,
        "scale q and k by the root of the scale each, or one of them by all of it",
    ),
    "log2(e) left in": (lambda c: c.right[0] / math.log(2), "log2(e) belongs to exp2 alone, and not to a scale"),
    "log2(e) left out": (lambda c: c.right[0] * math.log(2), "a softmax by exp2 needs the scale times log2(e)"),
    "a constant that does not follow d_k": (
        lambda c: next((factor for d_k, factor in c.others if d_k != c.width and c.at_work(factor)), None),
        "compute the scale from d_k",
    ),
    "width of all key heads in place of d_k": (
        lambda c: _root(c.key_heads * c.width) if c.key_heads and c.key_heads != c.shape[0] else None,
        "use the width of one head",
    ),
    "number of keys in place of d_k": (
        lambda c: _root(c.shape[2]) if c.shape[2] >= FEW_KEYS else None,
        "use the width of one head: d_k is the last axis of q",
    ),
    "width without the rotary part (MLA)": (
        lambda c: _root(_parts(c.width)[0]),
        "use the width of both parts together, such as 128 + 64",
    ),
    "width of the rotary part (MLA)": (
        lambda c: _root(_parts(c.width)[1]),
        "use the width of both parts together, such as 128 + 64",
    ),
    "width rounded up in place of d_k": (_rounded_up, "use the width before it is rounded up"),
    "muP (1/d_k)": (lambda c: 1 / c.width, "if muP is meant, declare --convention mup"),
    "muP (8/d_k)": (lambda c: 8 / c.width, "if muP is meant, declare --convention mup"),
    "1/layer number": (
        _by_layer,
        "meant where the model scales by layer (scale_attn_by_inverse_layer_idx of GPT-2, query-key layer scaling of "
        "Megatron, which multiplies by the number again before softmax)",
    ),
    "YaRN": (_yarn, "if the context is stretched by YaRN, declare the number as --convention"),
    "query_pre_attn_scalar": (
        lambda c: _among(c, [_root(width) for width in (144, 168, 224, 256) if width != c.width]),
        "if the configuration has this query_pre_attn_scalar (Gemma), declare it: --convention 1/sqrt(N)",
    ),
    "keys absorbed into the latent (MLA)": (
        lambda c: _root(192) if c.width == ABSORBED else None,
        "right for MLA with absorbed weights: declare --convention 1/sqrt(192), the width before that",
    ),
    "muP with another base width": (
        lambda c: _among(c, mup_factors(c.width)),
        "if muP is meant, declare --convention mup",
    ),
    "q or k carries the scale already": (
        lambda c: 1.0,
        "if q or k carries the scale, declare --convention pre-scaled, split or folded",
    ),
}
"""Name -> the factor that it gives, or None where it does not apply, and what to do; the likelier come first."""
LEGITIMATE = {
    *("muP (1/d_k)", "muP (8/d_k)", "1/layer number", "YaRN", "query_pre_attn_scalar"),
    *("keys absorbed into the latent (MLA)", "muP with another base width", "q or k carries the scale already"),
}
"""Explanations that are no mistakes; they accompany the others, and do not make a finding of their own."""
WEAK = {"muP with another base width"}
"""Legitimate ones that many numbers meet by chance."""
_GUESSED = {"d_model in place of d_k": "d_model", "number of heads in place of d_k": "num_heads"}
_COINCIDENCES = {
    *("width of all key heads in place of d_k", "number of keys in place of d_k", "width rounded up in place of d_k"),
    *("width without the rotary part (MLA)", "width of the rotary part (MLA)"),
}


def _rank(case: Case, name: str) -> int:
    """Return how far back an explanation belongs: behind what was declared, what the file alone suggests."""
    guessed = name in _GUESSED and getattr(case.options, _GUESSED[name]) is None
    return 2 if name in LEGITIMATE else int(guessed or name in _COINCIDENCES)


def explain(case: Case) -> list[str]:
    """Return all explanations that give the factor at work, causes before coincidences, and mistakes first."""
    found = []
    for name, (number, _) in EXPLANATIONS.items():
        value = number(case)
        if value is not None and case.at_work(value):
            found.append(name)
    if "1/layer number" in found:
        # One cause for all layers; what a single layer's number is besides is chance.
        return ["1/layer number"]
    return sorted(found, key=lambda name: _rank(case, name))
