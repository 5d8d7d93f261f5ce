"""Moments of the score q·k from independent blocks, each with a standard error taken between blocks."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sqrtdk.sampling import blocks, streams
from sqrtdk.sampling.ensembles.base import Ensemble, Exact
from sqrtdk.statistics import quantiles
from sqrtdk.statistics.estimates import UNSTEADY, Estimate, bias_corrected, jackknife_skewness

QUANTILE_SCORES = 2**20
"""Scores kept for the quartiles; the moments use every score."""
"""Columns of score_histograms.csv."""
HISTOGRAM_BINS = 640
HISTOGRAM_SDS = 10.0
TRUSTED_SKEWNESS = 0.1  # ASSUME an estimate that is less skewed has a symmetric interval
CONSTANT = "the score has one absolute value, so that its variance is known without error"


@dataclass(frozen=True)
class BlockSums:
    """What one pass over the scores keeps.

    powers: (n_blocks, 4), each block's mean of (S − shift)^r for r = 1..4.
    within_row: (n_blocks,), each block's mean unbiased variance within a row.
    kept: (n_blocks, n), the scores kept for quantiles. counts: histogram of all scores, or None.
    """

    shift: float
    powers: np.ndarray
    within_row: np.ndarray
    kept: np.ndarray
    n_scores: int
    counts: np.ndarray | None
    edges: np.ndarray | None


def central_variance(means: np.ndarray) -> np.ndarray:
    """Variance from the first two raw moments on the last axis."""
    return means[..., 1] - means[..., 0] ** 2


def central_kurtosis(means: np.ndarray) -> np.ndarray:
    """Excess kurtosis from the first four raw moments on the last axis."""
    m1, m2, m3, m4 = (means[..., r] for r in range(4))
    return (m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4) / (m2 - m1**2) ** 2 - 3


def sum_blocks(
    ensemble: Ensemble, d_k: int, plan: blocks.Plan, rng: np.random.Generator, shift: float, scale: float | None
) -> BlockSums:
    """Draw a plan's blocks and keep their sums; `scale` is the unit of the histogram, None for no histogram."""
    m, n, stack, n_blocks = plan.n_queries, plan.n_keys, plan.stack, plan.n_blocks
    scores_per_product = m if ensemble.matched else m * n
    totals = np.zeros((5, n_blocks))
    want = -(-QUANTILE_SCORES // n_blocks)
    products_kept = min(stack, -(-want // scores_per_product))
    stride = max(1, scores_per_product * products_kept // want)
    per_product = len(range(0, scores_per_product, stride))
    dtype = np.float32 if ensemble.finite_moment > 8 else np.float64
    kept = np.empty((n_blocks, products_kept, per_product), dtype)
    edges = None if scale is None else np.linspace(-HISTOGRAM_SDS, HISTOGRAM_SDS, HISTOGRAM_BINS + 1) * scale
    counts = None if scale is None else np.zeros(HISTOGRAM_BINS + 2, np.int64)
    scratch, ones = np.empty((2, max(blocks.BATCH_SCORES, m * n)))
    ones[:], others = 1, n - 1 if ensemble.matched else n
    for block, product, scores in blocks.batches(ensemble, d_k, plan, rng):
        size, n_products = scores.shape[:2]
        if shift:
            scores -= shift
        flat = scores.reshape(size, -1)
        # A product with ones over all rows at once: sums over an axis of a few numbers are several times slower.
        row_sums = (scores.reshape(-1, n) @ ones[:n]).reshape(size, -1)
        within_row = second_power = np.vecdot(flat, flat)
        if ensemble.matched:
            flat = np.ascontiguousarray(np.einsum("bpii->bpi", scores)).reshape(size, -1)
            row_sums -= flat
            second_power = np.vecdot(flat, flat)
            within_row = within_row - second_power
        squares = np.multiply(flat, flat, out=scratch[: flat.size].reshape(flat.shape))
        here = totals[:, block : block + size]
        addends = flat if ensemble.matched else row_sums
        here[0] += np.vecdot(addends, ones[: addends.shape[1]])
        here[1] += second_power
        here[2] += np.vecdot(flat, squares)
        here[3] += np.vecdot(squares, squares)
        here[4] += within_row - np.vecdot(row_sums, row_sums) / others
        last = min(product + n_products, products_kept)
        if product < last:
            first_scores = flat.reshape(size, n_products, -1)[:, : last - product, ::stride]
            kept[block : block + size, product:last] = first_scores
        if counts is not None and edges is not None:
            bins = np.floor((flat + (shift - edges[0])) / (edges[1] - edges[0])).ravel()
            np.clip(bins, -1, HISTOGRAM_BINS, out=bins)
            counts += np.bincount((bins + 1).astype(np.int32), minlength=HISTOGRAM_BINS + 2)
    powers = totals[:4].T / (stack * scores_per_product)
    return BlockSums(
        shift,
        powers,
        totals[4] / (stack * m * (others - 1)) if others > 1 else np.full(n_blocks, np.nan),
        kept.reshape(n_blocks, -1),
        plan.n_products * scores_per_product,
        counts,
        edges,
    )


def simulate_cell(
    ensemble: Ensemble, d_k: int, name: str, seed: int, precision: float, max_scalars: float
) -> dict[str, Any]:
    """Simulate q·k of one cell.

    Returns {"row": the cell's line of moments.csv, "histogram": {"edges", "counts"} or None}. Each stream belongs to
    (stage, name, d_k), so no other cell and no order of work can change a number.
    """
    exact = ensemble.exact(d_k)

    def pilot(pilot_plan: blocks.Plan) -> float:
        sums = sum_blocks(
            ensemble, d_k, pilot_plan, streams.generator(seed, "pilot", name, d_k), exact.mean or 0.0, None
        )
        variance = bias_corrected(central_variance, sums.powers)
        return pilot_plan.n_products * (variance.se / variance.value) ** 2 if variance.value > 0 else math.inf

    heavy = ensemble.finite_moment <= 4
    # Where the variance estimate has no error, no number of blocks reaches one.
    with np.errstate(over="ignore", invalid="ignore"):
        plan = blocks.plan(ensemble, d_k, precision, max_scalars, (lambda _: math.inf) if heavy else pilot)
        rng = streams.generator(seed, "moments", name, d_k)
        scale = math.sqrt(exact.variance) if ensemble.known_density and exact.variance is not None else None
        sums = sum_blocks(ensemble, d_k, plan, rng, exact.mean or 0.0, scale)
    row = {"ensemble": name, "d_k": d_k, "n_blocks": plan.n_blocks, "n_scores": sums.n_scores}
    row |= _estimates(ensemble, exact, sums, plan.stopped_by)
    histogram = None
    if sums.counts is not None and sums.edges is not None:
        histogram = {"edges": sums.edges.tolist(), "counts": sums.counts.tolist()}
    return {"row": row, "histogram": histogram}


_MOMENTS = ("mean", "variance", "within_row_variance", "excess_kurtosis")
_QUARTILES = {"quartile_1": 0.25, "median": 0.5, "quartile_3": 0.75}


def _estimates(ensemble: Ensemble, exact: Exact, sums: BlockSums, stopped_by: str) -> dict[str, Any]:
    finite = ensemble.finite_moment
    reason = exact.reason
    estimates: dict[str, tuple[float | None, float | None]] = dict.fromkeys(_MOMENTS, (None, None))
    if finite > 2:
        estimates["mean"] = bias_corrected(lambda p: p[..., 0], sums.powers)
        estimates["variance"] = bias_corrected(central_variance, sums.powers)
        estimates["within_row_variance"] = bias_corrected(lambda p: p[..., 0], sums.within_row[:, None])
    if finite > 4:
        estimates["excess_kurtosis"] = bias_corrected(central_kurtosis, sums.powers)
    else:
        # The estimates are consistent, but their errors are infinite.
        estimates |= {name: (estimates[name][0], None) for name in ("variance", "within_row_variance")}
    if finite > 2 and np.ptp(sums.powers[:, 1]) == 0 and sums.shift == 0:
        # |S| is one constant: nothing about the variance is random once the mean is known to be 0.
        constant = float(sums.powers[0, 1])
        estimates["variance"] = Estimate(constant, 0.0)
        estimates["excess_kurtosis"] = Estimate(float(sums.powers[0, 3]) / constant**2 - 3, 0.0)
        stopped_by, reason = "degenerate", CONSTANT
    trusted = estimates["excess_kurtosis"][1] is not None and finite > 8 and stopped_by != "degenerate"
    if trusted:
        skewness = jackknife_skewness(central_kurtosis, sums.powers)
        if abs(skewness) / math.sqrt(len(sums.powers)) >= TRUSTED_SKEWNESS:
            trusted, reason = False, UNSTEADY
    row = {"stopped_by": stopped_by, "kurtosis_trusted": trusted, "reason": reason}
    for name, (value, se) in estimates.items():
        shift = sums.shift if name == "mean" else 0.0
        row |= {name: None if value is None else value + shift, f"{name}_se": se}
        row[f"exact_{name}"] = getattr(exact, name)
    quartiles, parts = quantiles.with_parts(sums.kept, _QUARTILES.values())
    for name, estimate in zip(_QUARTILES, quartiles, strict=True):
        row |= {name: estimate.value + sums.shift, f"{name}_se": estimate.se}
    distance = quantiles.difference(quartiles, parts)
    row |= {"interquartile_range": distance.value, "interquartile_range_se": distance.se}
    variance, error = estimates["variance"]
    row["relative_se"] = error / variance if error is not None and variance is not None and variance > 0 else None
    return row


def histogram_rows(cell: dict[str, Any]) -> list[dict[str, Any]]:
    """Lay a cell's histogram out in rows, one for each bin that holds a score; the outer bins are open."""
    if cell["histogram"] is None:
        return []
    row, edges, counts = cell["row"], cell["histogram"]["edges"], cell["histogram"]["counts"]
    bounds = zip([-math.inf, *edges], [*edges, math.inf], counts, strict=True)
    cell = {name: row[name] for name in ("ensemble", "d_k", "n_scores")}
    return [cell | {"low": low, "high": high, "count": count} for low, high, count in bounds if count]
