"""Monte Carlo of one cell: how saturated its attention rows are and how large their gradients, for every scale rule.

Rows of a block share their keys, so every standard error comes from between blocks.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from . import gradients, softmax, streams
from .scalings import SCALINGS

N_LOGITS = 400_000
"""Logits drawn for each number of keys, unless that takes too many rows or random numbers."""
MIN_BLOCKS = 32
MIN_QUERIES = 8
"""Queries per block even at small d_k, where sharing keys saves little: smaller products cost more than they give."""
MAX_ROWS = 2**13
"""More rows than this tell less than they cost when there are few keys."""
MAX_SCALARS = 10_000_000
"""Random numbers for q and k for each number of keys; exceeded where MIN_BLOCKS blocks of few queries need more."""
BATCH_LOGITS = 2**16
"""Logits worked on at a time: what stays in a core's cache."""
BATCH_SCALARS = 2**22
"""Random numbers for q and k held at a time, at least one block."""
MAX_PRODUCT = 2**31
"""Multiplications spent on each kind of query gradient; beyond, fewer queries of each block are used."""
SPECTRAL_SHARE = 8
"""One query in so many gets its spectral norm."""

GRADIENTS = ("grad_logits", "grad_query", "grad_key")
"""Row gradient norms with an upstream ∂L/∂p of i.i.d. N(0, 1)."""
VALUES = "_values"
"""Suffix of the same with the upstream gradient through values, ∂L/∂p_j = V_j·u."""


@dataclass(frozen=True)
class Plan:
    """`n_blocks` independent blocks of `n_queries` rows, `batch` blocks at a time.

    n_pulled, n_spectral: the first so many rows of each block get a query gradient and a spectral norm.
    """

    n_keys: int
    n_blocks: int
    n_queries: int
    batch: int
    n_pulled: int
    n_spectral: int


def plan(d_k: int, n_keys: int, n_logits: int, matched: bool) -> Plan:
    """Choose blocks and queries per block, from the costs alone and before anything is drawn.

    About d_k queries per block make drawing q and k as cheap as the rest; fewer would be more independent, more would
    learn little from the same keys. Where q_i and k_i are drawn together each row has its own key, and so
    n_queries <= n_keys.
    """
    n_rows = min(MAX_ROWS, max(MIN_BLOCKS, n_logits // n_keys))
    most = n_rows // MIN_BLOCKS
    affordable = max(MIN_QUERIES, MAX_SCALARS // (MIN_BLOCKS * d_k) - n_keys)
    n_queries = max(1, min(most, affordable, max(MIN_QUERIES, d_k)))
    if matched:
        n_queries = min(n_queries, n_keys)
    scalars = (n_queries + n_keys) * d_k
    n_blocks = max(MIN_BLOCKS, min(n_rows // n_queries, MAX_SCALARS // scalars))
    batch = max(1, min(n_blocks, BATCH_LOGITS // (n_queries * n_keys), BATCH_SCALARS // scalars))
    n_pulled = max(1, min(n_queries, MAX_PRODUCT // (n_blocks * n_keys * d_k)))
    return Plan(n_keys, n_blocks, n_queries, batch, n_pulled, math.ceil(n_queries / SPECTRAL_SHARE))


def upstream_normals(
    rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw both upstream gradients ∂L/∂p of a block's rows, each (n_blocks, n_queries, n_keys) with unit variances.

    Returns:
        i.i.d. N(0, 1); and V_j·u_i with V (n_keys, d_k) i.i.d. N(0, 1) shared by the rows of a block and
        u_i ~ N(0, I/d_k) for each row. The second is drawn in the basis of the u's: U = LQ with Bartlett's L
        (n_queries, r), r = min(n_queries, d_k), and V Qᵀ is again i.i.d. normal: the cost does not grow with d_k.
    """
    normals = streams.standard_normal(rng, (n_blocks, n_queries, n_keys)).astype(np.float64)
    r = min(n_queries, d_k)
    lower = np.tril(rng.standard_normal((n_blocks, n_queries, r)), -1)
    diagonal = np.arange(r)
    lower[:, diagonal, diagonal] = np.sqrt(rng.chisquare(d_k - diagonal, size=(n_blocks, r)))
    lower /= math.sqrt(d_k)
    # The first normals serve for both: the two upstream gradients are never compared within a row.
    return normals, lower @ normals[:, :r]


def _row_values(ensemble, d_k: int, plan: Plan, factors: Sequence[float], rng, rng_upstream) -> Iterator[dict]:
    """Yield (index of the scaling, measure name -> (batch, rows) array), batch by batch."""
    for first in range(0, plan.n_blocks, plan.batch):
        n = min(plan.batch, plan.n_blocks - first)
        q, k = ensemble.draw(rng, n, plan.n_queries, plan.n_keys, d_k)
        ranked = softmax.rank(q @ k.swapaxes(-1, -2))
        query_norm = np.sqrt(np.vecdot(q, q).astype(np.float64))
        upstream = upstream_normals(rng_upstream, n, plan.n_queries, plan.n_keys, d_k)
        differences = [gradients.from_top(ranked.top, v) for v in upstream]
        for i, factor in enumerate(factors):
            row = ranked.soften(factor)
            values = {}
            for name, measure in softmax.MEASURES.items():
                if plan.n_keys >= measure.least_keys:
                    values[name] = measure.of(row[:, : plan.n_spectral] if measure.costly else row)
            norms = gradients.norms(row, differences, query_norm, k, factor, plan.n_pulled)
            for suffix, triple in zip(("", VALUES), norms, strict=True):
                values |= {name + suffix: norm for name, norm in zip(GRADIENTS, triple, strict=True)}
            yield i, values


def mean(block_means: np.ndarray) -> tuple[float, float]:
    """Return the mean over independent blocks of equal size and its standard error."""
    return jackknife(block_means, lambda x: x)


def rms(block_means: np.ndarray) -> tuple[float, float]:
    """Return the root of the mean of squares over blocks of equal size and its standard error."""
    return jackknife(block_means, np.sqrt)


def jackknife(block_means: np.ndarray, statistic: Callable) -> tuple[float, float]:
    """Return statistic(mean over blocks) and its delete-one-block jackknife standard error.

    block_means: (n_blocks,), one independent value per block.
    """
    n = len(block_means)
    full = block_means.mean()
    # A mean is no smaller than its smallest value; the difference may be, by a rounding error, and then has no root.
    left_out = statistic(np.maximum((n * full - block_means) / (n - 1), block_means.min()))
    return float(statistic(full)), float(math.sqrt((n - 1) * np.mean((left_out - left_out.mean()) ** 2)))


def median(values: np.ndarray) -> tuple[float, float]:
    """Return the median over all rows and its standard error between blocks (Woodruff 1952).

    The share of rows below the median has a standard error between blocks; the 95 % interval of that share, read
    through the pooled quantiles, is the interval of the median. Its width is taken on a logarithmic scale, where it is
    symmetric even if the rows span many decades (read it as centre·exp(±1.96 se/centre)), unless it reaches down to 0.

    Args:
        values: (n_blocks, n_rows), not negative, independent between blocks only.
    """
    ordered = np.sort(values, axis=None)
    centre = float(np.quantile(ordered, 0.5))
    share = np.mean(values <= centre, axis=1)
    _, se = mean(share)
    low, high = np.quantile(ordered, [max(0.0, 0.5 - 1.96 * se), min(1.0, 0.5 + 1.96 * se)])
    width = centre * math.log(high / low) if low > 0 else float(high - low)
    return centre, width / (2 * 1.96)


def simulate_cell(
    ensemble, d_k: int, n_keys: Sequence[int], scalings: Sequence[str], seed: int, name: str, n_logits: int = N_LOGITS
) -> tuple[list[dict], list[dict]]:
    """Simulate the attention rows of one ensemble at one d_k; return saturation rows and gradient rows.

    All scale rules see the same q, k and upstream gradients. Each number of keys has its own streams, so that adding
    one, or a scale rule, leaves every other number as it is.

    Args:
        ensemble: has `draw(rng, n_blocks, n_queries, n_keys, d_k)` and `matched`.
        n_keys: keys per row, each at least 1. scalings: names of scale rules.
        seed, name: root seed of the run and name of the ensemble, the identity of the streams.
        n_logits: logits for each number of keys.

    Returns:
        Rows ensemble, d_k, n_keys, scaling, measure, estimate, se, theory, n_rows, n_blocks, and for gradients median
        and median_se. Norms are root mean squares over rows, all other estimates means. The estimate is None where a
        measure is undefined (normalised by what is zero for a single key).
    """
    saturation_rows, gradient_rows = [], []
    for n in n_keys:
        chosen = plan(d_k, n, n_logits, ensemble.matched)
        factors = [SCALINGS[scaling].factor(d_k, n) for scaling in scalings]
        rng, rng_upstream = (streams.generator(seed, "softmax", name, d_k, n, part) for part in ("qk", "upstream"))
        batches: list[list[dict]] = [[] for _ in factors]
        for i, values in _row_values(ensemble, d_k, chosen, factors, rng, rng_upstream):
            batches[i].append(values)
        for scaling, parts in zip(scalings, batches, strict=True):
            key = {"ensemble": name, "d_k": d_k, "n_keys": n, "scaling": scaling}
            values = {measure: np.concatenate([part[measure] for part in parts]) for measure in parts[0]}
            for measure, how in softmax.MEASURES.items():
                saturation_rows.append(key | _saturation_row(measure, how.summary, values.get(measure)))
            for suffix in ("", VALUES):
                for measure in GRADIENTS:
                    gradient_rows.append(key | _gradient_row(measure + suffix, values[measure + suffix]))
    return saturation_rows, gradient_rows


def _summary(values: np.ndarray, how: str) -> tuple[float, float]:
    return rms(np.mean(values**2, axis=1)) if how == "rms" else mean(np.mean(values, axis=1))


def _saturation_row(measure: str, how: str, values: np.ndarray | None) -> dict:
    estimate, se = (None, None) if values is None else _summary(values, how)
    n_rows, n_blocks = (0, 0) if values is None else (values.size, len(values))
    # No closed form is known here for q·k; a numerical reference would stand in `theory`.
    return dict(measure=measure, estimate=estimate, se=se, theory=None, n_rows=n_rows, n_blocks=n_blocks)


def _gradient_row(measure: str, values: np.ndarray) -> dict:
    estimate, se = _summary(values, "rms")
    centre, centre_se = median(values)
    return dict(
        measure=measure,
        estimate=estimate,
        se=se,
        median=centre,
        median_se=centre_se,
        theory=None,
        n_rows=values.size,
        n_blocks=len(values),
    )
