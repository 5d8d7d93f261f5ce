"""Figure: where attention is frozen onto one key, over width and number of keys, for each scale rule."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqrtdk.figures import heat, panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.figures.style import Dash
from sqrtdk.results.grid import nearest
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "atlas/attention"
INPUTS = ("phase_map", "freezing_frontier", "entropy_scale", "softmax_saturation")

_EDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.25, 0.5, 1.0)
_MODELS = {
    "ViT-B/16": (64, 197),
    "BERT": (64, 512),
    "GPT-2": (64, 1024),
    "GPT-3": (128, 2048),
    "Llama 2": (128, 4096),
    "Gemma": (256, 8192),
    "Llama 3.1": (128, 131072),
}
"""Width of one head and context length of published models."""
_OWN_RULE = "1/sqrt(d_k)"
"""The rule of all these models."""
_HALF = 0.5
_FINER = 2
"""Points that the drawing puts into each step of the grid."""
_WANTED_D_K = 64
_WANTED_ENTROPY = 0.5


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the map, the half-frozen widths, simulated cells and published models, by `kind`; six digits are kept."""
    import pandas as pd

    table = frames["phase_map"]
    if table.empty or table["d_k"].nunique() < 2 or table["n_keys"].nunique() < 2:
        return table.iloc[:0]
    style.scalings(table["scaling"])
    columns = ["kind", "d_k", "n_keys", "scaling", "effective_share", "participation"]
    parts = [table.assign(kind="exact")[columns]]
    frontier = frames["freezing_frontier"]
    if "none" in set(table["scaling"]) and len(frontier):
        half = frontier.dropna(subset="half_d_k").assign(kind="half frozen", scaling="none", participation=_HALF)
        half = half.assign(d_k=half["half_d_k"], effective_share=1 / _HALF / half["n_keys"])
        parts.append(half[columns])
    simulated = _simulated(frames["softmax_saturation"], table)
    parts.append(simulated.reindex(columns=[*columns, "se", "theory", "n_blocks", "z"]))
    parts.append(pd.DataFrame(_shown_models(table)))
    result = pd.concat([part for part in parts if len(part)], ignore_index=True)
    reals = result.select_dtypes("float").columns
    result[reals] = result[reals].map(lambda value: float(f"{value:.6g}"))
    return result


def _shown_models(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the published models that lie inside the map, with their own rule where the run has it."""
    own = _OWN_RULE if _OWN_RULE in set(table["scaling"]) else table["scaling"].iloc[0]
    return [
        {"kind": "model", "model": name, "d_k": place[0], "n_keys": place[1], "scaling": own}
        for name, place in _MODELS.items()
        if _inside(table, place)
    ]


def _simulated(saturation: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Return the measured participation of standard normal queries and keys inside the map."""
    if saturation.empty:
        return saturation
    cells = saturation[(saturation["ensemble"] == "gaussian") & (saturation["measure"] == "participation_ratio")]
    cells = cells[cells["scaling"].isin(table["scaling"]) & cells["theory"].notna() & (cells["se"] > 0)]
    cells = cells[cells["d_k"].between(table["d_k"].min(), table["d_k"].max())]
    cells = cells[cells["n_keys"].between(table["n_keys"].min(), table["n_keys"].max())]
    share = 1 / (cells["n_keys"] * cells["estimate"])
    # From the unrounded numbers: six digits of Σp² are fewer than some errors tell apart.
    z = (cells["estimate"] - cells["theory"]) / cells["se"]
    return cells.assign(kind="simulated", participation=cells["estimate"], effective_share=share, z=z)


@saving.styled(data, "No exact averages over enough widths and numbers of keys.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a map for each scale rule, with the half-frozen line, the critical line and published models."""
    rules = style.scalings(table["scaling"])
    figure = panels.figure(4.15, max(style.WIDTH, 1.8 * len(rules)))
    grid = figure.subplots(1, len(rules), sharey=True, squeeze=False)[0]
    own = _OWN_RULE if _OWN_RULE in rules else rules[0]
    stds = frames["phase_map"]
    for axes, rule in zip(grid, rules, strict=True):
        part = table[(table["kind"] == "exact") & (table["scaling"] == rule)]
        _map(axes, part)
        _critical(axes, stds[stds["scaling"] == rule])
        _line(axes, part, "participation", _HALF, style.SOLID, least_keys=3)
        _models(axes, part, named=rule == own)
        panels.d_k_axis(axes, part["d_k"], most=3)
        axes.set_xlim(part["d_k"].min(), part["d_k"].max())
        axes.set_yscale("log", base=2)
        axes.set_yticks([4, 64, 1024, 16384, 262144], [numbers.count(n) for n in (4, 64, 1024, 16384, 262144)])
        axes.minorticks_off()
        axes.set_ylim(part["n_keys"].min(), part["n_keys"].max())
        axes.grid(visible=False)
        axes.set_title(style.scaling(rule).label)
    grid[0].set_ylabel("keys n")
    figure.legend(handles=_legend(), loc="outside upper center", ncols=3)
    _bar(figure)
    return figure


def _bar(figure: Figure) -> None:
    """Draw the colour bar in a strip below the maps."""
    figure.get_layout_engine().set(rect=(0, 0.14, 1, 0.86))
    axes = figure.add_axes((0.13, 0.115, 0.82, 0.03))
    axes.set_in_layout(False)
    heat.bar(figure, axes, list(_EDGES), "effective share of the keys, 1/(n E Σp²)", panels.tick_text)


def _grid(part: pd.DataFrame, column: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return d_k, n and the values of a column over them, made finer by splines through their logarithms."""
    import numpy as np
    from scipy.interpolate import make_interp_spline

    values = np.log(part.pivot_table(index="n_keys", columns="d_k", values=column))
    places, values = [np.log(values.index.to_numpy(float)), np.log(values.columns.to_numpy(float))], values.to_numpy()
    for axis, known in enumerate(places):
        if len(known) > 3 and np.isfinite(values).all():
            places[axis] = np.linspace(known[0], known[-1], _FINER * (len(known) - 1) + 1)
            values = make_interp_spline(known, values, axis=axis)(places[axis])
    return np.exp(places[1]), np.exp(places[0]), np.exp(values)


def _height(share: Any) -> Any:
    """Return the place of a share among the colours, 0 at the first edge and 1 more at each further one."""
    import numpy as np

    return np.interp(np.log(share), np.log(_EDGES), range(len(_EDGES)))


def _map(axes: Axes, part: pd.DataFrame) -> None:
    """Fill between contours and draw them, so that the eye need not tell colours apart."""
    x, y, share = _grid(part, "effective_share")
    height = _height(share)
    levels = range(len(_EDGES))
    shades = heat.colours(len(_EDGES) - 1)
    axes.contourf(x, y, height, levels=levels, colors=shades)
    inner = [level for level in levels[1:-1] if height.min() < level < height.max()]
    inks = {level: heat.ink(level / (len(_EDGES) - 1)) for level in inner}
    if inner:
        axes.contour(x, y, height, levels=inner, colors=list(inks.values()), linewidths=0.5)
    for level, ink in inks.items():
        end = panels.crossing(y, height[:, -1], level)
        if end and end > 2 * y[0]:
            look = {"color": ink, "fontsize": 7, "ha": "right", "va": "top"}
            axes.annotate(panels.tick_text(_EDGES[level]), (x[-1], end), (-2, -1), textcoords="offset points", **look)


def _critical(axes: Axes, part: pd.DataFrame) -> None:
    """Draw s = √(2 ln n), the freezing of infinitely many keys."""
    excess = part["logit_std"] / (2 * part["n_keys"].map(math.log)) ** 0.5
    _line(axes, part.assign(excess=excess), "excess", 1.0, style.DOTTED)


def _line(axes: Axes, part: pd.DataFrame, column: str, level: float, dash: Dash, least_keys: int = 1) -> None:
    """Draw where a column passes a level, light on a dark casing; nothing where it does not pass it."""
    import numpy as np

    x, y, values = _grid(part[part["n_keys"] >= least_keys], column)
    if len(y) < 2 or not values.min() < level < values.max():
        return
    for colour, width in ((heat.DARK, 3.4), (heat.LIGHT, 1.7)):
        axes.contour(
            x, y, np.log(values / level), levels=[0], colors=colour, linewidths=width,
            linestyles=[dash if colour == heat.LIGHT else "solid"],
        )  # fmt: skip


def _models(axes: Axes, part: pd.DataFrame, named: bool) -> None:
    """Mark published models."""
    inside = {name: place for name, place in _MODELS.items() if _inside(part, place)}
    if not inside:
        return
    d_k, n_keys = zip(*inside.values(), strict=True)
    axes.plot(
        d_k,
        n_keys,
        "D",
        color=heat.LIGHT,
        markersize=4,
        markeredgecolor=heat.DARK,
        markeredgewidth=0.8,
        label="_models",
    )
    if named:
        share = part.loc[part["d_k"] >= _WANTED_D_K, "effective_share"].median()
        ink = heat.ink(_height(share) / (len(_EDGES) - 1))
        for name, place in inside.items():
            look = {"color": ink, "fontsize": 7, "ha": "right", "va": "center_baseline"}
            axes.annotate(name, place, (-5, 0), textcoords="offset points", **look)


def _inside(part: pd.DataFrame, place: tuple[int, int]) -> bool:
    spans = ((part[column].min(), part[column].max()) for column in ("d_k", "n_keys"))
    return all(low <= value <= high for (low, high), value in zip(spans, place, strict=True))


def _legend() -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patheffects import Normal, Stroke

    cased = [Stroke(linewidth=3.4, foreground=heat.DARK), Normal()]
    entries = [
        Line2D([], [], color=heat.LIGHT, linewidth=1.7, linestyle=dash, path_effects=cased, label=label)
        for dash, label in ((style.SOLID, "half-frozen, E Σp² = ½"), (style.DOTTED, "s = √(2 ln n)"))
    ]
    marks = {"marker": "D", "markersize": 4, "markeredgecolor": heat.DARK, "markeredgewidth": 0.8}
    entries.append(Line2D([], [], color=heat.LIGHT, linestyle="none", label="published models", **marks))
    return entries


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    reading = (*_frontier(frames["freezing_frontier"]), *_known(table), *_rules(table), *_kept(frames["entropy_scale"]))
    return Description(_caption(table), _alt(table), reading, (Sentence("caveat"),))


def _caption(table: pd.DataFrame) -> tuple[Sentence, ...]:
    exact = table[table["kind"] == "exact"]
    models = [
        Sentence("caption.model", {"name": name, "d_k": numbers.count(d_k), "n": numbers.count(n)})
        for name, (d_k, n) in _MODELS.items()
        if _inside(exact, (d_k, n))
    ]
    marks = (Sentence("caption.models", {"models": Listing(tuple(models))}),) if models else ()
    return Sentence("caption.all"), *marks, *_checked(table)


def _checked(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say how far simulated cells are from the exact values, in standard errors."""
    cells = table[table["kind"] == "simulated"]
    if cells.empty:
        return ()
    values = {
        "cells": speaking.counted(len(cells), "caption.cells"),
        "worst": numbers.significant(cells["z"].abs().max(), 2),
        "blocks": speaking.counted(int(cells["n_blocks"].min()), "caption.blocks"),
    }
    return (Sentence("caption.checked", values),)


def _span(values: pd.Series) -> object:
    """Spell the range of some values, or the one value that they are."""
    ends = (numbers.significant(float(f"{value:.2g}"), 2) for value in (min(values), max(values)))
    return speaking.ends(dict.fromkeys(ends))


def _cells(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame, pd.Series]]:
    """Yield each scale rule with its exact cells of more than two keys, and which of them are frozen."""
    for rule in style.scalings(table["scaling"]):
        cells = table[(table["kind"] == "exact") & (table["scaling"] == rule) & (table["n_keys"] > 2)]
        yield rule, cells, cells["participation"] >= _HALF


def _alt(table: pd.DataFrame) -> tuple[Sentence, ...]:
    parts = []
    for rule, cells, frozen in _cells(table):
        share = _span(cells.loc[cells["d_k"] == cells["d_k"].max(), "effective_share"])
        values = {"rule": speaking.rule(rule), "share": share, "frozen": numbers.percent(frozen.mean(), 0)}
        parts.append(Sentence("alt.rule", values))
    exact = table[table["kind"] == "exact"]
    widths, n_keys = (speaking.span(exact[column]) for column in ("d_k", "n_keys"))
    return (Sentence("alt.all", {"widths": widths, "n_keys": n_keys, "parts": Listing(tuple(parts), "semicolon")}),)


def _frontier(frontier: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say from which width an unscaled head is half-frozen, and what fixing ‖q‖ would have given."""
    rows = frontier.dropna(subset="half_d_k") if len(frontier) else frontier
    if rows.empty:
        return ()
    places = [
        Sentence("reading.place", {"d_k": numbers.significant(row["half_d_k"], 3), "n": numbers.count(row["n_keys"])})
        for _, row in rows.iloc[sorted({0, len(rows) // 2, len(rows) - 1})].iterrows()
    ]
    apart = (rows["half_d_k"] - rows["half_d_k_fixed_norm"]).abs().max()
    values = {"places": Listing(tuple(places)), "apart": numbers.significant(apart, 2)}
    return (Sentence("reading.frontier", values),)


def _known(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Count the marked models that are frozen without a scale."""
    half = table[table["kind"] == "half frozen"]
    exact = table[table["kind"] == "exact"]
    inside = {name: place for name, place in _MODELS.items() if _inside(exact, place)}
    if len(half) < 2 or not inside:
        return ()
    import numpy as np

    limit = {n: np.interp(math.log(n), np.log(half["n_keys"]), half["d_k"]) for _, n in inside.values()}
    frozen = [name for name, (d_k, n) in inside.items() if d_k >= limit[n]]
    verdict = "all" if len(frozen) == len(inside) else "some" if frozen else "none"
    return (
        Sentence(f"reading.models.{verdict}", {"count": numbers.count(len(inside)), "names": Listing(tuple(frozen))}),
    )


def _rules(table: pd.DataFrame) -> Iterator[Sentence]:
    """Say for each other rule whether anything of it is frozen, and how uniform it is in wide heads."""
    for rule, cells, frozen in _cells(table):
        wide = cells[cells["d_k"] >= _WANTED_D_K]
        if rule != "none" and len(wide):
            values = {
                "rule": speaking.opening(rule),
                "frozen": numbers.percent(frozen.mean(), 0),
                "d_k": numbers.count(_WANTED_D_K),
                "share": _span(wide["effective_share"]),
            }
            yield Sentence(f"reading.rule.{'frozen' if frozen.any() else 'free'}", values)


def _kept(scales: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say how the scale would have to follow n to keep one entropy."""
    if scales.empty:
        return ()
    d_k = nearest(scales["d_k"], _WANTED_D_K)
    rows = scales[(scales["d_k"] == d_k) & (scales["normalised_entropy"] == _WANTED_ENTROPY)]
    ends = selection.ends(rows, "n_keys")
    if ends is None or len(rows) < 2:
        return ()
    first, last = ends
    values = {
        "d_k": numbers.count(d_k),
        "first": numbers.significant(first["scale_times_sqrt_d_k"], 3),
        "few": numbers.count(first["n_keys"]),
        "last": numbers.significant(last["scale_times_sqrt_d_k"], 3),
        "many": numbers.count(last["n_keys"]),
    }
    return (Sentence("reading.kept", values),)
