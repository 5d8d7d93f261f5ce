"""Figure: whether the errors of the simulation are right, by the distances from the exact values in standard errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sqrtdk.figures import panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.statistics import intervals
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "atlas/methods"
INPUTS = ("moments", "softmax_saturation", "gradient_magnitude")

_WORDS = {
    "mean": "mean",
    "variance": "variance",
    "excess_kurtosis": "excess kurtosis",
    "softmax": "softmax",
    "gradients": "gradients",
}
_QUANTITIES = tuple(_WORDS)
_FAR = 5.0
_NAMED, _MOST_NAMED = 3.5, 1
_COLUMNS = 3
_SHOWN, _ENDS = 160, 20
"""Ranks that are drawn of a long list, and how many of them at either end without a gap."""


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return a row for each rank that is drawn: z = (estimate − exact)/se, its normal quantile and its 95 % band."""
    import pandas as pd

    found = _distances(frames)
    parts = [_ranked(part, name) for name, part in found.items() if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _distances(frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    import pandas as pd

    from sqrtdk.results import distances

    tables = [distances.moments(frames["moments"])] if len(frames["moments"]) else []
    if len(frames["softmax_saturation"]):
        tables.append(distances.rows(frames["softmax_saturation"], frames["gradient_magnitude"]))
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame({"quantity": []})
    return {name: table[table["quantity"] == name] for name in _QUANTITIES}


def _ranked(part: pd.DataFrame, name: str) -> pd.DataFrame:
    import numpy as np
    from scipy.special import betaincinv, ndtri

    cells = part[["ensemble", "d_k", "z"]].sort_values("z", kind="stable").reset_index(drop=True)
    cells.insert(0, "quantity", name)
    rank, total = np.arange(1, len(cells) + 1), len(cells)
    cells["normal_quantile"] = ndtri((rank - 0.5) / total)
    cells["band_low"] = ndtri(betaincinv(rank, total + 1 - rank, 0.025))
    cells["band_high"] = ndtri(betaincinv(rank, total + 1 - rank, 0.975))
    if total <= _SHOWN:
        return cells
    inner = np.linspace(_ENDS, total - 1 - _ENDS, _SHOWN - 2 * _ENDS).round().astype(int)
    return cells.iloc[[*range(_ENDS), *inner, *range(total - _ENDS, total)]]


@saving.styled(data, "No simulated cell has both an error and an exact value to be held against.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a normal quantile plot per quantity with the band of 95 % for each rank."""
    names, found = selection.order(table["quantity"]), _distances(frames)
    figure = panels.figure(2.7 if len(names) <= _COLUMNS else 5.0)
    grid = figure.subplots(-(-len(names) // _COLUMNS), _COLUMNS, sharex=True, sharey=True, squeeze=False)
    for axes, name in zip(grid.flat, names, strict=False):
        _draw_quantity(axes, table[table["quantity"] == name], name, found[name])
    for axes in grid.flat[len(names) :]:
        axes.set_axis_off()
    for row in grid:
        row[0].set_ylabel("(estimate − exact) / se")
    reach = max(3.2, 1.08 * table["z"].abs().max())
    grid[0][0].set_ylim(-reach, reach)
    return figure


_LOOK = style.Look("", "#8158ee", "o", style.SOLID)


def _draw_quantity(axes: Axes, part: pd.DataFrame, name: str, whole: pd.DataFrame) -> None:
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
    axes.set_title(f"{_WORDS[name]}\n|z| < 1.96: {_inside(whole)} of {len(whole)}", fontsize=9)
    axes.set_xlabel("normal quantile")
    axes.set_xticks([-2, 0, 2], ["−2", "0", "2"])
    axes.yaxis.set_major_formatter(panels.tick_text)


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    groups = {name: part for name, part in _distances(frames).items() if len(part)}
    return Description(_caption(groups), _alt(groups), (_shares(groups), _tail(groups)), tuple(_caveat(groups)))


def _quantity(name: str) -> Sentence:
    return Sentence(f"quantities.{name}")


def _caption(groups: Mapping[str, pd.DataFrame]) -> tuple[Sentence, ...]:
    counts = [
        Sentence("caption.count", {"n": numbers.count(len(part)), "quantity": _quantity(name)})
        for name, part in groups.items()
    ]
    thinned = max(len(part) for part in groups.values()) > _SHOWN
    more = (Sentence("caption.thinned", {"shown": numbers.count(_SHOWN)}),) if thinned else ()
    return (Sentence("caption.all", {"counts": Listing(tuple(counts))}), *more)


def _inside(part: pd.DataFrame) -> int:
    return int((part["z"].abs() <= intervals.NORMAL).sum())


def _alt(groups: Mapping[str, pd.DataFrame]) -> tuple[Sentence, ...]:
    parts = []
    for name, part in groups.items():
        values = {"inside": numbers.count(_inside(part)), "total": numbers.count(len(part))}
        worst = numbers.significant(part["z"].abs().max(), 3)
        parts.append(Sentence("alt.part", values | {"quantity": _quantity(name), "worst": worst}))
    return (Sentence("alt.all", {"parts": Listing(tuple(parts), "semicolon")}),)


def _shares(groups: Mapping[str, pd.DataFrame]) -> Sentence:
    """Say of each quantity how many intervals hold the exact value, and by how much the errors are off."""
    from sqrtdk.statistics import calibration

    parts = []
    for name, part in groups.items():
        found = calibration.calibrate(part["score"].to_numpy(), part["unit"].to_numpy())
        values = {"share": numbers.percent(found.share), "quantity": _quantity(name)}
        if found.enough:
            values |= {"interval": numbers.interval(100 * found.share_low, 100 * found.share_high)}
            values |= {"ratio": numbers.significant(found.ratio, 3)}
            values |= {"ratio_interval": numbers.interval(found.ratio_low, found.ratio_high)}
        verdict = "few" if not found.enough else "right" if found.right else "wrong"
        parts.append(Sentence(f"reading.share.{verdict}", values))
    return Sentence("reading.shares", {"parts": Listing(tuple(parts), "semicolon")})


def _tail(groups: Mapping[str, pd.DataFrame]) -> Sentence:
    """Name the cells that are too far away for chance, the farthest first."""
    import pandas as pd

    table = pd.concat(groups.values())
    far = table[(table["z"].abs() > _FAR) & table["trusted"]].sort_values("z", key=abs, ascending=False, kind="stable")
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


def _caveat(groups: Mapping[str, pd.DataFrame]) -> Iterator[Sentence]:
    flagged = sum(int((~part["trusted"]).sum()) for part in groups.values())
    yield Sentence("caveat.all")
    if flagged:
        total = sum(len(part) for part in groups.values())
        yield speaking.counted(flagged, "caveat.flagged", total=numbers.count(total))
