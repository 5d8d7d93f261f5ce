"""How the spread of the logits and the largest usable learning rate grow with the width, beside what is predicted."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from sqrtdk.statistics.intervals import LEVEL
from sqrtdk.statistics.means import geometric_interval, mean_interval
from sqrtdk.training import rules, windows
from sqrtdk.training.cells import KEY, Sweep, find, halved
from sqrtdk.training.optimisers import POWER
from sqrtdk.training.summary import bars


def growth(all_cells: list[Sweep], seed: int) -> list[dict[str, Any]]:
    """Return a row for each quantity of each rule of an experiment: its exponent in d_k, and that of a prediction.

    `spread_start` and `spread_end`: standard deviation of the logits in a row before the first step and after the last
    one, at the best rate; a line through the logarithms of each seed. `largest_rate`: largest usable rate at the widest
    head against the narrowest; `rate_against_reference`: the same for its ratio to that of 1/√d_k.
    """
    limits, rows = bars(all_cells), []
    for base, chosen in _by_width(all_cells):
        experiment, scaling = base["experiment"], base["scaling"]
        for column, quantity in enumerate(("spread_start", "spread_end")):
            row = base | {"quantity": quantity, "n_widths": len(chosen)}
            rows.append(row | _slope(chosen, column) | _spread(scaling, column, chosen))
        ends = [chosen[0], chosen[-1]]
        references = _of(all_cells, experiment, rules.REFERENCE)
        others = [other for cell in ends if (other := find(references, d_k=cell.key["d_k"]))]
        bar = limits[experiment]
        rows.append(base | {"quantity": "largest_rate", "n_widths": 2} | _rates([ends], bar, seed) | NO_PREDICTION)
        if scaling != rules.REFERENCE and len(others) == len(ends):
            row = base | {"quantity": "rate_against_reference", "n_widths": 2}
            rows.append(row | _rates([ends, others], bar, seed) | _ratio(scaling, base["optimiser"], ends))
    return rows


NO_PREDICTION: dict[str, Any] = {"predicted": None, "prediction": None}


def transfer(all_cells: list[Sweep], seed: int) -> list[dict[str, Any]]:
    """Return a row for each rule of an experiment: how its best rate and largest usable rate move with the width.

    shift: decimal logarithm of the largest usable rate at the widest head over that at the narrowest, where both
    were found; its interval is a bootstrap of the seeds, widened by the gaps between the tried rates. cost: loss of
    the widest at the best rate of the narrowest, over its own best.
    """
    limits, rows = bars(all_cells), []
    for base, chosen in _by_width(all_cells):
        narrow, wide = chosen[0], chosen[-1]
        shift, low, high = _moved([[narrow, wide]], limits[base["experiment"]], seed) or (None, None, None)
        cost = geometric_interval(wide.loss[narrow.best] / wide.loss[wide.best])
        rows.append(
            base
            | {"best_rate_low": float(narrow.rates[narrow.best]), "best_rate_high": float(wide.rates[wide.best])}
            | {"shift": shift, "shift_low": low, "shift_high": high}
            | {"cost": cost[0], "cost_low": cost[1], "cost_high": cost[2]}
        )
    return rows


def _by_width(all_cells: list[Sweep]) -> Iterator[tuple[dict[str, Any], list[Sweep]]]:
    """Yield the cells of each rule of an experiment that has several widths, narrowest first, and what names them."""
    for experiment, scaling in dict.fromkeys((c.key["experiment"], c.key["scaling"]) for c in all_cells):
        chosen = sorted(_of(all_cells, experiment, scaling), key=lambda cell: cell.key["d_k"])
        if len(chosen) > 1:
            named = {name: chosen[0].key[name] for name in KEY[:-1]}
            named |= {"d_k_low": chosen[0].key["d_k"], "d_k_high": chosen[-1].key["d_k"]}
            yield named | {"n_seeds": chosen[0].loss.shape[1]}, chosen


def _of(all_cells: list[Sweep], experiment: str, scaling: str) -> list[Sweep]:
    return [c for c in all_cells if (c.key["experiment"], c.key["scaling"]) == (experiment, scaling)]


def _slope(chosen: list[Sweep], column: int) -> dict[str, Any]:
    """Return the exponent of the spread: the mean over seeds of the slopes of each seed's logarithms."""
    x = np.log([cell.key["d_k"] for cell in chosen])
    x -= x.mean()
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.log([cell.best_rates().of(cell.spread[..., (0, -1)[column]]) for cell in chosen])
    slopes = (x @ y) / (x @ x)
    # A run whose logits left the range of numbers has no spread, and no exponent.
    if len(slopes) < 2 or not np.isfinite(slopes).all():
        return {"exponent": None, "low": None, "high": None}
    return dict(zip(("exponent", "low", "high"), mean_interval(slopes, halved(len(slopes))), strict=True))


def _rates(pairs: list[list[Sweep]], bar: float, seed: int) -> dict[str, Any]:
    """Return the exponent in d_k of the largest usable rate, or of its ratio to that of other two cells."""
    names = "exponent", "low", "high"
    moved = _moved(pairs, bar, seed)
    if moved is None:
        return dict.fromkeys(names)
    decades = math.log10(pairs[0][1].key["d_k"] / pairs[0][0].key["d_k"])
    return dict(zip(names, (value / decades for value in moved), strict=True))


def _moved(pairs: list[list[Sweep]], bar: float, seed: int) -> tuple[float, float, float] | None:
    """Return by how many decades the largest usable rate moves from the first cell to the second, with its interval.

    Of two pairs, by how much more in the first. The interval is a bootstrap of the seeds, widened by the gaps between
    the tried rates. None where an end is open, or other seeds might not have found it.
    """
    middle, low, high = 0.0, np.zeros(()), np.zeros(())
    sign = 1
    for pair in pairs:
        ends = [windows.window(c.rates, c.progress.mean(axis=1), bar)[1] for c in pair]
        first, second = (windows.resampled(c.rates, c.progress, bar, seed) for c in pair)
        # False for a window that does not exist, too.
        known = all(end < math.log10(c.rates[-1]) for end, c in zip(ends, pair, strict=True))
        if not known or np.isfinite([first[2:], second[2:]]).all(axis=(0, 1)).mean() < LEVEL:
            return None
        least, most = second[2] - first[3], second[3] - first[2]
        middle += sign * (ends[1] - ends[0])
        low, high = (low + least, high + most) if sign > 0 else (low - most, high - least)
        sign = -sign
    # Seeds that find no window, or one that is open, say nothing of its end; the first are all seeds together.
    finite = np.isfinite(low) & np.isfinite(high)
    return middle, *windows.between(low[finite], high[finite])


def _factor(scaling: str, chosen: list[Sweep]) -> float | None:
    """Return the exponent in d_k of a rule's constant factor, a start of W_q and W_k included; None without one."""
    base, halves = rules.taken_apart(scaling)
    widths = [cell.key["d_k"] for cell in (chosen[0], chosen[-1])]
    built = [rules.build(base, d_k, 16) for d_k in widths]
    if any(rule.size is not None or rule.cosine or rule.after != 1 for rule in built):
        return None
    exponent = math.log(built[1].factor / built[0].factor) / math.log(widths[1] / widths[0])
    return exponent - 0.5 * ("start" in halves)


def _spread(scaling: str, column: int, chosen: list[Sweep]) -> dict[str, Any]:
    """Predict the spread: q·k grows as √d_k where q and k are independent, and as d_k where training aligns them."""
    exponent = _factor(scaling, chosen)
    if exponent is None:
        return NO_PREDICTION
    how, growth_of_scores = (("independent", 0.5), ("aligned", 1.0))[column]
    return {"predicted": exponent + growth_of_scores, "prediction": how}


def _ratio(scaling: str, optimiser: str, ends: list[Sweep]) -> dict[str, Any]:
    """Predict the ratio of largest rates: a scale c is a rate of W_q and W_k times c, for Adam √c."""
    base, halves = rules.taken_apart(scaling)
    exponent = _factor(base, ends)
    if exponent is None or halves:
        return NO_PREDICTION
    return {"predicted": -POWER[optimiser] * (exponent + 0.5), "prediction": "same training"}
