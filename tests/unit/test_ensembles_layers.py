"""Ensembles through a layer, normalised or turned: samplers against exact laws, laws against second derivations."""

import math

import mpmath
import numpy as np
import pytest
from ensemble_cases import spec_id
from scipy import integrate, stats

from sqrtdk.sampling import ensembles, streams
from sqrtdk.sampling.ensembles import fixed_weights, normalised, tokens


def draw(spec, d_k, n_blocks, m, n, stream="draw"):
    """Draw blocks and return scores (n_blocks, m, n) in float64."""
    q, k = ensembles.build(spec).draw(streams.generator(1, stream, spec_id(spec), d_k), n_blocks, m, n, d_k)
    assert q.dtype == k.dtype == np.float32
    assert (q.shape, k.shape) == ((n_blocks, m, d_k), (n_blocks, n, d_k))
    return q.astype(float) @ k.astype(float).transpose(0, 2, 1)


def z_score(values):
    """Mean over its standard error; 0 where the values are 0 up to rounding."""
    if np.abs(values).max() < 1e-6:
        return 0.0
    return values.mean() / (values.std() / math.sqrt(len(values)))


@pytest.mark.parametrize(
    ("spec", "d_k"),
    [({"family": "layernorm"}, 1), ({"family": "rmsnorm_exponential"}, 1), ({"family": "rope"}, 3)],
    ids=lambda case: spec_id(case) if isinstance(case, dict) else str(case),
)
def test_widths_without_such_an_ensemble_say_why(spec, d_k):
    ensemble = ensembles.build(spec)
    assert "d_k must be" in ensemble.undefined_at(d_k)
    assert ensemble.undefined_at(2) is None


def test_exponents():
    assert ensembles.build({"family": "l2norm"}).limiting_exponent() == -1
    turned = {"family": "rope_equicorrelated", "query_rho": 0.3, "offset": 1000}
    assert ensembles.build({**turned, "key_rho": 0.3}).limiting_exponent() == 2
    assert ensembles.build({**turned, "key_rho": 0}).limiting_exponent() == 1


class TestRandomWeights:
    """Drawing W x without W is exact: compared with explicit weights and tokens, block by block."""

    @staticmethod
    def explicit(rng, x, other, d_k):
        n_blocks, _, width = x.shape
        w_q, w_k = rng.standard_normal((2, n_blocks, d_k, width)) / math.sqrt(width)
        return np.einsum("bnd,bwd,bwe,bme->bnm", x, w_q, w_k, other)

    @staticmethod
    def statistics(scores):
        """Functions of a whole block that tell how its scores depend on each other."""
        centred = scores - scores.mean(axis=-1, keepdims=True)
        product = np.einsum("bij,bij->b", scores, scores.transpose(0, 2, 1))
        cross = scores[:, 0, 1] * scores[:, 1, 2] * scores[:, 2, 0] * scores[:, 0, 2]
        values = (scores**2).sum((1, 2)), (centred**2).sum((1, 2)), product, cross, scores.max((1, 2))
        # Exact zeros of the one and rounded zeros of the other are the same.
        return [np.round(value, 4) for value in values]

    @pytest.mark.parametrize("width", [2, 3, 8])
    @pytest.mark.parametrize("family", ["random_weights", "raw_tokens", "rmsnorm_tokens", "layernorm_tokens"])
    def test_a_block_has_the_law_of_explicit_weights(self, family, width):
        n_blocks, n, d_k = 20_000, 4, 2
        rng = np.random.default_rng(width)
        if family == "random_weights":
            fixed = streams.generator(0, "fixed tokens", width).standard_normal((n, width))
            x = fixed * rng.choice([-1.0, 1.0], (n_blocks, n, 1))
        else:
            x = rng.standard_normal((n_blocks, n, width))
            if family == "layernorm_tokens":
                x -= x.mean(axis=-1, keepdims=True)
        if family != "raw_tokens":
            x *= math.sqrt(width) / np.linalg.norm(x, axis=-1, keepdims=True)
        other = rng.standard_normal(x.shape) if family == "raw_tokens" else x
        drawn = draw({"family": family, "d_model": width}, d_k, n_blocks, n, n, "explicit")
        pairs = zip(self.statistics(drawn), self.statistics(self.explicit(rng, x, other, d_k)), strict=True)
        assert min(stats.ks_2samp(*pair).pvalue for pair in pairs) > 1e-5

    def test_independent_tokens_are_caught(self):
        """Negative control: with tokens of cosine 0 the blocks do not have the law of random tokens of width 3."""
        n_blocks, n, d_k = 20_000, 4, 2
        drawn = draw({"family": "rmsnorm_tokens", "d_model": 3}, d_k, n_blocks, n, n, "explicit")
        apart = draw({"family": "shared_tokens", "cosine": 0}, d_k, n_blocks, n, n, "explicit")
        pairs = zip(self.statistics(drawn), self.statistics(apart), strict=True)
        assert min(stats.ks_2samp(*pair).pvalue for pair in pairs) < 1e-9

    @pytest.mark.parametrize(("family", "m", "n"), [("rmsnorm_tokens", 3, 3), ("layernorm_tokens", 3, 6)])
    def test_planned_relative_variance_counts_that_queries_and_keys_share_tokens(self, family, m, n):
        ensemble, d_k = ensembles.build({"family": family, "d_model": 3}), 1000
        x = ensemble.coordinates(streams.generator(14, family), 200_000, n).astype(float)
        squares = (x @ x.transpose(0, 2, 1)) ** 2
        q, k = squares[:, :m, :m].mean((1, 2)), squares.mean((1, 2))
        planned = tokens.relative_variance(d_k, q, k, q * k)
        assert abs(z_score(planned - ensemble.block_relative_variance(d_k, m, n))) < 4.5

    @pytest.mark.slow
    def test_tokens_of_one_dimension_are_never_zero(self):
        for family, width in (("rmsnorm_tokens", 1), ("layernorm_tokens", 2)):
            ensemble = ensembles.build({"family": family, "d_model": width})
            for i in range(20):
                x = ensemble.coordinates(streams.generator(13, family, i), 500_000, 1)
                assert (np.abs(x).min(), np.abs(x).max()) == pytest.approx((1, 1), abs=1e-6)

    def test_fixed_tokens_have_their_gram_matrix(self):
        x = streams.generator(0, "fixed tokens", 3).standard_normal((5, 3))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        coordinates = tokens._fixed_tokens(3, 5)[0]
        assert coordinates @ coordinates.T == pytest.approx(x @ x.T, abs=1e-6)

    @pytest.mark.parametrize("family", ["raw_tokens", "rmsnorm_tokens", "layernorm_tokens"])
    def test_one_score_has_the_law_of_a_gaussian_score_times_norms(self, family):
        width, d_k, n = 4, 3, 50_000
        rng = np.random.default_rng(10)
        score = np.einsum("bd,bd->b", *rng.standard_normal((2, n, d_k)))
        if family == "raw_tokens":
            score *= np.sqrt(rng.chisquare(width, n) * rng.chisquare(width, n)) / width
        drawn = draw({"family": family, "d_model": width}, d_k, n, 1, 1, "law")[:, 0, 0]
        assert stats.ks_2samp(score, drawn).pvalue > 1e-5


@pytest.mark.parametrize("cosine", [0, 0.3, 0.9])
def test_shared_tokens_have_their_cosine(cosine):
    q, k = ensembles.build({"family": "shared_tokens", "cosine": cosine}).draw(
        streams.generator(1, "cosine", str(cosine)), 20_000, 3, 3, 4
    )
    for x in (q.astype(float), k.astype(float)):
        assert abs(z_score(np.einsum("bd,bd->b", x[:, 0], x[:, 2]) / 4 - cosine)) < 4.5
    assert abs(z_score(np.einsum("bd,bd->b", q[:, 0], k[:, 0]).astype(float))) < 4.5


class TestFixedWeights:
    def test_rows_at_one_width_are_the_first_rows_at_a_larger_one(self):
        small, large = (np.array(fixed_weights.weights(7, d_k, False)) for d_k in (3, 9))
        assert np.array_equal(small, large[:, :3])
        assert not np.array_equal(*small)

    @pytest.mark.parametrize("centred", [False, True])
    @pytest.mark.parametrize("d_k", [2, 5, 9])
    def test_factors_and_traces_are_those_of_the_weights(self, d_k, centred):
        width = 5
        w_q, w_k = fixed_weights.weights(width, d_k, False)
        projection = np.eye(width) - centred / width
        products = [w @ projection @ w.T for w in (w_q, w_k)]
        for factor, product in zip(fixed_weights._factors(width, d_k, centred), products, strict=True):
            assert factor.shape[1] <= d_k
            assert factor @ factor.T == pytest.approx(product, abs=1e-5)
        product = products[0] @ products[1]
        expected = np.trace(product), np.trace(product @ product)
        assert fixed_weights.traces(width, d_k, centred) == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize("family", ["fixed_weights", "fixed_weights_rmsnorm", "fixed_weights_layernorm"])
    def test_scores_have_the_law_of_explicit_tokens(self, family):
        n, width, d_k = 40_000, 6, 3
        x = np.random.default_rng(11).standard_normal((2, n, width))
        if family.endswith("layernorm"):
            x -= x.mean(axis=-1, keepdims=True)
        if family != "fixed_weights":
            x *= math.sqrt(width) / np.linalg.norm(x, axis=-1, keepdims=True)
        w_q, w_k = fixed_weights.weights(width, d_k, False)
        explicit = np.einsum("bd,bd->b", x[0] @ w_q.T, x[1] @ w_k.T)
        drawn = draw({"family": family, "d_model": width}, d_k, n, 1, 1, "law")[:, 0, 0]
        assert stats.ks_2samp(explicit, drawn).pvalue > 1e-5

    def test_variance_is_that_of_random_weights_on_average(self):
        # ‖W_qᵀ W_k‖² over d_k has mean 1 and variance 4/(D d_k) + 2(d_k + 1)/(d_k D²) over the draw of the weights.
        width, d_k = 64, 4096
        sd = math.sqrt(4 / (width * d_k) + 2 * (d_k + 1) / (d_k * width**2))
        assert abs(fixed_weights.traces(width, d_k, False)[0] / d_k - 1) < 4.5 * sd

    @pytest.mark.parametrize("d_k", [16, 256])
    def test_kurtosis_is_near_that_of_free_probability(self, d_k):
        kurtosis = ensembles.build({"family": "fixed_weights", "d_model": 256}).exact(d_k).excess_kurtosis
        assert kurtosis == pytest.approx(6 / d_k + 12 / 256, rel=0.1)


class TestNormalised:
    @pytest.mark.parametrize(
        ("family", "norm", "total"), [("rmsnorm", 3, None), ("layernorm", 3, 0), ("l2norm", 1, None)]
    )
    def test_vectors_have_their_norm(self, family, norm, total):
        for x in ensembles.build({"family": family}).draw(streams.generator(12, family), 50, 2, 3, 9):
            assert np.linalg.norm(x, axis=-1) == pytest.approx(norm, rel=1e-6)
            if total is not None:
                assert x.sum(axis=-1) == pytest.approx(total, abs=1e-5)

    @pytest.mark.parametrize(
        ("family", "d_k", "dimension"), [("rmsnorm", 2, 2), ("rmsnorm", 5, 5), ("layernorm", 5, 4)]
    )
    def test_cosine_has_the_beta_law(self, family, d_k, dimension):
        cosine = draw({"family": family}, d_k, 40_000, 1, 1, "beta")[:, 0, 0] / d_k
        half = (dimension - 1) / 2
        assert stats.kstest((1 + cosine) / 2, stats.beta(half, half).cdf).pvalue > 1e-5
        law = stats.beta(half, half, loc=-d_k, scale=2 * d_k)
        exact = ensembles.build({"family": family}).exact(d_k)
        assert (exact.variance, exact.excess_kurtosis) == pytest.approx((law.var(), law.stats("k")), rel=1e-9)

    @pytest.mark.parametrize(("family", "d_k", "size"), [("rmsnorm", 1, 1), ("layernorm", 2, 2), ("l2norm", 1, 1)])
    def test_one_dimension_leaves_two_scores_without_rounding(self, family, d_k, size):
        assert set(draw({"family": family}, d_k, 100, 2, 2, "signs").ravel()) == {-size, size}


class TestRmsNormExponential:
    def test_two_components_agree_with_an_integral_over_the_angle(self):
        # u = (cos a, sin a) has density (cos a + sin a)^−2 on (0, π/2).
        def moment(i, j):
            def integrand(a):
                return math.cos(a) ** i * math.sin(a) ** j / (math.cos(a) + math.sin(a)) ** 2

            return integrate.quad(integrand, 0, math.pi / 2, epsabs=1e-13)[0]

        for powers in [(1,), (2,), (3,), (4,), (1, 1), (2, 1), (3, 1), (2, 2)]:
            expected = moment(*powers, *(0,) * (2 - len(powers)))
            assert normalised.direction_moment(2, powers) == pytest.approx(expected, rel=1e-10)
        raw = [2**p * sum(math.comb(p, j) * moment(p - j, j) ** 2 for j in range(p + 1)) for p in range(5)]
        variance = raw[2] - raw[1] ** 2
        fourth = raw[4] - 4 * raw[1] * raw[3] + 6 * raw[1] ** 2 * raw[2] - 3 * raw[1] ** 4
        exact = ensembles.build({"family": "rmsnorm_exponential"}).exact(2)
        assert exact.mean == pytest.approx(raw[1], rel=1e-10)
        assert exact.variance == pytest.approx(variance, rel=1e-8)
        assert exact.excess_kurtosis == pytest.approx(fourth / variance**2 - 3, rel=1e-6)

    @pytest.mark.parametrize("d_k", [16, 4096])
    @pytest.mark.parametrize("powers", [(1,), (1, 1), (2, 1, 1), (1, 1, 1, 1)])
    def test_moments_agree_with_many_digits(self, d_k, powers):
        """The transforms from the complementary error function and their recurrence, in 200 digits."""
        with mpmath.workdps(200):

            def integrand(y):
                t = mpmath.exp(2 * y)
                root = mpmath.sqrt(t)
                phi = [mpmath.sqrt(mpmath.pi) / (2 * root) * mpmath.exp(1 / (4 * t)) * mpmath.erfc(1 / (2 * root))]
                phi.append((1 - phi[0]) / (2 * t))
                phi.append((phi[0] - phi[1]) / (2 * t))
                parts = mpmath.fprod(phi[a] for a in powers)
                return mpmath.exp(sum(powers) * y) * phi[0] ** (d_k - len(powers)) * parts

            step, low = mpmath.mpf(1) / 8, -8 * 40
            total = 2 * step * mpmath.fsum(integrand(i * step) for i in range(low, 40))
            expected = float(total / mpmath.gamma(mpmath.mpf(sum(powers)) / 2))
        assert normalised.direction_moment(d_k, powers) == pytest.approx(expected, rel=1e-12)

    def test_norm_is_one_at_every_width(self):
        for d_k in (2, 64, 4096, 2**20):
            assert d_k * normalised.direction_moment(d_k, (2,)) == pytest.approx(1, abs=1e-12)

    def test_mean_grows_like_half_of_d_k_and_variance_like_three_eighths(self):
        exact = ensembles.build({"family": "rmsnorm_exponential"}).exact(2**18)
        assert exact.mean / 2**18 == pytest.approx(1 / 2, abs=1e-5)
        assert exact.variance / 2**18 == pytest.approx(3 / 8, abs=1e-4)
        assert exact.within_row_variance / 2**18 == pytest.approx(5 / 16, abs=1e-4)
        assert exact.excess_kurtosis is None
        assert "rounding" in exact.reason


class TestRope:
    @staticmethod
    def rotation(ensemble, d_k):
        return ensemble.turn(np.eye(d_k, dtype=np.float32)).astype(float).T

    def test_pairs_are_turned_by_their_angle(self):
        rotation = self.rotation(ensembles.build({"family": "rope", "offset": 3, "base": 100}), 4)
        expected = np.zeros((4, 4))
        for j, angle in ((0, 3.0), (1, 0.3)):
            expected[np.ix_([j, j + 2], [j, j + 2])] = [
                [math.cos(angle), -math.sin(angle)],
                [math.sin(angle), math.cos(angle)],
            ]
        assert rotation == pytest.approx(expected, abs=1e-6)

    def test_offset_zero_turns_nothing(self):
        assert np.array_equal(self.rotation(ensembles.build({"family": "rope", "offset": 0}), 6), np.eye(6))
        aligned, turned = (
            ensembles.build({"family": family, "rho": 0.5} | extra)
            for family, extra in (("aligned", {}), ("rope_aligned", {"offset": 0}))
        )
        moments = [list(vars(ensemble.exact(8)).values())[:4] for ensemble in (turned, aligned)]
        assert moments[0] == pytest.approx(moments[1], rel=1e-12)
        plain = {"query_rho": 0.3, "key_rho": 0.5}
        assert ensembles.build({"family": "rope_equicorrelated", "offset": 0, **plain}).traces(8) == pytest.approx(
            ensembles.build({"family": "equicorrelated", **plain}).traces(8), rel=1e-12
        )

    @pytest.mark.parametrize("offset", [0, 1, -7, 1000])
    @pytest.mark.parametrize("d_k", [2, 6])
    def test_equicorrelated_traces_are_those_of_the_matrices(self, d_k, offset):
        spec = {"family": "rope_equicorrelated", "query_rho": 0.4, "key_rho": -0.15, "offset": offset}
        ensemble = ensembles.build(spec)
        rotation = self.rotation(ensemble, d_k)
        query, key = (np.eye(d_k) * (1 - rho) + rho for rho in (0.4, -0.15))
        product = query @ rotation @ key @ rotation.T
        assert ensemble.traces(d_k) == pytest.approx((np.trace(product), np.trace(product @ product)), rel=1e-5)

    @pytest.mark.parametrize("offset", [0, 5])
    def test_aligned_cumulants_are_those_of_the_quadratic_form(self, offset):
        d_k, rho = 6, 0.7
        ensemble = ensembles.build({"family": "rope_aligned", "rho": rho, "offset": offset})
        # S = vᵀAv with v = (q, k before it is turned): cumulants 2^(n−1) (n−1)! tr((A·Cov)^n).
        rotation, zero, eye = self.rotation(ensemble, d_k), np.zeros((d_k, d_k)), np.eye(d_k)
        form = np.block([[zero, rotation / 2], [rotation.T / 2, zero]])
        powers = [form @ np.block([[eye, rho * eye], [rho * eye, eye]])]
        for _ in range(3):
            powers.append(powers[-1] @ powers[0])
        first, second, _, fourth = (2**n * math.factorial(n) * np.trace(p) for n, p in enumerate(powers))
        exact = ensemble.exact(d_k)
        assert (exact.mean, exact.variance) == pytest.approx((first, second), rel=1e-5)
        assert exact.excess_kurtosis == pytest.approx(fourth / second**2, rel=1e-5)

    def test_at_a_fixed_offset_the_exponent_is_still_two(self):
        # The mean of cos(Δθ) over frequencies is an integral that does not vanish, only small.
        ensemble = ensembles.build({"family": "rope_equicorrelated", "query_rho": 0.5, "key_rho": 0.5, "offset": 1000})
        share = integrate.quad(lambda x: math.cos(1000 * 10000**-x), 0, 1, limit=2000)[0]
        assert ensemble.traces(2**18)[0] / 2**36 == pytest.approx(0.25 * share**2, rel=0.01)


def test_wrong_weights_are_caught():
    """Negative control: the scores of one fixed pair of matrices do not have the exact variance of another."""
    d_k, n = 6, 100_000
    scores = draw({"family": "fixed_weights", "d_model": 5}, d_k, n, 1, 1, "wrong")[:, 0, 0]
    assert abs(z_score(scores**2 - ensembles.build({"family": "fixed_weights", "d_model": 6}).exact(d_k).variance)) > 10
