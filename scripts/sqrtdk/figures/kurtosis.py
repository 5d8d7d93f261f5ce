"""Figure: how fast the score becomes normal, by its excess kurtosis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sqrtdk.figures import panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.results import picking
from sqrtdk.statistics import intervals
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "atlas/scores"
INPUTS = ("moments",)

_FEW = 9
_LINEAR_BELOW = 0.01
_NEARLY_NORMAL = 0.1


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per cell with a kurtosis: estimate, 95 % interval, whether it is trusted, and the exact value."""
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
    """Draw a small panel per ensemble on one common axis, linear near 0 and logarithmic beyond."""
    shown = set(table["ensemble"])
    every = style.ensembles(selection.order(picking.simulated(frames["moments"])["ensemble"]))
    looks = {name: look for name, look in every.items() if name in shown}
    few = len(looks) <= _FEW
    n_rows, n_columns = panels.grid_shape(len(looks), 3 if few else 4)
    figure = panels.figure(0.75 + (1.45 if few else 0.95) * n_rows)
    grid = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    for position, (axes, (name, look)) in enumerate(zip(grid.flat, looks.items(), strict=False)):
        axes.set_yscale("symlog", linthresh=_LINEAR_BELOW, linscale=0.6)
        cells = table[table["ensemble"] == name]
        panels.reference(axes, 0)
        panels.theory(axes, cells["d_k"], cells["exact"], style.Look("", look.colour, "", style.SOLID), width=1.1)
        for trusted in (True, False):
            part = cells[cells["trusted"] == trusted]
            panels.points(
                axes,
                part["d_k"],
                part["excess_kurtosis"],
                part["low"],
                part["high"],
                look,
                hollow=not trusted,
                size=3.6,
            )
        below = position + n_columns >= len(looks)
        panels.d_k_axis(axes, table["d_k"], "dₖ" if below else None, most=2)
        axes.tick_params(labelbottom=below)
        axes.set_title(
            panels.short(look.label, panels.LONGEST_TITLE + 1), pad=3 if few else 2, fontsize=9.5 if few else 8.5
        )
        if not few:
            axes.grid(axis="x", visible=False)
            axes.tick_params(length=0, labelsize=8)
    _heights(grid[0][0], table)
    for axes in grid.flat[len(looks) :]:
        axes.set_axis_off()
    figure.supylabel("excess kurtosis of q·k", fontsize=9.5)
    ink = style.Look("exact", style.INK, "", style.SOLID)
    dots = style.Look("estimate", style.INK, "o", style.SOLID)
    handles = [
        panels.key(ink),
        panels.key(dots, line=False),
        panels.key(dots, line=False, hollow=True, label="not trusted"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure


def _heights(axes: Axes, table: pd.DataFrame) -> None:
    """Set limits and decade ticks that fit on an axis linear within ±0.01."""
    import numpy as np
    from matplotlib.ticker import NullLocator

    shown = np.abs(table[["excess_kurtosis", "exact"]].to_numpy(float))
    top = 10.0 ** np.ceil(np.log10(max(np.nanmax(shown), 0.1) * 1.5))
    signed = table[["excess_kurtosis", "exact"]].to_numpy(float)
    negative = np.nanmin(signed)
    bottom = -(10.0 ** np.ceil(np.log10(-negative * 1.5))) if negative < -_LINEAR_BELOW else -2 * _LINEAR_BELOW
    axes.set_ylim(bottom, top)
    decades = [10.0**e for e in range(-1, int(round(np.log10(top))) + 1)]
    decades = decades[:: -(-len(decades) // 3)]
    axes.set_yticks([-tick for tick in reversed(decades) if -tick >= bottom] + [0, *decades])
    axes.yaxis.set_major_formatter(panels.tick_text)
    axes.yaxis.set_minor_locator(NullLocator())


@speaking.described(data)
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
