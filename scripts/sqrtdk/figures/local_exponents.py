"""Figure: the exponent of the variance between neighbouring widths, which shows crossovers and fractional exponents."""

from sqrtdk import numbers, style
from sqrtdk.figures import Description, panels, saving, selection

NUMBER = 3
INPUTS = ("local_exponents",)
TITLE = "The local exponent of the variance of q·k against d_k"
QUESTION = "Is one power of d_k the law at every width, or does the exponent change on the way?"

_NOTHING = "No exponent between two widths was estimated."
_CONSTANT = 1e-6
_CHANGE = 0.5
"""An exact exponent that moves by more than this from the narrowest pair to the widest has a crossover to mark."""


def data(frames):
    """Return one row per pair of neighbouring widths: the local exponent, its 95 % interval and the exact one.

    `d_k` is the geometric mean of the pair. Where an ensemble has no error of its variance, `quantity` says that the
    rows are of the interquartile range, and the exponent is that of its square, to compare with variances.
    """
    table = frames["local_exponents"]
    if table.empty:
        return table
    by_quantity = dict(list(table.groupby("quantity", sort=False)))
    kept = by_quantity["variance"]
    absent = kept.groupby("ensemble", sort=False)["exponent"].transform("count") == 0
    parts = [kept[~absent]]
    if "interquartile_range" in by_quantity:
        ranges = by_quantity["interquartile_range"]
        ranges = ranges[ranges["ensemble"].isin(kept.loc[absent, "ensemble"])].copy()
        for column in ("exponent", "se", "ci_low", "ci_high"):
            ranges[column] *= 2
        parts.append(ranges)
    import pandas as pd

    joined = pd.concat(parts)
    joined = joined[joined["exponent"].notna() | joined["exact"].notna()].sort_index().reset_index(drop=True)
    columns = ["ensemble", "quantity", "d_k_low", "d_k_high", "exponent", "se", "ci_low", "ci_high", "exact", "reason"]
    joined.insert(0, "d_k", (joined["d_k_low"] * joined["d_k_high"]) ** 0.5)
    return joined[["ensemble", "quantity", "d_k", *columns[2:]]]


def _constant(table) -> list[str]:
    """Return the ensembles whose exact local exponent is 1 at every width."""
    return [
        name
        for name, rows in table.groupby("ensemble", sort=False)
        if rows["exact"].notna().all() and ((rows["exact"] - 1).abs() < _CONSTANT).all()
    ]


def _crossovers(table) -> dict[str, float]:
    """Return the d_k at which an exact exponent is half-way between its first and its last value, where it changes."""
    found = {}
    for name, rows in table.groupby("ensemble", sort=False):
        rows = rows.dropna(subset="exact").sort_values("d_k")
        if len(rows) > 2 and abs(rows["exact"].iloc[-1] - rows["exact"].iloc[0]) > _CHANGE:
            middle = (rows["exact"].iloc[0] + rows["exact"].iloc[-1]) / 2
            place = panels.crossing(rows["d_k"], rows["exact"], middle)
            if place is not None and place > rows["d_k"].iloc[1]:  # one odd step at the narrowest heads is none
                found[name] = place
    return found


@saving.styled
def draw(frames):
    """Draw the ensembles with exponent 1 in one panel on a fine scale, each other one in a small panel."""
    table = data(frames)
    if table.empty:
        return panels.statement(_NOTHING)
    looks = style.ensembles(selection.order(table["ensemble"]))
    flat = _constant(table)
    others = [name for name in looks if name not in flat]
    n_rows, n_columns = panels.grid_shape(len(others)) if others else (0, 0)
    heights = [2.3 if flat else 0, 0.55 + 1.05 * n_rows if others else 0]
    figure = panels.figure(sum(heights))
    parts = iter(
        figure.subfigures(sum(map(bool, heights)), 1, height_ratios=list(filter(None, heights)), squeeze=False).flat
    )
    if flat:
        _draw_flat(next(parts).add_subplot(), table[table["ensemble"].isin(flat)], looks, flat)
    if others:
        lower, marks = next(parts), _crossovers(table)
        grid = lower.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
        lower.supylabel("local exponent", fontsize=9.5)
        _heights(grid[0][0], table[table["ensemble"].isin(others)])
        for position, (axes, name) in enumerate(zip(grid.flat, others, strict=False)):
            rows = table[table["ensemble"] == name]
            _draw_one(axes, rows, looks[name], marks.get(name))
            below = position + n_columns >= len(others)
            panels.d_k_axis(axes, table["d_k"], "dₖ" if below else None, most=2)
            axes.set_xticks([4, 64, 1024] if table["d_k"].max() > 1024 else axes.get_xticks())
            axes.tick_params(labelbottom=below, length=0)
        for axes in grid.flat[len(others) :]:
            axes.set_axis_off()
    return figure


def _draw_flat(axes, table, looks, flat) -> None:
    """Draw all ensembles whose exact exponent is 1, moved sideways so that none hides another."""
    panels.reference(axes, 1)
    for place, name in enumerate(flat):
        rows = table[table["ensemble"] == name]
        x = rows["d_k"] * panels.dodge(place, len(flat), 0.3)
        panels.points(axes, x, rows["exponent"], rows["ci_low"], rows["ci_high"], looks[name], size=2.6)
    panels.d_k_axis(axes, table["d_k"].tolist() + table["d_k_low"].tolist())
    axes.set_ylabel("local exponent")
    axes.set_title(f"exactly 1: {numbers.counted(len(flat), 'ensemble')}", pad=3)
    axes.yaxis.set_major_formatter(panels.tick_text)


def _heights(axes, table) -> None:
    shown = selection.finite(table[["exponent", "exact"]])
    low, high = min(shown.min(initial=0.0), 0.0), max(shown.max(initial=2.0), 2.0)
    axes.set_ylim(low - 0.25, high + 0.25)
    step = 1 if high - low < 5 else 2
    axes.set_yticks([tick for tick in range(-20, 21, step) if low - 0.25 <= tick <= high + 0.25])
    axes.yaxis.set_major_formatter(panels.tick_text)


def _draw_one(axes, rows, look, mark: float | None) -> None:
    panels.reference(axes, 1)
    axes.grid(axis="x", visible=False)
    panels.theory(axes, rows["d_k"], rows["exact"], style.Look("", look.colour, "", style.SOLID), width=1.0)
    squared = (rows["quantity"] != "variance").any()
    panels.points(axes, rows["d_k"], rows["exponent"], rows["ci_low"], rows["ci_high"], look, hollow=squared, size=3.2)
    label = panels.short(look.label, 18 if squared else panels.LONGEST_TITLE + 3)
    axes.set_title(f"{label} (IQR²)" if squared else label, fontsize=9, pad=2)
    if mark is not None:
        axes.axvline(mark, color=style.INK, linewidth=0.8, linestyle=style.DOTTED, label="_crossover")
        text = axes.text(
            mark,
            0.03,
            f" {numbers.significant(mark, 2)}",
            transform=axes.get_xaxis_transform(),
            fontsize=8,
            va="bottom",
        )
        text.set_in_layout(False)


def describe(frames) -> Description:
    """Put the figure into words."""
    table = data(frames)
    if table.empty:
        return Description(_NOTHING, _NOTHING, _NOTHING, "")
    return Description(_caption(table), _alt(table), _reading(table), _caveat(table))


def _caption(table) -> str:
    flat, marks = _constant(table), _crossovers(table)
    text = (
        "Local exponent of the variance of q·k: the logarithm of the ratio of the variances at two neighbouring widths "
        "over the logarithm of the ratio of the widths, against their geometric mean. Markers are estimates, bars are "
        "95 % intervals, lines are exact."
    )
    if flat:
        text += (
            " Upper panel, moved sideways so that none hides another: "
            f"{numbers.listing(selection.labels(flat))}, whose exact exponent is 1 at every width."
        )
    if marks:
        text += " Dotted: where the exact exponent is half-way between its first and its last value."
    if (table["quantity"] != "variance").any():
        text += (
            " IQR²: where the variance has no error, the exponent of the squared interquartile range stands in (hollow "
            "markers), which is 1 once the score has a fixed shape of size √d_k."
        )
    return text


def _ends(rows):
    rows = rows.dropna(subset="exponent").sort_values("d_k")
    return (rows.iloc[0], rows.iloc[-1]) if len(rows) else None


def _alt(table) -> str:
    parts = []
    for name, rows in table.groupby("ensemble", sort=False):
        ends, label = _ends(rows), style.ensemble_label(name)
        if ends is None:
            parts.append(f"{label} without an estimate")
            continue
        squared = " (interquartile range, squared)" if (rows["quantity"] != "variance").any() else ""
        first, last = (numbers.with_error(end["exponent"], end["se"]) for end in ends)
        parts.append(f"{label}{squared} {first}" + (f" to {last}" if len(rows) > 1 else ""))
    return (
        f"Panels of local exponents between d_k = {int(table['d_k_low'].min())} and {int(table['d_k_high'].max())}, "
        f"narrowest to widest pair, standard errors in brackets: {'; '.join(parts)}."
    )


def _reading(table) -> str:
    marks = _crossovers(table)
    words = []
    if marks:
        spelled = []
        for name, place in marks.items():
            rows = table[table["ensemble"] == name].dropna(subset="exact").sort_values("d_k")
            first, last = (numbers.significant(rows["exact"].iloc[end], 3) for end in (0, -1))
            spelled.append(
                f"{style.ensemble_label(name)} ({first} to {last}, half-way at d_k of about "
                f"{numbers.significant(place, 2)})"
            )
        words.append(f"The exact exponent changes on the way for {numbers.listing(spelled)}.")
    steady = []
    for name, rows in table[~table["ensemble"].isin([*marks, *_constant(table)])].groupby("ensemble", sort=False):
        last = rows.dropna(subset="exact").sort_values("d_k")["exact"].tail(1)
        steady += [f"{style.ensemble_label(name)} {numbers.significant(value, 3)}" for value in last]
    if steady:
        words.append(f"At the widest pair the exact exponent of the others is {numbers.listing(steady)}.")
    ranges = table[table["quantity"] != "variance"]
    for name, rows in ranges.groupby("ensemble", sort=False):
        ends = _ends(rows)
        if ends is not None:
            first, last = (numbers.with_error(end["exponent"], end["se"]) for end in ends)
            words.append(
                f"The squared interquartile range of {style.ensemble_label(name)} has the exponent {first} at the "
                f"narrowest pair and {last} at the widest."
            )
    told = table[table["exponent"].notna() & table["exact"].notna()]
    inside = int(selection.covers(told["ci_low"], told["ci_high"], told["exact"]).sum())
    words.append(selection.coverage_words(inside, len(told), "local exponent", "pair"))
    return " ".join(words)


def _caveat(table) -> str:
    missing = int(table["exponent"].isna().sum())
    text = (
        "Neighbouring exponents share a width: an estimate that came out large raises the exponent before it and "
        "lowers the one after it."
    )
    if missing:
        text += (
            f" {numbers.counted(missing, 'pair')} of {len(table)} without an estimate: a variance has no error there."
        )
    return text
