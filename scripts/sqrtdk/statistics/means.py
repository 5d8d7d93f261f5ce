"""Means over few independent values, such as seeds, with their intervals."""

import math

import numpy as np

from sqrtdk.statistics.estimates import mean
from sqrtdk.statistics.intervals import interval, log_interval


def mean_interval(values: np.ndarray, dof: int | None = None) -> tuple[float, float, float]:
    """Return the mean of independent values and the ends of its interval; NaN for those of a single one.

    dof: degrees of freedom, one less than there are values unless given.
    """
    value, se = mean(values)
    return value, *interval(value, se, dof or len(values) - 1)


def geometric_interval(values: np.ndarray, dof: int | None = None) -> tuple[float, float, float]:
    """Return the geometric mean of independent positive values and the ends of its interval on the log scale.

    dof: degrees of freedom, one less than there are values unless given.
    """
    log, se = mean(np.log(values))
    return math.exp(log), *log_interval(math.exp(log), se, dof or len(values) - 1)
