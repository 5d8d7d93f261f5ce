"""Figure: the loss that training reaches against the learning rate, for each scale rule and width."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqrtdk.figures import panels, saving, selection, speaking, style, training_words
from sqrtdk.figures.catalogue import Description
from sqrtdk.figures.style import Look
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "article/training"
INPUTS = ("training_curves",)

_MOST_ROWS = 5
_MOST_COLUMNS = 3
_PLAIN, _SCALED = "none", "1/sqrt(d_k)"


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per point: the first experiment of each task and optimiser, then others, at up to three widths."""
    table = frames["training_curves"]
    if table.empty:
        return table
    first = table.drop_duplicates("experiment")
    names = [*first.drop_duplicates(["task", "optimiser"])["experiment"], *first["experiment"]]
    table = table[table["experiment"].isin(selection.order(names)[:_MOST_ROWS])]
    shown = {name: _widths(rows["d_k"]) for name, rows in table.groupby("experiment", sort=False)}
    keep = [d_k in shown[name] for name, d_k in zip(table["experiment"], table["d_k"], strict=True)]
    return table[keep].reset_index(drop=True)


def _widths(values: pd.Series) -> list[int]:
    """Return up to three widths: the narrowest, the widest and the middle one."""
    widths = sorted(set(values))
    return widths if len(widths) <= _MOST_COLUMNS else [widths[0], widths[len(widths) // 2], widths[-1]]


@saving.styled(data, "No model was trained.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a row for each experiment and a column for each width: loss with its interval, hollow where runs failed."""
    looks = training_words.looks(table["scaling"])
    groups = list(table.groupby("experiment", sort=False))
    n_columns = max(rows["d_k"].nunique() for _, rows in groups)
    n_legend = -(-len(looks) // 3)
    figure = panels.figure(0.75 + 0.24 * n_legend + 1.95 * len(groups), max(style.WIDTH, 1.9 * n_columns))
    grid = figure.subplots(len(groups), n_columns, sharey="row", sharex="row", squeeze=False)
    for line, (_, rows) in zip(grid, groups, strict=True):
        widths = _widths(rows["d_k"])
        for axes in line[len(widths) :]:
            axes.set_axis_off()
        for axes, d_k in zip(line, widths, strict=False):
            axes.set_xscale("log")
            panels.log_heights(axes, most=6)
            panels.reference(axes, float(rows["guess"].iloc[0]))
            for rule, look in looks.items():
                _draw_rule(axes, rows[(rows["d_k"] == d_k) & (rows["scaling"] == rule)], look)
            axes.set_title(f"dₖ = {d_k}")
            axes.set_xlabel("learning rate")
            _rates(axes, rows["learning_rate"])
        line[0].set_ylabel(f"final loss (nats)\n{_short(rows)}")
    figure.legend(
        handles=[panels.key(look) for look in looks.values()], loc="outside upper center", ncols=min(3, len(looks))
    )
    return figure


def _short(rows: pd.DataFrame) -> str:
    return panels.short(training_words.label(rows), 26)


def _rates(axes: Axes, rates: pd.Series) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

    low, high = min(rates), max(rates)
    axes.set_xlim(low / 1.6, high * 1.6)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    if high / low >= 10:
        axes.xaxis.set_major_locator(LogLocator(numticks=4))
        # Powers: decimals of neighbouring panels would touch.
        axes.xaxis.set_major_formatter(lambda value, _: numbers.power_of_ten(round(math.log10(value))))
    else:
        axes.set_xticks(sorted(set(rates))[:: max(1, len(set(rates)) - 1)])
        axes.xaxis.set_major_formatter(panels.tick_text)


def _draw_rule(axes: Axes, rows: pd.DataFrame, look: Look) -> None:
    """Draw a rule's curve; points at which some runs ended no better than guessing are hollow."""
    rows = rows.sort_values("learning_rate")
    if rows.empty:
        return
    axes.plot(rows["learning_rate"], rows["loss"], color=look.colour, linestyle=look.dash, linewidth=1.1, label="_line")
    failed = rows["n_guessing"] > 0
    for part, hollow in ((rows[~failed], False), (rows[failed], True)):
        if len(part):
            rate, loss, low, high = (part[name] for name in ("learning_rate", "loss", "loss_low", "loss_high"))
            panels.points(axes, rate, loss, low, high, look, hollow=hollow)


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    groups = [rows for _, rows in table.groupby("experiment", sort=False)]
    return Description(
        _caption(frames, table), tuple(map(_alt, groups)), tuple(map(_reading, groups)), (Sentence("caveat"),)
    )


def _caption(frames: Mapping[str, pd.DataFrame], table: pd.DataFrame) -> tuple[Sentence, ...]:
    names = tuple(training_words.experiment(rows) for _, rows in table.groupby("experiment", sort=False))
    values = {
        "experiments": Listing(names, "semicolon"),
        "seeds": speaking.span(table["n_seeds"]),
        "failed": numbers.count(table["n_guessing"].sum()),
        "runs": numbers.count(table["n_seeds"].sum()),
        "diverged": numbers.count(table["n_diverged"].sum()),
    }
    left = frames["training_curves"]["experiment"].nunique() - len(names)
    more = (Sentence("caption.more", {"count": str(left)}),) if left else ()
    return Sentence("caption.all", values), *more


def _best(rows: pd.DataFrame) -> pd.Series:
    return rows.loc[rows["loss"].idxmin()]


def _loss(row: pd.Series) -> object:
    if row["loss_low"] != row["loss_low"]:  # a single seed has no interval
        return numbers.significant(row["loss"], 2)
    spelled = {name: numbers.significant(row[name], 2) for name in ("loss", "loss_low", "loss_high")}
    return Sentence("loss", spelled)


def _alt(rows: pd.DataFrame) -> Sentence:
    parts = []
    for d_k in _widths(rows["d_k"]):
        best = tuple(
            Sentence("alt.rule", {"rule": training_words.words(rule)} | _at(_best(cells)))
            for rule, cells in rows[rows["d_k"] == d_k].groupby("scaling", sort=False)
        )
        parts.append(Sentence("alt.at", {"d_k": str(d_k), "rules": Listing(best)}))
    values = {"experiment": training_words.experiment(rows), "parts": Listing(tuple(parts), "semicolon")}
    return Sentence("alt.all", values)


def _at(row: pd.Series) -> dict[str, object]:
    return {"loss": _loss(row), "rate": training_words.rate(row["learning_rate"])}


def _reading(rows: pd.DataFrame) -> Sentence:
    """Say, for each width, whether the rule without a scale reaches what the scaled one does, and at how many rates."""
    experiment = training_words.experiment(rows)
    parts = []
    for d_k in _widths(rows["d_k"]):
        cells = rows[rows["d_k"] == d_k]
        plain, scaled = (cells[cells["scaling"] == rule] for rule in (_PLAIN, _SCALED))
        if plain.empty or scaled.empty:
            continue
        unscaled, usual = _best(plain), _best(scaled)
        worse, better = unscaled["loss_low"] > usual["loss_high"], unscaled["loss_high"] < usual["loss_low"]
        values = {"d_k": str(d_k), "plain": _loss(unscaled), "scaled": _loss(usual)}
        for name, part in (("plain", plain), ("scaled", scaled)):
            values |= {f"{name}_learns": str(int((part["n_guessing"] == 0).sum())), f"{name}_rates": str(len(part))}
        parts.append(Sentence(f"reading.{'worse' if worse else 'better' if better else 'level'}", values))
    if not parts:
        return Sentence("reading.nothing", {"experiment": experiment})
    return Sentence("reading.all", {"experiment": experiment, "parts": Listing(tuple(parts), "semicolon")})
