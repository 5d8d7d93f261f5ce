"""Figure: the softmax weight of one key aligned with the query, against the number of keys."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sqrtdk.figures import layout, panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.figures.style import Look
from sqrtdk.figures.targets import LARGE
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
_WANTED = 64
_NOISE, _SIGNAL = "1/sqrt(d_k)", "1/d_k"
_UNDECIDED = 0.999
"""Means closer to 1 than this rest on rare rows, too few of which are drawn for an interval."""


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per number of keys and rule, at one width and the best match, with intervals and capacities."""
    table = _all(frames)
    if table.empty:
        return table
    shown = (table["measure"] == "weight") & (table["rho"] == table["rho"].max())
    return table[shown & (table["d_k"] == nearest(table["d_k"], _WANTED))].reset_index(drop=True)


def _all(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
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


@saving.styled(data, "No planted key was simulated.", LARGE)
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw the weight of the matching key for each scale rule, and where it passes one half."""
    figure, (axes,) = layout.stack([215], left=34, right=102, top=26)
    axes.set_xscale("log")
    panels.reference(axes, 0.5)
    ends, last = [], table["n_keys"].max()
    for rule in style.scalings(table["scaling"]):
        part, look = table[table["scaling"] == rule].sort_values("n_keys"), style.scaling(rule)
        panels.theory(axes, part["n_keys"], part["theory"], look, width=1.5)
        seen = part[part["estimate"].notna()]
        panels.points(axes, seen["n_keys"], seen["estimate"], seen["low"], seen["high"], look, size=4.4)
        known = part["theory"].where(part["theory"].notna(), part["estimate"]).dropna()
        ends += [(known.iloc[-1], look.label, look.colour)] if len(known) else []
        _capacity(axes, part, look, last)
    axes.set_xlim(table["n_keys"].min() / 1.5, last * 1.5)
    axes.set_ylim(-0.03, 1.05)
    axes.set_yticks([0, 0.5, 1], ["0", "½", "1"])
    axes.xaxis.set_major_formatter(panels.tick_text)
    axes.minorticks_off()
    axes.set_xlabel("keys, n")
    if _frozen(table):
        look = style.scaling("none")
        said, place = "but one key wins\nwithout a match, too", {"ha": "right", "va": "top"}
        axes.text(0.99, 0.9, said, transform=axes.transAxes, color=look.colour, **place)
    axes.set_title(f"weight of the one matching key, dₖ = {int(table['d_k'].iloc[0])}")
    layout.at_ends(axes, ends)
    return figure


def _capacity(axes: Axes, part: pd.DataFrame, look: Look, last: int) -> None:
    """Mark where a curve passes one half, with the number of keys."""
    capacity = part["capacity"].dropna()
    if capacity.empty or capacity.iloc[0] > last:
        return
    keys = capacity.iloc[0]
    axes.plot(
        keys,
        0.5,
        color=look.colour,
        marker="D",
        markersize=7,
        markerfacecolor="none",
        markeredgewidth=1.3,
        linestyle="none",
        label="_capacity",
    )
    layout.says(axes, keys, 0.5, f"{numbers.significant(keys, 2)} keys", look.colour, 9, 9)


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    whole = _all(frames)
    lead = Sentence("reading.lead", {"rho": f"{table['rho'].max():g}"})
    reading = (lead, *_normalisers(whole), *_rule_of_thumb(whole), *_others(whole), *_agreement(whole))
    return Description(_caption(table), _alt(table), reading, (Sentence("caveat"),), _title(table))


def _title(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say among how many keys a matching one keeps half of the attention, with each of the two factors."""
    capacity = table.dropna(subset=["capacity"]).drop_duplicates("scaling").set_index("scaling")["capacity"]
    if not {_NOISE, _SIGNAL} <= set(capacity.index):
        return (Sentence("title"),)
    values = dict(zip(("root", "whole"), numbers.apart([capacity[_NOISE], capacity[_SIGNAL]]), strict=True))
    kind = "root" if capacity[_NOISE] > capacity[_SIGNAL] else "whole"
    found = Sentence(f"finding.{kind}", values | {"d_k": numbers.count(table["d_k"].iloc[0])})
    return found, *([Sentence("finding.unscaled")] if _frozen(table) else [])


def _frozen(table: pd.DataFrame) -> bool:
    """Say whether unscaled attention picks one key even where none matches, over all keys (random energy model)."""
    return "none" in set(table["scaling"]) and bool(table["d_k"].min() >= 2 * math.log(table["n_keys"].max()))


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
    d_k, rho, parts = table["d_k"].iloc[0], table["rho"].iloc[0], []
    for rule in style.scalings(table["scaling"]):
        rows = table[(table["scaling"] == rule) & table["theory"].notna()]
        if ends := selection.ends(rows, "n_keys"):
            shares = dict.fromkeys(numbers.significant(row["theory"], 2) for row in ends)
            values = {"n_keys": speaking.span([row["n_keys"] for row in ends]), "shares": speaking.ends(shares)}
            parts.append(Sentence("alt.weight", values | {"rule": speaking.rule(rule)}))
    here = {"d_k": numbers.count(d_k), "rho": f"{rho:g}", "parts": Listing(tuple(parts), "semicolon")}
    exact = Sentence("alt.exact", here) if parts else Sentence("alt.none")
    return Sentence("alt.all"), exact
