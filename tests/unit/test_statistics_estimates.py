"""Estimates with errors: the textbook's formulas, and errors that are those of repetitions."""

import math

import numpy as np
import pytest
from scipy import stats

from sqrtdk.sampling import moments
from sqrtdk.statistics import estimates, quantiles


def test_mean_and_rms_on_plain_numbers():
    x = np.array([1.0, 2.0, 6.0])
    assert estimates.mean(x) == (pytest.approx(3.0), pytest.approx(x.std(ddof=1) / math.sqrt(3)))
    assert estimates.rms(np.array([4.0, 4.0, 4.0, 4.0])) == (2.0, 0.0)
    many = np.random.default_rng(3).gamma(4.0, size=1000)
    delta = many.std(ddof=1) / math.sqrt(1000) / 2 / math.sqrt(many.mean())
    assert estimates.rms(many)[1] == pytest.approx(delta, rel=1e-3)


def test_a_single_value_has_no_error():
    assert estimates.mean(np.array([3.0])) == (3.0, pytest.approx(math.nan, nan_ok=True))
    assert math.isnan(estimates.jackknife_error(np.array([3.0])))
    assert math.isnan(estimates.jackknife_error(np.array([3.0, 4.0]), np.array([])))


def test_rms_of_one_block_with_everything():
    """Leaving that block out leaves 0, or less by a rounding error, which has no root."""
    missed = 0
    for size in np.random.default_rng(6).lognormal(0, 20, 50):
        missed += 71 * (size / 71) < size
        estimate, se = estimates.rms(np.array([0.0] * 70 + [size]))
        assert estimate == pytest.approx(math.sqrt(size / 71), abs=0)
        assert 0 < se < 10 * estimate
    assert missed > 0
    assert estimates.rms(np.zeros(64)) == (0.0, 0.0)


def test_the_jackknife_of_a_mean_is_the_textbook_error():
    x = np.random.default_rng(1).exponential(size=(50, 1))
    for jackknife in (estimates.plug_in, estimates.bias_corrected):
        estimate = jackknife(lambda p: p[..., 0], x)
        assert estimate.value == pytest.approx(x.mean())
        assert estimate.se == pytest.approx(x.std(ddof=1) / math.sqrt(50))
    assert estimates.jackknife_skewness(lambda p: p[..., 0], x) == pytest.approx(stats.skew(x[:, 0]))


def test_the_corrected_jackknife_of_a_variance_subtracts_the_mean_across_blocks():
    powers = np.random.default_rng(2).normal(size=(20, 2))
    first, second = powers.T
    products = (first.sum() ** 2 - np.sum(first**2)) / (20 * 19)
    corrected = estimates.bias_corrected(moments.central_variance, powers)
    assert corrected.value == pytest.approx(second.mean() - products)
    plain = estimates.plug_in(moments.central_variance, powers)
    assert plain.value == pytest.approx(second.mean() - first.mean() ** 2)
    assert plain.se == corrected.se


def test_only_one_jackknife_corrects_bias():
    """The square of a mean of 0 is on average 1/n, and without its bias 0."""
    x = np.random.default_rng(3).standard_normal((4000, 10))
    plain, corrected = (
        np.mean([jackknife(np.square, row).value for row in x])
        for jackknife in (estimates.plug_in, estimates.bias_corrected)
    )
    assert plain == pytest.approx(0.1, abs=0.01)
    assert corrected == pytest.approx(0.0, abs=0.01)


def test_errors_of_two_kinds_of_units_add_up():
    x, y = np.random.default_rng(4).exponential(size=(2, 30))
    one, other = (estimates.left_out(lambda m: m, values) for values in (x, y))
    both = estimates.jackknife_error(one, other)
    assert both == pytest.approx(math.hypot(*(values.std(ddof=1) / math.sqrt(30) for values in (x, y))))
    assert estimates.jackknife_error(one) == pytest.approx(x.std(ddof=1) / math.sqrt(30))


def held(estimates, errors, n_blocks, expected):
    """How many 95 % intervals, of Student's t between blocks, hold the expected value."""
    return np.sum(np.abs(estimates - expected) <= stats.t.ppf(0.975, n_blocks - 1) * errors)


def test_errors_of_rows_taken_as_independent_are_caught():
    """Negative control: the same intervals from the number of rows cover far less often."""
    n_studies, n_blocks, n_rows = 300, 80, 12
    rng = np.random.default_rng(5)
    values = np.exp(rng.standard_normal((n_studies, n_blocks, 1)) + 0.3 * rng.standard_normal((1, 1, n_rows)))
    honest = np.array([quantiles.median(x) for x in values])
    naive = np.array([quantiles.median(x.reshape(-1, 1)) for x in values])
    middle = np.median(values)
    assert abs(held(*honest.T, n_blocks, middle) / n_studies - 0.95) < 3.5 * math.sqrt(0.95 * 0.05 / n_studies)
    assert held(*naive.T, n_blocks * n_rows, middle) / n_studies < 0.7
    means = np.array([estimates.mean(x.mean(axis=1)) for x in values])
    naive = np.array([estimates.mean(x.ravel()) for x in values])
    assert np.median(means[:, 1]) > 2 * np.median(naive[:, 1])
