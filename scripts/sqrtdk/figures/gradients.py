"""Figure: the gradient that a row sends back without the scale over that with it, by width and number of keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqrtdk.figures import layout, panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.figures.targets import LARGE
from sqrtdk.results.grid import nearest
from sqrtdk.statistics import intervals
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PLACE = "article/gradients"
INPUTS = ("gradient_by_keys", "key_crossovers")

_MEASURES = ("grad_logits", "grad_query")
_SHOWN = "grad_logits"
_QUANTITIES = {"median": "median query", "rms": "root mean square"}
_N_KEYS = (3, 16, 64, 1024)
_WANTED = 64
_LOWEST, _HIGHEST = 1e-3, 300.0


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the ratios that are shown, one row for each mark."""
    table = frames["gradient_by_keys"]
    if table.empty:
        return table
    shown = table["n_keys"].isin(_N_KEYS) & (table["measure"] == _SHOWN) & table["ratio"].between(_LOWEST, _HIGHEST)
    return table[shown].reset_index(drop=True)


@saving.styled(data, "No gradients were compared.", LARGE)
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a panel for the median and one for the root mean square, with a look for each number of keys."""
    looks = style.sequence(sorted(selection.order(table["n_keys"])))
    figure, grid = layout.stack([165] * len(_QUANTITIES), left=52, right=86, top=26, gap=46)
    for axes, (quantity, title) in zip(grid, _QUANTITIES.items(), strict=True):
        axes.set_yscale("log")
        rows = table[table["quantity"] == quantity]
        for n, look in looks.items():
            part = rows[rows["n_keys"] == n].sort_values("d_k")
            panels.points(axes, part["d_k"], part["ratio"], part["low"], part["high"], look, line=True, size=4.4)
        panels.reference(axes, 1)
        panels.d_k_axis(axes, table["d_k"], "dₖ" if axes is grid[-1] else None)
        axes.set_ylim(_LOWEST, _HIGHEST)
        panels.log_heights(axes, most=5)
        axes.minorticks_off()
        axes.set_title(f"gradient without / with the scale, {title}")
        # Curves that leave the panel are named in the order that they have where all are in it.
        last = rows.loc[rows.groupby("d_k")["n_keys"].transform("nunique") == rows["n_keys"].nunique(), "d_k"].max()
        places = rows[rows["d_k"] == last]
        named = zip(places["ratio"], places["n_keys"], strict=True)
        layout.at_ends(axes, [(ratio, f"{n} keys", looks[n].colour) for ratio, n in named])
        axes.text(0.02, _HIGHEST / 8, "above 1: larger without", transform=axes.get_yaxis_transform())
    return figure


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
    words = (Sentence("caption", values),), (alt,), (*reading, *crossings), (Sentence("caveat"),)
    return Description(*words, _title(frames["key_crossovers"]))


def _title(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say from which width on the gradient of the median query is smaller without the scale, over few and many keys."""
    values: dict[str, object] = {}
    for name, row in ends(table).items():
        values |= {name: numbers.count(row["n_keys"]), f"{name}_d_k": numbers.significant(row["d_k_star"], 2)}
    return (Sentence("finding", values),) if values else (Sentence("title"),)


def ends(table: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the crossovers of the median query over the `few`est and the `many` keys that are shown, if two are."""
    rows = table[(table["measure"] == _SHOWN) & (table["quantity"] == "median") & table["n_keys"].isin(_N_KEYS)]
    rows = rows[rows["d_k_star"].notna()].sort_values("n_keys")
    return dict(zip(("few", "many"), rows.iloc[[0, -1]].to_dict("records"), strict=True)) if len(rows) > 1 else {}


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
