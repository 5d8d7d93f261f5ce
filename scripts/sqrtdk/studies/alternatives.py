"""Monte Carlo of every variant of attention on the same standard normal queries and keys: spread, saturation, gradient.

Rows of a block share their keys, so every standard error comes from between blocks.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sqrtdk.sampling import streams
from sqrtdk.statistics import estimates, quantiles
from sqrtdk.variants import notation
from sqrtdk.variants.normalisers import NORMALISERS

MIN_BLOCKS = 64
N_ROWS = 4096
"""Rows for each number of keys, unless N_LOGITS are fewer."""
N_LOGITS = 1_500_000
BATCH_LOGITS = 2**17
MAX_PRODUCT = 2**29
"""Multiplications spent on one variant's query gradients; beyond, the first queries of each block stand for all."""

MEASURES = (
    "logit_std",
    "entropy",
    "effective_keys",
    "max_weight",
    "row_sum",
    "grad_logits",
    "grad_query",
    "dead_share",
    "clipped_mass",
)
"""logit_std: root mean within-row variance of what enters the normaliser. entropy, effective_keys, max_weight: of the
weights, made to sum to 1; row_sum: their sum before. grad_logits, grad_query: norms of the gradient with respect to the
scaled scores, before any transform, and to the query, for an upstream ∂L/∂p of i.i.d. N(0, 1). dead_share: rows whose
gradient is exactly zero. clipped_mass: weight on keys whose own logit passes no gradient on."""
_NORMS = ("grad_logits", "grad_query")


def row_measures(
    variant: notation.Variant, scores: np.ndarray, q: np.ndarray, k: np.ndarray, upstream: np.ndarray
) -> dict[str, np.ndarray]:
    """Return each measure of every row (blocks, m): for logit_std the unbiased variance of the row's logits.

    Args:
        scores: q kᵀ (blocks, m, n). upstream: ∂L/∂p of the same shape. All float64.
    """
    normaliser = variant.normaliser or NORMALISERS["softmax"]()
    scaled = variant.scale(scores, q, k)
    z = variant.transform(scaled)
    p = normaliser.weights(z)
    slope = variant.slope(scaled)
    gradient = slope * normaliser.backward(z, p, upstream)
    pulled = max(1, min(scores.shape[1], MAX_PRODUCT // (MIN_BLOCKS * k.shape[1] * k.shape[2])))
    query_gradient = variant.query_gradient(scores, q, k, gradient, pulled)
    total = p.sum(axis=-1)
    share = p / np.where(total > 0, total, 1.0)[..., None]
    with np.errstate(divide="ignore"):
        logs = np.log(np.where(share > 0, share, 1.0))
    return {
        "logit_std": z.var(axis=-1, ddof=1),
        "entropy": -np.vecdot(share, logs),
        "effective_keys": 1 / np.where(total > 0, np.vecdot(share, share), 1.0),
        "max_weight": share.max(axis=-1),
        "row_sum": total,
        "grad_logits": np.sqrt(np.vecdot(gradient, gradient)),
        "grad_query": np.sqrt(np.vecdot(query_gradient, query_gradient)),
        "dead_share": np.all(gradient == 0, axis=-1).astype(float),
        "clipped_mass": np.vecdot(share, (slope == 0).astype(float)),
    }


def _batches(d_k: int, n_keys: int, seed: int) -> Iterator[tuple[Any, ...]]:
    """Yield q, k, their scores and upstream gradients, batch by batch of independent blocks."""
    n_rows = min(N_ROWS, N_LOGITS // n_keys)
    n_queries = max(1, n_rows // MIN_BLOCKS)
    at_once = max(1, min(MIN_BLOCKS, BATCH_LOGITS // (n_queries * n_keys)))
    rng = streams.generator(seed, "alternatives", d_k, n_keys)
    for first in range(0, MIN_BLOCKS, at_once):
        n = min(at_once, MIN_BLOCKS - first)
        q, k, v = (
            streams.standard_normal(rng, (n, *shape)).astype(float)
            for shape in ((n_queries, d_k), (n_keys, d_k), (n_queries, n_keys))
        )
        yield q, k, q @ k.swapaxes(-1, -2), v


def simulate(d_k: int, n_keys: Sequence[int], texts: Sequence[str], seed: int) -> list[dict[str, Any]]:
    """Return rows variant, d_k, n_keys, measure, estimate, se, median, median_se, exact, limit, n_rows, n_blocks.

    All variants see the same q, k and upstream gradients. Norms are root mean squares over rows with their median.
    `exact` is filled here for logit_std alone, and `limit` where it is known for many keys only.
    """
    rows = []
    for n in n_keys:
        found: dict[str, list[dict[str, Any]]] = {text: [] for text in texts}
        for q, k, scores, upstream in _batches(d_k, n, seed):
            for text, parts in found.items():
                parts.append(row_measures(notation.parse(text), scores, q, k, upstream))
        for text, parts in found.items():
            for measure in MEASURES:
                values = np.concatenate([part[measure] for part in parts])
                row = {"variant": text, "d_k": d_k, "n_keys": n, "measure": measure}
                rows.append(row | _summary(measure, values, notation.parse(text), d_k, n))
    return rows


def _summary(measure: str, values: np.ndarray, variant: notation.Variant, d_k: int, n_keys: int) -> dict[str, Any]:
    blocks, known, limit = values.mean(axis=1), None, None
    centre: tuple[float | None, float | None] = (None, None)
    if measure in _NORMS:
        estimate = estimates.rms(np.mean(values**2, axis=1))
        centre = quantiles.median(values)
    elif measure == "logit_std":
        estimate = estimates.plug_in(np.sqrt, blocks)
        known, limit = variant.exact_std(d_k, n_keys), variant.limit_std(d_k)
    else:
        estimate = estimates.mean(blocks)
    return dict(
        zip(("estimate", "se", "median", "median_se"), (*estimate, *centre), strict=True),
        exact=known,
        limit=limit,
        n_rows=values.size,
        n_blocks=len(values),
    )
