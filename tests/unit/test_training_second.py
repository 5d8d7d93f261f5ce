"""The table of start and rate against a second implementation, at one width."""

import csv
import itertools

import numpy as np
import pytest
import second_trainer as second
from scipy.special import stdtrit

from ship_training import ROOT

pytestmark = pytest.mark.slow
D_K, SEEDS = 16, 8
SMALLER = D_K**-0.25


TARGET = 0.35
ARMS = [(start, rate) for start in ("false", "true") for rate in ("false", "true")]


@pytest.fixture(scope="module")
def shipped():
    with (ROOT / "resources/training/start_rate.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["experiment"], row["d_k"]) == ("recall", str(D_K))]
    return {(row["measure"], row["start"], row["rate"]): row for row in rows if row["scaling"] == "none"}


@pytest.fixture(scope="module")
def trained(shipped):
    """What the second implementation finds at the best rate of each combination: final losses, and steps."""
    factors, found = {"true": SMALLER, "false": 1.0}, {}
    for measure, (start, rate) in itertools.product(("loss", "speed"), ARMS):
        best = float(shipped[measure, start, rate]["learning_rate"])
        paths = second.train(1.0, D_K, best, factors[start], factors[rate], SEEDS)
        found[measure, start, rate] = paths[:, -1] if measure == "loss" else np.array(list(map(steps_to_target, paths)))
    return found


def steps_to_target(path) -> float:
    """The step at which a falling loss passes the target, on straight lines between the logged steps."""
    steps = (0, *second.LOGGED)
    for (before, low), (after, high) in itertools.pairwise(zip(steps, path, strict=True)):
        if high <= TARGET:
            return before + (low - TARGET) / (low - high) * (after - before)
    return steps[-1]


def together(row, values) -> bool:
    """Say whether both intervals of 95 % hold a common value."""
    logs = row["measure"] == "speed"
    x = np.log(values) if logs else values
    half = float(stdtrit(SEEDS - 1, 0.975)) * np.std(x, ddof=1) / SEEDS**0.5
    low, high = ((np.exp if logs else float)(x.mean() + sign * half) for sign in (-1, 1))
    return float(row["low"]) <= high and low <= float(row["high"])


def test_each_combination_agrees(shipped, trained):
    assert len(trained) == 8
    wrong = {
        arm: (shipped[arm]["estimate"], values) for arm, values in trained.items() if not together(shipped[arm], values)
    }
    assert wrong == {}


def test_combinations_can_be_told_apart(shipped, trained):
    """Negative control: neither half takes other steps than both, and so does the rate alone."""
    both = "speed", "true", "true"
    for other in (("speed", "false", "false"), ("speed", "false", "true")):
        assert not together(shipped[other], trained[both])
        assert not together(shipped[both], trained[other])
