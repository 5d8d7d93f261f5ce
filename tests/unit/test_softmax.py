"""Saturation measures: closed forms, two other implementations, bounds, and rows that break naive formulas."""

import math

import mpmath
import numpy as np
import pytest
import scipy.special
import scipy.stats

from sqrtdk.rows import softmax

MEASURES = {name: measure.of for name, measure in softmax.MEASURES.items()}
SHARES = ("saturated_share", "vanishing_share", "vanishing_share_relative")
HARD_ROWS = {
    "nearly one-hot": [40.0, 0.0, -1.0, -2.0],
    "one-hot beyond double precision": [400.0, 0.0, -1.0, -2.0],
    "two large and equal": [500.0, 500.0, 0.0, -3.0],
    "two large, nearly equal": [300.0, 300.0 + 1e-9, 0.0, 299.0],
    "huge": [1e4, -1e4, 0.0, 9.99e3],
    "huge and negative": [-1e4, -1e4 + 3, -1e4 - 40, -9.9e3],
    "all equal": [7.0, 7.0, 7.0, 7.0, 7.0],
    "all nearly equal": [1.0, 1.0 + 1e-12, 1.0 - 3e-12, 1.0],
    "runners-up equal": [5.0, 1.0, 1.0, 1.0, 1.0],
    "two keys": [0.3, -0.7],
    "two keys, far apart": [-60.0, 60.0],
    "two equal keys": [2.0, 2.0],
    "many scales": [0.0, -1.0, -10.0, -100.0, -1000.0],
}


def evaluate(logits, name):
    return MEASURES[name](softmax.rows(np.array(logits, float)))


def random_rows(rng, n_rows, n_keys, spread):
    """Rows of which some hold equal and nearly equal logits."""
    z = rng.standard_normal((n_rows, n_keys)) * spread
    z[::5] = np.round(z[::5])
    z[::7, -1] = z[::7, 0] + 1e-9
    return z


def high_precision(logits):
    """Every measure of a row straight from its definition, with 60 digits beyond those that 1 − p₁ cancels."""
    runner_up, largest = sorted(logits)[-2:]
    with mpmath.workdps(60 + int(largest - runner_up)):
        z = [mpmath.mpf(x) for x in logits]
        e = [mpmath.exp(x - max(z)) for x in z]
        p = [x / mpmath.fsum(e) for x in e]
        n = len(p)
        powers = [mpmath.fsum(x**k for x in p) for k in (0, 1, 2, 3)]
        frobenius = mpmath.sqrt(max(mpmath.mpf(0), powers[2] - 2 * powers[3] + powers[2] ** 2))
        entropy = -mpmath.fsum(x * mpmath.log(x) for x in p)
        return {
            "entropy": entropy,
            "normalised_entropy": entropy / mpmath.log(n),
            "max_weight": max(p),
            "participation_ratio": powers[2],
            "effective_keys": 1 / powers[2],
            "jacobian_trace": mpmath.fsum(x * (1 - x) for x in p),
            "jacobian_frobenius": frobenius,
            "jacobian_spectral": largest_eigenvalue(p),
        }


def largest_eigenvalue(p):
    """Bisect the secular equation Σ p/(p − λ) = 0 between the two largest weights."""
    high, low = sorted(p)[:-3:-1]
    if high == low:
        return high
    for _ in range(mpmath.mp.prec):
        middle = (low + high) / 2
        # The sum rises from −inf at the second largest weight to +inf at the largest.
        if mpmath.fsum(x / (x - middle) for x in p) > 0:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def test_the_measures_are_those_of_the_tables():
    assert list(MEASURES) == [
        "entropy",
        "normalised_entropy",
        "max_weight",
        "participation_ratio",
        "effective_keys",
        "saturated_share",
        "jacobian_trace",
        "jacobian_frobenius",
        "jacobian_spectral",
        "vanishing_share",
        "vanishing_share_relative",
    ]


def test_equal_logits_give_equal_weights():
    np.testing.assert_array_equal(softmax.softmax(np.zeros(4)), np.full(4, 0.25))


def test_worked_examples():
    np.testing.assert_allclose(softmax.softmax(np.array([14, 10, 12])), [0.86681, 0.01588, 0.11731], atol=5e-6)
    np.testing.assert_allclose(softmax.softmax(np.array([1.0, 0.5, 0.8])), [0.4123, 0.2501, 0.3376], atol=1e-4)
    assert evaluate([14, 10, 12], "jacobian_frobenius") == pytest.approx(0.213, abs=5e-4)
    assert evaluate([1.0, 0.5, 0.8], "jacobian_frobenius") == pytest.approx(0.467, abs=5e-4)


@pytest.mark.parametrize("n", [2, 3, 16, 1000])
def test_uniform_row(n):
    expected = {
        "entropy": math.log(n),
        "normalised_entropy": 1.0,
        "max_weight": 1 / n,
        "participation_ratio": 1 / n,
        "effective_keys": n,
        "saturated_share": 0.0,
        "jacobian_trace": 1 - 1 / n,
        "jacobian_frobenius": math.sqrt(n - 1) / n,
        "jacobian_spectral": 1 / n,
        "vanishing_share": 0.0,
        "vanishing_share_relative": 0.0,
    }
    for name, value in expected.items():
        assert evaluate(np.full(n, -3.0), name) == pytest.approx(value, rel=1e-13, abs=0), name


@pytest.mark.parametrize("gap", [0.0, 0.4, 5.0, 50.0, 600.0])
def test_two_keys_have_one_direction(gap):
    """J = p(1 − p)·[[1, −1], [−1, 1]], with p(1 − p) = 1/(2 cosh(gap/2))²."""
    product = 1 / (4 * math.cosh(gap / 2) ** 2)
    for name in ("jacobian_trace", "jacobian_frobenius", "jacobian_spectral"):
        assert evaluate([gap, 0.0], name) == pytest.approx(2 * product, rel=1e-13, abs=0), name


def test_one_key():
    row = softmax.rows(np.array([[-7.0], [1e4]]))
    np.testing.assert_array_equal(softmax.weights(row), 1.0)
    zero = ("entropy", "jacobian_trace", "jacobian_frobenius", "jacobian_spectral")
    for name, measure in softmax.MEASURES.items():
        if measure.least_keys > 1:
            with pytest.raises(ValueError, match="single key"):
                measure.of(row)
        else:
            np.testing.assert_array_equal(measure.of(row), 0.0 if name in zero else 1.0)


def test_a_factor_for_each_row_is_that_factor_for_each_row():
    ranked = softmax.rank(np.random.default_rng(1).standard_normal((3, 8)))
    together = ranked.soften(np.array([0.5, 1.0, 7.0]))
    for i, factor in enumerate((0.5, 1.0, 7.0)):
        alone = ranked[i : i + 1].soften(factor)
        assert np.array_equal(softmax.weights(together)[i], softmax.weights(alone)[0])
        assert softmax.entropy(together)[i] == softmax.entropy(alone)[0]
    with pytest.raises(ValueError, match="positive"):
        ranked.soften(np.array([1.0, 0.0, 1.0]))


def test_no_key_and_no_positive_factor_are_refused():
    with pytest.raises(ValueError, match="at least one key"):
        softmax.rows(np.zeros((3, 0)))
    for factor in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="positive"):
            softmax.rank(np.zeros(3)).soften(factor)


def test_logits_are_left_as_they_were():
    z = np.array([3.0, 1.0, 2.0])
    softmax.rows(z)
    np.testing.assert_array_equal(z, [3.0, 1.0, 2.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_everything_is_float64(dtype):
    row = softmax.rows(np.array([[3, 1, 2], [0, 0, 1]], dtype=dtype))
    for name, measure in MEASURES.items():
        assert measure(row).dtype == np.float64, name
        assert measure(row).shape == (2,), name


@pytest.mark.parametrize("spread", [0.0, 0.3, 3.0, 30.0, 1000.0])
@pytest.mark.parametrize("n", [2, 5, 64])
def test_weights_and_entropy_against_scipy(n, spread):
    z = random_rows(np.random.default_rng(1), 100, n, spread)
    p = scipy.special.softmax(z, axis=-1)
    np.testing.assert_allclose(softmax.softmax(z), p, rtol=1e-12, atol=1e-300)
    # SciPy's entropy loses digits in 1 − p₁, ours does not.
    np.testing.assert_allclose(evaluate(z, "entropy"), scipy.stats.entropy(p, axis=-1), rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(evaluate(z, "participation_ratio"), (p**2).sum(-1), rtol=1e-12)


@pytest.mark.parametrize("spread", [0.0, 0.3, 3.0, 30.0])
@pytest.mark.parametrize("n", [2, 5, 64])
def test_jacobian_against_its_matrix(n, spread):
    z = random_rows(np.random.default_rng(2), 60, n, spread)
    p = softmax.softmax(z)
    matrix = np.eye(n) * p[:, None, :] - p[:, :, None] * p[:, None, :]
    # The matrix itself carries rounding errors of 1e-16, whatever its size.
    np.testing.assert_allclose(
        evaluate(z, "jacobian_trace"), np.trace(matrix, axis1=1, axis2=2), rtol=1e-12, atol=1e-15
    )
    np.testing.assert_allclose(
        evaluate(z, "jacobian_frobenius"), np.linalg.norm(matrix, axis=(1, 2)), rtol=1e-12, atol=1e-15
    )
    np.testing.assert_allclose(
        evaluate(z, "jacobian_spectral"), np.linalg.eigvalsh(matrix)[:, -1], rtol=1e-11, atol=2e-16
    )


@pytest.mark.parametrize("name", HARD_ROWS)
def test_hard_rows_against_high_precision(name):
    for measure, expected in high_precision(HARD_ROWS[name]).items():
        value = float(evaluate(HARD_ROWS[name], measure))
        # What is below the smallest double is 0.
        assert value == pytest.approx(float(expected), rel=4e-13, abs=1e-305), measure


def test_random_saturated_rows_against_high_precision():
    rng = np.random.default_rng(3)
    for spread in (1.0, 10.0, 60.0):
        for z in random_rows(rng, 6, 9, spread):
            for measure, expected in high_precision(list(z)).items():
                assert float(evaluate(z, measure)) == pytest.approx(float(expected), rel=1e-12, abs=1e-305), (
                    spread,
                    measure,
                )


def test_naive_frobenius_is_caught_by_the_hard_row():
    """Negative control: P₂ − 2P₃ + P₂² gives 0, the outer-product matrix is off by 40 %, and the truth is 1.03e-34."""
    p = scipy.special.softmax(HARD_ROWS["nearly one-hot"])
    truth = float(high_precision(HARD_ROWS["nearly one-hot"])["jacobian_frobenius"] ** 2)
    assert truth == pytest.approx(1.03e-34, rel=5e-3, abs=0)
    assert (p**2).sum() - 2 * (p**3).sum() + (p**2).sum() ** 2 <= 0
    assert np.linalg.norm(np.diag(p) - np.outer(p, p)) ** 2 != pytest.approx(truth, rel=0.2, abs=0)
    assert evaluate(HARD_ROWS["nearly one-hot"], "jacobian_frobenius") ** 2 == pytest.approx(truth, rel=1e-13, abs=0)


@pytest.mark.parametrize("size", [1e-300, 1e-9, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("n", [1, 2, 3, 50])
def test_nothing_is_nan_or_negative_and_nothing_warns(n, size):
    rng = np.random.default_rng(4)
    z = np.concatenate(
        [
            random_rows(rng, 40, n, size),
            rng.uniform(-size, size, (40, n)),
            rng.choice([-size, 0.0, size], (40, n)),
            np.full((1, n), size),
            np.where(np.arange(n) == n // 2, size, -size)[None],
        ]
    )
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        row = softmax.rows(z)
        for name, measure in softmax.MEASURES.items():
            if n >= measure.least_keys:
                value = measure.of(row)
                assert np.isfinite(value).all(), name
                assert (value >= 0).all(), name
    assert np.abs(softmax.weights(row).sum(-1) - 1).max() < 1e-13


@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("n", [2, 3, 10, 200])
def test_bounds(n, spread):
    z = random_rows(np.random.default_rng(5), 300, n, spread)
    row = softmax.rows(z)
    p = np.sort(softmax.weights(row), axis=-1)
    spectral, rounding = MEASURES["jacobian_spectral"](row), 1e-14
    p1, p2 = p[:, -1], p[:, -2]
    assert (spectral <= p1 * (1 + rounding)).all()
    assert (spectral >= p2 * (1 - rounding)).all()
    assert (spectral <= 0.5 * (1 + rounding)).all()
    assert (spectral >= p1 * row.others * (1 - rounding)).all()
    assert (spectral <= 2 * p1 * row.others * (1 + rounding)).all()
    frobenius, trace = MEASURES["jacobian_frobenius"](row), MEASURES["jacobian_trace"](row)
    assert (spectral <= frobenius * (1 + rounding)).all()
    assert (frobenius <= trace * (1 + rounding)).all()
    assert (MEASURES["entropy"](row) <= math.log(n) * (1 + rounding)).all()
    assert (MEASURES["effective_keys"](row) <= n * (1 + rounding)).all()


@pytest.mark.parametrize("spread", [0.5, 5.0, 50.0])
def test_shifts_and_permutations_change_nothing(spread):
    rng = np.random.default_rng(6)
    z = np.round(rng.standard_normal((50, 12)) * spread, 3)
    for name, measure in MEASURES.items():
        value = measure(softmax.rows(z))
        # The shift rounds the logits themselves, by up to 1e-13.
        np.testing.assert_allclose(measure(softmax.rows(z + 1024.0)), value, rtol=1e-11, err_msg=name)
        np.testing.assert_allclose(measure(softmax.rows(rng.permuted(z, axis=-1))), value, rtol=1e-12, err_msg=name)


def test_rows_do_not_know_their_shape():
    z = np.random.default_rng(7).standard_normal((3, 4, 5, 6)) * 4
    row, flat = softmax.rows(z), softmax.rows(z.reshape(-1, 6))
    for name, measure in MEASURES.items():
        assert measure(row).shape == (3, 4, 5), name
        np.testing.assert_allclose(measure(row).ravel(), measure(flat), rtol=1e-14, err_msg=name)
        np.testing.assert_array_equal(measure(row[:, 1:3]), measure(row)[:, 1:3], err_msg=name)
        np.testing.assert_allclose(measure(softmax.rows(z[0, 0, 0])), measure(row)[0, 0, 0], rtol=1e-14, err_msg=name)


@pytest.mark.parametrize("factor", [1e-3, 0.125, 1.0, 30.0])
def test_ranked_rows_serve_every_factor(factor):
    z = np.random.default_rng(8).standard_normal((40, 9)) * 3
    scaled, direct = softmax.rank(z).soften(factor), softmax.rows(factor * z)
    np.testing.assert_allclose(softmax.weights(scaled), softmax.weights(direct), rtol=1e-12, atol=1e-300)
    for name, measure in MEASURES.items():
        np.testing.assert_allclose(measure(scaled), measure(direct), rtol=1e-11, err_msg=name)


def test_frobenius_has_a_maximum_where_the_trace_only_falls():
    z = np.random.default_rng(9).standard_normal((500, 64))
    spreads = [0.5, 1, 2, 3.4, 8, 32]
    frobenius = [np.mean(evaluate(s * z, "jacobian_frobenius") ** 2) for s in spreads]
    trace = [np.mean(evaluate(s * z, "jacobian_trace")) for s in spreads]
    assert np.argmax(frobenius) == spreads.index(3.4)
    assert (np.diff(trace) < 0).all()


def test_shares_count_rows():
    z = np.zeros((200, 4))
    z[:, 0] = np.linspace(0, 20, 200)
    norms = evaluate(z, "jacobian_frobenius")
    assert (np.diff(norms[50:]) < 0).all()
    np.testing.assert_array_equal(evaluate(z, "saturated_share"), scipy.special.softmax(z, axis=-1)[:, 0] > 0.99)
    np.testing.assert_array_equal(evaluate(z, "vanishing_share"), norms < 1e-3)
    np.testing.assert_array_equal(evaluate(z, "vanishing_share_relative"), norms < 0.01 * math.sqrt(3) / 4)
    # The uniform row of a million keys has a norm of 1e-3: small, but nothing has vanished.
    many = np.zeros((1, 1_100_000))
    assert evaluate(many, "vanishing_share") == 1
    assert evaluate(many, "vanishing_share_relative") == 0
