"""Shares of independent values: binomial errors, and intervals that stay between 0 and 1."""

import math

from sqrtdk.statistics.intervals import LEVEL


def binomial_error(share: float, n: float) -> float:
    """Return the standard error of a share of n independent values, each in it with this probability."""
    return math.sqrt(share * (1 - share) / n)


def smoothed(share: float, n: int) -> tuple[float, float]:
    """Return a share of n independent values as if two more were in and two were out of it, and its standard error.

    Agresti and Coull (1998): so that a share of 0 or 1 has an error too.
    """
    p = (share * n + 2) / (n + 4)
    return p, binomial_error(p, n + 4)


def wilson(share: float, n: float, width: float) -> tuple[float, float]:
    """Return the 95 % interval of a share of n independent values, n any positive number (Wilson 1927).

    Of a share of 0 or 1 it is the one-sided bound: more than that would have shown with a probability of 95 %.

    Args:
        width: standard errors in half an interval.
    """
    if share in (0.0, 1.0):
        missed = 1 - 0.05 ** (1 / n)
        return (0.0, missed) if share == 0 else (1 - missed, 1.0)
    ratio = width**2 / n
    centre = (share + ratio / 2) / (1 + ratio)
    reach = width / (1 + ratio) * math.sqrt(share * (1 - share) / n + ratio / (4 * n))
    return centre - reach, centre + reach


def clopper_pearson(inside: int, total: int) -> tuple[float, float]:
    """Return the exact 95 % interval of a share of independent values (Clopper and Pearson 1934)."""
    from scipy.special import betaincinv

    tail = (1 - LEVEL) / 2
    low = betaincinv(inside, total - inside + 1, tail) if inside else 0.0
    high = betaincinv(inside + 1, total - inside, 1 - tail) if inside < total else 1.0
    return float(low), float(high)


def is_nominal(share: float, n: int, errors: float = 3.0) -> bool:
    """Say whether a share of n covering intervals is 95 %, to so many binomial standard errors."""
    return abs(share - LEVEL) <= errors * binomial_error(LEVEL, n)
