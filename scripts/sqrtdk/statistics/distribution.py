"""The distribution of gradient norms over rows that are dependent within a block, and which rows hold the energy.

Values are arrays (n_blocks, n_rows), independent between blocks only, so that every error comes from between blocks.
"""

import numpy as np

from sqrtdk.statistics import shares
from sqrtdk.statistics.estimates import mean
from sqrtdk.statistics.intervals import t_quantile_by_series
from sqrtdk.statistics.quantiles import Ordered

LEVELS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Quantiles of a table: the deciles and both tails."""
THRESHOLDS = {"1e-3": 1e-3, "1e-6": 1e-6, "1e-10": 1e-10}
"""A gradient norm below one of these may be said to have vanished."""
RELATIVE = 0.01
"""So may one below this share of the uniform row's norm."""
TOP = 0.1
"""Share of the rows, those with the largest gradients, whose energy is counted."""


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


def statistics(values: np.ndarray, uniform: float | None = None) -> list[dict[str, str | float | None]]:
    """Return the rows of a table on the distribution of a gradient norm: statistic, estimate, se, low, high.

    Quantiles, shares below thresholds, and the energy of the top tenth; low and high are 95 % intervals.

    Args:
        values: (n_blocks, n_rows), norms. uniform: the norm of a row of equal weights, where one is known.
    """
    rows, width = Ordered(values), t_quantile_by_series(len(values))
    found: list[dict[str, str | float | None]] = []

    def add(statistic: str, *numbers: float | None) -> None:
        found.append(dict(zip(("statistic", "estimate", "se", "low", "high"), (statistic, *numbers), strict=True)))

    for level in LEVELS:
        add(f"quantile_{level:g}", *rows.woodruff(level, width))
    thresholds = THRESHOLDS if uniform is None else THRESHOLDS | {"1pct_uniform": RELATIVE * uniform}
    for name, threshold in thresholds.items():
        share, se = rows.share(threshold)
        interval = shares.wilson(share, rows.effective_rows(threshold, share, se), width)
        # An error of 0 would claim to know; the interval says what is known.
        add(f"below_{name}", share, se if se > 0 else None, *interval)
    energy = top_energy(rows)
    if energy is None:
        add("top_tenth_energy", None, None, None, None)
    else:
        share, se = energy
        add("top_tenth_energy", share, se, max(0.0, share - width * se), min(1.0, share + width * se))
    return found
