"""Figure: the heads of trained networks, whose scaled logits need not have standard deviation 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sqrtdk.figures import layout, panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.figures.style import Look
from sqrtdk.figures.targets import LARGE
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
_SHOWN, _RATIO = "within_row_logit_std", "independence_ratio"
_QUANTITIES = (_SHOWN, _RATIO)
_BAND = (0.9, 1.1)
"""What counts as the standard deviation that the scale was made for."""


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


@saving.styled(data, "No activations of trained heads were given to this run, so no trained head is shown.", LARGE)
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw every head in its layer, dodged sideways, on a log axis with the band around 1."""
    figure, (axes,) = layout.stack([230], left=42, right=6, top=26)
    groups = list(dict.fromkeys(zip(table["dump"], table["layer"], strict=True)))
    looks = style.sequence(selection.order(table["dump"]))
    panels.log_heights(axes)
    axes.axhspan(*_BAND, color=style.INK, alpha=style.FAINT, linewidth=0, zorder=0)
    for place, (dump, layer) in enumerate(groups):
        heads = table[(table["dump"] == dump) & (table["layer"] == layer)]
        _draw_layer(axes, heads, place, looks[dump])
    _limits(axes, table)
    axes.set_title("standard deviation of the scaled logits")
    axes.grid(axis="x", visible=False)
    _label_extremes(axes, table, groups)
    _layer_axis(axes, groups, table)
    return figure


def _places(heads: pd.DataFrame, place: int) -> np.ndarray:
    """Return where the heads of a layer stand: side by side within ±0.36 of the layer's place."""
    import numpy as np

    return place + np.linspace(-0.36, 0.36, len(heads)) if len(heads) > 1 else np.array([float(place)])


def _draw_layer(axes: Axes, heads: pd.DataFrame, place: int, look: Look) -> None:
    value, low, high = (heads[name] for name in (_SHOWN, f"{_SHOWN}_low", f"{_SHOWN}_high"))
    panels.points(axes, _places(heads, place), value, low, high, look, size=4.4)


def _limits(axes: Axes, table: pd.DataFrame) -> None:
    seen = selection.finite(table[[_SHOWN, f"{_SHOWN}_low", f"{_SHOWN}_high"]])
    seen = seen[seen > 0]
    axes.set_ylim(min(seen.min(initial=_BAND[0]), _BAND[0]) / 1.2, max(seen.max(initial=_BAND[1]), _BAND[1]) * 1.2)
    panels.log_ticks(axes)


def _label_extremes(axes: Axes, table: pd.DataFrame, groups: list[tuple[str, int]]) -> None:
    """Name the highest and the lowest head, and the band."""
    top, bottom = table[_SHOWN].idxmax(), table[_SHOWN].idxmin()
    for row in [top] + [bottom] * (top != bottom):
        head = table.loc[row]
        layer = table[(table["dump"] == head["dump"]) & (table["layer"] == head["layer"])]
        place = groups.index((head["dump"], head["layer"]))
        x, first = _places(layer, place)[list(layer.index).index(row)], place < len(groups) / 2
        side = {"ha": "left" if first else "right"}
        layout.says(axes, x, head[_SHOWN], f"head {head['head']}", style.INK, 7 if first else -7, 0, **side)
    layout.says(axes, len(groups) - 0.45, _BAND[0], f"{_BAND[0]:g} to {_BAND[1]:g}", style.INK, -4, -9, ha="right")


def _layer_axis(axes: Axes, groups: list[tuple[str, int]], table: pd.DataFrame) -> None:
    axes.set_xlim(-0.6, len(groups) - 0.4)
    step = max(1, -(-len(groups) // 12))
    axes.set_xticks(range(0, len(groups), step), [str(layer) for _, layer in groups[::step]])
    axes.tick_params(axis="x", length=0)
    models = panels.short(", ".join(selection.order(table["dump"])), 30)
    axes.set_xlabel(f"layer of {models}")


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    reading = (*_spread(table), *_independence(table))
    return Description((_caption(table),), (_alt(table),), reading, (Sentence("caveat"),), _title(table))


def _title(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say how many heads have the standard deviation that the scale was made for, to a tenth."""
    inside = int(table[_SHOWN].between(*_BAND).sum())
    share = inside / len(table)
    kind = "few" if share < 0.1 else "most" if share > 0.5 else "some"
    values = {name: numbers.significant(pick(table[_SHOWN]), 2) for name, pick in (("low", min), ("high", max))}
    heads = {"inside": numbers.count(inside), "heads": speaking.counted(len(table), "shared.heads")}
    return (Sentence(f"finding.{kind}", values | heads),)


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
    name, total = _SHOWN, len(table)
    inside = int(selection.covers(table[f"{name}_low"], table[f"{name}_high"], 1.0).sum())
    far = int(((table[name] > _MARGIN) | (table[name] < 1 / _MARGIN)).sum())
    yield Sentence("reading.spread", {"range": _range(table, name)})
    values = {"inside": numbers.count(inside), "heads": speaking.counted(total, "shared.heads")}
    yield speaking.counted(far, "reading.near", margin=numbers.significant(_MARGIN), **values)
    yield Sentence(f"reading.spread_is.{'lost' if inside < total / 2 else 'kept'}")


def _independence(table: pd.DataFrame) -> Iterator[Sentence]:
    """Say on which side of the independence formula the variance lies."""
    name, total = _RATIO, len(table)
    low, high = int((table[f"{name}_high"] < 1).sum()), int((table[f"{name}_low"] > 1).sum())
    values = {"above": numbers.count(high), "below": numbers.count(low), "inside": numbers.count(total - low - high)}
    yield Sentence("reading.ratio", values | {"range": _range(table, name)})
    side = "above" if high > total / 2 else "below" if low > total / 2 else "neither"
    yield Sentence(f"reading.side.{side}")
