"""Exact averages of softmax over Gaussian logits: identities, low-dimensional integrals, series and Monte Carlo."""

import math

import numpy as np
import pytest
from scipy import special, stats

from sqrtdk.rows import gradients, softmax
from sqrtdk.sampling import streams
from sqrtdk.theory import random_energy
from sqrtdk.theory.random_energy import averages

SPREADS = (0.01, 0.3, 0.69, 0.71, 1.0, 3.0, 10.0, 64.0)


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("n_keys", [2, 3, 64, 4096, 2**20])
def test_shares_add_up(n_keys, spread):
    a = averages(n_keys, spread)
    assert a.participation + a.trace == pytest.approx(1, abs=1e-12)
    assert 1 / n_keys <= a.participation <= 1
    assert a.cube <= a.participation
    assert 0 < a.jacobian_square <= 0.5
    assert 0 <= a.entropy <= math.log(n_keys) + 1e-9


@pytest.mark.parametrize("spread", SPREADS)
def test_two_keys_are_one_logistic_integral(spread):
    """With two keys p₁ is the logistic function of a normal gap of variance 2s²."""
    sd = math.sqrt(2) * spread
    gap, step = np.linspace(-12 * sd, 12 * sd, 200_001, retstep=True)
    weight = stats.norm.pdf(gap, scale=sd) * step
    p, q = special.expit(gap), special.expit(-gap)
    expected = {
        "participation": p**2 + q**2,
        "cube": p**3 + q**3,
        "jacobian_square": 4 * p**2 * q**2,
        "trace": 2 * p * q,
        "entropy": special.entr(p) + special.entr(q),
        "pull": 2 * (p * q * gap) ** 2 / spread**2,
    }
    for name, values in expected.items():
        assert getattr(averages(2, spread), name) == pytest.approx(float(values @ weight), rel=1e-8), name


@pytest.mark.parametrize(("n_keys", "spread"), [(3, 0.5), (8, 2.0), (64, 1.0), (64, 8.0), (1024, 4.0), (300, 40.0)])
def test_monte_carlo_agrees(n_keys, spread):
    rng = streams.generator(1, "random energy", n_keys, str(spread))
    z = spread * rng.standard_normal((400_000 // n_keys + 2000, n_keys))
    p = softmax.softmax(z)
    rows = softmax.rows(z)
    measured = {
        "participation": np.sum(p**2, axis=1),
        "cube": np.sum(p**3, axis=1),
        "jacobian_square": softmax.jacobian_frobenius(rows) ** 2,
        "trace": softmax.jacobian_trace(rows),
        "entropy": softmax.entropy(rows),
        "pull": np.sum(gradients.softmax_backward(rows, z) ** 2, axis=1) / spread**2,
    }
    a = averages(n_keys, spread)
    for name, values in measured.items():
        z_score = (values.mean() - getattr(a, name)) / (values.std() / math.sqrt(len(values)))
        assert abs(z_score) < 4.5, name


@pytest.mark.parametrize("n_keys", [2, 64, 1024, 2**20])
def test_small_spreads_follow_the_series(n_keys):
    s = 1e-3
    a = averages(n_keys, s)
    share = (n_keys - 1) / n_keys
    assert a.participation * n_keys - 1 == pytest.approx(s**2 * share, rel=1e-5)
    assert math.log(n_keys) - a.entropy == pytest.approx(s**2 * share / 2, rel=1e-4)
    assert a.pull == pytest.approx(share / n_keys, rel=1e-4)


def test_no_spread_is_the_uniform_row():
    a = averages(8, 0)
    assert (a.participation, a.entropy) == (1 / 8, math.log(8))
    assert a.jacobian_square == pytest.approx(7 / 64)
    assert a.pull == pytest.approx(averages(8, 1e-4).pull, rel=1e-6)


def test_one_key_has_nothing_to_share():
    a = averages(1, 3.0)
    assert (a.participation, a.trace, a.entropy) == (1, 0, 0)


def test_many_keys_at_small_spread_are_annealed():
    """E Σp² tends to e^{s²}/n with a relative correction of order 1/n."""
    s, n = 1.0, 2**20
    correction = 1 + (3 * math.exp(s**2) - 2 * math.exp(2 * s**2) - 1) / n
    assert averages(n, s).participation == pytest.approx(math.exp(s**2) / n * correction, rel=1e-8)


@pytest.mark.parametrize("spread", [6.0, 96.0, 1000.0, 16384.0])
@pytest.mark.parametrize("n_keys", [2, 64, 2**20])
def test_a_wide_spread_is_summed_as_exactly_in_coarse_steps(n_keys, spread, monkeypatch):
    coarse = vars(averages(n_keys, spread))
    monkeypatch.setattr(random_energy, "STEP_PER_SPREAD", 0.03)
    fine = vars(averages(n_keys, spread))
    assert coarse == pytest.approx(fine, rel=1e-12 if spread < 100 else 1e-9)


@pytest.mark.parametrize("spread", [0.01, 0.7, 5.0, 5.1, 96.0])
@pytest.mark.parametrize("n_keys", [2, 64, 2**20])
def test_entropy_is_the_other_side_of_gaussian_integration_by_parts(n_keys, spread):
    """E H = E ln Z − s² E tr J; the two sides are different integrals, of which the right one cancels."""
    a = averages(n_keys, spread)
    assert a.entropy == pytest.approx(a.log_partition - spread**2 * a.trace, abs=1e-13 * (1 + a.log_partition) * 10)


@pytest.mark.parametrize("n_keys", [2, 64, 2**20])
def test_frozen_averages_fall_off_as_the_spread(n_keys):
    """A tie of the two largest has a density of 1/s, so that what needs one is proportional to 1/s."""
    near, far = averages(n_keys, 5000.0), averages(n_keys, 10000.0)
    for name in ("trace", "entropy", "jacobian_square"):
        assert getattr(near, name) / getattr(far, name) == pytest.approx(2, rel=1e-3), name


def test_half_frozen_spreads_are_the_known_ones():
    for n, spread in ((16, 3.18), (64, 4.40), (256, 5.41), (1024, 6.28), (4096, 7.05), (16384, 7.76), (2**20, 9.59)):
        assert averages(n, spread).participation == pytest.approx(0.5, abs=0.002)


@pytest.fixture(scope="module")
def interpolated():
    def columns(n_keys):
        rows = random_energy.tabulate(n_keys)
        return {name: [row[name] for row in rows] for name in rows[0]}

    return {n: random_energy.Interpolated(columns(n)) for n in (4, 256)}


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.0, 0.02, 0.777, 2.2, 9.1, 50.0, 97.0, 5000.0])
def test_interpolation_keeps_the_integrals(interpolated, spread):
    for n, averages_of in interpolated.items():
        a = averages(n, spread)
        for name in random_energy.COLUMNS[1:]:
            assert averages_of(name, np.array([spread]))[0] == pytest.approx(getattr(a, name), rel=3e-6), name
