"""Figure: how softmax saturates with d_k, for each number of keys and each scale rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqrtdk.figures import panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.results.grid import nearest
from sqrtdk.statistics import intervals
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PLACE = "article/attention"
INPUTS = ("softmax_saturation",)

_MEASURES = ("normalised_entropy", "max_weight", "saturated_share")
_OTHERS = "max_weight"
_HIDDEN = 0.015
_WANTED_N_KEYS = 64
_USUAL = "1/sqrt(d_k)"


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per point with its panel: three measures of the ensemble in front, and one of all ensembles."""
    import pandas as pd

    table = frames["softmax_saturation"]
    if table.empty:
        return table
    style.scalings(table["scaling"])
    front, n = selection.front(table), nearest(table["n_keys"], _WANTED_N_KEYS)
    main = table[(table["ensemble"] == front) & table["measure"].isin(_MEASURES)].copy()
    main.insert(0, "panel", main["measure"])
    every = table[(table["n_keys"] == n) & (table["measure"] == _OTHERS)].copy()
    every.insert(0, "panel", "ensembles")
    result = pd.concat([main, every], ignore_index=True)
    half = intervals.half_width(result["se"], result["n_blocks"])
    result["low"], result["high"] = (result["estimate"] - half).clip(0, 1), (result["estimate"] + half).clip(0, 1)
    return result


@saving.styled(data, "No softmax was simulated.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a column for each scale rule and a row for each measure; all ensembles in the last row."""
    rules = style.scalings(table["scaling"])
    measures = [measure for measure in _MEASURES if measure in set(table["panel"])]
    ensembles = style.ensembles(selection.order(table.loc[table["panel"] == "ensembles", "ensemble"]))
    keys = style.sequence(sorted(selection.order(table["n_keys"])))
    several = len(ensembles) > 1
    names = [*measures, "ensembles"] if several else measures
    extra = 0.23 * -(-len(ensembles) // 3) if several else 0.0
    figure = panels.figure(0.75 + 1.38 * len(names) + extra, max(style.WIDTH, 1.75 * len(rules)))
    grid = figure.subplots(len(names), len(rules), sharex=True, sharey=True, squeeze=False)
    for row, name in enumerate(names):
        for axes, rule in zip(grid[row], rules, strict=True):
            cells = table[(table["panel"] == name) & (table["scaling"] == rule)]
            series, column = (ensembles, "ensemble") if name == "ensembles" else (keys, "n_keys")
            for value, look in series.items():
                part = cells[cells[column] == value]
                # An interval that its marker hides would only make the file larger.
                ends = part[["low", "high"]].where(part["high"] - part["low"] > _HIDDEN)
                panels.points(axes, part["d_k"], part["estimate"], ends["low"], ends["high"], look, line=True, size=3)
                if "theory" in part and part["theory"].notna().any():
                    panels.theory(axes, part["d_k"], part["theory"], _THEORY, width=0.9)
            panels.d_k_axis(axes, table["d_k"], "dₖ" if row == len(names) - 1 else None, most=2)
            axes.set_ylim(-0.04, 1.04)
            axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
            if row == 0:
                axes.set_title(style.scaling(rule).label)
        grid[row][0].set_ylabel(_row_label(name, table))
    figure.legend(
        handles=[panels.key(look, label=f"n = {n}") for n, look in keys.items()],
        loc="outside upper center",
        ncols=min(len(keys), 5),
    )
    if several:
        figure.legend(handles=[panels.key(look) for look in ensembles.values()], loc="outside lower center", ncols=3)
    return figure


_THEORY = style.Look("theory", style.INK, "", style.DOTTED)


def _row_label(name: str, table: pd.DataFrame) -> str:
    if name != "ensembles":
        return {"saturated_share": "share of rows\nwith a weight\nabove 0.99"}.get(name, style.measure(name))
    n = table.loc[table["panel"] == "ensembles", "n_keys"].iloc[0]
    return f"{style.measure(_OTHERS)},\nall ensembles,\nn = {n}"


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    rules = style.scalings(table["scaling"])
    n = nearest(table["n_keys"], _WANTED_N_KEYS)
    reading = (*_saturates(table, rules, n), *_keys(table, rules), *_ensembles(table, rules, n))
    return Description(_caption(table, n), _alt(table, rules, n), reading, (Sentence("caveat"),))


def _caption(table: pd.DataFrame, n: int) -> tuple[Sentence, ...]:
    every, worst = table.loc[table["panel"] == "ensembles", "ensemble"], table["se"].max()
    front = table.loc[table["panel"] != "ensembles", "ensemble"].iloc[0]
    n_keys = speaking.counts(sorted(selection.order(table["n_keys"])))
    sentences = [Sentence("caption.all", {"ensemble": style.ensemble_label(front), "n_keys": n_keys})]
    if every.nunique() > 1:
        sentences.append(Sentence("caption.ensembles", {"n": numbers.count(n)}))
    sentences.append(Sentence("caption.rows", {"rows": speaking.span(table["n_rows"])}))
    if worst == worst:
        sentences.append(Sentence("caption.error", {"worst": numbers.significant(worst, 2)}))
    if table["theory"].notna().any():
        sentences.append(Sentence("caption.theory"))
    return tuple(sentences)


def _ends(table: pd.DataFrame, panel: str, rule: str, n: int, ensemble: str | None = None) -> selection.Ends | None:
    rows = table[(table["panel"] == panel) & (table["scaling"] == rule) & (table["n_keys"] == n)]
    if ensemble is not None:
        rows = rows[rows["ensemble"] == ensemble]
    return selection.ends(rows[rows["estimate"].notna()], "d_k")


def _moves(table: pd.DataFrame, panel: str, rules: Sequence[str], n: int) -> Listing:
    """Say for each scale rule how a measure moves from the narrowest to the widest head."""
    pairs = {rule: _ends(table, panel, rule, n) for rule in rules}
    moves = [
        Sentence("move", {"rule": speaking.rule(rule), "change": speaking.move(ends, "d_k", small=0.05)})
        for rule, ends in pairs.items()
        if ends
    ]
    return Listing(tuple(moves), "semicolon")


def _alt(table: pd.DataFrame, rules: Sequence[str], n: int) -> tuple[Sentence, ...]:
    listings = {panel: _moves(table, panel, rules, n) for panel in _MEASURES}
    measures = [Sentence(f"alt.{panel}", {"moves": moves}) for panel, moves in listings.items() if moves.items]
    return Sentence("alt.all", {"span": speaking.widths(table["d_k"]), "n": numbers.count(n)}), *measures


def _saturates(table: pd.DataFrame, rules: Sequence[str], n: int) -> tuple[Sentence, ...]:
    moves = _moves(table, "max_weight", rules, n)
    values = {"n": numbers.count(n), "span": speaking.widths(table["d_k"]), "moves": moves}
    return (Sentence("reading.moves", values),) if moves.items else ()


def _keys(table: pd.DataFrame, rules: Sequence[str]) -> tuple[Sentence, ...]:
    """Say where the mean largest weight passes one half, for each scale rule and number of keys."""
    passes, rising = [], True
    for rule in rules:
        rows = table[(table["panel"] == "max_weight") & (table["scaling"] == rule)]
        crossings = {n: panels.crossing(part["d_k"], part["estimate"], 0.5) for n, part in rows.groupby("n_keys")}
        places = {n: place for n, place in crossings.items() if place is not None}
        if places:
            spelled = [
                Sentence("reading.place", {"d_k": numbers.significant(place, 2), "n": numbers.count(n)})
                for n, place in places.items()
            ]
            values = {"rule": speaking.opening(rule), "places": Listing(tuple(spelled))}
            passes.append(Sentence("reading.passes", values))
            rising &= len(places) > 1 and list(places.values()) == sorted(places.values())
    if not passes:
        return (Sentence("reading.nowhere"),)
    return *passes, *((Sentence("reading.rising"),) if rising else ())


def _ensembles(table: pd.DataFrame, rules: Sequence[str], n: int) -> tuple[Sentence, ...]:
    """Name the ensembles that the usual scale does not keep from saturating."""
    every = table[(table["panel"] == "ensembles") & (table["scaling"] == _USUAL)]
    names = selection.order(every["ensemble"])
    if _USUAL not in rules or len(names) < 2 or every["d_k"].nunique() < 2:
        return ()
    moves = {name: _ends(table, "ensembles", _USUAL, n, name) for name in names}
    grow = []
    for name, ends in moves.items():
        if ends and ends[1]["estimate"] - ends[0]["estimate"] > 0.1:
            first, last = (numbers.with_error(row["estimate"], row["se"]) for row in ends)
            grow.append(
                Sentence("ensembles.one", {"ensemble": style.ensemble_label(name), "first": first, "last": last})
            )
    values = {"rule": speaking.opening(_USUAL)}
    if not grow:
        return (Sentence("ensembles.none", values),)
    return (Sentence("ensembles.some", values | {"ensembles": Listing(tuple(grow))}),)
