"""Random streams: named by what they are for, and distributed as they say."""

import numpy as np
import pytest
from scipy import stats

from sqrtdk.sampling import streams

N = 400_000


def first(seed, *identity):
    return streams.generator(seed, *identity).random()


def test_the_same_identity_is_the_same_stream():
    assert first(1, "moments", "gaussian", 64) == first(1, "moments", "gaussian", 64)


def test_any_difference_is_another_stream():
    draws = {
        first(*key)
        for key in [
            (1, "moments", "gaussian", 64),
            (2, "moments", "gaussian", 64),
            (1, "softmax", "gaussian", 64),
            (1, "moments", "gaussian", 6, 4),
            (1, "moments", "gaussian", "64"),
            (1, "moments", "gaussian"),
            (1, "moments", "gaussian", 64, 0),
            (0,),
            (0, 0),
            (2**63, "x"),
        ]
    }
    assert len(draws) == 10


@pytest.mark.parametrize(
    ("draw", "law", "even_moments"),
    [
        (streams.standard_normal, stats.norm(), (1, 3, 15, 105)),
        (streams.standard_laplace, stats.laplace(scale=np.sqrt(0.5)), (1, 6, 90, 2520)),
        (lambda rng, size: streams.student_t(rng, 20, size), stats.t(20), (20 / 18, 75 / 18, None, None)),
        (lambda rng, size: streams.student_t(rng, 5, size), stats.t(5), (5 / 3, 25, None, None)),
    ],
    ids=["normal", "laplace", "student_t", "heavier_student_t"],
)
class TestTransforms:
    def test_follow_their_law(self, draw, law, even_moments):
        x = draw(streams.generator(3, law.dist.name), (N,)).astype(float)
        assert stats.kstest(x, law.cdf).pvalue > 1e-4
        for order in (1, 2, 3, 4):
            if even_moments[order - 1] is None:
                continue
            expected = 0 if order % 2 else even_moments[order // 2 - 1]
            se = np.sqrt((even_moments[order - 1] - expected**2) / N)
            assert abs(np.mean(x**order) - expected) < 4.5 * se

    def test_have_tails(self, draw, law, even_moments):
        x = np.abs(draw(streams.generator(4, law.dist.name), (4 * N,)).astype(float))
        threshold = law.isf(5e-6)
        assert stats.binomtest(int((x > threshold).sum()), 4 * N, 1e-5).pvalue > 1e-4

    def test_neighbours_are_uncorrelated(self, draw, law, even_moments):
        x = draw(streams.generator(5, law.dist.name), (N,)).astype(float)
        for lag in (1, streams.CHUNK, 2 * streams.CHUNK):
            for power in (1, 2):
                y = x**power
                assert abs(np.corrcoef(y[:-lag], y[lag:])[0, 1]) < 4.5 / np.sqrt(N - lag)

    @pytest.mark.parametrize("size", [(1,), (3, 5), (streams.CHUNK + 1,), (2 * streams.CHUNK + 1,)])
    def test_have_the_size_asked_for_and_are_finite(self, draw, law, even_moments, size):
        x = draw(streams.generator(6, "size"), size)
        assert x.shape == size
        assert x.dtype == np.float32
        assert np.isfinite(x).all()


def test_tails_without_a_variance_are_drawn_in_full():
    x = streams.student_t(streams.generator(8, "tails"), 1.5, (N,))
    assert x.dtype == np.float64
    assert stats.kstest(x, stats.t(1.5).cdf).pvalue > 1e-4
    for share in (1e-3, 1e-5):
        beyond = int((np.abs(x) > stats.t(1.5).isf(share / 2)).sum())
        assert stats.binomtest(beyond, N, share).pvalue > 1e-4


def test_a_law_that_leaves_the_range_of_numbers_warns_of_nothing():
    assert np.isinf(streams.student_t(streams.generator(8, "wide"), 0.01, (100,))).any()


def test_the_smallest_and_largest_uniform_give_finite_normals():
    extremes = streams._open_uniform(np.array([0, 2**32 - 1], np.uint32), 32)
    assert 0 < extremes[0] < 1e-9
    assert extremes[1] == 1


def test_signs_are_fair_and_independent():
    x = streams.signs(streams.generator(7, "signs"), (N,))
    assert set(np.unique(x)) == {-1.0, 1.0}
    assert abs(x.mean()) < 4.5 / np.sqrt(N)
    for lag in (1, 8, 64):
        assert abs(np.mean(x[:-lag] * x[lag:])) < 4.5 / np.sqrt(N - lag)
