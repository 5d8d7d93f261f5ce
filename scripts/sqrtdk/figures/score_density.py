"""Figure: the distribution of Gaussian scores against its exact law."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqrtdk.figures import panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "atlas/scores"
INPUTS = ("score_histograms",)

_MOST_BINS = 64
_WIDEST = 8.0
_SHOWN = (1, 2, 8, 64)
_COUNTED = 25
"""A quantile needs as many scores beyond it."""


def _shown(widths: list[int]) -> list[int]:
    """Return the widths to draw: those of the standard set, else up to four evenly among what there is."""
    present = [width for width in _SHOWN if width in widths]
    if present:
        return present
    step = max(1, -(-len(widths) // 4))
    return sorted(widths)[::step]


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per finite bin of the widths that are drawn, then one per width for the distances.

    panel `density`: measured density, exact density averaged over the bin, and the normal's; scores are in units of
    their standard deviation √d_k in `low` and `high`, densities per such unit. `exact_quantile` is where the exact law
    has the measured share of scores below `high`, `normal_quantile` where the normal law has it.
    panel `distance`: largest distance of the cumulative shares from the normal law, measured at the edges of the bins
    and exact, and the limiting law of the latter.
    """
    import pandas as pd

    table = _ours(frames["score_histograms"])
    if table.empty:
        return table
    shown = _shown(selection.order(table["d_k"]))
    groups = list(table.groupby("d_k", sort=True))
    parts = [_density(d_k, bins) for d_k, bins in groups if d_k in shown]
    distances = [_distance(d_k, bins) for d_k, bins in groups]
    return pd.concat([*parts, pd.DataFrame(distances)], ignore_index=True)


def _ours(table: pd.DataFrame) -> pd.DataFrame:
    """Return the histograms of independent standard Gaussian components: the ensemble of that name, or the first."""
    return table if table.empty else table[table["ensemble"] == selection.front(table)]


def _density(d_k: int, bins: pd.DataFrame) -> pd.DataFrame:
    import numpy as np

    from sqrtdk.sampling.densities import gaussian_cumulative, score_gaussian

    bins = _merged(bins)
    low, high = bins["low"].to_numpy(float), bins["high"].to_numpy(float)
    part = bins[["ensemble", "d_k", "count", "n_scores"]].copy()
    part.insert(0, "panel", "density")
    part["low"], part["high"] = low / d_k**0.5, high / d_k**0.5
    part["share"] = bins["count"] / bins["n_scores"]
    part["exact_share"] = gaussian_cumulative(high, d_k) - gaussian_cumulative(low, d_k)
    part["normal_share"] = np.diff(_normal(part["high"].to_numpy()), prepend=0.0)
    width = (part["high"] - part["low"]).where(lambda values: np.isfinite(values))
    for name in ("", "exact_", "normal_"):
        part[f"{name}density"] = part[f"{name}share"] / width
    below, total = part["count"].cumsum(), part["n_scores"]
    known = (below >= _COUNTED) & (total - below >= _COUNTED)
    share = (below / total).where(known).to_numpy(float)
    part["exact_quantile"] = part["normal_quantile"] = np.nan
    part.loc[known, "exact_quantile"] = score_gaussian(d_k).ppf(share[known]) / d_k**0.5
    part.loc[known, "normal_quantile"] = _normal_quantile(share[known])
    return part


def _distance(d_k: int, bins: pd.DataFrame) -> dict[str, Any]:
    from sqrtdk.sampling.densities import normal_distance, normal_distance_law

    inner = bins[bins["high"].abs() < float("inf")]
    share = bins["count"].cumsum()[inner.index] / bins["n_scores"].iloc[0]
    apart = (share - _normal(inner["high"].to_numpy(float) / d_k**0.5)).abs().max()
    row = {"panel": "distance", "ensemble": bins["ensemble"].iloc[0], "d_k": d_k, "n_scores": bins["n_scores"].iloc[0]}
    row |= {"measured_distance": apart, "exact_distance": normal_distance(int(d_k))}
    return row | {"law_distance": normal_distance_law() / d_k}


def _merged(bins: pd.DataFrame) -> pd.DataFrame:
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


def _normal(score: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return ndtr(score)


def _normal_quantile(share: np.ndarray) -> np.ndarray:
    from scipy.special import ndtri

    return ndtri(share)


@saving.styled(data, "No histogram of scores with a known exact law was made.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw one panel per width on a log axis, then the quantiles and the distance from the normal law."""
    bins = table[table["panel"] == "density"]
    widths = selection.order(bins["d_k"])
    n_rows, n_columns = panels.grid_shape(len(widths), 2)
    figure = panels.figure(0.5 + 2.1 * n_rows + 2.5)
    upper, lower = figure.subfigures(2, 1, height_ratios=[0.5 + 2.1 * n_rows, 2.5])
    grid = upper.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    reach = _limits(grid[0][0], bins)
    for position, (axes, d_k) in enumerate(zip(grid.flat, widths, strict=False)):
        _draw_width(axes, bins[bins["d_k"] == d_k], d_k, reach)
        axes.set_title(f"dₖ = {d_k}", pad=3)
        axes.tick_params(labelbottom=position + n_columns >= len(widths))
        if position + n_columns >= len(widths):
            axes.set_xlabel("q·k / √dₖ")
        if position % n_columns == 0:
            axes.set_ylabel("density")
    for axes in grid.flat[len(widths) :]:
        axes.set_axis_off()
    upper.legend(handles=_legend(), loc="outside lower center", ncols=3)
    left, right = lower.subplots(1, 2)
    _draw_quantiles(left, bins, widths)
    _draw_distances(right, table[table["panel"] == "distance"])
    return figure


def _draw_quantiles(axes: Axes, bins: pd.DataFrame, widths: list[int]) -> None:
    """Draw measured against exact quantiles, and where a normal score would lie."""
    import numpy as np

    looks = style.sequence(widths)
    for d_k in widths:
        part = bins[(bins["d_k"] == d_k) & bins["exact_quantile"].notna()]
        nowhere = np.full(len(part), np.nan)
        axes.plot(
            part["exact_quantile"],
            part["normal_quantile"],
            color=looks[d_k].colour,
            linestyle=looks[d_k].dash,
            linewidth=1,
            label="_theory",
        )
        panels.points(axes, part["exact_quantile"], part["high"], nowhere, nowhere, looks[d_k], size=2.4)
    seen = selection.finite(bins[["exact_quantile"]])
    ends = [seen.min(initial=-1.0), seen.max(initial=1.0)]
    axes.plot(ends, ends, color=style.INK, linewidth=0.8, alpha=style.MUTED, label="_reference")
    axes.set_xlabel("exact quantile / √dₖ")
    axes.set_ylabel("measured quantile / √dₖ")
    axes.legend(handles=[panels.key(looks[d_k], label=f"dₖ = {d_k}", markersize=3) for d_k in widths], fontsize=8)


def _draw_distances(axes: Axes, distances: pd.DataFrame) -> None:
    """Draw the largest distance of the cumulative law from the normal one against d_k."""
    import numpy as np

    axes.set_yscale("log")
    panels.theory(axes, distances["d_k"], distances["law_distance"], _NORMAL)
    panels.theory(axes, distances["d_k"], distances["exact_distance"], _EXACT)
    nowhere = np.full(len(distances), np.nan)
    panels.points(axes, distances["d_k"], distances["measured_distance"], nowhere, nowhere, _MEASURED, size=3.4)
    panels.log_heights(axes)
    panels.log_ticks(axes)
    panels.d_k_axis(axes, distances["d_k"], most=4)
    axes.set_ylabel("sup |F − Φ|")
    keys = [panels.key(_NORMAL, label=f"{numbers.significant(_law(distances), 4)} / dₖ", alpha=style.MUTED)]
    axes.legend(handles=keys, loc="upper right", fontsize=8)


def _law(distances: pd.DataFrame) -> float:
    return float((distances["law_distance"] * distances["d_k"]).iloc[0])


_MEASURED = style.Look("simulated", "#8158ee", "o", style.SOLID)
_EXACT = style.Look("exact law", "#d81e4a", "", style.SOLID)
_NORMAL = style.Look("normal, same variance", style.INK, "", style.DASHED)


def _legend() -> list[Any]:
    return [panels.key(_MEASURED, line=False), panels.key(_EXACT), panels.key(_NORMAL, alpha=style.MUTED)]


def _limits(axes: Axes, table: pd.DataFrame) -> float:
    """Set the ranges that all panels share, from what was counted, and return the reach in standard deviations."""
    seen = table[table["density"] > 0]
    reach = min(max(seen["high"].max(), -seen["low"].min()), _WIDEST) if len(seen) else 5.0
    panels.log_heights(axes, most=6)
    axes.set_xlim(-reach, reach)
    axes.set_ylim(seen["density"].min() / 3 if len(seen) else 1e-6, 3)
    return reach


def _draw_width(axes: Axes, bins: pd.DataFrame, d_k: int, reach: float) -> None:
    import numpy as np

    from sqrtdk.sampling.densities import gaussian_density

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


def _distances(table: pd.DataFrame) -> dict[int, tuple[float, float, int]]:
    """Return, for each width, the largest distance between cumulative shares: measured to exact, normal to exact."""
    rows = {}
    for d_k, bins in table[table["panel"] == "density"].groupby("d_k", sort=True):
        cumulative = bins[["share", "exact_share", "normal_share"]].cumsum()
        rows[d_k] = (
            (cumulative["share"] - cumulative["exact_share"]).abs().max(),
            (cumulative["normal_share"] - cumulative["exact_share"]).abs().max(),
            int(bins["n_scores"].iloc[0]),
        )
    return rows


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    rows, distances = table[table["panel"] == "distance"], _distances(table)
    reading = (*_reading(distances), *_rate(rows))
    caveat = Sentence("caveat", {"share": numbers.significant(_share_outside(table), 2)})
    return Description((_caption(table, rows, distances),), (_alt(distances),), reading, (caveat,))


def _caption(table: pd.DataFrame, rows: pd.DataFrame, distances: dict[int, tuple[float, float, int]]) -> Sentence:
    samples = [
        Sentence("caption.scores", {"n": numbers.count(n), "d_k": numbers.count(d_k)})
        for d_k, (_, _, n) in distances.items()
    ]
    values = {"label": style.ensemble_label(table["ensemble"].iloc[0]), "counted": numbers.count(_COUNTED)}
    law = numbers.significant(_law(rows), 4)
    return Sentence("caption.all", values | {"samples": Listing(tuple(samples)), "law": law})


def _alt(distances: dict[int, tuple[float, float, int]]) -> Sentence:
    parts = [
        Sentence(
            "alt.at",
            {
                "d_k": numbers.count(d_k),
                "measured": numbers.significant(measured, 2),
                "normal": numbers.significant(normal, 2),
            },
        )
        for d_k, (measured, normal, _) in distances.items()
    ]
    return Sentence("alt.all", {"parts": Listing(tuple(parts), "semicolon")})


def _reading(distances: dict[int, tuple[float, float, int]]) -> Iterator[Sentence]:
    """Say which law the simulated scores follow, and how the normal one approaches it."""
    fits = [d_k for d_k, (measured, normal, _) in distances.items() if measured < normal / 3]
    fails = [d_k for d_k in distances if d_k not in fits]
    if fits:
        worst = max(distances[d_k][0] for d_k in fits)
        values = {"d_k": speaking.counts(fits), "worst": numbers.significant(worst, 2)}
        yield Sentence("reading.fits", values)
    if fails:
        yield Sentence("reading.fails", {"d_k": speaking.counts(fails)})
    widths = list(distances)
    first, last = distances[widths[0]][1], distances[widths[-1]][1]
    if len(widths) > 1 and last < first:
        values = {"first": numbers.significant(first, 2), "last": numbers.significant(last, 2)}
        yield Sentence("reading.closer", values | {"low": numbers.count(widths[0]), "high": numbers.count(widths[-1])})


def _rate(distances: pd.DataFrame) -> Iterator[Sentence]:
    """Say how fast the exact law approaches the normal one, and from where on its limiting law is good."""
    apart = (distances["exact_distance"] / distances["law_distance"] - 1).abs()
    good = distances["d_k"][apart < 0.01]
    if len(good) and len(distances) > 1:
        values = {"law": numbers.significant(_law(distances), 4), "good": numbers.count(good.min())}
        values |= {"d_k": numbers.count(distances["d_k"].max())}
        yield Sentence("reading.rate", values | {"last": numbers.significant(distances["exact_distance"].iloc[-1], 2)})


def _share_outside(table: pd.DataFrame) -> float:
    """Return the share of scores beyond the outermost bins."""
    bins = table[table["panel"] == "density"]
    outside = bins.loc[bins["density"].isna(), "count"].sum()
    return float(outside / bins.groupby("d_k")["n_scores"].first().sum())
