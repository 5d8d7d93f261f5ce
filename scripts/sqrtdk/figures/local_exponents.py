"""Figure: the exponent of the variance between neighbouring widths, which shows crossovers and fractional exponents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sqrtdk.figures import panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.figures.style import Look
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "atlas/scores"
INPUTS = ("local_exponents",)

_CONSTANT = 1e-6
_CHANGE = 0.5
"""An exact exponent that moves by more than this from the narrowest pair to the widest has a crossover to mark."""
_MOST_COLOURED, _MOST_SHOWN = 6, 6
_OTHERS = style.Look("others", style.INK, "x", style.SOLID)


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the rows that are shown: of all ensembles with exponent 1, and of those whose exponent changes most."""
    table = _all(frames)
    if table.empty:
        return table
    return table[table["ensemble"].isin([*_constant(table), *_changing(table)])].reset_index(drop=True)


def _changing(table: pd.DataFrame) -> list[str]:
    """Return the ensembles whose exponent, exact or measured, differs most between its narrowest and widest pair."""
    moved = {}
    for name, rows in table[~table["ensemble"].isin(_constant(table))].groupby("ensemble", sort=False):
        known = rows["exact"].where(rows["exact"].notna(), rows["exponent"])[rows["d_k"].sort_values().index].dropna()
        moved[name] = abs(known.iloc[-1] - known.iloc[0]) if len(known) > 1 else 0.0
    return sorted(sorted(moved, key=lambda name: -moved[name])[:_MOST_SHOWN], key=list(moved).index)


def _all(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per pair of neighbouring widths: the local exponent, its 95 % interval and the exact one.

    `d_k` is the geometric mean of the pair. Where an ensemble has no error of its variance, `quantity` says that the
    rows are of the interquartile range, and the exponent is that of its square, to compare with variances.
    """
    table = frames["local_exponents"]
    if table.empty:
        return table
    by_quantity = dict(list(table.groupby("quantity", sort=False)))
    kept = by_quantity["variance"]
    absent = kept.groupby("ensemble", sort=False)["exponent"].transform("count") == 0
    parts = [kept[~absent]]
    if "interquartile_range" in by_quantity:
        ranges = by_quantity["interquartile_range"]
        ranges = ranges[ranges["ensemble"].isin(kept.loc[absent, "ensemble"])].copy()
        for column in ("exponent", "se", "ci_low", "ci_high"):
            ranges[column] *= 2
        parts.append(ranges)
    import pandas as pd

    joined = pd.concat(parts)
    joined = joined[joined["exponent"].notna() | joined["exact"].notna()].sort_index().reset_index(drop=True)
    columns = ["ensemble", "quantity", "d_k_low", "d_k_high", "exponent", "se", "ci_low", "ci_high", "exact", "reason"]
    joined.insert(0, "d_k", (joined["d_k_low"] * joined["d_k_high"]) ** 0.5)
    return joined[["ensemble", "quantity", "d_k", *columns[2:]]]


def _constant(table: pd.DataFrame) -> list[str]:
    """Return the ensembles whose exact local exponent is 1 at every width."""
    return [
        name
        for name, rows in table.groupby("ensemble", sort=False)
        if rows["exact"].notna().all() and ((rows["exact"] - 1).abs() < _CONSTANT).all()
    ]


def _coloured(table: pd.DataFrame) -> list[str]:
    """Return the ensembles that the upper panel tells apart: of many those farthest from 1 in standard errors."""
    flat = _constant(table)
    if len(flat) <= _MOST_COLOURED:
        return flat
    rows = table[table["ensemble"].isin(flat) & (table["se"] > 0)]
    distance = ((rows["exponent"] - 1) / rows["se"]).abs().groupby(rows["ensemble"]).max()
    farthest = distance.sort_values(ascending=False, kind="stable").index[:_MOST_COLOURED]
    return [name for name in flat if name in farthest]


def _crossovers(table: pd.DataFrame) -> dict[str, float]:
    """Return the d_k at which an exact exponent is half-way between its first and its last value, where it changes."""
    crossovers = {}
    for name, rows in table.groupby("ensemble", sort=False):
        rows = rows.dropna(subset="exact").sort_values("d_k")
        if len(rows) > 2 and abs(rows["exact"].iloc[-1] - rows["exact"].iloc[0]) > _CHANGE:
            middle = (rows["exact"].iloc[0] + rows["exact"].iloc[-1]) / 2
            place = panels.crossing(rows["d_k"], rows["exact"], middle)
            if place is not None and place > rows["d_k"].iloc[1]:  # one odd step at the narrowest heads is none
                crossovers[name] = place
    return crossovers


@saving.styled(data, "No exponent between two widths was estimated.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw the ensembles with exponent 1 in one panel on a fine scale, each other one in a small panel."""
    looks = style.ensembles(selection.order(table["ensemble"]))
    flat = _constant(table)
    others = [name for name in looks if name not in flat]
    n_rows, n_columns = panels.grid_shape(len(others)) if others else (0, 0)
    heights = [2.3 if flat else 0, 0.55 + 1.05 * n_rows if others else 0]
    figure = panels.figure(sum(heights))
    parts = iter(
        figure.subfigures(sum(map(bool, heights)), 1, height_ratios=list(filter(None, heights)), squeeze=False).flat
    )
    if flat:
        _draw_flat(next(parts).add_subplot(), table[table["ensemble"].isin(flat)], looks, flat)
    if others:
        lower, marks = next(parts), _crossovers(table)
        grid = lower.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
        lower.supylabel("local exponent", fontsize=9.5)
        _heights(grid[0][0], table[table["ensemble"].isin(others)])
        for position, (axes, name) in enumerate(zip(grid.flat, others, strict=False)):
            rows = table[table["ensemble"] == name]
            _draw_small(axes, rows, looks[name], marks.get(name))
            below = position + n_columns >= len(others)
            panels.d_k_axis(axes, table["d_k"], "dₖ" if below else None, most=2)
            axes.set_xticks([4, 64, 1024] if table["d_k"].max() > 1024 else axes.get_xticks())
            axes.tick_params(labelbottom=below, length=0)
        for axes in grid.flat[len(others) :]:
            axes.set_axis_off()
    return figure


def _draw_flat(axes: Axes, table: pd.DataFrame, looks: dict[str, Look], flat: list[str]) -> None:
    """Draw all ensembles whose exact exponent is 1, moved sideways so that none hides another."""
    panels.reference(axes, 1)
    coloured = _coloured(table)
    for place, name in enumerate(flat):
        rows = table[table["ensemble"] == name]
        x = rows["d_k"] * panels.dodge(place, len(flat), 0.3)
        look, size = (looks[name], 3.4) if name in coloured else (_OTHERS, 1.8)
        panels.points(axes, x, rows["exponent"], rows["ci_low"], rows["ci_high"], look, size=size)
    panels.d_k_axis(axes, table["d_k"].tolist() + table["d_k_low"].tolist())
    axes.set_ylabel("local exponent")
    axes.set_title(f"exactly 1: {numbers.counted(len(flat), 'ensemble')}", pad=3)
    axes.yaxis.set_major_formatter(panels.tick_text)
    shown = [looks[name] for name in coloured] + [_OTHERS] * (len(coloured) < len(flat))
    handles = [panels.key(look, line=False, markersize=1.8 if look is _OTHERS else 3.6) for look in shown]
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.03), fontsize=8.5, labelspacing=0.25)


def _heights(axes: Axes, table: pd.DataFrame) -> None:
    shown = selection.finite(table[["exponent", "exact"]])
    low, high = min(shown.min(initial=0.0), 0.0), max(shown.max(initial=2.0), 2.0)
    axes.set_ylim(low - 0.25, high + 0.25)
    step = 1 if high - low < 5 else 2
    axes.set_yticks([tick for tick in range(-20, 21, step) if low - 0.25 <= tick <= high + 0.25])
    axes.yaxis.set_major_formatter(panels.tick_text)


def _draw_small(axes: Axes, rows: pd.DataFrame, look: Look, mark: float | None) -> None:
    panels.reference(axes, 1)
    axes.grid(axis="x", visible=False)
    panels.theory(axes, rows["d_k"], rows["exact"], style.Look("", look.colour, "", style.SOLID), width=1.0)
    squared = (rows["quantity"] != "variance").any()
    panels.points(axes, rows["d_k"], rows["exponent"], rows["ci_low"], rows["ci_high"], look, hollow=squared, size=3.2)
    label = panels.short(look.label, 18 if squared else panels.LONGEST_TITLE + 3)
    axes.set_title(f"{label} (IQR²)" if squared else label, fontsize=9, pad=2)
    if mark is not None:
        axes.axvline(mark, color=style.INK, linewidth=0.8, linestyle=style.DOTTED, label="_crossover")
        text = axes.text(
            mark,
            0.03,
            f" {numbers.significant(mark, 2)}",
            transform=axes.get_xaxis_transform(),
            fontsize=8,
            va="bottom",
        )
        text.set_in_layout(False)


@speaking.described(_all)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    reading = (*_changes(table), *_steady(table), *_ranges(table), _covered(table))
    return Description(tuple(_caption(table)), _alt(table), reading, tuple(_caveat(table)))


def _caption(table: pd.DataFrame) -> Iterator[Sentence]:
    flat, coloured = _constant(table), _coloured(table)
    yield Sentence("caption.all")
    if _changing(table):
        yield Sentence("caption.others")
    if flat:
        yield Sentence("caption.flat", {"ensembles": speaking.counted(len(flat), "shared.ensembles")})
    if len(coloured) < len(flat):
        yield Sentence("caption.coloured", {"n": numbers.count(len(coloured))})
    if _crossovers(table):
        yield Sentence("caption.crossovers")
    if (table["quantity"] != "variance").any():
        yield Sentence("caption.squared")


def _ends(rows: pd.DataFrame) -> list[str]:
    """Return the estimates at the narrowest and the widest pair, as text; one where there is one pair, else none."""
    ends = selection.ends(rows.dropna(subset="exponent"), "d_k") or ()
    return [numbers.with_error(end["exponent"], end["se"]) for end in ends[: len(rows)]]


def _exact_ends(rows: pd.DataFrame) -> pd.Series:
    return rows.dropna(subset="exact").sort_values("d_k")["exact"].iloc[[0, -1]]


def _alt(table: pd.DataFrame) -> tuple[Sentence, ...]:
    parts = []
    for name, rows in table.groupby("ensemble", sort=False):
        part = speaking.series(name, _ends(rows))
        squared = (rows["quantity"] != "variance").any()
        parts.append(Sentence("alt.squared", {"part": part}) if squared else part)
    values = {"low": numbers.count(table["d_k_low"].min()), "high": numbers.count(table["d_k_high"].max())}
    return (Sentence("alt.all", values | {"parts": Listing(tuple(parts), "semicolon")}),)


def _changes(table: pd.DataFrame) -> Iterator[Sentence]:
    """Say whose exact exponent has a crossover, and where."""
    parts = []
    for name, place in _crossovers(table).items():
        first, last = (numbers.significant(end, 3) for end in _exact_ends(table[table["ensemble"] == name]))
        values = {"label": style.ensemble_label(name), "first": first, "last": last}
        parts.append(Sentence("reading.change", values | {"d_k": numbers.significant(place, 2)}))
    if parts:
        yield Sentence("reading.changes", {"parts": Listing(tuple(parts))})


def _steady(table: pd.DataFrame) -> Iterator[Sentence]:
    """Say the exact exponent of the others in the end, those far from 1 first."""
    others = table[~table["ensemble"].isin([*_crossovers(table), *_constant(table)]) & table["exact"].notna()]
    ends = {name: _exact_ends(rows).iloc[-1] for name, rows in others.groupby("ensemble", sort=False)}
    parts = [
        Sentence("reading.end", {"label": style.ensemble_label(name), "value": numbers.significant(end, 3)})
        for name, end in sorted(ends.items(), key=lambda pair: -abs(pair[1] - 1))
    ]
    if parts:
        yield Sentence("reading.ends", {"parts": speaking.few(parts)})


def _ranges(table: pd.DataFrame) -> Iterator[Sentence]:
    for name, rows in table[table["quantity"] != "variance"].groupby("ensemble", sort=False):
        ends = _ends(rows)
        if ends:
            values = {"label": style.ensemble_label(name), "first": ends[0], "last": ends[-1]}
            yield Sentence("reading.squared", values)


def _covered(table: pd.DataFrame) -> Sentence:
    known = table[table["exponent"].notna() & table["exact"].notna()]
    inside = int(selection.covers(known["ci_low"], known["ci_high"], known["exact"]).sum())
    return speaking.coverage(inside, len(known), Sentence("quantity"), "shared.pairs")


def _caveat(table: pd.DataFrame) -> Iterator[Sentence]:
    yield Sentence("caveat.all")
    missing = int(table["exponent"].isna().sum())
    if missing:
        yield speaking.counted(missing, "caveat.missing", total=numbers.count(len(table)))
