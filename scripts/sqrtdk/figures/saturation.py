"""Figure: the largest weight and the effective keys of softmax against d_k, for each scale rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

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

PLACE = "article/attention"
INPUTS = ("softmax_saturation",)

_MEASURES = ("max_weight", "effective_keys")
_WANTED = 64
_PLAIN, _USUAL = "none", "1/sqrt(d_k)"


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per point: two measures of the ensemble in front, at one number of keys, with 95 % intervals."""
    table = frames["softmax_saturation"]
    if table.empty:
        return table
    style.scalings(table["scaling"])
    table = table[(table["ensemble"] == selection.front(table)) & table["measure"].isin(_MEASURES)]
    table = table[table["n_keys"] == nearest(table["n_keys"], _WANTED)].reset_index(drop=True)
    half = intervals.half_width(table["se"], table["n_blocks"])
    most = table["measure"].map({"max_weight": 1.0}).fillna(table["n_keys"])
    low, high = (table["estimate"] - half).clip(lower=0), (table["estimate"] + half).clip(upper=most)
    return table.assign(low=low, high=high)


@saving.styled(data, "No softmax was simulated.", LARGE)
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a panel for each measure, one curve for each scale rule."""
    rules = style.scalings(table["scaling"])
    measures = [measure for measure in _MEASURES if measure in set(table["measure"])]
    figure, grid = layout.stack([130] * len(measures), left=34, right=102, top=26, gap=46)
    n = int(table["n_keys"].iloc[0])
    for axes, measure in zip(grid, measures, strict=True):
        ends = []
        cells = table[table["measure"] == measure]
        for rule in rules:
            part, look = cells[cells["scaling"] == rule].sort_values("d_k"), style.scaling(rule)
            place, low, high = (part[name] for name in ("estimate", "low", "high"))
            panels.points(axes, part["d_k"], place, low, high, look, line=True, size=4.4)
            panels.theory(axes, part["d_k"], part["theory"], _THEORY, width=0.9)
            known = place[place.notna()]
            ends += [(known.iloc[-1], look.label, look.colour)] if len(known) else []
        panels.d_k_axis(axes, table["d_k"], "dₖ" if measure == measures[-1] else None)
        axes.set_ylim(0, 1.04 if measure == "max_weight" else 1.04 * n)
        axes.set_yticks([0, 0.5, 1] if measure == "max_weight" else [0, n / 4, n / 2, 3 * n / 4, n])
        axes.yaxis.set_major_formatter(panels.tick_text)
        dotted = " (dotted: exact)" if measure == measures[0] and cells["theory"].notna().any() else ""
        axes.set_title(_TITLES[measure].format(n=n) + dotted)
        layout.at_ends(axes, ends)
    return figure


_THEORY = style.Look("theory", style.INK, "", style.DOTTED)
_TITLES = {"max_weight": "largest weight, {n} keys", "effective_keys": "effective keys 1/Σp², of {n}"}


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    rules = style.scalings(table["scaling"])
    n = int(table["n_keys"].iloc[0])
    reading = (*_saturates(table, rules, n), *_passes(table, rules))
    return Description(_caption(table, n), _alt(table, rules, n), reading, (Sentence("caveat"),), _title(table, n))


def _title(table: pd.DataFrame, n: int) -> tuple[Sentence, ...]:
    """Say how many keys share the attention at the usual width, without a scale and with it."""
    cells = table[(table["measure"] == "effective_keys") & (table["d_k"] == nearest(table["d_k"], _WANTED))]
    cells = cells[cells["estimate"].notna()].set_index("scaling")
    if not {_PLAIN, _USUAL} <= set(cells.index):
        return (Sentence("title"),)
    plain, usual = cells.loc[_PLAIN], cells.loc[_USUAL]
    apart = abs(plain["estimate"] - usual["estimate"]) > selection.noise(plain["se"], usual["se"])
    kind = "same" if not apart else "fewer" if plain["estimate"] < usual["estimate"] else "more"
    values = {"n": numbers.count(n), "d_k": numbers.count(plain["d_k"])}
    spelled = dict(zip(("plain", "scaled"), numbers.apart([plain["estimate"], usual["estimate"]]), strict=True))
    return (Sentence(f"finding.{kind}", values | spelled),)


def _caption(table: pd.DataFrame, n: int) -> tuple[Sentence, ...]:
    names = {"ensemble": style.ensemble_label(table["ensemble"].iloc[0]), "n": numbers.count(n)}
    sentences = [Sentence("caption.all", names | {"rows": speaking.span(table["n_rows"])})]
    if table["theory"].notna().any():
        sentences.append(Sentence("caption.theory"))
    return tuple(sentences)


def _moves(table: pd.DataFrame, measure: str, rules: Sequence[str]) -> Listing:
    """Say for each scale rule how a measure moves from the narrowest to the widest head."""
    moves = []
    for rule in rules:
        rows = table[(table["measure"] == measure) & (table["scaling"] == rule) & table["estimate"].notna()]
        if ends := selection.ends(rows, "d_k"):
            moves.append(
                Sentence("move", {"rule": speaking.rule(rule), "change": speaking.move(ends, "d_k", small=0.05)})
            )
    return Listing(tuple(moves), "semicolon")


def _alt(table: pd.DataFrame, rules: Sequence[str], n: int) -> tuple[Sentence, ...]:
    listings = {measure: _moves(table, measure, rules) for measure in _MEASURES}
    measures = [Sentence(f"alt.{measure}", {"moves": moves}) for measure, moves in listings.items() if moves.items]
    return Sentence("alt.all", {"span": speaking.widths(table["d_k"]), "n": numbers.count(n)}), *measures


def _saturates(table: pd.DataFrame, rules: Sequence[str], n: int) -> tuple[Sentence, ...]:
    moves = _moves(table, "max_weight", rules)
    values = {"n": numbers.count(n), "span": speaking.widths(table["d_k"]), "moves": moves}
    return (Sentence("reading.moves", values),) if moves.items else ()


def _passes(table: pd.DataFrame, rules: Sequence[str]) -> tuple[Sentence, ...]:
    """Say where the mean largest weight passes one half, for each scale rule."""
    passes = []
    for rule in rules:
        rows = table[(table["measure"] == "max_weight") & (table["scaling"] == rule)]
        place = panels.crossing(rows["d_k"], rows["estimate"], 0.5)
        if place is not None:
            values = {"rule": speaking.opening(rule), "d_k": numbers.significant(place, 2)}
            passes.append(Sentence("reading.passes", values))
    return tuple(passes) or (Sentence("reading.nowhere"),)
