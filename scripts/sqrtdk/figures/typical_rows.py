"""Figure: the weights of a row in order of size, for narrow and wide heads and few and many keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqrtdk.figures import panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.results.grid import nearest
from sqrtdk.statistics import intervals
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PLACE = "atlas/attention"
INPUTS = ("typical_rows",)
_WIDTHS, _KEYS = (4, 64, 1024), (64,)
"""Widths and numbers of keys that are shown, or the nearest that there are."""
_LOWEST = 1e-4
_HALF = 0.5


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per shown weight, with the 95 % interval of its mean; weights below 0.0001 are left out."""
    table = frames["typical_rows"]
    if table.empty:
        return table
    style.scalings(table["scaling"])
    shown = (table["first_rank"] == table["last_rank"]) & (table["estimate"] >= _LOWEST)
    for column, wanted in (("d_k", _WIDTHS), ("n_keys", _KEYS)):
        shown &= table[column].isin({nearest(table[column], value) for value in wanted})
    table = table.loc[shown, ["d_k", "n_keys", "scaling", "first_rank", "estimate", "se", "n_rows"]]
    table = table.rename(columns={"first_rank": "rank"}).reset_index(drop=True)
    half = intervals.half_width(table["se"], table["n_rows"])
    return table.assign(low=table["estimate"] - half, high=table["estimate"] + half)


@saving.styled(data, "No typical row was drawn.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a column for each width and a row for each number of keys, with a curve for each scale rule."""
    widths, n_keys = (sorted(selection.order(table[column])) for column in ("d_k", "n_keys"))
    rules = style.scalings(table["scaling"])
    figure = panels.figure(0.9 + 1.45 * len(n_keys), max(style.WIDTH, 1.4 * len(widths)))
    grid = figure.subplots(len(n_keys), len(widths), sharex=True, sharey=True, squeeze=False)
    for axes, d_k in zip(grid[0], widths, strict=True):
        axes.set_title(f"dₖ = {d_k}")
    for row, n in zip(grid, n_keys, strict=True):
        for axes, d_k in zip(row, widths, strict=True):
            axes.set_yscale("log")
            panels.reference(axes, 1 / n)
            cell = table[(table["n_keys"] == n) & (table["d_k"] == d_k)]
            for rule in rules:
                part = cell[cell["scaling"] == rule]
                rank, weight, low, high = (part[column] for column in ("rank", "estimate", "low", "high"))
                panels.points(axes, rank, weight, low, high, style.scaling(rule), line=True, size=2.8)
        row[0].set_ylabel(f"weight, n = {n}")
    _axes(grid, table["rank"].max())
    figure.legend(handles=[panels.key(style.scaling(rule)) for rule in rules], loc="outside upper center", ncols=3)
    return figure


def _axes(grid: Any, last: int) -> None:
    ticks = [rank for rank in (1, 2, 4, 8, 16) if rank <= last]
    for axes in grid.flat:
        axes.set_xscale("log", base=2)
        axes.set_xlim(0.8, 1.25 * last)
        axes.set_xticks(ticks, [str(rank) for rank in ticks])
        axes.minorticks_off()
        axes.set_ylim(_LOWEST, 1.5)
        axes.set_yticks([1e-4, 1e-3, 1e-2, 1e-1, 1])
        axes.yaxis.set_major_formatter(panels.tick_text)
    for axes in grid[-1]:
        axes.set_xlabel("rank")


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows."""
    caption = Sentence("caption", {"rows": speaking.span(table["n_rows"])})
    return Description((caption,), (_alt(table),), (_reading(table),), (Sentence("caveat"),))


def _alt(table: pd.DataFrame) -> Sentence:
    """Say the largest weight in the widest head shown, for each rule and number of keys."""
    top = table[(table["rank"] == 1) & (table["d_k"] == table["d_k"].max())]
    parts = []
    for rule in style.scalings(top["scaling"]):
        weights = tuple(
            Sentence("alt.of", {"value": numbers.with_error(row.estimate, row.se), "n": numbers.count(row.n_keys)})
            for row in top[top["scaling"] == rule].itertuples()
        )
        parts.append(Sentence("alt.rule", {"rule": speaking.rule(rule), "parts": Listing(weights)}))
    values = {"d_k": numbers.count(table["d_k"].max()), "parts": Listing(tuple(parts), "semicolon")}
    return Sentence("alt.all", values)


def _reading(table: pd.DataFrame) -> Sentence:
    """Say for each rule how many of the shown ranks hold half of the attention in the widest head over most keys."""
    cell = table[(table["d_k"] == table["d_k"].max()) & (table["n_keys"] == table["n_keys"].max())]
    parts = []
    for rule in style.scalings(cell["scaling"]):
        held = cell[cell["scaling"] == rule].sort_values("rank")["estimate"].cumsum()
        keys = int((held < _HALF).sum()) + 1
        beyond = keys > len(held)
        count = speaking.counted(len(held) if beyond else keys, "reading.beyond" if beyond else "reading.keys")
        parts.append(Sentence("reading.rule", {"rule": speaking.rule(rule), "keys": count}))
    n = numbers.count(cell["n_keys"].max())
    return Sentence("reading.all", {"n": n, "parts": Listing(tuple(parts), "comma")})
