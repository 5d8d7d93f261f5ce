"""Figure: one query over the same keys twice, without a scale and with the usual one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqrtdk.figures import layout, panels, saving, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.figures.targets import LARGE
from sqrtdk.results.grid import nearest
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "article/answer"
INPUTS = ("one_query",)

_D_K, _N_KEYS = 64, 16
_BAR = 0.8
_WORDS = {"logit_std": "standard deviation", "largest_weight": "largest weight", "effective_keys": "keys that share it"}
_MARGIN = 190
"""Points for the numbers at the end of a row."""


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per key and scale rule, at one width and number of keys."""
    table = frames["one_query"]
    if table.empty:
        return table
    table = table[table["n_keys"] == nearest(table["n_keys"], _N_KEYS)]
    return table[table["d_k"] == nearest(table["d_k"], _D_K)].reset_index(drop=True)


@saving.styled(data, "No query was drawn.", LARGE)
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a row of bars for each scale rule, on one scale, with its three numbers at its end."""
    rules = style.scalings(table["scaling"])
    figure, grid = layout.stack([78] * len(rules), left=2, right=_MARGIN, top=22, bottom=26, gap=34)
    for axes, rule in zip(grid, rules, strict=True):
        _row(axes, table[table["scaling"] == rule], style.scaling(rule))
    d_k, n = int(table["d_k"].iloc[0]), int(table["n_keys"].iloc[0])
    figure.text(2 / layout.WIDTH, 0.02, f"dₖ = {d_k}, the same {n} keys, both rows from 0 to 1", va="bottom")
    return figure


def _row(axes: Axes, row: pd.DataFrame, look: style.Look) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    # All bars are one path.
    ends = zip(row["key"] - _BAR / 2, row["key"] + _BAR / 2, row["weight"], strict=True)
    corners = [((a, 0), (a, height), (b, height), (b, 0), (a, 0)) for a, b, height in ends]
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(corners)
    path = Path([corner for bar in corners for corner in bar], codes)
    axes.add_patch(PathPatch(path, facecolor=look.colour, linewidth=0, label="_bars"))
    # Weights near 0 stay to be seen.
    width = _BAR * 72 * axes.get_window_extent().width / axes.figure.dpi / (len(row) + 0.6)
    caps = {"marker": "_", "markersize": width, "markeredgewidth": 1.4, "linestyle": "none"}
    axes.plot(row["key"], row["weight"], color=look.colour, label=panels.POINTS, clip_on=False, **caps)
    axes.set_xlim(0.2, len(row) + 0.8)
    axes.set_ylim(0, 1)
    axes.grid(visible=False)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_title(f"softmax({_inside(row)})", color=look.colour, fontweight="bold", pad=6)
    for place, (name, words) in enumerate(_WORDS.items()):
        height = 0.82 - 0.34 * place
        at = {"transform": axes.transAxes, "va": "center"}
        axes.text(1 + 52 / (layout.WIDTH - _MARGIN), height, _spelled(row[name].iloc[0]), ha="right", **at, **_NUMBER)
        axes.text(1 + 58 / (layout.WIDTH - _MARGIN), height, words, **at)


_NUMBER = {"fontweight": "bold", "fontsize": LARGE + 2}


def _inside(row: pd.DataFrame) -> str:
    return {"none": "q·k"}.get(row["scaling"].iloc[0]) or style.scaling(row["scaling"].iloc[0]).label


def _spelled(value: float) -> str:
    return f"{value:.2f}" if value < 1 - 5e-3 else numbers.significant(value, 2)


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    values = {"n": numbers.count(table["n_keys"].iloc[0]), "d_k": numbers.count(table["d_k"].iloc[0])}
    parts: list[Sentence] = []
    for rule in style.scalings(table["scaling"]):
        row = table[table["scaling"] == rule].iloc[0]
        spelled = {name: _spelled(row[name]) for name in _WORDS}
        named = speaking.rule(rule) if parts else speaking.opening(rule)
        parts.append(Sentence("alt.rule", spelled | {"rule": named}))
    alt = Sentence("alt.all", values | {"parts": Listing(tuple(parts), "semicolon")})
    return Description(
        (Sentence("caption", values),), (alt,), (Sentence("reading"),), (Sentence("caveat"),), _title(table)
    )


def _title(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say what the usual scale does to the number of keys that share the attention of a query."""
    row = table.drop_duplicates("scaling").set_index("scaling")["effective_keys"]
    if not {"none", "1/sqrt(d_k)"} <= set(row.index):
        return (Sentence("title"),)
    shares = {"plain": _spelled(row["none"]), "scaled": _spelled(row["1/sqrt(d_k)"])}
    values = shares | {"d_k": numbers.count(table["d_k"].iloc[0]), "n": numbers.count(table["n_keys"].iloc[0])}
    kind = "same" if shares["plain"] == shares["scaled"] else "fewer" if row["none"] < row["1/sqrt(d_k)"] else "more"
    return (Sentence(f"finding.{kind}", values),)
