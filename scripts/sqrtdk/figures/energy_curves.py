"""What the figures of softmax over independent Gaussian logits share: their rows, and values read from exact curves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sqrtdk.figures import panels
from sqrtdk.results.grid import nearest
from sqrtdk.statistics import intervals

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes

KEY = ["n_keys", "logit_std", "measure"]
_EACH = 2
"""One value of a curve in so many is drawn."""


def chosen(table: pd.DataFrame, wanted: tuple[int, ...]) -> list[int]:
    """Return the simulated numbers of keys nearest to the wanted ones, in rising order."""
    return sorted({nearest(table["n_keys"], n) for n in wanted})


def points(table: pd.DataFrame, n_keys: list[int], measures: tuple[str, ...]) -> pd.DataFrame:
    """Return the simulated rows of these numbers of keys and measures with 95 % intervals, not below 0."""
    rows = table[table["n_keys"].isin(n_keys) & table["measure"].isin(measures)].sort_values(KEY, ignore_index=True)
    half = intervals.half_width(rows["se"], rows["n_rows"])
    rows["low"], rows["high"] = (rows["estimate"] - half).clip(lower=0), rows["estimate"] + half
    return rows.drop(columns=["exact", "hot", "frozen", "hazard", "precise"])


def lines(curves: pd.DataFrame, n_keys: list[int], measures: tuple[str, ...], low: float, high: float) -> pd.DataFrame:
    """Return the curves between two values of s, thinned and to five digits, which is what a drawing shows."""
    rows = curves[curves["n_keys"].isin(n_keys) & curves["measure"].isin(measures)].sort_values(KEY)
    rows = rows[(rows["logit_std"] >= low) & (rows["logit_std"] <= high)]
    rows = rows[rows.groupby(["n_keys", "measure"]).cumcount() % _EACH == 0].reset_index(drop=True)
    for column in ("logit_std", "exact", "hot", "frozen", "hazard"):
        rows[column] = rows[column].map(lambda value: float(f"{value:.5g}"))
    return rows


def curve(curves: pd.DataFrame, n_keys: int, measure: str, column: str = "exact") -> tuple[np.ndarray, np.ndarray]:
    """Return (s, values) of one curve, where it has values."""
    rows = curves[(curves["n_keys"] == n_keys) & (curves["measure"] == measure) & curves[column].notna()]
    rows = rows.sort_values("logit_std")
    return rows["logit_std"].to_numpy(float), rows[column].to_numpy(float)


def value(curves: pd.DataFrame, n_keys: int, measure: str, spread: float, column: str = "exact") -> float | None:
    """Return a curve's value at s, None where the curve does not reach."""
    import numpy as np

    s, values = curve(curves, n_keys, measure, column)
    if not len(s) or not s[0] <= spread <= s[-1]:
        return None
    return float(np.interp(math.log(spread), np.log(s), values))


def crossing(curves: pd.DataFrame, n_keys: int, measure: str, height: float) -> float | None:
    """Return the s at which an exact curve first passes a height."""
    return panels.crossing(*curve(curves, n_keys, measure), height)


def peak(curves: pd.DataFrame, n_keys: int, measure: str) -> tuple[float, float] | None:
    """Return (s, height) of the largest value of an exact curve, by a parabola in ln s; None at an end."""
    import numpy as np

    s, values = curve(curves, n_keys, measure)
    top = int(np.argmax(values)) if len(s) else 0
    if not 0 < top < len(s) - 1:
        return None
    a, b, c = np.polyfit(np.log(s[top - 1 : top + 2] / s[top]), values[top - 1 : top + 2], 2)
    return float(s[top] * np.exp(-b / (2 * a))), float(c - b * b / (4 * a))


def spread_axis(axes: Axes, spreads: pd.Series, label: str | None) -> None:
    """Make the horizontal axis a log axis of s, with ticks at powers of 8 where there is one."""
    panels.d_k_axis(axes, spreads, label)
    low, high = axes.get_xlim()
    ticks = [tick for tick in (0.125, 1, 8, 64) if low <= tick <= high]
    if ticks:
        axes.set_xticks(ticks, ["⅛" if tick == 0.125 else f"{tick:g}" for tick in ticks])
