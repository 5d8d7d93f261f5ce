"""Normalisers: golden values, brute-force projections, automatic differentiation, invariances and limits."""

import itertools
import math

import autograd
import autograd.numpy as anp
import numpy as np
import pytest
from scipy import optimize

from sqrtdk.rows import gradients, softmax
from sqrtdk.statistics import estimates
from sqrtdk.theory import normaliser_averages
from sqrtdk.variants import normalisers, notation
from sqrtdk.variants.normalisers import (
    NORMALISERS,
    Entmax15,
    PostScale,
    Sigmoid,
    Sink,
    Softmax,
    Softmax1,
    Sparsemax,
    TopK,
    Window,
)
from sqrtdk.words import mathml

ALL = [Softmax(), Softmax1(), Sink(b=1.5), Sink(b=-700), Sparsemax(), Entmax15()]
ALL += [Sigmoid(), Sigmoid(a=0, b=0.3), TopK(k=3), TopK(k=100), Window(width=4), PostScale(a=3)]
SUM_TO_ONE = [Softmax(), Sparsemax(), Entmax15(), TopK(k=3), Window(width=4)]
NAMES = {"argvalues": ALL, "ids": [one.spelling for one in ALL]}
every = pytest.mark.parametrize("normaliser", **NAMES)
REGISTERED = ALL + [kind() for kind in NORMALISERS.values() if kind not in map(type, ALL)]
every_one = pytest.mark.parametrize("normaliser", REGISTERED, ids=[one.spelling for one in REGISTERED])
"""Whoever adds it: what needs no second implementation."""
to_one = pytest.mark.parametrize("normaliser", SUM_TO_ONE, ids=[one.spelling for one in SUM_TO_ONE])
Z = np.random.default_rng(1).standard_normal((40, 7)) * np.array([0.1, 0.5, 1.0, 2.0, 5.0])[np.arange(40) % 5][:, None]


def threshold(z, power):
    """Return τ with Σ max(z − τ, 0)^power = 1, by a root finder."""
    return optimize.brentq(lambda t: np.sum(np.maximum(z - t, 0) ** power) - 1, z.max() - 1, z.max(), xtol=1e-15)


def second(normaliser, support):
    """Return the weights of one row as a second implementation in autograd's NumPy; `support` is held fixed."""
    inside = support.astype(float)

    def plain(z):
        e = anp.exp(z) * inside
        return e / anp.sum(e)

    def with_sink(z):
        return anp.exp(z) / (math.exp(normaliser.sink()) + anp.sum(anp.exp(z)))

    def sparse(z):
        return inside * (z - (anp.sum(inside * z) - 1) / inside.sum())

    def entmax(z):
        # The root τ of Σ (z/2 − τ)² = 1 over the support.
        x = z / 2
        mean = anp.sum(inside * x) / inside.sum()
        square = anp.sum(inside * (x - mean) ** 2)
        return inside * (x - mean + anp.sqrt((1 - square) / inside.sum())) ** 2

    def sigmoid(z):
        return 1 / (1 + anp.exp(-z - normaliser.b + normaliser.a * math.log(len(z))))

    return {
        "softmax1": with_sink,
        "sink": with_sink,
        "sparsemax": sparse,
        "entmax15": entmax,
        "sigmoid": sigmoid,
        "post_scale": lambda z: normaliser.a * plain(z),
    }.get(normaliser.name, plain)


def support_of(normaliser, z):
    """Return which keys of a row can have a weight, found without the normaliser."""
    order = np.argsort(np.argsort(-z))
    return {
        "sparsemax": lambda: z > threshold(z, 1),
        "entmax15": lambda: z / 2 > threshold(z / 2, 2),
        "top_k": lambda: order < normaliser.k,
        "window": lambda: np.arange(len(z)) < normaliser.width,
    }.get(normaliser.name, lambda: np.ones(len(z), bool))()


class TestGolden:
    def test_softmax1_of_one_to_five(self):
        p = Softmax1().weights(np.arange(1.0, 6.0))
        np.testing.assert_allclose(p, [0.0116, 0.0315, 0.0858, 0.2331, 0.6337], atol=5e-5)
        assert p.sum() == pytest.approx(0.9957, abs=5e-5)
        assert p.sum() + Softmax1().null_mass(np.arange(1.0, 6.0)) == pytest.approx(1, abs=1e-15)

    def test_exp_of_x_minus_one_is_softmax_itself(self):
        z = np.arange(1.0, 6.0)
        shifted = np.exp(z - 1) / np.exp(z - 1).sum()
        np.testing.assert_allclose(shifted, Softmax().weights(z), atol=1e-15)
        assert np.abs(Softmax1().weights(z) - shifted).max() > 0.002

    def test_sparsemax_by_hand(self):
        np.testing.assert_allclose(Sparsemax().weights(np.array([0.5, 0.3, -2.0])), [0.6, 0.4, 0.0], atol=1e-15)

    def test_entmax_of_two_keys_by_hand(self):
        # With x = z/2 and gap g, √p₁ − √p₂ = g/2 and p₁ + p₂ = 1.
        for gap in (0.0, 0.7, 1.9):
            p = Entmax15().weights(np.array([gap, 0.0]))
            assert math.sqrt(p[0]) - math.sqrt(p[1]) == pytest.approx(gap / 2, abs=1e-14)
            assert p.sum() == pytest.approx(1, abs=1e-14)

    def test_sigmoid_of_equal_logits_sums_to_about_one(self):
        assert Sigmoid().weights(np.zeros(64)).sum() == pytest.approx(64 / 65, rel=1e-14)
        assert Sigmoid(a=0).weights(np.zeros(64)).sum() == pytest.approx(32, rel=1e-14)


class TestProjections:
    def test_sparsemax_is_the_nearest_point_of_the_simplex(self):
        for z in Z[:12, :5]:
            best = min(self.candidates(z), key=lambda p: np.sum((p - z) ** 2))
            np.testing.assert_allclose(Sparsemax().weights(z), best, atol=1e-12)

    @staticmethod
    def candidates(z):
        """Yield the minimiser over each face of the simplex that lies in it, every support tried."""
        n = len(z)
        for size in range(1, n + 1):
            for chosen in itertools.combinations(range(n), size):
                p = np.zeros(n)
                p[list(chosen)] = z[list(chosen)] - (z[list(chosen)].sum() - 1) / size
                if (p >= 0).all():
                    yield p

    def test_entmax_minimises_its_objective(self):
        # The maximiser of p·z + H(p), H the Tsallis entropy of α = 1.5; p = softmax(y) covers the inside.
        def loss(y, z):
            p = softmax.softmax(y)
            return -(p @ z) + np.sum(p**1.5 - p) / (1.5 * 0.5)

        for z in (0.7 * np.array([0.3, -0.2, 0.5, 0.0]), np.array([1.0, 0.4, -0.3])):
            found = optimize.minimize(loss, np.zeros(len(z)), args=(z,), method="Nelder-Mead", options=dict(
                xatol=1e-10, fatol=1e-16, maxiter=20_000, maxfev=20_000))  # fmt: skip
            np.testing.assert_allclose(Entmax15().weights(z), softmax.softmax(found.x), atol=1e-6)

    @pytest.mark.parametrize(("normaliser", "half", "power"), [(Sparsemax(), 1, 1), (Entmax15(), 0.5, 2)])
    def test_thresholds_agree_with_a_root_finder(self, normaliser, half, power):
        for z in Z:
            tau = threshold(half * z, power)
            np.testing.assert_allclose(normaliser.weights(z), np.maximum(half * z - tau, 0) ** power, atol=1e-12)

    @pytest.mark.parametrize(("normaliser", "gap"), [(Sparsemax(), 1.0), (Entmax15(), 2.0)])
    def test_one_hot_exactly_from_its_gap_on(self, normaliser, gap):
        for below, count in ((gap, 1), (gap + 1e-9, 1), (gap - 1e-6, 4)):
            p = normaliser.weights(np.array([-below, 0.0, -below, -below]))
            assert np.count_nonzero(p) == count
        assert normaliser.weights(np.array([-gap, 0.0]))[1] == 1.0

    def test_entmax_lies_between_softmax_and_sparsemax(self):
        supports = [np.count_nonzero(one.weights(Z), axis=-1) for one in (Sparsemax(), Entmax15(), Softmax())]
        assert (supports[0] <= supports[1]).all()
        assert (supports[1] <= supports[2]).all()
        sizes = [one.weights(Z).max(axis=-1) for one in (Softmax(), Entmax15(), Sparsemax())]
        assert (sizes[0] < sizes[1] + 1e-12).all()
        assert (sizes[1] < sizes[2] + 1e-12).all()


class TestBackward:
    @every
    def test_weights_agree_with_the_second_implementation(self, normaliser):
        for z in Z:
            expected = second(normaliser, support_of(normaliser, z))(z)
            np.testing.assert_allclose(normaliser.weights(z), expected, atol=1e-12)

    @every
    def test_backward_agrees_with_autograd(self, normaliser):
        v = np.random.default_rng(2).standard_normal(Z.shape)
        g = normaliser.backward(Z, normaliser.weights(Z), v)
        for z, upstream, found in zip(Z, v, g, strict=True):
            function = second(normaliser, support_of(normaliser, z))
            expected = autograd.grad(lambda x, u=upstream, f=function: anp.sum(u * f(x)))(z)
            np.testing.assert_allclose(found, expected, atol=1e-10, rtol=1e-10)

    @every_one
    def test_backward_agrees_with_finite_differences(self, normaliser):
        rng, step = np.random.default_rng(3), 1e-6
        for z in Z[:15]:
            v, along = rng.standard_normal((2, len(z)))
            slope = v @ (normaliser.weights(z + step * along) - normaliser.weights(z - step * along)) / (2 * step)
            assert normaliser.backward(z, normaliser.weights(z), v) @ along == pytest.approx(slope, abs=2e-8)

    @every_one
    def test_norm_is_that_of_the_jacobian(self, normaliser):
        for z in Z:
            p = normaliser.weights(z)
            jacobian = normaliser.backward(np.tile(z, (7, 1)), np.tile(p, (7, 1)), np.eye(7))
            np.testing.assert_allclose(jacobian, jacobian.T, atol=1e-15)
            norm = np.linalg.norm(jacobian)
            np.testing.assert_allclose(normaliser.jacobian_norm(z, p), norm, rtol=1e-12, atol=1e-300)

    def test_softmax_is_as_exact_as_its_own_module(self):
        z = np.concatenate([Z, 60 * Z])
        rows, p = softmax.rows(z), Softmax().weights(z)
        v = np.random.default_rng(4).standard_normal(z.shape)
        np.testing.assert_allclose(Softmax().jacobian_norm(z, p), softmax.jacobian_frobenius(rows), rtol=1e-12)
        # Relative to the size of the row's gradient: single entries may cancel in both.
        expected = gradients.softmax_backward(rows, v)
        size = np.abs(expected).max(axis=-1, keepdims=True)
        np.testing.assert_allclose(Softmax().backward(z, p, v) / size, expected / size, atol=1e-13)
        assert (size < 1e-100).any()

    def test_squared_norm_of_sparsemax_is_its_support_less_one(self):
        p = Sparsemax().weights(Z)
        support = np.count_nonzero(p, axis=-1)
        np.testing.assert_allclose(Sparsemax().jacobian_norm(Z, p) ** 2, support - 1, atol=1e-13)
        one_hot = support == 1
        assert 0 < one_hot.sum() < len(Z)
        assert (Sparsemax().backward(Z, p, np.cos(Z))[one_hot] == 0).all()

    def test_gradient_of_a_nearly_one_hot_row_with_a_sink_does_not_cancel(self):
        z = np.array([40.0, 0.0])
        p, v = Sink(b=5).weights(z), np.array([1.0, 0.25])
        # To first order in e^-40: p₁ = 1 − e^-40 − e^-35 and p₂ = e^-40.
        expected = [math.exp(-40) * 0.75 + math.exp(-35), -0.75 * math.exp(-40)]
        np.testing.assert_allclose(Sink(b=5).backward(z, p, v), expected, rtol=1e-12)

    def test_a_constant_behind_softmax_multiplies_weights_and_jacobian(self):
        a, v = PostScale(a=3), np.random.default_rng(5).standard_normal(Z.shape)
        p, q = a.weights(Z), Softmax().weights(Z)
        np.testing.assert_allclose(p, 3 * q, rtol=1e-15)
        np.testing.assert_allclose(a.backward(Z, p, v), 3 * Softmax().backward(Z, q, v), rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(a.jacobian_norm(Z, p), 3 * Softmax().jacobian_norm(Z, q), rtol=1e-12)


class TestInvariances:
    @every
    def test_shift(self, normaliser):
        moved = np.abs(normaliser.weights(Z + 2.5) - normaliser.weights(Z)).max()
        if isinstance(normaliser, Softmax1 | Sink | Sigmoid) and normaliser != Sink(b=-700):
            assert moved > 0.01
        else:
            assert moved < 1e-13

    @to_one
    def test_rows_sum_to_one(self, normaliser):
        np.testing.assert_allclose(normaliser.weights(60 * Z).sum(axis=-1), 1, rtol=1e-14)
        assert normaliser.null_mass(Z) is None

    def test_order_of_the_keys_does_not_matter_but_to_a_window(self):
        order = np.random.default_rng(6).permutation(7)
        for normaliser in ALL:
            same = np.allclose(normaliser.weights(Z[:, order]), normaliser.weights(Z)[:, order], atol=1e-15)
            assert same == (normaliser.name != "window"), normaliser

    def test_a_sink_far_below_is_softmax_and_softmax1_is_a_sink_of_zero(self):
        np.testing.assert_array_equal(Sink(b=-700).weights(Z), Softmax().weights(Z))
        np.testing.assert_array_equal(Sink(b=0).weights(Z), Softmax1().weights(Z))
        assert np.abs(Sink(b=-3).weights(Z) - Softmax().weights(Z)).max() < np.exp(-3)
        # A sink b is softmax1 of logits that are lower by b.
        np.testing.assert_allclose(Sink(b=2).weights(Z), Softmax1().weights(Z - 2), rtol=1e-13)

    def test_a_sink_takes_the_same_share_of_every_key(self):
        p = Sink(b=1).weights(Z)
        total = p.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(p / total, Softmax().weights(Z), rtol=1e-13)
        np.testing.assert_allclose(Sink(b=1).null_mass(Z) + total[:, 0], 1, rtol=1e-14)

    def test_all_keys_kept_is_softmax_and_one_key_is_one_hot(self):
        for normaliser in (TopK(k=7), TopK(k=100), Window(width=7), Window(width=100)):
            np.testing.assert_allclose(normaliser.weights(Z), Softmax().weights(Z), rtol=1e-14)
        assert (np.sort(TopK(k=1).weights(Z), axis=-1) == [0, 0, 0, 0, 0, 0, 1]).all()
        assert (Window(width=4).weights(Z)[:, 4:] == 0).all()

    def test_of_ties_the_first_stay(self):
        np.testing.assert_array_equal(TopK(k=2).weights(np.array([1.0, 3, 1, 1, 0]))[2:], 0)
        assert TopK(k=2).weights(np.zeros(5)).tolist() == [0.5, 0.5, 0, 0, 0]


@pytest.mark.parametrize("n", [1, 2, 5])
@every_one
def test_extreme_logits_ties_and_single_keys(normaliser, n):
    rng = np.random.default_rng(7)
    z = np.concatenate([rng.choice([-1e4, 0.0, 1e4], (40, n)), 1e4 * rng.standard_normal((40, n)), np.zeros((1, n))])
    p = normaliser.weights(z)
    g = normaliser.backward(z, p, rng.standard_normal(z.shape))
    norm = normaliser.jacobian_norm(z, p)
    assert p.shape == g.shape == z.shape
    for x in (p, g, norm):
        assert np.isfinite(x).all()
    assert (p >= 0).all()
    assert (norm >= 0).all()
    if normaliser in SUM_TO_ONE:
        np.testing.assert_allclose(p.sum(axis=-1), 1, rtol=1e-14)
        if n == 1:
            assert (p == 1).all()
            assert (norm == 0).all()
            assert (g == 0).all()
    if normaliser.null_mass(z) is not None:
        np.testing.assert_allclose(p.sum(axis=-1) + normaliser.null_mass(z), 1, rtol=1e-14)


class TestExactLaws:
    """Closed forms of averages over Gaussian logits against Monte Carlo, in standard errors."""

    @pytest.mark.parametrize("spread", [0, 0.5, 1, 3, 8])
    @pytest.mark.parametrize("n", [1, 2, 3, 64])
    @every
    def test_agree_with_simulation(self, normaliser, n, spread):
        from sqrtdk.studies import normalisation

        z = spread * np.random.default_rng([8, n]).standard_normal((4000, n))
        found, exact = normalisation.measures(normaliser, z), normaliser.exact(n, spread)
        assert "jacobian_frobenius" in exact or normaliser.name in ("sparsemax", "entmax15", "top_k")
        for name, value in exact.items():
            if name == "jacobian_frobenius":
                estimate, se = estimates.rms(found[name] ** 2)
            else:
                estimate, se = estimates.mean(found[name])
            # A share of which no row was seen has no measured error.
            if name in ("one_hot_share", "zero_gradient_mass"):
                se = math.sqrt(max(value * (1 - value), 0) / len(z))
            assert abs(estimate - value) <= 4.5 * se + 1e-9 * max(value, 1e-3), name

    def test_annealed_null_mass_holds_for_small_spreads_alone(self):
        exact = normaliser_averages.sink(64, 1, 0.0)["null_mass"]
        assert exact == pytest.approx(0.0096, abs=5e-5)
        assert normaliser_averages.annealed_null_mass(64, 1) == pytest.approx(0.0094, abs=5e-5)
        assert normaliser_averages.annealed_null_mass(64, 0.1) == pytest.approx(
            normaliser_averages.sink(64, 0.1, 0.0)["null_mass"], rel=3e-4
        )
        # At s = 8 both are nothing, but by nine powers of ten not the same nothing.
        assert normaliser_averages.sink(64, 8, 0.0)["null_mass"] == pytest.approx(2.0e-7, rel=0.02)
        assert normaliser_averages.annealed_null_mass(64, 8) < 1e-15

    def test_small_spreads_join_equal_logits(self):
        for b in (-3.0, 0.0, 4.0):
            still, almost = normaliser_averages.sink(5, 0, b), normaliser_averages.sink(5, 1e-4, b)
            assert almost == pytest.approx(still, rel=1e-6)

    def test_entmax_is_one_hot_as_often_as_sparsemax_at_half_the_spread(self):
        assert Entmax15().exact(64, 2)["one_hot_share"] == Sparsemax().exact(64, 1)["one_hot_share"]


@pytest.mark.parametrize(("spread", "share", "support"), [(1, 0.06, 3.25), (8, 0.74, 1.29)])
def test_sparsemax_of_64_random_logits(spread, share, support):
    z = spread * np.random.default_rng([9, spread]).standard_normal((20_000, 64))
    size = np.count_nonzero(Sparsemax().weights(z), axis=-1)
    mean, se = estimates.mean(size.astype(float))
    assert abs(mean - support) < 4 * se + 0.015
    one_hot, se = estimates.mean((size == 1).astype(float))
    assert abs(one_hot - share) < 4 * se + 0.005


class TestRegistry:
    def test_every_name_has_its_class_and_every_default_works(self):
        assert list(normalisers.NORMALISERS)[0] == "softmax"
        for name, kind in normalisers.NORMALISERS.items():
            assert kind.name == name
            for parameter in kind.parameters():
                assert parameter.read(parameter.default) == parameter.default
            assert kind().weights(Z).shape == Z.shape
            assert kind().spelling.partition("(")[0] == name
            mathml.mathml(kind.formula)
            assert kind.source

    def test_spelling_names_every_parameter_and_can_be_read_again(self):
        found = [one.spelling for one in (Softmax(), TopK(k=3), Sink(b=-1.5), Sigmoid(b=2))]
        assert found == ["softmax", "top_k(k=3)", "sink(b=-1.5)", "sigmoid(a=1, b=2)"]
        for normaliser in ALL:
            assert notation.parse(f"none | {normaliser.spelling}").normaliser == normaliser

    @pytest.mark.parametrize(("kind", "value"), [(TopK, 0), (TopK, 1.5), (Window, -1), (PostScale, 0)])
    def test_parameters_outside_their_domain_are_not_read(self, kind, value):
        assert kind.parameters()[0].read(value) is None

    def test_two_of_one_name_are_refused(self):
        with pytest.raises(ValueError, match="two normalisers are called softmax"):
            normalisers.register(Softmax)
