"""Masked keys have no weight, no gradient and no part in any number; rows that have no key left are counted."""

import math
import re

import mpmath
import numpy as np
import pytest

from sqrtdk.rows import gradients, softmax

NORMALISED = [name for name, measure in softmax.MEASURES.items() if measure.least_keys > 1]
EVERY_ERROR = {"divide": "raise", "over": "raise", "invalid": "raise"}


def masked_rows(rng, n_rows, n_keys, spread=3.0):
    """Logits and a mask; the first row is wholly masked, the second has one key, the third all of them."""
    z, mask = rng.standard_normal((n_rows, n_keys)) * spread, rng.random((n_rows, n_keys)) < 0.6
    mask[0], mask[1], mask[2] = False, np.arange(n_keys) == n_keys // 2, True
    return z, mask


def hidden(z, mask):
    return np.where(mask, z, -np.inf)


def test_masked_rows_are_rows_without_those_keys():
    rng = np.random.default_rng(1)
    z, mask = masked_rows(rng, 40, 9)
    row = softmax.rows(z, mask)
    np.testing.assert_array_equal(row.n_keys, mask.sum(-1))
    weights = softmax.weights(row)
    assert (weights[~mask] == 0).all()
    for i in range(1, 40):
        short = softmax.rows(z[i, mask[i]])
        np.testing.assert_allclose(weights[i, mask[i]], softmax.weights(short), rtol=1e-13)
        for name, measure in softmax.MEASURES.items():
            if mask[i].sum() >= measure.least_keys:
                assert measure.of(row[i : i + 1])[0] == pytest.approx(float(measure.of(short)), rel=1e-13), name


@pytest.mark.parametrize("garbage", [0.0, 1e300, np.nan, np.inf])
def test_a_mask_and_minus_infinity_give_the_same_numbers(garbage):
    z, mask = masked_rows(np.random.default_rng(2), 40, 9)
    by_mask, by_value = softmax.rows(np.where(mask, z, garbage), mask), softmax.rows(hidden(z, mask))
    for name in vars(by_mask):
        np.testing.assert_array_equal(getattr(by_mask, name), getattr(by_value, name), err_msg=name)
    assert softmax.summarise(z, mask) == softmax.summarise(hidden(z, mask))


def test_masks_broadcast_and_must_be_boolean():
    z = np.random.default_rng(3).standard_normal((2, 5, 5))
    causal = np.tri(5, dtype=bool)
    for i in range(5):
        expected = softmax.softmax(z[1, i, : i + 1])
        np.testing.assert_allclose(softmax.softmax(z, causal)[1, i, : i + 1], expected, rtol=1e-14)
    for additive in (np.where(causal, 0.0, -np.inf), causal.astype(int)):
        with pytest.raises(ValueError, match="boolean"):
            softmax.rank(z, additive)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("position", [0, 2])
def test_logits_that_mean_nothing_are_refused(bad, position):
    z = np.zeros((3, 4))
    z[1, position] = bad
    with pytest.raises(ValueError, match="NaN or infinite"):
        softmax.rows(z)


def test_masked_keys_have_no_gradient():
    rng = np.random.default_rng(4)
    q, k, v, upstream = (rng.standard_normal((3, n, 2)) for n in (5, 6, 6, 5))
    mask = rng.random((3, 5, 6)) < 0.5
    mask[0, 0], mask[:, :, 4] = False, False
    row = softmax.rows(q @ k.swapaxes(-1, -2), mask)
    g = gradients.softmax_backward(row, upstream @ v.swapaxes(-1, -2))
    assert (g[~mask] == 0).all()
    d_q, d_k, d_v = gradients.attention_backward(q, k, v, upstream, 1.0, mask)
    assert (d_q[0, 0] == 0).all()
    assert (d_k[:, 4] == 0).all()
    assert (d_v[:, 4] == 0).all()
    assert (gradients.attention_forward(q, k, v, 1.0, mask)[0, 0] == 0).all()
    # The rest is what it is without those keys.
    rest = [0, 1, 2, 3, 5]
    shorter = gradients.attention_backward(q, k[:, rest], v[:, rest], upstream, 1.0, mask[..., rest])
    for found, expected in zip((d_q, d_k[:, rest], d_v[:, rest]), shorter, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    for norms in gradients.norms(
        row, [gradients.from_top(row.top, upstream @ v.swapaxes(-1, -2))], np.ones((3, 5)), k, 1.0
    ):
        assert all(norm[0, 0] == 0 and np.isfinite(norm).all() for norm in norms)


def test_the_summary_counts_what_it_leaves_out():
    z, mask = masked_rows(np.random.default_rng(5), 60, 8)
    n_keys = mask.sum(-1)
    summary = softmax.summarise(z, mask)
    assert (summary.n_masked, summary.n_single) == ((n_keys == 0).sum(), (n_keys == 1).sum())
    assert summary.n_masked >= 1 <= summary.n_single
    for name, measure in softmax.MEASURES.items():
        rows = [softmax.rows(z[i, mask[i]]) for i in range(60) if n_keys[i] >= measure.least_keys]
        values = np.array([float(measure.of(row)) for row in rows])
        centre = math.sqrt((values**2).mean()) if measure.summary == "rms" else values.mean()
        assert summary.measures[name] == (pytest.approx(centre, rel=1e-12), len(values)), name


def test_averaging_a_masked_row_would_show():
    """Negative control: a row without keys counted as a row of zeros moves every mean."""
    z, mask = masked_rows(np.random.default_rng(6), 10, 8)
    honest, row = softmax.summarise(z, mask), softmax.rows(z, mask)
    assert softmax.max_weight(row).mean() < honest.measures["max_weight"][0] * 0.95


@pytest.mark.parametrize(("logits", "n_masked", "n_single"), [([-np.inf] * 3, 1, 0), ([-np.inf, 2.0, -np.inf], 0, 1)])
def test_a_single_row_with_nothing_to_average(logits, n_masked, n_single):
    summary = softmax.summarise(np.array(logits))
    assert (summary.n_masked, summary.n_single) == (n_masked, n_single)
    assert all(summary.measures[name] == (None, 0) for name in NORMALISED)
    entropy = summary.measures["entropy"]
    assert entropy == ((None, 0) if n_masked else (0.0, 1))


def bfloat16(x):
    """Cut float32 numbers to their upper half."""
    return (np.asarray(x, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


@pytest.mark.parametrize("kind", [np.float16, bfloat16, np.float32])
def test_short_numbers_are_measured_in_double_precision(kind):
    short = kind(np.random.default_rng(7).standard_normal((20, 6)) * 9)
    summary = softmax.summarise(short)
    assert summary == softmax.summarise(short.astype(np.float64))
    # In the numbers' own precision the entropy of such rows is off in the third digit or sooner.
    assert softmax.rows(short).sum_1.dtype == np.float64


@pytest.mark.parametrize("size", [1.0, 1e4, 1e300])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_nothing_is_nan_or_negative_and_nothing_warns(n, size):
    rng = np.random.default_rng(8)
    z = np.concatenate(
        [
            rng.choice([-np.inf, -size, 0.0, size], (200, n)),
            rng.standard_normal((50, n)) * size,
            np.full((1, n), -np.inf),
            np.full((1, n), size),
            np.where(np.arange(n) == n // 2, size, -size)[None],
        ]
    )
    upstream = rng.standard_normal(z.shape)
    with np.errstate(**EVERY_ERROR):
        for logits in (z, z[:200], z[:1], z[-1:], np.full((1, n), -np.inf)):
            summary, row = softmax.summarise(logits), softmax.rows(logits)
            assert all(value is None or (value >= 0 and math.isfinite(value)) for value, _ in summary.measures.values())
            assert np.isfinite(softmax.weights(row)).all()
            assert np.isfinite(gradients.softmax_backward(row, upstream[: len(logits)])).all()
            np.testing.assert_allclose(
                softmax.weights(row).sum(-1), np.isfinite(logits).any(-1).astype(float), rtol=1e-13
            )


def test_shifts_and_permutations_change_nothing():
    rng = np.random.default_rng(9)
    z, mask = masked_rows(rng, 50, 12)
    z = np.round(z, 3)
    order = rng.permuted(np.tile(np.arange(12), (50, 1)), axis=-1)
    whole = softmax.summarise(z, mask)
    moved = softmax.summarise(np.take_along_axis(z, order, -1), np.take_along_axis(mask, order, -1))
    shifted = softmax.summarise(z + 1024.0, mask)
    for other, rel in ((moved, 1e-12), (shifted, 1e-11)):
        assert (other.n_masked, other.n_single) == (whole.n_masked, whole.n_single)
        for name, (value, n) in whole.measures.items():
            assert other.measures[name] == (pytest.approx(value, rel=rel), n), name


def test_frobenius_norm_of_a_masked_hard_row_against_high_precision():
    """[40, 0, −1, −2] with masked keys among them: ‖J‖² = 1.03e-34, which naive formulas lose."""
    with mpmath.workdps(100):
        e = [mpmath.exp(x) for x in (40, 0, -1, -2)]
        p = [x / mpmath.fsum(e) for x in e]
        square = mpmath.fsum(((x if i == j else 0) - x * y) ** 2 for i, x in enumerate(p) for j, y in enumerate(p))
    logits = np.array([-np.inf, 40.0, 0.0, -np.inf, -1.0, -2.0, -np.inf])
    assert float(square) == pytest.approx(1.03e-34, rel=5e-3, abs=0)
    assert softmax.jacobian_frobenius(softmax.rows(logits)) ** 2 == pytest.approx(float(square), rel=1e-13, abs=0)


def test_undefined_measures_of_masked_rows_are_refused():
    row = softmax.rows(np.array([[0.0, -np.inf], [1.0, 2.0]]))
    for name in NORMALISED:
        with pytest.raises(ValueError, match=re.escape("single key")):
            softmax.MEASURES[name].of(row)
