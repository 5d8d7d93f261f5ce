"""Families with power laws, subspaces and outlier dimensions: their laws against matrices, pairings and projections."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from ensemble_cases import away, draw_scores, product_moments
from scipy import stats
from scipy.linalg import toeplitz

from sqrtdk.sampling import ensembles, streams
from sqrtdk.sampling.ensembles import low_rank, power_laws


class TestPowerLawCorrelation:
    @pytest.mark.parametrize("alpha", [0.01, 0.25, 0.5, 1, 3])
    @pytest.mark.parametrize("d_k", [1, 2, 3, 64, 4096])
    def test_no_eigenvalue_of_the_circulant_matrix_is_cut_off(self, alpha, d_k):
        correlation = (1.0 + np.arange(d_k + 1)) ** -alpha
        circle = np.concatenate([correlation, correlation[-2:0:-1]])
        spectrum = np.fft.rfft(circle).real
        assert spectrum.min() > -1e-12 * spectrum.max()
        assert power_laws.circulant_spectrum(correlation) == pytest.approx(spectrum, abs=1e-12 * spectrum.max())

    def test_the_correlation_is_a_sum_of_triangles_with_positive_weights(self):
        """The step of the proof that the docstring only states."""
        m, alpha = 12, 0.25
        lags = np.arange(m + 1)
        correlation = (1.0 + lags) ** -alpha
        bends = np.arange(1, m) * np.diff(correlation, 2)
        weights = np.append(bends, m * (correlation[m - 1] - correlation[m]))
        assert weights.min() > 0
        triangles = np.maximum(0, 1 - lags / np.arange(1, m + 1)[:, None])
        assert correlation[m] + weights @ triangles == pytest.approx(correlation)
        for wrapped in np.concatenate([triangles, triangles[:, -2:0:-1]], axis=1):
            assert np.fft.rfft(wrapped).real.min() > -1e-12

    @pytest.mark.parametrize(
        ("d_k", "cholesky_width", "n"),
        [(40, 40, 40_000), (1, 0, 40_000), (2, 0, 40_000), (40, 0, 40_000), (300, 0, 4000)],
    )
    def test_components_have_the_covariance(self, d_k, cholesky_width, n, monkeypatch):
        """By the factor of Cholesky, and by the circulant matrix at every width."""
        monkeypatch.setattr(power_laws, "CHOLESKY_WIDTH", cholesky_width)
        alphas = 0.25, 0.8
        ensemble = ensembles.build(
            {"family": "power_law_correlation", "query_alpha": alphas[0], "key_alpha": alphas[1]}
        )
        drawn = ensemble.draw(streams.generator(4, "covariance", d_k), n, 1, 1, d_k)
        for x, alpha in zip(drawn, alphas, strict=True):
            covariance = x[:, 0].T.astype(float) @ x[:, 0] / n
            assert np.abs(covariance - toeplitz((1.0 + np.arange(d_k)) ** -alpha)).max() < 6 * math.sqrt(2 / n)
            assert stats.kstest(x[:, 0, -1], stats.norm.cdf).pvalue > 1e-4

    @pytest.mark.parametrize("d_k", [1, 2, 17])
    def test_traces_are_those_of_the_matrices(self, d_k):
        lags = 1.0 + np.arange(d_k)
        ensemble = ensembles.build({"family": "power_law_correlation", "query_alpha": 0.3, "key_alpha": 0.6})
        expected = product_moments(toeplitz(lags**-0.3), toeplitz(lags**-0.6))
        exact = ensemble.exact(d_k)
        assert (exact.variance, exact.excess_kurtosis) == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize(
        ("query", "key", "exponent"), [(0.25, 0.25, 1.5), (0.1, 0.5, 1.4), (0.5, 0.5, 1), (2, 1, 1)]
    )
    def test_exponent_is_that_of_the_sum_over_lags(self, query, key, exponent):
        ensemble = ensembles.build({"family": "power_law_correlation", "query_alpha": query, "key_alpha": key})
        assert ensemble.limiting_exponent() == pytest.approx(exponent)

        def variance(d):
            # Euler and Maclaurin's integral for Σ (d − h)(1 + h)^−a, at widths beyond any array.
            a = mpmath.mpf(query) + mpmath.mpf(key)
            return d + 2 * mpmath.quad(lambda h: (d - h) * (1 + h) ** -a, [0.5, 10, 1e3, 1e6, 1e12, d])

        slope = float(mpmath.log(variance(mpmath.mpf(2) ** 81) / variance(mpmath.mpf(2) ** 80), 2))
        # At a sum of 1 the exponent still exceeds its limit by 1/ln d.
        assert slope == pytest.approx(exponent, abs=0.02)


class TestPowerLawSpectrum:
    def test_moments_are_those_of_the_matrices(self):
        ensemble = ensembles.build({"family": "power_law_spectrum", "query_b": 0.75, "key_b": 1.5})
        query, key = (np.arange(1.0, 10) ** -b for b in (0.75, 1.5))
        expected = product_moments(np.diag(9 * query / query.sum()), np.diag(9 * key / key.sum()))
        exact = ensemble.exact(9)
        assert (exact.variance, exact.excess_kurtosis) == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize(
        ("query", "key", "exponent"),
        [(0.3, 0.3, 1), (0.75, 0.75, 1.5), (1.5, 1.5, 2), (0, 1.5, 1), (0.2, 0.9, 1.1), (0.8, 1.7, 1.8), (0, 0, 1)],
    )
    def test_exponent_is_that_of_the_sums(self, query, key, exponent):
        ensemble = ensembles.build({"family": "power_law_spectrum", "query_b": query, "key_b": key})
        assert ensemble.limiting_exponent() == pytest.approx(exponent)

        def variance(d):
            # H_d(b) = ζ(b) − ζ(b, d + 1), at widths beyond any array.
            harmonic = lambda b: mpmath.zeta(b) - mpmath.zeta(b, d + 1)  # noqa: E731
            return d**2 * harmonic(query + key) / (harmonic(query) * harmonic(key))

        with mpmath.workdps(60):
            slope = float(mpmath.log(variance(mpmath.mpf(2) ** 121) / variance(mpmath.mpf(2) ** 120), 2))
        assert slope == pytest.approx(exponent, abs=0.01)


def paired_moment(powers, d, r):
    """E Π tr (XᵀX)^p for a Gaussian d × r matrix X of unit entries, from all pairings of its factors.

    A trace of W^p is a necklace of 2p factors X[i, a]; neighbours share a column index a (within W) or a row index i.
    A pairing of two factors identifies their indices, and each class of indices that is left gives one factor d or r.
    """
    rows, columns = {}, {}
    at = 0
    for p in powers:
        for j in range(p):
            # W[a, b] = Σ_i X[i, a] X[i, b], so factors 2j and 2j+1 share the row, 2j+1 and 2j+2 the column.
            left, right = at + 2 * j, at + 2 * j + 1
            rows[left] = rows[right] = ("row", left)
            columns[right] = ("column", right)
            columns[at + 2 * ((j + 1) % p)] = ("column", right)
        at += 2 * p

    def pairings(left):
        if not left:
            yield []
            return
        first, *rest = left
        for i, other in enumerate(rest):
            for more in pairings(rest[:i] + rest[i + 1 :]):
                yield [(first, other), *more]

    def classes(index, pairing):
        parent = {name: name for name in index.values()}

        def root(name):
            while parent[name] != name:
                name = parent[name]
            return name

        for one, other in pairing:
            parent[root(index[one])] = root(index[other])
        return len({root(name) for name in parent})

    return sum(d ** classes(rows, pairing) * r ** classes(columns, pairing) for pairing in pairings(list(range(at))))


class TestLowRank:
    @pytest.mark.parametrize(("rank", "d_k"), [(1, 1), (1, 7), (4, 4), (5, 32)])
    def test_the_cosine_vectors_are_orthonormal(self, rank, d_k):
        basis = low_rank.cosine_basis(rank, d_k)
        assert basis @ basis.T == pytest.approx(np.eye(rank), abs=1e-12)

    @pytest.mark.parametrize(("rank", "d_k"), [(1, 1), (1, 7), (4, 4), (5, 32)])
    def test_random_bases_are_orthonormal(self, rank, d_k):
        bases = low_rank.random_bases(streams.generator(5, "bases"), 20, rank, d_k).astype(float)
        assert np.abs(bases @ bases.transpose(0, 2, 1) - np.eye(rank)).max() < 1e-4

    def test_random_bases_prefer_no_direction(self):
        """Each component of a unit vector squared is Beta(1/2, (d − 1)/2), in the last row as in the first."""
        bases = low_rank.random_bases(streams.generator(6, "haar"), 20_000, 3, 5)
        for row, column in itertools.product((0, 2), (0, 4)):
            assert stats.kstest(bases[:, row, column] ** 2, stats.beta(0.5, 2).cdf).pvalue > 1e-4

    @pytest.mark.parametrize("d_k", [3, 8])
    def test_shared_moments_are_those_of_the_matrices(self, d_k):
        basis = low_rank.cosine_basis(3, d_k)
        covariance = d_k / 3 * basis.T @ basis
        exact = ensembles.build({"family": "low_rank_shared", "rank": 3}).exact(d_k)
        assert (exact.variance, exact.excess_kurtosis) == pytest.approx(product_moments(covariance, covariance))

    @pytest.mark.parametrize(("d", "r"), [(1, 1), (1, 3), (2, 2), (5, 3), (64, 8)])
    def test_gaussian_moments_are_those_of_all_pairings(self, d, r):
        ensemble = ensembles.build({"family": "low_rank_gaussian", "rank": r})
        second, square, fourth = (paired_moment(powers, d, r) for powers in ((2,), (2, 2), (4,)))
        assert ensemble.variance(d) == pytest.approx(second / r**2)
        expected = square / second**2, (square + 2 * fourth) / second**2
        assert ensemble.squares(d) == pytest.approx(expected, rel=1e-12)
        assert ensemble.exact(d).excess_kurtosis == pytest.approx(3 * expected[1] - 3)

    def test_independent_moments_are_those_of_random_projections(self):
        """A second way: singular values of U_qᵀU_k, whose U come from LAPACK's QR."""
        rng, n, r, d = np.random.default_rng(7), 20_000, 2, 5
        first, second = (np.linalg.qr(rng.standard_normal((n, d, r)))[0] for _ in range(2))
        c = (d / r) ** 2 * np.linalg.svd(first.transpose(0, 2, 1) @ second, compute_uv=False) ** 2
        apart, sharing = ensembles.build({"family": "low_rank_independent", "rank": r}).squares(d)
        total = c.sum(axis=1)
        assert abs(away(total, d)) < 4.5
        assert abs(away(total**2, apart * d**2)) < 4.5
        assert abs(away(total**2 + 2 * (c**2).sum(axis=1), sharing * d**2)) < 4.5

    @pytest.mark.parametrize("family", ["low_rank_independent", "low_rank_shared"])
    def test_full_rank_is_the_isotropic_gaussian(self, family):
        exact = ensembles.build({"family": family, "rank": 6}).exact(6)
        assert (exact.variance, exact.excess_kurtosis) == pytest.approx((6, 1))

    def test_a_subspace_needs_room(self):
        for family in ("low_rank_shared", "low_rank_independent"):
            ensemble = ensembles.build({"family": family, "rank": 4})
            assert "4 dimensions" in ensemble.undefined_at(3)
            assert ensemble.undefined_at(4) is None
        assert ensembles.build({"family": "low_rank_gaussian", "rank": 4}).undefined_at(1) is None

    def test_vectors_stay_in_the_subspace_of_their_block(self):
        for family, together in (("low_rank_shared", 2), ("low_rank_gaussian", 2), ("low_rank_independent", 4)):
            ensemble = ensembles.build({"family": family, "rank": 2})
            q, k = ensemble.draw(streams.generator(8, family), 3, 6, 6, 9)
            ranks = np.linalg.matrix_rank(np.concatenate([q, k], axis=1), tol=1e-4)
            assert ranks.tolist() == [together] * 3
            assert np.linalg.matrix_rank(q, tol=1e-4).tolist() == [2] * 3


class TestOutliers:
    @pytest.mark.parametrize(("family", "start"), [("outliers_aligned", 0), ("outliers_misaligned", 2)])
    def test_moments_are_those_of_the_matrices(self, family, start):
        query, key = np.ones(9), np.ones(9)
        query[:2] = key[start : start + 2] = 25
        exact = ensembles.build({"family": family, "n_outliers": 2, "scale": 5}).exact(9)
        assert (exact.variance, exact.excess_kurtosis) == pytest.approx(product_moments(np.diag(query), np.diag(key)))

    def test_need_room(self):
        assert "2 dimensions" in ensembles.build({"family": "outliers_misaligned", "scale": 5}).undefined_at(1)
        assert ensembles.build({"family": "outliers_aligned", "scale": 5}).undefined_at(1) is None

    def test_one_aligned_outlier_rules_the_variance(self):
        assert ensembles.build({"family": "outliers_aligned", "scale": 10}).exact(32).variance == 10_031


def test_errors_that_forget_the_shared_matrix_are_caught():
    """Negative control: scores of one block share its subspaces, and are not independent."""
    ensemble, n, d_k = ensembles.build({"family": "low_rank_independent", "rank": 1}), 8, 16
    block = np.mean(draw_scores(ensemble, "shared", 4000, n, n, d_k) ** 2, axis=(1, 2)) / d_k
    naive = (ensemble.exact(d_k).excess_kurtosis + 2) / n**2
    assert away((block - 1) ** 2, naive) > 4.5
    assert abs(away((block - 1) ** 2, ensemble.block_relative_variance(d_k, n, n))) < 4.5
