"""Figure: how the size of a row's gradient is distributed over rows, and who holds the energy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqrtdk.figures import layout, panels, saving, selection, speaking, style
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

PLACE = "article/gradients"
INPUTS = ("gradient_distribution", "gradient_magnitude")

_MEASURE = "grad_logits"
_WANTED_D_K, _WANTED_N_KEYS = (64, 512), (64,)
_UNSCALED, _SCALED = "none", "1/sqrt(d_k)"
_LOWEST = 1e-9
"""Norms below are left of the panel."""
_VANISHED = "below_1e-3"
_TENTH = 0.1
"""What the top tenth of the queries holds where all have the same gradient."""


def _shown(values: pd.Series, wanted: tuple[int, ...]) -> list[int]:
    return sorted({nearest(values, value) for value in wanted})


def _cells(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the statistics of the ensemble in front at the widths and numbers of keys that are shown."""
    table = frames["gradient_distribution"]
    if table.empty:
        return table
    table = table[table["ensemble"] == selection.front(table)]
    table = table[table["d_k"].isin(_shown(table["d_k"], _WANTED_D_K))]
    return table[table["n_keys"].isin(_shown(table["n_keys"], _WANTED_N_KEYS))].reset_index(drop=True)


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per quantile with its 95 % interval; beside it the root mean square and the top tenth's share."""
    table = _cells(frames)
    if table.empty:
        return table
    style.scalings(table["scaling"])
    table = table[table["measure"] == _MEASURE]
    top = table[table["statistic"] == "top_tenth_energy"].rename(
        columns={"estimate": "top_tenth", "se": "top_tenth_se"}
    )
    table = table[table["statistic"].str.startswith("quantile_")]
    share = table["statistic"].str.removeprefix("quantile_").astype(float)
    table = table.assign(share_of_rows=share).rename(columns={"estimate": "norm"}).drop(columns=["statistic", "se"])
    rms = frames["gradient_magnitude"][["ensemble", "d_k", "n_keys", "scaling", "measure", "estimate", "se"]]
    rms = rms.rename(columns={"estimate": "rms", "se": "rms_se"})
    keys = ["ensemble", "d_k", "n_keys", "scaling", "measure"]
    table = table.merge(rms, on=keys, how="left", validate="many_to_one")
    top = top[[*keys, "top_tenth", "top_tenth_se"]]
    return table.merge(top, on=keys, how="left", validate="many_to_one").reset_index(drop=True)


@saving.styled(data, "No gradient was simulated.", LARGE)
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw, for each width and rule, how much the top tenth of the queries holds, and below how large gradients are."""
    widths, rules = sorted(set(table["d_k"])), style.scalings(table["scaling"])
    step = len(rules) + 1
    heights = {(d_k, rule): -step * i - j for i, d_k in enumerate(widths) for j, rule in enumerate(rules)}
    tall = 19 * len(widths) * step
    figure, (shares, sizes) = layout.stack([tall, tall], left=72, right=92, top=26, bottom=28, gap=48)
    for (d_k, rule), height in heights.items():
        part, look = table[(table["d_k"] == d_k) & (table["scaling"] == rule)], style.scaling(rule)
        if len(part):
            _share_of_top(shares, part.iloc[0], height, look)
            _sizes(sizes, part.set_index("share_of_rows")["norm"], height, look)
    for axes in (shares, sizes):
        centres = [-step * i - (len(rules) - 1) / 2 for i in range(len(widths))]
        axes.set_yticks(centres, [f"dₖ = {d_k}" for d_k in widths])
        axes.set_ylim(1 - step * len(widths), 1)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
        for rule in rules:
            look = style.scaling(rule)
            layout.says(
                axes, 1, heights[widths[0], rule], look.label, look.colour, 6, xycoords=axes.get_yaxis_transform()
            )
    shares.set_xlim(0, 1)
    shares.set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    shares.axvline(_TENTH, color=style.INK, linewidth=0.9, label="_alike")
    layout.says(shares, _TENTH, -len(rules), "10 %: if all were alike", style.INK, 5)
    shares.set_title("squared gradient held by the top tenth")
    _limits(sizes, table)
    sizes.set_title("gradient of one query’s logits, middle 80 %")
    return figure


def _share_of_top(axes: Axes, row: pd.Series, height: float, look: Look) -> None:
    """Draw the share of the top tenth as a bar; 10 % would be alike for all queries."""
    if row["top_tenth"] == row["top_tenth"]:
        axes.barh(height, row["top_tenth"], 0.72, color=look.colour, label="_bar")
        layout.says(axes, row["top_tenth"], height, numbers.percent(row["top_tenth"], 0), look.colour, 5)


def _sizes(axes: Axes, norms: pd.Series, height: float, look: Look) -> None:
    """Draw the median of the queries and the middle 80 % of them; what is 0 or below the panel starts at its edge."""
    low, middle, high = (max(float(norms.get(share, math.nan)), _LOWEST / 10) for share in (0.1, 0.5, 0.9))
    axes.plot([low, high], [height] * 2, color=look.colour, linewidth=2.4, solid_capstyle="butt", label="_middle")
    axes.plot([middle], [height], color=look.colour, marker=look.marker, markersize=6, label=panels.POINTS)


def _limits(axes: Axes, table: pd.DataFrame) -> None:
    seen = selection.finite(table.loc[table["share_of_rows"].isin([0.1, 0.5, 0.9]), ["norm"]])
    seen = seen[seen > 0]
    axes.set_xscale("log")
    low = max(seen.min(initial=1) / 2, _LOWEST)
    axes.set_xlim(low, max(seen.max(initial=low), low) * 3)
    low, high = axes.get_xlim()
    powers = range(-9, 6, 3) if high / low > 1e5 else range(-9, 6)
    axes.set_xticks([10.0**power for power in powers if low <= 10.0**power <= high])
    axes.xaxis.set_major_formatter(panels.tick_text)
    axes.minorticks_off()


def _statistic(
    statistics: pd.DataFrame, rule: str, n: int, d_k: int, name: str, measure: str = _MEASURE
) -> pd.Series | None:
    rows = statistics[
        (statistics["measure"] == measure)
        & (statistics["scaling"] == rule)
        & (statistics["n_keys"] == n)
        & (statistics["d_k"] == d_k)
        & (statistics["statistic"] == name)
    ]
    return rows.iloc[0] if len(rows) else None


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    statistics = _cells(frames)
    values = {"ensemble": style.ensemble_label(table["ensemble"].iloc[0]), "rows": speaking.span(table["n_rows"])}
    reading = _reading(table, statistics)
    caption, caveat, title = Sentence("caption", values), Sentence("caveat"), _title(table, statistics)
    return Description((caption,), _alt(table, statistics), reading, (caveat,), title)


def _title(table: pd.DataFrame, statistics: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say which share of the squared gradients a tenth of the queries holds, without a scale and with it."""
    d_k, n = min(table["d_k"]), max(table["n_keys"])
    plain, scaled = (_statistic(statistics, rule, n, d_k, "top_tenth_energy") for rule in (_UNSCALED, _SCALED))
    if plain is None or scaled is None or not abs(plain["estimate"] - scaled["estimate"]) >= 0:
        return (Sentence("title"),)
    apart = abs(plain["estimate"] - scaled["estimate"]) > selection.noise(plain["se"], scaled["se"])
    kind = "same" if not apart else "gathers" if plain["estimate"] > scaled["estimate"] else "spreads"
    spelled = numbers.apart([plain["estimate"], scaled["estimate"]], numbers.share)
    shares = dict(zip(("plain", "scaled"), spelled, strict=True))
    return (Sentence(f"finding.{kind}", shares | {"d_k": numbers.count(d_k), "n": numbers.count(n)}),)


def _below(row: pd.Series) -> object:
    """Spell a share of rows below a threshold, or its bound where no row, or every row, is."""
    if row["estimate"] == 0:
        return Sentence("below.less", {"bound": f"{numbers.significant(100 * row['high'], 2)} %"})
    if row["estimate"] == 1:
        return Sentence("below.more", {"bound": numbers.percent(row["low"])})
    return _share(row)


def _share(row: pd.Series) -> str:
    if row["se"] == row["se"]:
        return f"{numbers.with_error(100 * row['estimate'], 100 * row['se'])} %"
    return numbers.percent(row["estimate"])


def _energy(row: pd.Series) -> object:
    return _share(row) if row["estimate"] == row["estimate"] else Sentence("no_energy")


def _places(table: pd.DataFrame) -> list[tuple[int, int, dict[str, Any]]]:
    """Return number of keys and width of each panel, and both as values of a sentence."""
    places = ((n, d_k) for n in sorted(set(table["n_keys"])) for d_k in sorted(set(table["d_k"])))
    return [(n, d_k, {"n": numbers.count(n), "d_k": numbers.count(d_k)}) for n, d_k in places]


def _alt(table: pd.DataFrame, statistics: pd.DataFrame) -> tuple[Sentence, ...]:
    every = style.scalings(table["scaling"])
    rules, parts = [rule for rule in every if rule in (_UNSCALED, _SCALED)] or every, []
    for n, d_k, place in _places(table):
        for rule in rules:
            below = _statistic(statistics, rule, n, d_k, _VANISHED)
            cell = table[(table["n_keys"] == n) & (table["d_k"] == d_k) & (table["scaling"] == rule)]
            if below is not None and len(cell):
                median = cell.loc[(cell["share_of_rows"] - 0.5).abs().idxmin(), "norm"]
                sizes = {"median": numbers.significant(median, 2), "rms": numbers.significant(cell["rms"].iloc[0], 2)}
                values = place | sizes | {"rule": speaking.rule(rule), "below": _below(below)}
                parts.append(Sentence("alt.rule", values))
    return (Sentence("alt.all", {"parts": Listing(tuple(parts), "semicolon")}),)


def _reading(table: pd.DataFrame, statistics: pd.DataFrame) -> tuple[Sentence, ...]:
    if not {_UNSCALED, _SCALED} <= set(table["scaling"]):
        return (Sentence("reading.alone"),)
    parts = []
    for n, d_k, place in _places(table):
        below, energy = (
            [_statistic(statistics, rule, n, d_k, name) for rule in (_UNSCALED, _SCALED)]
            for name in (_VANISHED, "top_tenth_energy")
        )
        if all(row is not None for row in (*below, *energy)):
            values = {"below": _below(below[0]), "scaled_below": _below(below[1])}
            values |= {"energy": _energy(energy[0]), "scaled_energy": _energy(energy[1])}
            parts.append(Sentence("reading.place", place | values))
    lead = (Sentence("reading.all", {"parts": Listing(tuple(parts), "semicolon")}),) if parts else ()
    d_k, n = max(table["d_k"]), max(table["n_keys"])
    rows = (_statistic(statistics, rule, n, d_k, "top_tenth_energy") for rule in (_UNSCALED, _SCALED))
    return *lead, *_verdict(*rows), *_query(statistics)


def _verdict(plain: pd.Series | None, scaled: pd.Series | None) -> tuple[Sentence, ...]:
    """Say whether the unscaled rows hold their gradient more unevenly, at the largest width and number of keys."""
    if plain is None or scaled is None or not abs(plain["estimate"] - scaled["estimate"]) >= 0:
        return ()
    if abs(plain["estimate"] - scaled["estimate"]) <= selection.noise(plain["se"], scaled["se"]):
        verdict = "alike"
    elif plain["estimate"] < scaled["estimate"]:
        verdict = "more_even"
    else:
        verdict = "few" if plain["estimate"] > 0.5 else "less_even"
    return (Sentence(f"reading.verdict.{verdict}"),)


def _query(statistics: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say the same of the gradient that reaches the query, at the widest and longest."""
    n, d_k = max(statistics["n_keys"]), max(statistics["d_k"])
    below = [_statistic(statistics, rule, n, d_k, _VANISHED, "grad_query") for rule in (_UNSCALED, _SCALED)]
    if any(row is None for row in below):
        return ()
    values = {"n": numbers.count(n), "d_k": numbers.count(d_k), "plain": _below(below[0]), "scaled": _below(below[1])}
    return (Sentence("reading.query", values),)
