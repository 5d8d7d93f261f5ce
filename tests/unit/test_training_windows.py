"""Windows of usable learning rates: their ends, and their intervals against what a finer grid finds."""

import numpy as np
import pandas as pd
import pytest
import synthetic_training as synthetic

from sqrtdk.training import cells, comparisons, growth, summary, windows
from sqrtdk.training.windows import window

RATES = np.array([1e-3, 1e-2, 1e-1, 1.0])


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        ([0.0, 1.0, 1.0, 0.0], (-2.5, -0.5)),
        ([1.0, 1.0, 0.0, 0.0], (-3.0, -1.5)),
        ([0.0, 0.0, 0.0, 1.0], (-0.5, 0.0)),
        ([0.0, 0.5, 0.25, 0.0], (-2.0, -2.0)),
        ([1.0, 0.0, 0.9, 0.0], (-3.0, -2.5)),
    ],
)
def test_a_window_is_the_run_of_usable_rates_around_the_best(progress, expected):
    assert window(RATES, np.array(progress), 0.5) == pytest.approx(expected)


def test_no_usable_rate_is_no_window():
    low, high = window(RATES, np.array([0.1, 0.2, 0.1, 0.0]), 0.5)
    assert np.isnan(low)
    assert np.isnan(high)
    assert windows.width(low, high) == 0


INF = np.inf


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        ([0.0, 1.0, 1.0, 0.0], (-3, -2, -1, 0)),
        ([1.0, 1.0, 0.0, 0.0], (-INF, -3, -2, -1)),
        ([0.0, 0.0, 0.0, 1.0], (-1, 0, 0, INF)),
        ([0.0, 0.4, 0.2, 0.0], (-3, np.nan, np.nan, -2)),
        ([0.4, 0.2, 0.0, 0.0], (-INF, np.nan, np.nan, -3)),
    ],
)
def test_ends_lie_between_a_usable_and_an_unusable_rate(progress, expected):
    assert windows.brackets(RATES, np.array(progress), 0.5) == pytest.approx(expected, nan_ok=True)


def logs(low, high, rates, scaling="1/sqrt(d_k)", d_k=64):
    """Runs that learn between two decimal logarithms of the rate and nowhere else, two seeds alike."""
    rows = synthetic.training(n_seeds=2, scalings=("1/sqrt(d_k)",), d_k=(64,), diverge=False)
    one = rows[rows["learning_rate"] == synthetic.RATES[0]]
    lost = 1.1 * synthetic.GUESS
    parts = [
        one.assign(learning_rate=rate, loss=0.01 if low <= np.log10(rate) <= high else lost, scaling=scaling, d_k=d_k)
        for rate in rates
    ]
    return pd.concat(parts)


COARSE = (0.001, 0.003, 0.01, 0.03, 0.1)
FINE = tuple(10 ** np.linspace(-3.2, -0.8, 49))


@pytest.mark.parametrize(("low", "high"), [(-2.9, -1.6), (-2.95, -2.05), (-2.6, -2.1), (-2.4, -1.1), (-2.3, -2.1)])
def test_intervals_hold_what_a_finer_grid_finds(low, high):
    """Even where no tried rate is usable, as in the last case."""
    coarse, fine = (pd.DataFrame(summary.summaries(cells.cells(logs(low, high, r)), 1)).iloc[0] for r in (COARSE, FINE))
    assert coarse["window_low"] <= fine["window"] <= coarse["window_high"]
    assert coarse["window_low"] <= high - low <= coarse["window_high"]


def test_where_nothing_learns_no_rate_is_usable():
    row = pd.DataFrame(summary.summaries(cells.cells(logs(9, 9, COARSE)), 1)).iloc[0]
    assert row["window"] == row["window_low"] == 0
    assert row["rate_ceiling"] is None


def test_transfers_hold_what_a_finer_grid_finds():
    """The coarse grid sees no move where there is one of 0.4 decades, and does not claim that there is none."""
    coarse, fine = (
        pd.DataFrame(
            growth.transfer(cells.cells(pd.concat([logs(-2.9, -1.05, r, d_k=16), logs(-2.9, -1.45, r, d_k=256)])), 1)
        ).iloc[0]
        for r in (COARSE, FINE)
    )
    assert coarse["shift"] == pytest.approx(0)
    assert coarse["shift_low"] <= -0.4 <= fine["shift_high"] + 0.06
    assert coarse["shift_low"] <= fine["shift"] <= coarse["shift_high"]


def compared_windows(plain, scaled, rates):
    table = pd.concat([logs(*plain, rates, scaling="none"), logs(*scaled, rates)])
    rows = pd.DataFrame(comparisons.verdicts(cells.cells(table), 1))
    return rows[rows["comparison"] == "window"].iloc[0]


def test_windows_are_decided_where_the_grid_can():
    assert compared_windows((-2.2, -1.8), (-2.7, -1.3), FINE)["verdict"] == "hurts"
    assert compared_windows((-2.7, -1.3), (-2.2, -1.8), FINE)["verdict"] == "helps"
    assert compared_windows((-2.2, -1.8), (-2.2, -1.8), FINE)["verdict"] == "no difference"
    assert compared_windows((-9, -9), (-2.7, -1.3), FINE)["verdict"] == "undecided", "a best rate at the edge is open"


def test_open_windows_decide_nothing_that_the_rates_beyond_could_change():
    for plain, scaled in [((-9, 9), (-9, 9)), ((-2.1, -1.9), (-9, -1.9))]:
        row = compared_windows(plain, scaled, COARSE)
        assert row["verdict"] == "undecided"
        assert np.isinf(row["high"])
    # Whatever a window gains beyond the rates, the other stays narrower.
    assert compared_windows((-2.1, -1.9), (-9, -1.2), FINE)["verdict"] == "hurts"
