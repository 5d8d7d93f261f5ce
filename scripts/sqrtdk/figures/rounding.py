"""Figure: errors of softmax in floating-point formats of few bits, and exponentials that overflow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sqrtdk.figures import panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.results.grid import nearest
from sqrtdk.statistics import intervals
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PLACE = "atlas/factor"
INPUTS = ("rounding",)

_ROWS = {
    ("logits", "total_variation"): "error, rounded\nlogits",
    ("probabilities", "total_variation"): "error, rounded\nweights",
    ("naive_exp", "overflow_share"): "exponentials\nthat overflow",
}
_LABELS = {
    "float32": "float32",
    "bfloat16": "bfloat16",
    "float16": "float16",
    "float8_e4m3fn": "float8 e4m3",
    "float8_e5m2": "float8 e5m2",
}
_MARKED = "naive_exp"
_WANTED_D_K = 64
_HIDDEN = 0.1
_LEAST = 0.001


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per point with its panel: errors of rows of weights, and shares of exponentials that overflow."""
    table = frames["rounding"]
    if table.empty:
        return table
    style.scalings(table["scaling"])
    table = table[table["estimate"].notna()]
    wanted = [key in _ROWS for key in zip(table["rounded"], table["measure"], strict=True)]
    table = table[wanted].reset_index(drop=True)
    table["half_width"] = intervals.half_width(table["se"], table["n_blocks"])
    return table[["rounded", "format", "scaling", "d_k", "n_keys", "estimate", "se", "half_width", "exact", "n_rows"]]


@saving.styled(data, "No rounding was simulated.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a column for each scale rule and a row for each place of rounding; errors on a log axis."""
    rules = style.scalings(table["scaling"])
    looks = style.sequence(selection.order([*_LABELS, *table["format"]]))
    rows = {key: label for key, label in _ROWS.items() if key[0] in set(table["rounded"])}
    figure = panels.figure(1.0 + 1.6 * len(rows), max(style.WIDTH, 2.6 * len(rules)))
    grid = figure.subplots(len(rows), len(rules), sharex=True, sharey="row", squeeze=False)
    last = [*rows.values()][-1]
    for row, ((place, _), label) in zip(grid, rows.items(), strict=True):
        for axes, rule in zip(row, rules, strict=True):
            if place != _MARKED:
                panels.log_heights(axes)
            cells = table[(table["rounded"] == place) & (table["scaling"] == rule)]
            for name, part in cells.groupby("format", sort=False):
                half = part["half_width"].where(
                    part["half_width"] > (_HIDDEN / 8 if place == _MARKED else _HIDDEN * part["estimate"])
                )
                if place == _MARKED:
                    panels.theory(axes, part["d_k"], part["exact"], _THEORY, width=0.9)
                low, high = part["estimate"] - half, part["estimate"] + half
                panels.points(axes, part["d_k"], part["estimate"], low, high, looks[name], line=True, size=3)
            panels.d_k_axis(axes, table["d_k"], "dₖ" if label == last else None, most=4)
        row[0].set_ylabel(label)
    _limits(grid, rows, table)
    for axes, rule in zip(grid[0], rules, strict=True):
        axes.set_title(style.scaling(rule).label)
    figure.legend(
        handles=[
            panels.key(look, label=_LABELS.get(name, name))
            for name, look in looks.items()
            if name in set(table["format"])
        ],
        loc="outside upper center",
        ncols=3,
    )
    return figure


_THEORY = style.Look("exact", style.INK, "", style.DOTTED)


def _limits(grid: Any, rows: Iterable[tuple[str, str]], table: pd.DataFrame) -> None:
    for row, (place, _) in zip(grid, rows, strict=True):
        seen = selection.finite(table.loc[table["rounded"] == place, ["estimate"]])
        if place == _MARKED:
            row[0].set_ylim(-0.05 * seen.max(initial=0.1), 1.15 * seen.max(initial=0.1))
        elif (seen > 0).any():
            row[0].set_ylim(seen[seen > 0].min() / 2, seen.max() * 2)


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    values = {
        "n_keys": speaking.counts(selection.order(table["n_keys"])),
        "rows": speaking.span(table["n_rows"]),
    }
    reading = (*_growth(table), *_weights(table), *_overflow(table), _coverage(table))
    return Description((Sentence("caption", values),), _alt(table), reading, (Sentence("caveat"),))


def _ends(table: pd.DataFrame, place: str, rule: str, name: str) -> selection.Ends | None:
    rows = table[(table["rounded"] == place) & (table["scaling"] == rule) & (table["format"] == name)]
    return selection.ends(rows, "d_k")


def _move(ends: selection.Ends) -> Sentence:
    return speaking.move(ends, "d_k", small=0.1)


def _formats(table: pd.DataFrame) -> list[str]:
    return selection.order(table["format"])


def _label(name: str) -> str:
    return _LABELS.get(name, name)


def _alt(table: pd.DataFrame) -> tuple[Sentence, ...]:
    parts = []
    for place, _ in _ROWS:
        for rule in style.scalings(table["scaling"]):
            moves = {name: _ends(table, place, rule, name) for name in _formats(table)}
            moved = tuple(
                Sentence("alt.format", {"name": _label(name), "move": _move(ends)})
                for name, ends in moves.items()
                if ends
            )
            if moved:
                values = {"rule": speaking.rule(rule), "parts": Listing(moved, "semicolon")}
                parts.append(Sentence(f"alt.{place}", values))
    return Sentence("alt.all", {"widths": speaking.span(table["d_k"])}), *parts


def _at(table: pd.DataFrame, place: str, rule: str, name: str, d_k: int) -> pd.Series | None:
    rows = table[(table["rounded"] == place) & (table["scaling"] == rule) & (table["format"] == name)]
    rows = rows[rows["d_k"] == d_k]
    return rows.iloc[0] if len(rows) else None


def _growth(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Compare the error of rounded logits with and without the scale, at the usual width."""
    d_k = nearest(table["d_k"], _WANTED_D_K)
    parts, ratios = [], []
    for name in _formats(table):
        plain, scaled = (_at(table, "logits", rule, name, d_k) for rule in ("none", "1/sqrt(d_k)"))
        if plain is None or scaled is None or not scaled["estimate"] > 0:
            continue
        spelled = [numbers.with_error(cell["estimate"], cell["se"]) for cell in (plain, scaled)]
        parts.append(Sentence("reading.against", {"name": _label(name), "plain": spelled[0], "scaled": spelled[1]}))
        ratios.append(plain["estimate"] / scaled["estimate"])
    if not parts:
        return ()
    verdict = "larger" if min(ratios) > 1 else "smaller" if max(ratios) < 1 else "mixed"
    ends = dict.fromkeys(numbers.significant(pick(ratios), 2) for pick in (min, max))
    values = {"d_k": str(d_k), "times": numbers.significant(d_k**0.5), "ratios": speaking.ends(ends)}
    return (Sentence(f"reading.growth.{verdict}", values | {"parts": Listing(tuple(parts), "semicolon")}),)


def _weights(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say how the error of rounded weights moves where there is no scale."""
    moves = {name: _ends(table, "probabilities", "none", name) for name in _formats(table)}
    parts = tuple(
        Sentence("reading.move", {"name": _label(name), "move": _move(ends)})
        for name, ends in moves.items()
        if ends and ends[0]["d_k"] < ends[1]["d_k"]
    )
    return (Sentence("reading.weights", {"parts": Listing(parts, "semicolon")}),) if parts else ()


def _overflow(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say at which widths exponentials overflow."""
    parts = []
    for rule in style.scalings(table["scaling"]):
        cells = table[(table["rounded"] == _MARKED) & (table["scaling"] == rule)]
        first = []
        for name in _formats(cells):
            over = cells[(cells["format"] == name) & (cells["estimate"] > _LEAST)].sort_values("d_k")
            if len(over):
                row = over.iloc[0]
                start = {"name": _label(name), "d_k": str(row["d_k"])}
                start["share"] = numbers.with_error(row["estimate"], row["se"])
                first.append(Sentence("reading.from", start))
        if len(cells):
            values = {"rule": speaking.rule(rule), "formats": Listing(tuple(first))}
            parts.append(Sentence("reading.under", values))
    values = {"share": numbers.percent(_LEAST), "parts": Listing(tuple(parts), "semicolon")}
    return (Sentence("reading.overflow", values),) if parts else ()


def _coverage(table: pd.DataFrame) -> Sentence:
    known = table[(table["rounded"] == _MARKED) & table["exact"].notna() & (table["estimate"] > _LEAST)]
    known = known[known["se"] > 0]
    inside = int((abs(known["estimate"] - known["exact"]) <= known["half_width"]).sum())
    return speaking.coverage(inside, len(known), Sentence("quantity"), "shared.cells")
