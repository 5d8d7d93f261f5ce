"""Where a curve that is known at some points, with errors, falls below 0 for good."""

import math
from typing import NamedTuple

import numpy as np

MISSING = -500.0
"""A value below this stands for −∞, through which no curve is laid."""


class Crossing(NamedTuple):
    """Where it is and its 95 % interval, or why it is nowhere."""

    at: float | None
    low: float | None
    high: float | None
    reason: str | None


def falling(x: np.ndarray, y: np.ndarray, error: np.ndarray, width: float, place: str) -> Crossing:
    """Return where y falls below 0 for good, by a cubic through the two points on either side.

    The interval is that of both errors through the slope, and wider by what is not known of the curve between the
    points: the larger distance to the crossing of the two parabolas that leave out an outer point. Of two points alone
    it reaches from one to the other.

    Args:
        x: in ascending order. y, error: of independent estimates, at each.
        width: standard errors in half a 95 % interval. place: what a reason calls a point.
    """
    above = np.flatnonzero(~(y < 0))
    if not len(above):
        return Crossing(None, None, None, f"below at every {place}")
    i = int(above[-1])
    if i == len(y) - 1:
        return Crossing(None, None, None, f"not below at the largest {place}")
    if y[i] == 0 and i == 0:
        return Crossing(None, None, None, f"below from the second {place} on")
    slope = (x[i + 1] - x[i]) / (y[i] - y[i + 1])
    share = y[i] / (y[i] - y[i + 1])
    noise = width * slope * math.hypot((1 - share) * error[i], share * error[i + 1])
    near = [j for j in range(max(i - 1, 0), min(i + 3, len(y))) if y[j] > MISSING or j == i + 1]
    at = _root(x, y, near, i)
    # Without its first or its last point, as long as both neighbours are left.
    fewer = [points for points in (near[1:], near[:-1]) if {i, i + 1} <= set(points)]
    others = [_root(x, y, points, i) for points in fewer] or [x[i], x[i + 1]]
    reach = noise + max(abs(other - at) for other in others)
    return Crossing(float(at), float(at - reach), float(at + reach), None)


def _root(x: np.ndarray, y: np.ndarray, points: list[int], i: int) -> float:
    """Return where the polynomial through some points falls through 0 between the points i and i + 1."""
    polynomial = np.polynomial.Polynomial.fit(x[points], y[points], len(points) - 1)
    low, high = x[i], x[i + 1]
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if polynomial(middle) >= 0 else (low, middle)
    return float(low)
