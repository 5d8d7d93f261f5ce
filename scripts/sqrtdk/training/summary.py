"""What training shows of each rule by itself: loss against rate, best rate, window of usable rates, and speed."""

import math
from typing import Any

import numpy as np

from sqrtdk.statistics.means import geometric_interval, mean_interval
from sqrtdk.training import windows
from sqrtdk.training.cells import SMALLEST, Sweep, halved

USABLE = 0.9  # ASSUME
"""A rate is usable where the mean progress of its seeds is this share of the best of the experiment, or more."""


def bars(all_cells: list[Sweep]) -> dict[str, float]:
    """Return, for each experiment, the progress from which on a rate is usable."""
    best: dict[str, float] = {}
    for cell in all_cells:
        name = cell.key["experiment"]
        best[name] = max(best.get(name, 0.0), float(cell.progress.mean(axis=1).max()))
    # Above 0: where nothing learns, no rate is usable.
    return {name: USABLE * max(value, SMALLEST) for name, value in best.items()}


def curves(all_cells: list[Sweep]) -> list[dict[str, Any]]:
    """Return a row for each rate of each cell: the final loss with its interval over seeds, and what went wrong."""
    rows = []
    for cell in all_cells:
        for i, rate in enumerate(cell.rates):
            loss, low, high = geometric_interval(cell.loss[i])
            guessing = cell.loss[i] >= cell.guess
            spread = cell.spread[i, :, -1]
            spread = spread[np.isfinite(spread)]
            rows.append(
                cell.key
                | {"learning_rate": float(rate), "n_seeds": cell.loss.shape[1]}
                | {"loss": loss, "loss_low": low, "loss_high": high, "floor": cell.floor, "guess": cell.guess}
                | {"accuracy": float(cell.accuracy[i].mean()), "progress": float(cell.progress[i].mean())}
                | {"n_diverged": int(cell.diverged[i].sum()), "n_guessing": int(guessing.sum())}
                | {"logit_std": float(np.median(spread)) if len(spread) else None}
            )
    return rows


def summaries(all_cells: list[Sweep], seed: int) -> list[dict[str, Any]]:
    """Return a row for each cell: its end at its best rate, usable rates, speed, and gradient at the start."""
    bar, rows = bars(all_cells), []
    for cell in all_cells:
        limit = bar[cell.key["experiment"]]
        best, fastest = cell.best_rates(), cell.fastest_rates()
        loss, low, high = mean_interval(best.of(cell.loss), halved(len(best.index)))
        right = mean_interval(best.of(cell.accuracy), halved(len(best.index)))
        ends = windows.window(cell.rates, cell.progress.mean(axis=1), limit)
        width_low, width_high = windows.between(
            *windows.widths(windows.resampled(cell.rates, cell.progress, limit, seed))
        )
        reached = np.isfinite(fastest.of(cell.steps_to_target()))
        steps: tuple[float | None, ...] = (None, None, None)
        if reached.all():
            steps = geometric_interval(fastest.of(cell.duration()), halved(len(best.index)))
        gradient = geometric_interval(cell.gradient[0, :, 0])
        usable = math.isfinite(ends[0])
        rows.append(
            cell.key
            | {"n_seeds": cell.loss.shape[1], "n_rates": len(cell.rates), "steps": int(cell.steps[-1])}
            | {"best_rate": best.rate, "interior": best.interior}
            | {"loss": loss, "loss_low": max(low, 0.0), "loss_high": high, "floor": cell.floor}
            | {"accuracy": right[0], "accuracy_low": max(right[1], 0.0), "accuracy_high": min(right[2], 1.0)}
            | {"bar": limit}
            | {"window": float(windows.width(*ends)), "window_low": width_low, "window_high": width_high}
            | {"rate_floor": 10 ** ends[0] if usable else None, "rate_ceiling": 10 ** ends[1] if usable else None}
            | {"open_below": usable and ends[0] <= math.log10(cell.rates[0])}
            | {"open_above": usable and ends[1] >= math.log10(cell.rates[-1])}
            | {"target": cell.target, "fastest_rate": fastest.rate}
            | {"steps_to_target": steps[0], "steps_low": steps[1], "steps_high": steps[2]}
            | {"share_reached": float(reached.mean())}
            | {"gradient": gradient[0], "gradient_low": gradient[1], "gradient_high": gradient[2]}
            | {"logit_std": _mean(best.of(cell.spread[..., -1])), "alignment": _mean(best.of(cell.alignment))}
            | {"share_diverged": float(cell.diverged.mean())}
            | {"share_guessing": float((cell.loss >= cell.guess).mean())}
            | {"late_rise": float(np.exp(np.mean(np.log(cell.loss[cell.best] / cell.path[cell.best].min(axis=-1)))))}
        )
    return rows


def _mean(values: np.ndarray) -> float | None:
    """Return the mean of what is known, or None."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None
