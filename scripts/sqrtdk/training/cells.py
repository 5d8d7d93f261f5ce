"""All runs of one rule at one width, and what they end with at a learning rate that other runs have chosen.

A run's loss is the last one on held-out data; a run that diverged, or ends worse than an answer by frequency alone
(`guess`), counts as guessing and is counted apart. Progress is 1 − loss/guess, from 0 to 1.
"""

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sqrtdk.training.tasks import TASKS

if TYPE_CHECKING:
    import pandas as pd

KEY = ["experiment", "task", "optimiser", "scaling", "d_k"]
SMALLEST = 1e-12
NOTHING = 0.99  # ASSUME
"""A loss above this share of that of guessing tells nothing of a rate: there it is chance which is the smallest."""
EQUAL = 1e-6
"""Weight of a loss, in steps, among rates at which learning takes as many steps."""
FIRST = 0.5
"""What stands for a number of steps of 0, where a ratio is taken."""


@dataclass(frozen=True)
class Sweep:
    """All runs of one rule at one width of one experiment: arrays over (rates, seeds), and steps last where logged.

    losses: at all logged `steps`, (rates, seeds, steps), NaN where a run had diverged.
    gradient: norms of the gradient of W_q and W_k at these steps. spread: standard deviations of the logits in a row.
    alignment: final cosines of queries with the keys that they have to find; NaN where there are none.
    """

    key: dict[str, Any]
    rates: np.ndarray
    steps: np.ndarray
    guess: float
    losses: np.ndarray
    accuracy: np.ndarray
    diverged: np.ndarray
    gradient: np.ndarray
    spread: np.ndarray
    alignment: np.ndarray

    @functools.cached_property
    def path(self) -> np.ndarray:
        """Losses at all logged steps, (rates, seeds, steps), no worse than guessing."""
        return np.clip(np.nan_to_num(self.losses, nan=self.guess), SMALLEST, self.guess)

    @property
    def loss(self) -> np.ndarray:
        """Final losses, (rates, seeds), no worse than guessing."""
        return self.path[..., -1]

    @property
    def progress(self) -> np.ndarray:
        """1 − loss/guess, (rates, seeds)."""
        return 1 - self.loss / self.guess

    @property
    def floor(self) -> float | None:
        """The loss of the best answers that there are, where it is known."""
        return TASKS[self.key["task"]].floor

    @property
    def target(self) -> float:
        """The loss at which the task counts as learned."""
        return TASKS[self.key["task"]].target

    @property
    def cost(self) -> np.ndarray:
        """What rates are chosen by, (rates, seeds): final losses, those of runs that learned nothing all alike."""
        return np.minimum(self.loss, NOTHING * self.guess)

    @property
    def best(self) -> int:
        """The index of the rate with the smallest mean loss."""
        return smallest(self.cost.mean(axis=1))

    def steps_to_target(self) -> np.ndarray:
        """Return the step at which the loss reaches the target, interpolated; infinite where it does not."""
        found = np.full(self.loss.shape, math.inf)
        for place in np.ndindex(*self.loss.shape):
            path = self.path[place]
            reached = np.flatnonzero(path <= self.target)
            if len(reached):
                i = reached[0]
                between = slice(i - 1, i + 1)
                found[place] = np.interp(-self.target, -path[between], self.steps[between]) if i else self.steps[0]
        return found

    def duration(self) -> np.ndarray:
        """Return the steps to the target; a run that does not reach it takes at least all steps."""
        return np.clip(self.steps_to_target(), FIRST, self.steps[-1])

    def best_rates(self) -> "Choice":
        """Choose rates by the loss."""
        return choose(self.rates, self.cost)

    def last_rates(self) -> "Choice":
        """Return the largest rate that was tried, for every seed."""
        return choose(self.rates, self.loss, lambda means: len(means) - 1)

    def fastest_rates(self) -> "Choice":
        """Choose rates by the steps to the target; of equals, as where no run reaches it, by the loss."""
        return choose(self.rates, self.duration() + EQUAL * self.cost)


def cells(training: "pd.DataFrame") -> list[Sweep]:
    """Put the table of logged steps into arrays, a cell for each experiment, rule and width, in order."""
    found = []
    for key, rows in training.groupby(KEY, sort=False):
        rows = rows.sort_values(["learning_rate", "seed", "step"])
        rates, seeds, steps = (np.unique(rows[name]) for name in ("learning_rate", "seed", "step"))
        shape = len(rates), len(seeds), len(steps)
        guess = TASKS[key[1]].guess()

        def column(name: str, rows: "pd.DataFrame" = rows, shape: tuple[int, int, int] = shape) -> np.ndarray:
            return rows[name].to_numpy(dtype=float).reshape(shape)

        lost = rows["diverged"].to_numpy(dtype=bool).reshape(shape)
        found.append(
            Sweep(
                dict(zip(KEY, key, strict=True)),
                rates,
                steps,
                guess,
                column("loss"),
                np.nan_to_num(column("accuracy")[..., -1]),
                lost[..., -1],
                column("grad_norm_qk"),
                column("logit_std"),
                column("alignment")[..., -1],
            )
        )
    return found


def halved(n: int) -> int:
    """Return the degrees of freedom of n runs of which each half is given the rate that the other half chooses.

    Runs of a half share their rate, and depend on each other by it. Those of one half are what the interval is sure of.
    """
    return max(n // 2 - 1, 1)


@dataclass(frozen=True)
class Choice:
    """For each seed a learning rate at which it has not itself been looked at.

    index: (seeds,). rate: the one of all seeds. interior: whether none of these is the first or the last one tried.
    """

    index: np.ndarray
    rate: float
    interior: bool

    def of(self, values: np.ndarray) -> np.ndarray:
        """Return the value of each seed at its rate; `values` is (rates, seeds)."""
        return values[self.index, np.arange(len(self.index))]


def smallest(means: np.ndarray) -> int:
    """Return the index of the smallest number; of equals, as where runs guess at every rate, that of the middle one."""
    equals = np.flatnonzero(means == means.min())
    return int(equals[len(equals) // 2])


def choose(rates: np.ndarray, values: np.ndarray, pick: Callable[[np.ndarray], int] = smallest) -> Choice:
    """Choose for each half of the seeds the rate that `pick` finds by the means of the other half.

    values: (rates, seeds). pick: means, (rates,) -> index of a rate.
    """
    n = values.shape[1]
    best, even, odd = (pick(part.mean(axis=1)) for part in (values, values[:, ::2], values[:, 1::2]))
    index = np.where(np.arange(n) % 2 == 0, odd, even)
    return Choice(index, float(rates[best]), not {best, even, odd} & {0, len(rates) - 1})


def nearest(rates: np.ndarray, rate: float) -> int:
    """Return the index of the rate that is nearest on a logarithm."""
    return int(np.abs(np.log(rates / rate)).argmin())


def find(all_cells: Iterable[Sweep], **where: object) -> Sweep | None:
    """Return the cell with these values in its key, or None."""
    return next((c for c in all_cells if all(c.key[name] == value for name, value in where.items())), None)
