"""The largest weight and the effective number of keys: integrals, limits and laws against simulated rows."""

import math

import numpy as np
import pytest
from scipy import special

from sqrtdk.rows import softmax
from sqrtdk.sampling import streams
from sqrtdk.theory import asymptotics, concentration, gaussian_rows
from sqrtdk.theory.concentration import effective_keys, max_weight


def simulated(n_keys, spread, n_rows=None):
    rng = streams.generator(7, "concentration", n_keys, str(spread))
    return softmax.rows(spread * rng.standard_normal((n_rows or 2_000_000 // n_keys, n_keys)))


@pytest.mark.parametrize("spread", [0.01, 0.5, 3.0, 100.0])
def test_two_keys_are_one_logistic_integral(spread):
    gap, step = np.linspace(-12, 12, 200_001, retstep=True)
    weight = np.exp(-(gap**2) / 2) * step / math.sqrt(2 * math.pi)
    largest = special.expit(np.abs(gap) * spread * math.sqrt(2))
    assert max_weight([2], spread)[0] == pytest.approx(weight @ largest, rel=1e-7)
    assert effective_keys([2], spread)[0] == pytest.approx(weight @ (1 / (largest**2 + (1 - largest) ** 2)), rel=1e-9)


@pytest.mark.parametrize(("n_keys", "spread"), [(3, 1.0), (16, 0.3), (16, 3.0), (64, 1.0), (64, 8.0), (1024, 4.0)])
def test_simulated_rows_agree(n_keys, spread):
    row = simulated(n_keys, spread)
    for values, exact in (
        (softmax.max_weight(row), max_weight([n_keys], spread)[0]),
        (softmax.effective_keys(row), effective_keys([n_keys], spread)[0]),
    ):
        assert abs(values.mean() - exact) < 4.5 * values.std() / math.sqrt(len(values))


def test_ends():
    assert (max_weight([1, 8], 0.0), effective_keys([1, 8], 0.0)) == ([1, 1 / 8], [1, 8])
    assert max_weight([1], 3.0)[0] == pytest.approx(1, rel=1e-9)
    assert effective_keys([1], 3.0) == [1]
    assert max_weight([8], 1e-6)[0] == pytest.approx(1 / 8, rel=1e-5)
    assert effective_keys([2**20], 0.5)[0] == pytest.approx(2**20 * math.exp(-0.25), rel=1e-4)
    # One number of keys is integrated as among others.
    assert max_weight([16, 2**20], 4.0)[0] == pytest.approx(max_weight([16], 4.0)[0], rel=1e-9)


@pytest.mark.slow
def test_tables_keep_the_integrals():
    table = concentration.tabulate([4, 1024])
    for n, averages_of in table.items():
        for spread in (0.05, 0.777, 9.1, 50.0, 5000.0):
            assert averages_of("max_weight", spread) == pytest.approx(max_weight([n], spread)[0], rel=1e-5)
            assert averages_of("effective_keys", spread) == pytest.approx(effective_keys([n], spread)[0], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_keys", "spread"), [(64, 8), (64, 16), (16, 8), (1024, 8), (256, 16), (16, 16), (1024, 16), (4096, 12)]
)
def test_the_law_of_the_largest_weight(n_keys, spread):
    """P(p_max > 0.99), to a tenth with the hazard, which is nearer than the limit; as good for 0.9."""
    row = simulated(n_keys, spread, 40_000 if n_keys <= 256 else 8000)
    near, limit = asymptotics.hazard(n_keys) / spread, asymptotics.critical_spread(n_keys) / spread
    for rest in (0.01, 0.1):
        share = np.mean(row.largest > 1 - rest)
        noise = 4.5 * math.sqrt(share * (1 - share) / len(row.largest))
        law = concentration.saturated_share(near, rest)
        assert abs(law - share) < 0.1 * share + noise
        assert abs(law - share) < abs(concentration.saturated_share(limit, rest) - share) + noise
    # The Jacobian rests on smaller weights, further in the tail, where n is large enough later.
    share = np.mean(softmax.jacobian_frobenius(row) < 1e-3)
    noise = 4.5 * math.sqrt(share * (1 - share) / len(row.largest))
    assert abs(concentration.vanishing_share(near, 1e-3) - share) < 0.35 * share + noise


def test_no_row_is_saturated_in_the_hot_phase():
    m = np.array([1.0, 1.5, 40.0])
    assert concentration.saturated_share(m, 0.01) == pytest.approx(0, abs=1e-12)
    assert concentration.vanishing_share(m, 0.001) == pytest.approx(0, abs=1e-12)


def test_laws_and_averages_of_a_head():
    """Over queries the logits' spread is c‖q‖: at d_k = 64 without the scale nearly 8."""
    mixed = gaussian_rows.standard_normal(64)
    found = gaussian_rows.frozen_laws(mixed, 64, 1.0)
    m = asymptotics.hazard(64) / 8
    assert found["saturated_share"] == pytest.approx(float(concentration.saturated_share(m, 0.01)), rel=0.03)
    assert gaussian_rows.frozen_laws(mixed, 64, 1 / 8)["saturated_share"] < 1e-6
    averages_of = concentration.tabulate([64])[64]
    assert gaussian_rows.concentration_of(mixed, 1.0, averages_of)["max_weight"] == pytest.approx(0.79, abs=0.01)
    assert gaussian_rows.concentration_of(mixed, 1e5, averages_of) == {}
