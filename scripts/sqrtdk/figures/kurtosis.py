"""Figure: how fast the score becomes normal, by its excess kurtosis."""

from sqrtdk import numbers, style
from sqrtdk.figures import Description, panels, saving, selection

NUMBER = 20
INPUTS = ("moments",)
TITLE = "Excess kurtosis of q·k against d_k"
QUESTION = "How wide must a head be for its scores to be nearly normal?"

_NOTHING = "No excess kurtosis was estimated."
_FEW = 9
_LINEAR_BELOW = 0.01
_NEARLY_NORMAL = 0.1


def data(frames):
    """Return one row per cell with a kurtosis: estimate, 95 % interval, whether it is trusted, and the exact value."""
    moments = selection.simulated(frames["moments"])
    if moments.empty:
        return moments
    table = moments[["ensemble", "d_k", "n_blocks", "n_scores", "excess_kurtosis", "excess_kurtosis_se"]].copy()
    half = selection.half_width(moments["excess_kurtosis_se"], moments["n_blocks"])
    table["low"], table["high"] = table["excess_kurtosis"] - half, table["excess_kurtosis"] + half
    table["trusted"] = selection.truth(moments["kurtosis_trusted"])
    table["exact"] = moments["exact_excess_kurtosis"]
    table["degenerate"] = moments["stopped_by"] == "degenerate"
    return table[table["excess_kurtosis"].notna() | table["exact"].notna()].reset_index(drop=True)


@saving.styled
def draw(frames):
    """Draw a small panel per ensemble on one common axis, linear near 0 and logarithmic beyond."""
    table = data(frames)
    if table.empty:
        return panels.statement(_NOTHING)
    shown = set(table["ensemble"])
    every = style.ensembles(selection.order(selection.simulated(frames["moments"])["ensemble"]))
    looks = {name: look for name, look in every.items() if name in shown}
    few = len(looks) <= _FEW
    n_rows, n_columns = panels.grid_shape(len(looks), 3 if few else 4)
    figure = panels.figure(0.75 + (1.45 if few else 0.95) * n_rows)
    grid = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    for position, (axes, (name, look)) in enumerate(zip(grid.flat, looks.items(), strict=False)):
        axes.set_yscale("symlog", linthresh=_LINEAR_BELOW, linscale=0.6)
        cells = table[table["ensemble"] == name]
        panels.reference(axes, 0)
        panels.theory(axes, cells["d_k"], cells["exact"], style.Look("", look.colour, "", style.SOLID), width=1.1)
        for trusted in (True, False):
            part = cells[cells["trusted"] == trusted]
            panels.points(
                axes,
                part["d_k"],
                part["excess_kurtosis"],
                part["low"],
                part["high"],
                look,
                hollow=not trusted,
                size=3.6,
            )
        below = position + n_columns >= len(looks)
        panels.d_k_axis(axes, table["d_k"], "dₖ" if below else None, most=2)
        axes.tick_params(labelbottom=below)
        axes.set_title(
            panels.short(look.label, panels.LONGEST_TITLE + 1), pad=3 if few else 2, fontsize=9.5 if few else 8.5
        )
        if not few:
            axes.grid(axis="x", visible=False)
            axes.tick_params(length=0, labelsize=8)
    _heights(grid[0][0], table)
    for axes in grid.flat[len(looks) :]:
        axes.set_axis_off()
    figure.supylabel("excess kurtosis of q·k", fontsize=9.5)
    ink = style.Look("exact", style.INK, "", style.SOLID)
    dots = style.Look("estimate", style.INK, "o", style.SOLID)
    handles = [
        panels.key(ink),
        panels.key(dots, line=False),
        panels.key(dots, line=False, hollow=True, label="not trusted"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure


def _heights(axes, table) -> None:
    """Set limits and decade ticks that fit on an axis linear within ±0.01."""
    import numpy as np

    shown = np.abs(table[["excess_kurtosis", "exact"]].to_numpy(float))
    top = 10.0 ** np.ceil(np.log10(max(np.nanmax(shown), 0.1) * 1.5))
    signed = table[["excess_kurtosis", "exact"]].to_numpy(float)
    negative = np.nanmin(signed)
    bottom = -(10.0 ** np.ceil(np.log10(-negative * 1.5))) if negative < -_LINEAR_BELOW else -2 * _LINEAR_BELOW
    axes.set_ylim(bottom, top)
    decades = [10.0**e for e in range(-1, int(round(np.log10(top))) + 1)]
    decades = decades[:: -(-len(decades) // 3)]
    axes.set_yticks([-tick for tick in reversed(decades) if -tick >= bottom] + [0, *decades])
    axes.yaxis.set_major_formatter(panels.tick_text)
    axes.yaxis.set_minor_locator(_no_ticks())


def _no_ticks():
    from matplotlib.ticker import NullLocator

    return NullLocator()


def describe(frames) -> Description:
    """Put the figure into words."""
    table = data(frames)
    if table.empty:
        return Description(_NOTHING, _NOTHING, _NOTHING, "")
    names = selection.order(table["ensemble"])
    return Description(_caption(table, names), _alt(table, names), _reading(table, names), _caveat(table))


def _caption(table, names) -> str:
    worst = table.loc[table["trusted"], "excess_kurtosis_se"].max()
    largest = (
        f" Largest standard error of a trusted estimate: {numbers.significant(worst, 2)}." if worst == worst else ""
    )
    return (
        f"Excess kurtosis of q·k (0 for a normal law) against d_k for {numbers.counted(len(names), 'ensemble')}; "
        f"{numbers.count_range(table['n_scores'])} scores a cell. The axis is linear within "
        f"±{numbers.significant(_LINEAR_BELOW, 1)} and logarithmic beyond. Lines: exact. Markers: estimates with 95 % "
        "intervals (Student's t, jackknife over independent blocks), hollow where the estimate cannot be "
        f"trusted.{largest}"
    )


def _alt(table, names) -> str:
    parts = []
    for name in names:
        cells = table[(table["ensemble"] == name) & table["excess_kurtosis"].notna()].sort_values("d_k")
        if cells.empty:
            parts.append(f"{style.ensemble_label(name)} without an estimate")
            continue
        ends = cells.iloc[[0, -1]] if len(cells) > 1 else cells
        spelled = " to ".join(
            numbers.with_error(row.excess_kurtosis, row.excess_kurtosis_se) for row in ends.itertuples()
        )
        parts.append(f"{style.ensemble_label(name)} {spelled}")
    low, high = table["d_k"].min(), table["d_k"].max()
    span = f"from d_k = {low} to {high}" if low < high else f"at d_k = {low}"
    return f"Small panels of excess kurtosis {span}, standard errors in brackets: {'; '.join(parts)}."


def _best(table):
    """Return the excess kurtosis to judge by: the exact one, or the trusted estimate where there is none."""
    return table["exact"].where(table["exact"].notna(), table["excess_kurtosis"].where(table["trusted"]))


def _reading(table, names) -> str:
    told = table[table["trusted"] & table["exact"].notna() & (table["excess_kurtosis_se"] > 0)]
    inside = int(selection.covers(told["low"], told["high"], told["exact"]).sum())
    return f"{_normality(table, names)} {selection.coverage_words(inside, len(told), 'excess kurtosis', 'cell')}"


def _normality(table, names) -> str:
    """Name the width from which on each ensemble is nearly normal, and those that never are."""
    widest = table["d_k"].max()
    never, reached = [], []
    for name in names:
        cells = table[table["ensemble"] == name].assign(best=_best).dropna(subset="best").sort_values("d_k")
        if cells.empty:
            continue
        far = cells[cells["best"].abs() >= _NEARLY_NORMAL]
        if len(far) and far["d_k"].max() == cells["d_k"].max():
            never.append(
                f"{style.ensemble_label(name)} ({numbers.significant(cells['best'].iloc[-1], 2)} at d_k = "
                f"{cells['d_k'].iloc[-1]})"
            )
        else:
            first = cells.loc[cells["d_k"] > far["d_k"].max(), "d_k"].min() if len(far) else cells["d_k"].min()
            reached.append(f"{style.ensemble_label(name)} from d_k = {first}")
    limit = numbers.significant(_NEARLY_NORMAL, 1)
    words = [f"The excess kurtosis stays under {limit} in size for {numbers.listing(reached)}."] if reached else []
    if never:
        words.append(f"It does not get there by d_k = {widest} for {numbers.listing(never)}.")
    return " ".join(words)


def _caveat(table) -> str:
    untrusted = int((~table["trusted"]).sum())
    return (
        f"{numbers.counted(untrusted, 'cell')} of {len(table)} {'is' if untrusted == 1 else 'are'} not trusted: the "
        "eighth moment of the components is not finite, the blocks' contributions are too skewed for a normal "
        "interval, or there is no scatter at all. An excess kurtosis near 0 does not make the tails normal: those of "
        "q·k stay exponential for Gaussian components."
    )
