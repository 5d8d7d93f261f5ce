"""Figure: the exponent of the power law of the variance, for each ensemble, against the exact one."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqrtdk.figures import panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.figures.style import Look
from sqrtdk.statistics import intervals
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Phrase, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "atlas/scores"
INPUTS = ("variance_laws", "spread_laws")

_FEW = 9


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per ensemble, the largest exponent first: see `_all`."""
    table = _all(frames)
    return table if table.empty else table.sort_values("estimate", ascending=False, kind="stable", ignore_index=True)


def _all(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per ensemble: exponent, intervals, the exact exponent, and the difference of the two.

    `ci_*` are 95 % intervals; `all_*` are Šidák's simultaneous ones, which hold for all ensembles at once in 95 % of
    runs. `range_exponent` is the exponent of the interquartile range at large d_k, of the tail law if it has one.
    """
    laws = frames["variance_laws"]
    if laws.empty:
        return laws
    rows = laws[(laws["law"] == "power") & (laws["parameter"] == "exponent")].reset_index(drop=True)
    columns = ["ensemble", "estimate", "se", "ci_low", "ci_high", "exact", "estimable", "reason", "d_k_min", "n_points"]
    table = rows[columns].copy()
    table["estimable"] = table["estimable"] & table["estimate"].notna()
    level = intervals.LEVEL ** (1 / max(int(table["estimable"].sum()), 1))
    half = intervals.t_quantile(rows["ci_dof"].astype(float).fillna(float("inf")), level) * table["se"]
    table["all_low"], table["all_high"] = table["estimate"] - half, table["estimate"] + half
    for column in ("estimate", "ci_low", "ci_high", "all_low", "all_high"):
        table[f"{column}_minus_exact"] = (table[column] - table["exact"]).where(table["estimable"])
    return table.merge(_ranges(frames["spread_laws"]), on="ensemble", how="left", validate="one_to_one")


def _ranges(laws: pd.DataFrame) -> pd.DataFrame:
    """Return the exponent of the interquartile range of each ensemble, of large d_k where that can be estimated."""
    names = {"estimate": "range_exponent", "se": "range_exponent_se", "d_k_min": "range_d_k_min"}
    if laws.empty:
        return laws.reindex(columns=["ensemble", *names.values()])
    rows = laws[(laws["parameter"] == "exponent") & laws["estimable"]]
    rows = rows.sort_values("law", key=lambda law: law.map({"power_tail": 0, "power": 1}), kind="stable")
    return rows.drop_duplicates("ensemble")[["ensemble", *names]].rename(columns=names)


@saving.styled(data, "No power law was fitted to any ensemble.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a forest plot: the exponents, their distance from the exact ones, and both as numbers."""
    looks = style.ensembles(list(table["ensemble"]))
    figure = panels.figure(1.2 + (0.27 if len(table) <= _FEW else 0.21) * len(table))
    left, right = figure.subplots(1, 2, sharey=True)
    for place, row in enumerate(table.itertuples()):
        look = looks[row.ensemble]
        if row.estimable:
            bars = (row.ci_low, row.ci_high, row.all_low, row.all_high)
            _draw_row(left, place, look, row.estimate, bars, row.exact)
            bars = (
                row.ci_low_minus_exact,
                row.ci_high_minus_exact,
                row.all_low_minus_exact,
                row.all_high_minus_exact,
            )
            _draw_row(right, place, look, row.estimate_minus_exact, bars, None)
        else:
            _refuse(left, place, row)
    _draw_references(left, 1.0, table)
    _draw_references(right, 0.0, table)
    right.spines["left"].set_visible(False)  # words run on into the other panel
    left.set_yticks(range(len(table)), [panels.short(look.label) for look in looks.values()])
    left.set_ylim(len(table) - 0.5, -0.5)
    left.set_xlabel("exponent of dₖ")
    right.set_xlabel("estimate − exact")
    for axes in (left, right):
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_formatter(panels.tick_text)
    _number_column(right, table)
    _limits(left, right, table)
    return figure


def _refuse(axes: Axes, place: int, row: Any) -> None:
    """Say in the row why there is no exponent."""
    words = "not estimable"
    if row.reason == row.reason:
        # The cause; its consequence stands in the words beside the figure.
        cause = row.reason.split(", so")[0].removeprefix("the components have ")
        words = "\n".join(textwrap.wrap(f"{words}: {cause}", 40)[:2])
    text = axes.text(0.02, place, words, transform=axes.get_yaxis_transform(), va="center", fontsize=7.5)
    text.set(linespacing=0.95, in_layout=False)


def _draw_references(axes: Axes, height: float, table: pd.DataFrame) -> None:
    """Draw a vertical line of reference, broken where a row holds words."""
    rows = [place for place, estimable in enumerate(table["estimable"]) if estimable]
    x, y = [], []
    for place in rows:
        x += [height, height, float("nan")]
        y += [place - 0.5, place + 0.5, float("nan")]
    axes.plot(x, y, color=style.INK, linewidth=0.8, alpha=style.MUTED, zorder=1, label="_reference")


def _draw_row(
    axes: Axes, place: int, look: Look, estimate: float, bars: tuple[float, ...], exact: float | None
) -> None:
    low, high, all_low, all_high = bars
    for ends, width in (((all_low, all_high), 0.9), ((low, high), 2.4)):
        axes.plot(ends, [place, place], color=look.colour, linewidth=width, solid_capstyle="butt", label="_intervals")
    if exact is not None and exact == exact:
        axes.plot(
            [exact],
            [place],
            color=style.INK,
            marker="|",
            markersize=13,
            markeredgewidth=1.2,
            linestyle="none",
            label="_theory",
        )
    axes.plot(
        [estimate], [place], color=look.colour, marker=look.marker, markersize=4, linestyle="none", label=panels.POINTS
    )


def _number_column(axes: Axes, table: pd.DataFrame) -> None:
    """Write each exponent with its standard error at the right edge, or that of the interquartile range."""
    twin = axes.secondary_yaxis("right")
    words = [
        numbers.with_error(row.estimate, row.se)
        if row.estimable
        else f"IQR {numbers.with_error(row.range_exponent, row.range_exponent_se)}"
        if row.range_exponent == row.range_exponent
        else "–"
        for row in table.itertuples()
    ]
    twin.set_yticks(range(len(table)), words)
    twin.tick_params(axis="y", length=0)
    twin.spines["right"].set_visible(False)


def _limits(left: Axes, right: Axes, table: pd.DataFrame) -> None:
    from matplotlib.ticker import MaxNLocator

    shown = selection.finite(table.loc[table["estimable"], ["estimate", "all_low", "all_high", "exact"]])
    low, high = min(shown.min(initial=1.0), 1.0), max(shown.max(initial=1.0), 1.0)
    room = max(0.1 * (high - low), 0.01)
    left.set_xlim(low - room, high + room)
    apart = table[["all_low_minus_exact", "all_high_minus_exact"]].abs().max().max()
    reach = 1.15 * apart if apart > 0 else 0.01
    right.set_xlim(-reach, reach)
    left.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    right.xaxis.set_major_locator(MaxNLocator(3, symmetric=True))


@speaking.described(_all)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    fitted = table[table["estimable"]]
    reading = (*_linear(fitted), *_exact(fitted), *_refused(table))
    return Description(_caption(fitted), _alt(table), reading, (Sentence("caveat"),))


def _caption(fitted: pd.DataFrame) -> tuple[Sentence, ...]:
    all_of_it = Sentence("caption.all", {"n": numbers.count(len(fitted))})
    if fitted.empty:
        return (all_of_it,)
    fits = {"points": speaking.span(fitted["n_points"]), "d_k": numbers.count(fitted["d_k_min"].min())}
    return all_of_it, Sentence("caption.fits", fits)


def _values(row: Any) -> dict[str, str]:
    return {"label": style.ensemble_label(row.ensemble), "value": numbers.with_error(row.estimate, row.se)}


def _farthest(rows: pd.DataFrame, distance: pd.Series) -> Listing:
    """Return ensembles with their exponents, by falling distance."""
    rows = rows.loc[distance[rows.index].abs().sort_values(ascending=False, kind="stable").index]
    return speaking.few(Sentence("estimate", _values(row)) for row in rows.itertuples())


def _alt(table: pd.DataFrame) -> tuple[Sentence, ...]:
    parts = []
    for row in table.itertuples():
        if row.estimable and row.exact == row.exact:
            parts.append(Sentence("alt.exact", _values(row) | {"exact": numbers.significant(row.exact, 5)}))
        elif row.estimable:
            parts.append(Sentence("estimate", _values(row)))
        else:
            values = {"label": style.ensemble_label(row.ensemble)} | _range(row)
            parts.append(Sentence(f"alt.{'ranged' if 'range' in values else 'refused'}", values))
    return (Sentence("alt.all", {"parts": Listing(tuple(parts), "semicolon")}),)


def _linear(fitted: pd.DataFrame) -> Iterator[Sentence]:
    """Say whose interval holds the exponent 1, and whose does not."""
    if fitted.empty:
        yield Sentence("reading.none")
        return
    holds = selection.covers(fitted["ci_low"], fitted["ci_high"], 1.0)
    if holds.any():
        yield Sentence("reading.one.holds", {"names": speaking.few(selection.labels(fitted["ensemble"][holds]))})
    if not holds.all():
        parts = _farthest(fitted[~holds], fitted["estimate"] - 1)
        yield Sentence(f"reading.one.{'rest' if holds.any() else 'nowhere'}", {"parts": parts})


def _exact(fitted: pd.DataFrame) -> Iterator[Sentence]:
    """Say whose intervals hold the exact exponent."""
    fitted = fitted[fitted["exact"].notna()]
    inside = selection.covers(fitted["ci_low"], fitted["ci_high"], fitted["exact"])
    yield speaking.coverage(int(inside.sum()), len(fitted), Sentence("quantity"), "shared.fits")
    if not inside.all():
        z = (fitted["estimate"] - fitted["exact"]) / fitted["se"]
        yield Sentence("reading.outside", {"parts": _farthest(fitted[~inside], z)})
        beyond = fitted[~selection.covers(fitted["all_low"], fitted["all_high"], fitted["exact"])]
        if len(beyond):
            yield Sentence("reading.beyond", {"parts": _farthest(beyond, z)})
        else:
            yield Sentence("reading.simultaneous")


def _range(row: Any) -> dict[str, Sentence]:
    """Say the exponent of the interquartile range, where there is one."""
    if row.range_exponent != row.range_exponent:
        return {}
    spelled = numbers.with_error(row.range_exponent, row.range_exponent_se)
    return {"range": Sentence("range", {"value": spelled, "d_k": numbers.count(row.range_d_k_min)})}


def _refused(table: pd.DataFrame) -> Iterator[Sentence]:
    parts = []
    for row in table[~table["estimable"]].itertuples():
        label, reason = style.ensemble_label(row.ensemble), [Phrase(row.reason)] if row.reason == row.reason else []
        details = Listing((*reason, *_range(row).values()), "semicolon")
        parts.append(Sentence("reading.details", {"label": label, "details": details}) if details.items else label)
    if parts:
        yield Sentence("reading.refused", {"parts": Listing(tuple(parts))})
