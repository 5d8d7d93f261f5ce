"""Windows of usable learning rates: their ends, which lie between two tried rates, and what seeds say of them."""

import math

import numpy as np

from sqrtdk.sampling import streams
from sqrtdk.statistics.intervals import LEVEL

RESAMPLES = 1000


def window(rates: np.ndarray, progress: np.ndarray, bar: float) -> tuple[float, float]:
    """Return the decimal logarithms of the ends of the usable rates around the best, interpolated; NaN if none is.

    progress: (n_rates,). An end at the first or the last rate was not found: the window may be wider.
    """
    x, top = np.log10(rates), int(np.argmax(progress))
    if progress[top] < bar:
        return math.nan, math.nan
    ends = []
    for way in (-1, 1):
        i = top
        while 0 <= i + way < len(x) and progress[i + way] >= bar:
            i += way
        end = x[i]
        if 0 <= i + way < len(x):
            end += (x[i + way] - x[i]) * (progress[i] - bar) / (progress[i] - progress[i + way])
        ends.append(float(end))
    return ends[0], ends[1]


def brackets(rates: np.ndarray, progress: np.ndarray, bar: float) -> tuple[float, float, float, float]:
    """Return what the tried rates say of the two ends: first unusable, last usable, last usable, first unusable rate.

    In decimal logarithms. Progress may fall anywhere between two tried rates, so that an end lies between the usable
    and the unusable one; beyond the first and the last rate it is not bounded. Where no tried rate is usable, a window
    may still hide in the widest of the gaps beside the best rate, and the usable ends are NaN.
    """
    x, top = np.log10(rates), int(np.argmax(progress))
    padded = [-math.inf, *map(float, x), math.inf]
    if progress[top] < bar:
        # Rates that all end at guessing are equally near to a window.
        beside = {i + after for i in np.flatnonzero(progress == progress[top]) for after in (0, 1)}
        widest = max(sorted(beside), key=lambda i: padded[i + 1] - padded[i])
        return padded[widest], math.nan, math.nan, padded[widest + 1]
    first = last = top
    while first > 0 and progress[first - 1] >= bar:
        first -= 1
    while last < len(x) - 1 and progress[last + 1] >= bar:
        last += 1
    return padded[first], float(x[first]), float(x[last]), padded[last + 2]


def resampled(rates: np.ndarray, progress: np.ndarray, bar: float, seed: int) -> np.ndarray:
    """Return the brackets of the window's ends (4, resamples): of all seeds first, then of resampled seeds.

    The resamples are those of all cells with as many seeds.
    """
    n = progress.shape[1]
    chosen = streams.generator(seed, "training", "bootstrap", n).integers(n, size=(RESAMPLES, n))
    means = np.column_stack([progress.mean(axis=1), progress[:, chosen].mean(axis=-1)])
    return np.array([brackets(rates, column, bar) for column in means.T]).T


def width(low: np.ndarray | float, high: np.ndarray | float) -> np.ndarray:
    """Return the width of a window in decades, 0 where no rate is usable."""
    return np.nan_to_num(np.asarray(high) - np.asarray(low), posinf=math.inf)


def widths(ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest width that the brackets allow."""
    return width(ends[1], ends[2]), width(ends[0], ends[3])


def between(low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval from the smallest to the largest values allowed; those of all seeds come first.

    It always holds what all seeds allow, however few resamples do.
    """
    tail, last = (1 - LEVEL) / 2, len(low) - 1
    # By rank and not interpolated: a width may be unbounded.
    lower, upper = np.sort(low)[math.floor(tail * last)], np.sort(high)[math.ceil((1 - tail) * last)]
    # Rounded: sums of logarithms miss 0 by the last bit.
    return round(float(min(lower, low[0])), 12), round(float(max(upper, high[0])), 12)
