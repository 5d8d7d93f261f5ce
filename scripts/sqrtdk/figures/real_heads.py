"""Figure: the heads of trained networks, whose scaled logits need not have variance 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sqrtdk.figures import panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.figures.style import Look
from sqrtdk.statistics import intervals
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "article/heads"
INPUTS = ("real_heads",)

_MARGIN = 2.0
_QUANTITIES = {
    "within_row_logit_std": "std of scaled logits\nwithin a row",
    "independence_ratio": "variance of q·k over\nindependence formula",
}


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per head: both quantities with 95 % intervals (Student's t, jackknife over runs of tokens)."""
    from sqrtdk.heads.enumeration import RUNS

    table = frames["real_heads"]
    if table.empty:
        return table
    columns = ["dump", "layer", "head", "d_k", "n_tokens", "n_scores", "scaling"]
    result = table[columns].copy()
    for name in _QUANTITIES:
        # As many values stand behind an error as runs were left out.
        half = intervals.half_width(table[f"{name}_se"], (table["n_tokens"] - 2).clip(upper=RUNS))
        result[name], result[f"{name}_se"] = table[name], table[f"{name}_se"]
        result[f"{name}_low"], result[f"{name}_high"] = table[name] - half, table[name] + half
    return result


@saving.styled(data, "No activations of trained heads were given to this run, so no trained head is shown.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw every head in its layer, dodged sideways, on two log panels with 1 marked."""
    figure = panels.figure(5.0)
    grid = figure.subplots(2, 1, sharex=True)
    groups = list(dict.fromkeys(zip(table["dump"], table["layer"], strict=True)))
    looks = style.sequence(selection.order(table["dump"]))
    for axes, (name, label) in zip(grid, _QUANTITIES.items(), strict=True):
        panels.log_heights(axes)
        for place, (dump, layer) in enumerate(groups):
            heads = table[(table["dump"] == dump) & (table["layer"] == layer)]
            _draw_layer(axes, heads, name, place, looks[dump])
        panels.reference(axes, 1)
        _limits(axes, table, name)
        axes.set_ylabel(label)
        axes.grid(axis="x", visible=False)
        _label_extremes(axes, table, name, groups)
    _layer_axis(grid[-1], groups, several=len(looks) > 1)
    if len(looks) > 1:
        figure.legend(
            handles=[panels.key(look, line=False) for look in looks.values()], loc="outside upper center", ncols=3
        )
    return figure


def _places(heads: pd.DataFrame, place: int) -> np.ndarray:
    """Return where the heads of a layer stand: side by side within ±0.36 of the layer's place."""
    import numpy as np

    return place + np.linspace(-0.36, 0.36, len(heads)) if len(heads) > 1 else np.array([float(place)])


def _draw_layer(axes: Axes, heads: pd.DataFrame, name: str, place: int, look: Look) -> None:
    x = _places(heads, place)
    panels.points(axes, x, heads[name], heads[f"{name}_low"], heads[f"{name}_high"], look, size=3.2)
    middle = heads[name].median()
    if not middle > 0:
        return
    axes.plot(
        [place - 0.42, place + 0.42],
        [middle, middle],
        color=style.INK,
        linewidth=1.0,
        alpha=style.MUTED,
        label="_median",
    )


def _limits(axes: Axes, table: pd.DataFrame, name: str) -> None:
    seen = selection.finite(table[[name, f"{name}_low", f"{name}_high"]])
    seen = seen[seen > 0]
    low, high = min(seen.min(initial=1.0), 1.0) / 1.25, max(seen.max(initial=1.0), 1.0) * 1.35
    axes.set_ylim(low, high)
    panels.log_ticks(axes)


def _label_extremes(axes: Axes, table: pd.DataFrame, name: str, groups: list[tuple[str, int]]) -> None:
    """Name the highest and the lowest head."""
    top, bottom = table[name].idxmax(), table[name].idxmin()
    for row, above in [(top, True)] + [(bottom, False)] * (top != bottom):
        head = table.loc[row]
        layer = table[(table["dump"] == head["dump"]) & (table["layer"] == head["layer"])]
        place = groups.index((head["dump"], head["layer"]))
        x = _places(layer, place)[list(layer.index).index(row)]
        axes.annotate(
            f"head {head['head']}",
            (x, head[f"{name}_high" if above else f"{name}_low"]),
            xytext=(5, 0) if place < len(groups) / 2 else (-5, 0),
            textcoords="offset points",
            ha="left" if place < len(groups) / 2 else "right",
            va="center",
            fontsize=9,
        )


def _layer_axis(axes: Axes, groups: list[tuple[str, int]], several: bool) -> None:
    axes.set_xlim(-0.6, len(groups) - 0.4)
    step = max(1, -(-len(groups) // 16))
    axes.set_xticks(range(0, len(groups), step), [str(layer) for _, layer in groups[::step]])
    axes.tick_params(axis="x", length=0)
    axes.set_xlabel(
        "layer (one point for each head; layers of each network in turn)"
        if several
        else "layer (one point for each head)"
    )


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    reading = (*_spread(table), *_independence(table))
    return Description((_caption(table),), (_alt(table),), reading, (Sentence("caveat"),))


def _caption(table: pd.DataFrame) -> Sentence:
    parts = []
    for dump, heads in table.groupby("dump", sort=False):
        first = heads.iloc[0]
        scaling = first["scaling"]
        values = {
            "dump": dump,
            "heads": speaking.counted(len(heads), "shared.heads"),
            "d_k": speaking.counts(sorted(set(heads["d_k"]))),
            "tokens": numbers.count(first["n_tokens"]),
            "scores": numbers.count(first["n_scores"]),
            "rule": style.scaling_words(scaling).removeprefix("with "),
        }
        parts.append(Sentence(f"caption.{'unscaled' if scaling == 'none' else 'scaled'}", values))
    return Sentence("caption.all", {"dumps": Listing(tuple(parts))})


def _range(table: pd.DataFrame, name: str) -> Sentence:
    values: dict[str, object] = {"median": numbers.significant(table[name].median())}
    for end, row in (("low", table.loc[table[name].idxmin()]), ("high", table.loc[table[name].idxmax()])):
        values[end] = numbers.with_error(row[name], row[f"{name}_se"])
        values[f"{end}_head"] = Sentence("head", {"layer": str(row["layer"]), "head": str(row["head"])})
    return Sentence("range", values)


def _alt(table: pd.DataFrame) -> Sentence:
    heads = speaking.counted(len(table), "shared.heads")
    spread, ratio = (_range(table, name) for name in _QUANTITIES)
    return Sentence("alt", {"heads": heads, "spread": spread, "ratio": ratio})


def _spread(table: pd.DataFrame) -> Iterator[Sentence]:
    """Say whether the logits of a row are spread as the argument for the scale assumes."""
    name, total = "within_row_logit_std", len(table)
    inside = int(selection.covers(table[f"{name}_low"], table[f"{name}_high"], 1.0).sum())
    far = int(((table[name] > _MARGIN) | (table[name] < 1 / _MARGIN)).sum())
    yield Sentence("reading.spread", {"range": _range(table, name)})
    values = {"inside": numbers.count(inside), "heads": speaking.counted(total, "shared.heads")}
    yield speaking.counted(far, "reading.near", margin=numbers.significant(_MARGIN), **values)
    yield Sentence(f"reading.spread_is.{'lost' if inside < total / 2 else 'kept'}")


def _independence(table: pd.DataFrame) -> Iterator[Sentence]:
    """Say on which side of the independence formula the variance lies."""
    name, total = "independence_ratio", len(table)
    low, high = int((table[f"{name}_high"] < 1).sum()), int((table[f"{name}_low"] > 1).sum())
    values = {"above": numbers.count(high), "below": numbers.count(low), "inside": numbers.count(total - low - high)}
    yield Sentence("reading.ratio", values | {"range": _range(table, name)})
    side = "above" if high > total / 2 else "below" if low > total / 2 else "neither"
    yield Sentence(f"reading.side.{side}")
