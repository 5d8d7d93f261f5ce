"""Monte Carlo of normalisers over rows of independent Gaussian logits, and of attention without such rows."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sqrtdk.sampling import streams
from sqrtdk.statistics import estimates, quantiles
from sqrtdk.variants import kernels
from sqrtdk.variants.normalisers import (
    Entmax15,
    Normaliser,
    PostScale,
    Sigmoid,
    Sink,
    Softmax,
    Softmax1,
    Sparsemax,
    TopK,
    Window,
)
from sqrtdk.variants.notation import parse

NORMALISERS: tuple[Normaliser, ...] = (
    Softmax(),
    Softmax1(),
    Sink(b=4),
    Sparsemax(),
    Entmax15(),
    Sigmoid(),
    TopK(k=8),
    Window(width=16),
    PostScale(a=2),
)
"""What the table compares. A sink of 4 is close to ln n + ½ = 4.7 of 64 keys, and so takes a good share of them."""
LOGIT_STDS = (0, 1, 2, 4, 8, 16)
N_KEYS = (64, 1024)
MAX_ROWS = 2**13
MIN_ROWS = 64
TRUSTED_SHARE = 0.03  # ASSUME
"""Where one row holds more of the null mass than this, its mean is that of rare rows and has no error to trust."""
ROUNDING = 1e-13
"""A relative standard error below this is that of floating point: the rows are all equal."""
BATCH_LOGITS = 2**16
"""Logits worked on at a time: what stays in a core's cache."""


def measures(normaliser: Normaliser, z: np.ndarray) -> dict[str, np.ndarray]:
    """Return each measure of the rows of z (n_rows, n_keys), an array (n_rows,).

    participation_ratio and effective_keys, its inverse, are of the weights relative to their sum; both are 0 for a row
    without weights. zero_gradient_mass is the share of the weight on keys whose logit has exactly no gradient.
    """
    p = normaliser.weights(z)
    row_sum, square = p.sum(axis=-1), np.vecdot(p, p)
    some = square > 0
    norm = normaliser.jacobian_norm(z, p)
    support = np.count_nonzero(p, axis=-1)
    null = normaliser.null_mass(z)
    return {
        "row_sum": row_sum,
        "max_weight": p.max(axis=-1),
        "participation_ratio": np.divide(square, row_sum**2, out=np.zeros(square.shape), where=some),
        "effective_keys": np.divide(row_sum**2, square, out=np.zeros(square.shape), where=some),
        "support": support.astype(np.float64),
        "one_hot_share": (support == 1).astype(np.float64),
        **({} if null is None else {"null_mass": null}),
        "jacobian_frobenius": norm,
        # Every key with a weight has a slope, so that a row has gradients on all of them or on none.
        "zero_gradient_mass": (norm == 0).astype(np.float64),
    }


def simulate_normalisers(
    seed: int,
    n_logits: int,
    normalisers: Sequence[Normaliser] = NORMALISERS,
    logit_stds: Sequence[float] = LOGIT_STDS,
    n_keys: Sequence[int] = N_KEYS,
) -> list[dict[str, Any]]:
    """Measure the normalisers on the same rows of i.i.d. N(0, s²) logits, about n_logits for each number of keys.

    Returns:
        Rows normaliser, logit_std, n_keys, measure, estimate, se, median, median_se, exact, n_rows. The estimate of
        jacobian_frobenius is a root mean square over rows and has the median beside it; all others are means. Null
        mass and row sum have no standard error where a few rows hold most of the null mass.
    """
    rows = []
    for n in n_keys:
        n_rows = max(MIN_ROWS, min(MAX_ROWS, n_logits // n))
        rng = streams.generator(seed, "normalisers", n)
        g = streams.standard_normal(rng, (n_rows, n)).astype(np.float64)
        batches = np.array_split(g, max(1, g.size // BATCH_LOGITS))
        for normaliser in normalisers:
            for s in logit_stds:
                parts = [measures(normaliser, s * batch) for batch in batches]
                values = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
                exact = normaliser.exact(n, s)
                for measure in values:
                    key = dict(normaliser=normaliser.spelling, logit_std=s, n_keys=n, measure=measure)
                    rows.append(key | _summary(measure, values) | dict(exact=exact.get(measure), n_rows=n_rows))
    return rows


def _summary(measure: str, values: dict[str, np.ndarray]) -> dict[str, Any]:
    x, null = values[measure], values.get("null_mass")
    if measure == "jacobian_frobenius":
        (estimate, se), (median, median_se) = estimates.rms(x**2), quantiles.median(x[:, None])
    else:
        (estimate, se), (median, median_se) = estimates.mean(x), (None, None)
        if measure in ("null_mass", "row_sum") and null is not None and null.max() > TRUSTED_SHARE * null.sum():
            se = None
        elif se < ROUNDING * abs(estimate):
            se = 0.0
    return dict(estimate=estimate, se=se, median=median, median_se=median_se)


N_BLOCKS = 256
N_QUERIES = 4
WIDTHS = (4, 16, 64)
LINEAR_KEYS = 64
N_FEATURES = 256
RULES = ("none", "1/sqrt(d_k)")
BETWEEN = " and ".join(RULES)


def total_variation(p: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return half the sum of |p_j − p'_j| along the last axis."""
    return 0.5 * np.abs(p - other).sum(axis=-1)


def simulate_kernels(
    seed: int, widths: Sequence[int] = WIDTHS, n_keys: int = LINEAR_KEYS, n_blocks: int = N_BLOCKS
) -> list[dict[str, Any]]:
    """Measure attention without a row of logits on standard normal queries and keys, unscaled and scaled.

    Blocks have keys and random features of their own, and every standard error comes from between them.

    Returns:
        Rows attention, d_k, n_keys, scaling, measure, estimate, se, exact, n_rows, n_blocks.
    """
    rows = []
    for d_k in widths:
        rng = streams.generator(seed, "kernels", d_k, n_keys)
        blocks: dict[tuple[Any, ...], list[float]] = {}
        for _ in range(n_blocks):
            for key, values in _block(rng, d_k, n_keys):
                blocks.setdefault(key, []).append(float(np.mean(values)))
        exact = _exact(d_k)
        for (attention, scaling, measure), means in blocks.items():
            estimate, se = estimates.mean(np.array(means))
            place = dict(attention=attention, d_k=d_k, n_keys=n_keys, scaling=scaling, measure=measure)
            end = dict(n_rows=n_blocks * N_QUERIES, n_blocks=n_blocks)
            rows.append(place | dict(estimate=estimate, se=se, exact=exact.get((attention, scaling, measure))) | end)
    return rows


def _block(rng: np.random.Generator, d_k: int, n_keys: int) -> Iterator[tuple[tuple[str, str, str], np.ndarray]]:
    """Yield ((attention, scaling, measure), array of values) of one block."""
    q, k, omega = (streams.standard_normal(rng, (n, d_k)).astype(np.float64) for n in (N_QUERIES, n_keys, N_FEATURES))
    factors = {rule: parse(rule).constant(d_k, n_keys) for rule in RULES}
    additive, favor = kernels.Additive(np.full(d_k, 1 / math.sqrt(d_k))), kernels.RandomFeatures(omega)
    softmax = {rule: kernels.DotProduct().weights(q, k, c) for rule, c in factors.items()}
    for attention in (kernels.DotProduct(), kernels.RELU, kernels.ELU, favor, additive):
        found = {rule: attention.weights(q, k, c) for rule, c in factors.items()}
        yield (attention.name, BETWEEN, "total_variation_between_scales"), total_variation(*found.values())
        for rule, p in found.items():
            square = np.vecdot(p, p)
            # A query that meets no key has no weights, and attends to none.
            effective = np.divide(1.0, square, out=np.zeros(square.shape), where=square > 0)
            yield (attention.name, rule, "effective_keys"), effective
            if attention is favor:
                yield (attention.name, rule, "total_variation_from_softmax"), total_variation(p, softmax[rule])
                moment = kernels.log_relative_second_moment(q, k, factors[rule])
                yield (attention.name, rule, "log_relative_second_moment"), moment
    scores = additive.scores(q, k)
    yield (additive.name, "none", "score_variance"), scores**2
    yield (additive.name, "none", "within_row_variance"), scores.var(axis=-1, ddof=1)


def _exact(d_k: int) -> dict[tuple[Any, ...], float]:
    additive = kernels.Additive.name
    known = {
        (kernels.RELU.name, BETWEEN, "total_variation_between_scales"): 0.0,
        (additive, "none", "score_variance"): kernels.additive_score_variance(),
        (additive, "none", "within_row_variance"): kernels.additive_score_variance(within_row=True),
    }
    for rule in RULES:
        factor = parse(rule).constant(d_k, LINEAR_KEYS)
        known[kernels.RandomFeatures.name, rule, "log_relative_second_moment"] = 2 * factor * d_k
    return known
