"""Softmax rows whose keys arrive in pieces: a summary that does not grow with their number, and how two of them merge.

A row keeps its two largest scores and, over all keys but the largest, sums relative to the runner-up as in
`softmax.Rows`; one summary serves several scale factors. For gradients, upstream gradients v are centred on those other
keys: with f_j = p_j/p₂, m = Σ f v/Σ f, u = v − m and b = p₁(m − v_top) the gradient g = J v is
g_j = p₂ f_j (u_j + b) and g_top = −p₂ b Σf, so that

    ‖g‖² = p₂² [Σ f²u² + 2b Σ f²u + b² (Σf² + (Σf)²)],   Kᵀg = p₂ [Σ f u k + b (Σ f k − Σf k_top)].

Nothing cancels for one-hot rows, and a new largest key only moves the old one to the others. What needs every weight,
the spectral norm of the Jacobian, cannot be had.
"""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sqrtdk.rows import softmax
from sqrtdk.rows.gradients import SINGLE_OFFSET

INVISIBLE = 1e-30


@dataclass(frozen=True)
class Others:
    """Sums over all keys of a row but the largest, relative to the score `level`: f_j = exp(factor (score_j − level)).

    Axes: F scale factors, G upstream gradients, rows (...), the first rows (..., r, d) for what holds keys.

    level: (...), −inf where there is no such key; all sums are then 0.
    sum_1, sum_2, sum_3, sum_log: (F, ...), as in `softmax.Rows`.
    mean: (F, G, ...), m. slope, square: (F, G, ...), Σ f²u and Σ f²u².
    pulled: (F, G, ..., r, d), Σ f u k, in the precision of k; None stands for 0. keys: (F, ..., r, d), Σ f k.
    """

    level: np.ndarray
    sum_1: np.ndarray
    sum_2: np.ndarray
    sum_3: np.ndarray
    sum_log: np.ndarray
    mean: np.ndarray
    slope: np.ndarray
    square: np.ndarray
    pulled: np.ndarray | None
    keys: np.ndarray


@dataclass(frozen=True)
class StreamedRows:
    """Rows of any number of keys, in the axes of `Others`.

    factors: (F,) scale factors. n_keys: (...), keys that are not masked.
    first: (...), the largest score, −inf where there is no key. top: (...), its index, the first of equals.
    top_upstream: (G, ...), v_top. top_key: (..., r, d).
    """

    factors: np.ndarray
    n_keys: np.ndarray
    first: np.ndarray
    top: np.ndarray
    top_upstream: np.ndarray
    top_key: np.ndarray
    others: Others

    def rows(self, i: int) -> softmax.Rows:
        """Return the rows for the i-th factor; every measure but the spectral norm can be taken of them."""
        o = self.others
        alone = np.isneginf(o.level)
        gap = np.where(alone, softmax.FAR, self.first - np.where(alone, 0.0, o.level)) * self.factors[i]
        ratio = np.exp(-gap)
        n_keys = int(self.n_keys.flat[0]) if (self.n_keys == self.n_keys.flat[0]).all() else self.n_keys
        largest = softmax.largest_weight(ratio, o.sum_1[i], n_keys)
        sums = o.sum_1[i], o.sum_2[i], o.sum_3[i], o.sum_log[i]
        return softmax.Rows(self.top, gap, ratio, largest, n_keys, None, *sums)

    def norms(self, i: int, query_norm: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return, for each upstream gradient, the rows' ‖g_z‖, ‖g_q‖ and (Σ_j ‖g_{k_j}‖²)^½ as `gradients.norms` does.

        query_norm: ‖q‖, (...).
        """
        row, o, scale = self.rows(i), self.others, self.factors[i]
        n = self.top_key.shape[-2]
        results = []
        for j, top in enumerate(self.top_upstream):
            b = row.largest * (o.mean[i, j] - top)
            inside = o.square[i, j] + 2 * b * o.slope[i, j] + b * b * (row.sum_2 + row.sum_1**2)
            logits = row.second * np.sqrt(np.maximum(inside, 0.0))
            pull = o.keys[i] - row.sum_1[..., :n, None] * self.top_key
            assert o.pulled is not None
            pull = o.pulled[i, j] + b[..., :n, None] * pull
            query = scale * row.second[..., :n] * np.sqrt(np.vecdot(pull, pull).astype(np.float64))
            results.append((logits, query, scale * query_norm * logits))
        return results


def summarise(
    factors: Sequence[float],
    scores: np.ndarray,
    upstream: Sequence[np.ndarray] = (),
    k: np.ndarray | None = None,
    start: int = 0,
    n_pulled: int | None = None,
) -> StreamedRows:
    """Summarise one piece of the keys.

    Args:
        factors: positive scale factors.
        scores: q·k before scaling, (..., m, c), −inf at masked keys.
        upstream: ∂L/∂p at these keys, each (..., m, c). k: (..., c, d), for ‖g_q‖; None if it is not asked for.
        start: index of the first of these keys, to name the largest.
        n_pulled: only the first so many rows of a block get ‖g_q‖; None for all.
    """
    k = np.empty((*scores.shape[:-2], scores.shape[-1], 0)) if k is None else k
    ranked = softmax.rank(scores)
    n_keys = np.broadcast_to(ranked.n_keys, ranked.top.shape)
    level = np.where(n_keys > 1, ranked.second, -np.inf)
    first = np.where(n_keys > 0, softmax.take(scores, ranked.top), -np.inf).astype(np.float64)
    sums = [_sums(ranked.soften(factor), upstream, k, n_pulled) for factor in factors]
    top_upstream = np.array([softmax.take(v, ranked.top) for v in upstream]).reshape(len(upstream), *first.shape)
    top_key = np.take_along_axis(k, ranked.top[..., :n_pulled, None], axis=-2)
    others = Others(level, *(np.stack(part) for part in zip(*sums, strict=True)))
    return StreamedRows(np.array(factors, float), n_keys, first, ranked.top + start, top_upstream, top_key, others)


def _sums(row: softmax.Rows, upstream: Sequence[np.ndarray], k: np.ndarray, n_pulled: int | None) -> tuple[Any, ...]:
    """Return the sums of `Others` for one factor."""
    assert row.tail is not None  # a piece is held whole
    whole = np.where(row.sum_1 > 0, row.sum_1, 1.0)
    mean, slope, square, heads = [], [], [], []
    for v in upstream:
        mean.append(np.vecdot(row.tail, v) / whole)
        spread = v - mean[-1][..., None]
        spread *= row.tail
        slope.append(np.vecdot(row.tail, spread))
        square.append(np.vecdot(spread, spread))
        heads.append(spread[..., :n_pulled, :])
    heads.append(row.tail[..., :n_pulled, :])
    if k.dtype == np.float32:
        heads = [np.add(head, SINGLE_OFFSET, dtype=np.float32, casting="same_kind") for head in heads]
    # One product for all of them, so that the keys pass through the cache once.
    *parts, keys = np.split(np.concatenate(heads, axis=-2) @ k, len(heads), axis=-2)
    lead = (len(upstream), *row.sum_1.shape)
    centred = (np.array(x).reshape(lead) for x in (mean, slope, square))
    pulled = np.array(parts, k.dtype).reshape(len(upstream), *keys.shape)
    return row.sum_1, row.sum_2, row.sum_3, row.sum_log, *centred, pulled, keys


def merge(a: StreamedRows, b: StreamedRows) -> StreamedRows:
    """Return the summary of the keys of both; pieces may come in any order.

    The lesser of the two largest keys becomes one of the others, and all sums are taken to the new runner-up.
    """
    left = (a.first > b.first) | ((a.first == b.first) & (a.top <= b.top))
    heads = left[..., : a.top_key.shape[-2], None]
    top_key, lesser_key = np.where(heads, a.top_key, b.top_key), np.where(heads, b.top_key, a.top_key)
    upstream = a.top_upstream, b.top_upstream
    lesser = _one(np.minimum(a.first, b.first), np.where(left, *upstream[::-1]), lesser_key)
    return StreamedRows(
        factors=a.factors,
        n_keys=a.n_keys + b.n_keys,
        first=np.maximum(a.first, b.first),
        top=np.where(left, a.top, b.top),
        top_upstream=np.where(left, *upstream),
        top_key=top_key,
        others=_together(a.factors, (a.others, b.others, lesser)),
    )


def _one(score: np.ndarray, upstream: np.ndarray, key: np.ndarray) -> Others:
    """Return the sums over one key, which are those of all factors; over none where its score is −inf."""
    one = np.isfinite(score)[None].astype(np.float64)
    nothing = np.zeros((1, *upstream.shape))
    keys = key[None] * one[..., : key.shape[-2], None].astype(key.dtype)
    return Others(score, one, one, one, 0 * one, upstream[None], nothing, nothing, None, keys)


def _together(factors: np.ndarray, pieces: Sequence[Others]) -> Others:
    """Add sums after taking each to the highest level, f → rate·f, and to the mean of all of them, u → u + shift."""
    level = functools.reduce(np.maximum, [piece.level for piece in pieces])
    base = np.where(np.isneginf(level), 0.0, level)
    c = factors.reshape(-1, *(1 for _ in level.shape))
    falls = [c * np.maximum(piece.level - base, -softmax.FAR) for piece in pieces]
    rates = [np.exp(fall) for fall in falls]
    sum_1, sum_2, sum_3 = (
        sum(rate**power * getattr(piece, f"sum_{power}") for rate, piece in zip(rates, pieces, strict=True))
        for power in (1, 2, 3)
    )
    sum_log = sum(r * (p.sum_log + fall * p.sum_1) for r, fall, p in zip(rates, falls, pieces, strict=True))
    shares = [r * p.sum_1 / np.where(sum_1 > 0, sum_1, 1.0) for r, p in zip(rates, pieces, strict=True)]
    mean: Any = sum(share[:, None] * p.mean for share, p in zip(shares, pieces, strict=True))
    n, precision = pieces[0].keys.shape[-2], pieces[0].keys.dtype
    slope: Any = 0.0
    square: Any = 0.0
    pulled: Any = 0.0
    keys: Any = 0.0
    for rate, p in zip(rates, pieces, strict=True):
        shift, second = p.mean - mean, p.sum_2[:, None]
        slope = slope + rate[:, None] ** 2 * (p.slope + shift * second)
        square = square + rate[:, None] ** 2 * (p.square + shift * (2 * p.slope + shift * second))
        # Beside a runner-up of weight 1 what is below INVISIBLE is nothing, and products with it would be subnormal.
        heads = np.where(rate < INVISIBLE, 0.0, rate)[..., :n, None]
        keys = keys + heads.astype(precision) * p.keys
        pulled = pulled + (heads[:, None] * shift[..., :n, None]).astype(precision) * p.keys[:, None]
        if p.pulled is not None:
            pulled += heads[:, None].astype(precision) * p.pulled
    return Others(level, sum_1, sum_2, sum_3, sum_log, mean, slope, square, pulled, keys)


def merge_all(pieces: Iterable[StreamedRows]) -> StreamedRows:
    """Merge pieces as they come, holding two at a time."""
    return functools.reduce(merge, pieces)
