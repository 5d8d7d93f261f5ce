"""Shares: SciPy's intervals, errors that are not 0, and how often both hold the truth."""

import math

import numpy as np
import pytest
from scipy import stats

from sqrtdk.statistics import intervals, shares


def test_exact_intervals_and_wilsons_are_scipys():
    for inside, total in ((0, 100), (1, 7), (95, 100), (100, 100)):
        exact = stats.binomtest(inside, total).proportion_ci(0.95, "exact")
        assert shares.clopper_pearson(inside, total) == pytest.approx(tuple(exact), rel=1e-6)
        if 0 < inside < total:
            expected = stats.binomtest(inside, total).proportion_ci(0.95, "wilson")
            assert shares.wilson(inside / total, total, intervals.NORMAL) == pytest.approx(tuple(expected), rel=1e-6)


def test_of_nothing_and_of_all_there_is_a_bound_on_one_side():
    """Of a share of 5 % none of 100 would be seen in one case of 169; of the bound, in one of 20."""
    low, high = shares.wilson(0.0, 100, intervals.NORMAL)
    assert low == 0.0
    assert (1 - high) ** 100 == pytest.approx(0.05)
    assert shares.wilson(1.0, 100, intervals.NORMAL) == (pytest.approx(1 - high), 1.0)


def test_the_binomial_error_is_that_of_repetitions():
    found = np.random.default_rng(2).binomial(40, 0.3, 20_000) / 40
    assert shares.binomial_error(0.3, 40) == pytest.approx(found.std(), rel=0.03)


@pytest.mark.parametrize(("share", "n"), [(0.0, 30), (1.0, 30), (0.1, 200), (0.5, 64)])
def test_the_smoothed_error_covers_and_is_never_0(share, n):
    rng = np.random.default_rng(4)
    truths = rng.uniform(0.02, 0.98, 4000)
    found = rng.binomial(n, truths) / n
    errors = np.array([shares.smoothed(one, n)[1] for one in found])
    assert np.mean(np.abs(found - truths) < 1.96 * errors) > 0.93
    middle, error = shares.smoothed(share, n)
    assert error > 0
    assert abs(middle - 0.5) <= abs(share - 0.5)
    assert shares.smoothed(0.5, 10**6) == (0.5, pytest.approx(0.5e-3, rel=1e-3))


@pytest.mark.parametrize("interval", ["wilson", "clopper_pearson"])
def test_intervals_of_shares_cover(interval):
    found = np.random.default_rng(5).binomial(60, 0.2, 4000)
    ends = {
        inside: shares.wilson(inside / 60, 60, intervals.NORMAL)
        if interval == "wilson"
        else shares.clopper_pearson(inside, 60)
        for inside in set(found.tolist())
    }
    held = np.mean([ends[inside][0] <= 0.2 <= ends[inside][1] for inside in found.tolist()])
    assert 0.93 < held < 0.985


def test_what_95_percent_allows():
    assert shares.is_nominal(0.95, 10)
    assert shares.is_nominal(0.95 - 2.9 * math.sqrt(0.95 * 0.05 / 400), 400)
    assert not shares.is_nominal(0.95 - 3.1 * math.sqrt(0.95 * 0.05 / 400), 400)
    assert not shares.is_nominal(1.0, 400)
    assert shares.is_nominal(1.0, 400, errors=5)
