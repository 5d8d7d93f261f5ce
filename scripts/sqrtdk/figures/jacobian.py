"""Figure: the size of softmax's Jacobian against the spread of the logits, by three norms and in the median row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqrtdk.figures import energy_curves, panels, saving, selection, speaking, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.figures.style import Look
from sqrtdk.statistics import intervals
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACE = "atlas/gradients"
INPUTS = ("random_energy", "random_energy_curves")

_PANELS = {
    "jacobian_frobenius": "norm ‖J‖ (RMS)",
    "jacobian_trace": "trace Σp(1 − p) (mean)",
    "jacobian_spectral": "largest eigenvalue (RMS)",
    "jacobian_median": "norm ‖J‖ (median)",
}
_WANTED = (16, 64, 256, 1024)
_SCALED, _UNSCALED = 1.0, 8.0
_BOUND = 0.5
_LOWEST = 1e-6
_HIDDEN = 0.05


def data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the simulated rows with intervals, then the curves: exact ones, and the law of the median."""
    import numpy as np
    import pandas as pd

    table = frames["random_energy"]
    if table.empty:
        return table
    n_keys, spreads = energy_curves.chosen(table, _WANTED), table["logit_std"]
    points = energy_curves.points(table, n_keys, tuple(_PANELS))
    median = points["measure"] == "jacobian_median"
    # A median of rows that span decades errs by a factor, and its error is that of the logarithm.
    half = intervals.half_width(points["se"], points["n_rows"])
    factor = np.exp((half / points["estimate"].where(points["estimate"] > 0)).clip(upper=50))
    points["low"] = points["low"].where(~median, points["estimate"] / factor)
    points["high"] = points["high"].where(~median, points["estimate"] * factor)
    curves = frames["random_energy_curves"]
    lines = energy_curves.lines(curves, n_keys, tuple(_PANELS), spreads.min() / 1.5, spreads.max() * 1.5)
    lines["curve"] = lines["exact"].where(lines["measure"] != "jacobian_median", lines["hazard"])
    lines = lines.loc[lines["curve"].notna(), [*energy_curves.KEY, "curve"]]
    return pd.concat([part for part in (points, lines) if not part.empty], ignore_index=True)


@saving.styled(data, "No softmax over Gaussian logits was simulated.")
def draw(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw a panel for each measure, with a look for each number of keys."""
    looks = style.sequence(sorted(selection.order(table["n_keys"])))
    figure = panels.figure(4.6)
    grid = figure.subplots(2, 2, sharex=True, squeeze=False)
    simulated = table["estimate"].notna()
    for i, (axes, (measure, title)) in enumerate(zip(grid.flat, _PANELS.items(), strict=True)):
        axes.set_yscale("log")
        rows = table[table["measure"] == measure]
        for n, look in looks.items():
            _series(axes, rows[rows["n_keys"] == n], look)
        for spread, dash in ((_SCALED, style.DOTTED), (_UNSCALED, style.DASHED)):
            axes.axvline(spread, color=style.INK, alpha=style.MUTED, linewidth=0.7, linestyle=dash, label="_mark")
        if measure == "jacobian_spectral":
            panels.reference(axes, _BOUND)
        energy_curves.spread_axis(axes, table.loc[simulated, "logit_std"], "s" if i > 1 else None)
        _heights(axes, rows.loc[simulated, "estimate"], _BOUND if measure == "jacobian_spectral" else 0.0)
        axes.set_title(title)
    _legend(figure, looks)
    return figure


def _series(axes: Axes, rows: pd.DataFrame, look: Look) -> None:
    curve, simulated = rows[rows["estimate"].isna()], rows[rows["estimate"].notna()]
    if len(curve):
        dash = style.DOTTED if (curve["measure"] == "jacobian_median").any() else style.SOLID
        panels.theory(axes, curve["logit_std"], curve["curve"], style.Look("", look.colour, "", dash), width=1)
    # An interval that its marker hides would only make the file larger.
    ends = simulated[["low", "high"]].where(simulated["high"] - simulated["low"] > _HIDDEN * simulated["estimate"])
    for trusted in (True, False):
        part = simulated["trusted"] == trusted
        x, y = (simulated.loc[part, column] for column in ("logit_std", "estimate"))
        panels.points(axes, x, y, ends.loc[part, "low"], ends.loc[part, "high"], look, hollow=not trusted, size=3)


def _heights(axes: Axes, values: pd.Series, least_top: float) -> None:
    """Keep the panel to what can be read: far down the median only goes on falling."""
    seen = selection.finite(values.to_frame())
    seen = seen[seen > 0]
    if len(seen):
        axes.set_ylim(max(seen.min() / 1.5, _LOWEST), max(seen.max(), least_top) * 1.6)
        panels.log_ticks(axes)
        axes.yaxis.set_major_formatter(panels.tick_text)
        axes.yaxis.set_minor_formatter(lambda *_: "")


def _legend(figure: Figure, looks: dict[int, Look]) -> None:
    handles = [panels.key(look, linestyle="none", label=f"n = {n}") for n, look in looks.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=4)
    lines = (
        ("exact", style.SOLID, 1.0),
        ("2^(1−s/aₙ)", style.DOTTED, 1.0),
        ("s = 1", style.DOTTED, 0.7),
        ("s = 8", style.DASHED, 0.7),
    )
    handles = [
        panels.key(style.Look(label, style.INK, "", dash), linewidth=width, alpha=1 if width == 1 else style.MUTED)
        for label, dash, width in lines
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)


@speaking.described(data)
def describe(table: pd.DataFrame, frames: Mapping[str, pd.DataFrame]) -> Description:
    """Say what the figure shows, for which the words stand in report/words/."""
    n_keys = sorted(selection.order(table["n_keys"]))
    points = table[table["estimate"].notna()]
    curves = frames["random_energy_curves"]
    reading = (*_peaks(curves, n_keys), *_opposite(curves, n_keys), *_median(points, n_keys), *_bound(points))
    return Description(_caption(points, n_keys), _alt(points, n_keys), reading, (Sentence("caveat"),))


def _caption(points: pd.DataFrame, n_keys: list[int]) -> tuple[Sentence, ...]:
    values = {"n_keys": speaking.counts(n_keys), "rows": speaking.span(points["n_rows"])}
    hollow = () if points["trusted"].all() else (Sentence("caption.hollow"),)
    return Sentence("caption.all", values | {"lowest": panels.tick_text(_LOWEST)}), *hollow


def _at(points: pd.DataFrame, n: int, measure: str, spread: float) -> pd.Series | None:
    rows = points[(points["n_keys"] == n) & (points["measure"] == measure) & (points["logit_std"] == spread)]
    return rows.iloc[0] if len(rows) else None


def _spelled(row: pd.Series) -> str:
    return numbers.with_error(row["estimate"], row["se"])


def _alt(points: pd.DataFrame, n_keys: list[int]) -> tuple[Sentence, ...]:
    n, parts = n_keys[-1], []
    for measure in _PANELS:
        rows = points[(points["n_keys"] == n) & (points["measure"] == measure)]
        if ends := selection.ends(rows, "logit_std"):
            top, (first, last) = rows.loc[rows["estimate"].idxmax()], ends
            values = {"measure": Sentence(f"measures.{measure}"), "first": _spelled(first), "last": _spelled(last)}
            values |= {"top": _spelled(top), "spread": numbers.significant(top["logit_std"])}
            parts.append(Sentence("alt.measure", values))
    low, high = (numbers.significant(x) for x in (points["logit_std"].min(), points["logit_std"].max()))
    values = {"low": low, "high": high, "n": numbers.count(n), "parts": Listing(tuple(parts), "semicolon")}
    return (Sentence("alt.all", values),)


def _peaks(curves: pd.DataFrame, n_keys: list[int]) -> tuple[Sentence, ...]:
    """Say where the exact norm has its maximum, and whether the exact trace has one."""
    import numpy as np

    tops = {n: energy_curves.peak(curves, n, "jacobian_frobenius") for n in n_keys}
    peaks = [
        Sentence("reading.peak", {"spread": f"{top[0]:.2f}", "n": numbers.count(n), "height": f"{top[1]:.3f}"})
        for n, top in tops.items()
        if top
    ]
    if not peaks:
        return ()
    traces = [energy_curves.curve(curves, n, "jacobian_trace")[1] for n in n_keys]
    falls = all(len(trace) and (np.diff(trace) < 0).all() for trace in traces)
    return (
        Sentence("reading.peaks", {"peaks": Listing(tuple(peaks))}),
        Sentence(f"reading.trace.{'falls' if falls else 'moves'}"),
    )


def _opposite(curves: pd.DataFrame, n_keys: list[int]) -> tuple[Sentence, ...]:
    """Compare the norm and the trace at the unscaled and the scaled spread."""
    factors, opposed = [], []
    for n in n_keys:
        sizes = [
            energy_curves.value(curves, n, measure, s)
            for measure in ("jacobian_frobenius", "jacobian_trace")
            for s in (_SCALED, _UNSCALED)
        ]
        known = [size for size in sizes if size is not None]
        if len(known) < len(sizes):
            continue
        norm, trace = known[1] / known[0], known[3] / known[2]
        spelled = {"norm": numbers.significant(norm, 2), "trace": numbers.significant(trace, 2)}
        factors.append(Sentence("reading.factor", spelled | {"n": numbers.count(n)}))
        opposed.append((norm > 1) != (trace > 1))
    if not factors:
        return ()
    verdict = "all" if all(opposed) else "some" if any(opposed) else "none"
    values = {"first": f"{_SCALED:g}", "last": f"{_UNSCALED:g}", "factors": Listing(tuple(factors))}
    return (Sentence("reading.factors", values | {"verdict": Sentence(f"reading.opposite.{verdict}")}),)


def _median(points: pd.DataFrame, n_keys: list[int]) -> tuple[Sentence, ...]:
    """Set the median row against the root mean square, from the scaled spread to twice the unscaled one."""
    parts, last = [], {}
    for spread in (_SCALED, _UNSCALED, 2 * _UNSCALED):
        quotients = {}
        for n in n_keys:
            median, rms = (_at(points, n, measure, spread) for measure in ("jacobian_median", "jacobian_frobenius"))
            if median is not None and rms is not None and median["estimate"] > 0 and rms["estimate"] > 0:
                quotients[n] = median["estimate"] / rms["estimate"]
        if quotients:
            ratios = [
                Sentence("reading.ratio", {"ratio": numbers.significant(ratio, 2), "n": numbers.count(n)})
                for n, ratio in quotients.items()
            ]
            parts.append(Sentence("reading.at", {"ratios": Listing(tuple(ratios)), "spread": f"{spread:g}"}))
            last = quotients
    if not parts:
        return ()
    few = (Sentence("reading.few"),) if max(last.values()) < 0.5 else ()
    return Sentence("reading.median", {"parts": Listing(tuple(parts), "semicolon")}), *few


def _bound(points: pd.DataFrame) -> tuple[Sentence, ...]:
    rows = points[points["measure"] == "jacobian_spectral"]
    if rows.empty:
        return ()
    top = rows.loc[rows["estimate"].idxmax()]
    values = {"n": numbers.count(top["n_keys"]), "spread": numbers.significant(top["logit_std"])}
    return (Sentence("reading.bound", {"top": _spelled(top)} | values),)
