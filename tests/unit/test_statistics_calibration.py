"""The judgement of standard errors: right ones pass, wrong ones do not, whatever errs together."""

import numpy as np
import pytest

from sqrtdk.statistics.calibration import FEWEST_UNITS, SIZE, calibrate, normal_scores


def runs(rng, n_runs, n_units, per_unit, factor=1.0, n_values=40):
    """Yield judged runs whose estimates share half of their variance within a unit, with errors off by a factor."""
    for _ in range(n_runs):
        common = rng.standard_normal((n_units, 1))
        z = np.sqrt(0.5) * (common + rng.standard_normal((n_units, per_unit)))
        spread = np.sqrt(rng.chisquare(n_values - 1, z.shape) / (n_values - 1))
        scores = normal_scores((factor * z / spread).ravel(), np.full(z.size, n_values))
        yield calibrate(scores, np.repeat(np.arange(n_units), per_unit))


def test_scores_of_a_t_number_are_normal():
    rng = np.random.default_rng(1)
    scores = normal_scores(rng.standard_t(9, 200_000), np.full(200_000, 10))
    assert np.mean(scores**2) == pytest.approx(1, abs=4.5 * np.sqrt(2 / 200_000))
    assert np.mean(scores < 1.96) == pytest.approx(0.95, abs=0.003)
    assert np.isfinite(normal_scores(np.array([0.0, 1e6]), np.array([5000, 5000]))).all()


def test_right_errors_are_called_wrong_as_often_as_said():
    found = list(runs(np.random.default_rng(2), 600, 60, 5))
    wrong = np.mean([not one.right for one in found])
    assert wrong == pytest.approx(SIZE, abs=4 * np.sqrt(SIZE / 600))
    for low, high, truth in (("share_low", "share_high", 0.95), ("ratio_low", "ratio_high", 1.0)):
        held = np.mean([getattr(one, low) <= truth <= getattr(one, high) for one in found])
        assert held == pytest.approx(0.95, abs=0.04), low


def test_wrong_errors_are_noticed():
    for factor in (1.25, 0.8):
        found = list(runs(np.random.default_rng(3), 40, 150, 5, factor))
        assert np.mean([not one.right for one in found]) > 0.9
        assert np.mean([one.ratio for one in found]) == pytest.approx(factor, rel=0.03)


def test_duplicates_within_a_unit_change_no_interval():
    rng = np.random.default_rng(4)
    scores, units = np.abs(rng.standard_normal(50)), np.arange(50)
    once, often = calibrate(scores, units), calibrate(np.repeat(scores, 6), np.repeat(units, 6))
    for name in ("share", "share_low", "share_high", "ratio", "ratio_low", "ratio_high", "right"):
        assert getattr(once, name) == pytest.approx(getattr(often, name))


def test_a_share_of_one_has_a_bound():
    found = calibrate(np.linspace(0.5, 1.5, 20), np.arange(20))
    assert (found.share, found.share_high) == (1, 1)
    assert found.share_low == pytest.approx(0.05 ** (1 / 20))


def test_too_few_units_are_judged_by_nothing():
    for n in (1, FEWEST_UNITS - 1):
        found = calibrate(np.linspace(0.1, 1, n), np.arange(n))
        assert not found.enough
        assert not found.right
        assert np.isnan(found.share_low)
