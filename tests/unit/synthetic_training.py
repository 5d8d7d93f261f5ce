"""Training logs made from closed forms and seeded noise, for tests of what reads them. Nothing is trained."""

import functools
from pathlib import Path

import numpy as np
import pandas as pd

from sqrtdk.results import described, reading
from sqrtdk.training import cells, comparisons, growth, runs, summary

RATES = (0.001, 0.003, 0.01, 0.03, 0.1)
SCALINGS = ("none", "1/sqrt(d_k)", "1/d_k")
GUESS = np.log(32)
CEILING = {"none": -2.3, "1/sqrt(d_k)": -1.7, "1/d_k": -1.4}
"""Decimal logarithm of the rate from which on a run fails, at d_k = 64."""


def final_loss(scaling: str, d_k: int, rate: float) -> float:
    """The loss without noise: falling with the rate, guessing above the ceiling, which falls with d_k but for 1/d_k."""
    x = np.log10(rate)
    ceiling = CEILING.get(scaling, -1.7) - (0.25 * np.log10(d_k / 64) if scaling != "1/d_k" else 0.0)
    return GUESS if x > ceiling + 0.3 else max(0.003, 0.05 * 10 ** (-1.5 * (x + 3)) * (1 + 30 * max(0, x - ceiling)))


@functools.lru_cache(maxsize=8)
def _training(experiments, scalings, d_k, n_seeds, diverge, seed) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    log, rows = runs.logged_steps(300), []
    measured = list(described.columns("training"))[8:-1]
    for experiment, task, optimiser in experiments:
        for scaling in scalings:
            for width in d_k:
                factor = {"none": width**0.5, "1/d_k": width**-0.5}.get(scaling, 1.0)
                for rate in RATES:
                    goal = final_loss(scaling, width, rate)
                    for run in range(n_seeds):
                        end = goal * np.exp(0.2 * rng.normal()) if goal < GUESS else 1.1 * goal
                        for step in log:
                            lost = diverge and rate == RATES[-1] and scaling == "none" and step > 10
                            way = min(step / 200, 1.0)
                            loss = float(GUESS ** (1 - way) * end**way)
                            values = dict.fromkeys(measured, 0.5) | {"loss": loss, "accuracy": 1 - loss / 5}
                            values |= {"logit_std": factor * (1 + rate * step), "entropy": 2.5 / (1 + factor)}
                            values |= {"grad_norm_qk": 0.3 * factor * (0.2 + loss) * np.exp(0.1 * rng.normal())}
                            values["largest_logit"] = 4 * values["logit_std"]
                            rows.append(
                                dict(experiment=experiment, task=task, optimiser=optimiser, scaling=scaling)
                                | dict(d_k=width, learning_rate=rate, seed=run, step=step)
                                | (dict.fromkeys(values, np.nan) if lost else values)
                                | dict(diverged=bool(lost))
                            )
    return pd.DataFrame(rows)


def training(
    experiments=(("recall", "recall", "adam"),), scalings=SCALINGS, d_k=(16, 64, 256), n_seeds=8, diverge=True, seed=6
) -> pd.DataFrame:
    """Return a table of logged steps, as training.csv has them."""
    return _training(tuple(experiments), tuple(scalings), tuple(d_k), n_seeds, diverge, seed).copy()


def start(n_seeds=8, seed=8) -> pd.DataFrame:
    """Return the sizes before the first step, as training_start.csv has them: exact but for their errors."""
    rng, rows = np.random.default_rng(seed), []
    for scaling in SCALINGS:
        for d_k in (16, 64, 256):
            key = dict(experiment="recall", task="recall", optimiser="adam", scaling=scaling, d_k=d_k, layer=0)
            for quantity in ("query_variance", "key_variance", "logit_variance"):
                rows.append(key | dict(quantity=quantity, estimate=1 + 0.02 * rng.normal(), se=0.02, prediction=1.0))
    return pd.DataFrame(rows)


def tables(**changes) -> dict[str, pd.DataFrame]:
    """Return the tables on training that figures and report read."""
    table = training(**changes)
    found = cells.cells(table)
    made = {
        "training_curves": summary.curves(found),
        "training_summary": summary.summaries(found, 1),
        "training_verdicts": comparisons.verdicts(found, 1),
        "training_transfer": growth.transfer(found, 1),
        "training_growth": growth.growth(found, 1),
    }
    frames = {name: reading.frame(name, rows) for name, rows in made.items()}
    # As the figures do: a run without halves of the repair shows those of the longer training that ships.
    halves = comparisons.start_rate(found)
    shipped = Path(__file__).parents[2] / "resources/training/start_rate.csv"
    frames["start_rate"] = reading.frame("start_rate", halves) if halves else reading.table(shipped)
    return {"training": table, "training_start": start()} | frames
