"""Figure: the size of the gradient that attention passes back, as root mean square and as median."""

from sqrtdk import numbers, style
from sqrtdk.figures import Description, panels, saving, selection

NUMBER = 10
INPUTS = ("gradient_magnitude", "gradient_crossovers", "gradient_decomposition")
TITLE = "Gradients through softmax against d_k: root mean square and median"
QUESTION = "Do gradients vanish in wide heads without the scale?"

_MEASURES = ("grad_logits", "grad_query")
_WORDS = {"grad_logits": "logits", "grad_query": "query"}
_NOTHING = "No gradient was simulated."
_WANTED = 64
_UNSCALED, _SCALED = "none", "1/sqrt(d_k)"
_CROSS = {"marker": "X", "markersize": 5.5, "color": style.INK, "markeredgecolor": "white", "markeredgewidth": 0.6}


def data(frames):
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
    half = {name: selection.half_width(table[f"{name}_se"], table["n_blocks"]) for name in ("rms", "median")}
    table["rms_low"], table["rms_high"] = table["rms"] - half["rms"], table["rms"] + half["rms"]
    # Medians of rows that span decades err by a factor, and their error is that of the logarithm.
    factor = np.exp((half["median"] / table["median"].where(table["median"] > 0)).clip(upper=50))
    table["median_low"], table["median_high"] = table["median"] / factor, table["median"] * factor
    return table


@saving.styled
def draw(frames):
    """Draw a row for each number of keys and a column for logits and query: both magnitudes for each scale rule."""
    table = data(frames)
    if table.empty:
        return panels.statement(_NOTHING)
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


def _crossings(frames, table) -> dict:
    """Return (measure, quantity, n_keys) -> row of the table of crossovers, for the ensemble that is shown."""
    rows = frames["gradient_crossovers"]
    if rows.empty:
        return {}
    rows = rows[rows["ensemble"] == table["ensemble"].iloc[0]].to_dict("records")
    return {(row["measure"], row["quantity"], row["n_keys"]): row for row in rows}


def _crosses(row) -> bool:
    return row is not None and row["d_k_star"] == row["d_k_star"]


def _draw_crossing(axes, row, cells) -> None:
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


def _draw_rule(axes, part, look) -> None:
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


def _limits(axes, table) -> None:
    """Keep the panel to what has a size: zero medians are at the lower edge, not at minus infinity."""
    seen = selection.finite(table[["rms", "median"]])
    seen = seen[seen > 0]
    if len(seen):
        axes.set_ylim(max(seen.min(), 1e-12) / 2.5, seen.max() * 2.5)
        panels.log_ticks(axes)


def _legend(figure, rules, crossing: bool) -> None:
    looks = [style.scaling(rule) for rule in rules]
    handles = [panels.key(look, linestyle="none") for look in looks]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(3, len(handles)))
    ink = style.Look("root mean square", style.INK, "o", style.SOLID)
    handles = [panels.key(ink), panels.key(ink, hollow=True, linestyle=style.DOTTED, label="median")]
    if crossing:
        handles.append(panels.key(ink, label="medians cross", **_CROSS | {"linestyle": "none"}))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def _at(table, measure: str, rule: str, n: int, d_k: int):
    rows = table[
        (table["measure"] == measure) & (table["scaling"] == rule) & (table["n_keys"] == n) & (table["d_k"] == d_k)
    ]
    return rows.iloc[0] if len(rows) else None


def _pair(table, measure: str, n: int, d_k: int, column: str):
    """Return the rows of the unscaled and the 1/√d_k rule, or None where one has no size to compare."""
    plain, scaled = (_at(table, measure, rule, n, d_k) for rule in (_UNSCALED, _SCALED))
    if plain is None or scaled is None or not scaled[column] > 0 or not plain[column] >= 0:
        return None
    return plain, scaled


def _compared(pair, column: str) -> str:
    plain, scaled = pair
    values = f"{_size(plain, column)} against {_size(scaled, column)}"
    ratio = plain[column] / scaled[column]
    if abs(plain[column] - scaled[column]) <= selection.noise(plain[f"{column}_se"], scaled[f"{column}_se"]):
        return f"the same within three standard errors ({values})"
    if ratio == 0:
        return f"zero ({values})"
    factor = numbers.significant(ratio if ratio > 1 else 1 / ratio, 2)
    return f"{factor} times {'larger' if ratio > 1 else 'smaller'} ({values})"


def _size(row, column: str) -> str:
    return numbers.with_error(row[column], row[f"{column}_se"])


def describe(frames) -> Description:
    """Put the figure into words."""
    table = data(frames)
    if table.empty:
        return Description(_NOTHING, _NOTHING, _NOTHING, "")
    return Description(_caption(table), _alt(table), _reading(frames, table), _CAVEAT)


_CAVEAT = (
    "The gradient that arrives at the weights is drawn independent of them, with variance 1 for each key; in a "
    "network it depends on the values and on the loss. The mean square over independent rows is what adds up in a "
    "parameter's gradient; the median is what a typical row sends. Intervals of medians are symmetric on the log axis."
)


def _caption(table) -> str:
    rows = numbers.count_range(table["n_rows"])
    worst = (table["rms_se"] / table["rms"]).max()
    text = (
        f"Size of the gradient of one attention row ({style.ensemble_label(table['ensemble'].iloc[0])} queries and "
        "keys) against d_k, one row of panels for each number of keys n: norm of the gradient with respect to the "
        "logits that enter softmax (left) and to the query (right), for independent standard normal gradients of the "
        "weights. Filled markers and solid lines: root mean square over rows. Hollow markers and dotted lines: "
        "median over rows. Crosses: the d_k from which on the unscaled median is below that with 1/√d_k. "
        f"{rows} rows a point; bars are 95 % intervals from between independent blocks."
    )
    if table["theory"].notna().any():
        text += " Thin dash-dotted lines: exact root mean square."
    return text + (
        f" Largest relative standard error of a root mean square: {numbers.percent(worst)}." if worst == worst else ""
    )


def _alt(table) -> str:
    d_k, parts = int(table["d_k"].max()), []
    for measure in _MEASURES:
        for rule in style.scalings(table["scaling"]):
            n = int(table["n_keys"].max())
            row = _at(table, measure, rule, n, d_k)
            if row is not None:
                parts.append(
                    f"{_WORDS[measure]}, {style.scaling_words(rule)}: root mean square {_size(row, 'rms')}, median "
                    f"{_size(row, 'median')}"
                )
    return (
        f"Log-log panels of gradient sizes against d_k. At d_k = {d_k} and n = {n}, standard errors in brackets: "
        f"{'; '.join(parts)}."
    )


def _reading(frames, table) -> str:
    if not {_UNSCALED, _SCALED} <= set(table["scaling"]):
        return "Without both the unscaled and the 1/√d_k rule in this run, there is nothing to compare."
    d_k, n = selection.nearest(table["d_k"], _WANTED), selection.nearest(table["n_keys"], _WANTED)
    words = []
    for measure in _MEASURES:
        pairs = {column: _pair(table, measure, n, d_k, column) for column in ("rms", "median")}
        if all(pairs.values()):
            words.append(
                f"with respect to the {_WORDS[measure]} it is, as root mean square, {_compared(pairs['rms'], 'rms')}, "
                f"and as median {_compared(pairs['median'], 'median')}"
            )
    lead = f"The gradient without a scale against the one with 1/√d_k, at d_k = {d_k} and n = {n}: {'; '.join(words)}."
    parts = [lead if words else "", _parts(frames, table, n, d_k), _stories(table, int(table["d_k"].max()))]
    return " ".join(filter(None, [*parts, _falling(frames, table)]))


def _order(plain, scaled, column: str) -> int:
    """Return 1, -1 or 0: larger, smaller, or the same within three standard errors."""
    difference = plain[column] - scaled[column]
    if abs(difference) <= selection.noise(plain[f"{column}_se"], scaled[f"{column}_se"]):
        return 0
    return 1 if difference > 0 else -1


def _story(rms: int, median: int, places: str) -> str:
    words = {1: "larger", 0: "the same", -1: "smaller"}
    if rms == median:
        return f"{words[rms]} by both measures at {places}"
    tail = ": few rows carry most of it" if (rms, median) == (1, -1) else ""
    return f"{words[rms]} as root mean square and {words[median]} as median at {places}{tail}"


def _stories(table, d_k: int) -> str:
    """Say at which numbers of keys root mean square and median agree about the query, and at which they do not."""
    found = {}
    for n in sorted(selection.order(table["n_keys"])):
        pairs = [_pair(table, "grad_query", n, d_k, column) for column in ("rms", "median")]
        if all(pairs):
            story = tuple(_order(*pair, column) for pair, column in zip(pairs, ("rms", "median"), strict=True))
            found.setdefault(story, []).append(f"n = {n}")
    if not found:
        return ""
    words = [_story(*story, numbers.listing(places)) for story, places in found.items()]
    return f"At d_k = {d_k} the unscaled gradient with respect to the query is {'; it is '.join(words)}."


def _parts(frames, table, n: int, d_k: int) -> str:
    """Say how much of the ratio of the query's gradients is the factor itself, and how much softmax."""
    rows = frames["gradient_decomposition"]
    if rows.empty:
        return ""
    row = rows[
        (rows["ensemble"] == table["ensemble"].iloc[0])
        & (rows["n_keys"] == n)
        & (rows["d_k"] == d_k)
        & (rows["scaling"] == _UNSCALED)
    ]
    if row.empty or not (row["rest"] > 0).all():
        return ""
    row = row.iloc[0]
    return (
        f"Of the ratio {_part(row, 'total')} for the query, the scale factor itself makes "
        f"{numbers.significant(row['scale_part'])} and softmax {_part(row, 'softmax_part')}; a factor of "
        f"{_part(row, 'rest')} is left for the part of the gradient along the query."
    )


def _part(row, name: str) -> str:
    return numbers.with_error(row[name], row[f"{name}_se"])


def _falling(frames, table) -> str:
    """Say from which d_k on the unscaled gradient with respect to the logits is the smaller one, by both measures."""
    found = _crossings(frames, table)
    words = {
        quantity: [
            f"{_star(found[key])} for n = {n}"
            for n in sorted(selection.order(table["n_keys"]))
            if _crosses(found.get(key := ("grad_logits", quantity, n)))
        ]
        for quantity in ("median", "rms")
    }
    if not words["median"]:
        return (
            "The median unscaled gradient with respect to the logits does not cross the scaled one between the "
            "simulated widths."
        )
    text = (
        "The median unscaled gradient with respect to the logits falls below the scaled one for good at d_k of about "
        f"{numbers.listing(words['median'])}"
    )
    if words["rms"]:
        return f"{text}; its root mean square only at {numbers.listing(words['rms'])}."
    return f"{text}; its root mean square does not, at the simulated widths."


def _star(row) -> str:
    return numbers.with_error(row["d_k_star"], (row["ci_high"] - row["ci_low"]) / (2 * 1.96))
