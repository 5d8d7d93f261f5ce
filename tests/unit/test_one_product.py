"""One product Q Kᵀ as a test of the variance: exact error, mean and chance against simulation and a second way."""

import numpy as np
import pytest

from sqrtdk.sampling import one_product


def products(n, d_k, draws, seed=5):
    rng = np.random.default_rng(seed)
    q, k = rng.standard_normal((2, draws, n, d_k))
    return q @ k.swapaxes(-1, -2)


@pytest.mark.parametrize(("n", "d_k"), [(1, 1), (2, 2), (4, 16), (16, 4), (8, 64)])
def test_error_and_means_against_simulation(n, d_k):
    scores = products(n, d_k, 40_000 // n + 4000)
    estimates = np.mean(scores**2, axis=(1, 2)) / d_k
    count = len(estimates)
    assert abs(estimates.mean() - 1) < 4.5 * one_product.relative_error(n, d_k) / count**0.5
    # The error of a variance, from the fourth moment of the estimates themselves.
    deviation = (estimates - 1) ** 2
    assert abs(deviation.mean() - one_product.relative_error(n, d_k) ** 2) < 4.5 * deviation.std() / count**0.5
    centred = np.var(scores, axis=(1, 2))
    error = max(centred.std() / count**0.5, 1e-12)
    assert abs(centred.mean() - one_product.centred_mean(n, d_k)) < 4.5 * error


def test_error_is_far_above_that_of_independent_scores():
    assert one_product.relative_error(512, 64) > 3 * (2 / 512**2) ** 0.5
    assert one_product.relative_error(2, 2) == pytest.approx(1.75**0.5)


@pytest.mark.parametrize("value", [0.01, 0.5, 1.6, 2.0, 8.0])
def test_chance_against_simulation(value):
    estimates = np.mean(products(2, 2, 200_000) ** 2, axis=(1, 2))
    chance = one_product.chance_below(value)
    error = (chance * (1 - chance) / len(estimates)) ** 0.5
    assert abs(np.mean(estimates < value) - chance) < 4.5 * error


@pytest.mark.slow
def test_chance_is_a_distribution_whose_mean_is_two():
    values = np.linspace(1e-4, 400, 400_001)
    chance = np.array([one_product.chance_below(value) for value in values[::400]])
    assert np.all(np.diff(chance) >= -1e-12)
    assert chance[0] < 1e-3
    assert chance[-1] == pytest.approx(1, abs=1e-9)
    # ∫(1 − F) is the mean of what is not negative.
    assert np.trapezoid(1 - chance, values[::400]) == pytest.approx(2, rel=5e-3)
