"""Monte Carlo of softmax over n independent Gaussian logits, for many standard deviations s from the same draws.

Rows are independent of each other, so every standard error is the plain one between rows.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special

from sqrtdk.rows import softmax
from sqrtdk.rows.softmax import Rows
from sqrtdk.sampling import streams
from sqrtdk.statistics import shares
from sqrtdk.statistics.estimates import Estimate
from sqrtdk.statistics.quantiles import woodruff

N_DRAWS = 16_000_000
"""Random numbers for each number of keys, unless that takes too many rows."""
MIN_ROWS, MAX_ROWS = 64, 2**19
BATCH_LOGITS = 2**16
"""Logits worked on at a time: what stays in a core's cache."""
MOST_PLAIN = 256
"""Rows of more keys are drawn by groups, which costs the same for any number of keys."""
TOP = 128
"""Expected number of keys that such a row draws one by one."""
CELL = 1 / 24
"""Width of the cells, in standard deviations, that hold its other keys."""
FAR_BELOW = -9.0
MOST_SPECTRAL = 4096
"""Rows of more keys get no spectral norm, which needs every key."""
SPECTRAL_SHARE = 8
"""Spectral norms get one random number in so many."""
TRUSTED_SKEWNESS = 0.1  # ASSUME
"""Largest skewness of a mean over rows at which its standard error is taken for that of a normal law."""
SQUARES = {"jacobian_square": "jacobian_frobenius", "spectral_square": "jacobian_spectral"}
"""Mean squares, and the names of their roots in the tables."""
GOALS = {"entropy": 0.01, "participation_ratio": 0.01, "jacobian_frobenius": 0.02, "jacobian_spectral": 0.02}
"""Relative standard errors aimed at."""

ROW_MEASURES = (
    "entropy",
    "participation_ratio",
    "cube",
    "jacobian_square",
    "jacobian_trace",
    "log_partition",
    "max_weight",
    "identity",
)


def exact(averages: Mapping[str, Any]) -> dict[str, Any]:
    """Return the exact values of the measures that have one, from `vars` of random_energy.Averages, or arrays so named.

    `identity` is 0 at any s.
    """
    return {
        "entropy": averages["entropy"],
        "participation_ratio": averages["participation"],
        "cube": averages["cube"],
        "jacobian_frobenius": averages["jacobian_square"] ** 0.5,
        "jacobian_trace": averages["trace"],
        "log_partition": averages["log_partition"],
    }


def row_measures(row: Rows, largest_logit: np.ndarray, spread: float) -> np.ndarray:
    """Return every one of ROW_MEASURES for each row, (measures, rows).

    `identity` is H − ln Z + s²(1 − Σp²), whose mean is 0 by Gaussian integration by parts.
    """
    entropy, trace = softmax.entropy(row), softmax.jacobian_trace(row)
    log_partition = largest_logit + np.log1p(row.ratio * row.sum_1)
    return np.stack(
        [
            entropy,
            softmax.participation_ratio(row),
            row.largest**3 + row.second**3 * row.sum_3,
            softmax.jacobian_frobenius(row) ** 2,
            trace,
            log_partition,
            row.largest,
            entropy - log_partition + spread**2 * trace,
        ]
    )


def plain_rows(
    rng: np.random.Generator, n_keys: int, n_rows: int, spreads: Sequence[float]
) -> Iterator[tuple[Rows, np.ndarray]]:
    """Draw every key of `n_rows` rows; yield, for each s, the softmax and the largest logit."""
    g = streams.standard_normal(rng, (n_rows, n_keys)).astype(np.float64)
    ranked, largest = softmax.rank(g), g.max(axis=-1)
    for s in spreads:
        yield ranked.soften(s), s * largest


class GroupedRows:
    """Rows of very many keys: the largest are drawn one by one, the others as numbers of keys in narrow cells.

    Keys above a threshold b, `TOP` of them on average, have a binomial number and independent values; below it the
    numbers in cells of width CELL are multinomial, and a key counts with its exact average over its cell. What is left
    out, the spread within cells, is (s CELL)²/12 of the small variance that the keys below b have in Z.
    """

    def __init__(self, n_keys: int, spreads: Sequence[float]) -> None:
        self.n_keys, self.spreads = n_keys, spreads
        self.share = TOP / n_keys
        self.b = -special.ndtri(self.share)
        edges = self.b - CELL * np.arange(math.ceil((self.b - FAR_BELOW) / CELL) + 1)
        probability = -np.diff(special.ndtr(edges))
        self.probability = probability / probability.sum()
        node, weight = np.polynomial.legendre.leggauss(8)
        x = (edges[:-1] + edges[1:])[:, None] / 2 + node * CELL / 2
        weight = weight * np.exp(-(x**2) / 2)
        weight /= weight.sum(axis=1, keepdims=True)
        below = x - self.b
        # For each s the cell averages of f, f², f³ and f ln f with f = e^{s(x − b)}.
        self.tables = [
            np.stack(
                [(weight * np.exp(k * s * below)).sum(axis=1) for k in (1, 2, 3)]
                + [(weight * s * below * np.exp(s * below)).sum(axis=1)],
                axis=1,
            )
            for s in spreads
        ]

    def __call__(self, rng: np.random.Generator, n_rows: int) -> Iterator[tuple[Rows, np.ndarray]]:
        """Draw rows; yield, for each s, the softmax (without its tail) and the largest logit."""
        number = rng.binomial(self.n_keys, self.share, n_rows)
        counts = rng.multinomial(self.n_keys - number, self.probability).astype(np.float64)
        g = -special.ndtri(self.share * (1 - rng.random((n_rows, number.max()))))
        g[np.arange(number.max()) >= number[:, None]] = -np.inf
        ranked, largest = softmax.rank(g), g.max(axis=-1)
        for s, table in zip(self.spreads, self.tables, strict=True):
            row = ranked.soften(s)
            first, square, cube, log = (counts @ table).T
            scale = np.exp(s * (self.b - ranked.second))
            sum_1 = row.sum_1 + scale * first
            row = replace(
                row,
                largest=softmax.largest_weight(row.ratio, sum_1, self.n_keys),
                n_keys=self.n_keys,
                tail=None,
                sum_1=sum_1,
                sum_2=row.sum_2 + scale**2 * square,
                sum_3=row.sum_3 + scale**3 * cube,
                sum_log=row.sum_log + scale * (log + s * (self.b - ranked.second) * first),
            )
            yield row, s * largest


class RowMoments:
    """Moments over independent rows that come in batches, with any leading axes."""

    def __init__(self) -> None:
        self.n = 0
        self.sums: np.ndarray = np.zeros(())

    def add(self, values: np.ndarray) -> None:
        """Add a batch (..., rows)."""
        if not self.n:
            # Sums about a value near the mean do not cancel.
            self.origin = values.mean(axis=-1)
        difference = values - self.origin[..., None]
        square = difference**2
        self.sums = self.sums + np.stack([x.sum(axis=-1) for x in (difference, square, square * difference)])
        self.n += values.shape[-1]

    def summary(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the means, their standard errors and the skewness that the means still have."""
        shift, second, third = self.sums / self.n
        variance = second - shift**2
        se = np.sqrt(variance / (self.n - 1))
        with np.errstate(invalid="ignore"):
            skewness = (third - 3 * shift * second + 2 * shift**3) / variance**1.5 / math.sqrt(self.n)
        return self.origin + shift, se, skewness


def median(values: np.ndarray) -> Estimate:
    """Return the median over independent rows; read its error as centre·exp(±1.96 se/centre)."""
    share_se = shares.binomial_error(0.5, len(values))
    return Estimate(*woodruff(lambda level: float(np.quantile(values, level)), 0.5, share_se, width=1.96)[:2])


def simulate(n_keys: int, spreads: Sequence[float], seed: int, n_draws: int = N_DRAWS) -> list[dict[str, Any]]:
    """Simulate rows of one number of keys for all standard deviations of the logits.

    The streams belong to the number of keys alone, so that another s leaves every other number as it is.

    Args:
        n_keys: at least 2. spreads: positive standard deviations. n_draws: random numbers, about.

    Returns:
        Rows n_keys, logit_std, measure, estimate, se, n_rows, trusted, precise. jacobian_frobenius and
        jacobian_spectral (up to MOST_SPECTRAL keys) are root mean squares, jacobian_median is a median and all others
        are means over rows. A row is trusted where its mean is nearly normal, and precise where it is trusted and
        reaches the measure's goal, None for a measure without one.
    """
    n_rows = _n_rows(n_draws, n_keys if n_keys <= MOST_PLAIN else TOP + round((4 - FAR_BELOW) / CELL))
    running, norms = _simulate_rows(n_keys, spreads, streams.generator(seed, "random_energy", n_keys), n_rows)
    found = {measure: tuple(x[:, i] for x in running.summary()) for i, measure in enumerate(ROW_MEASURES)}
    counts = dict.fromkeys(found, n_rows)
    if n_keys <= MOST_SPECTRAL:
        counts["spectral_square"] = _n_rows(n_draws // SPECTRAL_SHARE, max(n_keys, 64))
        rng = streams.generator(seed, "random_energy", n_keys, "spectral")
        found["spectral_square"] = _simulate_spectral(n_keys, spreads, rng, counts["spectral_square"]).summary()
    rows = []
    for i, s in enumerate(spreads):
        key = dict(n_keys=n_keys, logit_std=float(s))
        for measure, summary in found.items():
            mean, error, skewness = (float(x[i]) for x in summary)
            rows.append(key | _estimate(measure, mean, error, skewness, counts[measure]))
        centre, se = median(norms[i])
        rows.append(
            key | dict(measure="jacobian_median", estimate=centre, se=se, n_rows=n_rows, trusted=True, precise=None)
        )
    return rows


def _n_rows(n_draws: int, per_row: int) -> int:
    return min(MAX_ROWS, max(MIN_ROWS, n_draws // per_row))


def _batches(n_rows: int, per_row: int) -> Iterator[int]:
    batch = max(1, BATCH_LOGITS // per_row)
    for first in range(0, n_rows, batch):
        yield min(batch, n_rows - first)


def _simulate_rows(
    n_keys: int, spreads: Sequence[float], rng: np.random.Generator, n_rows: int
) -> tuple[RowMoments, np.ndarray]:
    """Return the moments of ROW_MEASURES, (spreads, measures), and every row's ‖J‖_F, (spreads, rows)."""
    grouped = GroupedRows(n_keys, spreads) if n_keys > MOST_PLAIN else None
    running, norms = RowMoments(), []
    for n in _batches(n_rows, min(n_keys, MOST_PLAIN)):
        softened = grouped(rng, n) if grouped else plain_rows(rng, n_keys, n, spreads)
        pairs = zip(spreads, softened, strict=True)
        values = np.stack([row_measures(row, largest, s) for s, (row, largest) in pairs])
        running.add(values)
        norms.append(np.sqrt(values[:, ROW_MEASURES.index("jacobian_square")]))
    return running, np.concatenate(norms, axis=1)


def _simulate_spectral(n_keys: int, spreads: Sequence[float], rng: np.random.Generator, n_rows: int) -> RowMoments:
    """Return the moments of λ₁², (spreads,)."""
    running = RowMoments()
    for n in _batches(n_rows, n_keys):
        softened = plain_rows(rng, n_keys, n, spreads)
        running.add(np.stack([softmax.jacobian_spectral(row) ** 2 for row, _ in softened]))
    return running


def _estimate(measure: str, mean: float, se: float, skewness: float, n_rows: int) -> dict[str, Any]:
    """Return the part of a row that says what was found; a mean square gives its root."""
    if measure in SQUARES:
        measure, mean, se = SQUARES[measure], mean**0.5, se / (2 * mean**0.5)
    trusted = abs(skewness) <= TRUSTED_SKEWNESS
    precise = trusted and se <= GOALS[measure] * mean if measure in GOALS else None
    return dict(measure=measure, estimate=mean, se=se, n_rows=n_rows, trusted=trusted, precise=precise)
