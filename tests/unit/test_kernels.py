"""Attention without a row of logits: what the scale does to it, its exact gradients and its variances."""

import math

import autograd
import autograd.numpy as anp
import numpy as np
import pytest

from sqrtdk.rows import softmax
from sqrtdk.statistics import estimates
from sqrtdk.studies import normalisation
from sqrtdk.variants import kernels
from sqrtdk.variants.kernels import ELU, RELU, Additive, DotProduct, RandomFeatures

RNG = np.random.default_rng(1)
Q, K, V = RNG.standard_normal((3, 4, 6)), RNG.standard_normal((3, 9, 6)), RNG.standard_normal((3, 4, 9))
MAPS = pytest.mark.parametrize("attention", [RELU, ELU], ids=lambda one: one.name)


@MAPS
def test_feature_maps_weigh_by_their_products(attention):
    def feature(x):
        if attention is RELU:
            return max(x, 0.0)
        return x + 1 if x > 0 else math.exp(x)

    p = attention.weights(Q, K, 0.7)
    for b in range(3):
        for i in range(4):
            phi_q = [feature(0.7 * x) for x in Q[b, i]]
            product = [sum(x * feature(y) for x, y in zip(phi_q, key, strict=True)) for key in K[b]]
            np.testing.assert_allclose(p[b, i], np.array(product) / sum(product), rtol=1e-13)


def test_the_scale_has_exactly_no_effect_on_relu_features():
    p = RELU.weights(Q, K, 1.0)
    np.testing.assert_array_equal(RELU.weights(Q, K, 1 / 8), p)
    np.testing.assert_array_equal(RELU.weights(Q, K, 2.0**20), p)
    np.testing.assert_allclose(RELU.weights(Q, K, 1 / math.sqrt(6)), p, rtol=1e-14)
    # Nor on the gradient, since what the scale takes from the features it gives to their sum.
    np.testing.assert_array_equal(RELU.query_gradient(Q, K, 1 / 8, V), RELU.query_gradient(Q, K, 1.0, V))
    # It has on all the others.
    for other in (ELU, DotProduct(), Additive(np.ones(6))):
        assert np.abs(other.weights(Q, K, 1 / 8) - other.weights(Q, K, 1.0)).max() > 0.01


@MAPS
def test_the_query_gradient_of_feature_maps(attention):
    features = {
        "relu": lambda x: anp.maximum(x, 0.0),
        "elu+1": lambda x: anp.where(x > 0, x + 1, anp.exp(anp.minimum(x, 0.0))),
    }
    feature = features[attention.name]

    def loss(q):
        products = anp.matmul(feature(0.6 * q), anp.swapaxes(feature(K), -1, -2))
        return anp.sum(V * products / anp.sum(products, axis=-1, keepdims=True))

    np.testing.assert_allclose(attention.query_gradient(Q, K, 0.6, V), autograd.grad(loss)(Q), atol=1e-12, rtol=1e-10)


def test_the_query_gradient_of_additive_attention():
    additive = Additive(RNG.standard_normal(6))

    def loss(q):
        z = 1.3 * anp.dot(anp.tanh(q[:, :, None, :] + K[:, None, :, :]), additive.v)
        e = anp.exp(z)
        return anp.sum(V * e / anp.sum(e, axis=-1, keepdims=True))

    np.testing.assert_allclose(additive.query_gradient(Q, K, 1.3, V), autograd.grad(loss)(Q), atol=1e-12, rtol=1e-10)


def test_a_query_that_meets_no_key_has_no_weights():
    q, k = np.array([[[-1.0, 2.0], [1.0, -1.0]]]), np.array([[[1.0, -1.0], [2.0, -3.0]]])
    p = RELU.weights(q, k, 1.0)
    np.testing.assert_allclose(p, [[[0, 0], [1 / 3, 2 / 3]]])
    assert np.isfinite(RELU.query_gradient(q, k, 1.0, np.ones((1, 2, 2)))).all()


@pytest.mark.parametrize("scale", [1.0, 0.25])
@pytest.mark.parametrize("size", [0.3, 0.5])
def test_one_random_feature_has_the_relative_variance_of_the_lemma(size, scale):
    rng = np.random.default_rng(2)
    q, k = size * rng.standard_normal((1, 1, 3)), size * rng.standard_normal((1, 1, 3))
    n = 400_000
    # A block for each feature, so that every estimate is of one feature.
    one = RandomFeatures(rng.standard_normal((n, 1, 3)))
    estimate = np.exp(one.logits(np.broadcast_to(q, (n, 1, 3)), np.broadcast_to(k, (n, 1, 3)), scale))[:, 0, 0]
    truth = math.exp(scale * float(q[0, 0] @ k[0, 0]))
    mean, se = estimates.mean(estimate)
    assert abs(mean - truth) < 4.5 * se
    assert se < 0.01 * truth
    predicted = math.expm1(float(kernels.log_relative_second_moment(q, k, scale)[0, 0, 0]))
    square, se = estimates.mean((estimate / truth - 1) ** 2)
    assert abs(square - predicted) < 4.5 * se
    assert se < 0.1 * predicted
    assert predicted == pytest.approx(math.expm1(scale * np.sum((q + k) ** 2)), rel=1e-12)


def test_many_random_features_come_close_to_softmax_and_their_mean_is_taken():
    q, k = 0.4 * Q, 0.4 * K
    exact = DotProduct().weights(q, k, 1.0)
    errors = []
    for m in (16, 256, 4096):
        favor = RandomFeatures(np.random.default_rng(3).standard_normal((m, 6)))
        errors.append(normalisation.total_variation(favor.weights(q, k, 1.0), exact).mean())
    assert errors[0] > 2 * errors[1] > 4 * errors[2]
    assert errors[2] < 0.02
    # The plain product of feature matrices is the same estimate.
    x, y = (np.exp(x @ favor.omega.T - 0.5 * (x * x).sum(-1, keepdims=True)) for x in (q, k))
    np.testing.assert_allclose(np.exp(favor.logits(q, k, 1.0)), x @ y.swapaxes(-1, -2) / m, rtol=1e-12)


def test_random_features_of_large_scores_do_not_overflow():
    favor = RandomFeatures(np.random.default_rng(4).standard_normal((8, 6)))
    p = favor.weights(1e3 * Q, 1e3 * K, 1.0)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=-1), 1, rtol=1e-12)


def test_variance_of_additive_scores():
    assert kernels.additive_score_variance() == pytest.approx(0.520, abs=5e-5)
    assert kernels.additive_score_variance(within_row=True) == pytest.approx(0.284, abs=5e-5)
    rng = np.random.default_rng(5)
    v = rng.standard_normal(3)
    q, k = rng.standard_normal((20_000, 1, 3)), rng.standard_normal((20_000, 2, 3))
    scores = Additive(v).scores(q, k)[:, 0]
    for values, within_row in ((scores[:, 0] ** 2, False), (scores.var(axis=-1, ddof=1), True)):
        mean, se = estimates.mean(values)
        assert abs(mean - v @ v * kernels.additive_score_variance(within_row)) < 4.5 * se
        assert se < 0.02 * mean
    np.testing.assert_allclose(Additive(v).weights(q, k, 2.0)[:, 0], softmax.softmax(2 * scores), rtol=1e-12)
