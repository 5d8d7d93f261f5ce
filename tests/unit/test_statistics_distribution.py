"""The table of gradient norms of dependent rows: closed forms, second implementations, and intervals that cover."""

import math

import numpy as np
import pytest
import scipy.stats

from sqrtdk.statistics import distribution
from sqrtdk.statistics.quantiles import Ordered

COLUMNS = ["statistic", "estimate", "se", "low", "high"]


def by_name(values, uniform=None):
    return {row["statistic"]: row for row in distribution.statistics(values, uniform)}


def dependent(rng, n_blocks=80, n_rows=12, shared=0.6):
    """Lognormal rows over several decades, correlated within a block; the quantiles are those of exp(3·normal)."""
    common = rng.standard_normal((n_blocks, 1))
    own = rng.standard_normal((n_blocks, n_rows))
    return np.exp(3 * (math.sqrt(shared) * common + math.sqrt(1 - shared) * own))


def test_rows_of_the_table():
    rows = distribution.statistics(dependent(np.random.default_rng(1)), uniform=0.5)
    assert all(list(row) == COLUMNS for row in rows)
    names = [row["statistic"] for row in rows]
    assert names[0] == "quantile_0.01"
    assert "quantile_0.5" in names
    assert names[-5:] == ["below_1e-3", "below_1e-6", "below_1e-10", "below_1pct_uniform", "top_tenth_energy"]
    assert "below_1pct_uniform" not in by_name(dependent(np.random.default_rng(1)))
    for row in rows:
        assert row["low"] <= row["estimate"] <= row["high"], row


def test_top_energy_is_what_sorting_gives():
    rng = np.random.default_rng(3)
    values = dependent(rng, 100, 10)
    squares = np.sort(values.ravel() ** 2)
    share, _ = distribution.top_energy(Ordered(values))
    # A thousand rows: the top tenth are the last hundred, but for the part of a row between two ranks.
    assert share == pytest.approx(squares[-100:].sum() / squares.sum(), abs=2e-3)
    assert distribution.top_energy(Ordered(np.full((10, 10), 3.0))) == (
        pytest.approx(0.1),
        pytest.approx(0.0, abs=1e-12),
    )
    assert distribution.top_energy(Ordered(np.zeros((10, 10)))) is None
    # Norms whose squares cannot be held.
    assert distribution.top_energy(Ordered(values * 1e-250))[0] == pytest.approx(share)
    assert by_name(np.zeros((10, 10)))["top_tenth_energy"] == dict.fromkeys(COLUMNS[1:]) | {
        "statistic": "top_tenth_energy"
    }


def test_top_energy_error_is_that_of_the_jackknife():
    values = np.random.default_rng(4).gamma(0.7, size=(60, 1)) * np.random.default_rng(5).gamma(0.7, size=(60, 40))
    rows = Ordered(values)
    left_out = [distribution.top_energy(Ordered(np.delete(values, i, axis=0)))[0] for i in range(60)]
    jackknife = math.sqrt(59 * np.var(left_out))
    assert distribution.top_energy(rows)[1] == pytest.approx(jackknife, rel=0.15)


def test_share_without_a_row_gets_an_honest_bound():
    rng = np.random.default_rng(6)
    independent = by_name(rng.uniform(0.5, 1.5, (100, 20)))["below_1e-3"]
    assert (independent["estimate"], independent["se"], independent["low"]) == (0.0, None, 0.0)
    # The rule of three, of two thousand rows.
    assert independent["high"] == pytest.approx(3 / 2000, rel=0.35)
    alike = np.repeat(rng.uniform(0.5, 1.5, (100, 1)), 20, axis=1)
    assert by_name(alike)["below_1e-3"]["high"] == pytest.approx(3 / 100, rel=0.35)
    all_below = by_name(alike * 1e-8)["below_1e-6"]
    assert (all_below["estimate"], all_below["se"], all_below["high"]) == (1.0, None, 1.0)
    assert all_below["low"] == pytest.approx(1 - 3 / 100, rel=0.01)
    # Rows that do not differ at all show nothing but that blocks are independent.
    assert by_name(np.ones((100, 20)))["below_1e-3"]["high"] == pytest.approx(1 - 0.05**0.01)


def covered(estimate, n_studies=300):
    rng = np.random.default_rng(7)
    return np.mean([estimate(dependent(rng)) for _ in range(n_studies)])


def near_95(share, n_studies=300):
    return abs(share - 0.95) < 3.5 * math.sqrt(0.95 * 0.05 / n_studies)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.05, 0.3, 0.5, 0.9])
def test_intervals_of_quantiles_cover(level):
    truth = math.exp(3 * scipy.stats.norm.ppf(level))

    def inside(values, name=f"quantile_{level:g}"):
        row = by_name(values)[name]
        return row["low"] <= truth <= row["high"]

    assert near_95(covered(inside))
    # Negative control: rows taken as independent.
    assert covered(lambda values: inside(values.reshape(-1, 1))) < 0.8


@pytest.mark.parametrize("statistic", ["below_1e-3", "below_1pct_uniform"])
def test_intervals_of_shares_cover(statistic):
    threshold = {"below_1e-3": 1e-3, "below_1pct_uniform": 0.3}[statistic]
    truth = scipy.stats.norm.cdf(math.log(threshold) / 3)

    def inside(values):
        row = by_name(values, uniform=30.0)[statistic]
        return row["low"] <= truth <= row["high"]

    share = covered(inside)
    # Of the smaller share only one row is expected among those that are effectively independent.
    assert share > 0.88
    if statistic == "below_1pct_uniform":
        assert near_95(share)


@pytest.mark.slow
def test_intervals_of_the_top_tenth_cover():
    def gentle(values):
        return values ** (1 / 12)

    rng = np.random.default_rng(8)
    truth, _ = distribution.top_energy(Ordered(gentle(dependent(rng, 40_000))))

    def inside(values):
        row = by_name(gentle(values))["top_tenth_energy"]
        return row["low"] <= truth <= row["high"]

    assert abs(covered(inside) - 0.95) < 0.06
    assert covered(lambda values: inside(values.reshape(-1, 1))) < 0.9
