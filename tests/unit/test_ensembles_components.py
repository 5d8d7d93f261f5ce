"""Families by how the components of q and of k are distributed: laws against a second way."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from ensemble_cases import away, draw_scores, spec_id
from scipy import stats

from sqrtdk.sampling import ensembles, streams
from sqrtdk.sampling.ensembles.iid import Iid


class Coin(Iid):
    """Components of two values, P(high) = 1/5: so few outcomes that all can be listed."""

    def shape(self):
        return 1.5, 3.25

    def standardised(self, rng, size):
        return rng.choice([2.0, -0.5], p=[0.2, 0.8], size=size)


class TestIndependentComponents:
    def test_plan_is_that_of_all_outcomes(self):
        """Blocks of two queries and one key, and of one and two, in two dimensions; skewed, with means."""
        coin = Coin(query_mean=0.5, key_mean=-0.3, query_sd=1.5, key_sd=0.8)
        vectors = np.array(list(itertools.product([2.0, -0.5], repeat=2)))
        chance = np.array([0.2 if x == 2 else 0.8 for x in vectors.ravel()]).reshape(-1, 2).prod(axis=1)
        scores = (0.5 + 1.5 * vectors) @ (-0.3 + 0.8 * vectors).T
        exact = coin.exact(2)
        assert chance @ scores @ chance == pytest.approx(exact.mean)
        squares = (scores - exact.mean) ** 2
        assert chance @ squares @ chance == pytest.approx(exact.variance)
        for n_queries, n_keys, table in ((1, 2, squares), (2, 1, squares.T)):
            second = sum(
                chance[one] * chance[a] * chance[b] * ((table[one, a] + table[one, b]) / 2) ** 2
                for one, a, b in itertools.product(range(4), repeat=3)
            )
            planned = coin.block_relative_variance(2, n_queries, n_keys)
            assert planned == pytest.approx(second / exact.variance**2 - 1)

    @pytest.mark.parametrize(
        ("spec", "component", "density", "points"),
        [
            (
                {"family": "lognormal", "sigma": 0.5},
                lambda z: (mpmath.exp(z / 2 - 0.125) - 1) / mpmath.sqrt(mpmath.expm1(0.25)),
                mpmath.npdf,
                [-mpmath.inf, 0, mpmath.inf],
            ),
            (
                {"family": "lognormal", "sigma": 0.5, "query_mean": 0.6, "key_mean": 0.6},
                lambda z: 0.6 + (mpmath.exp(z / 2 - 0.125) - 1) / mpmath.sqrt(mpmath.expm1(0.25)),
                mpmath.npdf,
                [-mpmath.inf, 0, mpmath.inf],
            ),
            ({"family": "uniform01"}, lambda u: u, lambda u: 1, [0, 1]),
            (
                {"family": "sparse", "p": 0.25},
                lambda z: 2 * z,
                lambda z: mpmath.npdf(z) / 4,
                [-mpmath.inf, 0, mpmath.inf],
            ),
        ],
        ids=["lognormal", "lognormal-shifted", "uniform01", "sparse"],
    )
    def test_moments_are_those_of_the_density(self, spec, component, density, points):
        raw = [float(mpmath.quad(lambda x, r=r: component(x) ** r * density(x), points)) for r in range(1, 5)]
        # The product of two independent ones; cumulants of the sum of d_k add.
        m1, m2, m3, m4 = (moment**2 for moment in raw)
        variance = m2 - m1**2
        excess = (m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4) / variance**2 - 3
        exact = ensembles.build(spec).exact(8)
        assert (exact.mean, exact.variance) == pytest.approx((8 * m1, 8 * variance), rel=1e-9, abs=1e-9)
        assert exact.excess_kurtosis == pytest.approx(excess / 8, rel=1e-9)

    def test_uniform01_is_what_a_generator_gives(self):
        exact = ensembles.build({"family": "uniform01"}).exact(64)
        assert (exact.mean, exact.variance, exact.within_row_variance) == pytest.approx((16, 7 * 64 / 144, 64 / 36))

    def test_lognormal_components_follow_their_law(self):
        ensemble = ensembles.build({"family": "lognormal", "sigma": 0.8})
        x = ensemble.standardised(streams.generator(2, "lognormal"), (100_000,)).astype(float)
        x = 1 + x * math.sqrt(math.expm1(0.64))
        assert stats.kstest(x, stats.lognorm(0.8, scale=math.exp(-0.32)).cdf).pvalue > 1e-4

    def test_sparse_components_are_zero_as_often_as_they_should(self):
        n, p = 100_000, 0.1
        x = ensembles.build({"family": "sparse", "p": p}).standardised(streams.generator(3, "sparse"), (n,))
        assert abs(np.mean(x != 0) - p) < 4.5 * math.sqrt(p * (1 - p) / n)
        assert stats.kstest(x[x != 0] * math.sqrt(p), stats.norm.cdf).pvalue > 1e-4

    @pytest.mark.parametrize(("family", "name", "value"), [("lognormal", "sigma", 1.5), ("sparse", "p", 0)])
    def test_parameters_outside_their_domain_are_refused(self, family, name, value):
        with pytest.raises(ensembles.SpecError, match=name):
            ensembles.build({"family": family, name: value})

    def test_uniform01_has_no_parameters(self):
        with pytest.raises(ensembles.SpecError, match="it has none"):
            ensembles.build({"family": "uniform01", "query_mean": 0})


class TestScaleMixtures:
    def test_multivariate_t_is_that_of_scipy(self):
        """Var and kurtosis of qᵀk by SciPy's density: the length is √(d_k F) and the direction uniform."""
        d_k, df = 3, 14.0
        ensemble = ensembles.build({"family": "multivariate_t", "df": df})
        q = ensemble.draw(streams.generator(9, "t"), 50_000, 1, 1, d_k)[0][:, 0].astype(float) * math.sqrt(
            df / (df - 2)
        )
        assert stats.kstest(q[:, 0], stats.t(df).cdf).pvalue > 1e-4
        assert stats.kstest((q**2).sum(axis=1) / d_k, stats.f(d_k, df).cdf).pvalue > 1e-4
        second, fourth = (stats.f(d_k, df).moment(r) * (d_k * (df - 2) / df) ** r for r in (1, 2))
        exact = ensemble.exact(d_k)
        assert exact.variance == pytest.approx(second**2 / d_k)
        assert exact.excess_kurtosis == pytest.approx(3 * fourth**2 / (d_k * (d_k + 2)) / exact.variance**2 - 3)

    def test_lognormal_factor_has_a_mean_square_of_one(self):
        ensemble = ensembles.build({"family": "scale_mixture", "query_sigma": 0.4, "key_sigma": 0})
        query, key = ensemble.factors(streams.generator(10, "factor"), 100_000, 1, 1)
        assert stats.kstest(np.log(query.ravel()), stats.norm(-0.16, 0.4).cdf).pvalue > 1e-4
        assert (key == 1).all()
        for power, moment in ((2, 1.0), (4, ensemble.fourth_moments()[0])):
            assert float(
                mpmath.quad(
                    lambda x, p=power: mpmath.exp(p * (0.4 * x - 0.16) - x * x / 2) / mpmath.sqrt(2 * mpmath.pi),
                    [-mpmath.inf, mpmath.inf],
                )
            ) == pytest.approx(moment)

    def test_kurtosis_stays_however_wide_the_head(self):
        exact = ensembles.build({"family": "scale_mixture", "query_sigma": 0.25, "key_sigma": 0.25}).exact(10**6)
        assert exact.excess_kurtosis == pytest.approx(3 * math.exp(0.5) - 3, rel=1e-5)

    @pytest.mark.parametrize(
        ("df", "mean", "variance", "has_kurtosis", "reason"),
        [
            (1, None, None, False, "no finite variance"),
            (2, 0, None, False, "no finite variance"),
            (4, 0, 6, False, "fourth moment"),
            (8, 0, 6, True, "eighth moment"),
            (9, 0, 6, True, ""),
        ],
    )
    def test_heavy_tails_lose_the_columns_that_do_not_exist(self, df, mean, variance, has_kurtosis, reason):
        ensemble = ensembles.build({"family": "multivariate_t", "df": df})
        exact = ensemble.exact(6)
        assert (exact.mean, exact.variance) == (mean, variance)
        assert (exact.excess_kurtosis is not None) == has_kurtosis
        assert reason in exact.reason
        assert bool(exact.reason) == bool(reason)
        assert (ensemble.limiting_exponent() is None) == (variance is None)

    @pytest.mark.parametrize("df", [1.5, 3])
    def test_heavy_tails_follow_their_law(self, df):
        ensemble = ensembles.build({"family": "multivariate_t", "df": df})
        q = ensemble.draw(streams.generator(11, "heavy", str(df)), 50_000, 1, 1, 2)[0]
        unit = math.sqrt((df - 2) / df) if df > 2 else 1.0
        assert q.dtype == np.float64
        assert stats.kstest(q[:, 0, 1] / unit, stats.t(df).cdf).pvalue > 1e-4
        # One factor for both components.
        assert stats.kstest((q[:, 0] ** 2).sum(axis=1) / 2 / unit**2, stats.f(2, df).cdf).pvalue > 1e-4


WRONG = [
    # The sampler of one, the law of another that is near it.
    ({"family": "lognormal", "sigma": 0.3}, {"family": "lognormal", "sigma": 0.3, "key_sd": 0.95}),
    ({"family": "sparse", "p": 0.2}, {"family": "sparse", "p": 0.2, "query_sd": 0.95}),
    (
        {"family": "power_law_correlation", "query_alpha": 0.25, "key_alpha": 0.25},
        {"family": "power_law_correlation", "query_alpha": 0.25, "key_alpha": 0.4},
    ),
    (
        {"family": "power_law_spectrum", "query_b": 0.75, "key_b": 0.75},
        {"family": "power_law_spectrum", "query_b": 0.75, "key_b": 0.65},
    ),
    ({"family": "low_rank_gaussian", "rank": 4}, {"family": "low_rank_gaussian", "rank": 5}),
    ({"family": "outliers_aligned", "scale": 3}, {"family": "outliers_aligned", "scale": 2.9}),
    ({"family": "outliers_misaligned", "scale": 3}, {"family": "outliers_misaligned", "scale": 2.8}),
    ({"family": "multivariate_t", "df": 14}, {"family": "low_rank_gaussian", "rank": 400}),
]


@pytest.mark.parametrize(("drawn", "stated"), WRONG, ids=spec_id)
def test_a_wrong_law_is_caught(drawn, stated):
    """Negative control: the sampler of one ensemble does not have the exact variance of another."""
    d_k = 16
    score = draw_scores(ensembles.build(drawn), "wrong", 120_000, 1, 1, d_k).ravel()
    assert abs(away(score**2, ensembles.build(stated).exact(d_k).variance)) > 4.5
