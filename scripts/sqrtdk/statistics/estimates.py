"""Numbers with their standard errors: means of independent values, and functions of means by the jackknife.

A value is that of one independent unit, such as a block of scores, a seed or a head. What depends within a unit never
adds to the number of values.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Statistic = Callable[[np.ndarray], np.ndarray]
"""A smooth function of means: (...) -> (...), or (..., r) -> (...) of r means together."""

UNSTEADY = "the jackknife values of the kurtosis are too skewed for a symmetric interval"
"""Why an error is flagged by the sample that it is of."""


class Estimate(NamedTuple):
    """A number and its standard error."""

    value: float
    se: float


def mean(values: np.ndarray) -> Estimate:
    """Return the mean of independent values (n,); of a single one the error is NaN."""
    return plug_in(lambda x: x, values)


def rms(squares: np.ndarray) -> Estimate:
    """Return the root of the mean of independent squares (n,)."""
    return plug_in(np.sqrt, squares)


def plug_in(statistic: Statistic, values: np.ndarray) -> Estimate:
    """Return statistic(mean), its bias of O(1/n) left in, with the standard error of the delete-one jackknife.

    Of a single value the error is NaN.

    Args:
        values: (n,) or (n, r), one independent value or row for each unit.
    """
    value = float(statistic(values.mean(axis=0)))
    return Estimate(value, jackknife_error(left_out(statistic, values)) if len(values) > 1 else math.nan)


def bias_corrected(statistic: Statistic, values: np.ndarray) -> Estimate:
    """Return statistic(mean) less the jackknife's estimate of its bias (Quenouille 1956), with the same error.

    Of a quadratic function such as the variance the correction is exact: it is the cross-block estimate of μ².

    Args:
        values: (n,) or (n, r), n >= 2, one independent value or row for each unit.
    """
    n, rest = len(values), left_out(statistic, values)
    return Estimate(float(n * statistic(values.mean(axis=0)) - (n - 1) * rest.mean()), jackknife_error(rest))


def left_out(statistic: Statistic, values: np.ndarray) -> np.ndarray:
    """Return the statistic without each of the n values, (n,)."""
    n = len(values)
    means = (n * values.mean(axis=0) - values) / (n - 1)
    # A mean is no smaller than its smallest value; the difference may be, by a rounding error, and then has no root.
    return statistic(np.maximum(means, values.min(axis=0)))


def jackknife_error(*replicates: np.ndarray) -> float:
    """Return the standard error of a statistic from its values without each unit (Tukey 1958); NaN for less than two.

    Args:
        replicates: an array for each kind of unit, such as queries and keys, whose parts of the variance add up.
    """
    if any(len(values) < 2 for values in replicates):
        return math.nan
    return math.sqrt(sum((len(values) - 1) * np.mean((values - values.mean()) ** 2) for values in replicates))


def jackknife_skewness(statistic: Statistic, values: np.ndarray) -> float:
    """Return the skewness of the values without each unit, in the direction in which the unit itself moves them."""
    rest = left_out(statistic, values)
    centred = rest - rest.mean()
    second = np.mean(centred**2)
    return -float(np.mean(centred**3) / second**1.5) if second > 0 else 0.0
