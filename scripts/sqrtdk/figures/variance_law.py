"""Figure: the variance of q·k against d_k, of independent components and of what grows fastest and slowest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sqrtdk.figures import grouping, layout, panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.figures.targets import LARGE
from sqrtdk.results import picking
from sqrtdk.statistics import intervals
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "article/scores"
INPUTS = ("moments",)

_ALIKE = 3
"""Ensembles of one law that are shown."""
_INTEGER = 0.02
_POWERS = {2.0: "∝ dₖ²", 1.0: "∝ dₖ", 0.0: "constant", -1.0: "∝ 1/dₖ"}


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per simulated cell that is shown: estimate, exact variance and their ratio, with 95 % intervals.

    Shown are up to three ensembles of one law proportional to d_k, that of the most ensembles, and those whose variance
    grows fastest and slowest at the widest heads. `growth` is how it grows there; `per_width` is variance / d_k.
    """
    moments = picking.simulated(frames["moments"])
    if moments.empty or moments["variance"].isna().all():
        return moments.head(0)
    half = intervals.half_width(moments["variance_se"], moments["n_blocks"])
    table = moments[["ensemble", "d_k", "n_blocks", "n_scores", "stopped_by", "variance", "variance_se"]].copy()
    table["low"], table["high"] = table["variance"] - half, table["variance"] + half
    table["exact"] = moments["exact_variance"]
    for name, unit in (("ratio", table["exact"]), ("per_width", table["d_k"])):
        table[name] = table["variance"] / unit
        table[f"{name}_low"], table[f"{name}_high"] = table["low"] / unit, table["high"] / unit
    table["growth"] = table["ensemble"].map(grouping.kinds(table))
    shown = _shown(table)
    return table[table["ensemble"].isin(shown)].reset_index(drop=True)


def _shown(table: pd.DataFrame) -> list[str]:
    flat = grouping.alike(table[table["growth"] == grouping.PROPORTIONAL])
    shown = max(flat, key=len, default=[])[:_ALIKE]
    slopes = {}
    for name, cells in table[table["growth"].isin([grouping.FASTER, grouping.SLOWER])].groupby("ensemble", sort=False):
        slope = _slope(cells)
        if slope is not None:
            slopes[name] = slope
    for kind, pick in ((grouping.FASTER, max), (grouping.SLOWER, min)):
        names = [name for name in slopes if (slopes[name] > 1) == (kind == grouping.FASTER)]
        shown += [pick(names, key=lambda name: slopes[name])] if names else []
    return shown or selection.order(table["ensemble"])[:1]


def _slope(cells: pd.DataFrame) -> float | None:
    values = cells["exact"] if cells["exact"].notna().all() else cells["variance"]
    return grouping.end_slope(cells["d_k"], values)


@saving.styled(data, "No ensemble with a variance was simulated.", LARGE)
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw all variances with their exact laws, and below variance / d_k of those proportional to d_k."""
    looks = style.apart(style.ensembles(selection.order(table["ensemble"])))
    flat = selection.order(table.loc[table["growth"] == grouping.PROPORTIONAL, "ensemble"])
    figure, grid = layout.stack([185, 105] if flat else [185], left=68, top=24, gap=58)
    _draw_law(grid[0], table, looks, flat)
    if flat:
        _draw_flat(grid[1], table[table["ensemble"].isin(flat)], looks)
    return figure


def _points(axes: Axes, cells: pd.DataFrame, look: style.Look, *columns: str, moved: float = 1.0) -> None:
    """Draw estimates; hollow those without a standard error, whose fourth moment is infinite."""
    for hollow in (False, True):
        part = cells[cells["variance_se"].isna() == hollow]
        value, low, high = (part[name] for name in columns)
        panels.points(axes, part["d_k"] * moved, value, low, high, look, hollow=hollow, size=4.6)


def _draw_law(axes: Axes, table: pd.DataFrame, looks: dict[str, style.Look], flat: Sequence[str]) -> None:
    panels.log_heights(axes, most=6)
    for name, cells in table.groupby("ensemble", sort=False):
        panels.theory(axes, cells["d_k"], cells["exact"], looks[name], width=1.4)
        _points(axes, cells, looks[name], "variance", "low", "high")
    panels.d_k_axis(axes, table["d_k"])
    panels.log_ticks(axes)
    axes.set_title("variance of q·k")
    for name in [*flat[:1], *(name for name in looks if name not in flat)]:
        cells = table[(table["ensemble"] == name) & table["variance"].notna()].sort_values("d_k")
        if len(cells):
            several = name in flat and len(flat) > 1
            text = f"{len(flat)} distributions" if several else panels.short(style.ensemble_label(name), 34)
            _label(axes, cells, text, style.INK if several else looks[name].colour, name in flat)


def _label(axes: Axes, cells: pd.DataFrame, names: str, colour: str, flat: bool) -> None:
    """Name a line where the others leave room: below its end, or above the middle of one that rises or falls more."""
    slope = _slope(cells) or 0.0
    text = "\n".join(filter(None, (names, _power(cells))))
    if flat or 0 <= slope <= 1:
        end = cells.iloc[-1]
        layout.says(axes, end["d_k"], end["variance"], text, colour, 12, -36, ha="right", va="top")
    else:
        middle = cells.iloc[len(cells) // 2]
        side = {"ha": "right", "va": "bottom"} if slope > 0 else {"ha": "right", "va": "top"}
        layout.says(axes, middle["d_k"], middle["variance"], text, colour, -6, 4 if slope > 0 else -8, **side)


def _power(cells: pd.DataFrame) -> str:
    """Spell the power of d_k with which a variance ends, where it is a round one."""
    slope = _slope(cells)
    return next((text for power, text in _POWERS.items() if slope is not None and abs(slope - power) < _INTEGER), "")


def _draw_flat(axes: Axes, table: pd.DataFrame, looks: dict[str, style.Look]) -> None:
    from matplotlib.ticker import MaxNLocator

    names = selection.order(table["ensemble"])
    for position, name in enumerate(names):
        cells = table[table["ensemble"] == name]
        moved = panels.dodge(position, len(names), 0.2)
        _points(axes, cells, looks[name], "per_width", "per_width_low", "per_width_high", moved=moved)
    first = table[table["ensemble"] == names[0]]
    panels.theory(axes, first["d_k"], first["exact"] / first["d_k"], style.Look("", style.INK, "", style.SOLID), 0.9)
    panels.d_k_axis(axes, table["d_k"])
    low, high = axes.get_ylim()
    # Room for the key.
    axes.set_ylim(low, high + 0.3 * (high - low))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(panels.tick_text)
    axes.set_title("variance / dₖ of those ∝ dₖ")
    keys = [panels.key(looks[name], line=False) for name in names]
    axes.legend(handles=keys, loc="upper left", ncols=len(keys), handlelength=0.8, handletextpad=0.4, columnspacing=1.2)


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    names = selection.order(table["ensemble"])
    parts = _caption(table, names), _alt(table, names), _reading(table, names), tuple(_caveat(table))
    return Description(*parts, _title(table))


def independent(table: pd.DataFrame) -> pd.DataFrame:
    """Return the estimates whose exact variance is d_k."""
    flat = table[(table["growth"] == grouping.PROPORTIONAL) & (table["variance_se"] > 0) & table["exact"].notna()]
    return flat[(flat["exact"] - flat["d_k"]).abs() <= 1e-9 * flat["d_k"]]


def farthest(unit: pd.DataFrame) -> float:
    """Return the largest relative difference of such an estimate from d_k."""
    return float((unit["ratio"] - 1).abs().max())


def _title(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say that the variance of independent components is d_k, where it is, and how near the estimates come."""
    unit = independent(table)
    if unit.empty:
        return (Sentence("title"),)
    away = (unit["variance"] - unit["exact"]).abs() / unit["variance_se"]
    worst = farthest(unit)
    kind = "law" if (away < 5).all() else "apart"
    return (Sentence(f"finding.{kind}", {"worst": numbers.share(worst), "span": speaking.widths(unit["d_k"])}),)


def _caption(table: pd.DataFrame, names: Sequence[str]) -> tuple[Sentence, ...]:
    values = {"names": speaking.few(selection.labels(names)), "scores": speaking.span(table["n_scores"])}
    flat = selection.order(table.loc[table["growth"] == grouping.PROPORTIONAL, "ensemble"])
    below = (Sentence("caption.below"),) if flat else ()
    return Sentence("caption.all", values), *below, *_precision(table)


def _precision(table: pd.DataFrame) -> Iterator[Sentence]:
    relative = table["variance_se"] / table["variance"]
    if relative.notna().any():
        worst = table.loc[relative.idxmax()]
        values = {"worst": numbers.percent(relative.max(), 2), "median": numbers.percent(relative.median(), 2)}
        yield Sentence("caption.error", values | {"cell": speaking.at_width(worst["ensemble"], worst["d_k"])})


def _ends(table: pd.DataFrame, name: str) -> selection.Ends | None:
    cells = table[(table["ensemble"] == name) & table["variance"].notna()]
    return selection.ends(cells, "d_k")


def _alt(table: pd.DataFrame, names: Sequence[str]) -> tuple[Sentence, ...]:
    parts = []
    for name in names:
        ends = list(_ends(table, name) or ())
        if ends and ends[0]["d_k"] == ends[1]["d_k"]:
            ends = ends[:1]
        parts.append(speaking.series(name, [numbers.with_error(end["variance"], end["variance_se"]) for end in ends]))
    values = {"widths": speaking.widths(table["d_k"]), "parts": Listing(tuple(parts), "semicolon")}
    deviation = (table["ratio"] - 1).abs().max()
    off = [Sentence("alt.deviation", {"deviation": numbers.percent(deviation, 2)})] if deviation == deviation else []
    return Sentence("alt.all", values), *off


def _reading(table: pd.DataFrame, names: Sequence[str]) -> tuple[Sentence, ...]:
    known = table[(table["variance_se"] > 0) & table["exact"].notna()]
    inside = int(selection.covers(known["ratio_low"], known["ratio_high"], 1).sum())
    covered = speaking.coverage(inside, len(known), Sentence("quantity"), "shared.cells")
    return *_growth(table, names), covered


def _growth(table: pd.DataFrame, names: Sequence[str]) -> Iterator[Sentence]:
    """Say whose variance grows as d_k does, from the estimates at the narrowest and the widest head."""
    low, high = table["d_k"].min(), table["d_k"].max()
    if low == high:
        yield Sentence("reading.one_width", {"d_k": numbers.count(low)})
        return
    proportional, other = [], []
    for name in names:
        change = _factor(_ends(table, name))
        if change is None:
            continue
        factor, error, growth = change
        if abs(factor - growth) <= 3 * error:
            proportional.append(style.ensemble_label(name))
        else:
            values = {"label": style.ensemble_label(name), "factor": numbers.with_error(factor, error)}
            part = Sentence(f"reading.factor.{'more' if factor > growth else 'less'}", values)
            other.append((-abs(math.log(abs(factor) / growth)) if factor else -math.inf, part))
    common = table.groupby("ensemble")["d_k"].agg(["min", "max"]).nunique().max() == 1
    spelled = {"low": numbers.count(low), "high": numbers.count(high), "factor": numbers.significant(high / low)}
    span = Sentence(f"reading.span.{'common' if common else 'own'}", spelled)
    if proportional:
        yield Sentence("reading.same", {"span": span, "names": speaking.few(proportional)})
    if other:
        parts = speaking.few(part for _, part in sorted(other, key=lambda pair: pair[0]))
        yield Sentence(f"reading.other.{'rest' if proportional else 'all'}", {"span": span, "parts": parts})


def _factor(ends: selection.Ends | None) -> tuple[float, float, float] | None:
    """Return the factor of the variance between two widths, its error, and the factor of d_k; None without an error."""
    if ends is None or ends[0]["d_k"] == ends[1]["d_k"] or not ends[0]["variance"] > 0:
        return None
    if any(end["variance_se"] != end["variance_se"] for end in ends):
        return None
    factor = ends[1]["variance"] / ends[0]["variance"]
    first, last = (end["variance_se"] / end["variance"] for end in ends)
    return factor, factor * math.hypot(first, last), ends[1]["d_k"] / ends[0]["d_k"]


def _caveat(table: pd.DataFrame) -> Iterator[Sentence]:
    yield Sentence("caveat.all")
    capped = int((table["stopped_by"] == "max_scalars").sum())
    if capped:
        yield speaking.counted(capped, "caveat.capped", total=numbers.count(len(table)))
    degenerate = table[table["stopped_by"] == "degenerate"]
    if len(degenerate):
        cells = speaking.few(speaking.at_width(row.ensemble, row.d_k) for row in degenerate.itertuples())
        yield Sentence("caveat.degenerate", {"cells": cells})
