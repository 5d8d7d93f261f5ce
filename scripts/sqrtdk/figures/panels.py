"""What the figures share: axes of d_k, points with intervals, theory lines, and a panel with a statement."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sqrtdk.figures import style
from sqrtdk.figures.style import Look
from sqrtdk.words.numbers import power_of_ten

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

POINTS = "_points"
"""Label of every line whose heights are rows of the figure's data (a leading underscore keeps it out of legends)."""
_LONGEST_LABEL = 22
LONGEST_TITLE = 16
"""Letters that fit above one of three small panels."""
_MOST_TICKS = 6


def figure(height: float, width: float = style.WIDTH) -> Figure:
    """Return an empty figure, in inches, laid out without overlaps."""
    from matplotlib.figure import Figure

    made = Figure((width, height), layout="constrained")
    made.get_layout_engine().set(w_pad=0.06, h_pad=0.04, wspace=0.03, hspace=0.04)
    return made


def statement(text: str) -> Figure:
    """Return a figure that says, in words, why there is nothing to draw."""
    made = figure(1.2)
    axes = made.add_subplot()
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, ha="center", va="center", wrap=True, transform=axes.transAxes)
    return made


def short(label: str, most: int = _LONGEST_LABEL) -> str:
    """Cut a long name so that it cannot push the panel away."""
    return label if len(label) <= most else label[: most - 1] + "…"


def tick_text(value: float, _position: int | None = None) -> str:
    """Spell a tick: plain digits between 0.0001 and 1000, a power of ten beyond."""
    if value == 0:
        return "0"
    sign, size = ("−" if value < 0 else ""), abs(value)
    exponent = math.floor(math.log10(size) + 1e-9)
    if -4 <= exponent <= 3:
        return sign + f"{size:.10g}"
    factor, power = f"{size:.2e}".split("e")
    factor = factor.rstrip("0").rstrip(".")
    return sign + ("" if factor == "1" else f"{factor}·") + power_of_ten(int(power))


def d_k_axis(axes: Axes, values: Any, label: str | None = "dₖ", most: int = _MOST_TICKS) -> None:
    """Make the horizontal axis a log axis of head widths with ticks at simulated widths."""
    values = sorted(set(values))
    axes.set_xscale("log", base=2)
    axes.set_xlim(values[0] / 1.6, values[-1] * 1.6)
    axes.set_xticks(_thinned(values, most), minor=False)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    if label:
        axes.set_xlabel(label)


def _thinned(values: list[Any], most: int) -> list[Any]:
    """Keep at most so many ticks, evenly on a log axis and never closer than labels are wide."""
    room = math.log2(values[-1] / values[0]) / most
    kept = values[:1]
    for value in values[1:]:
        if math.log2(value / kept[-1]) >= room - 1e-9:
            kept.append(value)
    return kept


def log_heights(axes: Axes, most: int = 7) -> None:
    """Make the vertical axis a log axis with decade ticks and their spelling."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(numticks=most))
    axes.yaxis.set_major_formatter(tick_text)
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_locator(LogLocator(subs=()))


def log_ticks(axes: Axes) -> None:
    """Set the ticks of a log axis whose limits are final: decades, or round numbers between where they are few."""
    low, high = axes.get_ylim()
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        ticks = [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]
        if len(ticks) > 2:
            break
    else:
        from matplotlib.ticker import MaxNLocator

        ticks = (
            ticks if len(ticks) > 1 else [tick for tick in MaxNLocator(3).tick_values(low, high) if low <= tick <= high]
        )
    axes.set_yticks(ticks[:: -(-len(ticks) // 8)] if len(ticks) > 8 else ticks)


def dodge(position: int, number: int, spread: float = 0.3) -> float:
    """Return the factor that moves series `position` of `number` sideways on a log2 axis, within ±spread octaves."""
    return 2.0 ** (spread * (2 * position - number + 1) / max(number - 1, 1))


def points(
    axes: Axes,
    x: np.ndarray,
    y: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    look: Look,
    hollow: bool = False,
    line: bool = False,
    size: float | None = None,
) -> None:
    """Draw points with 95 % intervals: a marker for each row, and one path for all intervals.

    Missing points and intervals without ends are left out. On a log axis an interval that reaches 0 runs to the lower
    edge of the panel, and a point at or below 0 is left out.
    """
    import numpy as np

    x, y, low, high = (np.asarray(values, dtype=float) for values in (x, y, low, high))
    below = np.zeros(len(y), dtype=bool)
    if axes.get_yscale() == "log":
        y, below = np.where(y > 0, y, np.nan), (low <= 0) & (high > 0)
        low, high = np.where(low > 0, low, np.nan), np.where(high > 0, high, np.nan)
    if not np.isfinite(y).any():
        return
    _intervals(axes, x[~below], low[~below], high[~below], look)
    # Down to the smallest number, and so to the edge: no data for the limits of the axis.
    _intervals(axes, x[below], np.full(below.sum(), np.finfo(float).tiny), high[below], look, limits=False)
    axes.plot(
        x,
        y,
        color=look.colour,
        marker=look.marker,
        markersize=size,
        markerfacecolor="none" if hollow else look.colour,
        markeredgecolor=look.colour,
        markeredgewidth=0.9,
        linestyle=look.dash if line else "none",
        linewidth=1.1,
        label=POINTS,
    )


def _intervals(axes: Axes, x: np.ndarray, low: np.ndarray, high: np.ndarray, look: Look, limits: bool = True) -> None:
    """Draw vertical intervals as one path; without `limits` they do not widen the axis."""
    import numpy as np
    from matplotlib.lines import Line2D

    if not np.isfinite(high - low).any():
        return
    gap = np.full_like(high, np.nan)
    line = Line2D(
        np.column_stack([x, x, gap]).ravel(),
        np.column_stack([low, high, gap]).ravel(),
        color=look.colour,
        linewidth=1.1,
        solid_capstyle="butt",
        label="_intervals",
    )
    if limits:
        axes.add_line(line)
    else:
        axes.add_artist(line)


def theory(axes: Axes, x: np.ndarray, y: np.ndarray, look: Look, width: float = 1.3) -> None:
    """Draw an exact law: a line through its values; a short bar where there is a single one."""
    import numpy as np

    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    there = np.isfinite(y) & ((y > 0) | (axes.get_yscale() != "log"))
    if there.sum() == 1:
        axes.plot(
            x[there], y[there], color=look.colour, marker="_", markersize=14, markeredgewidth=width, label="_theory"
        )
    elif there.any():
        axes.plot(x[there], y[there], color=look.colour, linestyle=look.dash, linewidth=width, label="_theory")


def key(look: Look, line: bool = True, hollow: bool = False, **changes: Any) -> Line2D:
    """Return a legend entry for a look."""
    from matplotlib.lines import Line2D

    settings = {
        "color": look.colour,
        "marker": look.marker,
        "markerfacecolor": "none" if hollow else look.colour,
        "linestyle": look.dash if line else "none",
        "label": short(look.label),
    }
    return Line2D([], [], **settings | changes)


def reference(axes: Axes, height: float) -> None:
    """Draw a horizontal line of reference in ink."""
    axes.axhline(height, color=style.INK, linewidth=0.8, alpha=style.MUTED, zorder=1, label="_reference")


def around(axes: Axes, centre: float, reach: float) -> None:
    """Make the vertical axis symmetric about a value, with three round ticks; `reach` is the furthest thing to show."""
    if not math.isfinite(reach) or reach <= 0:
        reach = 0.01
    power = 10.0 ** math.floor(math.log10(reach))
    step = max(round_step for round_step in (1, 2, 5) if round_step * power <= reach) * power
    axes.set_ylim(centre - 1.15 * reach, centre + 1.15 * reach)
    axes.set_yticks([centre - step, centre, centre + step])
    axes.yaxis.set_major_formatter(tick_text)


def grid_shape(number: int, columns: int = 3) -> tuple[int, int]:
    """Return (rows, columns) of small panels for so many series."""
    columns = max(1, min(columns, number))
    return -(-number // columns), columns


def crossing(x: np.ndarray, y: np.ndarray, height: float, last: bool = False) -> float | None:
    """Return where a curve first (or last) passes a height, interpolated on the logarithm of x; None if nowhere."""
    import numpy as np

    order = np.argsort(np.asarray(x, dtype=float))
    x, y = np.log(np.asarray(x, dtype=float)[order]), np.asarray(y, dtype=float)[order] - height
    passed = np.flatnonzero(y[:-1] * y[1:] < 0)
    if not len(passed):
        return None
    i = passed[-1 if last else 0]
    return float(np.exp(x[i] - y[i] * (x[i + 1] - x[i]) / (y[i + 1] - y[i])))
