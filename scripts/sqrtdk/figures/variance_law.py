"""Figure: the variance of q·k against d_k, and its ratio to the exact variance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sqrtdk.figures import grouping, panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.figures.style import Look
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

_FEW = 9
_LEGEND = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.03), "fontsize": 8.5, "labelspacing": 0.25}


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per simulated cell: estimate, exact variance and their ratio, with 95 % intervals.

    `growth` is how the variance of the ensemble grows at the widest heads; `per_width` is variance / d_k.
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
    return table


@saving.styled(data, "No ensemble with a variance was simulated.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw all variances, those proportional to d_k again as variance / d_k, and estimate / exact of each ensemble."""
    looks = style.ensembles(selection.order(table["ensemble"]))
    known = table[table["growth"].notna()]
    flat = grouping.alike(known[known["growth"] == grouping.PROPORTIONAL])
    n_rows, n_columns = panels.grid_shape(len(looks), 3 if len(looks) <= _FEW else 4)
    heights = [3.3, 2.3 if len(flat) > 1 else 0, 0.4 + (0.85 if len(looks) <= _FEW else 0.68) * n_rows]
    figure = panels.figure(sum(heights))
    parts = iter(figure.subfigures(sum(height > 0 for height in heights), 1, height_ratios=list(filter(None, heights))))
    _draw_law(next(parts).add_subplot(), known, looks, flat)
    if len(flat) > 1:
        _draw_flat(next(parts).add_subplot(), known, looks, flat)
    lower = next(parts)
    grid = lower.subplots(n_rows, n_columns, sharex=True, squeeze=False)
    lower.supylabel("estimate / exact − 1 (%)", fontsize=9.5)
    for position, (axes, (name, look)) in enumerate(zip(grid.flat, looks.items(), strict=False)):
        last = position + n_columns >= len(looks)
        _draw_ratio(axes, table[table["ensemble"] == name], table["d_k"], look, last)
    for axes in grid.flat[len(looks) :]:
        axes.set_axis_off()
    return figure


def _points(axes: Axes, cells: pd.DataFrame, look: Look, *columns: str) -> None:
    """Draw estimates; hollow those without a standard error, whose fourth moment is infinite."""
    for hollow in (False, True):
        part = cells[cells["variance_se"].isna() == hollow]
        value, low, high = (part[name] for name in columns)
        panels.points(axes, part["d_k"], value, low, high, look, hollow=hollow, size=3.4)


def _draw_law(axes: Axes, table: pd.DataFrame, looks: dict[str, Look], flat: list[list[str]]) -> None:
    panels.log_heights(axes)
    together = [name for group in flat for name in group]
    if len(together) > 1:
        common = style.Look(f"∝ dₖ ({len(together)} ensembles)", looks[together[0]].colour, "o", style.SOLID)
        looks = looks | dict.fromkeys(together, common)
    entries = []
    for name, cells in table.groupby("ensemble", sort=False):
        look = looks[name]
        panels.theory(axes, cells["d_k"], cells["exact"], look, width=1.0)
        if name not in together or len(flat) == 1 or cells["exact"].isna().any():  # else in the panel below
            _points(axes, cells, look, "variance", "low", "high")
        top = cells.loc[cells["d_k"].idxmax(), "variance"]
        entries.append((-top, look))
    panels.d_k_axis(axes, table["d_k"])
    panels.log_ticks(axes)
    axes.set_ylabel("variance of q·k")
    ordered = dict.fromkeys(look for _, look in sorted(entries, key=lambda entry: entry[0]))
    axes.legend(handles=[panels.key(look, markersize=3.6) for look in ordered], **_LEGEND)


def _draw_flat(axes: Axes, table: pd.DataFrame, looks: dict[str, Look], flat: list[list[str]]) -> None:
    """Draw variance / d_k of the ensembles for which it is constant in the end; those of one law share a look."""
    panels.log_heights(axes)
    entries = []
    for group in flat:
        look, cells = _group_look(group, table, looks), table[table["ensemble"].isin(group)]
        first = cells[cells["ensemble"] == group[0]]
        panels.theory(axes, first["d_k"], first["exact"] / first["d_k"], look, width=1.0)
        _points(axes, cells, look, "per_width", "per_width_low", "per_width_high")
        entries.append((-first.loc[first["d_k"].idxmax(), "per_width"], look))
    panels.d_k_axis(axes, table["d_k"])
    panels.log_ticks(axes)
    axes.set_ylabel("variance / dₖ")
    axes.legend(
        handles=[panels.key(look, markersize=3.6) for _, look in sorted(entries, key=lambda entry: entry[0])], **_LEGEND
    )


def _group_look(group: list[str], table: pd.DataFrame, looks: dict[str, Look]) -> Look:
    if len(group) == 1:
        return looks[group[0]]
    first, cells = looks[group[0]], table[table["ensemble"] == group[0]]
    law = "exactly dₖ" if (abs(cells["exact"] - cells["d_k"]) <= 1e-9 * cells["d_k"]).all() else f"as {first.label}"
    return style.Look(f"{law} ({len(group)})", first.colour, first.marker, first.dash)


def _draw_ratio(axes: Axes, cells: pd.DataFrame, widths: pd.Series, look: Look, last: bool) -> None:
    axes.spines["left"].set_visible(False)
    _points(axes, cells, look, "ratio", "ratio_low", "ratio_high")
    panels.d_k_axis(axes, widths, "dₖ" if last else None, most=2)
    axes.tick_params(labelbottom=last, labelsize=8, pad=2, length=0)
    axes.grid(visible=False)
    axes.set_title(panels.short(look.label, 17), fontsize=8, pad=2)
    reach = (cells[["ratio_low", "ratio_high", "ratio"]] - 1).abs().max().max()
    if not reach >= 0:
        words = "no exact variance" if cells["variance"].notna().any() else "no variance"
        axes.text(0.5, 0.5, words, ha="center", va="center", transform=axes.transAxes, fontsize=8)
        axes.set_yticks([])
        return
    panels.reference(axes, 1)
    panels.around(axes, 1.0, reach)
    axes.yaxis.set_major_formatter(lambda value, _: panels.tick_text(round(100 * (value - 1), 9)))


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    names = selection.order(table["ensemble"])
    return Description(_caption(table, names), _alt(table, names), _reading(table, names), tuple(_caveat(table)))


def _caption(table: pd.DataFrame, names: Sequence[str]) -> tuple[Sentence, ...]:
    values = {
        "ensembles": speaking.counted(len(names), "shared.ensembles"),
        "cells": speaking.counted(len(table), "shared.cells"),
        "scores": speaking.span(table["n_scores"]),
    }
    return Sentence("caption.all", values), *_groups(table), Sentence("caption.small"), *_precision(table)


def _groups(table: pd.DataFrame) -> Iterator[Sentence]:
    """Say what the panel of proportional variances holds, and whose law is one and the same."""
    flat = table[table["growth"] == grouping.PROPORTIONAL]
    groups = grouping.alike(flat)
    if len(groups) > 1:
        ensembles = speaking.counted(flat["ensemble"].nunique(), "shared.ensembles")
        yield Sentence("caption.below", {"ensembles": ensembles})
        for group in groups:
            if len(group) > 1:
                yield Sentence("caption.one_law", {"names": speaking.few(selection.labels(group))})


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
