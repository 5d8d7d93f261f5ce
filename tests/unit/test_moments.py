"""Moments of cells: errors between blocks, unbiased variances, plans that keep to precision, cap and memory."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from scipy import stats

from sqrtdk.results.described import columns
from sqrtdk.sampling import blocks, ensembles, moments, streams

GAUSSIAN = {"family": "gaussian"}
SHIFTED = {"family": "gaussian", "query_mean": 2.0, "key_mean": 1.0}


def cell(spec, d_k=8, name="x", seed=1, precision=0.02, max_scalars=2e6):
    return moments.simulate_cell(ensembles.build(spec), d_k, name, seed, precision, max_scalars)


def row(spec, **options):
    return cell(spec, **options)["row"]


class TestPlan:
    def test_asks_for_as_many_blocks_as_the_precision_needs(self):
        ensemble = ensembles.build(GAUSSIAN)
        plan = blocks.plan(ensemble, 16, 0.01, 1e9, None)
        needed = ensemble.block_relative_variance(16, plan.n_queries, plan.n_keys) / 0.01**2
        assert needed < plan.n_products < 2 * needed
        assert plan.stopped_by == "precision"

    def test_keeps_to_the_cap(self):
        plan = blocks.plan(ensembles.build(GAUSSIAN), 64, 1e-5, 1e6, None)
        assert plan.stopped_by == "max_scalars"
        assert plan.n_products * (plan.n_queries + plan.n_keys) * 64 <= 1e6 * 1.02

    @pytest.mark.parametrize("d_k", [1, 64, 4096, 65536])
    @pytest.mark.parametrize("max_scalars", [1e4, 1e8])
    def test_has_at_least_64_blocks_whatever_the_cap(self, d_k, max_scalars):
        plan = blocks.plan(ensembles.build(GAUSSIAN), d_k, 0.5, max_scalars, None)
        assert plan.n_blocks >= 64
        assert plan.n_keys >= 2

    def test_keeps_few_sums_however_many_products(self):
        plan = blocks.plan(ensembles.build(GAUSSIAN), 1, 1e-4, 1e12, None)
        assert plan.n_blocks <= blocks.MAX_BLOCKS
        assert plan.n_products >= 1e7

    @pytest.mark.parametrize("first", [64, 512, 4096])
    def test_a_chunk_depends_on_its_place_alone_and_holds_whole_blocks(self, first):
        for start, size in itertools.islice(blocks.chunks(first), 300):
            together = blocks.stack(start + size)
            assert start % together == size % together == 0
            assert (start + size) // together <= blocks.MAX_BLOCKS
            assert size == first if start == 0 else start / 32 < size <= start / 16

    @pytest.mark.parametrize("d_k", [1, 64, 4096])
    def test_products_are_the_same_at_any_precision(self, d_k):
        plans = [blocks.plan(ensembles.build(GAUSSIAN), d_k, precision, 1e9, None) for precision in (0.1, 1e-2, 1e-3)]
        assert len({(plan.n_queries, plan.first, plan.typical) for plan in plans}) == 1
        assert [plan.n_products for plan in plans] == sorted(plan.n_products for plan in plans)

    def test_where_theory_is_silent_a_pilot_decides(self):
        asked = []

        def pilot(plan):
            asked.append(plan)
            return 1.0

        plan = blocks.plan(ensembles.build({"family": "student_t", "df": 3}), 8, 0.01, 1e9, pilot)
        assert len(asked) == 1
        assert 10_000 <= plan.n_products <= 12_000


def drawn(ensemble, d_k, plan, rng):
    """Return all scores of a plan, (n_products, n_queries, n_keys)."""
    batches = blocks.batches(ensemble, d_k, plan, rng)
    return np.concatenate([scores.reshape(-1, *scores.shape[2:]) for _, _, scores in batches])


class TestCell:
    def test_second_implementation_on_the_same_draws(self):
        ensemble = ensembles.build(SHIFTED)
        plan = blocks.Plan(5, 6, 3, 70, "precision")
        sums = moments.sum_blocks(ensemble, 4, plan, streams.generator(1, "same"), 0.5, None, 10)
        again = drawn(ensemble, 4, plan, streams.generator(1, "same"))
        assert again.shape == (210, 5, 6)
        by_block = (again - 0.5).reshape(70, -1)
        for power in range(4):
            assert sums.powers[:, power] == pytest.approx(np.mean(by_block ** (power + 1), axis=1), rel=1e-12)
        within = again.var(axis=2, ddof=1).reshape(70, -1).mean(axis=1)
        assert sums.within_row == pytest.approx(within, rel=1e-10)
        assert sums.n_scores == again.size
        # Of 30 scores every third, of each product.
        kept = (again.reshape(210, -1)[:, ::3] - 0.5).astype(np.float32)
        np.testing.assert_array_equal(sums.kept, kept.reshape(70, -1))

    @pytest.mark.parametrize("spec", [{"family": "uniform"}, {"family": "aligned", "rho": 0.5}], ids=str)
    @pytest.mark.parametrize("stack", [1, 7])
    def test_pieces_of_any_size_fill_the_same_blocks(self, spec, stack, monkeypatch):
        ensemble, plan = ensembles.build(spec), blocks.Plan(3, 3, stack, 64, "precision")

        def summed(batch_scores):
            monkeypatch.setattr(blocks, "BATCH_SCORES", batch_scores)
            # Batches that end within a block: their parts have to find it again.
            monkeypatch.setattr(blocks, "BATCH_SCALARS", 18 * 25)
            return moments.sum_blocks(ensemble, 3, plan, streams.generator(1, "cut"), 0.25, 1.0, 4)

        whole = summed(2**15)
        assert whole.counts.sum() == whole.n_scores == 64 * stack * (3 if ensemble.matched else 9)
        assert len(np.unique(whole.powers, axis=0)) == 64
        for batch_scores in (1, 9 * 4, 9 * 15):
            cut = summed(batch_scores)
            np.testing.assert_allclose(cut.powers, whole.powers, rtol=1e-12)
            np.testing.assert_allclose(cut.within_row, whole.within_row, rtol=1e-12)
            np.testing.assert_array_equal(cut.kept, whole.kept)
            np.testing.assert_array_equal(cut.counts, whole.counts)

    def test_matched_pairs_alone_are_scores(self):
        ensemble = ensembles.build({"family": "aligned", "rho": 1})
        plan = blocks.Plan(4, 4, 1, 64, "precision")
        sums = moments.sum_blocks(ensemble, 3, plan, streams.generator(1, "own"), 0.0, None)
        again = drawn(ensemble, 3, plan, streams.generator(1, "own"))
        own = np.einsum("bii->bi", again)
        assert sums.n_scores == own.size
        assert sums.powers[:, 0] == pytest.approx(own.mean(axis=1))
        rows = [np.var(np.delete(again[b, i], i), ddof=1) for b in range(64) for i in range(4)]
        assert sums.within_row == pytest.approx(np.reshape(rows, (64, 4)).mean(axis=1))

    @pytest.mark.slow
    def test_intervals_cover(self, monkeypatch):
        """95 % intervals cover to three binomial standard errors; block entries taken as independent would not."""
        monkeypatch.setattr(blocks, "PILOT_SCORES", 2**9)
        correlated = {"family": "equicorrelated", "query_rho": 0.5, "key_rho": 0.5}
        studies, total = 150, dict.fromkeys(("mean", "variance", "within_row_variance"), 0)
        cells = list(itertools.product((GAUSSIAN, SHIFTED, correlated), (1, 12)))

        def expected(count: int, n: int) -> bool:
            return abs(count - 0.95 * n) < 3 * math.sqrt(0.95 * 0.05 * n)

        for spec, d_k in cells:
            covered, naive = dict.fromkeys(total, 0), 0
            for seed in range(studies):
                r = row(spec, d_k=d_k, seed=seed, max_scalars=2e4 * d_k)
                t = stats.t(r["n_blocks"] - 1).isf(0.025)
                for name in covered:
                    covered[name] += abs(r[name] - r[f"exact_{name}"]) < t * r[f"{name}_se"]
                naive_se = r["variance"] * math.sqrt((2 + r["exact_excess_kurtosis"]) / r["n_scores"])
                naive += abs(r["variance"] - r["exact_variance"]) < 1.96 * naive_se
            for name, count in covered.items():
                assert expected(count, studies), (spec, d_k, name)
                total[name] += count
            assert d_k == 1 or not expected(naive, studies)
        # All together are a sharper test than each of them.
        for name, count in total.items():
            assert expected(count, studies * len(cells)), name

    def test_variance_is_unbiased_though_means_are_large(self):
        """A block's own variance would be low by a share of the mean's square; pooling across blocks is not."""
        zs = []
        for seed in range(60):
            r = row({"family": "gaussian", "query_mean": 3, "key_mean": 3}, d_k=4, seed=seed, max_scalars=3e4)
            zs.append((r["variance"] - r["exact_variance"]) / r["variance_se"])
        assert abs(np.mean(zs)) < 4.5 / math.sqrt(60)

    def test_reaches_the_precision(self):
        r = row(GAUSSIAN, d_k=16, precision=0.005, max_scalars=1e9)
        assert r["stopped_by"] == "precision"
        assert 0.003 < r["relative_se"] <= 0.005

    def test_rademacher_at_one_is_degenerate_and_equal(self):
        r = row({"family": "rademacher"}, d_k=1)
        assert r["stopped_by"] == "degenerate"
        assert (r["variance"], r["variance_se"]) == (1.0, 0.0)
        assert (r["excess_kurtosis"], r["excess_kurtosis_se"]) == (-2.0, 0.0)
        assert not r["kurtosis_trusted"]
        assert r["mean_se"] > 0

    def test_infinite_fourth_moment_has_no_variance_error(self):
        r = row({"family": "student_t", "df": 3})
        assert r["variance"] > 0
        assert r["variance_se"] is None
        assert r["within_row_variance_se"] is None
        assert r["excess_kurtosis"] is None
        assert "fourth moment" in r["reason"]
        assert r["quartile_3_se"] > 0

    def test_infinite_variance_has_quartiles_alone(self):
        r = row({"family": "student_t", "df": 1})
        assert r["variance"] is r["mean"] is r["variance_se"] is None
        assert r["quartile_1"] < 0 < r["quartile_3"]
        assert "no finite variance" in r["reason"]

    def test_extreme_tails_warn_of_nothing(self):
        r = row({"family": "student_t", "df": 0.05}, d_k=2)
        assert r["variance"] is None
        assert r["stopped_by"] == "max_scalars"

    def test_kurtosis_without_eighth_moment_is_not_trusted(self):
        r = row({"family": "student_t", "df": 6})
        assert r["excess_kurtosis_se"] > 0
        assert r["kurtosis_trusted"] is False
        assert "eighth moment" in r["reason"]

    def test_quartiles_are_those_of_the_score(self):
        r = row(GAUSSIAN, d_k=2, precision=0.003, max_scalars=1e8)
        # At d_k = 2 the score is Laplace with scale 1.
        assert abs(r["quartile_3"] - math.log(2)) < 4.5 * r["quartile_3_se"]
        assert abs(r["median"]) < 4.5 * r["median_se"]
        assert r["interquartile_range"] == r["quartile_3"] - r["quartile_1"]
        assert abs(r["interquartile_range"] - 2 * math.log(2)) < 4.5 * r["interquartile_range_se"]

    def test_histogram_counts_every_score_where_the_density_is_known(self):
        found = cell(GAUSSIAN)
        lines = moments.histogram_rows(found)
        assert sum(line["count"] for line in lines) == found["row"]["n_scores"]
        assert set(lines[0]) == set(columns("score_histograms"))
        assert moments.histogram_rows(cell({"family": "uniform"})) == []

    def test_columns_are_those_of_the_table(self):
        assert set(row(GAUSSIAN)) == set(columns("moments"))


class TestIdentity:
    def test_a_cell_is_the_same_whenever_it_is_run(self):
        assert cell(SHIFTED) == cell(SHIFTED)

    @pytest.mark.parametrize("change", [{"d_k": 9}, {"name": "y"}, {"seed": 2}], ids=str)
    def test_another_cell_draws_other_numbers(self, change):
        assert row(GAUSSIAN)["mean"] != row(GAUSSIAN, **change)["mean"]


@pytest.mark.slow
@pytest.mark.parametrize("d_k", [1, 65536])
def test_memory_is_bounded(d_k):
    tracemalloc.start()
    row(GAUSSIAN, d_k=d_k, precision=1e-3, max_scalars=2e7)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6
