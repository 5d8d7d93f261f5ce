"""Figure: the loss that training reaches against the learning rate, for each task and scale rule."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sqrtdk.figures import layout, panels, saving, speaking, style, training_words
from sqrtdk.figures.catalogue import Description
from sqrtdk.figures.style import Look
from sqrtdk.figures.targets import LARGE
from sqrtdk.results.grid import nearest
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "article/training"
INPUTS = ("training_curves",)

_MOST, _WANTED = 3, 64
"""Experiments, each of another task, and the width that are shown."""
_PLAIN, _SCALED, _LINEAR = "none", "1/sqrt(d_k)", "1/d_k"


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per point: the first experiment of each task, at one width."""
    table = frames["training_curves"]
    if table.empty:
        return table
    first = table.drop_duplicates("experiment").drop_duplicates("task")["experiment"]
    table = table[table["experiment"].isin(first[:_MOST])]
    widths = table.groupby("experiment")["d_k"].agg(lambda values: nearest(values, _WANTED))
    return table[table["d_k"] == table["experiment"].map(widths)].reset_index(drop=True)


@saving.styled(data, "No model was trained.", LARGE)
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a panel for each task: loss with its interval, hollow where runs failed, and where each rule is best."""
    looks = training_words.looks(table["scaling"])
    groups = list(table.groupby("experiment", sort=False))
    figure, grid = layout.stack([150] * len(groups), left=52, right=102, top=26, gap=46)
    for axes, (_, rows) in zip(grid, groups, strict=True):
        axes.set_xscale("log")
        panels.log_heights(axes, most=5)
        ends = []
        for rule, look in looks.items():
            part = rows[rows["scaling"] == rule].sort_values("learning_rate")
            _draw_rule(axes, part, look)
            ends += [(part["loss"].iloc[-1], look.label, look.colour)] if len(part) else []
        _guessing(axes, float(rows["guess"].iloc[0]))
        _alike(axes, rows[rows["scaling"] == _SCALED])
        _rates(axes, rows["learning_rate"])
        panels.log_ticks(axes)
        axes.minorticks_off()
        axes.set_title(f"{_short(rows)}: final loss, dₖ = {rows['d_k'].iloc[0]}")
        layout.at_ends(axes, ends)
    grid[-1].set_xlabel("learning rate (ring: best; hollow: some runs guess)")
    return figure


def _short(rows: pd.DataFrame) -> str:
    return panels.short(training_words.label(rows), 24)


def _guessing(axes: Axes, guess: float) -> None:
    """Shade the losses that answers by frequency alone have, or worse."""
    low, high = axes.get_ylim()
    high = max(high, guess * (high / low) ** 0.12)
    axes.set_ylim(low, high)
    axes.axhspan(guess, high, color=style.INK, alpha=style.FAINT, linewidth=0, zorder=0)
    axes.text(
        0.02, math.log(guess * 1.1 / low) / math.log(high / low), "guessing", transform=axes.transAxes, va="bottom"
    )


def _alike(axes: Axes, scaled: pd.DataFrame) -> None:
    """Shade the losses that count as no difference from the best one with the usual scale."""
    if scaled.empty:
        return
    best, colour, (low, high) = _best(scaled)["loss"], style.scaling(_SCALED).colour, axes.get_ylim()
    bottom, top = max(best - _margin(), low), best + _margin()
    axes.axhspan(bottom, top, color=colour, alpha=style.FAINT, linewidth=0, zorder=0)
    place = math.log(bottom / low) / math.log(high / low) + 0.04
    axes.text(0.02, place, f"alike: within\n{_margin():g} nats", transform=axes.transAxes, va="bottom", color=colour)


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
    if rows.empty:
        return
    axes.plot(rows["learning_rate"], rows["loss"], color=look.colour, linestyle=look.dash, linewidth=1.4, label="_line")
    best = _best(rows)
    if best["n_guessing"] == 0:
        ring = {"marker": "o", "markersize": 11, "markerfacecolor": "none", "markeredgewidth": 1.3, "linestyle": "none"}
        axes.plot([best["learning_rate"]], [best["loss"]], color=look.colour, label="_best", **ring)
    failed = rows["n_guessing"] > 0
    for part, hollow in ((rows[~failed], False), (rows[failed], True)):
        if len(part):
            rate, loss, low, high = (part[name] for name in ("learning_rate", "loss", "loss_low", "loss_high"))
            panels.points(axes, rate, loss, low, high, look, hollow=hollow)


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    groups = [rows for _, rows in table.groupby("experiment", sort=False)]
    words = (
        _caption(frames, table),
        tuple(map(_alt, groups)),
        tuple(map(_reading, groups)),
        (Sentence("caveat", {"margin": f"{_margin():g}"}),),
    )
    return Description(*words, _title(groups))


def _title(groups: list[pd.DataFrame]) -> tuple[Sentence, ...]:
    """Say of each task how it ends without the scale at its best rate, and of all how 1/d_k does."""
    found: dict[str, list[object]] = {}
    for rows in groups:
        plain, scaled = (rows[rows["scaling"] == rule] for rule in (_PLAIN, _SCALED))
        if len(plain) and len(scaled):
            found.setdefault(_verdict(_best(plain), _best(scaled)), []).append(training_words.task(rows))
    if not found:
        return (Sentence("title"),)
    parts = tuple(
        Sentence(f"finding.{verdict}", {"tasks": Listing(tuple(found[verdict]))})
        for verdict in ("worse", "open", "alike", "better")
        if verdict in found
    )
    return Sentence("finding.all", {"parts": Listing(parts, "semicolon")}), *_linear(groups)


def _linear(groups: list[pd.DataFrame]) -> Iterator[Sentence]:
    """Say how 1/d_k ends against 1/√d_k at their best rates, where every task has both."""
    pairs = [[rows[rows["scaling"] == rule] for rule in (_LINEAR, _SCALED)] for rows in groups]
    if not all(len(part) for pair in pairs for part in pair):
        return
    ends = [(_best(linear), _best(root)) for linear, root in pairs]
    found = {_verdict(*pair) for pair in ends}
    word = next(iter(found)) if len(found) == 1 else "mixed"
    if found <= {"alike", "open"} and all(-_margin() < one["loss"] - root["loss"] < 0 for one, root in ends):
        word = "little" if "open" in found else "lower"
    yield Sentence(f"finding.linear.{word}", {"margin": f"{_margin():g}"})


def _margin() -> float:
    """Return the margin of the verdicts on losses, in nats."""
    from sqrtdk.training.comparisons import MEASURES

    return MEASURES["loss"].margin


def _verdict(plain: pd.Series, scaled: pd.Series) -> str:
    """Say how a rule ends against another: worse or better by more than the margin, alike within it, or open."""
    over, under = plain["loss_low"] - scaled["loss_high"], plain["loss_high"] - scaled["loss_low"]
    if over > _margin() or under < -_margin():
        return "worse" if over > _margin() else "better"
    return "alike" if over >= -_margin() and under <= _margin() else "open"


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
    for d_k in sorted(set(rows["d_k"])):
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
    for d_k in sorted(set(rows["d_k"])):
        cells = rows[rows["d_k"] == d_k]
        plain, scaled = (cells[cells["scaling"] == rule] for rule in (_PLAIN, _SCALED))
        if plain.empty or scaled.empty:
            continue
        unscaled, usual = _best(plain), _best(scaled)
        values = {"d_k": str(d_k), "plain": _loss(unscaled), "scaled": _loss(usual)}
        values["verdict"] = Sentence(f"reading.{_verdict(unscaled, usual)}")
        for name, part in (("plain", plain), ("scaled", scaled)):
            values |= {f"{name}_learns": str(int((part["n_guessing"] == 0).sum())), f"{name}_rates": str(len(part))}
        parts.append(Sentence("reading.at", values))
    if not parts:
        return Sentence("reading.nothing", {"experiment": experiment})
    return Sentence("reading.all", {"experiment": experiment, "parts": Listing(tuple(parts), "semicolon")})
