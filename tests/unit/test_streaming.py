"""Rows whose keys arrive in pieces are the same rows: measures and gradient norms, in any order of the pieces."""

import tracemalloc

import numpy as np
import pytest

from sqrtdk.rows import gradients, softmax, streaming

FACTORS = (1.0, 0.125, 3.0)
SUMS = [name for name, measure in softmax.MEASURES.items() if not measure.whole_row]


def scores_of(kind, rng, shape):
    z = rng.standard_normal(shape)
    one_hot = np.where(np.arange(shape[-1]) == shape[-1] // 3, 1e3, 0.0)
    return {
        "random": 3 * z,
        "small": 1e-6 * z,
        "saturated": rng.choice([-1e4, 0.0, 1e4], shape) + z,
        "one-hot": one_hot + z,
        "one-hot beyond double precision": 40 * one_hot + z,
        "equal": np.full(shape, 7.0),
        "rising": np.cumsum(np.abs(z), axis=-1),
        "falling": -np.cumsum(np.abs(z), axis=-1),
        "ties": np.round(z),
        "masked": np.where(rng.random(shape) < 0.6, -np.inf, 3 * z),
    }[kind]


KINDS = (
    "random",
    "small",
    "saturated",
    "one-hot",
    "one-hot beyond double precision",
    "equal",
    "rising",
    "falling",
    "ties",
    "masked",
)


def cut(rng, n, n_pieces):
    """Cut n keys into pieces at random, some of a single key; return slices in random order."""
    inner = np.sort(rng.choice(np.arange(1, n), min(n - 1, n_pieces - 1), replace=False))
    ends = [0, *inner.tolist(), n]
    pieces = [slice(a, b) for a, b in zip(ends, ends[1:], strict=False)]
    return [pieces[i] for i in rng.permutation(len(pieces))]


def stream(pieces, scores, upstream=(), k=None, n_pulled=None, factors=FACTORS):
    return streaming.merge_all(
        streaming.summarise(
            factors,
            scores[..., s],
            [v[..., s] for v in upstream],
            None if k is None else k[..., s, :],
            s.start,
            n_pulled,
        )
        for s in pieces
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 3, 40])
def test_measures_are_those_of_whole_rows(kind, n):
    rng = np.random.default_rng(1)
    scores = scores_of(kind, rng, (3, 5, n))
    whole = softmax.rank(scores)
    for n_pieces in (1, 2, 7, n):
        summary = stream(cut(rng, n, n_pieces), scores)
        for i, factor in enumerate(FACTORS):
            expected, found = whole.soften(factor), summary.rows(i)
            np.testing.assert_array_equal(found.top, expected.top)
            np.testing.assert_array_equal(found.n_keys, expected.n_keys)
            usable = np.broadcast_to(expected.n_keys, (3, 5)) > 1
            for name in SUMS:
                of = softmax.MEASURES[name].of
                np.testing.assert_allclose(of(found[usable]), of(expected[usable]), rtol=1e-12, atol=0, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_gradient_norms_are_those_of_whole_rows(kind, n):
    rng = np.random.default_rng(2)
    scores = scores_of(kind, rng, (3, 5, n))
    upstream = rng.standard_normal((2, 3, 5, n))
    k, query_norm = rng.standard_normal((3, n, 4)), rng.random((3, 5)) + 1
    whole = softmax.rank(scores)
    for n_pieces, n_pulled in ((1, None), (2, 2), (7, 5), (n, 1)):
        summary = stream(cut(rng, n, n_pieces), scores, upstream, k, n_pulled)
        for i, factor in enumerate(FACTORS):
            row = whole.soften(factor)
            differences = [gradients.from_top(row.top, v) for v in upstream]
            expected = gradients.norms(row, differences, query_norm, k, factor, n_pulled)
            for pair in zip(summary.norms(i, query_norm), expected, strict=True):
                for found, norm in zip(*pair, strict=True):
                    np.testing.assert_allclose(found, norm, rtol=1e-12, atol=1e-307)


def test_a_change_of_the_largest_key_matters():
    """Negative control: with v_top left at the first piece's largest key the norms are far off."""
    rng = np.random.default_rng(3)
    scores, upstream, k = scores_of("rising", rng, (4, 1, 30)), rng.standard_normal((1, 4, 1, 30)), np.ones((4, 30, 0))
    pieces = [slice(0, 10), slice(10, 20), slice(20, 30)]
    summary = stream(pieces, scores, upstream, k)
    stale = streaming.StreamedRows(**{**vars(summary), "top_upstream": upstream[..., 9]})
    right, wrong = (x.norms(0, np.ones((4, 1)))[0][0] for x in (summary, stale))
    assert (np.abs(wrong / right - 1) > 1e-3).all()


def test_single_precision_keys_lose_little():
    rng = np.random.default_rng(4)
    scores, upstream = scores_of("random", rng, (4, 3, 50)), rng.standard_normal((2, 4, 3, 50))
    k = rng.standard_normal((4, 50, 16)).astype(np.float32)
    pieces = cut(rng, 50, 6)
    single, double = (stream(pieces, scores, upstream, x) for x in (k, k.astype(float)))
    for i in range(len(FACTORS)):
        for pair in zip(single.norms(i, np.ones((4, 3))), double.norms(i, np.ones((4, 3))), strict=True):
            np.testing.assert_allclose(*(norms[1] for norms in pair), rtol=1e-5)


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e4, 1e300])
@pytest.mark.parametrize("n", [1, 2, 9])
def test_nothing_is_nan_and_nothing_warns(n, size):
    rng = np.random.default_rng(5)
    scores = np.concatenate(
        [
            rng.choice([-size, 0.0, size], (30, n)),
            rng.standard_normal((30, n)) * size,
            rng.choice([-np.inf, 0.0, size], (30, n)),
            np.full((1, n), -np.inf),
        ]
    )
    upstream, k = rng.standard_normal((1, 91, n)), rng.standard_normal((n, 3)).astype(np.float32)
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        summary = stream([slice(i, i + 1) for i in range(n)], scores, upstream, k)
        for i in range(len(FACTORS)):
            row = summary.rows(i)
            usable = np.broadcast_to(row.n_keys, (91,)) > 1
            values = [softmax.MEASURES[name].of(row[usable]) for name in SUMS] + list(summary.norms(i, np.ones(91))[0])
            for value in values:
                assert np.isfinite(value).all()
                assert (value >= 0).all()


def test_a_row_without_any_key_has_no_weight_and_no_gradient():
    scores = np.array([[-np.inf] * 4, [0.0, -np.inf, 1.0, 2.0]])
    summary = stream([slice(0, 2), slice(2, 4)], scores, np.ones((1, 2, 4)) * [1, 2, 3, 4], np.ones((4, 2)))
    row = summary.rows(0)
    np.testing.assert_array_equal(row.n_keys, [0, 3])
    assert row.largest[0] == 0 < row.largest[1]
    for norm in summary.norms(0, np.ones(2))[0]:
        assert norm[0] == 0
    assert summary.norms(0, np.ones(2))[0][0][1] > 0


def test_the_spectral_norm_is_refused():
    summary = stream([slice(0, 2), slice(2, 4)], np.arange(8.0).reshape(2, 4))
    with pytest.raises(ValueError, match="streamed"):
        softmax.jacobian_spectral(summary.rows(0))


def test_a_summary_does_not_grow_with_its_keys():
    def peak(n_pieces):
        rng = np.random.default_rng(6)
        pieces = (streaming.summarise(FACTORS, rng.standard_normal((1, 2000)), start=2000 * i) for i in range(n_pieces))
        tracemalloc.start()
        streaming.merge_all(pieces)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert peak(64) < 1.2 * peak(4)
