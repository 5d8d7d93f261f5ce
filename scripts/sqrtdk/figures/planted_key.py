"""Figure: the softmax weight of one key aligned with the query, against the number of keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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

PLACE = "article/factor"
INPUTS = ("planted_key", "planted_capacity")

_KEYS = ["d_k", "rho", "scaling", "measure"]
_RETRIEVED = style.Look("it has the largest weight", style.INK, "x", style.DOTTED)
_NOISE, _SIGNAL = "1/sqrt(d_k)", "1/d_k"
_UNDECIDED = 0.999
"""Means closer to 1 than this rest on rare rows, too few of which are drawn for an interval."""
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per number of keys and rule, and for the largest weight, with intervals and capacities."""
    table = frames["planted_key"]
    if table.empty:
        return table
    style.scalings(table["scaling"].dropna())
    capacity = frames["planted_capacity"]
    table = table.drop(columns="approximation").merge(
        capacity[[*_KEYS, "capacity", "formula"]], how="left", on=_KEYS, validate="many_to_one"
    )
    half = intervals.half_width(table["se"], table["n_blocks"])
    table["low"], table["high"] = (table["estimate"] - half).clip(0, 1), (table["estimate"] + half).clip(0, 1)
    return table


def _series(table: pd.DataFrame) -> list[tuple[pd.DataFrame, Look]]:
    """Return (rows, look) for each scale rule, and for the share of rows in which the planted key is the largest."""
    weights = table[table["measure"] == "weight"]
    series = [(weights[weights["scaling"] == rule], style.scaling(rule)) for rule in style.scalings(weights["scaling"])]
    return [*series, (table[table["measure"] == "retrieved"], _RETRIEVED)]


@saving.styled(data, "No planted key was simulated.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a column for each d_k and a row for each correlation: exact curves, simulated points, capacities."""
    widths, cosines = sorted(selection.order(table["d_k"])), sorted(selection.order(table["rho"]), reverse=True)
    figure = panels.figure(1.05 + 1.75 * len(cosines), max(style.WIDTH, 1.85 * len(widths)))
    grid = figure.subplots(len(cosines), len(widths), sharex=True, sharey=True, squeeze=False)
    for row, rho in enumerate(cosines):
        for axes, d_k in zip(grid[row], widths, strict=True):
            panels.reference(axes, 0.5)
            beyond = []
            for part, look in _series(table[(table["d_k"] == d_k) & (table["rho"] == rho)]):
                panels.theory(axes, part["n_keys"], part["theory"], look, width=1.2)
                seen = part[part["estimate"].notna()]
                panels.points(axes, seen["n_keys"], seen["estimate"], seen["low"], seen["high"], look, size=3.2)
                beyond += _capacity(axes, part, look, table["n_keys"].max())
            for place, (text, look) in enumerate(beyond):
                position = {"x": 0.97, "y": 0.7 - 0.13 * place, "ha": "right", "va": "center"}
                axes.text(s=text, color=look.colour, fontsize="small", transform=axes.transAxes, **position)
            axes.set_ylim(-0.04, 1.06)
            axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
            if row == 0:
                axes.set_title(f"dₖ = {d_k}")
        grid[row][0].set_ylabel(f"share, ρ = {rho:g}")
    _n_keys_axis(grid[-1], table["n_keys"])
    looks = [look for _, look in _series(table)]
    figure.legend(handles=[panels.key(look) for look in looks[:-1]], loc="outside upper center", ncols=3)
    half = style.Look("capacity (one half)", style.INK, "D", style.SOLID)
    handles = [panels.key(half, hollow=True, linestyle="none"), panels.key(_RETRIEVED, label=_RETRIEVED.label)]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def _capacity(axes: Axes, part: pd.DataFrame, look: Look, last: int) -> list[tuple[str, Look]]:
    """Mark where a curve passes one half; return (text, look) where that is beyond the axis."""
    capacity = part["capacity"].dropna()
    if look is _RETRIEVED or capacity.empty:
        return []
    if capacity.iloc[0] > last:
        return [(f"{numbers.significant(capacity.iloc[0], 1)} →", look)]
    axes.plot(
        capacity.iloc[0],
        0.5,
        color=look.colour,
        marker="D",
        markersize=5.5,
        markerfacecolor="none",
        markeredgewidth=1.1,
        linestyle="none",
        label="_capacity",
    )
    return []


def _n_keys_axis(row: Iterable[Axes], values: pd.Series) -> None:
    powers = [power for power in range(4, 61, 4) if values.min() <= 2**power <= values.max()]
    for axes in row:
        axes.set_xscale("log", base=2)
        axes.set_xlim(values.min() / 1.5, values.max() * 1.5)
        axes.set_xticks([2**power for power in powers], ["2" + str(power).translate(_SUPERSCRIPT) for power in powers])
        axes.minorticks_off()
        axes.set_xlabel("keys, n")


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    lead = Sentence("reading.lead", {"rho": f"{table['rho'].max():g}"})
    reading = (lead, *_normalisers(table), *_rule_of_thumb(table), *_others(table), *_agreement(table))
    return Description(_caption(table), _alt(table), reading, (Sentence("caveat"),))


def _caption(table: pd.DataFrame) -> tuple[Sentence, ...]:
    seen = table[table["estimate"].notna()]
    if seen.empty:
        return Sentence("caption.all"), Sentence("caption.none")
    markers, worst = Sentence("caption.markers", {"rows": speaking.span(seen["n_rows"])}), seen["se"].max()
    error = (Sentence("caption.error", {"worst": numbers.significant(worst, 2)}),) if worst == worst else ()
    return Sentence("caption.all"), markers, *error


def _ends(table: pd.DataFrame, rule: str, rho: float) -> selection.Ends | None:
    """Return the lines of the capacity of a rule at the smallest and the largest width, or None."""
    rows = table[(table["scaling"] == rule) & (table["rho"] == rho) & table["capacity"].notna()]
    rows = rows.drop_duplicates("d_k")
    return selection.ends(rows, "d_k") if len(rows) > 1 else None


def _normalisers(table: pd.DataFrame) -> Iterator[Sentence]:
    """Say of 1/√d_k and 1/d_k what stays fixed from the narrowest to the widest head, and what the capacity does."""
    from sqrtdk.variants.notation import parse

    rho = table["rho"].max()
    for rule, kept in ((_NOISE, "noise"), (_SIGNAL, "signal")):
        ends = _ends(table, rule, rho)
        if not ends:
            continue
        widths = [int(row["d_k"]) for row in ends]
        factors = [parse(rule).factor(int(row["d_k"]), int(row["n_keys"])) for row in ends]
        values = {
            "rule": speaking.opening(rule),
            "signal": _move(*(c * rho * d for c, d in zip(factors, widths, strict=True))),
            "noise": _move(*(c * d**0.5 for c, d in zip(factors, widths, strict=True))),
            "capacity": _move(*(row["capacity"] for row in ends)),
            "low": numbers.count(widths[0]),
            "high": numbers.count(widths[1]),
        }
        yield Sentence(f"reading.{kept}", values)


def _move(first: float, last: float) -> Sentence:
    """Say how an exact number changes, to two digits."""
    start, end = (numbers.significant(value, 2) for value in (first, last))
    return Sentence(f"move.{'stays' if start == end else 'goes'}", {"first": start, "last": end})


def _rule_of_thumb(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say how far off the capacity e^(ρ√d_k − ½) is."""
    rows = table[(table["scaling"] == _NOISE) & table["capacity"].notna() & table["formula"].notna()]
    if rows.empty:
        return ()
    ratio = rows["capacity"] / rows["formula"]
    worst = max(ratio.max(), 1 / ratio.min())
    return (Sentence("reading.thumb", {"worst": numbers.significant(worst, 3)}),)


def _others(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say what the capacity is without a scale, and at other correlations."""
    parts = []
    for rho in sorted(selection.order(table["rho"]), reverse=True):
        ends = _ends(table, "none", rho)
        if ends:
            low, high = (numbers.count(row["d_k"]) for row in ends)
            first, last = (numbers.significant(row["capacity"], 2) for row in ends)
            values = {"rho": f"{rho:g}", "low": low, "high": high, "first": first, "last": last}
            parts.append(Sentence("reading.capacity", values))
    return (Sentence("reading.unscaled", {"parts": Listing(tuple(parts), "semicolon")}),) if parts else ()


def _agreement(table: pd.DataFrame) -> tuple[Sentence, ...]:
    known = table[(table["se"] > 0) & (table["theory"] < _UNDECIDED)]
    inside = int(selection.covers(known["low"], known["high"], known["theory"]).sum())
    if known.empty:
        return ()
    return speaking.coverage(inside, len(known), Sentence("mean"), "points"), Sentence("reading.together")


def _alt(table: pd.DataFrame) -> tuple[Sentence, ...]:
    widths = sorted(selection.order(table["d_k"]))
    d_k, rho = nearest(widths, 64), table["rho"].max()
    parts = []
    for rows, look in _series(table[(table["d_k"] == d_k) & (table["rho"] == rho)]):
        ends = selection.ends(rows[rows["theory"].notna()], "n_keys")
        if not ends:
            continue
        shares = dict.fromkeys(numbers.significant(row["theory"], 2) for row in ends)
        values = {"n_keys": speaking.span([row["n_keys"] for row in ends]), "shares": speaking.ends(shares)}
        if look is _RETRIEVED:
            parts.append(Sentence("alt.retrieved", values))
        else:
            parts.append(Sentence("alt.weight", values | {"rule": speaking.rule(ends[0]["scaling"])}))
    here = {"d_k": numbers.count(d_k), "rho": f"{rho:g}", "parts": Listing(tuple(parts), "semicolon")}
    exact = Sentence("alt.exact", here) if parts else Sentence("alt.none")
    return Sentence("alt.all", {"widths": speaking.counts(widths)}), exact
