"""Figure: the gradient that a row sends back without the scale over that with it, by width and number of keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqrtdk.figures import panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.figures.style import Look
from sqrtdk.results.grid import nearest
from sqrtdk.statistics import intervals
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "article/gradients"
INPUTS = ("gradient_by_keys", "key_crossovers")

_MEASURES = {"grad_logits": "by the logits", "grad_query": "by the query"}
_QUANTITIES = ("rms", "median")
_N_KEYS = (3, 16, 64, 1024)
_WANTED = 64
_LOWEST, _HIGHEST = 1e-3, 300.0


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the ratios that are shown, one row for each mark."""
    table = frames["gradient_by_keys"]
    if table.empty:
        return table
    shown = table["n_keys"].isin(_N_KEYS) & table["measure"].isin(_MEASURES) & table["ratio"].between(_LOWEST, _HIGHEST)
    return table[shown].reset_index(drop=True)


@saving.styled(data, "No gradients were compared.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a panel for the logits and one for the query, with a look for each number of keys, and the line at 1."""
    looks = style.sequence(sorted(selection.order(table["n_keys"])))
    figure = panels.figure(3.6)
    grid = figure.subplots(1, len(_MEASURES), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (measure, title) in zip(grid, _MEASURES.items(), strict=True):
        panels.log_heights(axes)
        rows = table[table["measure"] == measure]
        for n, look in looks.items():
            _draw_keys(axes, rows[rows["n_keys"] == n], look)
        panels.reference(axes, 1)
        panels.d_k_axis(axes, table["d_k"], most=6)
        axes.set_title(f"gradient {title}")
    grid[0].set_ylim(_LOWEST, _HIGHEST)
    grid[0].set_ylabel("without the scale / with 1/√dₖ")
    panels.log_ticks(grid[0])
    _legend(figure, looks)
    return figure


def _draw_keys(axes: Axes, rows: pd.DataFrame, look: Look) -> None:
    for quantity, dash in zip(_QUANTITIES, (style.SOLID, style.DOTTED), strict=True):
        part = rows[rows["quantity"] == quantity]
        drawn = style.Look(look.label, look.colour, look.marker, dash)
        ends = part["low"], part["high"]
        panels.points(axes, part["d_k"], part["ratio"], *ends, drawn, hollow=quantity == "median", line=True, size=3.6)


def _legend(figure: Figure, looks: dict[int, Look]) -> None:
    handles = [panels.key(look, linestyle="none", label=f"n = {n}") for n, look in looks.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    ink = style.Look("root mean square", style.INK, "o", style.SOLID)
    handles = [panels.key(ink), panels.key(ink, hollow=True, linestyle=style.DOTTED, label="median")]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    d_k = nearest(table["d_k"], _WANTED)
    sizes = [_sizes(frames["gradient_by_keys"], measure, d_k) for measure in _MEASURES]
    values: dict[str, object] = {"n_keys": speaking.counts(sorted(selection.order(table["n_keys"])))}
    values |= {"rows": speaking.span(table["n_rows"].dropna().astype(int)), "lowest": f"{_LOWEST:g}"}
    crossings = [
        _falling(frames["key_crossovers"], measure, quantity, frames["gradient_by_keys"]["d_k"])
        for measure in _MEASURES
        for quantity in ("median", "rms")
    ]
    alt = Sentence("alt", {"d_k": numbers.count(d_k), "parts": Listing(tuple(sizes), "semicolon")})
    reading = (Sentence("reading.sizes", {"d_k": numbers.count(d_k), "parts": Listing(tuple(sizes), "semicolon")}),)
    return Description((Sentence("caption", values),), (alt,), (*reading, *crossings), (Sentence("caveat"),))


def _sizes(table: pd.DataFrame, measure: str, d_k: int) -> Sentence:
    """Say what both ratios are at one width, for each number of keys."""
    rows = table[(table["measure"] == measure) & (table["d_k"] == d_k)]
    parts = []
    for n in _N_KEYS:
        ratios = {row.quantity: _spelled(row) for row in rows[rows["n_keys"] == n].itertuples()}
        if len(ratios) == len(_QUANTITIES):
            parts.append(Sentence("size", {"n": numbers.count(n), **ratios}))
    return Sentence(f"sizes.{measure}", {"parts": Listing(tuple(parts))})


def _spelled(row: object) -> str:
    ratio, low, high = (float(getattr(row, name)) for name in ("ratio", "low", "high"))
    if low != low:
        return numbers.significant(ratio, 3)
    return numbers.with_error(ratio, (high - low) / (2 * intervals.NORMAL))


def _falling(table: pd.DataFrame, measure: str, quantity: str, widths: pd.Series) -> Sentence:
    """Say from which width on a ratio is below 1, or that it is at none or at all."""
    rows = table[(table["measure"] == measure) & (table["quantity"] == quantity) & table["n_keys"].isin(_N_KEYS)]
    ends, places = {"low": numbers.count(widths.min()), "high": numbers.count(widths.max())}, []
    for row in rows.itertuples():
        if row.d_k_star == row.d_k_star:
            width = (
                numbers.with_error(row.d_k_star, (row.ci_high - row.ci_low) / (2 * intervals.NORMAL))
                if row.ci_high > row.ci_low
                else numbers.significant(row.d_k_star, 3)
            )
            places.append(Sentence("reading.falls.from", {"n": numbers.count(row.n_keys), "d_k": width}))
        else:
            kind = "always" if str(row.reason).startswith("below") else "never"
            places.append(Sentence(f"reading.falls.{kind}", {"n": numbers.count(row.n_keys), **ends}))
    return Sentence(f"reading.{measure}_{quantity}", {"places": Listing(tuple(places), "semicolon")})
