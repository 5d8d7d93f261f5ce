"""Whether stated standard errors are right: estimates held against exact values, in units in which they must be normal.

Estimates of one unit, such as a cell, share their draws and err together: every error here comes from between units.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from sqrtdk.statistics import shares
from sqrtdk.statistics.intervals import NORMAL, t_quantile

SIZE = 0.02  # ASSUME
"""How often errors that are right are called wrong."""
FEWEST_UNITS = 8  # ASSUME
"""Fewer units have no interval."""


class Calibration(NamedTuple):
    """What `calibrate` finds; ends of 95 % intervals.

    share: of the estimates within their 95 % intervals. ratio: the errors that were made over those stated.
    right: whether that ratio is 1, by a test of size SIZE; False where there are too few units to tell.
    """

    n: int
    share: float
    share_low: float
    share_high: float
    ratio: float
    ratio_low: float
    ratio_high: float
    right: bool
    enough: bool


def normal_scores(distance: np.ndarray, n_values: np.ndarray) -> np.ndarray:
    """Return |(estimate − exact)/se| in standard deviations of a normal number, each from Student's t of its error.

    n_values: independent values behind each standard error.
    """
    tail = special.stdtr(np.asarray(n_values, float) - 1, -np.abs(distance))
    scores: np.ndarray = -special.ndtri(np.maximum(tail, np.finfo(float).tiny))
    return scores


def calibrate(scores: np.ndarray, units: np.ndarray) -> Calibration:
    """Hold normal scores against the normal law.

    Args:
        scores: (n,), of `normal_scores`. units: (n,), the unit of each.
    """
    _, unit = np.unique(units, return_inverse=True)
    inside, square = (scores <= NORMAL).astype(float), np.asarray(scores) ** 2
    share, share_se = _clustered_mean(inside, unit)
    power, power_se = _clustered_mean(square, unit)
    n_units = int(unit.max()) + 1
    ratio, log_se = math.sqrt(power), power_se / (2 * power) if power > 0 else math.inf
    enough = n_units >= FEWEST_UNITS and math.isfinite(log_se) and log_se > 0
    if not enough:
        return Calibration(len(scores), share, math.nan, math.nan, ratio, math.nan, math.nan, False, False)
    width, decides = (float(t_quantile(n_units - 1, level)) for level in (0.95, 1 - SIZE))
    # Where all are covered no scatter between units says how sure that is.
    ends = max(0.0, share - width * share_se), min(1.0, share + width * share_se)
    if share_se == 0:
        ends = shares.wilson(share, n_units, width)
    factor = math.exp(width * log_se)
    right = abs(math.log(ratio)) <= decides * log_se
    return Calibration(len(scores), share, *ends, ratio, ratio / factor, ratio * factor, right, True)


def _clustered_mean(values: np.ndarray, unit: np.ndarray) -> tuple[float, float]:
    """Return the mean of all values and its standard error from between units (of different sizes)."""
    mean = float(values.mean())
    excess = np.bincount(unit, weights=values - mean)
    n = len(excess)
    return mean, math.sqrt(n / (n - 1) * float(excess @ excess)) / len(values) if n > 1 else math.nan
