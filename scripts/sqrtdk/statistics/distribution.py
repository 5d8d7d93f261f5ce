"""Statistics of attention rows that are dependent within a block: means, quantiles, shares, and who holds the energy.

Values are arrays (n_blocks, n_rows), independent between blocks only, so that every error comes from between blocks.
"""

import math
from collections.abc import Callable

import numpy as np

LEVELS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Quantiles of a table: the deciles and both tails."""
THRESHOLDS = {"1e-3": 1e-3, "1e-6": 1e-6, "1e-10": 1e-10}
"""A gradient norm below one of these may be said to have vanished."""
RELATIVE = 0.01
"""So may one below this share of the uniform row's norm."""
TOP = 0.1
"""Share of the rows, those with the largest gradients, whose energy is counted."""
Z = 1.959963984540054


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


def student(n_blocks: int) -> float:
    """Return the 97.5 % point of Student's t with n_blocks − 1 degrees of freedom, at least 8, to 1e-3.

    Abramowitz & Stegun (1964), 26.7.5: no library of special functions is worth loading for it.
    """
    if n_blocks < 9:
        raise ValueError("a 95 % interval needs at least 9 blocks")
    dof = n_blocks - 1
    terms = (Z**3 + Z) / 4, (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96, (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384
    return Z + sum(term / dof**power for power, term in enumerate(terms, start=1))


class Ordered:
    """The rows of one measure, sorted once for all of its quantiles.

    values: (n_blocks, n_rows), not negative.
    """

    def __init__(self, values: np.ndarray):
        self.values = values
        self.sorted = np.sort(values, axis=None)

    def quantile(self, level: float) -> float:
        """Return the quantile of all rows at a level, linear between neighbours."""
        place = level * (self.sorted.size - 1)
        left = int(place)
        low, high = self.sorted[left], self.sorted[min(left + 1, self.sorted.size - 1)]
        return float(low + (place - left) * (high - low))

    def share(self, threshold: float, strict: bool = True) -> tuple[float, float]:
        """Return the share of rows below a threshold (or at it, too) and its standard error between blocks."""
        below = self.values < threshold if strict else self.values <= threshold
        return mean(np.count_nonzero(below, axis=1) / self.values.shape[1])

    def woodruff(self, level: float, width: float = Z) -> tuple[float, float, float, float]:
        """Return a quantile, its standard error, and the ends of its interval (Woodruff 1952).

        The share of rows below the quantile has a standard error between blocks; level ± width·se, read through the
        pooled quantiles, is the interval. The error is its width on a logarithmic scale, where it is symmetric even if
        the rows span many decades (read it as centre·exp(±1.96 se/centre)), unless it reaches down to 0.
        """
        centre = self.quantile(level)
        _, se = self.share(centre, strict=False)
        low, high = (self.quantile(min(max(level + side * width * se, 0.0), 1.0)) for side in (-1, 1))
        reach = centre * math.log(high / low) if low > 0 else high - low
        return centre, reach / (2 * width), low, high

    def effective_rows(self, threshold: float, share: float, se: float) -> float:
        """Return how many independent rows would give a share of rows its error, at most the rows there are.

        Where no row, or every row, is below the threshold the share has no error of its own. The rows are then taken
        to repeat each other as much as they do about their lowest, or highest, hundredth.
        """
        if se == 0:
            outer = self.quantile(0.01 if share < 0.5 else 0.99)
            share, se = self.share(outer, strict=False)
        if not 0 < share < 1 or se == 0:
            # Not even that share varies: no more can be relied on than that blocks are independent.
            return float(len(self.values))
        return min(float(self.values.size), share * (1 - share) / se**2)


def median(values: np.ndarray) -> tuple[float, float]:
    """Return the median over all rows and its standard error between blocks, as `Ordered.woodruff` does."""
    return Ordered(values).woodruff(0.5)[:2]


def share_interval(share: float, n_effective: float, width: float) -> tuple[float, float]:
    """Return the 95 % interval of a share of so many independent rows (Wilson 1927).

    Of a share of 0 or 1 it is the one-sided bound: more than that would have shown with a probability of 95 %.
    """
    if share in (0.0, 1.0):
        missed = 1 - 0.05 ** (1 / n_effective)
        return (0.0, missed) if share == 0 else (1 - missed, 1.0)
    ratio = width**2 / n_effective
    centre = (share + ratio / 2) / (1 + ratio)
    reach = width / (1 + ratio) * math.sqrt(share * (1 - share) / n_effective + ratio / (4 * n_effective))
    return centre - reach, centre + reach


def share_error(share: float, n: int) -> float:
    """Return the standard error of a share of n independent values as if two more were in and two were out of it.

    Agresti and Coull (1998): so that a share of 0 or 1 has an error too.
    """
    p = (share * n + 2) / (n + 4)
    return math.sqrt(p * (1 - p) / (n + 4))


def top_energy(rows: Ordered, top: float = TOP) -> tuple[float, float] | None:
    """Return the share of Σ‖g‖² in the rows with the largest gradients, and its standard error; None for all zero.

    With t the quantile that divides off the top, the share is that of E[(g² − t²)₊] + top·t², in which t may be held
    fixed to first order (the derivative by t is zero); the error is that of the ratio of two block means.
    """
    largest = rows.sorted[-1]
    if not largest > 0:
        return None
    # Relative to the largest, so that no square is lost below the smallest number.
    squares = (rows.values / largest) ** 2
    cut = (rows.quantile(1 - top) / largest) ** 2
    energy = squares.mean(axis=1)
    above = np.maximum(squares - cut, 0).mean(axis=1) + top * cut
    share = above.mean() / energy.mean()
    _, se = mean((above - share * energy) / energy.mean())
    return float(share), se


def statistics(values: np.ndarray, uniform: float | None = None) -> list[dict]:
    """Return the rows of a table on the distribution of a gradient norm: statistic, estimate, se, low, high.

    Quantiles, shares below thresholds, and the energy of the top tenth; low and high are 95 % intervals.

    Args:
        values: (n_blocks, n_rows), norms. uniform: the norm of a row of equal weights, where one is known.
    """
    rows, width = Ordered(values), student(len(values))
    found = []

    def add(statistic: str, *numbers: float) -> None:
        found.append(dict(zip(("statistic", "estimate", "se", "low", "high"), (statistic, *numbers), strict=True)))

    for level in LEVELS:
        add(f"quantile_{level:g}", *rows.woodruff(level, width))
    thresholds = THRESHOLDS if uniform is None else THRESHOLDS | {"1pct_uniform": RELATIVE * uniform}
    for name, threshold in thresholds.items():
        share, se = rows.share(threshold)
        interval = share_interval(share, rows.effective_rows(threshold, share, se), width)
        # An error of 0 would claim to know; the interval says what is known.
        add(f"below_{name}", share, se if se > 0 else None, *interval)
    energy = top_energy(rows)
    if energy is None:
        add("top_tenth_energy", None, None, None, None)
    else:
        share, se = energy
        add("top_tenth_energy", share, se, max(0.0, share - width * se), min(1.0, share + width * se))
    return found
