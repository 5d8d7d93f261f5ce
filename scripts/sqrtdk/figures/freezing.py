"""Figure: from what spread of the logits on softmax puts its weight on a few keys; simulated, exact and asymptotic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sqrtdk.figures import energy_curves, panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.statistics import intervals
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "atlas/attention"
INPUTS = ("random_energy", "random_energy_curves", "asymptotic_ranges")

_MEASURES = ("participation_ratio", "entropy")
_LABELS = {"participation_ratio": "participation Σp²", "entropy": "entropy / ln n"}
_WANTED = (16, 256, 4096)
_SCALED, _UNSCALED = 1.0, 8.0
_HIDDEN = 0.02
_EXACT = style.Look("exact", style.INK, "", style.SOLID)
_SIMULATED = style.Look("simulated", "#8158ee", "o", style.SOLID)
_LAWS = {
    "hot": style.Look("n → ∞, hot", "#c44fb0", "", style.DOTTED),
    "frozen": style.Look("n → ∞, frozen", "#8a5e10", "", style.DASHED),
    "hazard": style.Look("frozen, corrected", "#2e767f", "", style.DASHDOT),
}


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the simulated rows with intervals, then the curves; entropies over ln n."""
    import numpy as np
    import pandas as pd

    table, curves = frames["random_energy"], frames["random_energy_curves"]
    if table.empty:
        return table
    n_keys = energy_curves.chosen(table, _WANTED)
    spreads = table["logit_std"]
    result = [
        energy_curves.points(table, n_keys, _MEASURES),
        energy_curves.lines(curves, n_keys, _MEASURES, spreads.min() / 1.5, spreads.max() * 1.5),
    ]
    result = pd.concat([part for part in result if not part.empty], ignore_index=True)
    values = [c for c in ("estimate", "se", "low", "high", "exact", *_LAWS) if c in result]
    unit = np.where(result["measure"] == "entropy", np.log(result["n_keys"]), 1.0)
    result[values] = result[values].div(unit, axis=0)
    return result


@saving.styled(data, "No softmax over Gaussian logits was simulated.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a column for each number of keys: participation ratio above, entropy below."""
    from sqrtdk.theory import asymptotics

    n_keys = sorted(selection.order(table["n_keys"]))
    figure = panels.figure(4.3)
    grid = figure.subplots(len(_MEASURES), len(n_keys), sharex=True, sharey=True, squeeze=False)
    spreads = table.loc[table["estimate"].notna(), "logit_std"]
    for row, measure in enumerate(_MEASURES):
        for axes, n in zip(grid[row], n_keys, strict=True):
            _panel(axes, table[(table["measure"] == measure) & (table["n_keys"] == n)])
            energy_curves.spread_axis(axes, spreads, "s" if row == len(_MEASURES) - 1 else None)
            axes.axvspan(
                min(asymptotics.critical_spread(n), axes.get_xlim()[1]),
                axes.get_xlim()[1],
                color=style.INK,
                alpha=style.FAINT / 2,
                linewidth=0,
                zorder=0,
            )
            axes.set_ylim(-0.03, 1.06)
            axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
            if row == 0:
                axes.set_title(f"n = {numbers.count(n)}")
        grid[row][0].set_ylabel(_LABELS[measure])
    _legend(figure)
    return figure


def _panel(axes: Axes, rows: pd.DataFrame) -> None:
    for spread, dash in ((_SCALED, style.DOTTED), (_UNSCALED, style.DASHED)):
        axes.axvline(spread, color=style.INK, alpha=style.MUTED, linewidth=0.7, linestyle=dash, label="_mark")
    curves = rows[rows["estimate"].isna()]
    if len(curves):
        for name, look in _LAWS.items():
            panels.theory(axes, curves["logit_std"], curves[name], look, width=1.7)
        panels.theory(axes, curves["logit_std"], curves["exact"], _EXACT, width=0.8)
    simulated = rows[rows["estimate"].notna()]
    # An interval that its marker hides would only make the file larger.
    ends = simulated[["low", "high"]].where(simulated["high"] - simulated["low"] > _HIDDEN)
    for trusted in (True, False):
        part = simulated["trusted"] == trusted
        panels.points(
            axes,
            simulated.loc[part, "logit_std"],
            simulated.loc[part, "estimate"],
            ends.loc[part, "low"],
            ends.loc[part, "high"],
            _SIMULATED,
            hollow=not trusted,
            size=2.8,
        )


def _legend(figure: Figure) -> None:
    from matplotlib.patches import Patch

    curves = [panels.key(_SIMULATED, linestyle="none"), panels.key(_EXACT)]
    figure.legend(handles=curves + [panels.key(look) for look in _LAWS.values()], loc="outside upper center", ncols=3)
    marks = [
        panels.key(style.Look(label, style.INK, "", dash), label=label, linewidth=0.7, alpha=style.MUTED)
        for label, dash in (("s = 1, scaled", style.DOTTED), ("s = 8, unscaled at dₖ = 64", style.DASHED))
    ]
    marks.append(Patch(color=style.INK, alpha=style.FAINT, linewidth=0, label="s > √(2 ln n)"))
    figure.legend(handles=marks, loc="outside lower center", ncols=3)


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    n_keys = sorted(selection.order(table["n_keys"]))
    curves = frames["random_energy_curves"]
    reading = (
        *_halves(curves, n_keys),
        *_marks(curves, n_keys),
        *_misses(curves, n_keys),
        *_ranges(frames["asymptotic_ranges"], n_keys),
        *_agreement(frames),
    )
    return Description(_caption(table, n_keys), _alt(table, n_keys), reading, (Sentence("caveat"),))


def _caption(table: pd.DataFrame, n_keys: list[int]) -> tuple[Sentence, ...]:
    simulated = table[table["estimate"].notna()]
    values = {"n_keys": speaking.counts(n_keys), "rows": speaking.span(simulated["n_rows"])}
    hollow = () if simulated["trusted"].all() else (Sentence("caption.hollow"),)
    return Sentence("caption.all", values), *hollow


def _alt(table: pd.DataFrame, n_keys: list[int]) -> tuple[Sentence, ...]:
    parts = []
    for n in n_keys:
        rows = table[(table["n_keys"] == n) & table["estimate"].notna()].sort_values("logit_std")
        moves = []
        for measure in _MEASURES:
            part = rows[rows["measure"] == measure]
            if len(part):
                first, last = (
                    numbers.with_error(row["estimate"], row["se"]) for _, row in part.iloc[[0, -1]].iterrows()
                )
                moves.append(Sentence(f"alt.{measure}", {"first": first, "last": last}))
        parts.append(Sentence("alt.at", {"n": numbers.count(n), "moves": Listing(tuple(moves))}))
    spreads = table.loc[table["estimate"].notna(), "logit_std"]
    span = {"low": numbers.significant(spreads.min()), "high": numbers.significant(spreads.max())}
    return (Sentence("alt.all", span | {"parts": Listing(tuple(parts), "semicolon")}),)


def _halves(curves: pd.DataFrame, n_keys: list[int]) -> tuple[Sentence, ...]:
    """Say where the exact participation ratio is one half, beside √(2 ln n)."""
    from sqrtdk.theory import asymptotics

    halves = {n: energy_curves.crossing(curves, n, "participation_ratio", 0.5) for n in n_keys}
    parts = [
        Sentence(
            "reading.half",
            {"spread": f"{half:.2f}", "n": numbers.count(n), "critical": f"{asymptotics.critical_spread(n):.2f}"},
        )
        for n, half in halves.items()
        if half is not None
    ]
    return (Sentence("reading.halves", {"parts": Listing(tuple(parts))}),) if parts else ()


def _marks(curves: pd.DataFrame, n_keys: list[int]) -> Iterator[Sentence]:
    """Say what the scaled and the unscaled spread mean for each number of keys."""
    for spread, key in ((_SCALED, "scaled"), (_UNSCALED, "unscaled")):
        curve = {n: energy_curves.value(curves, n, "participation_ratio", spread) for n in n_keys}
        ratios = {n: x for n, x in curve.items() if x is not None}
        if not ratios:
            continue
        frozen = [n for n, x in ratios.items() if x > 0.5]
        verdict = "all" if len(frozen) == len(ratios) > 1 else "some" if frozen else "none"
        parts = [
            Sentence("reading.at", {"value": numbers.significant(x, 2), "n": numbers.count(n)})
            for n, x in ratios.items()
        ]
        values = {"spread": f"{spread:g}", "parts": Listing(tuple(parts))}
        sentence = Sentence(f"reading.frozen.{verdict}", {"n_keys": speaking.counts(frozen)})
        yield Sentence(f"reading.{key}", values | {"verdict": sentence})


def _misses(curves: pd.DataFrame, n_keys: list[int]) -> tuple[Sentence, ...]:
    """Say how far the limits are from the exact value at the unscaled spread."""
    parts = []
    for law in ("frozen", "hazard"):
        misses = []
        for n in n_keys:
            exact, limit = (energy_curves.value(curves, n, "participation_ratio", _UNSCALED, x) for x in ("exact", law))
            if exact and limit is not None:
                misses.append(abs(limit / exact - 1))
        if misses:
            ends = dict.fromkeys(numbers.percent(miss, 0) for miss in (min(misses), max(misses)))
            parts.append(Sentence("reading.miss", {"law": Sentence(f"laws.{law}"), "by": speaking.ends(ends)}))
    return (Sentence("reading.misses", {"parts": Listing(tuple(parts), "comma")}),) if parts else ()


def _ranges(table: pd.DataFrame, n_keys: list[int]) -> tuple[Sentence, ...]:
    """Say over which spreads the limits are within a tenth of the exact value."""
    rows = table[(table["measure"] == "participation_ratio") & (table["tolerance"] == 0.1)]
    rows = rows[rows["n_keys"].isin(n_keys)].sort_values("n_keys")
    parts = []
    for law, end in (("hot", "to"), ("frozen", "from"), ("hazard", "from")):
        part = rows[rows["approximation"] == law]
        relative = (part[f"{end}_logit_std"] / part["critical_logit_std"]).dropna()
        if len(relative):
            ends = dict.fromkeys(f"{relative.iloc[i]:.2f}" for i in (0, -1))
            values = {"law": Sentence(f"laws.{law}"), "ends": speaking.ends(ends)}
            parts.append(Sentence(f"reading.range.{end}", values))
    if not parts:
        return ()
    values = {"n_keys": speaking.span(n_keys), "parts": Listing(tuple(parts), "comma")}
    return (Sentence("reading.ranges", values),)


def _agreement(frames: Mapping[str, pd.DataFrame]) -> tuple[Sentence, ...]:
    """Say how far the simulated values are from the exact ones, over the whole table and not only this figure."""
    table = frames["random_energy"]
    use = table[table["trusted"] & table["exact"].notna() & (table["se"] > 0)]
    if use.empty:
        return ()
    z = ((use["estimate"] - use["exact"]) / use["se"]).abs()
    worst = use.loc[z.idxmax()]
    values = {
        "count": numbers.count(len(use)),
        "worst": f"{z.max():.1f}",
        "measure": Sentence(f"shared.measures.{worst['measure']}"),
        "n": numbers.count(worst["n_keys"]),
        "spread": numbers.significant(worst["logit_std"]),
        "share": numbers.percent((z < intervals.NORMAL).mean()),
    }
    return (Sentence(f"reading.agreement.{'good' if z.max() < 5 else 'bad'}", values),)
