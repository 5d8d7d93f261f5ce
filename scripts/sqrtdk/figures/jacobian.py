"""Figure: the size of softmax's Jacobian against the spread of the logits, by three norms and in the median row."""

from sqrtdk import numbers, style
from sqrtdk.figures import Description, energy_curves, panels, saving, selection

NUMBER = 9
INPUTS = ("random_energy", "random_energy_curves")
TITLE = "The Jacobian of softmax against the spread of its logits"
QUESTION = "Does a sharper softmax pass on less gradient?"

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
_NOTHING = "No softmax over Gaussian logits was simulated."


def data(frames):
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
    half = selection.half_width(points["se"], points["n_rows"])
    factor = np.exp((half / points["estimate"].where(points["estimate"] > 0)).clip(upper=50))
    points["low"] = points["low"].where(~median, points["estimate"] / factor)
    points["high"] = points["high"].where(~median, points["estimate"] * factor)
    curves = frames["random_energy_curves"]
    lines = energy_curves.lines(curves, n_keys, tuple(_PANELS), spreads.min() / 1.5, spreads.max() * 1.5)
    lines["curve"] = lines["exact"].where(lines["measure"] != "jacobian_median", lines["hazard"])
    lines = lines.loc[lines["curve"].notna(), [*energy_curves.KEY, "curve"]]
    return pd.concat([part for part in (points, lines) if not part.empty], ignore_index=True)


@saving.styled
def draw(frames):
    """Draw a panel for each measure, with a look for each number of keys."""
    table = data(frames)
    if table.empty:
        return panels.statement(_NOTHING)
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


def _series(axes, rows, look) -> None:
    curve, simulated = rows[rows["estimate"].isna()], rows[rows["estimate"].notna()]
    if len(curve):
        dash = style.DOTTED if (curve["measure"] == "jacobian_median").any() else style.SOLID
        panels.theory(axes, curve["logit_std"], curve["curve"], style.Look("", look.colour, "", dash), width=1)
    # An interval that its marker hides would only make the file larger.
    ends = simulated[["low", "high"]].where(simulated["high"] - simulated["low"] > _HIDDEN * simulated["estimate"])
    for trusted in (True, False):
        part = simulated["trusted"] == trusted
        columns = (simulated.loc[part, column] for column in ("logit_std", "estimate"))
        panels.points(axes, *columns, ends.loc[part, "low"], ends.loc[part, "high"], look, hollow=not trusted, size=3)


def _heights(axes, values, least_top: float) -> None:
    """Keep the panel to what can be read: far down the median only goes on falling."""
    seen = selection.finite(values.to_frame())
    seen = seen[seen > 0]
    if len(seen):
        axes.set_ylim(max(seen.min() / 1.5, _LOWEST), max(seen.max(), least_top) * 1.6)
        panels.log_ticks(axes)
        axes.yaxis.set_major_formatter(panels.tick_text)
        axes.yaxis.set_minor_formatter(lambda *_: "")


def _legend(figure, looks) -> None:
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


def describe(frames) -> Description:
    """Put the figure into words."""
    table = data(frames)
    if table.empty:
        return Description(_NOTHING, _NOTHING, _NOTHING, "")
    n_keys = sorted(selection.order(table["n_keys"]))
    points = table[table["estimate"].notna()]
    curves = frames["random_energy_curves"]
    reading = (_peaks(curves, n_keys), _opposite(curves, n_keys), _median(points, n_keys), _bound(points))
    return Description(_caption(points, n_keys), _alt(points, n_keys), " ".join(filter(None, reading)), _CAVEAT)


_CAVEAT = (
    "J = diag(p) − p pᵀ is what softmax does to a gradient with respect to its weights. An upstream gradient of "
    "independent components of variance 1 leaves as one of mean square ‖J‖²; in a network the upstream gradient "
    "depends on the weights too. The logits are independent and Gaussian with one spread s for all rows."
)


def _caption(points, n_keys: list[int]) -> str:
    text = (
        "The Jacobian J of softmax over n independent Gaussian logits of standard deviation s, for n = "
        f"{numbers.listing([numbers.count(n) for n in n_keys])}: root mean square of its Frobenius norm ‖J‖, mean of "
        "its trace, root mean square of its largest eigenvalue (grey: its bound ½), and median of ‖J‖. Markers: over "
        f"{numbers.count_range(points['n_rows'])} independent rows a point, with 95 % intervals where the marker does "
        "not hide them. Solid lines: exact averages. Dotted lines: the law 2^(1 − s/aₙ) that the median follows for a "
        f"large spread. Heights below {panels.tick_text(_LOWEST)} are left out of the panels, not of the data. "
        "Vertical lines: s = 1 (scaled scores) and s = 8 (unscaled scores at d_k = 64)."
    )
    if not points["trusted"].all():
        text += " Hollow: few rows dominate the mean, so that its error cannot be trusted."
    return text


def _at(points, n: int, measure: str, spread: float):
    rows = points[(points["n_keys"] == n) & (points["measure"] == measure) & (points["logit_std"] == spread)]
    return rows.iloc[0] if len(rows) else None


def _spelled(row) -> str:
    return numbers.with_error(row["estimate"], row["se"])


def _alt(points, n_keys: list[int]) -> str:
    n, parts = n_keys[-1], []
    for measure, title in _PANELS.items():
        rows = points[(points["n_keys"] == n) & (points["measure"] == measure)].sort_values("logit_std")
        if len(rows):
            top = rows.loc[rows["estimate"].idxmax()]
            parts.append(
                f"{title} {_spelled(rows.iloc[0])} to {_spelled(rows.iloc[-1])}, largest {_spelled(top)} at s = "
                f"{numbers.significant(top['logit_std'])}"
            )
    low, high = (numbers.significant(x) for x in (points["logit_std"].min(), points["logit_std"].max()))
    return (
        f"Log-log panels against the spread of the logits, s = {low} to {high}. At n = {numbers.count(n)}, standard "
        f"errors in brackets: {'; '.join(parts)}."
    )


def _peaks(curves, n_keys: list[int]) -> str:
    """Say where the exact norm has its maximum, and whether the exact trace has one."""
    import numpy as np

    found = {n: energy_curves.peak(curves, n, "jacobian_frobenius") for n in n_keys}
    found = {n: top for n, top in found.items() if top}
    if not found:
        return ""
    words = [f"s = {s:.2f} for n = {numbers.count(n)} ({height:.3f})" for n, (s, height) in found.items()]
    traces = [energy_curves.curve(curves, n, "jacobian_trace")[1] for n in n_keys]
    falls = all(len(trace) and (np.diff(trace) < 0).all() for trace in traces)
    other = "the trace Σp(1 − p) only falls" if falls else "the trace Σp(1 − p) does not always fall"
    return (
        "The exact root mean square of ‖J‖, the size of the gradient that passes, first rises with s and then falls: "
        f"it is largest at {numbers.listing(words)}. In the same range {other}."
    )


def _opposite(curves, n_keys: list[int]) -> str:
    """Compare the norm and the trace at the unscaled and the scaled spread."""
    words, opposed = [], []
    for n in n_keys:
        values = {
            measure: [energy_curves.value(curves, n, measure, s) for s in (_SCALED, _UNSCALED)]
            for measure in ("jacobian_frobenius", "jacobian_trace")
        }
        if any(x is None for pair in values.values() for x in pair):
            continue
        norm, trace = (pair[1] / pair[0] for pair in values.values())
        words.append(f"{_factor(norm)} against {_factor(trace)} for n = {numbers.count(n)}")
        opposed.append((norm > 1) != (trace > 1))
    if not words:
        return ""
    verdict = "the two say the opposite for all these n" if all(opposed) else "the two agree for these n"
    if 0 < sum(opposed) < len(opposed):
        verdict = "the two say the opposite for some of these n"
    return f"From s = 1 to s = 8 norm and trace change by factors of {numbers.listing(words)}: {verdict}."


def _factor(ratio: float) -> str:
    return numbers.significant(ratio, 2)


def _median(points, n_keys: list[int]) -> str:
    """Set the median row against the root mean square, from the scaled spread to twice the unscaled one."""
    words, last = [], []
    for spread in (_SCALED, _UNSCALED, 2 * _UNSCALED):
        found = {}
        for n in n_keys:
            pair = [_at(points, n, measure, spread) for measure in ("jacobian_median", "jacobian_frobenius")]
            if all(row is not None and row["estimate"] > 0 for row in pair):
                found[n] = pair[0]["estimate"] / pair[1]["estimate"]
        if found:
            listed = [f"{numbers.significant(ratio, 2)} (n = {numbers.count(n)})" for n, ratio in found.items()]
            words.append(f"{numbers.listing(listed)} at s = {spread:g}")
            last = list(found.values())
    if not words:
        return ""
    text = f"The median of ‖J‖ over its root mean square is {'; '.join(words)}"
    if max(last) < 0.5:
        return f"{text}. There the typical row passes little, and few rows with two nearly equal weights pass most."
    return f"{text}."


def _bound(points) -> str:
    rows = points[points["measure"] == "jacobian_spectral"]
    if rows.empty:
        return ""
    top = rows.loc[rows["estimate"].idxmax()]
    return (
        f"The root mean square of the largest eigenvalue reaches {_spelled(top)} (n = {numbers.count(top['n_keys'])}, "
        f"s = {numbers.significant(top['logit_std'])}); no row can exceed ½, and only two equal weights reach it."
    )
