"""Figure: the distribution of Gaussian scores against its exact law."""

from sqrtdk import numbers, style
from sqrtdk.figures import Description, panels, saving, selection

NUMBER = 3
INPUTS = ("score_histograms",)
TITLE = "The distribution of q·k for Gaussian queries and keys"
QUESTION = "Is the score normally distributed, as is often said?"

_MOST_BINS = 64
_WIDEST = 8.0
_SHOWN = (1, 2, 8, 64)
_NOTHING = "No histogram of scores with a known exact law was made."


def _shown(widths: list[int]) -> list[int]:
    """Return the widths to draw: those of the standard set, else up to four evenly among what there is."""
    present = [width for width in _SHOWN if width in widths]
    if present:
        return present
    step = max(1, -(-len(widths) // 4))
    return sorted(widths)[::step]


def data(frames):
    """Return one row per finite bin: measured density, exact density averaged over the bin, and the normal's.

    Scores are in units of their standard deviation √d_k in the columns `low` and `high`; densities are per such unit.
    """
    import numpy as np

    from sqrtdk.densities import gaussian_cumulative

    table = frames["score_histograms"]
    if table.empty:
        return table
    first = table["ensemble"].iloc[0]
    table = table[(table["ensemble"] == first) & table["d_k"].isin(_shown(selection.order(table["d_k"])))]
    parts = []
    for d_k, bins in table.groupby("d_k", sort=True):
        bins = _merged(bins)
        low, high = bins["low"].to_numpy(float), bins["high"].to_numpy(float)
        part = bins[["ensemble", "d_k", "count", "n_scores"]].copy()
        part["low"], part["high"] = low / d_k**0.5, high / d_k**0.5
        part["share"] = bins["count"] / bins["n_scores"]
        part["exact_share"] = gaussian_cumulative(high, d_k) - gaussian_cumulative(low, d_k)
        part["normal_share"] = _normal(part["high"].to_numpy()) - _normal(part["low"].to_numpy())
        parts.append(part)
    import pandas as pd

    result = pd.concat(parts, ignore_index=True)
    width = (result["high"] - result["low"]).where(lambda values: np.isfinite(values))
    for name in ("", "exact_", "normal_"):
        result[f"{name}density"] = result[f"{name}share"] / width
    return result


def _merged(bins):
    """Return at most `_MOST_BINS` finite bins in a row, from equal narrow ones, and an open bin at either end.

    The table leaves out empty bins; here they are bins with a count of 0. Edges stand at multiples of the new width.
    """
    import numpy as np
    import pandas as pd

    low, high, count = (bins[name].to_numpy(float) for name in ("low", "high", "count"))
    closed = np.isfinite(low) & np.isfinite(high)
    first, last = high[~np.isfinite(low)], low[~np.isfinite(high)]
    first = first[0] if len(first) else low[closed].min()
    last = last[0] if len(last) else high[closed].max()
    narrow = (high - low)[closed].min(initial=last - first)
    width = narrow * max(1, -(-round((last - first) / narrow) // _MOST_BINS))
    inner = width * np.arange(np.ceil(first / width), np.floor(last / width) + 1)
    edges = np.concatenate([[-np.inf, first], inner[(inner > first) & (inner < last)], [last, np.inf]])
    middle = np.where(closed, (low + high) / 2, np.where(np.isfinite(low), np.inf, -np.inf))
    place = np.clip(np.searchsorted(edges, middle, side="right") - 1, 0, len(edges) - 2)
    merged = pd.DataFrame({"low": edges[:-1], "high": edges[1:]})
    merged["count"] = np.bincount(place, weights=count, minlength=len(merged)).astype(int)
    merged["ensemble"], merged["d_k"], merged["n_scores"] = (
        bins[name].iloc[0] for name in ("ensemble", "d_k", "n_scores")
    )
    return merged


def _normal(score):
    from scipy.special import ndtr

    return ndtr(score)


@saving.styled
def draw(frames):
    """Draw one panel per width on a log axis: bins as points, the exact density and the normal as lines."""
    table = data(frames)
    if table.empty:
        return panels.statement(_NOTHING)
    widths = selection.order(table["d_k"])
    n_rows, n_columns = panels.grid_shape(len(widths), 2)
    figure = panels.figure(0.5 + 2.3 * n_rows)
    grid = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    reach = _limits(grid[0][0], table)
    for position, (axes, d_k) in enumerate(zip(grid.flat, widths, strict=False)):
        _draw_width(axes, table[table["d_k"] == d_k], d_k, reach)
        axes.set_title(f"dₖ = {d_k}", pad=3)
        axes.tick_params(labelbottom=position + n_columns >= len(widths))
        if position + n_columns >= len(widths):
            axes.set_xlabel("q·k / √dₖ")
        if position % n_columns == 0:
            axes.set_ylabel("density")
    for axes in grid.flat[len(widths) :]:
        axes.set_axis_off()
    figure.legend(handles=_legend(), loc="outside lower center", ncols=3)
    return figure


_MEASURED = style.Look("simulated", "#2b83d6", "o", style.SOLID)
_EXACT = style.Look("exact law", "#d55e00", "", style.SOLID)
_NORMAL = style.Look("normal, same variance", style.INK, "", style.DASHED)


def _legend() -> list:
    return [panels.key(_MEASURED, line=False), panels.key(_EXACT), panels.key(_NORMAL, alpha=style.MUTED)]


def _limits(axes, table) -> float:
    """Set the ranges that all panels share, from what was counted, and return the reach in standard deviations."""
    seen = table[table["density"] > 0]
    reach = min(max(seen["high"].max(), -seen["low"].min()), _WIDEST) if len(seen) else 5.0
    panels.log_heights(axes, most=6)
    axes.set_xlim(-reach, reach)
    axes.set_ylim(seen["density"].min() / 3 if len(seen) else 1e-6, 3)
    return reach


def _draw_width(axes, bins, d_k: int, reach: float) -> None:
    import numpy as np

    from sqrtdk.densities import gaussian_density

    inside = bins[bins["density"].notna()]
    score = np.linspace(-reach, reach, 402)
    exact = gaussian_density(score * d_k**0.5, d_k) * d_k**0.5
    axes.plot(
        score,
        np.exp(-(score**2) / 2) / np.sqrt(2 * np.pi),
        color=style.INK,
        linestyle=style.DASHED,
        linewidth=1,
        alpha=style.MUTED,
        label="_theory",
    )
    middle = (inside["low"] + inside["high"]) / 2
    nowhere = np.full(len(inside), np.nan)
    panels.points(axes, middle, inside["density"], nowhere, nowhere, _MEASURED, size=2.6)
    axes.plot(score, exact, color=_EXACT.colour, linewidth=1.1, label="_theory")


def _distances(table):
    """Return, for each width, the largest distance between cumulative shares: measured to exact, normal to exact."""
    rows = {}
    for d_k, bins in table.groupby("d_k", sort=True):
        cumulative = bins[["share", "exact_share", "normal_share"]].cumsum()
        rows[d_k] = (
            (cumulative["share"] - cumulative["exact_share"]).abs().max(),
            (cumulative["normal_share"] - cumulative["exact_share"]).abs().max(),
            int(bins["n_scores"].iloc[0]),
        )
    return rows


def describe(frames) -> Description:
    """Put the figure into words."""
    table = data(frames)
    if table.empty:
        return Description(_NOTHING, _NOTHING, _NOTHING, "")
    distances = _distances(table)
    return Description(_caption(table, distances), _alt(distances), _reading(distances), _caveat(table))


def _caption(table, distances) -> str:
    samples = numbers.listing([f"{numbers.count(n)} at d_k = {d_k}" for d_k, (_, _, n) in distances.items()])
    return (
        f"Distribution of q·k for {style.ensemble_label(table['ensemble'].iloc[0])} components in units of its "
        "standard deviation √d_k, on a log axis. Points: share of simulated scores in a bin over its width. Solid "
        "line: exact density |s|^v K_v(|s|) / (√π Γ(d_k/2) 2^v) with v = (d_k − 1)/2. Dashed line: normal density of "
        f"the same variance. Scores: {samples}."
    )


def _alt(distances) -> str:
    parts = [
        f"d_k = {d_k}: simulated {numbers.significant(measured, 2)}, normal {numbers.significant(normal, 2)}"
        for d_k, (measured, normal, _) in distances.items()
    ]
    return (
        "Densities of the scaled score on a log axis with straight, heavier tails than the parabola of the normal, "
        f"most at small d_k. Largest distance from the exact cumulative law, {'; '.join(parts)}."
    )


def _reading(distances) -> str:
    fits = [d_k for d_k, (measured, normal, _) in distances.items() if measured < normal / 3]
    fails = [d_k for d_k in distances if d_k not in fits]
    words = []
    if fits:
        worst = max(distances[d_k][0] for d_k in fits)
        words.append(
            f"At d_k = {numbers.listing(map(str, fits))} the simulated distribution lies much closer to the exact law "
            f"than the normal does: at most {numbers.significant(worst, 2)} from it in cumulative share."
        )
    if fails:
        words.append(
            f"At d_k = {numbers.listing(map(str, fails))} the simulated distribution is not clearly closer to the "
            "exact law than the normal is; there the histogram cannot tell the two apart, or the simulation is wrong."
        )
    widths = list(distances)
    first, last = distances[widths[0]][1], distances[widths[-1]][1]
    if len(widths) > 1 and last < first:
        words.append(
            "The normal comes closer as heads get wider: its largest error falls from "
            f"{numbers.significant(first, 2)} at d_k = {widths[0]} to {numbers.significant(last, 2)} at d_k = "
            f"{widths[-1]}. Its tails stay too light, for those of the score fall exponentially."
        )
    return " ".join(words)


def _caveat(table) -> str:
    outside = table[table["density"].isna()]
    share = outside["count"].sum() / table.groupby("d_k")["n_scores"].first().sum()
    return (
        "No error bars: the scores of a block share queries and keys, so that a binomial error would be too small. "
        f"Scores beyond the outermost bins (a share of {numbers.significant(float(share), 2)}) count in the distances "
        "and are not drawn. The law holds for independent standard normal components only."
    )
