"""Quantiles with errors: the interval of the share below, read through the quantiles (Woodruff 1952).

Values are arrays (n_blocks, n_values), independent between blocks only.
"""

import math
from collections.abc import Callable, Iterable

import numpy as np

from sqrtdk.statistics.estimates import Estimate, mean
from sqrtdk.statistics.intervals import NORMAL


def woodruff(
    quantile: Callable[[float], float], level: float, share_se: float, width: float = NORMAL, log: bool = True
) -> tuple[float, float, float, float]:
    """Return a quantile, its standard error, and the ends of its interval (Woodruff 1952).

    The error is the width of the interval level ± width·share_se, read through the quantiles. On the logarithmic scale
    it is symmetric even if values span many decades (read it as centre·exp(±1.96 se/centre)), unless an end is 0.

    Args:
        quantile: level -> value. share_se: standard error of the share of values below the quantile.
        width: standard errors in half an interval.
    """
    centre = quantile(level)
    low, high = (quantile(min(max(level + side * width * share_se, 0.0), 1.0)) for side in (-1, 1))
    reach = centre * math.log(high / low) if log and low > 0 else high - low
    return centre, reach / (2 * width), low, high


class Ordered:
    """Values (n_blocks, n_values), sorted once for all of their quantiles."""

    def __init__(self, values: np.ndarray):
        self.values = values
        self.sorted = np.sort(values, axis=None)

    def quantile(self, level: float) -> float:
        """Return the quantile of all values at a level, linear between neighbours."""
        place = level * (self.sorted.size - 1)
        left = int(place)
        low, high = self.sorted[left], self.sorted[min(left + 1, self.sorted.size - 1)]
        return float(low + (place - left) * (high - low))

    def share(self, threshold: float, strict: bool = True) -> Estimate:
        """Return the share of values below a threshold (or at it, too), its error from between blocks."""
        below = self.values < threshold if strict else self.values <= threshold
        return mean(np.count_nonzero(below, axis=1) / self.values.shape[1])

    def woodruff(self, level: float, width: float = NORMAL) -> tuple[float, float, float, float]:
        """Return a quantile of values that are not negative, its error, and the ends of its interval."""
        return woodruff(self.quantile, level, self.share(self.quantile(level), strict=False).se, width)

    def effective_rows(self, threshold: float, share: float, se: float) -> float:
        """Return how many independent values would give a share below a threshold its error, at most those there are.

        Where no value, or every one, is below the threshold the share has no error of its own. The values are then
        taken to repeat each other as much as they do about their lowest, or highest, hundredth.
        """
        if se == 0:
            outer = self.quantile(0.01 if share < 0.5 else 0.99)
            share, se = self.share(outer, strict=False)
        if not 0 < share < 1 or se == 0:
            # Not even that share varies: no more can be relied on than that blocks are independent.
            return float(len(self.values))
        return min(float(self.values.size), share * (1 - share) / se**2)


def median(values: np.ndarray) -> Estimate:
    """Return the median of all values, which are not negative, its error from between blocks."""
    return Estimate(*Ordered(values).woodruff(0.5)[:2])


def with_parts(values: np.ndarray, levels: Iterable[float]) -> tuple[list[Estimate], np.ndarray]:
    """Return quantiles of values of any sign, and what each block adds to them.

    The error is half the distance between the quantiles one standard error of the share below to either side.

    Returns:
        The estimates, and (n_blocks, levels) what each block adds to a quantile, to first order: the distance of its
        own share below, in units of the density there, so that errors of differences follow as well.
    """
    rows = Ordered(values)
    estimates, parts = [], []
    for level in levels:
        below = np.mean(values <= rows.quantile(level), axis=1)
        missing = below.mean() - below
        # A NumPy number, so that ends are interpolated in double precision between values in single precision, too.
        share_se = np.float64(mean(missing).se)
        value, se, _, _ = woodruff(rows.quantile, level, share_se, width=1.0, log=False)
        estimates.append(Estimate(value, se))
        parts.append(missing * (se / share_se if share_se > 0 else 0.0))
    return estimates, np.column_stack(parts)


def difference(estimates: list[Estimate], parts: np.ndarray) -> Estimate:
    """Return the last less the first quantile of `with_parts`, their correlation taken from between blocks."""
    return Estimate(estimates[-1].value - estimates[0].value, mean(parts[:, -1] - parts[:, 0]).se)
