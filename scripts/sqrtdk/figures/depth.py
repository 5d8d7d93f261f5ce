"""Figure: spread of the logits and similarity of tokens against depth in stacks of random attention layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqrtdk.figures import panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.statistics import intervals
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PLACE = "atlas/start"
INPUTS = ("depth",)

_MEASURES = {"logit_std": "standard deviation\nof logits in a row", "token_cosine": "mean cosine\nof two tokens"}
_NAMES = {
    ("pre_layernorm", True): "pre-LayerNorm",
    ("post_layernorm", True): "post-LayerNorm",
    ("pre_rmsnorm", True): "pre-RMSNorm",
    ("none", True): "no norm",
    ("pre_layernorm", False): "LayerNorm only",
    ("none", False): "no norm or residual",
}
"""What a stack is called by its normalisation and whether it has residual connections."""
_FLOOR = 1e-3
_HIDDEN = 0.04
_GROWTH = 1.1


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per point: the two measures of every kind of stack and layer, with 95 % intervals."""
    table = frames["depth"]
    if table.empty:
        return table
    style.scalings(table["scaling"])
    table = table[table["measure"].isin(_MEASURES) & table["estimate"].notna()].reset_index(drop=True)
    table.insert(0, "stack", _names(table))
    half = intervals.half_width(table["se"], table["n_stacks"])
    table["low"], table["high"] = table["estimate"] - half, table["estimate"] + half
    return table.drop(columns=["norm", "residual"])


def _names(table: pd.DataFrame) -> list[str]:
    kinds = zip(table["norm"], table["residual"], strict=True)
    return [_NAMES.get(kind, f"{kind[0]}{'' if kind[1] else ' without residual'}") for kind in kinds]


@saving.styled(data, "No stack of layers was simulated.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a column for each scale rule: above the spread of the logits with its exact value, below the cosine."""
    rules = style.scalings(table["scaling"])
    looks = style.sequence(selection.order([*_NAMES.values(), *table["stack"]]))
    figure = panels.figure(5.0, max(style.WIDTH, 2.6 * len(rules)))
    grid = figure.subplots(2, len(rules), sharex=True, sharey="row", squeeze=False)
    for axes in grid[0]:
        panels.log_heights(axes)
    for row, (measure, label) in zip(grid, _MEASURES.items(), strict=True):
        for axes, rule in zip(row, rules, strict=True):
            cells = table[(table["measure"] == measure) & (table["scaling"] == rule)]
            for name, part in cells.groupby("stack", sort=False):
                hidden = part["high"] - part["low"] < (_HIDDEN if measure == "token_cosine" else _HIDDEN * part["high"])
                ends = part[["low", "high"]].where(~hidden)
                if measure == "logit_std":
                    panels.theory(axes, part["layer"], part["exact"], _THEORY, width=0.9)
                panels.points(
                    axes, part["layer"], part["estimate"], ends["low"], ends["high"], looks[name], line=True, size=3
                )
        row[0].set_ylabel(label)
    for axes, rule in zip(grid[0], rules, strict=True):
        axes.set_title(style.scaling(rule).label)
        panels.reference(axes, 1)
    _limits(grid, table)
    present = [name for name in looks if name in set(table["stack"])]
    figure.legend(handles=[panels.key(looks[name]) for name in present], loc="outside upper center", ncols=3)
    return figure


_THEORY = style.Look("exact", style.INK, "", style.DOTTED)


def _limits(grid: Any, table: pd.DataFrame) -> None:
    seen = selection.finite(table.loc[table["measure"] == "logit_std", ["estimate"]])
    seen = seen[seen > 0]
    grid[0][0].set_ylim(max(min(seen.min(initial=1.0), 1.0) / 2, _FLOOR), max(seen.max(initial=1.0), 1.0) * 2)
    grid[1][0].set_ylim(-0.06, 1.06)
    last = int(table["layer"].max())
    for axes in grid[1]:
        axes.set_xlabel("layer")
        axes.set_xlim(0.5, last + 0.5)
        axes.set_xticks(range(1, last + 1, max(1, last // 5)))


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    values = {
        "layers": numbers.count(table["layer"].max()),
        "stacks": numbers.count(table["n_stacks"].max()),
        "floor": f"{_FLOOR:g}",
    }
    reading = (*_normalised(table), *_free(table), *_collapse(table), _coverage(frames["depth"]))
    return Description((Sentence("caption", values),), _alt(table), reading, (Sentence("caveat"),))


def _ends(table: pd.DataFrame, measure: str, rule: str, name: str) -> selection.Ends | None:
    rows = table[(table["measure"] == measure) & (table["scaling"] == rule) & (table["stack"] == name)]
    return selection.ends(rows, "layer")


def _move(ends: selection.Ends) -> object:
    move = speaking.move(ends, "layer", small=0.05)
    if ends[0]["layer"] == ends[1]["layer"]:
        return move
    return Sentence("in_layer", {"move": move, "layer": str(ends[1]["layer"])})


def _alt(table: pd.DataFrame) -> tuple[Sentence, ...]:
    parts = []
    for rule in style.scalings(table["scaling"]):
        for measure in _MEASURES:
            moves = {name: _ends(table, measure, rule, name) for name in selection.order(table["stack"])}
            moved = tuple(
                Sentence("alt.stack", {"name": name, "move": _move(ends)}) for name, ends in moves.items() if ends
            )
            if moved:
                values = {"rule": speaking.rule(rule), "parts": Listing(moved, "semicolon")}
                parts.append(Sentence(f"alt.{measure}", values))
    return Sentence("alt.all", {"first": str(table["layer"].min())}), *parts


def _growth(table: pd.DataFrame, rule: str, name: str) -> float | None:
    """Return the largest spread of a stack's layers over that of its first."""
    cells = table[(table["measure"] == "logit_std") & (table["scaling"] == rule) & (table["stack"] == name)]
    cells = cells.sort_values("layer")
    if cells["layer"].nunique() < 2 or not cells["estimate"].iloc[0] > 0:
        return None
    return float(cells["estimate"].max() / cells["estimate"].iloc[0])


def _normalised(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say whether the spread grows with depth where there is a normalisation."""
    names = [name for name in selection.order(table["stack"]) if not name.startswith("no")]
    growths = {
        (name, rule): ratio
        for rule in style.scalings(table["scaling"])
        for name in names
        if (ratio := _growth(table, rule, name)) is not None
    }
    if not growths:
        return ()
    grown = tuple(
        Sentence("reading.grown", {"name": name, "rule": speaking.rule(rule), "ratio": numbers.significant(ratio)})
        for (name, rule), ratio in growths.items()
        if ratio > _GROWTH
    )
    if grown:
        return (Sentence("reading.normalised.grows", {"parts": Listing(grown)}),)
    rise = max(growths.values()) - 1
    values = {"rise": numbers.percent(max(rise, 0))}
    return (Sentence(f"reading.normalised.{'stays' if rise <= 0 else 'hardly'}", values),)


def _free(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say what happens to the spread without a normalisation."""
    moves = tuple(
        Sentence("reading.move", {"rule": speaking.rule(rule), "move": _move(ends)})
        for rule in style.scalings(table["scaling"])
        if (ends := _ends(table, "logit_std", rule, _NAMES["none", True]))
    )
    return (Sentence("reading.free", {"parts": Listing(moves, "semicolon")}),) if moves else ()


def _collapse(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say how alike the tokens become."""
    parts = []
    for rule in style.scalings(table["scaling"]):
        last = tuple(
            Sentence("reading.last", {"value": numbers.with_error(ends[1]["estimate"], ends[1]["se"]), "name": name})
            for name in selection.order(table["stack"])
            if (ends := _ends(table, "token_cosine", rule, name))
        )
        if last:
            parts.append(Sentence("reading.under", {"rule": speaking.rule(rule), "parts": Listing(last)}))
    return (Sentence("reading.collapse", {"parts": Listing(tuple(parts), "semicolon")}),) if parts else ()


def _coverage(frame: pd.DataFrame) -> Sentence:
    """Say whether the spread is what the tokens' similarity makes of it."""
    cells = frame[(frame["measure"] == "logit_variance_ratio") & frame["estimate"].notna() & (frame["se"] > 0)]
    half = intervals.half_width(cells["se"], cells["n_stacks"])
    inside = int((abs(cells["estimate"] - 1) <= half).sum())
    return speaking.coverage(inside, len(cells), Sentence("quantity"), "shared.cells")
