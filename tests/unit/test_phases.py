"""Maps of where attention freezes, and one block's attention matrices."""

import functools
import math

import numpy as np
import pytest
from scipy import special, stats

from sqrtdk.rows import softmax
from sqrtdk.sampling import streams
from sqrtdk.studies import attention_maps, phases
from sqrtdk.theory import random_energy
from sqrtdk.variants.notation import parse

RULES = ["none", "1/sqrt(d_k)", "1/d_k"]


@functools.cache
def averages() -> dict[int, random_energy.Interpolated]:
    tables = {}
    for n in (2, 16, 4096):
        rows = random_energy.tabulate(n)
        tables[n] = random_energy.Interpolated({name: [row[name] for row in rows] for name in rows[0]})
    return tables


@functools.cache
def phase_map():
    return {(row["scaling"], row["n_keys"], row["d_k"]): row for row in phases.phase_map(averages(), RULES)}


@pytest.fixture(scope="module")
def frontier():
    return {row["n_keys"]: row for row in phases.freezing_frontier(averages())}


@pytest.fixture(scope="module")
def rows():
    return attention_maps.attention_maps(1)


class TestPhaseMap:
    @pytest.mark.slow
    def test_every_cell_is_there_and_consistent(self):
        assert len(phase_map()) == len(RULES) * 3 * len(phases.D_K)
        assert phases.D_K[0] == 1
        assert phases.D_K[-1] == 4096
        for (scaling, n, d_k), row in phase_map().items():
            assert row["logit_std"] == pytest.approx(parse(scaling).factor(d_k, n) * math.sqrt(d_k))
            assert row["effective_keys"] == pytest.approx(1 / row["participation"])
            assert row["effective_share"] == pytest.approx(row["effective_keys"] / n)
            assert row["phase"] == ("frozen" if row["participation"] >= 0.5 else "hot")
            assert 0 < row["normalised_entropy"] <= 1
            assert 1 / n * (1 - 1e-9) <= row["participation"] <= 1

    def test_unscaled_heads_freeze_with_width_and_scaled_ones_do_not(self):
        for n in (16, 4096):
            unscaled = [phase_map()["none", n, d]["participation"] for d in phases.D_K]
            assert (np.diff(unscaled) > 0).all()
            assert unscaled[-1] > 0.9
        large = phase_map()["1/sqrt(d_k)", 4096, 4096]
        # n Σp² tends to e^{s²} at s = 1.
        assert large["effective_share"] == pytest.approx(math.exp(-1), rel=0.01)
        assert phase_map()["1/d_k", 4096, 4096]["effective_share"] == pytest.approx(1, abs=0.001)

    @pytest.mark.slow
    def test_cells_against_sampled_queries(self):
        """A second computation: draw ‖q‖ and average the integrals, not their interpolation."""
        for scaling, n, d_k in (("none", 16, 1), ("none", 4096, 32), ("1/sqrt(d_k)", 16, 2), ("1/d_k", 4096, 3)):
            norms = np.sqrt(stats.chi2(d_k).ppf((np.arange(60) + 0.5) / 60))
            spread = parse(scaling).factor(d_k, n) * norms
            sampled = np.mean([random_energy.averages(n, s).participation for s in spread])
            assert phase_map()[scaling, n, d_k]["participation"] == pytest.approx(sampled, rel=0.02)


class TestFrontier:
    @pytest.mark.parametrize(("n", "fixed"), [(16, 10), (4096, 50)])
    def test_known_widths_hold_for_a_fixed_norm_and_the_mixture_needs_one_more(self, frontier, n, fixed):
        assert frontier[n]["half_d_k_fixed_norm"] == pytest.approx(fixed, abs=0.5)
        assert 0.5 < frontier[n]["half_d_k"] - frontier[n]["half_d_k_fixed_norm"] < 2
        assert frontier[n]["critical_std"] == math.sqrt(2 * math.log(n))

    def test_a_row_is_half_frozen_there(self, frontier):
        for n in (16, 4096):
            row = frontier[n]
            assert random_energy.averages(n, row["half_std"]).participation == pytest.approx(0.5, abs=2e-6)
            for name, spread in (("least_d_k_fixed_norm", math.sqrt), ("least_d_k", None)):
                below, at = (
                    random_energy.averages(n, spread(d)).participation
                    if spread
                    else phases.gaussian_rows.mean(
                        phases.gaussian_rows.standard_normal(d), 1.0, averages()[n], "participation"
                    )
                    for d in (row[name] - 1, row[name])
                )
                assert below < 0.5 <= at

    def test_two_keys_are_always_half_frozen_and_so_have_no_frontier(self, frontier):
        assert [value for name, value in frontier[2].items() if name not in ("n_keys", "critical_std")] == [None] * 5


class TestEntropyScale:
    def test_the_scale_gives_the_entropy(self):
        rows = phases.entropy_scales(averages())
        assert len(rows) == 3 * len(phases.ENTROPIES) * len(phases.ENTROPY_D_K)
        for row in rows:
            assert row["achieved"] == pytest.approx(row["normalised_entropy"], abs=1e-9)
            assert row["scale_times_sqrt_d_k"] == pytest.approx(row["scale"] * math.sqrt(row["d_k"]))
        least = {(row["n_keys"], row["normalised_entropy"]): row["scale"] for row in rows if row["d_k"] == 64}
        for n in averages():
            assert (np.diff([least[n, wanted] for wanted in phases.ENTROPIES]) < 0).all()

    def test_monte_carlo_has_that_entropy(self):
        (row,) = [
            row
            for row in phases.entropy_scales({16: averages()[16]})
            if row["d_k"] == 16 and row["normalised_entropy"] == 0.5
        ]
        q, k = np.random.default_rng(3).standard_normal((2, 20_000, 16, 16))
        logits = row["scale"] * np.einsum("bd,bjd->bj", q[:, 0], k)
        values = softmax.normalised_entropy(softmax.rows(logits))
        assert abs(values.mean() - 0.5) < 4.5 * values.std() / math.sqrt(len(values))


class TestAttentionMaps:
    def test_every_row_is_a_distribution(self, rows):
        assert len(rows) == len(attention_maps.D_K) * 2 * attention_maps.N
        for row in rows:
            weights = np.array([row[name] for name in attention_maps.WEIGHTS])
            assert weights.sum() == pytest.approx(1)
            assert row["largest_weight"] == weights.max()
            assert row["effective_keys"] == pytest.approx(1 / np.sum(weights**2))

    def test_the_scale_only_tempers_the_same_logits(self, rows):
        """ln p differs from √d_k times ln p of the scaled row by a constant of the row."""
        by_key = {(row["d_k"], row["scaling"], row["query"]): row for row in rows}
        for d_k in (4, 64):
            for query in range(1, attention_maps.N + 1):
                unscaled, scaled = (
                    np.log([by_key[d_k, rule, query][name] for name in attention_maps.WEIGHTS])
                    for rule in attention_maps.RULES
                )
                assert np.ptp(unscaled - math.sqrt(d_k) * scaled) < 1e-9

    def test_narrow_heads_are_the_first_components_of_wide_ones(self, rows):
        q, k = streams.generator(1, "attention_maps").standard_normal((2, attention_maps.N, 1024))
        expected = special.softmax(q[:, :4] @ k[:, :4].T / 2, axis=1)
        shown = [row for row in rows if (row["d_k"], row["scaling"]) == (4, "1/sqrt(d_k)")]
        assert np.array([[row[name] for name in attention_maps.WEIGHTS] for row in shown]) == pytest.approx(expected)

    def test_the_seed_counts(self, rows):
        other = attention_maps.attention_maps(2)
        assert {row["seed"] for row in other} == {2}
        assert other[0]["weight_1"] != rows[0]["weight_1"]
