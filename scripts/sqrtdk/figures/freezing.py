"""Figure: from what spread of the logits on softmax puts its weight on a few keys; simulated, exact and asymptotic."""

from sqrtdk import numbers, style
from sqrtdk.figures import Description, energy_curves, panels, saving, selection

NUMBER = 6
INPUTS = ("random_energy", "random_energy_curves", "asymptotic_ranges")
TITLE = "Freezing of softmax against the spread of its logits"
QUESTION = "At what spread of the logits does softmax freeze onto a few keys?"

_MEASURES = ("participation_ratio", "entropy")
_LABELS = {"participation_ratio": "participation Σp²", "entropy": "entropy / ln n"}
_WANTED = (16, 256, 4096, 1048576)
_SCALED, _UNSCALED = 1.0, 8.0
_HIDDEN = 0.02
_NOTHING = "No softmax over Gaussian logits was simulated."
_EXACT = style.Look("exact", style.INK, "", style.SOLID)
_SIMULATED = style.Look("simulated", "#8158ee", "o", style.SOLID)
_LAWS = {
    "hot": style.Look("n → ∞, hot", "#d55e00", "", style.DOTTED),
    "frozen": style.Look("n → ∞, frozen", "#2b83d6", "", style.DASHED),
    "hazard": style.Look("frozen, corrected", "#009e73", "", style.DASHDOT),
}


def data(frames):
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


@saving.styled
def draw(frames):
    """Draw a column for each number of keys: participation ratio above, entropy below."""
    from sqrtdk import asymptotics

    table = data(frames)
    if table.empty:
        return panels.statement(_NOTHING)
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


def _panel(axes, rows) -> None:
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


def _legend(figure) -> None:
    from matplotlib.patches import Patch

    curves = [panels.key(_SIMULATED, linestyle="none"), panels.key(_EXACT)]
    figure.legend(handles=curves + [panels.key(look) for look in _LAWS.values()], loc="outside upper center", ncols=3)
    marks = [
        panels.key(style.Look(label, style.INK, "", dash), label=label, linewidth=0.7, alpha=style.MUTED)
        for label, dash in (("s = 1, scaled", style.DOTTED), ("s = 8, unscaled at dₖ = 64", style.DASHED))
    ]
    marks.append(Patch(color=style.INK, alpha=style.FAINT, linewidth=0, label="s > √(2 ln n)"))
    figure.legend(handles=marks, loc="outside lower center", ncols=3)


def describe(frames) -> Description:
    """Put the figure into words."""
    table = data(frames)
    if table.empty:
        return Description(_NOTHING, _NOTHING, _NOTHING, "")
    n_keys = sorted(selection.order(table["n_keys"]))
    curves = frames["random_energy_curves"]
    reading = (_halves(curves, n_keys), _marks(curves, n_keys), _errors(frames, n_keys), _agreement(frames))
    return Description(_caption(table, n_keys), _alt(table, n_keys), " ".join(filter(None, reading)), _CAVEAT)


_CAVEAT = (
    "The logits are independent and Gaussian with one spread s for all rows. With Gaussian keys that is exact for one "
    "query, where s is the scale factor times ‖q‖; over many queries s varies from row to row, by less the wider the "
    "head. The asymptotic curves approach the exact one only as 1/ln n: at any usable number of keys they are a guide."
)


def _caption(table, n_keys: list[int]) -> str:
    simulated = table[table["estimate"].notna()]
    text = (
        f"Softmax over n independent Gaussian logits of standard deviation s, for n = "
        f"{numbers.listing([numbers.count(n) for n in n_keys])}. Above: participation ratio Σp², 1 where a single key "
        "holds all the weight. Below: entropy over ln n, 1 where all keys weigh the same. Markers: means over "
        f"{numbers.count_range(simulated['n_rows'])} independent rows a point, with 95 % intervals where the marker "
        "does not hide them; all s of a panel share their random numbers. Solid line: exact average at this n. "
        "Coloured lines: limits for many keys (Derrida’s Random Energy Model), for a small spread, for a large one, "
        "and the latter with √(2 ln n) replaced by its value at finite n. Shaded: s above √(2 ln n). "
        "Vertical lines: s = 1, and s = 8."
    )
    if not simulated["trusted"].all():
        text += " Hollow: few rows dominate the mean, so that its error cannot be trusted."
    return text


def _alt(table, n_keys: list[int]) -> str:
    parts = []
    for n in n_keys:
        rows = table[(table["n_keys"] == n) & table["estimate"].notna()].sort_values("logit_std")
        moves = []
        for measure in _MEASURES:
            part = rows[rows["measure"] == measure]
            if len(part):
                first, last = part.iloc[0], part.iloc[-1]
                moves.append(
                    f"{_LABELS[measure]} {numbers.with_error(first['estimate'], first['se'])} to "
                    f"{numbers.with_error(last['estimate'], last['se'])}"
                )
        parts.append(f"n = {numbers.count(n)}: {' and '.join(moves)}")
    spreads = table.loc[table["estimate"].notna(), "logit_std"]
    span = f"s = {numbers.significant(spreads.min())} to {numbers.significant(spreads.max())}"
    return f"Small panels against the spread of the logits, {span}, standard errors in brackets. {'; '.join(parts)}."


def _halves(curves, n_keys: list[int]) -> str:
    """Say where the exact participation ratio is one half, beside √(2 ln n)."""
    from sqrtdk import asymptotics

    words = []
    for n in n_keys:
        half = energy_curves.crossing(curves, n, "participation_ratio", 0.5)
        if half is not None:
            words.append(f"{half:.2f} for n = {numbers.count(n)} (√(2 ln n) is {asymptotics.critical_spread(n):.2f})")
    return f"Exactly, Σp² averages one half at s = {numbers.listing(words)}." if words else ""


def _marks(curves, n_keys: list[int]) -> str:
    """Say what the scaled and the unscaled spread mean for each number of keys."""
    words = []
    for spread, what in ((_SCALED, "scaled scores have"), (_UNSCALED, "unscaled scores have at d_k = 64")):
        found = {n: energy_curves.value(curves, n, "participation_ratio", spread) for n in n_keys}
        found = {n: x for n, x in found.items() if x is not None}
        if not found:
            continue
        listed = numbers.listing([f"{numbers.significant(x, 2)} (n = {numbers.count(n)})" for n, x in found.items()])
        frozen = [numbers.count(n) for n, x in found.items() if x > 0.5]
        verdict = f"more than half frozen for n = {numbers.listing(frozen)}" if frozen else "nowhere half frozen"
        if len(frozen) == len(found) > 1:
            verdict = "more than half frozen for all these n"
        words.append(f"At s = {spread:g}, which {what}, Σp² is {listed}: {verdict}.")
    return " ".join(words)


def _errors(frames, n_keys: list[int]) -> str:
    """Say how good the limits are: at the unscaled spread, and over which ranges within a tenth of the exact value."""
    curves, words = frames["random_energy_curves"], []
    for law, name in (("frozen", "The limit 1 − √(2 ln n)/s"), ("hazard", "the corrected limit")):
        misses = []
        for n in n_keys:
            values = [energy_curves.value(curves, n, "participation_ratio", _UNSCALED, x) for x in ("exact", law)]
            if values[0] and values[1] is not None:
                misses.append(abs(values[1] / values[0] - 1))
        if misses:
            low, high = (numbers.percent(miss, 0) for miss in (min(misses), max(misses)))
            words.append(f"{name} misses that by {low if low == high else f'{low} to {high}'}")
    text = f"{', '.join(words)}. " if words else ""
    return (text + _ranges(frames["asymptotic_ranges"], n_keys)).strip()


def _ranges(table, n_keys: list[int]) -> str:
    rows = table[(table["measure"] == "participation_ratio") & (table["tolerance"] == 0.1)]
    rows = rows[rows["n_keys"].isin(n_keys)].sort_values("n_keys")
    words = []
    for law, end in (("hot", "to"), ("frozen", "from"), ("hazard", "from")):
        part = rows[rows["approximation"] == law]
        relative = (part[f"{end}_logit_std"] / part["critical_logit_std"]).dropna()
        if len(relative):
            ends = " to ".join(dict.fromkeys(f"{relative.iloc[i]:.2f}" for i in (0, -1)))
            words.append(f"{_LAW_WORDS[law]} {'up to' if end == 'to' else 'from'} {ends}")
    if not words:
        return ""
    span = " to ".join(dict.fromkeys(numbers.count(n) for n in (n_keys[0], n_keys[-1])))
    return f"In units of √(2 ln n), for n = {span}, within 10 % of the exact Σp² are: {', '.join(words)}."


_LAW_WORDS = {"hot": "e^(s²)/n", "frozen": "1 − √(2 ln n)/s", "hazard": "the corrected limit"}


def _agreement(frames) -> str:
    """Say how far the simulated values are from the exact ones, over the whole table and not only this figure."""
    table = frames["random_energy"]
    use = table[selection.truth(table["trusted"]) & table["exact"].notna() & (table["se"] > 0)]
    if use.empty:
        return ""
    z = (use["estimate"] - use["exact"]) / use["se"]
    worst = use.loc[z.abs().idxmax()]
    text = (
        f"Over all {numbers.counted(len(use), 'estimate')} with an exact value in results/random_energy.csv the "
        f"farthest is {z.abs().max():.1f} standard errors away ({worst['measure'].replace('_', ' ')} at n = "
        f"{numbers.count(worst['n_keys'])}, s = {numbers.significant(worst['logit_std'])}), and "
        f"{numbers.percent((z.abs() < 1.96).mean())} are within 1.96"
    )
    if z.abs().max() < 5:
        return (
            f"{text}; values of one n share their draws, so that this share varies more than one of independent values."
        )
    return f"{text}: chance does not explain it, so estimates or their errors are wrong somewhere."
