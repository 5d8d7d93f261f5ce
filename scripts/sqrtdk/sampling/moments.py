"""Moments of the score q·k from independent blocks, each with a standard error taken between blocks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sqrtdk.sampling import blocks, streams
from sqrtdk.sampling.ensembles.base import Ensemble, Exact
from sqrtdk.statistics import quantiles
from sqrtdk.statistics.estimates import UNSTEADY, Estimate, bias_corrected, jackknife_skewness

QUANTILE_SCORES = 2**20
"""Scores kept for the quartiles, at `blocks.TYPICAL_PRECISION`; the moments use every score."""
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


def central_variance(means: np.ndarray) -> np.ndarray:
    """Variance from the first two raw moments on the last axis."""
    return means[..., 1] - means[..., 0] ** 2


def central_kurtosis(means: np.ndarray) -> np.ndarray:
    """Excess kurtosis from the first four raw moments on the last axis."""
    m1, m2, m3, m4 = (means[..., r] for r in range(4))
    return (m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4) / (m2 - m1**2) ** 2 - 3


def edges(scale: float) -> np.ndarray:
    """Return the edges of a histogram of scores of this standard deviation about their shift."""
    return np.linspace(-HISTOGRAM_SDS, HISTOGRAM_SDS, HISTOGRAM_BINS + 1) * scale


def sum_blocks(
    ensemble: Ensemble,
    d_k: int,
    plan: blocks.Plan,
    rng: np.random.Generator,
    shift: float,
    scale: float | None,
    wanted: int = 0,
) -> BlockSums:
    """Draw a plan's blocks and keep their sums.

    scale: unit of the histogram, None for no histogram. wanted: scores to keep of each product, about.
    """
    m, n, stack, n_blocks = plan.n_queries, plan.n_keys, plan.stack, plan.n_blocks
    scores_per_product = m if ensemble.matched else m * n
    totals = np.zeros((5, n_blocks))
    stride = max(1, scores_per_product // wanted) if wanted else scores_per_product
    per_product = len(range(0, scores_per_product, stride)) if wanted else 0
    dtype = np.float32 if ensemble.finite_moment > 8 else np.float64
    kept = np.empty((n_blocks, stack, per_product), dtype)
    bounds = None if scale is None else edges(scale)
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
        if per_product:
            of_products = flat.reshape(size, n_products, -1)[..., ::stride]
            kept[block : block + size, product : product + n_products] = of_products
        if counts is not None and bounds is not None:
            bins = np.floor((flat + (shift - bounds[0])) / (bounds[1] - bounds[0])).ravel()
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
    )


@dataclass(frozen=True)
class Draws:
    """What a cell has drawn so far, from which it can be continued.

    sums: of all blocks, as many as there are for `n_products`. quartiles: their estimates as columns of moments.csv,
    once all scores for them were drawn, which then are kept no more.
    """

    n_queries: int
    n_products: int
    stopped_by: str
    sums: BlockSums
    quartiles: dict[str, float] | None


def draw_cell(
    ensemble: Ensemble,
    d_k: int,
    name: str,
    seed: int,
    precision: float,
    max_scalars: float,
    before: Draws | None = None,
) -> Draws:
    """Draw the scores of one cell, or those that it still lacks.

    Each chunk's stream belongs to (stage, name, d_k, its place), so no other cell, no order of work and no earlier end
    can change a number. The pilot belongs to the ensemble, not to the seed: cells of several seeds have equal blocks.

    before: what the same cell of the same seed has drawn for less precision or fewer scalars.
    """
    exact = ensemble.exact(d_k)
    shift = exact.mean or 0.0
    scale = math.sqrt(exact.variance) if ensemble.known_density and exact.variance is not None else None

    def pilot(pilot_plan: blocks.Plan) -> float:
        sums = sum_blocks(ensemble, d_k, pilot_plan, streams.generator(0, "pilot", name, d_k), shift, None)
        variance = bias_corrected(central_variance, sums.powers)
        return pilot_plan.n_products * (variance.se / variance.value) ** 2 if variance.value > 0 else math.inf

    heavy = ensemble.finite_moment <= 4
    # Where the variance estimate has no error, no number of blocks reaches one.
    with np.errstate(over="ignore", invalid="ignore"):
        plan = blocks.plan(ensemble, d_k, precision, max_scalars, (lambda _: math.inf) if heavy else pilot)
        if before and (before.n_queries != plan.n_queries or before.n_products > plan.n_products):
            before = None
        parts, done = ([before.sums], before.n_products) if before else ([], 0)
        quartiles = before.quartiles if before else None
        enough = min(plan.typical, QUANTILE_SCORES)
        wanted = QUANTILE_SCORES // enough
        for first, size in blocks.chunks(plan.first):
            if first >= plan.n_products:
                break
            if first < done:
                continue
            stack = blocks.stack(first + size)
            if parts and stack > blocks.stack(first):
                parts = [_halved(_joined(parts))]
            chunk = replace(plan, stack=stack, n_blocks=size // stack)
            rng = streams.generator(seed, "moments", name, d_k, first)
            kept = wanted if first < enough else 0
            parts.append(sum_blocks(ensemble, d_k, chunk, rng, shift, scale, kept))
            if first + size == enough:
                quartiles = _quartiles(_joined(parts))
                parts = [without_kept(part) for part in parts]
    return Draws(plan.n_queries, plan.n_products, plan.stopped_by, _joined(parts), quartiles)


def _joined(parts: list[BlockSums]) -> BlockSums:
    """Put the blocks of parts in a row."""
    powers, within_row, kept = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("powers", "within_row", "kept")
    )
    histograms = [part.counts for part in parts if part.counts is not None]
    counts = np.sum(histograms, axis=0) if histograms else None
    return BlockSums(parts[0].shift, powers, within_row, kept, sum(part.n_scores for part in parts), counts)


def _halved(sums: BlockSums) -> BlockSums:
    """Make one block of two neighbours."""
    n = len(sums.powers) // 2
    powers, within_row = (values.reshape(n, 2, -1).mean(axis=1) for values in (sums.powers, sums.within_row))
    return replace(sums, powers=powers, within_row=within_row[:, 0], kept=sums.kept.reshape(n, 2 * sums.kept.shape[1]))


def without_kept(sums: BlockSums) -> BlockSums:
    """Return the sums without the scores that were kept for quantiles."""
    return replace(sums, kept=np.empty((len(sums.powers), 0), sums.kept.dtype))


def put_together(runs: Sequence[Draws]) -> BlockSums:
    """Return the blocks of independent draws of one cell, each as large as the largest of them.

    Where that is larger than a run's own blocks, its last ones may be too few for another; they are left out.
    """
    parts = []
    largest = max(blocks.stack(drawn.n_products) for drawn in runs)
    for drawn in runs:
        sums = without_kept(drawn.sums)
        for _ in range((largest // blocks.stack(drawn.n_products)).bit_length() - 1):
            even = len(sums.powers) // 2 * 2
            n_scores = sums.n_scores * even // len(sums.powers)
            cut = replace(sums, powers=sums.powers[:even], within_row=sums.within_row[:even], kept=sums.kept[:even])
            sums = _halved(replace(cut, n_scores=n_scores))
        parts.append(sums)
    return _joined(parts)


def mean_quartiles(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the means of independent quartiles and of their distances, as columns of moments.csv with their errors."""
    found = {}
    for name in (*_QUARTILES, "interquartile_range"):
        found[name] = sum(row[name] for row in rows) / len(rows)
        found[f"{name}_se"] = math.hypot(*(row[f"{name}_se"] for row in rows)) / len(rows)
    return found


def simulate_cell(
    ensemble: Ensemble, d_k: int, name: str, seed: int, precision: float, max_scalars: float
) -> dict[str, Any]:
    """Simulate q·k of one cell.

    Returns {"row": the cell's line of moments.csv, "histogram": {"edges", "counts"} or None}.
    """
    return describe_cell(ensemble, d_k, name, draw_cell(ensemble, d_k, name, seed, precision, max_scalars))


def describe_cell(ensemble: Ensemble, d_k: int, name: str, drawn: Draws) -> dict[str, Any]:
    """Return what is estimated from a cell's scores, as `simulate_cell` does."""
    exact, sums = ensemble.exact(d_k), drawn.sums
    row = {"ensemble": name, "d_k": d_k, "n_blocks": len(sums.powers), "n_scores": sums.n_scores}
    row |= _estimates(ensemble, exact, sums, drawn.stopped_by) | (drawn.quartiles or _quartiles(sums))
    histogram = None
    if sums.counts is not None and exact.variance is not None:
        histogram = {"edges": edges(math.sqrt(exact.variance)).tolist(), "counts": sums.counts.tolist()}
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
    variance, error = estimates["variance"]
    row["relative_se"] = error / variance if error is not None and variance is not None and variance > 0 else None
    return row


def _quartiles(sums: BlockSums) -> dict[str, float]:
    """Return the quartiles and their distance as columns of moments.csv, each with its error."""
    estimates, parts = quantiles.with_parts(sums.kept, _QUARTILES.values())
    row: dict[str, float] = {}
    for name, estimate in zip(_QUARTILES, estimates, strict=True):
        row |= {name: estimate.value + sums.shift, f"{name}_se": estimate.se}
    distance = quantiles.difference(estimates, parts)
    return row | {"interquartile_range": distance.value, "interquartile_range_se": distance.se}


def histogram_rows(cell: dict[str, Any]) -> list[dict[str, Any]]:
    """Lay a cell's histogram out in rows, one for each bin that holds a score; the outer bins are open."""
    if cell["histogram"] is None:
        return []
    row, edges, counts = cell["row"], cell["histogram"]["edges"], cell["histogram"]["counts"]
    bounds = zip([-math.inf, *edges], [*edges, math.inf], counts, strict=True)
    cell = {name: row[name] for name in ("ensemble", "d_k", "n_scores")}
    return [cell | {"low": low, "high": high, "count": count} for low, high, count in bounds if count]
