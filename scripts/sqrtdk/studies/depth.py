"""Stacks of random attention layers: what becomes of logits, entropy and tokens with depth, before any training.

Layers are attention alone, without a feed-forward part, with weights of variance 1/fan-in. Given the inputs x_j of a
layer, the variance of its logits within a row is on average over W_q and W_k

    c² d_k Var(W)² (mean ‖x_i‖²) (mean of ‖x_j‖² − mean of x_j·x_l over pairs),

which is 1 − c̄ for normalised inputs and scaled logits, with c̄ the mean cosine of two tokens: tokens that align (rank
collapse, Dong et al. 2021) make attention uniform.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sqrtdk.rows.norms import layer_normalise, rms_normalise
from sqrtdk.sampling import streams
from sqrtdk.statistics import estimates
from sqrtdk.variants.notation import parse

D_MODEL, N_HEADS, N_TOKENS, N_LAYERS = 256, 4, 64, 12
D_K = D_MODEL // N_HEADS
NORMS = {
    "pre_layernorm": layer_normalise,
    "post_layernorm": layer_normalise,
    "pre_rmsnorm": rms_normalise,
}
"""Normalisation by name: before attention, or after attention and residual. First inputs always had a LayerNorm."""
RULES = ("none", "1/sqrt(d_k)")
SMALLEST_STD = 1e-10
"""Below this the logits of a row differ by little more than their rounding errors, and are not reported."""
MEASURES = ("query_std", "logit_std", "logit_variance_ratio", "normalised_entropy", "token_cosine")


@dataclass(frozen=True)
class Stack:
    """A kind of stack: name of the normalisation, whether layers add to their input, and the scale rule."""

    norm: str
    residual: bool
    scaling: str


VARIANTS = tuple(
    Stack(norm, residual, scaling)
    for scaling in RULES
    for norm, residual in (
        ("pre_layernorm", True),
        ("post_layernorm", True),
        ("pre_rmsnorm", True),
        ("none", True),
        ("pre_layernorm", False),
        ("none", False),
    )
)
"""What is measured. Without a residual, a normalisation before attention or after it makes the same inputs."""


def _normalise(x: np.ndarray, position: str) -> np.ndarray:
    """Normalise the states (variant, token, d_model) of the variants with a normalisation at this position."""
    x = x.copy()
    for i, variant in enumerate(VARIANTS):
        if variant.norm.startswith(position):
            x[i] = NORMS[variant.norm](x[i])
    return x


def _heads(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Project states (variant, token, d_model) and split them into heads (variant, head, token, d_k)."""
    n = len(x)
    return (x.reshape(-1, D_MODEL) @ weight).reshape(n, N_TOKENS, N_HEADS, D_K).swapaxes(1, 2)


def token_cosine(x: np.ndarray) -> np.ndarray:
    """Return the mean cosine over pairs of different tokens, for x (..., token, d_model)."""
    unit = x / np.sqrt(np.vecdot(x, x))[..., None]
    n, total = x.shape[-2], unit.sum(axis=-2)
    return (np.vecdot(total, total) - n) / (n * (n - 1))


def expected_variance(x: np.ndarray, factor: np.ndarray | float) -> np.ndarray:
    """Return the within-row variance of the logits averaged over weights of variance 1/d_model, given inputs.

    x: (..., token, d_model). factor: what multiplies q·k, any shape that broadcasts.
    """
    n, d_model = x.shape[-2:]
    # The mean square less the mean product of pairs, without the cancellation of aligned tokens.
    apart = x - x.mean(axis=-2, keepdims=True)
    spread = np.vecdot(apart, apart).sum(axis=-1) / (n - 1)
    return factor**2 * D_K / d_model**2 * np.vecdot(x, x).mean(axis=-1) * spread


def one_stack(rng: np.random.Generator) -> np.ndarray:
    """Run one stack in float64; all variants see the same first inputs and the same weights.

    Returns:
        (layer, variant, quantity): mean q_i², its mean given the inputs, the mean variance of the logits within a row,
        its mean given the inputs, entropy over ln n, and the mean cosine of two tokens, all of a layer's inputs.
    """
    factors = np.array([parse(variant.scaling).constant(D_K, N_TOKENS) for variant in VARIANTS])
    residual = np.array([variant.residual for variant in VARIANTS], dtype=float)[:, None, None]
    tokens = streams.standard_normal(rng, (N_TOKENS, D_MODEL)).astype(np.float64)
    state = np.broadcast_to(layer_normalise(tokens), (len(VARIANTS), N_TOKENS, D_MODEL))
    found = []
    for _ in range(N_LAYERS):
        weights = streams.standard_normal(rng, (4, D_MODEL, D_MODEL)).astype(np.float64) / math.sqrt(D_MODEL)
        x = _normalise(state, "pre")
        q, k, v = (_heads(x, weight) for weight in weights[:3])
        logits = factors[:, None, None, None] * (q @ k.swapaxes(-1, -2))
        variance = np.var(logits, axis=-1, ddof=1).mean(axis=(1, 2))
        logits -= logits.max(axis=-1, keepdims=True)
        p = np.exp(logits)
        total = p.sum(axis=-1, keepdims=True)
        entropy = (np.log(total[..., 0]) - np.vecdot(p, logits) / total[..., 0]).mean(axis=(1, 2))
        square = np.vecdot(x, x).mean(axis=-1) / D_MODEL
        found.append(
            (
                (q * q).mean(axis=(1, 2, 3)),
                square,
                variance,
                expected_variance(x, factors),
                entropy / math.log(N_TOKENS),
                token_cosine(x),
            )
        )
        mixed = (p / total @ v).swapaxes(1, 2).reshape(-1, D_MODEL)
        state = _normalise(residual * state + (mixed @ weights[3]).reshape(state.shape), "post")
    return np.array(found).swapaxes(1, 2)


_NOTHING = (None, None, None)


def simulate(n_stacks: int, seed: int) -> list[dict[str, Any]]:
    """Run independent stacks; return one row for each variant, layer and measure.

    Returns:
        Rows norm, residual, scaling, layer (from 1), measure, estimate, se, exact, n_stacks; se from between stacks.
        Of the two standard deviations, `exact` is the mean over weights given the inputs that the stacks reached: it is
        a constant where inputs are normalised, of the first layer, and of `logit_variance_ratio`; elsewhere it has the
        estimate's own scatter. Cosines of the first, independent tokens are 0 on average. No estimate of what has
        collapsed into rounding errors in any stack.
    """
    stacks = np.array([one_stack(streams.generator(seed, "depth", stack)) for stack in range(n_stacks)])
    rows = []
    for place, variant in enumerate(VARIANTS):
        for layer in range(N_LAYERS):
            query, query_given, logits, logits_given, entropy, cosine = stacks[:, layer, place].T
            collapsed = logits_given.min() < SMALLEST_STD**2
            found = (
                (*estimates.rms(query), math.sqrt(query_given.mean())),
                _NOTHING if collapsed else (*estimates.rms(logits), math.sqrt(logits_given.mean())),
                _NOTHING if collapsed else (*estimates.mean(logits / logits_given), 1.0),
                (*estimates.mean(entropy), None),
                (*estimates.mean(cosine), None if layer else 0.0),
            )
            for measure, (estimate, se, exact) in zip(MEASURES, found, strict=True):
                rows.append(
                    dict(norm=variant.norm, residual=variant.residual, scaling=variant.scaling, layer=layer + 1)
                    | dict(measure=measure, estimate=estimate, se=se, exact=exact, n_stacks=n_stacks)
                )
    return rows
