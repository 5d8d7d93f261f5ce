"""Figure: how fast training gets there, when the start or the rate of the query and key weights follows the scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqrtdk.figures import layout, panels, saving, speaking, style, training_words
from sqrtdk.figures.catalogue import Description
from sqrtdk.figures.targets import LARGE
from sqrtdk.results.grid import nearest
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "article/training"
INPUTS = ("start_rate",)

_WANTED = 64
_PLAIN = "none"
_HALVES = {
    (False, False): ("neither", "unchanged"),
    (False, True): ("rate", "smaller rate"),
    (True, False): ("start", "smaller start"),
    (True, True): ("both", "both"),
}
"""Whether the start, and whether the rate, of W_q and W_k follows the scale: key and words in the figure."""


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per rule and way of training: steps to the target, of one experiment at one width."""
    table = frames["start_rate"]
    table = table[(table["measure"] == "speed") & (table["estimate"] > 0)]
    if table.empty:
        return table
    table = table[table["experiment"] == table["experiment"].iloc[0]]
    table = table[table["d_k"] == nearest(table["d_k"], _WANTED)]
    columns = ["experiment", "task", "optimiser", "d_k", "scaling", "start", "rate", "learning_rate", "n_seeds"]
    return table[[*columns, "estimate", "low", "high"]].reset_index(drop=True)


@saving.styled(data, "No halves of the scale were trained.", LARGE)
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a row for each way of training and a dot for each rule, on a log axis of steps."""
    from sqrtdk.training.tasks import TASKS

    figure, (axes,) = layout.stack([112], left=96, right=14, top=46, bottom=46)
    axes.set_xscale("log")
    looks = training_words.looks(style.scalings(table["scaling"]))
    for order, (rule, look) in enumerate(looks.items()):
        rows = table[table["scaling"] == rule]
        places = [place + 0.1 * (2 * order - len(looks) + 1) for place in _places(rows)]
        axes.hlines(
            places, rows["low"].clip(lower=1), rows["high"], color=look.colour, linewidth=1.3, label="_intervals"
        )
        dots = {"marker": look.marker, "markersize": 6, "linestyle": "none", "label": panels.POINTS}
        axes.plot(rows["estimate"], places, color=look.colour, **dots)
    axes.set_yticks(range(len(_HALVES)), [words for _, words in _HALVES.values()])
    axes.set_ylim(len(_HALVES) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    _steps(axes, table)
    axes.set_xlabel(f"steps to a loss of {TASKS[table['task'].iloc[0]].target:g}")
    same = table[(table["scaling"] == _PLAIN) & table["start"] & table["rate"]]
    for row in same.itertuples() if len(looks) > 1 else ():
        layout.says(axes, row.high, 3, "= scaled, unchanged", looks[_PLAIN].colour, 6, 0)
    handles = [panels.key(look, line=False) for look in looks.values()]
    figure.legend(handles=handles, loc="upper left", ncols=len(looks), handlelength=1, columnspacing=1)
    axes.set_title(panels.short(f"{training_words.label(table)}, dₖ = {table['d_k'].iloc[0]}: W_q and W_k", 44))
    return figure


def _places(rows: pd.DataFrame) -> list[int]:
    return [list(_HALVES).index(half) for half in zip(rows["start"], rows["rate"], strict=True)]


def _steps(axes: Axes, table: pd.DataFrame) -> None:
    low, high = table["low"].clip(lower=1).min() / 1.3, table["high"].max() * 1.3
    axes.set_xlim(low, high)
    axes.set_xticks([tick for tick in (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000) if low <= tick <= high])
    axes.xaxis.set_major_formatter(panels.tick_text)
    axes.minorticks_off()


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    values = {"experiment": training_words.experiment(table), "d_k": numbers.count(table["d_k"].iloc[0])}
    caption = Sentence("caption", values | {"seeds": speaking.span(table["n_seeds"])})
    parts = tuple(
        Sentence(
            "alt.row",
            {
                "rule": training_words.words(row.scaling),
                "half": Sentence(f"halves.{_HALVES[row.start, row.rate][0]}"),
                "steps": numbers.significant(row.estimate, 2),
            },
        )
        for row in table.itertuples()
    )
    alt = Sentence("alt.all", values | {"parts": Listing(parts, "semicolon")})
    return Description((caption,), (alt,), (Sentence("reading"),), (Sentence("caveat"),), _title(table))


def _title(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say which half of the scale brings training without it nearer to training with it."""
    found = halves(table)
    if len(found) < len(_HALVES):
        return (Sentence("title"),)
    start, rate = found["start"], found["rate"]
    kind = "start" if start["high"] < rate["low"] else "rate" if rate["high"] < start["low"] else "level"
    steps = {name: numbers.significant(row["estimate"], 2) for name, row in found.items()}
    return (Sentence(f"finding.{kind}", steps),)


def halves(table: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the rows of training without the scale by what follows it: `neither`, `start`, `rate` or `both`."""
    rows = table[table["scaling"] == _PLAIN].to_dict("records")
    return {_HALVES[row["start"], row["rate"]][0]: row for row in rows}
