"""Quantiles with errors: NumPy's values, errors that count blocks, and an interval on either scale."""

import math

import numpy as np
import pytest

from sqrtdk.statistics import quantiles
from sqrtdk.statistics.quantiles import Ordered


def test_median_on_plain_numbers():
    assert quantiles.median(np.full((5, 3), 2.0)) == (2.0, 0.0)
    x = np.random.default_rng(4).standard_normal((4000, 1))
    # Without shared blocks the error is √(π/2n), here on a logarithmic scale; with values of 0, 1 and 2, read directly.
    centre, se = quantiles.median(np.exp(100 * x))
    assert centre == pytest.approx(np.median(np.exp(100 * x)), rel=1e-9)
    assert se / centre == pytest.approx(100 * math.sqrt(math.pi / 2 / 4000), rel=0.15)
    assert quantiles.median(np.array([[0.0], [1.0], [2.0]] * 2)) == (1.0, pytest.approx(2 / (2 * 1.96), rel=1e-4))
    assert quantiles.median(np.zeros((64, 2))) == (0.0, 0.0)


def test_quantiles_and_shares_of_plain_numbers():
    values = np.random.default_rng(2).exponential(size=(50, 7))
    rows = Ordered(values)
    for level in (0.0, 0.01, 0.5, 0.77, 1.0):
        assert rows.quantile(level) == pytest.approx(np.quantile(values, level), rel=1e-12)
    assert rows.share(0.3)[0] == pytest.approx((values < 0.3).mean())
    assert rows.woodruff(0.5)[:2] == quantiles.median(values)
    step = Ordered(np.repeat([[0.0, 1.0]], 10, axis=0))
    assert step.share(1.0)[0] == 0.5
    assert step.share(1.0, strict=False)[0] == 1.0


def test_woodruff_on_either_scale():
    """Of the quantiles e^level, with a share known to 0.1: the interval is the same, the error is that of its scale."""
    centre, se, low, high = quantiles.woodruff(math.exp, 0.5, 0.1, width=2.0)
    assert (centre, low, high) == pytest.approx((math.exp(0.5), math.exp(0.3), math.exp(0.7)))
    assert se == pytest.approx(0.1 * math.exp(0.5))
    assert quantiles.woodruff(math.exp, 0.5, 0.1, width=2.0, log=False)[1] == pytest.approx((high - low) / 4)
    assert quantiles.woodruff(lambda level: level, 0.95, 0.1, width=2.0)[2:] == pytest.approx((0.75, 1.0))
    # No logarithm of an end at 0.
    assert quantiles.woodruff(lambda level: level, 0.1, 0.1, width=2.0)[1] == pytest.approx(0.3 / 4)


def test_values_that_repeat_each_other_count_as_few():
    rng = np.random.default_rng(1)
    independent = Ordered(rng.uniform(size=(200, 10)))
    repeated = Ordered(np.repeat(rng.uniform(size=(200, 1)), 10, axis=1))
    for rows, n in ((independent, 2000), (repeated, 200)):
        assert rows.effective_rows(0.3, *rows.share(0.3)) == pytest.approx(n, rel=0.25)
    assert Ordered(np.ones((200, 10))).effective_rows(0.3, 0.0, 0.0) == 200


class TestSignedQuantiles:
    def test_is_numpys(self):
        values = np.random.default_rng(4).normal(size=(10, 33))
        found, _ = quantiles.with_parts(values, (0.25, 0.5))
        assert [one.value for one in found] == pytest.approx(np.quantile(values, (0.25, 0.5)))

    def test_error_counts_blocks_and_not_values(self):
        rng = np.random.default_rng(5)
        studies = []
        for _ in range(300):
            values = rng.normal(size=(100, 1)) + 0.1 * rng.normal(size=(100, 20))
            studies.append(quantiles.with_parts(values, (0.5,))[0][0])
        spread = np.std([study.value for study in studies])
        assert np.mean([study.se for study in studies]) == pytest.approx(spread, rel=0.15)

    @pytest.mark.parametrize("common", ["shift", "scale"])
    def test_error_of_the_interquartile_range_knows_how_the_quartiles_move_together(self, common):
        rng = np.random.default_rng(6)
        ranges, naive = [], []
        for _ in range(300):
            block = rng.normal(size=(64, 1))
            values = rng.normal(size=(64, 200))
            values = values + block if common == "shift" else values * np.exp(0.7 * block)
            quartiles, parts = quantiles.with_parts(values, (0.25, 0.5, 0.75))
            ranges.append(quantiles.difference(quartiles, parts))
            naive.append(math.hypot(quartiles[0].se, quartiles[2].se))
        spread = np.std([one.value for one in ranges])
        assert np.mean([one.se for one in ranges]) == pytest.approx(spread, rel=0.15)
        # Negative control: independent quartiles would be far off, too wide for a shift and too narrow for a scale.
        assert (np.mean(naive) > 1.5 * spread) if common == "shift" else (np.mean(naive) < 0.85 * spread)

    def test_values_that_repeat_have_no_error(self):
        values = np.sign(np.random.default_rng(7).normal(size=(64, 100)))
        quartiles, parts = quantiles.with_parts(values, (0.25, 0.75))
        assert quantiles.difference(quartiles, parts) == (2.0, 0.0)

    def test_a_block_of_larger_values_adds_to_a_quantile(self):
        values = np.random.default_rng(8).normal(size=(50, 40))
        values[7] += 2
        _, parts = quantiles.with_parts(values, (0.5,))
        assert parts.argmax() == 7
        assert parts.sum() == pytest.approx(0, abs=1e-12)
