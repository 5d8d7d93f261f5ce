"""Ensembles: laws against a second derivation, distributions of SciPy, mistakes in a specification."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import toeplitz

from sqrtdk.sampling import ensembles, streams
from sqrtdk.sampling.ensembles.correlated import toeplitz_trace_of_square


@pytest.mark.parametrize(("query_phi", "key_phi"), [(0.8, 0.5), (0.9, -0.9), (0.0, 0.7), (-0.3, -0.3)])
@pytest.mark.parametrize("d_k", [1, 2, 17])
def test_autoregressive_traces_are_those_of_the_matrices(query_phi, key_phi, d_k):
    lags = np.arange(d_k)
    product = toeplitz(query_phi**lags) @ toeplitz(key_phi**lags)
    traces = ensembles.build({"family": "ar1", "query_phi": query_phi, "key_phi": key_phi}).traces(d_k)
    assert traces == pytest.approx((np.trace(product), np.trace(product @ product)), rel=1e-12)


def test_autoregressive_components_have_the_stationary_covariance():
    phi, d_k, n = 0.8, 40, 40_000
    ensemble = ensembles.build({"family": "ar1", "query_phi": phi, "key_phi": phi})
    q = ensemble.draw(streams.generator(5, "ar1"), n, 1, 1, d_k)[0][:, 0].astype(float)
    covariance = q.T @ q / n
    assert np.abs(covariance - toeplitz(phi ** np.arange(d_k))).max() < 5 * math.sqrt(2 / n)


def test_trace_of_square_holds_for_any_toeplitz_matrices():
    rng = np.random.default_rng(6)
    a, b = rng.standard_normal((2, 12))
    product = toeplitz(a) @ toeplitz(b)
    assert toeplitz_trace_of_square(a, b) == pytest.approx(np.trace(product @ product), rel=1e-12)


@pytest.mark.parametrize("d_k", [2, 7])
def test_equicorrelated_traces_are_those_of_the_matrices(d_k):
    def matrix(rho):
        return (1 - rho) * np.eye(d_k) + rho

    ensemble = ensembles.build({"family": "equicorrelated", "query_rho": 0.3, "key_rho": -0.1})
    product = matrix(0.3) @ matrix(-0.1)
    assert ensemble.traces(d_k) == pytest.approx((np.trace(product), np.trace(product @ product)), rel=1e-12)
    assert ensembles.build({"family": "equicorrelated", "query_rho": 0.9, "key_rho": 0}).exact(d_k).variance == (
        pytest.approx(d_k)
    )


def test_a_wrong_correlation_is_caught():
    """Negative control: the sampler with φ = 0.5 does not have the exact variance of φ = 0.6."""
    n, d_k = 100_000, 16
    q, k = ensembles.build({"family": "ar1", "query_phi": 0.5, "key_phi": 0.5}).draw(
        streams.generator(7, "wrong"), n, 1, 1, d_k
    )
    score = np.einsum("bid,bid->b", q.astype(float), k.astype(float))
    exact = ensembles.build({"family": "ar1", "query_phi": 0.6, "key_phi": 0.5}).exact(d_k).variance
    assert abs(score.var() - exact) > 10 * np.std(score**2) / math.sqrt(n)


class TestScipyFamilies:
    def test_agree_with_the_built_in_twin(self):
        for name, own in (("norm", "gaussian"), ("laplace", None), ("uniform", None)):
            twin = ensembles.build({"family": own or name})
            theirs = __import__("sqrtdk.sampling.ensembles.scipy_families", fromlist=["build"]).build(
                name, {}, {"query_mean": 0.0, "key_mean": 0.0, "query_sd": 1.0, "key_sd": 1.0}
            )
            assert theirs.exact(8).excess_kurtosis == pytest.approx(twin.exact(8).excess_kurtosis, abs=1e-9)
            assert theirs.exact(8).variance == pytest.approx(8)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("spec", "order", "has_variance", "has_kurtosis"),
        [
            ({"family": "t", "df": 12}, math.inf, True, True),
            ({"family": "t", "df": 6}, 8.0, True, True),
            ({"family": "t", "df": 3}, 4.0, True, False),
            ({"family": "t", "df": 1.5}, 2.0, False, False),
            ({"family": "cauchy"}, 1.0, False, False),
            ({"family": "pareto", "b": 3.5}, 4.0, True, False),
        ],
        ids=str,
    )
    def test_lose_the_columns_that_do_not_exist(self, spec, order, has_variance, has_kurtosis):
        ensemble = ensembles.build(spec)
        exact = ensemble.exact(4)
        assert ensemble.finite_moment == order
        assert (exact.variance is not None) == has_variance
        assert (exact.excess_kurtosis is not None) == has_kurtosis
        assert bool(exact.reason) == (order <= 8)

    def test_skewed_components_are_centred(self):
        ensemble = ensembles.build({"family": "expon"})
        x = ensemble.standardised(streams.generator(8, "expon"), (100_000,))
        assert abs(x.mean()) < 4.5 / math.sqrt(len(x))
        assert ensemble.shape() == pytest.approx((2.0, 9.0), rel=1e-6)

    def test_moments_that_disagree_are_refused(self, monkeypatch):
        class Liar(stats.rv_continuous):
            def _pdf(self, x):
                return np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)

            def _ppf(self, q):
                return stats.norm.ppf(q)

            def _munp(self, n, *_):
                return [1, 0, 1, 0, 4][n]

        monkeypatch.setattr(stats, "liar", Liar(name="liar"), raising=False)
        with pytest.raises(ensembles.SpecError, match="does not confirm"):
            ensembles.build({"family": "liar"})

    def test_shape_parameters_outside_their_domain_are_refused(self):
        with pytest.raises(ensembles.SpecError, match=r"scipy\.stats\.gamma"):
            ensembles.build({"family": "gamma", "a": -1})


@pytest.mark.parametrize("mean", [0.0, 1.0, 1e2, 1e4])
def test_large_means_cancel_nothing_in_the_kurtosis(mean):
    """With Gaussian components κ₄ = 6c⁴ + 12c²(a² + b²), which raw moments lose beside a⁴."""
    ensemble = ensembles.build({"family": "gaussian", "query_mean": mean, "key_mean": mean})
    expected = (24 * mean**2 + 6) / (2 * mean**2 + 1) ** 2
    assert ensemble.exact(1).excess_kurtosis == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("d_k", [60, 600])
def test_settled_traces_are_those_of_the_whole_matrices(d_k):
    ensemble = ensembles.build({"family": "ar1", "query_phi": 0.9, "key_phi": -0.6})
    lags = np.arange(d_k)
    whole = toeplitz_trace_of_square(0.9**lags, (-0.6) ** lags)
    assert ensemble.traces(d_k)[1] == pytest.approx(whole, rel=1e-12)


class TestHeavyTails:
    def test_df_up_to_two_is_an_ensemble_without_variance(self):
        exact = ensembles.build({"family": "student_t", "df": 2}).exact(4)
        assert exact.variance is None
        assert "no finite variance" in exact.reason

    def test_df_up_to_four_has_a_variance_and_no_kurtosis(self):
        exact = ensembles.build({"family": "student_t", "df": 4}).exact(4)
        assert exact.variance == 4
        assert exact.excess_kurtosis is None
        assert "fourth moment" in exact.reason

    def test_student_components_follow_their_law(self):
        for df in (1.5, 3, 10):
            ensemble = ensembles.build({"family": "student_t", "df": df})
            x = ensemble.standardised(streams.generator(9, "t", str(df)), (100_000,)).astype(float)
            unit = math.sqrt((df - 2) / df) if df > 2 else 1.0
            assert stats.kstest(x / unit, stats.t(df).cdf).pvalue > 1e-4


class TestMistakes:
    def problems(self, spec):
        with pytest.raises(ensembles.SpecError) as error:
            ensembles.build(spec)
        return error.value.problems

    def test_all_are_named_at_once(self):
        problems = self.problems({"family": "student_t", "dff": 3, "query_sd": -1})
        assert [problem.key for problem in problems] == ["dff", "query_sd", "df"]
        assert problems[0].nearest == "df"

    def test_an_unknown_family_gets_the_nearest_name(self):
        assert self.problems({"family": "gausian"})[0].nearest == "gaussian"

    @pytest.mark.parametrize("value", [1.0, "nan", True, None, [0.1], math.inf, "x"])
    def test_values_outside_the_domain_are_refused(self, value):
        problem = self.problems({"family": "equicorrelated", "query_rho": value, "key_rho": 0.1})[0]
        assert problem.key == "query_rho"
        assert "(-1, 1)" in problem.allowed

    def test_a_text_that_is_a_number_is_understood(self):
        assert ensembles.build({"family": "student_t", "df": "1e1"}).df == 10

    @pytest.mark.parametrize("spec", [None, {}, {"family": 3}, [], "gaussian"])
    def test_what_names_no_family_is_refused(self, spec):
        assert self.problems(spec)[0].key == "family"

    def test_negative_correlation_depends_on_the_width(self):
        ensemble = ensembles.build({"family": "equicorrelated", "query_rho": -0.2, "key_rho": 0.1})
        assert ensemble.problems_at(6) == []
        assert "query_rho" in ensemble.problems_at(7)[0]
