"""Figure: whether the errors of the simulation are right, by the distances from the exact values in standard errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sqrtdk.figures import panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.results import picking
from sqrtdk.statistics import intervals, shares
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "atlas/methods"
INPUTS = ("moments",)

_QUANTITIES = ("mean", "variance", "excess_kurtosis")
_WORDS = {"mean": "mean", "variance": "variance", "excess_kurtosis": "excess kurtosis"}
_FAR = 5.0
_NAMED, _MOST_NAMED = 3.5, 1


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per test: z = (estimate − exact)/se, its normal quantile by rank, and that rank's 95 % band."""
    import pandas as pd

    moments = picking.simulated(frames["moments"])
    parts = [_scores(moments, name) for name in _QUANTITIES] if not moments.empty else []
    parts = [part for part in parts if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _scores(moments: pd.DataFrame, name: str) -> pd.DataFrame:
    import numpy as np
    from scipy.special import betaincinv, ndtri

    exact, se = moments[f"exact_{name}"], moments[f"{name}_se"]
    use = exact.notna() & moments[name].notna() & (se > 0)
    if name == "excess_kurtosis":
        use &= moments["kurtosis_trusted"]
    cells = moments.loc[use, ["ensemble", "d_k"]].copy()
    cells.insert(0, "quantity", name)
    cells["z"] = ((moments[name] - exact) / se)[use]
    cells = cells.sort_values("z", kind="stable").reset_index(drop=True)
    rank, total = np.arange(1, len(cells) + 1), len(cells)
    cells["normal_quantile"] = ndtri((rank - 0.5) / total) if total else []
    cells["band_low"] = ndtri(betaincinv(rank, total + 1 - rank, 0.025)) if total else []
    cells["band_high"] = ndtri(betaincinv(rank, total + 1 - rank, 0.975)) if total else []
    return cells


@saving.styled(data, "No simulated cell has both an error and an exact value to be held against.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a normal quantile plot per quantity with the band of 95 % for each rank."""
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


_LOOK = style.Look("", "#8158ee", "o", style.SOLID)


def _draw_quantity(axes: Axes, part: pd.DataFrame, name: str) -> None:
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
    inside = int((part["z"].abs() <= intervals.NORMAL).sum())
    axes.set_title(f"{_WORDS[name]}\n|z| < 1.96: {inside} of {len(part)}", fontsize=9)
    axes.set_xlabel("normal quantile")
    axes.set_xticks([-2, 0, 2], ["−2", "0", "2"])
    axes.yaxis.set_major_formatter(panels.tick_text)


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    groups = list(table.groupby("quantity", sort=False))
    return Description(_caption(groups), _alt(groups), (_shares(groups), _tail(table)), tuple(_caveat(frames, table)))


def _quantity(name: str) -> Sentence:
    return Sentence(f"quantities.{name}")


def _caption(groups: list[tuple[str, pd.DataFrame]]) -> tuple[Sentence, ...]:
    counts = [
        Sentence("caption.count", {"n": numbers.count(len(part)), "quantity": _quantity(name)}) for name, part in groups
    ]
    return (Sentence("caption.all", {"counts": Listing(tuple(counts))}),)


def _inside(part: pd.DataFrame) -> int:
    return int((part["z"].abs() <= intervals.NORMAL).sum())


def _share(name: str, part: pd.DataFrame) -> dict[str, object]:
    """Return the values of a sentence on how many z of a quantity are within the bound."""
    inside, total = _inside(part), len(part)
    interval = speaking.ends(numbers.percent(end) for end in shares.clopper_pearson(inside, total))
    values = {"inside": numbers.count(inside), "total": numbers.count(total), "share": numbers.percent(inside / total)}
    return values | {"quantity": _quantity(name), "interval": interval}


def _alt(groups: list[tuple[str, pd.DataFrame]]) -> tuple[Sentence, ...]:
    parts = [
        Sentence("alt.part", _share(name, part) | {"worst": numbers.significant(part["z"].abs().max(), 3)})
        for name, part in groups
    ]
    return (Sentence("alt.all", {"parts": Listing(tuple(parts), "semicolon")}),)


def _shares(groups: list[tuple[str, pd.DataFrame]]) -> Sentence:
    """Hold the shares against 95 %."""
    parts = [
        Sentence(
            f"reading.share.{'nominal' if shares.is_nominal(_inside(part) / len(part), len(part)) else 'wrong'}",
            _share(name, part),
        )
        for name, part in groups
    ]
    return Sentence("reading.shares", {"parts": Listing(tuple(parts), "semicolon")})


def _tail(table: pd.DataFrame) -> Sentence:
    """Name the cells that are too far away for chance, the farthest first."""
    far = table[table["z"].abs() > _FAR].sort_values("z", key=abs, ascending=False, kind="stable")
    limit = numbers.significant(_FAR)
    if far.empty:
        return Sentence("reading.calm", {"limit": limit})
    cells = [
        Sentence(
            "reading.cell",
            {
                "quantity": _quantity(row.quantity),
                "cell": speaking.at_width(row.ensemble, row.d_k),
                "z": numbers.significant(row.z),
            },
        )
        for row in far.itertuples()
    ]
    return speaking.counted(len(far), "reading.far", limit=limit, cells=speaking.few(cells))


def _caveat(frames: Mapping[str, pd.DataFrame], table: pd.DataFrame) -> Iterator[Sentence]:
    moments = picking.simulated(frames["moments"])
    left_out = len(moments) - int((table["quantity"] == "excess_kurtosis").sum())
    yield Sentence("caveat.all")
    if left_out:
        yield speaking.counted(left_out, "caveat.left_out", total=numbers.count(len(moments)))
