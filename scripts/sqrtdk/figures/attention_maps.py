"""Figure: one block's attention matrix in heads of growing width, without a scale and with the usual one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sqrtdk.figures import heat, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.figures.targets import LARGE
from sqrtdk.results.grid import nearest
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "article/attention"
INPUTS = ("attention_maps", "softmax_saturation")

_EDGES = [(i / 10) ** 2 for i in range(11)]
"""Weights at which the colour changes, at equal steps of their root: small weights are most of a matrix."""
_ONE_HOT = 0.5
_WIDTHS = (4, 64, 1024)
"""Widths that are shown, or the nearest that there are."""
_ONE_KEY = 1.5
"""Effective keys up to which queries pick one."""
_LEFT, _RIGHT, _TOP, _BELOW, _BAR = 0.34, 0.04, 0.34, 0.38, 0.66
"""Margins in inches: of the labels, above the matrices, below each of them, and of the colour bar."""


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per query and matrix: the weights, to six digits, and beside them the mean over many blocks."""
    table = frames["attention_maps"]
    if table.empty:
        return table
    style.scalings(table["scaling"])
    table = table[table["d_k"].isin({nearest(table["d_k"], d_k) for d_k in _WIDTHS})]
    table = table.merge(_means(frames["softmax_saturation"], _weights(table).shape[1]), how="left")
    reals = table.select_dtypes("float").columns
    table[reals] = table[reals].map(lambda value: float(f"{value:.6g}"))
    return table


def _means(saturation: pd.DataFrame, n: int) -> pd.DataFrame:
    """Return the mean effective keys of standard normal queries over n keys, with its standard error."""
    names = {"estimate": "mean_effective_keys", "se": "mean_effective_keys_se"}
    columns = ["d_k", "scaling", *names.values()]
    if saturation.empty:
        return saturation.reindex(columns=columns)
    wanted = (saturation["ensemble"] == "gaussian") & (saturation["n_keys"] == n)
    return saturation[wanted & (saturation["measure"] == "effective_keys")].rename(columns=names)[columns]


def _weights(table: pd.DataFrame) -> pd.DataFrame:
    return table[[column for column in table.columns if column.startswith("weight_")]]


def _matrices(table: pd.DataFrame) -> Iterator[tuple[str, int, pd.DataFrame]]:
    """Yield each scale rule, width and its rows, in order."""
    for rule in style.scalings(table["scaling"]):
        for d_k in sorted(selection.order(table["d_k"])):
            rows = table[(table["scaling"] == rule) & (table["d_k"] == d_k)].sort_values("query")
            if len(rows):
                yield rule, d_k, rows


@saving.styled(data, "No attention matrix was drawn.", LARGE)
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a matrix for each width, a row of them for each scale rule, in one colour scale."""
    from matplotlib.figure import Figure

    rules, widths = style.scalings(table["scaling"]), sorted(selection.order(table["d_k"]))
    size = (style.WIDTH - _LEFT - _RIGHT) / max(len(widths), 3) - 0.09
    height = _TOP + len(rules) * (size + _BELOW) + _BAR
    # Placed by hand, so that a stroke of known width fills a cell.
    figure = Figure((style.WIDTH, height))

    def place(left: float, bottom: float, width: float, tall: float) -> Axes:
        return figure.add_axes((left / style.WIDTH, bottom / height, width / style.WIDTH, tall / height))

    for rule, d_k, rows in _matrices(table):
        i, j = rules.index(rule), widths.index(d_k)
        axes = place(_LEFT + j * (size + 0.09), height - _TOP - i * (size + _BELOW) - size, size, size)
        _matrix(axes, _weights(rows).to_numpy(), 72 * size)
        axes.set_xlabel(_below(rows))
        if i == 0:
            axes.set_title(f"dₖ = {d_k}", loc="center")
        if j == 0:
            look = style.scaling(rule)
            axes.set_ylabel(look.label, color=look.colour)
    bar = place(_LEFT, 0.48, style.WIDTH - _LEFT - _RIGHT - 0.1, 0.1)
    heat.bar(figure, bar, _EDGES, "attention weight, root scale (dot: above 0.5)", _edge)
    return figure


def _matrix(axes: Axes, weights: np.ndarray, points: float) -> None:
    """Draw the cells as thick vertical strokes, one path for each colour: a tenth of the size of as many squares."""
    import numpy as np
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path

    n_queries, n_keys = weights.shape
    level = np.clip(np.searchsorted(_EDGES, weights, side="right") - 1, 0, len(_EDGES) - 2)
    shades = heat.colours(len(_EDGES) - 1)
    # A patch, because the background of axes is left out of SVG files.
    axes.add_patch(Rectangle((0, 0), n_keys, n_queries, color=shades[0], linewidth=0, label="_level_0"))
    for i in range(1, len(shades)):
        strokes = [stroke for key in range(n_keys) for stroke in _runs(level[:, key] == i, key + 0.5)]
        if strokes:
            codes = [Path.MOVETO, Path.LINETO] * (len(strokes) // 2)
            # A little wider than a cell, so that no seam shows between neighbours.
            width = 1.03 * points / n_keys
            look = {"fill": False, "edgecolor": shades[i], "linewidth": width, "capstyle": "butt", "snap": False}
            axes.add_patch(PathPatch(Path(strokes, codes), label=f"_level_{i}", **look))
    row, key = np.nonzero(weights > _ONE_HOT)
    axes.plot(key + 0.5, row + 0.5, ".", color=heat.DARK, markersize=2.2, markeredgewidth=0, label="_one_hot")
    axes.set_xlim(0, n_keys)
    axes.set_ylim(n_queries, 0)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def _runs(marked: np.ndarray, x: float) -> Iterator[tuple[float, int]]:
    """Yield the two ends of each run of marked cells of a column."""
    start: int | None = None
    for row, here in enumerate([*marked, False]):
        if here and start is None:
            start = row
        elif not here and start is not None:
            yield from ((x, start), (x, row))
            start = None


def _below(rows: pd.DataFrame) -> str:
    """Spell the effective keys, of many draws where they are there, else of the matrix."""
    return f"{numbers.significant(_keys(rows), 2)} effective keys"


def _keys(rows: pd.DataFrame) -> float:
    column = "mean_effective_keys" if rows["mean_effective_keys"].notna().all() else "effective_keys"
    return float(rows[column].mean())


def _edge(edge: float) -> str:
    """Spell every other edge of the colours, which have room for no more."""
    return f"{edge:.2g}" if edge in _EDGES[::2] else ""


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    return Description(_caption(table), (_alt(table),), _reading(table), (Sentence("caveat"),), _title(table))


def _title(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say whether a query of the widest head picks one key under one of the two usual rules and blends under the other.

    Their numbers are means over many draws where these are there.
    """
    wide = table[table["d_k"] == table["d_k"].max()]
    keys = {rule: _keys(rows) for rule, rows in wide.groupby("scaling")}
    if not {"none", "1/sqrt(d_k)"} <= keys.keys():
        return (Sentence("title"),)
    plain, scaled = (numbers.significant(keys[rule], 2) for rule in ("none", "1/sqrt(d_k)"))
    kind = "sharper" if keys["none"] < _ONE_KEY and keys["1/sqrt(d_k)"] > 2 * _ONE_KEY else "other"
    values = {"plain": plain, "scaled": scaled, "n_keys": _n_keys(table), "d_k": numbers.count(wide["d_k"].iloc[0])}
    return (Sentence(f"finding.{kind}", values),)


def _n_keys(table: pd.DataFrame) -> str:
    return numbers.count(_weights(table).shape[1])


def _caption(table: pd.DataFrame) -> tuple[Sentence, ...]:
    values = {"n_queries": numbers.count(table["query"].max()), "n_keys": _n_keys(table)}
    block = Sentence("caption.block", values | {"seed": str(table["seed"].iloc[0])})
    means = table["mean_effective_keys"].notna().all()
    return block, Sentence(f"caption.{'means' if means else 'own'}")


def _alt(table: pd.DataFrame) -> Sentence:
    sizes: dict[str, list[tuple[int, float]]] = {}
    for rule, d_k, rows in _matrices(table):
        sizes.setdefault(rule, []).append((d_k, _keys(rows)))
    moves = []
    for rule, ends in sizes.items():
        (low, first), (high, last) = ((numbers.count(d), numbers.significant(x, 2)) for d, x in (ends[0], ends[-1]))
        values = {"rule": speaking.rule(rule), "low": low, "high": high, "first": first, "last": last}
        moves.append(Sentence("alt.single" if low == high else "alt.move", values))
    return Sentence("alt.all", {"n_keys": _n_keys(table), "moves": Listing(tuple(moves), "semicolon")})


def _reading(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say how many queries give most of their attention to one key in the widest head, for each rule."""
    d_k, parts = table["d_k"].max(), []
    for rule in style.scalings(table["scaling"]):
        rows = table[(table["scaling"] == rule) & (table["d_k"] == d_k)]
        hot = numbers.count((rows["largest_weight"] > _ONE_HOT).sum())
        parts.append(
            Sentence("reading.rule", {"hot": hot, "count": numbers.count(len(rows)), "rule": speaking.rule(rule)})
        )
    values = {"d_k": numbers.count(d_k), "parts": Listing(tuple(parts), "semicolon")}
    return Sentence("reading.one_hot", values), *_same_keys(table)


def _same_keys(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say that a scale leaves the order of the keys as it is, where the matrices show it."""
    best = table.assign(best=_weights(table).to_numpy().argmax(axis=1))
    together = best.groupby(["d_k", "query"])["best"].nunique()
    if table["scaling"].nunique() < 2 or together.max() > 1:
        return ()
    return (Sentence("reading.same_keys"),)
