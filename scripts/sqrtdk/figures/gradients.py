"""Figure: the size of the gradient that attention passes back, as root mean square and as median."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from sqrtdk.figures import panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.figures.style import Look
from sqrtdk.results.grid import nearest
from sqrtdk.statistics import intervals
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NUMBER = 10
INPUTS = ("gradient_magnitude", "gradient_crossovers", "gradient_decomposition")

_MEASURES = ("grad_logits", "grad_query")
_WORDS = {"grad_logits": "logits", "grad_query": "query"}
_COLUMNS = ("rms", "median")
_WANTED = 64
_UNSCALED, _SCALED = "none", "1/sqrt(d_k)"
_CROSS: dict[str, Any] = dict(marker="X", markersize=5.5, color=style.INK, markeredgecolor="white", markeredgewidth=0.6)


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per point of the ensemble in front: root mean square and median with 95 % intervals."""
    import numpy as np

    table = frames["gradient_magnitude"]
    if table.empty:
        return table
    table = table[(table["ensemble"] == selection.front(table)) & table["measure"].isin(_MEASURES)].reset_index(
        drop=True
    )
    style.scalings(table["scaling"])
    table = table.rename(columns={"estimate": "rms", "se": "rms_se"}).drop(
        columns=["trusted", "precise"], errors="ignore"
    )
    half = {name: intervals.half_width(table[f"{name}_se"], table["n_blocks"]) for name in _COLUMNS}
    table["rms_low"], table["rms_high"] = table["rms"] - half["rms"], table["rms"] + half["rms"]
    # Medians of rows that span decades err by a factor, and their error is that of the logarithm.
    factor = np.exp((half["median"] / table["median"].where(table["median"] > 0)).clip(upper=50))
    table["median_low"], table["median_high"] = table["median"] / factor, table["median"] * factor
    return table.assign(**_crossing_columns(frames, table))


def _crossing_columns(frames: Mapping[str, pd.DataFrame], table: pd.DataFrame) -> dict[str, Any]:
    """Return where the medians cross, with an interval, in the rows of the scaled rule of the panel that marks it."""
    crossings = _crossings(frames, table)
    keys = zip(table["measure"], table["n_keys"], table["scaling"], strict=True)
    rows = [crossings.get((measure, "median", n)) if rule == _SCALED else None for measure, n, rule in keys]
    names = {"d_k_star": "d_k_star", "d_k_star_low": "ci_low", "d_k_star_high": "ci_high"}
    return {name: [row[column] if _crosses(row) else float("nan") for row in rows] for name, column in names.items()}


@saving.styled(data, "No gradient was simulated.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a row for each number of keys and a column for logits and query: both magnitudes for each scale rule."""
    keys = sorted(selection.order(table["n_keys"]))
    measures = [measure for measure in _MEASURES if measure in set(table["measure"])]
    rules = style.scalings(table["scaling"])
    crossings = _crossings(frames, table)
    figure = panels.figure(1.0 + 1.6 * len(keys))
    grid = figure.subplots(len(keys), len(measures), sharex=True, sharey=True, squeeze=False)
    for row, n in enumerate(keys):
        for axes, measure in zip(grid[row], measures, strict=True):
            panels.log_heights(axes, most=6)
            cells = table[(table["n_keys"] == n) & (table["measure"] == measure)]
            for rule in rules:
                _draw_rule(axes, cells[cells["scaling"] == rule], style.scaling(rule))
            _draw_crossing(axes, crossings.get((measure, "median", n)), cells)
            panels.d_k_axis(axes, table["d_k"], "dₖ" if row == len(keys) - 1 else None, most=4)
            if row == 0:
                axes.set_title(f"gradient, {_WORDS[measure]}")
        grid[row][0].set_ylabel(f"size, n = {n}")
    _limits(grid[0][0], table)
    _legend(figure, rules, any(_crosses(row) for (_, quantity, _), row in crossings.items() if quantity == "median"))
    return figure


def _crossings(frames: Mapping[str, pd.DataFrame], table: pd.DataFrame) -> dict[tuple[str, str, int], dict[str, Any]]:
    """Return (measure, quantity, n_keys) -> row of the table of crossovers, for the ensemble that is shown."""
    rows = frames["gradient_crossovers"]
    if rows.empty:
        return {}
    rows = rows[rows["ensemble"] == table["ensemble"].iloc[0]].to_dict("records")
    return {(row["measure"], row["quantity"], row["n_keys"]): row for row in rows}


def _crosses(row: dict[str, Any] | None) -> TypeGuard[dict[str, Any]]:
    return row is not None and row["d_k_star"] == row["d_k_star"]


def _draw_crossing(axes: Axes, row: dict[str, Any] | None, cells: pd.DataFrame) -> None:
    """Mark where the unscaled median falls below the scaled one, at the height of the scaled."""
    import numpy as np

    scaled = cells[(cells["scaling"] == _SCALED) & (cells["median"] > 0)].sort_values("d_k")
    if not _crosses(row) or scaled.empty:
        return
    star = row["d_k_star"]
    height = float(np.exp(np.interp(np.log(star), np.log(scaled["d_k"]), np.log(scaled["median"]))))
    axes.plot([row["ci_low"], row["ci_high"]], [height] * 2, color=style.INK, linewidth=1.1, label="_intervals")
    axes.plot([star], [height], linestyle="none", label="_crossing", **_CROSS)
    text = f"dₖ* = {numbers.significant(star, 2)}"
    place = {"xytext": (-14, -32), "textcoords": "offset points", "ha": "center"}
    line = {"arrowstyle": "-", "linewidth": 0.6, "color": style.INK, "alpha": style.MUTED}
    axes.annotate(text, (star, height), **place, arrowprops=line, fontsize="x-small")


def _draw_rule(axes: Axes, part: pd.DataFrame, look: Look) -> None:
    dashed = style.Look(look.label, look.colour, look.marker, style.DOTTED)
    solid = style.Look(look.label, look.colour, look.marker, style.SOLID)
    panels.points(
        axes,
        part["d_k"],
        part["median"],
        part["median_low"],
        part["median_high"],
        dashed,
        hollow=True,
        line=True,
        size=3.6,
    )
    panels.points(axes, part["d_k"], part["rms"], part["rms_low"], part["rms_high"], solid, line=True, size=3.6)
    if part["theory"].notna().any():
        panels.theory(axes, part["d_k"], part["theory"], style.Look("", style.INK, "", style.DASHDOT), width=0.7)


def _limits(axes: Axes, table: pd.DataFrame) -> None:
    """Keep the panel to what has a size: zero medians are at the lower edge, not at minus infinity."""
    seen = selection.finite(table[["rms", "median"]])
    seen = seen[seen > 0]
    if len(seen):
        axes.set_ylim(max(seen.min(), 1e-12) / 2.5, seen.max() * 2.5)
        panels.log_ticks(axes)


def _legend(figure: Figure, rules: Sequence[str], crossing: bool) -> None:
    looks = [style.scaling(rule) for rule in rules]
    handles = [panels.key(look, linestyle="none") for look in looks]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(3, len(handles)))
    ink = style.Look("root mean square", style.INK, "o", style.SOLID)
    handles = [panels.key(ink), panels.key(ink, hollow=True, linestyle=style.DOTTED, label="median")]
    if crossing:
        handles.append(panels.key(ink, label="medians cross", **_CROSS | {"linestyle": "none"}))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def _at(table: pd.DataFrame, measure: str, rule: str, n: int, d_k: int) -> pd.Series | None:
    rows = table[
        (table["measure"] == measure) & (table["scaling"] == rule) & (table["n_keys"] == n) & (table["d_k"] == d_k)
    ]
    return rows.iloc[0] if len(rows) else None


def _pair(table: pd.DataFrame, measure: str, n: int, d_k: int, column: str) -> tuple[pd.Series, pd.Series] | None:
    """Return the rows of the unscaled and the 1/√d_k rule, or None where one has no size to compare."""
    plain, scaled = (_at(table, measure, rule, n, d_k) for rule in (_UNSCALED, _SCALED))
    if plain is None or scaled is None or not scaled[column] > 0 or not plain[column] >= 0:
        return None
    return plain, scaled


def _compared(pair: tuple[pd.Series, pd.Series], column: str) -> Sentence:
    """Say how many times larger or smaller than the scaled size the unscaled one is."""
    plain, scaled = pair
    values = {"plain": _size(plain, column), "scaled": _size(scaled, column)}
    order = _order(plain, scaled, column)
    if order == 0:
        return Sentence("compared.same", values)
    if plain[column] == 0:
        return Sentence("compared.zero", values)
    factor = numbers.significant((plain[column] / scaled[column]) ** order, 2)
    return Sentence(f"compared.{_ORDERS[order]}", values | {"factor": factor})


def _size(row: pd.Series, column: str) -> str:
    return numbers.with_error(row[column], row[f"{column}_se"])


def _order(plain: pd.Series, scaled: pd.Series, column: str) -> int:
    """Return 1, -1 or 0: larger, smaller, or the same within three standard errors."""
    difference = plain[column] - scaled[column]
    if abs(difference) <= selection.noise(plain[f"{column}_se"], scaled[f"{column}_se"]):
        return 0
    return 1 if difference > 0 else -1


_ORDERS = {1: "larger", 0: "same", -1: "smaller"}


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    return Description(_caption(table), _alt(table), _reading(frames, table), (Sentence("caveat"),))


def _caption(table: pd.DataFrame) -> tuple[Sentence, ...]:
    values = {"ensemble": style.ensemble_label(table["ensemble"].iloc[0]), "rows": speaking.span(table["n_rows"])}
    sentences, worst = [Sentence("caption.all", values)], (table["rms_se"] / table["rms"]).max()
    if table["theory"].notna().any():
        sentences.append(Sentence("caption.theory"))
    if worst == worst:
        sentences.append(Sentence("caption.worst", {"worst": numbers.percent(worst)}))
    return tuple(sentences)


def _alt(table: pd.DataFrame) -> tuple[Sentence, ...]:
    d_k, n, parts = int(table["d_k"].max()), int(table["n_keys"].max()), []
    for measure in _MEASURES:
        for rule in style.scalings(table["scaling"]):
            row = _at(table, measure, rule, n, d_k)
            if row is not None:
                names = {"measure": Sentence(f"shared.measures.{measure}"), "rule": speaking.rule(rule)}
                sizes = {column: _size(row, column) for column in _COLUMNS}
                parts.append(Sentence("alt.size", {**names, **sizes}))
    values = {"d_k": numbers.count(d_k), "n": numbers.count(n), "parts": Listing(tuple(parts), "semicolon")}
    return (Sentence("alt.all", values),)


def _reading(frames: Mapping[str, pd.DataFrame], table: pd.DataFrame) -> tuple[Sentence, ...]:
    if not {_UNSCALED, _SCALED} <= set(table["scaling"]):
        return (Sentence("reading.alone"),)
    d_k, n = nearest(table["d_k"], _WANTED), nearest(table["n_keys"], _WANTED)
    parts = []
    for measure in _MEASURES:
        pairs = ((column, _pair(table, measure, n, d_k, column)) for column in _COLUMNS)
        compared = {column: _compared(pair, column) for column, pair in pairs if pair}
        if len(compared) == len(_COLUMNS):
            parts.append(Sentence(f"reading.{measure}", compared))
    values = {"d_k": numbers.count(d_k), "n": numbers.count(n), "parts": Listing(tuple(parts), "semicolon")}
    lead = (Sentence("reading.all", values),) if parts else ()
    return *lead, *_parts(frames, table, n, d_k), *_stories(table, int(table["d_k"].max())), _falling(frames, table)


def _stories(table: pd.DataFrame, d_k: int) -> tuple[Sentence, ...]:
    """Say at which numbers of keys root mean square and median agree about the query, and at which they do not."""
    agreement: dict[tuple[int, ...], list[int]] = {}
    for n in sorted(selection.order(table["n_keys"])):
        pairs = ((column, _pair(table, "grad_query", n, d_k, column)) for column in _COLUMNS)
        signs = tuple(_order(*pair, column) for column, pair in pairs if pair)
        if len(signs) == len(_COLUMNS):
            agreement.setdefault(signs, []).append(n)
    stories = []
    for (rms, median), n_keys in agreement.items():
        orders = {name: Sentence(f"orders.{_ORDERS[sign]}") for name, sign in (("rms", rms), ("median", median))}
        kind = "both" if rms == median else "few" if rms > 0 > median else "apart"
        stories.append(Sentence(f"reading.story.{kind}", {**orders, "n_keys": speaking.counts(n_keys)}))
    values = {"d_k": numbers.count(d_k), "stories": Listing(tuple(stories), "semicolon")}
    return (Sentence("reading.stories", values),) if stories else ()


def _parts(frames: Mapping[str, pd.DataFrame], table: pd.DataFrame, n: int, d_k: int) -> tuple[Sentence, ...]:
    """Say how much of the ratio of the query's gradients is the factor itself, and how much softmax."""
    rows = frames["gradient_decomposition"]
    if rows.empty:
        return ()
    row = rows[
        (rows["ensemble"] == table["ensemble"].iloc[0])
        & (rows["n_keys"] == n)
        & (rows["d_k"] == d_k)
        & (rows["scaling"] == _UNSCALED)
    ]
    if row.empty or not (row["rest"] > 0).all():
        return ()
    row = row.iloc[0]
    values = {name: numbers.with_error(row[name], row[f"{name}_se"]) for name in ("total", "softmax_part", "rest")}
    return (Sentence("reading.parts", values | {"scale_part": numbers.significant(row["scale_part"])}),)


def _falling(frames: Mapping[str, pd.DataFrame], table: pd.DataFrame) -> Sentence:
    """Say from which d_k on the unscaled gradient with respect to the logits is the smaller one, by both measures."""
    crossings = _crossings(frames, table)
    places = {
        quantity: Listing(
            tuple(
                Sentence("reading.place", {"d_k": _star(crossings[key]), "n": numbers.count(n)})
                for n in sorted(selection.order(table["n_keys"]))
                if _crosses(crossings.get(key := ("grad_logits", quantity, n)))
            )
        )
        for quantity in ("median", "rms")
    }
    if not places["median"].items:
        return Sentence("reading.falling.never")
    return Sentence(f"reading.falling.{'both' if places['rms'].items else 'median'}", places)


def _star(row: dict[str, Any]) -> str:
    return numbers.with_error(row["d_k_star"], (row["ci_high"] - row["ci_low"]) / (2 * intervals.NORMAL))
