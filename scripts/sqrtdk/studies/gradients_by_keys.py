"""The gradient without the scale over that with 1/√d_k, by the number of keys and the width, for standard normal q, k.

Given ‖q‖ ~ χ(d_k) the logits of a row are c‖q‖x_j with independent normal x_j, and the parts of the keys across q are
independent of them, so that no vector is drawn: with g = J v and v = ∂L/∂p of independent N(0, 1) entries,

    ‖g_q‖² = c² [(Σ g_j x_j)² + ‖g‖² χ²(d_k − 1)].

Root mean squares are integrals (`gaussian_rows`). Medians are taken over rows of sorted x: the largest K of n are
x_k = Φ̄⁻¹(S_k/S_{n+1}) with sums S_k of exponential numbers, of which S_1/S_2 is uniform and decides the gap.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from sqrtdk.rows import gradients, softmax
from sqrtdk.sampling import streams
from sqrtdk.statistics import crossings, estimates, intervals, quantiles
from sqrtdk.theory import asymptotics, gaussian_rows, random_energy
from sqrtdk.theory.gaussian_rows import AveragesOf

MEASURES = ("jacobian_frobenius", "grad_logits", "grad_query")
N_KEYS = (2, 3, *(2**power for power in range(2, 13)))
WIDTHS = tuple(2**power for power in range(1, 13))
N_BLOCKS = 32
MOST_ROWS, MOST_LOGITS = 2**13, 2**19
"""Rows of each number of keys, and all of their logits."""
KEPT = 128
"""Keys that a row needs once it is frozen: at d_k >= FROZEN all others together have less than 1e-3 of the runner-up's
weight, up to 4096 keys."""
FROZEN = 64
KNOTS = 90
"""Spreads at which exact averages are integrated; between them they are interpolated to 1e-5."""
STRETCH = 1.1
"""Ratio of the two widths from which the slope at a crossover is taken."""
NEWTON_STEPS = 2
LEVELS = 1024
"""Different values that a χ law takes, in the middle of equally likely parts."""


class Log(NamedTuple):
    """The natural logarithm of a ratio and its standard error."""

    value: float
    se: float


@dataclass(frozen=True)
class Drawn:
    """Rows (n_blocks, rows, keys) that every width and scale rule shares.

    ranked: the normal numbers x, sorted in descending order. upstream: v less its value at the first key.
    along, across: (n_blocks, rows) which of LEVELS the length of the query and of the keys across it have.
    """

    x: np.ndarray
    ranked: softmax.Ranked
    upstream: np.ndarray
    along: np.ndarray
    across: np.ndarray


def draw(rng: np.random.Generator, n_keys: int, kept: int) -> Drawn:
    """Draw the `kept` largest of `n_keys` keys of as many rows as those allow."""
    n_rows = min(MOST_ROWS, MOST_LOGITS // kept) // N_BLOCKS
    shape = N_BLOCKS, n_rows
    ratio, along, across = ((_permuted(rng, shape) + rng.random(shape)) / n_rows for _ in range(3))
    steps = rng.exponential(size=(*shape, kept))
    # Of two keys, the second is at a sum of two exponential numbers, and the first anywhere below it.
    steps[..., 0] += steps[..., 1]
    sums = steps.copy()
    sums[..., 1] = 0.0
    sums = sums.cumsum(axis=-1)
    sums[..., 0] *= ratio
    total = sums[..., -1] + rng.gamma(n_keys + 1 - kept, size=shape)
    x = -special.ndtri(sums / total[..., None])
    ranked = softmax.rank(x)
    v = streams.standard_normal(rng, x.shape).astype(np.float64)
    levels = ((LEVELS * part).astype(int) for part in (along, across))
    return Drawn(x, ranked, gradients.from_top(ranked.top, v), *levels)


def _permuted(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.permuted(np.broadcast_to(np.arange(shape[1]), shape), axis=1)


def log_sizes(drawn: Drawn, d_k: float, factor: float) -> dict[str, np.ndarray]:
    """Return ln of ‖J‖_F, ‖g_z‖ and ‖g_q‖ of every row, each (n_blocks, rows), at a real width d_k > 1."""
    middle = (np.arange(LEVELS) + 0.5) / LEVELS
    length, rest = (np.sqrt(2 * special.gammaincinv(dof / 2, middle)) for dof in (d_k, d_k - 1))
    row = drawn.ranked.soften(factor * length[drawn.along])
    gradient = gradients.relative_logit_gradient(row, drawn.upstream)
    square = np.vecdot(gradient, gradient)
    pulled = np.vecdot(gradient, drawn.x) ** 2 + square * rest[drawn.across] ** 2
    second = np.log(row.second)
    return {
        "jacobian_frobenius": np.log(softmax.jacobian_frobenius(row)),
        "grad_logits": second + np.log(square) / 2,
        "grad_query": math.log(factor) + second + np.log(pulled) / 2,
    }


class Medians:
    """Medians of rows of `n_keys` keys at any width, from the same draws."""

    def __init__(self, n_keys: int, seed: int) -> None:
        rng = streams.generator(seed, "gradients_by_keys", n_keys)
        self.whole = self.largest = draw(rng, n_keys, n_keys)
        if n_keys > KEPT:
            self.largest = draw(rng, n_keys, KEPT)

    def n_rows(self, d_k: float) -> int:
        """Return how many rows the unscaled median is of."""
        return self._plain(d_k).along.size

    def _plain(self, d_k: float) -> Drawn:
        return self.largest if d_k >= FROZEN else self.whole

    def log_ratios(self, d_k: float) -> dict[str, Log]:
        """Return ln of the unscaled over the scaled median by measure."""
        sizes = log_sizes(self._plain(d_k), d_k, 1.0), log_sizes(self.whole, d_k, d_k**-0.5)
        found = {}
        for measure in MEASURES:
            (top, top_parts), (bottom, bottom_parts) = (quantiles.with_parts(size[measure], [0.5]) for size in sizes)
            error = estimates.mean((top_parts - bottom_parts)[:, 0]).se
            found[measure] = Log(top[0].value - bottom[0].value, error)
        return found


def exact_averages(n_keys: Sequence[int]) -> dict[int, AveragesOf]:
    """Return the exact averages of rows of each number of keys as functions of the spread of their logits."""
    spreads = np.sinh(np.linspace(0, math.asinh(random_energy.BENT), KNOTS))
    found = [random_energy.averages_of_each(n_keys, spread) for spread in spreads]
    return {
        n: random_energy.Interpolated({"spread": spreads} | _columns([row[i] for row in found]))
        for i, n in enumerate(n_keys)
    }


def _columns(rows: Sequence[random_energy.Averages]) -> dict[str, np.ndarray]:
    return {name: np.array([getattr(row, name) for row in rows]) for name in random_energy.COLUMNS[1:]}


class RootMeanSquares:
    """Root mean squares of rows of `n_keys` keys at any width, exactly."""

    def __init__(self, n_keys: int, averages_of: AveragesOf) -> None:
        self.n_keys, self.averages_of = n_keys, averages_of

    def n_rows(self, _: float) -> None:
        """Say that no rows are drawn."""

    def log_ratios(self, d_k: float) -> dict[str, Log]:
        """Return ln of the unscaled over the scaled root mean square by measure, without error."""
        mixed = gaussian_rows.standard_normal(d_k)
        plain, scaled = (
            gaussian_rows.measures(mixed, self.n_keys, factor, self.averages_of) for factor in (1.0, d_k**-0.5)
        )
        return {measure: Log(math.log(plain[measure] / scaled[measure]), 0.0) for measure in MEASURES}


def table(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of gradient_by_keys.csv and of key_crossovers.csv."""
    averages_of = exact_averages(N_KEYS)
    ratios, stars = [], []
    for n in N_KEYS:
        # The root mean square of ‖J‖_F is that of the logits' gradient.
        for quantity, sizes, measures in (
            ("median", Medians(n, seed), MEASURES),
            ("rms", RootMeanSquares(n, averages_of[n]), MEASURES[1:]),
        ):
            found = {d_k: sizes.log_ratios(d_k) for d_k in WIDTHS}
            for measure in measures:
                key = {"n_keys": n, "measure": measure, "quantity": quantity}
                logs = {d_k: ratio[measure] for d_k, ratio in found.items()}
                ratios += [key | {"d_k": d_k, "n_rows": sizes.n_rows(d_k)} | _ratio(*log) for d_k, log in logs.items()]
                known = (measure, quantity) == ("jacobian_frobenius", "median")
                formula = {"d_k_formula": asymptotics.frozen_crossover(n) if known else None}
                stars.append(key | _crossing(sizes, measure, [log.value for log in logs.values()]) | formula)
    return ratios, stars


def _ratio(log: float, se: float) -> dict[str, float | None]:
    low, high = intervals.log_interval(math.exp(log), se, N_BLOCKS - 1) if se else (None, None)
    return {"ratio": math.exp(log), "low": low, "high": high}


def _crossing(sizes: Medians | RootMeanSquares, measure: str, values: Sequence[float]) -> dict[str, Any]:
    """Return where a ratio falls below 1 for good, from its logarithms at WIDTHS and, nearby, at any width.

    Newton's steps from where the values at WIDTHS say that it is leave no error of interpolation.
    """
    found = crossings.falling(np.log(WIDTHS), np.array(values), np.zeros(len(values)), 0.0, "width")
    if found.at is None:
        return dict.fromkeys(("d_k_star", "ci_low", "ci_high")) | {"reason": found.reason}
    star = math.exp(found.at)
    for _ in range(NEWTON_STEPS):
        at, beyond = (sizes.log_ratios(d_k)[measure] for d_k in (star, star * STRETCH))
        slope = (at.value - beyond.value) / math.log(STRETCH)
        star *= math.exp(at.value / slope)
    reach = float(intervals.t_quantile(N_BLOCKS - 1)) * at.se / slope
    ends = {"ci_low": star * math.exp(-reach), "ci_high": star * math.exp(reach)}
    return {"d_k_star": star, **ends, "reason": None}
