"""Exact averages over attention rows of Gaussian keys: quadrature, ensembles that have them, and Monte Carlo."""

import functools
import math

import numpy as np
import pytest
from ensemble_cases import spec_id, widths
from scipy import integrate, special, stats

from sqrtdk.rows import gradients, softmax
from sqrtdk.sampling import ensembles, streams
from sqrtdk.theory import random_energy
from sqrtdk.theory.gaussian_rows import chi_square, measures, mixture
from sqrtdk.theory.random_energy import averages

SPECS = (
    {"family": "gaussian"},
    {"family": "gaussian", "query_sd": 2, "key_sd": 0.5},
    {"family": "gaussian", "key_mean": -0.75, "query_sd": 0.4},
    {"family": "equicorrelated", "query_rho": 0.3, "key_rho": 0.3},
    {"family": "equicorrelated", "query_rho": 0.5, "key_rho": 0},
    {"family": "equicorrelated", "query_rho": 0, "key_rho": 0.6},
    {"family": "low_rank_shared", "rank": 2},
    {"family": "outliers_aligned", "scale": 2, "n_outliers": 2},
    {"family": "outliers_misaligned", "scale": 2},
    {"family": "shared_tokens", "cosine": 0.5},
    {"family": "rope", "offset": 3},
)
WITHOUT = (
    {"family": "gaussian", "query_mean": 0.5},
    {"family": "rademacher"},
    {"family": "uniform01"},
    {"family": "ar1", "query_phi": 0.5, "key_phi": 0.5},
    {"family": "multivariate_t", "df": 10},
    {"family": "scale_mixture", "query_sigma": 0.2, "key_sigma": 0.2},
    {"family": "aligned", "rho": 0.5},
    {"family": "tied"},
    {"family": "random_weights"},
    {"family": "rmsnorm"},
    {"family": "rope_aligned", "rho": 0.5},
    {"family": "rope_equicorrelated", "query_rho": 0.3, "key_rho": 0.3},
)


@functools.cache
def interpolated(n_keys: int) -> random_energy.Interpolated:
    rows = random_energy.tabulate(n_keys)
    return random_energy.Interpolated({name: [row[name] for row in rows] for name in rows[0]})


class TestChiSquare:
    @pytest.mark.parametrize("dof", [0.4, 1, 2, 3, 17, 64, 65, 300, 4096, 2**20])
    def test_moments_and_logarithm(self, dof):
        x, weight = chi_square(dof)
        assert weight.sum() == pytest.approx(1, abs=1e-12)
        assert weight @ x == pytest.approx(dof, rel=1e-10)
        assert weight @ (x - dof) ** 2 == pytest.approx(2 * dof, rel=1e-9)
        assert weight @ np.log(x) == pytest.approx(math.log(2) + special.digamma(dof / 2), abs=1e-10)
        assert len(x) < 700

    @pytest.mark.slow
    @pytest.mark.parametrize("d_k", [1, 2, 16, 64, 65, 300])
    def test_means_over_queries_are_those_of_scipys_chi_law(self, d_k):
        """The mean over ‖q‖ against direct integration; s = c √d_k would be off."""
        theory = measures(mixture([(1, 1, d_k)]), 256, 1.0, interpolated(256))
        law = stats.chi(d_k)

        def mean(name):
            cuts = law.ppf([1e-14, 1e-3, 0.5, 0.999, 1 - 1e-14])
            return sum(
                integrate.quad(
                    lambda x: interpolated(256)(name, np.array([x]))[0] * law.pdf(x), low, high, epsrel=1e-9
                )[0]
                for low, high in zip(cuts, cuts[1:], strict=False)
            )

        assert theory["participation_ratio"] == pytest.approx(mean("participation"), rel=1e-6)
        assert theory["grad_logits"] ** 2 == pytest.approx(mean("jacobian_square"), rel=1e-6)
        if d_k == 16:
            assert theory["participation_ratio"] != pytest.approx(averages(256, 4.0).participation, rel=0.01)

    @pytest.mark.slow
    @pytest.mark.parametrize("d_k", [1, 2])
    @pytest.mark.parametrize("factor", [0.01, 1.0, 100.0])
    def test_narrow_heads_against_twice_as_many_nodes_and_adaptive_integration(self, d_k, factor):
        """At d_k = 1 the density of ‖q‖² is infinite at 0, where the average changes fastest for a large factor."""
        theory = measures(mixture([(1, 1, d_k)]), 64, factor, interpolated(64))
        law = stats.chi(d_k)
        edges = np.concatenate([[0], np.logspace(-8, np.log10(9), 60)])

        def mean(name):
            return sum(
                integrate.fixed_quad(lambda x: interpolated(64)(name, factor * x) * law.pdf(x), low, high, n=20)[0]
                for low, high in zip(edges, edges[1:], strict=False)
            )

        assert theory["entropy"] == pytest.approx(mean("entropy"), rel=1e-7)
        assert theory["participation_ratio"] == pytest.approx(mean("participation"), rel=1e-6)


class TestMixture:
    def test_two_chi_squares_against_direct_sampling(self):
        spectrum = [(3.0, 2.0, 2), (0.5, 4.0, 5), (1.5, 4.0, 1), (7.0, 0.0, 3), (0.0, 9.0, 2)]
        mixed = mixture(spectrum)
        rng = streams.generator(1, "mixture")
        z = [rng.chisquare(number, 200_000) for _, _, number in spectrum]
        q = [a * x for (a, _, _), x in zip(spectrum, z, strict=True)]
        variance, pulled = (sum(x * b**p for x, (_, b, _) in zip(q, spectrum, strict=True)) for p in (1, 2))
        for function in (np.sqrt, np.log1p, lambda x: np.exp(-x / 9)):
            for drawn, weighted in (
                (function(variance), function(mixed.variance)),
                (function(variance) * sum(q), function(mixed.variance) * mixed.query_square),
                (function(variance) * pulled / variance, function(mixed.variance) * mixed.along),
            ):
                z_score = (drawn.mean() - mixed.weight @ weighted) / (drawn.std() / math.sqrt(len(drawn)))
                assert abs(z_score) < 4.5
        assert mixed.total == sum(b * number for _, b, number in spectrum)

    def test_equal_directions_are_one_group_and_three_groups_are_refused(self):
        white, split = mixture([(1, 1, 8)]), mixture([(1, 1, 3), (4, 0.25, 0), (1, 1, 5)])
        assert split.variance == pytest.approx(white.variance)
        assert mixture([(1, 1, 1), (2, 1, 1), (3, 1, 1)]) is None
        assert mixture([(1, 0, 4)]) is None

    def test_beyond_the_table_there_is_no_theory(self):
        wide = mixture([(1e6, 1e6, 16)])
        assert measures(wide, 64, 1.0, interpolated(64)) == {}
        assert measures(wide, 64, 1e-6, interpolated(64))["entropy"] > 0


class TestEnsembles:
    @pytest.mark.parametrize("spec", SPECS, ids=spec_id)
    def test_the_spectrum_has_the_traces_of_the_exact_law(self, spec):
        ensemble = ensembles.build(spec)
        for d_k in widths(ensemble, 2, 6, 64):
            if ensemble.undefined_at(d_k):
                continue
            spectrum, exact = ensemble.row_spectrum(d_k), ensemble.exact(d_k)
            products = np.array([a * b for a, b, _ in spectrum])
            numbers = np.array([number for _, _, number in spectrum])
            assert numbers @ products == pytest.approx(exact.within_row_variance)
            if spec["family"] not in ("shared_tokens",) and not spec.get("key_mean"):
                kurtosis = 6 * (numbers @ products**2) / (numbers @ products) ** 2
                assert kurtosis == pytest.approx(exact.excess_kurtosis)

    @pytest.mark.parametrize("spec", WITHOUT, ids=spec_id)
    def test_others_have_none(self, spec):
        assert ensembles.build(spec).row_spectrum(4) is None

    @pytest.mark.slow
    @pytest.mark.parametrize("n_keys", [2, 64])
    @pytest.mark.parametrize("spec", SPECS, ids=spec_id)
    def test_monte_carlo_agrees(self, spec, n_keys):
        """One query a block, so that rows are independent; gradients with a fresh upstream gradient for each row."""
        ensemble = ensembles.build(spec)
        for d_k in widths(ensemble, 2, 16):
            if ensemble.undefined_at(d_k):
                continue
            factor = 1.5 / math.sqrt(ensemble.exact(d_k).within_row_variance)
            rng = streams.generator(2, "row theory", spec_id(spec), d_k, n_keys)
            n_rows = 20_000 if n_keys == 2 else 3000
            q, k = (x.astype(float) for x in ensemble.draw(rng, n_rows, 1, n_keys, d_k))
            row = softmax.rows(factor * (q @ k.swapaxes(-1, -2)))
            g_z = gradients.softmax_backward(row, rng.standard_normal((n_rows, 1, n_keys)))
            squares = {
                "jacobian_frobenius": softmax.jacobian_frobenius(row),
                "grad_logits": np.sqrt(np.vecdot(g_z, g_z)),
                "grad_query": factor * np.linalg.norm(g_z @ k, axis=-1),
                "grad_key": factor * np.linalg.norm(q, axis=-1) * np.sqrt(np.vecdot(g_z, g_z)),
            }
            measured = {name: (values**2).ravel() for name, values in squares.items()}
            for name in ("entropy", "normalised_entropy", "participation_ratio", "jacobian_trace"):
                measured[name] = softmax.MEASURES[name].of(row).ravel()
            theory = measures(mixture(ensemble.row_spectrum(d_k)), n_keys, factor, interpolated(n_keys))
            assert set(theory) == {*measured, *(f"{name}_values" for name in theory if f"{name}_values" in theory)}
            for name, values in measured.items():
                expected = theory[name] ** 2 if name in squares else theory[name]
                z_score = (values.mean() - expected) / (values.std() / math.sqrt(n_rows))
                assert abs(z_score) < 4.5, (d_k, name, z_score)

    def test_a_wrong_spectrum_is_seen(self):
        """Negative control of the test above: the fixed spread that the mixture replaces."""
        theory = measures(mixture([(1, 1, 2)]), 64, 5 / math.sqrt(2), interpolated(64))
        assert abs(theory["participation_ratio"] / averages(64, 5.0).participation - 1) > 0.1
