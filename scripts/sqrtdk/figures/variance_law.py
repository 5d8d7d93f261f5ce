"""Figure: the variance of q·k against d_k, and its ratio to the exact variance."""

from sqrtdk import numbers, style
from sqrtdk.figures import Description, panels, saving, selection

NUMBER = 1
INPUTS = ("moments",)
TITLE = "The variance of q·k against d_k"
QUESTION = "How does the variance of the attention score grow with the width of a head?"

_LEGEND_ROOM = 10
_ALIKE = 0.15


def data(frames):
    """Return one row per simulated cell: estimate, exact variance and their ratio, with 95 % intervals."""
    moments = selection.simulated(frames["moments"])
    if moments.empty:
        return moments
    half = selection.half_width(moments["variance_se"], moments["n_blocks"])
    table = moments[["ensemble", "d_k", "n_blocks", "n_scores", "stopped_by", "variance", "variance_se"]].copy()
    table["low"], table["high"] = table["variance"] - half, table["variance"] + half
    table["exact"] = moments["exact_variance"]
    table["ratio"] = table["variance"] / table["exact"]
    table["ratio_low"], table["ratio_high"] = table["low"] / table["exact"], table["high"] / table["exact"]
    return table


@saving.styled
def draw(frames):
    """Draw the variances on log axes above one small panel of ratios for each ensemble."""
    table = data(frames)
    if table.empty or table["variance"].isna().all():
        return panels.statement("No ensemble with a variance was simulated.")
    looks = style.ensembles(selection.order(table["ensemble"]))
    n_rows, n_columns = panels.grid_shape(len(looks))
    below = 0.35 + 0.95 * n_rows
    figure = panels.figure(3.6 + below)
    upper, lower = figure.subfigures(2, 1, height_ratios=[3.6, below])
    _draw_law(upper.add_subplot(), table, looks)
    grid = lower.subplots(n_rows, n_columns, sharex=True, squeeze=False)
    lower.supylabel("estimate / exact", fontsize=9.5)
    for position, (axes, (name, look)) in enumerate(zip(grid.flat, looks.items(), strict=False)):
        last = position + n_columns >= len(looks)
        _draw_ratio(axes, table[table["ensemble"] == name], table["d_k"], look, last)
    for axes in grid.flat[len(looks) :]:
        axes.set_axis_off()
    return figure


def _draw_law(axes, table, looks) -> None:
    panels.log_heights(axes)
    places = _places(table)
    for name, look in looks.items():
        cells = table[table["ensemble"] == name]
        panels.theory(axes, cells["d_k"], cells["exact"], look, width=1.0)
        x = cells["d_k"] * places[name]
        panels.points(axes, x, cells["variance"], cells["low"], cells["high"], look, size=3.6)
    panels.d_k_axis(axes, table["d_k"])
    panels.log_ticks(axes)
    axes.set_ylabel("variance of q·k")
    if len(looks) <= _LEGEND_ROOM:
        axes.legend(handles=[panels.key(look) for look in looks.values()], loc="upper left")


def _places(table) -> dict[str, float]:
    """Return a factor for d_k that keeps ensembles apart whose variances agree, and so would hide each other."""
    last = table[table["variance"] > 0].groupby("ensemble", sort=False)["variance"].last()
    places = dict.fromkeys(table["ensemble"], 1.0)
    for name, value in last.items():
        together = [other for other, height in last.items() if abs(height / value - 1) < _ALIKE]
        places[name] = panels.dodge(together.index(name), len(together), 0.06 * len(together))
    return places


def _draw_ratio(axes, cells, widths, look, last: bool) -> None:
    panels.reference(axes, 1)
    panels.points(axes, cells["d_k"], cells["ratio"], cells["ratio_low"], cells["ratio_high"], look, size=3.2)
    panels.d_k_axis(axes, widths, "dₖ" if last else None, most=2)
    axes.tick_params(labelbottom=last)
    axes.set_title(panels.short(look.label, panels.LONGEST_TITLE), fontsize=9, pad=3)
    reach = (cells[["ratio_low", "ratio_high", "ratio"]] - 1).abs().max().max()
    if not reach >= 0:
        axes.text(0.5, 0.5, "no exact variance", ha="center", va="center", transform=axes.transAxes, fontsize=9)
    panels.around(axes, 1.0, reach)


def describe(frames) -> Description:
    """Put the figure into words."""
    table = data(frames)
    if table.empty or table["variance"].isna().all():
        nothing = "No ensemble with a variance was simulated, so there is nothing to show."
        return Description(nothing, nothing, nothing, "")
    names = selection.order(table["ensemble"])
    return Description(_caption(table, names), _alt(table, names), _reading(table, names), _caveat(table))


def _caption(table, names) -> str:
    relative = table["variance_se"] / table["variance"]
    worst = table.loc[relative.idxmax()] if relative.notna().any() else None
    text = (
        f"Variance of the score q·k against the head width d_k for {numbers.counted(len(names), 'ensemble')}: "
        f"{numbers.counted(len(table), 'cell')} of {numbers.count_range(table['n_scores'])} scores each. Markers are "
        "estimates (moved sideways a little where ensembles would hide each other), lines are exact variances, bars "
        "are 95 % intervals (Student's t between independent blocks), in the upper panel mostly smaller than the "
        "markers. Lower panels: estimate divided by exact variance, each with its own vertical scale."
    )
    if worst is not None:
        text += (
            f" Largest relative standard error: {numbers.percent(relative.max(), 2)} "
            f"({style.ensemble_label(worst['ensemble'])}, d_k = {worst['d_k']}); median "
            f"{numbers.percent(relative.median(), 2)}."
        )
    return text


def _ends(table, name):
    cells = table[(table["ensemble"] == name) & table["variance"].notna()].sort_values("d_k")
    return (cells.iloc[0], cells.iloc[-1]) if len(cells) else None


def _alt(table, names) -> str:
    parts = []
    for name in names:
        ends = _ends(table, name)
        if ends is None:
            parts.append(f"{style.ensemble_label(name)}: no variance")
            continue
        first, last = ends
        spelled = numbers.with_error(first["variance"], first["variance_se"])
        if len(table.loc[table["ensemble"] == name, "d_k"].unique()) > 1:
            spelled += f" to {numbers.with_error(last['variance'], last['variance_se'])}"
        parts.append(f"{style.ensemble_label(name)} {spelled}")
    low, high = table["d_k"].min(), table["d_k"].max()
    span = f"from d_k = {low} to {high}" if low < high else f"at d_k = {low}"
    deviation = (table["ratio"] - 1).abs().max()
    off = (
        f" No point is further than {numbers.percent(deviation, 2)} from its exact value."
        if deviation == deviation
        else ""
    )
    return f"Log-log plot of the variance of q·k {span}, standard errors in brackets: {'; '.join(parts)}.{off}"


def _reading(table, names) -> str:
    told = table[(table["variance_se"] > 0) & table["exact"].notna()]
    inside = int(selection.covers(told["ratio_low"], told["ratio_high"], 1).sum())
    return f"{_growth(table, names)} {selection.coverage_words(inside, len(told), 'variance', 'cell')}"


def _growth(table, names) -> str:
    """Say whose variance grows as d_k does, from the estimates at the narrowest and the widest head."""
    if table["d_k"].nunique() < 2:
        return f"Only d_k = {table['d_k'].iloc[0]} was simulated, so no growth can be read."
    proportional, other = [], []
    for name in names:
        ends = _ends(table, name)
        if ends is None or ends[0]["d_k"] == ends[1]["d_k"] or not ends[0]["variance"] > 0:
            continue
        factor = ends[1]["variance"] / ends[0]["variance"]
        growth = ends[1]["d_k"] / ends[0]["d_k"]
        error = (
            factor
            * (
                (ends[0]["variance_se"] / ends[0]["variance"]) ** 2
                + (ends[1]["variance_se"] / ends[1]["variance"]) ** 2
            )
            ** 0.5
        )
        if abs(factor - growth) <= 3 * error:
            proportional.append(style.ensemble_label(name))
        else:
            faster = "more" if factor > growth else "less"
            other.append(f"{style.ensemble_label(name)} ({faster}: {numbers.with_error(factor, error)} times)")
    low, high = table["d_k"].min(), table["d_k"].max()
    span = f"From d_k = {low} to {high}, a factor of {numbers.significant(high / low)},"
    words = []
    if proportional:
        words.append(
            f"{span} the variance grows by the same factor, within three standard errors, for "
            f"{numbers.listing(proportional)}."
        )
    if other:
        lead = "It does not for" if proportional else f"{span} the variance grows by another factor for"
        words.append(f"{lead} {numbers.listing(other)}.")
    return " ".join(words)


def _caveat(table) -> str:
    capped = table[table["stopped_by"] == "max_scalars"]
    degenerate = table[table["stopped_by"] == "degenerate"]
    words = ["An interval speaks of the simulation, not of trained heads."]
    if len(capped):
        words.append(
            f"{numbers.counted(len(capped), 'cell')} of {len(table)} stopped at the cost limit before the requested "
            "precision; their bars are longer."
        )
    if len(degenerate):
        words.append(f"No interval where the estimate cannot scatter: {_cells(degenerate)}.")
    return " ".join(words)


def _cells(rows) -> str:
    return numbers.listing([f"{style.ensemble_label(row.ensemble)} at d_k = {row.d_k}" for row in rows.itertuples()])
