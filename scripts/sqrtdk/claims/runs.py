"""The training runs of this run as claims read them: those without the scale beside those with 1/√d_k."""

import math
from dataclasses import replace

import numpy as np

from sqrtdk.claims.core import Measured, Missing
from sqrtdk.claims.lookup import REFERENCE, TINY, Results
from sqrtdk.statistics import estimates
from sqrtdk.training import cells
from sqrtdk.training.cells import Choice, Sweep

RULES = ("none", REFERENCE)
WORKS = 0.5
"""A rate gets half of the way where the progress of the runs, 1 − loss/guess, is at least this.

Less than what `usable` asks for: there both rules learn, and the two sides of a claim would be one.
"""
LATE = 2 / 3
"""The last third of the steps is late."""


class Runs:
    """The runs of the first experiment on a task that has both rules, at the width nearest to the one asked for.

    Each half of the seeds is given the learning rate that the other half chooses.
    """

    def __init__(self, results: Results, task: str, d_k: int) -> None:
        logged = results.select("training", task=task)
        both = [set(logged.loc[logged["scaling"] == scaling, "experiment"]) for scaling in RULES]
        names = [name for name in dict.fromkeys(logged["experiment"]) if all(name in names for names in both)]
        if not names:
            raise Missing(f"training: task = {task}, scaling = {', '.join(RULES)}")
        self.at = results.row("training", d_k=d_k, experiment=names[0]).at
        here = logged[(logged["experiment"] == names[0]) & (logged["d_k"] == self.at["d_k"][0])]
        found = {cell.key["scaling"]: cell for cell in cells.cells(here[here["scaling"].isin(RULES)])}
        if len(found) < len(RULES):
            raise Missing(f"training: scaling = {', '.join(RULES)}")
        self.plain, self.scaled = (found[scaling] for scaling in RULES)

    @property
    def pair(self) -> tuple[Sweep, Sweep]:
        """Both sweeps, the one without the scale first."""
        return self.plain, self.scaled

    def common_rates(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rates that both were trained at, as indices among those without the scale, and with it."""
        rates = np.intersect1d(self.plain.rates, self.scaled.rates)
        if not len(rates):
            raise Missing("training: a rate of both rules")
        here, there = (np.searchsorted(cell.rates, rates) for cell in self.pair)
        return here, there

    def top_rates(self) -> tuple[Choice, Choice]:
        """Return the largest common rate that gets half of the way with 1/√d_k, without the scale and with it."""
        here, there = self.common_rates()

        def largest(progress: np.ndarray) -> int:
            if not (progress >= WORKS).any():
                raise Missing(f"training: progress of {REFERENCE}")
            return int(np.flatnonzero(progress >= WORKS).max())

        chosen = cells.choose(self.scaled.rates[there], self.scaled.progress[there], largest)
        return replace(chosen, index=here[chosen.index]), replace(chosen, index=there[chosen.index])

    def best_rates(self, cell: Sweep) -> Choice:
        """Return the best rates of a rule; raises Missing where one is the first or the last one tried."""
        choice = cell.best_rates()
        if not choice.interior:
            raise Missing(f"training: a best rate of {cell.key['scaling']} within those tried")
        return choice

    def final_loss(self, cell: Sweep, choice: Choice) -> Measured:
        """Return the final loss as a share of that of guessing, a geometric mean over seeds."""
        # A run that diverged counts as guessing.
        losses = np.nan_to_num(choice.of(cell.losses[..., -1]), nan=cell.guess)
        return self._geometric(np.log(np.maximum(losses, TINY) / cell.guess))

    def best_loss(self, cell: Sweep) -> Measured:
        """Return the final loss at the best rate as a share of that of guessing."""
        return self.final_loss(cell, self.best_rates(cell))

    def alignment(self, choices: tuple[Choice, Choice]) -> Measured:
        """Return the mean cosine of queries with the keys to be found, without the scale over that with it."""
        return self._ratio([choice.of(cell.alignment) for cell, choice in zip(self.pair, choices, strict=True)])

    def progress(self, choices: tuple[Choice, Choice]) -> Measured:
        """Return the mean progress 1 − loss/guess without the scale over that with it."""
        return self._ratio([choice.of(cell.progress) for cell, choice in zip(self.pair, choices, strict=True)])

    def _ratio(self, pair: list[np.ndarray]) -> Measured:
        """Return the ratio of two means over seeds of which one half chose rates for the other."""
        found = []
        for values in pair:
            mean, se = estimates.mean(values)
            found.append(Measured(float(mean), float(se), cells.halved(len(values)), at=self.at))
        return found[0].over(found[1])

    def first_gradient(self) -> Measured:
        """Return the norm of the gradient of W_q and W_k before the first step, without the scale over that with it."""
        plain, scaled = (np.log(cell.gradient[0, :, 0]) for cell in self.pair)
        return self._geometric(plain - scaled, chosen=False)

    def late_gradient(self) -> Measured:
        """Return that ratio in the last third of the steps, a geometric mean over them and all common rates."""
        plain, scaled = (
            _mean(logs[..., cell.steps > LATE * cell.steps[-1]])
            for logs, cell in zip(self._gradients(), self.pair, strict=True)
        )
        return self._geometric(plain - scaled, chosen=False)

    def gradient_left(self) -> Measured:
        """Return that norm without the scale in the last third of the steps over that at the first, likewise."""
        logs, steps = self._gradients()[0], self.plain.steps
        return self._geometric(_mean(logs[..., steps > LATE * steps[-1]]) - _mean(logs[..., :1]), chosen=False)

    def gradient_jumps(self) -> Measured:
        """Return the mean change of the logarithm of that norm from one logged step to the next, without over with."""
        plain, scaled = (np.log(_mean(np.abs(np.diff(logs)))) for logs in self._gradients())
        return self._geometric(plain - scaled, chosen=False)

    def final_spread(self) -> Measured:
        """Return the spread of the logits after training at the best rates, without the scale over that with it."""
        plain, scaled = (np.log(self.best_rates(cell).of(cell.spread[..., -1])) for cell in self.pair)
        return self._geometric(plain - scaled)

    def spread_changes(self) -> Measured:
        """Return the mean change of that spread from one logged step to the next, likewise."""
        found = []
        for cell in self.pair:
            index = self.best_rates(cell).index
            path = cell.spread[index, np.arange(len(index))]
            found.append(np.log(np.maximum(np.abs(np.diff(path)).mean(axis=1), TINY)))
        return self._geometric(found[0] - found[1])

    def rises(self) -> Measured:
        """Return by how many nats the loss rises between all logged steps, without the scale minus with it."""
        up = []
        for cell in self.pair:
            index = self.best_rates(cell).index
            up.append(np.maximum(np.diff(cell.path[index, np.arange(len(index))]), 0).sum(axis=1))
        mean, se = estimates.mean(up[0] - up[1])
        return Measured(float(mean), float(se), cells.halved(len(up[0])), at=self.at)

    def _gradients(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the logarithms of the norms at the common rates, (rates, seeds, steps)."""
        plain, scaled = (
            np.log(np.maximum(cell.gradient[rates], TINY))
            for cell, rates in zip(self.pair, self.common_rates(), strict=True)
        )
        return plain, scaled

    def _geometric(self, logs: np.ndarray, chosen: bool = True) -> Measured:
        """Return the geometric mean over seeds; `chosen` says whether one half of them chose rates for the other."""
        # Runs that diverged have no gradient, and rates that do not exist are not numbers.
        logs = logs[np.isfinite(logs)]
        if len(logs) < 2:
            raise Missing("training: two seeds")
        log, log_se = estimates.mean(logs)
        centre = math.exp(log)
        dof = cells.halved(len(logs)) if chosen else len(logs) - 1
        return Measured(centre, centre * log_se, dof, log=True, at=self.at)


def _mean(values: np.ndarray) -> np.ndarray:
    """Return means over rates and steps of (rates, seeds, steps), of those where a run had not diverged."""
    return np.ma.masked_invalid(values).mean(axis=(0, 2)).filled(math.nan)
