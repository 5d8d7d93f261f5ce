"""What training shows: loss against rate, usable rates, speed, and verdicts on a rule against 1/√d_k, paired by seed.

A run's loss is the last one on held-out data; a run that diverged, or ends worse than an answer by frequency alone
(`guess`), counts as guessing and is counted apart. Progress is 1 − loss/guess, from 0 to 1.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sqrtdk.sampling import streams
from sqrtdk.statistics.intervals import LEVEL
from sqrtdk.statistics.means import geometric_interval, mean_interval
from sqrtdk.training.tasks import TASKS

REFERENCE = "1/sqrt(d_k)"
USABLE = 0.9
"""A rate is usable where the mean progress of its seeds is this share of the best of the experiment, or more."""
RATIO_MARGIN = 1.25
"""Losses, or steps, within this ratio of each other are no difference."""
DECADES_MARGIN = 0.25
"""Windows of rates whose widths are this close are no difference."""
RESAMPLES = 1000
KEY = ["experiment", "task", "optimiser", "scaling", "d_k"]
SMALLEST = 1e-12


@dataclass(frozen=True)
class Sweep:
    """All runs of one rule at one width of one experiment: arrays over (rates, seeds), and steps last where logged.

    loss: final losses, no worse than guessing. path: losses at all logged `steps`, (rates, seeds, steps).
    """

    key: dict
    rates: np.ndarray
    steps: np.ndarray
    guess: float
    path: np.ndarray
    loss: np.ndarray
    accuracy: np.ndarray
    diverged: np.ndarray
    gradient: np.ndarray
    logit_std: np.ndarray

    @property
    def progress(self) -> np.ndarray:
        return 1 - self.loss / self.guess

    @property
    def best(self) -> int:
        """The index of the rate with the smallest geometric mean of the losses."""
        return int(np.log(self.loss).mean(axis=1).argmin())


def cells(training: pd.DataFrame) -> list[Sweep]:
    """Put the table of logged steps into arrays, a cell for each experiment, rule and width, in order."""
    found = []
    for key, rows in training.groupby(KEY, sort=False):
        rows = rows.sort_values(["learning_rate", "seed", "step"])
        rates, seeds, steps = (np.unique(rows[name]) for name in ("learning_rate", "seed", "step"))
        shape = len(rates), len(seeds), len(steps)
        guess = TASKS[key[1]].guess()

        def column(name: str, rows=rows, shape=shape) -> np.ndarray:
            return rows[name].to_numpy(dtype=float).reshape(shape)

        path = np.clip(np.nan_to_num(column("loss"), nan=guess), SMALLEST, guess)
        lost = rows["diverged"].map(lambda value: str(value).lower() == "true").to_numpy(dtype=bool).reshape(shape)
        found.append(
            Sweep(
                dict(zip(KEY, key, strict=True)),
                rates,
                steps,
                guess,
                path,
                path[..., -1],
                np.nan_to_num(column("accuracy")[..., -1]),
                lost[..., -1],
                column("grad_norm_qk")[..., 0],
                column("logit_std")[..., -1],
            )
        )
    return found


def window(rates: np.ndarray, progress: np.ndarray, bar: float) -> tuple[float, float]:
    """Return the decimal logarithms of the ends of the usable rates around the best, interpolated; NaN if none is.

    progress: (n_rates,). An end at the first or the last rate was not found: the window may be wider.
    """
    x, top = np.log10(rates), int(np.argmax(progress))
    if progress[top] < bar:
        return math.nan, math.nan
    ends = []
    for way in (-1, 1):
        i = top
        while 0 <= i + way < len(x) and progress[i + way] >= bar:
            i += way
        end = x[i]
        if 0 <= i + way < len(x):
            end += (x[i + way] - x[i]) * (progress[i] - bar) / (progress[i] - progress[i + way])
        ends.append(float(end))
    return ends[0], ends[1]


def brackets(rates: np.ndarray, progress: np.ndarray, bar: float) -> tuple[float, float, float, float]:
    """Return what the tried rates say of the two ends: first unusable, last usable, last usable, first unusable rate.

    In decimal logarithms. Progress may fall anywhere between two tried rates, so that an end lies between the usable
    and the unusable one; beyond the first and the last rate it is not bounded. Where no tried rate is usable, a window
    may still hide in the widest of the gaps beside the best rate, and the usable ends are NaN.
    """
    x, top = np.log10(rates), int(np.argmax(progress))
    padded = [-math.inf, *map(float, x), math.inf]
    if progress[top] < bar:
        # Rates that all end at guessing are equally near to a window.
        beside = {i + after for i in np.flatnonzero(progress == progress[top]) for after in (0, 1)}
        widest = max(sorted(beside), key=lambda i: padded[i + 1] - padded[i])
        return padded[widest], math.nan, math.nan, padded[widest + 1]
    first = last = top
    while first > 0 and progress[first - 1] >= bar:
        first -= 1
    while last < len(x) - 1 and progress[last + 1] >= bar:
        last += 1
    return padded[first], float(x[first]), float(x[last]), padded[last + 2]


def bars(all_cells: list[Sweep]) -> dict[str, float]:
    """Return, for each experiment, the progress from which on a rate is usable."""
    best: dict[str, float] = {}
    for cell in all_cells:
        name = cell.key["experiment"]
        best[name] = max(best.get(name, 0.0), float(cell.progress.mean(axis=1).max()))
    # Above 0: where nothing learns, no rate is usable.
    return {name: USABLE * max(value, SMALLEST) for name, value in best.items()}


def _resampled(cell: Sweep, bar: float, seed: int) -> np.ndarray:
    """Return the brackets of the window's ends (4, resamples): of all seeds first, then of resampled seeds.

    The resamples are those of all cells with as many seeds.
    """
    n = cell.loss.shape[1]
    chosen = streams.generator(seed, "training", "bootstrap", n).integers(n, size=(RESAMPLES, n))
    means = np.column_stack([cell.progress.mean(axis=1), cell.progress[:, chosen].mean(axis=-1)])
    return np.array([brackets(cell.rates, column, bar) for column in means.T]).T


def _width(low, high):
    """Return the width of a window in decades, 0 where no rate is usable."""
    return np.nan_to_num(np.asarray(high) - np.asarray(low), posinf=math.inf)


def _widths(ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest width that the brackets allow."""
    return _width(ends[1], ends[2]), _width(ends[0], ends[3])


def _between(low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval from the smallest to the largest values allowed; those of all seeds come first.

    It always holds what all seeds allow, however few resamples do.
    """
    tail, last = (1 - LEVEL) / 2, len(low) - 1
    # By rank and not interpolated: a width may be unbounded.
    lower, upper = np.sort(low)[math.floor(tail * last)], np.sort(high)[math.ceil((1 - tail) * last)]
    # Rounded: sums of logarithms miss 0 by the last bit.
    return round(float(min(lower, low[0])), 12), round(float(max(upper, high[0])), 12)


def steps_to(cell: Sweep, rate: int, bar: float) -> np.ndarray:
    """Return for each seed the step at which progress reaches the bar, interpolated; infinite where it does not."""
    target = cell.guess * (1 - bar)
    found = np.full(cell.path.shape[1], math.inf)
    for seed, path in enumerate(cell.path[rate]):
        reached = np.flatnonzero(path <= target)
        if len(reached):
            i = reached[0]
            if i == 0:
                found[seed] = 0.0
                continue
            share = (path[i - 1] - target) / (path[i - 1] - path[i])
            found[seed] = cell.steps[i - 1] + share * (cell.steps[i] - cell.steps[i - 1])
    return found


def curves(all_cells: list[Sweep]) -> list[dict]:
    """Return a row for each rate of each cell: the final loss with its interval over seeds, and what went wrong."""
    rows = []
    for cell in all_cells:
        for i, rate in enumerate(cell.rates):
            loss, low, high = geometric_interval(cell.loss[i])
            guessing = cell.loss[i] >= cell.guess
            spread = cell.logit_std[i][np.isfinite(cell.logit_std[i])]
            rows.append(
                cell.key
                | {"learning_rate": float(rate), "n_seeds": cell.loss.shape[1]}
                | {"loss": loss, "loss_low": low, "loss_high": high, "guess": cell.guess}
                | {"accuracy": float(cell.accuracy[i].mean()), "progress": float(cell.progress[i].mean())}
                | {"n_diverged": int(cell.diverged[i].sum()), "n_guessing": int(guessing.sum())}
                | {"logit_std": float(np.median(spread)) if len(spread) else None}
            )
    return rows


def summaries(all_cells: list[Sweep], seed: int) -> list[dict]:
    """Return a row for each cell: best rate, window of usable rates, speed, and gradient at the start."""
    bar, rows = bars(all_cells), []
    for cell in all_cells:
        limit = bar[cell.key["experiment"]]
        loss, low, high = geometric_interval(cell.loss[cell.best])
        ends = window(cell.rates, cell.progress.mean(axis=1), limit)
        width_low, width_high = _between(*_widths(_resampled(cell, limit, seed)))
        speeds = steps_to(cell, cell.best, limit)
        reached = np.isfinite(speeds)
        steps = geometric_interval(np.maximum(speeds, 0.5)) if reached.all() else (None, None, None)
        gradient = geometric_interval(cell.gradient[0])
        usable = math.isfinite(ends[0])
        rows.append(
            cell.key
            | {"n_seeds": cell.loss.shape[1], "n_rates": len(cell.rates), "steps": int(cell.steps[-1])}
            | {"best_rate": float(cell.rates[cell.best]), "loss": loss, "loss_low": low, "loss_high": high}
            | {"accuracy": float(cell.accuracy[cell.best].mean()), "bar": limit}
            | {"window": float(_width(*ends)), "window_low": width_low, "window_high": width_high}
            | {"rate_floor": 10 ** ends[0] if usable else None, "rate_ceiling": 10 ** ends[1] if usable else None}
            | {"open_below": usable and ends[0] <= math.log10(cell.rates[0])}
            | {"open_above": usable and ends[1] >= math.log10(cell.rates[-1])}
            | {"steps_to_target": steps[0], "steps_low": steps[1], "steps_high": steps[2]}
            | {"share_reached": float(reached.mean())}
            | {"gradient": gradient[0], "gradient_low": gradient[1], "gradient_high": gradient[2]}
            | {"share_diverged": float(cell.diverged.mean())}
            | {"share_guessing": float((cell.loss >= cell.guess).mean())}
            | {"late_rise": float(np.exp(np.mean(np.log(cell.loss[cell.best] / cell.path[cell.best].min(axis=-1)))))}
        )
    return rows


def decide(low: float, high: float, margin: float) -> str:
    """Say what an interval of a difference, positive where the rule is worse, tells at a margin."""
    if low > margin:
        return "hurts"
    if high < -margin:
        return "helps"
    return "no difference" if low > -margin and high < margin else "undecided"


def verdicts(all_cells: list[Sweep], seed: int) -> list[dict]:
    """Return rows that hold each rule against 1/√d_k, at one width of one experiment.

    Comparisons: loss at the best rate of each (`best`), at the best rate of 1/√d_k (`same_rate`), steps to the target
    at the best rate of each (`speed`), as ratios; and `window`, the reference's width minus the rule's, in decades.
    Ratios are paired by seed with Student's t. The window's interval is a bootstrap of the seeds, as wide as the gaps
    between the tried rates allow, and unbounded where a window may go on beyond the first or the last of them.
    """
    bar, rows = bars(all_cells), []
    for cell in all_cells:
        same = ("experiment", "d_k")
        others = [other for other in all_cells if all(other.key[name] == cell.key[name] for name in same)]
        reference = next((other for other in others if other.key["scaling"] == REFERENCE), None)
        if reference is None or cell is reference:
            continue
        limit = bar[cell.key["experiment"]]
        best, theirs = cell.best, reference.best
        pairs = {"best": np.log(cell.loss[best] / reference.loss[theirs])}
        pairs["same_rate"] = np.log(cell.loss[theirs] / reference.loss[theirs])
        # A run that does not reach the target takes at least all steps.
        speeds = [np.clip(steps_to(c, r, limit), 0.5, c.steps[-1]) for c, r in ((cell, best), (reference, theirs))]
        pairs["speed"] = np.log(speeds[0] / speeds[1])
        base = cell.key | {"reference": REFERENCE, "n_seeds": cell.loss.shape[1]}
        base |= {"rate": float(cell.rates[best]), "reference_rate": float(reference.rates[theirs])}
        for name, values in pairs.items():
            mean, low, high = mean_interval(values)
            rows.append(
                base
                | {"comparison": name, "estimate": math.exp(mean), "low": math.exp(low), "high": math.exp(high)}
                | {"margin": RATIO_MARGIN, "verdict": decide(low, high, math.log(RATIO_MARGIN))}
            )
        wide = [_width(*window(c.rates, c.progress.mean(axis=1), limit)) for c in (reference, cell)]
        theirs_low, theirs_high = _widths(_resampled(reference, limit, seed))
        ours_low, ours_high = _widths(_resampled(cell, limit, seed))
        low, high = _between(theirs_low - ours_high, theirs_high - ours_low)
        rows.append(
            base
            | {"comparison": "window", "estimate": float(wide[0] - wide[1]), "low": low, "high": high}
            | {"margin": DECADES_MARGIN, "verdict": decide(low, high, DECADES_MARGIN)}
        )
    return rows


def transfer(all_cells: list[Sweep], seed: int) -> list[dict]:
    """Return a row for each rule of an experiment: how its best rate and largest usable rate move with the width.

    shift: decimal logarithm of the largest usable rate at the widest head over that at the narrowest, where both
    were found; its interval is a bootstrap of the seeds, widened by the gaps between the tried rates. cost: loss of
    the widest at the best rate of the narrowest, over its own best.
    """
    bar, rows = bars(all_cells), []
    names = dict.fromkeys((cell.key["experiment"], cell.key["scaling"]) for cell in all_cells)
    for experiment, scaling in names:
        chosen = [c for c in all_cells if (c.key["experiment"], c.key["scaling"]) == (experiment, scaling)]
        narrow, wide = (pick(chosen, key=lambda cell: cell.key["d_k"]) for pick in (min, max))
        if narrow is wide:
            continue
        ends = [window(c.rates, c.progress.mean(axis=1), bar[experiment])[1] for c in (narrow, wide)]
        shift = low = high = None
        # False for a window that does not exist, too.
        if all(end < math.log10(c.rates[-1]) for end, c in zip(ends, (narrow, wide), strict=True)):
            first, second = (_resampled(c, bar[experiment], seed) for c in (narrow, wide))
            least, most = second[2] - first[3], second[3] - first[2]
            found = np.isfinite(first[2]) & np.isfinite(second[2])
            # A window that other seeds might not have found has no end to speak of.
            if found.mean() >= LEVEL:
                shift, (low, high) = ends[1] - ends[0], _between(least[found], most[found])
        cost = geometric_interval(wide.loss[narrow.best] / wide.loss[wide.best])
        rows.append(
            {name: narrow.key[name] for name in KEY[:4]}
            | {"d_k_low": narrow.key["d_k"], "d_k_high": wide.key["d_k"], "n_seeds": narrow.loss.shape[1]}
            | {"best_rate_low": float(narrow.rates[narrow.best]), "best_rate_high": float(wide.rates[wide.best])}
            | {"shift": shift, "shift_low": low, "shift_high": high}
            | {"cost": cost[0], "cost_low": cost[1], "cost_high": cost[2]}
        )
    return rows
