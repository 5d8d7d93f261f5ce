"""Figure: whether the errors of the simulation are right, by the distances from the exact values in standard errors."""

from sqrtdk import numbers, style
from sqrtdk.figures import Description, panels, saving, selection

NUMBER = 21
INPUTS = ("moments",)
TITLE = "Calibration: distance from the exact value in standard errors"
QUESTION = "Can the estimates and their error bars be believed?"

_QUANTITIES = ("mean", "variance", "excess_kurtosis")
_WORDS = {"mean": "mean", "variance": "variance", "excess_kurtosis": "excess kurtosis"}
_BOUND = 1.959963984540054
_FAR = 5.0
_NAMED, _MOST_NAMED = 3.5, 1
_NOTHING = "No simulated cell has both an error and an exact value to be held against."


def data(frames):
    """Return one row per test: z = (estimate − exact)/se, its normal quantile by rank, and that rank's 95 % band."""
    import pandas as pd

    moments = selection.simulated(frames["moments"])
    parts = [_scores(moments, name) for name in _QUANTITIES] if not moments.empty else []
    parts = [part for part in parts if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _scores(moments, name: str):
    import numpy as np
    from scipy.special import betaincinv, ndtri

    exact, se = moments[f"exact_{name}"], moments[f"{name}_se"]
    use = exact.notna() & moments[name].notna() & (se > 0)
    if name == "excess_kurtosis":
        use &= selection.truth(moments["kurtosis_trusted"])
    cells = moments.loc[use, ["ensemble", "d_k"]].copy()
    cells.insert(0, "quantity", name)
    cells["z"] = ((moments[name] - exact) / se)[use]
    cells = cells.sort_values("z", kind="stable").reset_index(drop=True)
    rank, total = np.arange(1, len(cells) + 1), len(cells)
    cells["normal_quantile"] = ndtri((rank - 0.5) / total) if total else []
    cells["band_low"] = ndtri(betaincinv(rank, total + 1 - rank, 0.025)) if total else []
    cells["band_high"] = ndtri(betaincinv(rank, total + 1 - rank, 0.975)) if total else []
    return cells


@saving.styled
def draw(frames):
    """Draw a normal quantile plot per quantity with the band of 95 % for each rank."""
    table = data(frames)
    if table.empty:
        return panels.statement(_NOTHING)
    names = selection.order(table["quantity"])
    figure = panels.figure(2.7)
    grid = figure.subplots(1, len(_QUANTITIES), sharex=True, sharey=True, squeeze=False)[0]
    for axes, name in zip(grid, names, strict=False):
        _draw_quantity(axes, table[table["quantity"] == name], name)
    for axes in grid[len(names) :]:
        axes.set_axis_off()
    grid[0].set_ylabel("(estimate − exact) / se")
    reach = max(3.2, 1.08 * table["z"].abs().max())
    grid[0].set_ylim(-reach, reach)
    return figure


_LOOK = style.Look("", "#2b83d6", "o", style.SOLID)


def _draw_quantity(axes, part, name: str) -> None:
    axes.fill_between(
        part["normal_quantile"],
        part["band_low"],
        part["band_high"],
        color=style.INK,
        alpha=style.FAINT,
        linewidth=0,
        label="_band",
    )
    ends = max(3.0, part["normal_quantile"].abs().max())
    axes.plot([-ends, ends], [-ends, ends], color=style.INK, linewidth=0.8, alpha=style.MUTED, label="_theory")
    axes.plot(
        part["normal_quantile"],
        part["z"],
        linestyle="none",
        marker="o",
        markersize=2.6,
        color=_LOOK.colour,
        label=panels.POINTS,
    )
    far = part[part["z"].abs() > _NAMED]
    for row in far.loc[far["z"].abs().sort_values().index[-_MOST_NAMED:]].itertuples():
        label = f"{panels.short(style.ensemble_label(row.ensemble))}, dₖ = {row.d_k}"
        axes.annotate(
            label,
            (row.normal_quantile, row.z),
            fontsize=8,
            ha="right" if row.z > 0 else "left",
            va="center",
            xytext=(-5 if row.z > 0 else 5, 0),
            textcoords="offset points",
        )
    inside = int((part["z"].abs() <= _BOUND).sum())
    axes.set_title(f"{_WORDS[name]}\n|z| < 1.96: {inside} of {len(part)}", fontsize=9)
    axes.set_xlabel("normal quantile")
    axes.set_xticks([-2, 0, 2], ["−2", "0", "2"])
    axes.yaxis.set_major_formatter(panels.tick_text)


def describe(frames) -> Description:
    """Put the figure into words."""
    table = data(frames)
    if table.empty:
        return Description(_NOTHING, _NOTHING, _NOTHING, "")
    return Description(_caption(table), _alt(table), _reading(table), _caveat(frames, table))


def _caption(table) -> str:
    counts = numbers.listing(
        [f"{len(part)} for the {_WORDS[name]}" for name, part in table.groupby("quantity", sort=False)]
    )
    return (
        "Distance of every simulated cell from its exact value, z = (estimate − exact) / standard error, in order, "
        f"against the quantiles of the normal law: {counts}. On the diagonal the errors are exactly right. Grey: "
        "where each ranked point falls with 95 % probability if they are."
    )


def _share(part) -> str:
    inside = int((part["z"].abs() <= _BOUND).sum())
    low, high = selection.binomial_interval(inside, len(part))
    return (
        f"{inside} of {len(part)} within 1.96 ({numbers.percent(inside / len(part))}, 95 % interval "
        f"{numbers.percent(low)} to {numbers.percent(high)})"
    )


def _alt(table) -> str:
    parts = [
        f"{_WORDS[name]}: {_share(part)}, largest |z| {numbers.significant(part['z'].abs().max(), 3)}"
        for name, part in table.groupby("quantity", sort=False)
    ]
    return f"Normal quantile plots of z, points against the diagonal. {selection.sentence('; '.join(parts))}"


def _reading(table) -> str:
    words = []
    for name, part in table.groupby("quantity", sort=False):
        inside = int((part["z"].abs() <= _BOUND).sum())
        verdict = "as 95 % allows" if selection.is_nominal(inside, len(part)) else "not what 95 % allows"
        words.append(f"{_WORDS[name]}: {_share(part)}, {verdict} to three binomial standard errors")
    far = table[table["z"].abs() > _FAR]
    limit = numbers.significant(_FAR)
    tail = f"No |z| is above {limit}."
    if len(far):
        cells = numbers.listing([_cell(row) for row in far.itertuples()])
        tail = f"{numbers.counted(len(far), 'cell')} with |z| above {limit}: {cells}. Such a distance is not chance."
    return f"{selection.sentence('; '.join(words))} {tail}"


def _cell(row) -> str:
    return (
        f"{_WORDS[row.quantity]} of {style.ensemble_label(row.ensemble)} at d_k = {row.d_k} (z = "
        f"{numbers.significant(row.z)})"
    )


def _caveat(frames, table) -> str:
    moments = selection.simulated(frames["moments"])
    left_out = len(moments) - int((table["quantity"] == "excess_kurtosis").sum())
    return (
        "The three quantities of one cell share their draws and are tested separately. The band holds for each rank "
        "by itself, so a few points outside it are to be expected. Cells without scatter are compared for equality "
        f"elsewhere and have no z; {numbers.counted(left_out, 'cell')} of {len(moments)} "
        f"{'has' if left_out == 1 else 'have'} no trusted kurtosis with an exact value."
    )
