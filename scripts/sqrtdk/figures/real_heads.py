"""Figure: the heads of trained networks, whose scaled logits need not have standard deviation 1."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqrtdk.figures import layout, panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.figures.style import Look
from sqrtdk.figures.targets import LARGE
from sqrtdk.statistics import intervals
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Phrase, Sentence

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "article/heads"
INPUTS = ("real_heads",)

_MARGIN = 2.0
_SHOWN, _RATIO, _SINKLESS = "within_row_logit_std", "independence_ratio", "sinkless_row_logit_std"
_QUANTITIES = (_SHOWN, _RATIO, _SINKLESS)
_APART = 3.5
"""How much farther apart the layers of two models stand than those of one."""
_SHORT = {"small Llama": "own Llama", "small Qwen3": "own Qwen3", "small ViT": "own ViT"}
"""Models that this project trained, as there is room for their names."""
_BAND = (0.9, 1.1)
"""What counts as the standard deviation that the scale was made for."""


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per head: its quantities with 95 % intervals (Student's t, jackknife over runs of tokens).

    A head whose scores do not vary within a row has none.
    """
    from sqrtdk.heads.enumeration import RUNS

    table = frames["real_heads"]
    if not table.empty:
        table = table[(table[_SHOWN] > 0) & table[_RATIO].notna()]
    if table.empty:
        return table
    columns = ["model", "input", "dump", "layer", "head", "d_k", "n_tokens", "n_scores", "scaling", "sinks"]
    # A dump need not say what its model was given, and an empty cell is read as a missing one.
    result = table[columns].assign(input=table["input"].astype(object).where(table["input"].notna(), ""))
    for name in _QUANTITIES:
        # As many values stand behind an error as runs were left out.
        half = intervals.half_width(table[f"{name}_se"], (table["n_tokens"] - 2).clip(upper=RUNS))
        result[name], result[f"{name}_se"] = table[name], table[f"{name}_se"]
        result[f"{name}_low"], result[f"{name}_high"] = table[name] - half, table[name] + half
    return result.assign(model_median=result.groupby("model")[_SHOWN].transform("median"))


@saving.styled(data, "No trained head whose scores vary was given to this run, so none is shown.", LARGE)
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw every head in its layer, dodged sideways, on a log axis with the band around 1, and each model's median."""
    figure, (axes,) = layout.stack([230], left=42, right=6, top=26, bottom=62)
    groups = _groups(table)
    looks = style.sequence(selection.order(table["model"]))
    panels.log_heights(axes)
    axes.axhspan(*_BAND, color=style.INK, alpha=style.FAINT, linewidth=0, zorder=0)
    for (dump, layer), place in groups.items():
        heads = table[(table["dump"] == dump) & (table["layer"] == layer)]
        _draw_layer(axes, heads, place, looks[heads["model"].iloc[0]])
    medians = dict(zip(table["model"], table["model_median"], strict=True))
    for model, (first, last) in _spans(table, groups).items():
        median = medians[model]
        axes.hlines(
            median, first - 0.45, last + 0.45, color=looks[model].colour, linewidth=1.6, zorder=1, label="_medians"
        )
    _limits(axes, table)
    axes.set_title("standard deviation of the scaled logits (lines: medians)")
    axes.grid(axis="x", visible=False)
    _label_extremes(axes, table, groups)
    _model_axis(axes, groups, table)
    return figure


def _groups(table: pd.DataFrame) -> dict[tuple[str, int], float]:
    """Return where the layers of the dumps stand: side by side, those of the next model apart."""
    places: dict[tuple[str, int], float] = {}
    place, before = -1.0, None
    for model, dump, layer in zip(table["model"], table["dump"], table["layer"], strict=True):
        if (dump, layer) not in places:
            place += 1 if before in (None, model) else 1 + _APART
            places[dump, layer], before = place, model
    return places


def _spans(table: pd.DataFrame, groups: Mapping[tuple[str, int], float]) -> dict[str, tuple[float, float]]:
    """Return the first and the last place of each model."""
    models = dict(zip(table["dump"], table["model"], strict=True))
    found: dict[str, tuple[float, float]] = {}
    for (dump, _), place in groups.items():
        found[models[dump]] = (min(found.get(models[dump], (place,))[0], place), place)
    return found


def _places(heads: pd.DataFrame, place: float) -> np.ndarray:
    """Return where the heads of a layer stand: side by side within ±0.36 of the layer's place."""
    import numpy as np

    return place + np.linspace(-0.36, 0.36, len(heads)) if len(heads) > 1 else np.array([place])


def _draw_layer(axes: Axes, heads: pd.DataFrame, place: float, look: Look) -> None:
    value, low, high = (heads[name] for name in (_SHOWN, f"{_SHOWN}_low", f"{_SHOWN}_high"))
    panels.points(axes, _places(heads, place), value, low, high, look, size=4.4)


def _limits(axes: Axes, table: pd.DataFrame) -> None:
    seen = selection.finite(table[[_SHOWN, f"{_SHOWN}_low", f"{_SHOWN}_high"]])
    seen = seen[seen > 0]
    axes.set_ylim(min(seen.min(initial=_BAND[0]), _BAND[0]) / 1.2, max(seen.max(initial=_BAND[1]), _BAND[1]) * 1.2)
    panels.log_ticks(axes)


def _label_extremes(axes: Axes, table: pd.DataFrame, groups: Mapping[tuple[str, int], float]) -> None:
    """Name the highest and the lowest head."""
    top, bottom = table[_SHOWN].idxmax(), table[_SHOWN].idxmin()
    for row in [top] + [bottom] * (top != bottom):
        head = table.loc[row]
        layer = table[(table["dump"] == head["dump"]) & (table["layer"] == head["layer"])]
        place = groups[head["dump"], head["layer"]]
        x, first = _places(layer, place)[list(layer.index).index(row)], place < max(groups.values()) / 2
        side = {"ha": "left" if first else "right"}
        layout.says(
            axes,
            x,
            head[_SHOWN],
            f"layer {head['layer']}, head {head['head']}",
            style.INK,
            7 if first else -7,
            0,
            **side,
        )


def _model_axis(axes: Axes, groups: Mapping[tuple[str, int], float], table: pd.DataFrame) -> None:
    """Write the models below their heads, which stand in the order of their layers."""
    axes.set_xlim(-0.6, max(groups.values()) + 0.6)
    axes.set_xticks([])
    axes.set_xlabel("each model from its first layer to its last", labelpad=38)
    for model, (first, last) in _spans(table, groups).items():
        text = re.sub("[ -]", "\n", panels.short(_SHORT.get(model, model), 30), count=1)
        inputs = table.loc[table["model"] == model, "dump"].nunique()
        text += f"\n{inputs} inputs" if inputs > 1 else ""
        at = {"xy": ((first + last) / 2, 0), "xycoords": axes.get_xaxis_transform(), "xytext": (0, -5)}
        axes.annotate(text, textcoords="offset points", ha="center", va="top", annotation_clip=False, **at)


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    reading = (*_spread(table), *_by_model(table), *_independence(table))
    return Description(tuple(_caption(table)), (_alt(table),), reading, (Sentence("caveat"),), _title(table))


def _title(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say how many heads of a model, or models of several, have the spread that the scale was made for, to a tenth."""
    inside = table[_SHOWN].between(*_BAND)
    if table["model"].nunique() > 1:
        kept = inside.groupby(table["model"]).mean() > 0.5
        medians = table.groupby("model")[_SHOWN].median()
        values = {name: numbers.significant(pick(medians), 2) for name, pick in (("low", min), ("high", max))}
        models = {"kept": numbers.count(kept.sum()), "models": speaking.counted(len(kept), "shared.models")}
        return (Sentence(f"finding.{'models' if kept.any() else 'no_model'}", values | models),)
    share = inside.mean()
    kind = "few" if share < 0.1 else "most" if share > 0.5 else "some"
    values = {name: numbers.significant(pick(table[_SHOWN]), 2) for name, pick in (("low", min), ("high", max))}
    heads = {"inside": numbers.count(inside.sum()), "heads": speaking.counted(len(table), "shared.heads")}
    return (Sentence(f"finding.{kind}", values | heads),)


def _caption(table: pd.DataFrame) -> Iterator[Sentence]:
    parts = []
    for _, heads in table.groupby("dump", sort=False):
        first = heads.iloc[0]
        scaling = first["scaling"]
        values = {
            "dump": _read(first),
            "heads": speaking.counted(len(heads), "shared.heads"),
            "d_k": speaking.counts(sorted(set(heads["d_k"]))),
            "tokens": numbers.count(first["n_tokens"]),
            "scores": numbers.count(first["n_scores"]),
            "rule": style.scaling_words(scaling).removeprefix("with "),
        }
        parts.append(Sentence(f"caption.{'unscaled' if scaling == 'none' else 'scaled'}", values))
    yield Sentence("caption.all", {"dumps": Listing(tuple(parts))})
    if set(table["model"]) & _SHORT.keys():
        yield Sentence("caption.own")


def _read(row: Mapping[str, Any]) -> object:
    """Name a model with what it read, as far as the configuration says it."""
    return Sentence("read", {"model": row["model"], "input": Phrase(row["input"])}) if row["input"] else row["model"]


def _by_model(table: pd.DataFrame) -> Iterator[Sentence]:
    """Say of each model on each input how many heads have the spread of 1, and what sinks make of it."""
    for _, heads in table.groupby("dump", sort=False):
        values = {
            "dump": _read(heads.iloc[0]),
            "inside": numbers.count(heads[_SHOWN].between(*_BAND).sum()),
            "heads": speaking.counted(len(heads), "shared.heads"),
            "median": numbers.significant(heads[_SHOWN].median()),
            "sinks": numbers.count((heads["sinks"] > 0).sum()),
            "sinkless": numbers.significant(heads[_SINKLESS].median()),
        }
        yield Sentence("reading.model", values)


def _range(table: pd.DataFrame, name: str) -> Sentence:
    values: dict[str, object] = {"median": numbers.significant(table[name].median())}
    word = "head_of" if table["model"].nunique() > 1 else "head"
    for end, row in (("low", table.loc[table[name].idxmin()]), ("high", table.loc[table[name].idxmax()])):
        values[end] = numbers.with_error(row[name], row[f"{name}_se"])
        values[f"{end}_head"] = Sentence(word, {key: str(row[key]) for key in ("model", "layer", "head")})
    return Sentence("range", values)


def _alt(table: pd.DataFrame) -> Sentence:
    heads = speaking.counted(len(table), "shared.heads")
    spread, ratio = (_range(table, name) for name in (_SHOWN, _RATIO))
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
