"""Figure: what happens inside attention while it is trained, with and without the scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqrtdk.figures import panels, saving, selection, speaking, training_words
from sqrtdk.figures.catalogue import Description
from sqrtdk.results.grid import nearest
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "atlas/training"
INPUTS = ("training",)

_MEASURES = {
    "logit_std": "spread of logits\nin a row",
    "entropy": "entropy (nats)",
    "grad_norm_qk": "gradient norm,\nW_q and W_k",
}
_WANTED = 64
_SCALED = "1/sqrt(d_k)"
_HIGHER = 10
_LINEAR = ("entropy",)
_SMALLEST = 1e-30


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per point of the first experiment at one width and two rates: mean and interval over seeds."""
    import pandas as pd

    table = frames["training"]
    if table.empty:
        return table
    table = _shown(table)
    rates = selection.order(table["learning_rate"])
    table = table[table["step"].isin(_steps_shown(table["step"]))]
    rows = []
    for rate in rates:
        for (rule, step), cells in table[table["learning_rate"] == rate].groupby(["scaling", "step"], sort=False):
            for measure in _MEASURES:
                rows.append(
                    dict(d_k=cells["d_k"].iloc[0], learning_rate=rate, scaling=rule, step=step, measure=measure)
                    | _mean(cells[measure].dropna().to_numpy(dtype=float), measure in _LINEAR)
                    | dict(n_diverged=int(cells["diverged"].sum()))
                )
    return pd.DataFrame([row for row in rows if row["n_seeds"]])


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """Return the runs that are shown: of the first experiment at one width and two rates, the better one first."""
    import pandas as pd

    table = table[table["experiment"] == table["experiment"].iloc[0]]
    table = table[table["d_k"] == nearest(table["d_k"], _WANTED)]
    return pd.concat([table[table["learning_rate"] == rate] for rate in _rates(table)])


def _steps_shown(steps: pd.Series) -> list[int]:
    """Return every other logged step from the end, and the first."""
    steps = sorted(set(steps))
    return [*steps[:1], *steps[:0:-2]]


def _rates(table: pd.DataFrame) -> list[float]:
    """Return the best rate of the scaled rule, or of the first, and the highest that is at most ten times as large.

    Of the rates that all rules were trained at, if there are any.
    """
    import numpy as np

    rules = selection.order(table["scaling"])
    rule = _SCALED if _SCALED in rules else rules[0]
    by_rule = [set(cells["learning_rate"]) for _, cells in table.groupby("scaling")]
    shared = set.intersection(*by_rule) or set.union(*by_rule)
    table = table[table["learning_rate"].isin(shared)]
    last = table[(table["scaling"] == rule) & (table["step"] == table["step"].max())]
    loss = np.log(last["loss"].fillna(np.inf).clip(lower=_SMALLEST)).groupby(last["learning_rate"]).mean()
    best = float(loss.idxmin())
    higher = [rate for rate in sorted(set(table["learning_rate"])) if best < rate <= _HIGHER * best * 1.01]
    return [best, *higher[-1:]]


def _mean(values: Any, linear: bool) -> dict[str, Any]:
    """Return the mean over seeds with its interval by Student's t, geometric unless the measure may be 0."""
    import numpy as np

    from sqrtdk.statistics.means import geometric_interval, mean_interval

    n = len(values)
    if not n:
        return dict(mean=np.nan, low=np.nan, high=np.nan, n_seeds=0)
    x = np.asarray(values, dtype=float)
    ends = mean_interval(x) if linear else geometric_interval(np.maximum(x, _SMALLEST))
    return dict(zip(("mean", "low", "high"), ends, strict=True)) | dict(n_seeds=n)


@saving.styled(data, "No model was trained.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a row for each measure and a column for each rate."""
    looks, rates = training_words.looks(table["scaling"]), selection.order(table["learning_rate"])
    figure = panels.figure(1.0 + 1.45 * len(_MEASURES) + 0.24 * -(-len(looks) // 3))
    grid = figure.subplots(len(_MEASURES), len(rates), sharex=True, sharey="row", squeeze=False)
    for line, (measure, label) in zip(grid, _MEASURES.items(), strict=True):
        for axes, rate in zip(line, rates, strict=True):
            if measure not in _LINEAR:
                panels.log_heights(axes, most=5)
            cells = table[(table["measure"] == measure) & (table["learning_rate"] == rate)]
            for rule, look in looks.items():
                part = cells[cells["scaling"] == rule].sort_values("step")
                step, mean, low, high = (part[name] for name in ("step", "mean", "low", "high"))
                panels.points(axes, step, mean, low, high, look, line=True, size=3)
            _steps(axes, table["step"])
            if measure == "entropy":
                axes.set_ylim(bottom=0)
        line[0].set_ylabel(label)
    for axes, rate in zip(grid[0], rates, strict=True):
        axes.set_title(f"learning rate {training_words.rate(rate)}")
    for axes in grid[-1]:
        axes.set_xlabel("step")
    figure.legend(
        handles=[panels.key(look) for look in looks.values()], loc="outside upper center", ncols=min(3, len(looks))
    )
    return figure


def _steps(axes: Axes, steps: pd.Series) -> None:
    axes.set_xscale("symlog", linthresh=1, linscale=0.3)
    last = max(max(steps), 1)
    axes.set_xlim(-0.3, last * 1.3)
    axes.set_xticks([tick for tick in (0, 1, 10, 100, 1000, 10_000) if tick <= last])
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    rates = selection.order(table["learning_rate"])
    return Description(
        _caption(frames, table, rates), _alt(table, rates), _reading(table, rates), (Sentence("caveat"),)
    )


def _caption(frames: Mapping[str, pd.DataFrame], table: pd.DataFrame, rates: list[float]) -> tuple[Sentence, ...]:
    shown = _shown(frames["training"])
    lost = int(shown.loc[shown["step"] == shown["step"].max(), "diverged"].sum())
    values = {
        "experiment": training_words.experiment(frames["training"]),
        "d_k": str(table["d_k"].iloc[0]),
        "rates": Sentence(f"rates.{'two' if len(rates) > 1 else 'one'}"),
        "seeds": speaking.span(table.loc[table["n_seeds"] > 0, "n_seeds"]),
    }
    diverged = Sentence(f"caption.diverged.{'some' if lost else 'none'}", {"count": str(lost)})
    return Sentence("caption.all", values), diverged


def _ends(table: pd.DataFrame, measure: str, rule: str, rate: float) -> selection.Ends | None:
    rows = table[(table["measure"] == measure) & (table["scaling"] == rule) & (table["learning_rate"] == rate)]
    rows = rows[rows["n_seeds"] > 0].sort_values("step")
    return (rows.iloc[0], rows.iloc[-1]) if len(rows) else None


def _move(ends: selection.Ends) -> object:
    spelled = [numbers.significant(row["mean"], 2) for row in ends]
    return speaking.ends(spelled if ends[0]["step"] != ends[1]["step"] else spelled[:1])


def _alt(table: pd.DataFrame, rates: list[float]) -> tuple[Sentence, ...]:
    parts = []
    for rate in rates:
        for measure in _MEASURES:
            moves = {rule: _ends(table, measure, rule, rate) for rule in selection.order(table["scaling"])}
            moved = tuple(
                Sentence("alt.rule", {"move": _move(ends), "rule": training_words.words(rule)})
                for rule, ends in moves.items()
                if ends
            )
            values = {"measure": Sentence(f"measures.{measure}"), "rate": training_words.rate(rate)}
            parts.append(Sentence("alt.measure", values | {"moves": Listing(moved)}))
    values = {"last": str(table["step"].max()), "parts": Listing(tuple(parts), "semicolon")}
    return (Sentence("alt.all", values),)


def _reading(table: pd.DataFrame, rates: list[float]) -> tuple[Sentence, ...]:
    rules = selection.order(table["scaling"])
    if "none" not in rules or _SCALED not in rules:
        return (Sentence("reading.nothing"),)
    sentences = [*_start(table, rates[0])]
    for rate in rates:
        plain, scaled = (_ends(table, "logit_std", rule, rate) for rule in ("none", _SCALED))
        if plain and scaled:
            grown = [ends[1]["mean"] / ends[0]["mean"] if ends[0]["mean"] > 0 else 1.0 for ends in (plain, scaled)]
            values = {
                "rate": training_words.rate(rate),
                "plain": numbers.significant(plain[1]["mean"], 2),
                "scaled": numbers.significant(scaled[1]["mean"], 2),
                "plain_times": numbers.significant(grown[0], 2),
                "scaled_times": numbers.significant(grown[1], 2),
            }
            sentences.append(Sentence("reading.spread", values))
    return tuple(sentences)


def _start(table: pd.DataFrame, rate: float) -> tuple[Sentence, ...]:
    """Say how the gradients compare before the first step."""
    plain, scaled = (_ends(table, "grad_norm_qk", rule, rate) for rule in ("none", _SCALED))
    if not plain or not scaled:
        return ()
    unscaled, usual = plain[0], scaled[0]
    values = {"plain": numbers.significant(unscaled["mean"], 2), "scaled": numbers.significant(usual["mean"], 2)}
    larger, smaller = unscaled["low"] > usual["high"], unscaled["high"] < usual["low"]
    return (Sentence(f"reading.start.{'larger' if larger else 'smaller' if smaller else 'level'}", values),)
