"""The much-copied count of softmax gradients below 1e-10: made again as it is made, and in arithmetic that is exact.

The code that is copied draws blocks of five queries and five keys, N(0, I), and counts the entries of y(1 − y) of the
rows y of softmax(q·k), without a scale and in single precision. An entry is below the threshold where its weight is
tiny, or where it is so near 1 that all other weights are; the first says nothing of what the row passes back.
"""

import math
from typing import Any

import numpy as np
from scipy import special

from sqrtdk.rows import softmax
from sqrtdk.sampling import streams
from sqrtdk.statistics import estimates
from sqrtdk.theory import gaussian_rows
from sqrtdk.variants.notation import parse

PUBLISHED = {10: 0.0001, 100: 0.1609, 1000: 0.6950}
"""Share of entries that the copies print, by d_k, without a scale."""
N_KEYS = 5
"""Keys and queries of a block."""
THRESHOLD = 1e-10
RULES = ("none", "1/sqrt(d_k)")
MAX_SCALARS = 200_000_000
BATCH_SCALARS = 2**21
STEP = 0.5


def table(n_rows: int, seed: int) -> list[dict[str, Any]]:
    """Return the rows of tiny_gradients.csv from about `n_rows` rows for each d_k, fewer where they cost too much."""
    rows = []
    for d_k in PUBLISHED:
        n_blocks = max(2, min(n_rows, MAX_SCALARS // (2 * d_k)) // N_KEYS)
        blocks = simulate(d_k, n_blocks, seed)
        for (scaling, arithmetic, statistic), values in blocks.items():
            estimate, se = estimates.mean(values)
            row = dict(d_k=d_k, n_keys=N_KEYS, scaling=scaling, arithmetic=arithmetic, statistic=statistic)
            row |= dict(estimate=estimate, se=se, theory=None, published=None, n_rows=n_blocks * N_KEYS)
            if arithmetic == "exact":
                row["theory"] = theory(d_k, scaling).get(statistic)
            elif (scaling, statistic) == ("none", "share_of_entries"):
                row["published"] = PUBLISHED[d_k]
            rows.append(row)
    return rows


def simulate(d_k: int, n_blocks: int, seed: int) -> dict[tuple[str, str, str], np.ndarray]:
    """Return the share in each block, (n_blocks,), by scale rule, arithmetic and statistic.

    The queries of a block share its keys, and its entries the query: only blocks are independent.
    """
    rng = streams.generator(seed, "tiny_gradients", d_k)
    batch = max(1, BATCH_SCALARS // (2 * N_KEYS * d_k))
    parts: dict[tuple[Any, ...], list[Any]] = {}
    for first in range(0, n_blocks, batch):
        shape = (min(batch, n_blocks - first), N_KEYS, d_k)
        scores = streams.standard_normal(rng, shape) @ streams.standard_normal(rng, shape).swapaxes(-1, -2)
        ranked = softmax.rank(scores)
        for scaling in RULES:
            factor = parse(scaling).constant(d_k, N_KEYS)
            for arithmetic, values in (
                ("float32", naive(np.float32(factor) * scores)),
                ("exact", exact(ranked.soften(factor))),
            ):
                for statistic, share in _shares(*values).items():
                    parts.setdefault((scaling, arithmetic, statistic), []).append(share)
    return {key: np.concatenate(shares) for key, shares in parts.items()}


def naive(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return y, y(1 − y) and ‖diag(y) − y yᵀ‖_F of float32 logits (..., n), as single precision has them."""
    y = np.exp(logits - logits.max(axis=-1, keepdims=True))
    y /= y.sum(axis=-1, keepdims=True)
    jacobian = np.eye(y.shape[-1], dtype=y.dtype) * y[..., None] - y[..., None] * y[..., None, :]
    return y, y * (1 - y), np.sqrt(np.sum(jacobian**2, axis=(-2, -1)))


def exact(row: softmax.Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the same three without cancellation: 1 − y of the largest weight is the sum of the others."""
    y = softmax.weights(row)
    rest = 1 - y
    np.put_along_axis(rest, row.top[..., None], row.others[..., None], axis=-1)
    return y, y * rest, softmax.jacobian_frobenius(row)


def _shares(y: np.ndarray, entry: np.ndarray, norm: np.ndarray) -> dict[str, np.ndarray]:
    tiny = entry <= THRESHOLD
    found = {
        "share_of_entries": tiny,
        "share_of_small_weights": tiny & (y < 0.5),
        "share_of_zero_entries": entry == 0,
        "share_of_rows": norm[..., None] <= THRESHOLD,
    }
    return {name: values.mean(axis=(-2, -1)) for name, values in found.items()}


def theory(d_k: int, scaling: str) -> dict[str, float]:
    """Return the exact shares of entries that count, and that count because their weight is small.

    y(1 − y) <= THRESHOLD where the log-odds z₁ − ln Σ e^{z_j} of the other four keys lie outside ±L. Given ‖q‖ the
    logits are independent and normal; the four are two independent pairs, and ln(e^{z₂} + e^{z₃}) has the density
    ∫ f(x − ln(1 + e^w)) f(x − ln(1 + e^{−w})) dw.
    """
    factor = parse(scaling).constant(d_k, N_KEYS)
    root = math.sqrt(1 - 4 * THRESHOLD)
    limit = math.log((1 + root) ** 2 / (4 * THRESHOLD))
    shares = np.zeros(2)
    for square, share in zip(*gaussian_rows.chi_square(d_k), strict=True):
        shares += share * np.array(_outside(factor * math.sqrt(square), limit))
    return {"share_of_entries": float(shares.sum()), "share_of_small_weights": float(shares[0])}


def _outside(spread: float, limit: float) -> tuple[float, float]:
    """Return the probabilities that the log-odds of one of five weights lie below −limit and above limit."""
    step = STEP * max(1.0, spread / 8)
    x = np.arange(-7 * spread, 7 * spread + 2, step)
    w = np.arange(0, 15 * spread + 30, step)
    with np.errstate(under="ignore"):
        pair = np.exp(
            -((x[:, None] - np.logaddexp(0, w)) ** 2 + (x[:, None] - np.logaddexp(0, -w)) ** 2) / (2 * spread**2)
        )
        # The density is even in w, so that its sum runs from the middle.
        density = (2 * pair.sum(axis=1) - pair[:, 0]) * step**2 / (2 * math.pi * spread**2)
        others = np.logaddexp(x[:, None], x)
        below, above = (density @ special.ndtr(place / spread) @ density for place in (others - limit, -others - limit))
        return float(below), float(above)
