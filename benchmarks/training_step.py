"""What a training step costs by hand and by automatic differentiation: the same gradients of the same models.

    python benchmarks/training_step.py [--seconds 2] [--seeds 8]

A step is loss and gradients of `--seeds` models and the move of Adam. The project trains them together; autograd takes
them one after another. Both run in one process on one core, in turns, and the gradients are compared first. Prints a
table of CPU milliseconds for each model's step and writes nothing.
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded
ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "unit")]

import numpy as np  # noqa: E402 - after the environment and the path are set
import training_oracle  # noqa: E402

from sqrtdk.training import model, rules, runs, tasks  # noqa: E402
from sqrtdk.training.optimisers import Optimiser  # noqa: E402

CASES = (("recall", 16), ("recall", 64), ("recall", 256), ("induction", 64), ("text", 64))


def case(task: str, d_k: int, seeds: int):
    """Return both steps of one task as functions without arguments, and the largest relative distance of a gradient."""
    shape = tasks.TASKS[task].shape(d_k)
    inputs, targets = next(runs.batches(task, 1, range(seeds)))
    rule = rules.build("1/sqrt(d_k)", d_k, shape.memory or inputs.shape[-2])
    p = runs.initial(shape, rule, task, 1, range(seeds))
    ones = [{name: value[i] for name, value in p.items()} for i in range(seeds)]

    def by_hand():
        return model.loss_and_gradients(shape, rule, p, inputs, targets)[2]

    def by_autograd():
        return [
            training_oracle.loss_and_gradients(one, shape, rule, inputs[i], targets[i])[1] for i, one in enumerate(ones)
        ]

    exact = runs.stack(by_autograd())
    distance = max(
        np.linalg.norm(g - exact[name]) / np.linalg.norm(exact[name])
        for name, g in by_hand().items()
        if not name.endswith("b_k")  # exactly 0: softmax does not see it
    )
    moves = Optimiser("adam", np.full(seeds, 1e-9)), Optimiser("adam", np.full(seeds, 1e-9))
    return (
        lambda: moves[0].step(p, by_hand()),
        lambda: moves[1].step(p, runs.stack(by_autograd())),
        distance,
    )


def milliseconds(steps, seconds: float, seeds: int) -> list[float]:
    """Return the median CPU time of each step per model, the steps taken in turns for so many seconds."""
    times: list[list[float]] = [[] for _ in steps]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 3:
        for found, step in zip(times, steps, strict=True):
            before = time.process_time()
            step()
            found.append(1e3 * (time.process_time() - before) / seeds)
    return [float(np.median(found)) for found in times]


def main(seconds: float, seeds: int) -> None:
    print(f"{'task':10s} {'d_k':>4s} {'by hand':>9s} {'autograd':>9s} {'ratio':>6s}  distance of the gradients")
    for task, d_k in CASES:
        *steps, distance = case(task, d_k, seeds)
        hand, autograd = milliseconds(steps, seconds, seeds)
        print(f"{task:10s} {d_k:4d} {hand:6.2f} ms {autograd:6.2f} ms {autograd / hand:6.1f}  {distance:.1e}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--seeds", type=int, default=8)
    main(**vars(parser.parse_args()))
