"""Intervals: SciPy's quantiles, both scales, and how often they hold the truth."""

import math

import numpy as np
import pytest
from scipy import stats

from sqrtdk.statistics import intervals, means


def test_quantiles_are_students_and_the_normal_laws_in_the_limit():
    dof = (1.0, 3.0, 63.0, np.inf)
    assert intervals.t_quantile(dof) == pytest.approx([stats.t.ppf(0.975, d) for d in dof])
    assert intervals.t_quantile(5.0, 0.99) == pytest.approx(stats.t.ppf(0.995, 5))
    assert intervals.t_quantile(math.inf) == intervals.NORMAL


def test_without_degrees_of_freedom_there_is_no_interval():
    assert np.isnan(intervals.t_quantile([0.0, -1.0, np.nan])).all()
    assert np.isnan(intervals.half_width([1.0, 1.0, np.nan], [1, np.nan, 9])).all()
    assert np.isnan(intervals.interval(2.0, 1.0, 0)).all()
    assert np.isnan(intervals.log_interval(2.0, math.nan, 5)).all()


def test_degrees_of_freedom_of_sums_of_variances():
    """Of two variances that are alike those of both, of a second that is nothing or known those of the first."""
    spread = np.array([1 / 9, 1 / 9])
    assert intervals.welch_dof(np.array([1.0, 1.0]), spread) == pytest.approx(18)
    assert intervals.welch_dof(np.array([1.0, 0.0]), spread) == pytest.approx(9)
    assert intervals.welch_dof(np.array([1.0, 1.0]), np.zeros(2)) == math.inf


def test_the_series_is_near_the_quantile():
    for n in (9, 32, 64, 1000):
        assert intervals.t_quantile_by_series(n) == pytest.approx(stats.t.ppf(0.975, n - 1), abs=1e-3)
    with pytest.raises(ValueError, match="at least 9"):
        intervals.t_quantile_by_series(8)


def test_half_widths_and_intervals_are_of_one_width():
    low, high = intervals.interval(5.0, 2.0, 7)
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 7, 5.0, 2.0))
    assert intervals.half_width([2.0], [8]) == pytest.approx([(high - low) / 2])


def test_logarithmic_intervals_are_symmetric_in_the_ratio_and_can_be_read_back():
    low, high = intervals.log_interval(5.0, 0.3, 7)
    assert (low, high) == pytest.approx(np.exp(stats.t.interval(0.95, 7, math.log(5.0), 0.3)))
    assert intervals.log_error(low, high, 7) == pytest.approx(0.3)
    low, high = intervals.log_interval(5.0, 1e6, 7)
    assert 0 < low < 1e-200
    assert 1e200 < high < math.inf


def test_means_with_intervals_on_plain_numbers():
    x = np.array([1.0, 2.0, 6.0])
    expected = stats.t.interval(0.95, 2, 3.0, x.std(ddof=1) / math.sqrt(3))
    assert means.mean_interval(x) == pytest.approx((3.0, *expected))
    assert means.geometric_interval(np.exp(x)) == pytest.approx(np.exp((3.0, *expected)))
    assert means.mean_interval(np.array([4.0])) == pytest.approx((4.0, math.nan, math.nan), nan_ok=True)
    assert means.geometric_interval(np.array([4.0])) == pytest.approx((4.0, math.nan, math.nan), nan_ok=True)


@pytest.mark.parametrize("n", [2, 8])
def test_intervals_of_few_values_cover(n):
    x = np.random.default_rng(1).normal(3.0, 2.0, (2000, n))
    found = np.array([means.mean_interval(row)[1:] for row in x])
    held = np.mean((found[:, 0] <= 3.0) & (found[:, 1] >= 3.0))
    assert abs(held - 0.95) < 3.5 * math.sqrt(0.95 * 0.05 / 2000)
    geometric = np.array([means.geometric_interval(np.exp(row))[1:] for row in x[:100]])
    assert np.log(geometric) == pytest.approx(found[:100])
    # Negative control: the normal law in place of Student's t.
    normal = np.abs(x.mean(axis=1) - 3.0) <= intervals.NORMAL * x.std(axis=1, ddof=1) / math.sqrt(n)
    assert normal.mean() < 0.93
