"""Rules held against each other in measures that can be compared, paired by seed, and verdicts with intervals.

Each rule is taken at the learning rate that is best for it, which each half of the seeds chooses for the other.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sqrtdk.statistics.means import geometric_interval, mean_interval
from sqrtdk.training import rules, windows
from sqrtdk.training.cells import Choice, Sweep, find, halved, nearest
from sqrtdk.training.summary import bars

NEXT = {"none": rules.REFERENCE, rules.REFERENCE: "1/d_k"}
"""The rule that each of `rules.HALVED` with both halves of the repair is."""


@dataclass(frozen=True)
class Criterion:
    """What runs are compared in, and how far apart they have to be.

    unit: of a difference, or `ratio`. margin: a difference up to this is none. better: 1 where more is better, or −1.
    """

    unit: str
    margin: float
    better: int = -1

    def compare(self, values: np.ndarray, others: np.ndarray) -> tuple[float, float, float]:
        """Return how paired values differ from others, a difference or a ratio, and its 95 % interval."""
        dof = halved(len(values))
        return geometric_interval(values / others, dof) if self.unit == "ratio" else mean_interval(values - others, dof)

    def mean(self, values: np.ndarray) -> tuple[float, float, float]:
        """Return the mean of runs and its 95 % interval, within what the measure can be."""
        if self.unit == "ratio":
            return geometric_interval(values, halved(len(values)))
        middle, low, high = mean_interval(values, halved(len(values)))
        return middle, max(low, 0.0), min(high, 1.0) if self.unit == "share" else high

    def decide(self, low: float, high: float) -> str:
        """Say what the interval of a comparison tells: hurts, helps, no difference or undecided."""
        ends = (math.log(low), math.log(high)) if self.unit == "ratio" else (low, high)
        low, high = ends if self.better < 0 else (-ends[1], -ends[0])
        return decide(low, high, math.log(self.margin) if self.unit == "ratio" else self.margin)


# ASSUME how far apart runs have to be to make a difference: no law says.
MEASURES = {
    "loss": Criterion("nats", 0.05),
    "accuracy": Criterion("share", 0.02, better=1),
    "speed": Criterion("ratio", 1.25),
}
"""Nats of loss, which are nats above the floor of a task where that is known; right answers; steps to the target."""
DECADES_MARGIN = 0.25  # ASSUME
"""Windows of rates whose widths are this close are no difference."""


def decide(low: float, high: float, margin: float) -> str:
    """Say what an interval of a difference, positive where the rule is worse, tells at a margin."""
    if low > margin:
        return "hurts"
    if high < -margin:
        return "helps"
    return "no difference" if low > -margin and high < margin else "undecided"


def at_best(cell: Sweep) -> dict[str, tuple[Choice, np.ndarray]]:
    """Return, for each measure, the choice of rates and the value of each seed."""
    by_loss, by_speed = cell.best_rates(), cell.fastest_rates()
    return {
        "loss": (by_loss, by_loss.of(cell.loss)),
        "accuracy": (by_loss, by_loss.of(cell.accuracy)),
        "speed": (by_speed, by_speed.of(cell.duration())),
    }


def verdicts(all_cells: list[Sweep], seed: int) -> list[dict[str, Any]]:
    """Return rows that hold each rule against 1/√d_k, at one width of one experiment.

    Comparisons: MEASURES, each rule at its own best rate; `same_rate`, loss at the best rate of 1/√d_k; and `window`,
    the reference's width minus the rule's, in decades. All but the last are paired by seed with Student's t. The
    window's interval is a bootstrap of the seeds, as wide as the gaps between the tried rates allow, and unbounded
    where a window may go on beyond the first or the last of them. A best rate at an edge decides nothing.
    """
    limits, rows = bars(all_cells), []
    for cell in all_cells:
        reference = find(all_cells, **{n: cell.key[n] for n in ("experiment", "d_k")}, scaling=rules.REFERENCE)
        if reference is None or cell is reference:
            continue
        base = cell.key | {"reference": rules.REFERENCE, "n_seeds": cell.loss.shape[1]}
        base |= dict.fromkeys(("value", "reference_value", "reached"))
        ours, theirs = at_best(cell), at_best(reference)
        for name, measure in MEASURES.items():
            (choice, values), (their_choice, others) = ours[name], theirs[name]
            found = {"rate": choice.rate, "reference_rate": their_choice.rate}
            if name == "speed":
                found["reached"] = float(np.isfinite(choice.of(cell.steps_to_target())).mean())
            rows.append(_judged(base | {"comparison": name} | found, measure, values, others, (choice, their_choice)))
        choice, others = theirs["loss"]
        same = np.array([nearest(cell.rates, rate) for rate in reference.rates[choice.index]])
        found = {"rate": float(cell.rates[nearest(cell.rates, choice.rate)]), "reference_rate": choice.rate}
        values = cell.loss[same, np.arange(len(same))]
        rows.append(_judged(base | {"comparison": "same_rate"} | found, MEASURES["loss"], values, others, (choice,)))
        rows.append(base | _windows(cell, reference, limits[cell.key["experiment"]], seed))
    return rows


def _judged(
    row: dict[str, Any], measure: Criterion, values: np.ndarray, others: np.ndarray, choices: tuple[Choice, ...]
) -> dict[str, Any]:
    estimate, low, high = measure.compare(values, others)
    interior = all(choice.interior for choice in choices)
    verdict = measure.decide(low, high) if interior else "undecided"
    row |= {"value": measure.mean(values)[0], "reference_value": measure.mean(others)[0]}
    row |= {"unit": measure.unit, "interior": interior, "estimate": estimate, "low": low, "high": high}
    return row | {"margin": measure.margin, "verdict": verdict}


def _windows(cell: Sweep, reference: Sweep, bar: float, seed: int) -> dict[str, Any]:
    pair = reference, cell
    wide = [windows.width(*windows.window(c.rates, c.progress.mean(axis=1), bar)) for c in pair]
    (theirs_low, theirs_high), (ours_low, ours_high) = (
        windows.widths(windows.resampled(c.rates, c.progress, bar, seed)) for c in pair
    )
    low, high = windows.between(theirs_low - ours_high, theirs_high - ours_low)
    return {
        "comparison": "window",
        "unit": "decades",
        "rate": float(cell.rates[cell.best]),
        "reference_rate": float(reference.rates[reference.best]),
        "interior": True,
        "estimate": float(wide[0] - wide[1]),
        "low": low,
        "high": high,
        "margin": DECADES_MARGIN,
        "verdict": decide(low, high, DECADES_MARGIN),
    }


def start_rate(all_cells: list[Sweep]) -> list[dict[str, Any]]:
    """Return the four combinations of start and rate around each rule, in each measure, against neither and both.

    Both halves together are the next rule, and stand under its name where they were not trained under their own.
    """
    rows = []
    names = dict.fromkeys((c.key["experiment"], c.key["d_k"]) for c in all_cells)
    for experiment, d_k in names:
        here = [c for c in all_cells if (c.key["experiment"], c.key["d_k"]) == (experiment, d_k)]
        for base in rules.HALVED:
            arms = {halves: find(here, scaling=rules.joined(base, *halves)) for halves in rules.CHOICES}
            arms[rules.HALVES] = arms[rules.HALVES] or find(here, scaling=NEXT[base])
            trained = {halves: cell for halves, cell in arms.items() if cell is not None}
            if len(trained) == len(arms):
                rows += _arms(base, trained)
    return rows


def _arms(base: str, arms: dict[tuple[str, ...], Sweep]) -> list[dict[str, Any]]:
    found = {halves: at_best(cell) for halves, cell in arms.items()}
    rows = []
    for halves, cell in arms.items():
        key = {name: cell.key[name] for name in ("experiment", "task", "optimiser")}
        key |= {"scaling": base, "d_k": cell.key["d_k"]} | {half: half in halves for half in rules.HALVES}
        key |= {"trained_as": cell.key["scaling"], "n_seeds": cell.loss.shape[1]}
        for name, measure in MEASURES.items():
            choice, values = found[halves][name]
            mean, low, high = measure.mean(values)
            row: dict[str, Any] = {"measure": name, "unit": "steps" if measure.unit == "ratio" else measure.unit}
            row |= {"learning_rate": choice.rate, "interior": choice.interior}
            row |= {"estimate": mean, "low": low, "high": high}
            for word, other in (("neither", ()), ("both", rules.HALVES)):
                row |= _against(word, measure, (choice, values), found[other][name], halves == other)
            rows.append(key | row | {"margin": measure.margin})
    return rows


def _against(
    word: str, measure: Criterion, ours: tuple[Choice, np.ndarray], theirs: tuple[Choice, np.ndarray], same: bool
) -> dict[str, Any]:
    names = f"against_{word}", f"{word}_low", f"{word}_high", f"verdict_{word}"
    if same:
        return dict.fromkeys(names)
    judged = _judged({}, measure, ours[1], theirs[1], (ours[0], theirs[0]))
    return dict(zip(names, (judged[name] for name in ("estimate", "low", "high", "verdict")), strict=True))
