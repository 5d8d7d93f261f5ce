"""Initial weights and normalisations: their variances, exact values, and what is measured of them."""

import math

import numpy as np
import pytest

from sqrtdk.sampling import streams
from sqrtdk.studies import initialisation
from sqrtdk.studies.initialisation import (
    BASE,
    INITIALISATIONS,
    LAYERS,
    LECUN,
    NORMALISED,
    WIDE,
    Inputs,
    Layer,
    LayerWidths,
)
from sqrtdk.words import mathml

BY_NAME = {(layer.group, layer.name): layer for layer in LAYERS}
GPT = {768: 0.09437, 1600: 0.4096, 4096: 2.684, 12288: 24.16}


def exact(group: str, name: str, shape: LayerWidths = BASE, quantity: str = "logit_variance") -> float:
    return BY_NAME[group, name].exact(shape)[quantity]


# ---- the laws of the weights -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", INITIALISATIONS.values(), ids=INITIALISATIONS.get)
def test_weights_have_the_mean_variance_and_law_that_are_claimed(one):
    shape = LayerWidths(512, 8)
    for weight, variance in zip(one.draw(streams.generator(1, one.name), shape), one.variances(shape), strict=True):
        assert weight.shape == (64, 512)
        assert abs(weight.mean()) < 4.5 * math.sqrt(variance / weight.size)
        fourth = 9 / 5 if one.uniform else 3
        assert weight.var() == pytest.approx(variance, abs=4.5 * variance * math.sqrt((fourth - 1) / weight.size))
        bound = math.sqrt(3 * variance)
        assert (np.abs(weight).max() > 1.5 * bound) != one.uniform
        assert not one.uniform or 0.999 * bound < np.abs(weight).max() <= bound * (1 + 1e-6)


def test_formulas_of_libraries_that_spell_them_otherwise():
    shape = LayerWidths(768, 12)
    # kaiming_uniform with a = √5: bound = gain·√(3/fan_in) with gain² = 2/(1 + a²), which is 1/√fan_in.
    bound = math.sqrt(2 / (1 + 5)) * math.sqrt(3 / 768)
    assert bound == pytest.approx(1 / math.sqrt(768))
    assert INITIALISATIONS["linear_default"].query(shape) == pytest.approx(bound**2 / 3)
    # xavier_uniform on (3E, E): bound = √(6/(fan_in + fan_out)).
    assert INITIALISATIONS["xavier_fused"].query(shape) == pytest.approx(math.sqrt(6 / (768 + 3 * 768)) ** 2 / 3)
    # T5: std (d_model·d_kv)^−½ and d_model^−½.
    assert INITIALISATIONS["t5"].variances(shape) == pytest.approx((1 / (768 * 64), 1 / 768))


# ---- exact values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "variance"),
    [
        ("lecun_normal", 1),
        ("xavier_uniform", 1),
        ("xavier_normal", 1),
        ("xavier_per_head", (2 * 512 / 576) ** 2),
        ("xavier_fused", 1 / 4),
        ("linear_default", 1 / 9),
        ("kaiming_normal", 4),
        ("t5", 1),
        ("xavier_gain_2", 16),
    ],
)
def test_logit_variances_of_initial_weights(name, variance):
    assert exact("weights", name) == pytest.approx(variance, rel=1e-12)


def test_one_ninth_and_one_quarter_do_not_depend_on_the_width():
    for shape in (LayerWidths(64, 1), LayerWidths(768, 12), LayerWidths(12288, 96)):
        assert exact("weights", "linear_default", shape) == pytest.approx(1 / 9, rel=1e-12)
        assert exact("weights", "xavier_fused", shape) == pytest.approx(1 / 4, rel=1e-12)


def test_a_fixed_size_of_weights_is_right_at_one_width_only():
    layer = BY_NAME["weights", "normal_0.02"]
    found = {shape.d_model: layer.exact(shape)["logit_variance"] for shape in layer.shapes}
    assert found == pytest.approx(GPT, rel=1e-3)


@pytest.mark.parametrize("shape", [BASE, WIDE])
def test_logit_variances_of_normalised_heads(shape):
    d = shape.d_k
    expected = dict(plain=1, plain_unscaled=d, rmsnorm=1, rmsnorm_unscaled=d, layernorm=d / (d - 1), l2_1=1 / d)
    expected |= dict(l2_10=100 / d, l2_sqrt=1, l2_twice=1 / d**2, l2_learned=math.log2(128**2 - 128) ** 2 / d)
    assert {name: exact("heads", name, shape) for name in expected} == pytest.approx(expected, rel=1e-12)


def test_inputs_with_a_common_mean():
    assert exact("inputs", "common_mean_x") == 10
    assert exact("inputs", "common_mean_x", quantity="query_variance") == 10
    assert exact("inputs", "variance_4_x") == 16
    # cos θ ≈ μ²/(1 + μ²) for many components
    assert exact("inputs", "rmsnorm_common_mean_x") == pytest.approx(0.1, rel=0.01)


@pytest.mark.parametrize(("mean", "width"), [(3.0, 512), (0.5, 8), (1e-6, 8), (3.0, 1)])
def test_mean_direction_of_a_shifted_normal_vector(mean, width):
    x = mean + np.random.default_rng(4).standard_normal((400_000 // width, width))
    direction = x.sum(axis=1) / np.sqrt(width) / np.sqrt((x**2).sum(axis=1))
    se = direction.std() / len(direction) ** 0.5
    assert abs(math.sqrt(initialisation._direction_square(mean, width)) - direction.mean()) < 4.5 * se + 1e-9


def test_given_inputs_the_variance_needs_only_the_variance_of_the_weights():
    """Sum over all weights of the fourth-order expectation, for weights that are signs and tokens that are anything."""
    rng = np.random.default_rng(3)
    x_q, x_k = rng.standard_normal((1, 2)), rng.standard_normal((3, 2))
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T.reshape(-1, 2, 2)
    total = 0.0
    for w_q in signs:
        logits = (x_q @ w_q.T) @ (signs @ x_k.T)  # every W_k at once
        total += np.var(logits, axis=-1, ddof=1).mean()
    pairs = x_k @ x_k.T
    spread = np.trace(pairs) / 3 - (pairs.sum() - np.trace(pairs)) / 6
    assert total / len(signs) == pytest.approx(2 * (x_q**2).sum() * spread, rel=1e-12)


# ---- what is measured ------------------------------------------------------------------------------------------------


def test_inputs_are_normalised_as_they_say():
    x = Inputs(initialisation.layer_normalise, mean=3.0).draw(streams.generator(1, "x"), 256)
    assert x.shape == (2, initialisation.N_TOKENS, 256)
    assert np.abs(x.mean(axis=-1)).max() < 1e-6
    assert np.vecdot(x, x) == pytest.approx(256, rel=1e-5)
    y = initialisation.rms_normalise(np.array([[3.0, 4.0]]))
    assert (y**2).sum() == pytest.approx(2)
    assert y.mean() != 0
    assert initialisation.l2_normalise(np.array([[3.0, 4.0]])) == pytest.approx(np.array([[0.6, 0.8]]))


@pytest.mark.slow
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: f"{layer.group}-{layer.name}")
def test_measured_variances_agree_with_the_exact_ones(layer):
    shape = layer.shapes[0]
    if shape.d_model > 1000:
        shape = LayerWidths(640, 10)
    rows = {row["quantity"]: row for row in initialisation.simulate(layer, shape, 32, 7)}
    assert tuple(rows) == initialisation.QUANTITIES
    for row in rows.values():
        # With 32 draws Student's t is that far out once in 10⁴ times.
        assert abs(row["estimate"] - row["exact"]) < 4.5 * row["se"] + 1e-6 * row["exact"], row
    assert rows["logit_variance"]["se"] < 0.011 * rows["logit_variance"]["estimate"]
    assert rows["logit_std"]["estimate"] ** 2 == pytest.approx(rows["logit_variance"]["estimate"])


def test_a_wrong_variance_would_be_seen():
    row = {row["quantity"]: row for row in initialisation.simulate(LAYERS[0], BASE, 32, 7)}["logit_variance"]
    assert abs(row["estimate"] - 1.05) > 4.5 * row["se"]
    # Not the variance of one head's own Xavier, nor that of inputs left as they are.
    assert abs(row["estimate"] - exact("weights", "xavier_per_head")) > 100 * row["se"]


def test_intervals_cover_the_exact_value():
    layer = BY_NAME["weights", "linear_default"]
    z = []
    for seed in range(60):
        row = {r["quantity"]: r for r in initialisation.simulate(layer, LayerWidths(64, 2), 24, seed)}["logit_variance"]
        z.append((row["estimate"] - row["exact"]) / row["se"])
    # χ² of 60 values of Student's t with 23 degrees of freedom, 4 standard errors
    assert 0.55 < np.mean(np.square(z)) < 1.9
    assert abs(np.mean(z)) < 4 * 1.05 / math.sqrt(60)


def test_normalised_heads_do_not_see_the_size_of_weights_and_inputs():
    big = Layer("heads", "x", "x", "", INITIALISATIONS["kaiming_normal"], Inputs(sd=4.0), **initialisation._RMS)
    rows = {row["quantity"]: row for row in initialisation.simulate(big, BASE, 32, 1)}
    assert rows["query_variance"]["estimate"] == pytest.approx(1, rel=1e-12)
    assert abs(rows["logit_variance"]["estimate"] - 1) < 4.5 * rows["logit_variance"]["se"]


def test_numbers_belong_to_the_layer_and_the_seed():
    one = initialisation.simulate(LAYERS[0], LayerWidths(64, 2), 4, 1)
    assert one == initialisation.simulate(LAYERS[0], LayerWidths(64, 2), 4, 1)
    assert one[0]["estimate"] != initialisation.simulate(LAYERS[0], LayerWidths(64, 2), 4, 2)[0]["estimate"]
    assert (LAYERS[0].weights, LAYERS[0].inputs) == (LECUN, NORMALISED)


def test_names_are_told_apart_and_formulas_can_be_set():

    assert len({(layer.group, layer.name) for layer in LAYERS}) == len(LAYERS)
    assert len({(layer.group, layer.label) for layer in LAYERS}) == len(LAYERS)
    for one in INITIALISATIONS.values():
        assert "<math" in mathml.mathml(one.formula)
