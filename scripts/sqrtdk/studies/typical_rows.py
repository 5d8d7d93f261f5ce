"""What a row of attention weights looks like: its weights in order of size, averaged over independent rows."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sqrtdk.rows import softmax
from sqrtdk.sampling import streams
from sqrtdk.statistics import estimates
from sqrtdk.variants.notation import parse

RANKS = 16
"""Weights shown one by one, from the largest; those of the other keys are added up."""
QUANTILES = (0.1, 0.5, 0.9)
MIN_ROWS, MAX_ROWS = 64, 8192
BATCH = 2**18
"""Logits worked on at a time."""


def typical_rows(
    d_k: Sequence[int], n_keys: Sequence[int], scalings: Sequence[str], n_logits: int, seed: int
) -> list[dict[str, Any]]:
    """Draw rows of q·k of independent standard normal q and k, and return their sorted weights under each scale rule.

    Given its query the scores of a row are independent normal with variance |q|², and |q|² is χ² with d_k degrees of
    freedom: both are drawn directly, at a cost that does not grow with d_k. All rules see the same rows.

    Args:
        n_logits: at most so many for each width and number of keys, but at least MIN_ROWS rows.
        scalings: rules whose factor is a constant.

    Returns:
        Rows d_k, n_keys, scaling, first_rank, last_rank (the largest weight has rank 1; more than one rank: their
        weights added up), estimate and se (mean over rows), q10, median, q90 (over rows), n_rows.
    """
    rows: list[dict[str, Any]] = []
    for d in d_k:
        for n in n_keys:
            n_rows = min(MAX_ROWS, max(MIN_ROWS, n_logits // n))
            by_rule: dict[str, list[np.ndarray]] = {scaling: [] for scaling in scalings}
            for ranked in _drawn(d, n, n_rows, seed):
                for scaling in scalings:
                    by_rule[scaling].append(_sorted_weights(ranked.soften(parse(scaling).constant(d, n))))
            for scaling, parts in by_rule.items():
                rows += _summary(np.concatenate(parts), {"d_k": d, "n_keys": n, "scaling": scaling})
    return rows


def _drawn(d_k: int, n_keys: int, n_rows: int, seed: int) -> Iterator[softmax.Ranked]:
    """Yield the scores of the rows batch by batch."""
    rng = streams.generator(seed, "typical_rows", d_k, n_keys)
    batch = max(1, BATCH // n_keys)
    for first in range(0, n_rows, batch):
        n = min(batch, n_rows - first)
        norm = np.sqrt(rng.chisquare(d_k, size=(n, 1)))
        yield softmax.rank(norm * rng.standard_normal((n, n_keys)))


def _sorted_weights(row: softmax.Rows) -> np.ndarray:
    """Return the largest weights in order, and behind them the sum of the others where there are any."""
    weights = softmax.weights(row)
    n = weights.shape[-1]
    if n > RANKS:
        weights = np.partition(weights, n - RANKS, axis=-1)
    top = np.sort(weights[:, -RANKS:], axis=-1)[:, ::-1]
    return top if n <= RANKS else np.column_stack([top, weights[:, :-RANKS].sum(axis=-1)])


def _summary(weights: np.ndarray, identity: dict[str, Any]) -> Iterator[dict[str, Any]]:
    n_rows, places = weights.shape
    quantiles = np.quantile(weights, QUANTILES, axis=0)
    for place in range(places):
        first, last = place + 1, place + 1 if place < RANKS else identity["n_keys"]
        estimate, se = estimates.mean(weights[:, place])
        row = identity | {"first_rank": first, "last_rank": last, "estimate": estimate, "se": se}
        names = ("q10", "median", "q90")
        yield row | dict(zip(names, quantiles[:, place].tolist(), strict=True)) | {"n_rows": n_rows}
