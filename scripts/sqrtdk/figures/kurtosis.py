"""Figure: how fast the score becomes normal, by its excess kurtosis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sqrtdk.figures import layout, panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.results import picking
from sqrtdk.results.grid import nearest
from sqrtdk.statistics import intervals
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "atlas/scores"
INPUTS = ("moments",)

_WIDTHS = (4, 64, 1024)
"""Widths that are shown, or the nearest that there are."""
_ROW = 13
"""Points for an ensemble's row."""
_LINEAR_BELOW = 0.01
_NEARLY_NORMAL = 0.1


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per cell that is shown: estimate, 95 % interval, whether it is trusted, and the exact value."""
    table = _all(frames)
    if table.empty:
        return table
    return table[table["d_k"].isin({nearest(table["d_k"], d_k) for d_k in _WIDTHS})].reset_index(drop=True)


def _all(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    moments = picking.simulated(frames["moments"])
    if moments.empty:
        return moments
    table = moments[["ensemble", "d_k", "n_blocks", "n_scores", "excess_kurtosis", "excess_kurtosis_se"]].copy()
    half = intervals.half_width(moments["excess_kurtosis_se"], moments["n_blocks"])
    table["low"], table["high"] = table["excess_kurtosis"] - half, table["excess_kurtosis"] + half
    table["trusted"] = moments["kurtosis_trusted"]
    table["exact"] = moments["exact_excess_kurtosis"]
    table["degenerate"] = moments["stopped_by"] == "degenerate"
    return table[table["excess_kurtosis"].notna() | table["exact"].notna()].reset_index(drop=True)


@saving.styled(data, "No excess kurtosis was estimated.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a row for each ensemble, sorted, with a marker for each width, on an axis linear near 0."""
    widths = style.sequence(sorted(selection.order(table["d_k"])))
    size = table.assign(size=table["exact"].fillna(table["excess_kurtosis"])).sort_values("d_k").groupby("ensemble")
    names = size["size"].last().sort_values().index.tolist()
    figure, (axes,) = layout.stack([_ROW * len(names)], left=124, right=18, top=24, bottom=36)
    axes.set_xscale("symlog", linthresh=_LINEAR_BELOW, linscale=0.6)
    axes.axvline(0, color=style.INK, linewidth=0.8, alpha=style.MUTED, zorder=1, label="_reference")
    rows = {name: place for place, name in enumerate(names)}
    for width, look in widths.items():
        cells = table[table["d_k"] == width]
        places = cells["ensemble"].map(rows)
        axes.hlines(places, cells["low"], cells["high"], color=look.colour, linewidth=1.1, label="_intervals")
        exact = {"marker": "|", "markersize": 8, "markeredgewidth": 1.0, "linestyle": "none"}
        axes.plot(cells["exact"], places, color=look.colour, label="_theory", **exact)
        for trusted in (True, False):
            part = cells[cells["trusted"] == trusted]
            fill = look.colour if trusted else "none"
            dots = {"marker": look.marker, "markersize": 4, "markerfacecolor": fill, "linestyle": "none"}
            axes.plot(part["excess_kurtosis"], places[part.index], color=look.colour, label=panels.POINTS, **dots)
    _limits(axes, table)
    axes.set_yticks(range(len(names)), [panels.short(style.ensemble_label(name), 18) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("excess kurtosis of q·k (hollow: not trusted, bar: exact)")
    keys = [panels.key(look, line=False, label=f"dₖ = {width}") for width, look in widths.items()]
    figure.legend(handles=keys, loc="upper right", ncols=len(keys), handlelength=1)
    return figure


def _limits(axes: Axes, table: pd.DataFrame) -> None:
    """Set limits and decade ticks that fit on an axis linear within ±0.01."""
    import numpy as np
    from matplotlib.ticker import NullLocator

    signed = table[["excess_kurtosis", "exact"]].to_numpy(float)
    top = 10.0 ** np.ceil(np.log10(max(np.nanmax(np.abs(signed)), 0.1) * 1.5))
    negative = np.nanmin(signed)
    bottom = -(10.0 ** np.ceil(np.log10(-negative * 1.5))) if negative < -_LINEAR_BELOW else -2 * _LINEAR_BELOW
    axes.set_xlim(bottom, top)
    decades = [10.0**e for e in range(-1, int(round(np.log10(top))) + 1)]
    decades = decades[:: -(-len(decades) // 4)]
    axes.set_xticks([-tick for tick in reversed(decades) if -tick >= bottom] + [0, *decades])
    axes.xaxis.set_major_formatter(panels.tick_text)
    axes.xaxis.set_minor_locator(NullLocator())


@speaking.described(_all)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    names = selection.order(table["ensemble"])
    known = table[table["trusted"] & table["exact"].notna() & (table["excess_kurtosis_se"] > 0)]
    inside = int(selection.covers(known["low"], known["high"], known["exact"]).sum())
    covered = speaking.coverage(inside, len(known), Sentence("quantity"), "shared.cells")
    reading = (*_normality(table, names), covered)
    return Description(tuple(_caption(table, names)), _alt(table, names), reading, tuple(_caveat(table)))


def _caption(table: pd.DataFrame, names: Sequence[str]) -> Iterator[Sentence]:
    values = {
        "ensembles": speaking.counted(len(names), "shared.ensembles"),
        "scores": speaking.span(table["n_scores"]),
        "linear": numbers.significant(_LINEAR_BELOW, 1),
    }
    yield Sentence("caption.all", values)
    worst = table.loc[table["trusted"], "excess_kurtosis_se"].max()
    if worst == worst:
        yield Sentence("caption.error", {"worst": numbers.significant(worst, 2)})


def _alt(table: pd.DataFrame, names: Sequence[str]) -> tuple[Sentence, ...]:
    parts = []
    for name in names:
        cells = table[(table["ensemble"] == name) & table["excess_kurtosis"].notna()]
        ends = (selection.ends(cells, "d_k") or ())[: len(cells)]
        spelled = [numbers.with_error(end["excess_kurtosis"], end["excess_kurtosis_se"]) for end in ends]
        parts.append(speaking.series(name, spelled))
    values = {"widths": speaking.widths(table["d_k"]), "parts": Listing(tuple(parts), "semicolon")}
    return (Sentence("alt", values),)


def _best(table: pd.DataFrame) -> pd.Series:
    """Return the excess kurtosis to judge by: the exact one, or the trusted estimate where there is none."""
    return table["exact"].where(table["exact"].notna(), table["excess_kurtosis"].where(table["trusted"]))


def _normality(table: pd.DataFrame, names: Sequence[str]) -> Iterator[Sentence]:
    """Name the width from which on each ensemble is nearly normal, and those that never are, the farthest first."""
    never, reached, widest = [], [], table["d_k"].max()
    for name in names:
        cells = table[table["ensemble"] == name].assign(best=_best).dropna(subset="best").sort_values("d_k")
        if cells.empty:
            continue
        label, last = {"label": style.ensemble_label(name)}, cells.iloc[-1]
        far = cells.loc[cells["best"].abs() >= _NEARLY_NORMAL, "d_k"].max()
        if far == last["d_k"]:
            values = label | {"value": numbers.significant(last["best"], 2), "d_k": numbers.count(last["d_k"])}
            part = Sentence(f"reading.end.{'widest' if far == widest else 'narrower'}", values)
            never.append((-abs(last["best"]), part))
        else:
            first = cells.loc[~(cells["d_k"] <= far), "d_k"].min()
            reached.append(Sentence("reading.from", label | {"d_k": numbers.count(first)}))
    values = {"limit": numbers.significant(_NEARLY_NORMAL, 1), "d_k": numbers.count(widest)}
    if reached:
        yield Sentence("reading.reached", values | {"parts": speaking.few(reached)})
    if never:
        parts = speaking.few(part for _, part in sorted(never, key=lambda pair: pair[0]))
        yield Sentence(f"reading.never.{'rest' if reached else 'all'}", values | {"parts": parts})


def _caveat(table: pd.DataFrame) -> Iterator[Sentence]:
    untrusted = int((~table["trusted"]).sum())
    if untrusted:
        yield speaking.counted(untrusted, "caveat.untrusted", total=numbers.count(len(table)))
    yield Sentence("caveat.tails")
