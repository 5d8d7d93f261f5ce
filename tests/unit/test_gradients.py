"""Backward pass of attention against its matrix, finite differences, autograd, high precision, and in expectation."""

import autograd
import autograd.numpy as anp
import mpmath
import numpy as np
import pytest

from sqrtdk.rows import gradients, softmax


def blocks(rng, n_blocks, n_queries, n_keys, d_k):
    return rng.standard_normal((n_blocks, n_queries, d_k)), rng.standard_normal((n_blocks, n_keys, d_k))


def shapes(rng, n):
    """Random (lead axes, queries, keys, d_k, d_v), the smallest ones included."""
    yield (), 1, 1, 1, 1
    yield (2,), 3, 1, 4, 2
    yield (), 1, 2, 1, 3
    for _ in range(n):
        lead = tuple(int(x) for x in rng.integers(1, 4, rng.integers(0, 3)))
        yield lead, *(int(x) for x in rng.integers(1, 9, 4))


def arrays(rng, lead, m, n, d_k, d_v):
    return (
        rng.standard_normal((*lead, m, d_k)),
        rng.standard_normal((*lead, n, d_k)),
        rng.standard_normal((*lead, n, d_v)),
        rng.standard_normal((*lead, m, d_v)),
    )


def exact_logit_gradient(logits, upstream):
    """p_j (v_j − Σ p v) with as many digits as 1 − p₁ cancels."""
    runner_up, largest = sorted(logits)[-2:]
    with mpmath.workdps(60 + int(largest - runner_up)):
        e = [mpmath.exp(mpmath.mpf(x) - largest) for x in logits]
        p = [x / mpmath.fsum(e) for x in e]
        mean = mpmath.fsum(x * mpmath.mpf(y) for x, y in zip(p, upstream, strict=True))
        return [float(x * (mpmath.mpf(y) - mean)) for x, y in zip(p, upstream, strict=True)]


def test_equal_upstream_gradients_move_nothing():
    """The weights sum to 1 whatever the logits are."""
    row = softmax.rows(np.random.default_rng(1).standard_normal((5, 7)) * 4)
    np.testing.assert_array_equal(gradients.softmax_backward(row, np.full((5, 7), 3.0)), 0.0)


def test_a_single_key_has_no_gradient():
    row = softmax.rows(np.zeros((2, 3, 1)))
    np.testing.assert_array_equal(gradients.softmax_backward(row, np.ones((2, 3, 1))), 0.0)


@pytest.mark.parametrize("spread", [0.0, 0.5, 5.0, 20.0])
@pytest.mark.parametrize("n", [2, 3, 30])
def test_softmax_backward_is_the_jacobian(n, spread):
    rng = np.random.default_rng(2)
    row = softmax.rows(np.round(rng.standard_normal((20, n)) * spread, 1))
    v, p = rng.standard_normal((20, n)), softmax.weights(row)
    matrix = np.eye(n) * p[:, None, :] - p[:, :, None] * p[:, None, :]
    g = gradients.softmax_backward(row, v)
    np.testing.assert_allclose(g, np.einsum("rij,rj->ri", matrix, v), rtol=1e-12, atol=1e-15)
    # Adding a constant to all logits changes nothing, so the gradient sums to 0.
    assert (np.abs(g.sum(-1)) <= 1e-14 * np.abs(g).sum(-1)).all()


def test_softmax_backward_against_high_precision():
    rng = np.random.default_rng(3)
    for gap in (0.0, 1.0, 40.0, 300.0):
        z = rng.standard_normal(6)
        z[2] = z.max() + gap
        v = rng.standard_normal(6)
        expected = exact_logit_gradient(z, v)
        np.testing.assert_allclose(gradients.softmax_backward(softmax.rows(z), v), expected, rtol=1e-12, atol=0)


def test_naive_backward_is_caught():
    """Negative control: in p (v − Σ p v) the largest key's gradient cancels to a few digits or none."""
    z, v = np.array([40.0, 0.0, -1.0, -2.0]), np.array([0.3, -1.2, 0.7, 0.1])
    p = softmax.softmax(z)
    naive = p * (v - (p * v).sum())
    expected = exact_logit_gradient(z, v)
    assert naive[0] != pytest.approx(expected[0], rel=0.1, abs=0)
    assert gradients.softmax_backward(softmax.rows(z), v)[0] == pytest.approx(expected[0], rel=1e-13, abs=0)


def test_attention_backward_against_finite_differences():
    rng = np.random.default_rng(4)
    for lead, m, n, d_k, d_v in shapes(rng, 6):
        q, k, v, upstream = arrays(rng, lead, m, n, d_k, d_v)
        scale = float(rng.uniform(0.2, 1.5))
        found = gradients.attention_backward(q, k, v, upstream, scale)
        for which, gradient in enumerate(found):
            numeric = np.empty_like(gradient)
            for i in np.ndindex(gradient.shape):
                sides = []
                for step in (1e-6, -1e-6):
                    moved = [q.copy(), k.copy(), v.copy()]
                    moved[which][i] += step
                    sides.append((gradients.attention_forward(*moved, scale) * upstream).sum())
                numeric[i] = (sides[0] - sides[1]) / 2e-6
            np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6 * (1 + np.abs(gradient).max()))


def test_attention_backward_against_autograd():
    def loss(q, k, v, upstream, scale):
        z = scale * anp.matmul(q, anp.swapaxes(k, -1, -2))
        e = anp.exp(z - anp.max(z, axis=-1, keepdims=True))
        return anp.sum(anp.matmul(e / anp.sum(e, axis=-1, keepdims=True), v) * upstream)

    rng = np.random.default_rng(5)
    for shape in shapes(rng, 12):
        q, k, v, upstream = arrays(rng, *shape)
        for scale in (0.1, 1.0, 4.0):
            found = gradients.attention_backward(q, k, v, upstream, scale)
            for which, gradient in enumerate(found):
                expected = autograd.grad(loss, which)(q, k, v, upstream, scale)
                np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-10)


def test_the_scale_belongs_to_the_query_as_well():
    """softmax(c·q·k) is softmax(1·(cq)·k), so ∂L/∂q = c ∂L/∂(cq), and the other two gradients are the same."""
    q, k, v, upstream = arrays(np.random.default_rng(6), (2,), 4, 5, 3, 2)
    d_q, d_k, d_v = gradients.attention_backward(q, k, v, upstream, 0.25)
    e_q, e_k, e_v = gradients.attention_backward(0.25 * q, k, v, upstream, 1.0)
    np.testing.assert_allclose(d_q, 0.25 * e_q, rtol=1e-12)
    np.testing.assert_allclose(d_k, e_k, rtol=1e-12)
    np.testing.assert_allclose(d_v, e_v, rtol=1e-12)


@pytest.mark.parametrize("scale", [0.05, 1.0, 6.0])
def test_norms_are_those_of_the_backward_pass(scale):
    rng = np.random.default_rng(7)
    q, k = blocks(rng, 3, 4, 6, 5)
    row = softmax.rank(q @ k.swapaxes(-1, -2)).soften(scale)
    upstream = rng.standard_normal((2, 3, 4, 6))
    differences = [gradients.from_top(row.top, v) for v in upstream]
    query_norm = np.linalg.norm(q, axis=-1)
    found = gradients.norms(row, differences, query_norm, k, scale)
    few = gradients.norms(row, differences, query_norm, k, scale, n_queries=2)
    for v, (logits, query, key), (_, first_queries, _) in zip(upstream, found, few, strict=True):
        # With v = 1 as the values' matrix, ∂L/∂p is ∂L/∂output itself.
        g_z = gradients.softmax_backward(row, v)
        identity = np.broadcast_to(np.eye(6), (3, 6, 6))
        d_q, _, _ = gradients.attention_backward(q, k, identity, v, scale)
        np.testing.assert_allclose(logits, np.linalg.norm(g_z, axis=-1), rtol=1e-12)
        np.testing.assert_allclose(query, np.linalg.norm(d_q, axis=-1), rtol=1e-10)
        np.testing.assert_allclose(first_queries, query[:, :2], rtol=1e-12)
        for i in range(4):
            one = slice(i, i + 1)
            _, d_k, _ = gradients.attention_backward(q[:, one], k, identity, v[:, one], scale)
            np.testing.assert_allclose(key[:, i], np.linalg.norm(d_k, axis=(-2, -1)), rtol=1e-10)


@pytest.mark.parametrize("scale", [0.1, 1.0, 20.0])
def test_single_precision_keys_lose_little(scale):
    rng = np.random.default_rng(8)
    q, k = (x.astype(np.float32) for x in blocks(rng, 4, 8, 16, 32))
    row = softmax.rank(q @ k.swapaxes(-1, -2)).soften(scale)
    difference = gradients.from_top(row.top, rng.standard_normal((4, 8, 16)))
    ((_, single, _),) = gradients.norms(row, [difference], np.ones((4, 8)), k, scale)
    ((_, double, _),) = gradients.norms(row, [difference], np.ones((4, 8)), k.astype(float), scale)
    # At scale 20 the gradients themselves are far below the smallest float32.
    np.testing.assert_allclose(single, double, rtol=3e-6)
    assert (single > 0).all()
    assert single.dtype == np.float64


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e4])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_nothing_is_nan_and_nothing_warns(n, size):
    rng = np.random.default_rng(9)
    z = np.concatenate([rng.choice([-size, 0.0, size], (30, n)), rng.standard_normal((30, n)) * size])
    row = softmax.rows(z)
    g = gradients.softmax_backward(row, rng.standard_normal(z.shape))
    k = rng.standard_normal((n, 3)).astype(np.float32)
    assert np.isfinite(g).all()
    for norm in gradients.norms(row, [rng.standard_normal(z.shape)], np.ones(60), k, 1.0)[0]:
        assert np.isfinite(norm).all()
        assert (norm >= 0).all()


@pytest.mark.parametrize("spread", [0.3, 2.0, 9.0])
def test_mean_square_over_upstream_gradients_is_the_frobenius_norm(spread):
    rng = np.random.default_rng(10)
    row = softmax.rows(rng.standard_normal(12) * spread)
    square = float(softmax.jacobian_frobenius(row)) ** 2
    # Exactly, summed over unit vectors; and as a mean over i.i.d. N(0, 1), within its standard error.
    many = softmax.rows(np.broadcast_to(np.log(softmax.weights(row)), (12, 12)))
    assert (gradients.softmax_backward(many, np.eye(12)) ** 2).sum() == pytest.approx(square, rel=1e-12)
    n = 20_000
    draws = softmax.rows(np.broadcast_to(np.log(softmax.weights(row)), (n, 12)))
    squares = (gradients.softmax_backward(draws, rng.standard_normal((n, 12))) ** 2).sum(-1)
    assert abs(squares.mean() - square) < 4.5 * squares.std(ddof=1) / np.sqrt(n)


@pytest.mark.parametrize("d_k", [1, 3, 16])
def test_query_gradient_of_gaussian_keys(d_k):
    """E‖g_q‖² = c²(d_k − 1) E‖J‖² + E‖Jz‖²/‖q‖², z the logits: across q the keys are independent of the weights."""
    rng = np.random.default_rng(11)
    n_blocks, scale = 20_000, 0.7
    q, k = blocks(rng, n_blocks, 1, 6, d_k)
    z = scale * (q @ k.swapaxes(-1, -2))
    row = softmax.rows(z)
    differences = [gradients.from_top(row.top, rng.standard_normal(z.shape))]
    query_norm = np.linalg.norm(q, axis=-1)
    ((_, query, _),) = gradients.norms(row, differences, query_norm, k, scale)
    parallel = (gradients.softmax_backward(row, z) ** 2).sum(-1) / query_norm**2
    excess = query**2 - scale**2 * (d_k - 1) * softmax.jacobian_frobenius(row) ** 2 - parallel
    assert abs(excess.mean()) < 4.5 * excess.std(ddof=1) / np.sqrt(n_blocks)
    assert excess.std() > 0
