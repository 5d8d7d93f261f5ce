"""Scale rules and score transforms: names, factors, what they say of themselves, and what they do."""

import dataclasses
import math

import numpy as np
import pytest

from sqrtdk.variants import scalings, sizes
from sqrtdk.variants.normalisers import NORMALISERS
from sqrtdk.variants.notation import parse
from sqrtdk.variants.scalings import MISTAKE, MODEL, RULE, SCALINGS, names
from sqrtdk.variants.transforms import TRANSFORMS
from sqrtdk.words import mathml


def factor(text, d_k, n_keys=16):
    return parse(text).factor(d_k, n_keys)


def test_no_name_is_given_twice():
    assert names() == [rule.name for rule in scalings._RULES]
    # After a | a name has to say what it is.
    assert len({*SCALINGS, *TRANSFORMS, *NORMALISERS}) == len(SCALINGS) + len(TRANSFORMS) + len(NORMALISERS)


@pytest.mark.parametrize("ways", [{}, {"factor": lambda d_k, n_keys: 1.0, "size": "STD"}])
def test_a_rule_that_is_not_one_is_refused_by_name(ways):
    with pytest.raises(TypeError, match="the scale rule 'mine' needs exactly one of factor, size and cosine"):
        scalings.Scaling("mine", "mine", "1", "nobody", **ways)


@pytest.mark.parametrize(
    ("text", "d_k", "n_keys", "expected"),
    [
        ("none", 64, 16, 1.0),
        ("1/sqrt(d_k)", 64, 16, 0.125),
        ("1/d_k", 64, 16, 1 / 64),
        ("8/d_k", 64, 16, 0.125),
        ("learnable(g=3)", 64, 16, 0.375),
        ("ln(n)/d_k", 64, 1024, math.log(1024) / 64),
        ("sqrt(ln(n)/d_k)", 64, 1024, math.sqrt(math.log(1024)) / 8),
        ("ssmax", 64, 1024, 0.43 * math.log(1024) / 8),
        ("yarn(stretch=16)", 64, 16, 1.2772588722239781**2 / 8),  # Peng et al.: 0.1 ln 16 + 1
        ("yarn(stretch=1)", 64, 16, 0.125),
        ("qwen_logn", 64, 2048, 0.125),
        ("qwen_logn", 64, 2048**2, 0.25),
        ("fixed_width(width=256)", 64, 16, 1 / 16),
        ("constant", 64, 16, 1 / 64),  # Granite: 1/d_k at d_k = 64
        ("d_model_for_d_k(heads=8)", 64, 16, 1 / math.sqrt(512)),
        ("heads_for_d_k(heads=16)", 64, 16, 0.25),
        ("d_v_for_d_k(ratio=4)", 64, 16, 1 / 16),
        ("applied_twice", 64, 16, 1 / 64),
        ("inverted", 64, 16, 8.0),
    ],
)
def test_factors(text, d_k, n_keys, expected):
    assert factor(text, d_k, n_keys) == pytest.approx(expected, rel=1e-15)


def test_numbers_that_the_mistakes_share_with_legitimate_rules():
    # What an engineer sees is a number: 1/d_k, the scale applied twice and muP cannot be told apart by it.
    assert factor("applied_twice", 96) == factor("1/d_k", 96)
    assert factor("heads_for_d_k(heads=1)", 96) == factor("none", 96)
    assert factor("fixed_width", 64) == factor("1/sqrt(d_k)", 64)
    # Gemma 2: 224 in place of 256, and 144 on purpose with heads of 128.
    assert factor("fixed_width(width=224)", 256) / factor("1/sqrt(d_k)", 256) == pytest.approx(1.069, abs=5e-4)
    assert factor("fixed_width(width=144)", 128) / factor("1/sqrt(d_k)", 128) == pytest.approx(0.943, abs=5e-4)
    # DeepSeek-V2: values of 128 beside keys of 192.
    assert factor("d_v_for_d_k(ratio=0.6666666666666666)", 192) / factor("1/sqrt(d_k)", 192) == pytest.approx(
        1.2247, abs=1e-4
    )


@pytest.mark.parametrize("name", names())
def test_every_factor_is_a_positive_number_over_the_whole_range(name):
    rule, defaults = SCALINGS[name], {p.name: p.default for p in SCALINGS[name].parameters}
    for d_k in (1, 3, 64, 65536):
        for n_keys in (1, 2, 2**20):
            if number := rule.factor or rule.cosine:
                assert number(d_k, n_keys, **defaults) > 0


@pytest.mark.parametrize("rule", SCALINGS.values(), ids=names())
def test_a_rule_says_what_a_reader_needs(rule):
    assert rule.label
    assert rule.source
    assert mathml.mathml(rule.formula)
    assert rule.kind in (RULE, MODEL, MISTAKE)
    assert bool(rule.remark) or rule.kind != MISTAKE
    assert rule.size is None or isinstance(getattr(sizes, rule.size), sizes.Size)
    assert len({other.label for other in SCALINGS.values()}) == len(SCALINGS)


def test_a_rule_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SCALINGS["none"].name = "other"


@pytest.mark.parametrize("length", [72, 75, 79])
def test_the_initial_multiplier_of_normalised_queries(length):
    # Henry et al. 2020: log2(L² − L).
    expected = {72: 12.32, 75: 12.44, 79: 12.59}[length]
    found = SCALINGS["qk_norm_length"].cosine(64, 16, length=length)
    assert found == pytest.approx(expected, abs=0.005)


class TestTransforms:
    def test_soft_cap(self):
        z = np.array([[-1e4, -50.0, -1e-3, 0.0, 3.0, 1e4]])
        of, slope = TRANSFORMS["soft_cap"].of(z, 50.0), TRANSFORMS["soft_cap"].slope(z, 50.0)
        np.testing.assert_allclose(of, 50 * np.tanh(z / 50), rtol=1e-15)
        assert np.abs(of).max() == 50
        np.testing.assert_allclose(slope, np.cosh(np.minimum(np.abs(z), 1e3) / 50) ** -2, atol=1e-15)

    def test_a_hard_clip_has_gradients_that_are_exactly_zero(self):
        z = np.array([[-11.0, -10.0, 9.0, 10.5]])
        assert TRANSFORMS["hard_clip"].of(z, 10.0).tolist() == [[-10, -10, 9, 10]]
        assert TRANSFORMS["hard_clip"].slope(z, 10.0).tolist() == [[0, 0, 1, 0]]

    def test_qk_clip_makes_the_largest_logit_the_limit_and_leaves_smaller_heads_alone(self):
        rng = np.random.default_rng(1)
        z = np.stack([30 * rng.standard_normal((4, 5)), 0.1 * rng.standard_normal((4, 5))])
        clipped = TRANSFORMS["qk_clip"].of(z, 7.0)
        assert clipped[0].max() == pytest.approx(7.0, rel=1e-15)
        np.testing.assert_array_equal(clipped[1], z[1])

    def test_qk_clip_is_a_clip_of_both_weight_matrices(self):
        # √γ on W_q and on W_k (Kimi Team 2025).
        rng = np.random.default_rng(2)
        x, wq, wk = rng.standard_normal((6, 8)), rng.standard_normal((8, 4)), rng.standard_normal((8, 4))
        scores = (x @ wq) @ (x @ wk).T
        gamma = min(1.0, 3.0 / scores.max())
        ours = TRANSFORMS["qk_clip"].of(scores[None], 3.0)[0]
        np.testing.assert_allclose((x @ (wq * gamma**0.5)) @ (x @ (wk * gamma**0.5)).T, ours, rtol=1e-12)

    @pytest.mark.parametrize("name", TRANSFORMS)
    def test_each_says_what_a_reader_needs(self, name):
        transform = TRANSFORMS[name]
        assert transform.source
        assert mathml.mathml(transform.formula)
        assert len(transform.parameters) == 1
        assert transform.parameters[0].default > 0

    @pytest.mark.parametrize("name", TRANSFORMS)
    def test_the_slope_of_each_is_its_derivative_or_a_factor_that_is_held(self, name):
        transform = TRANSFORMS[name]
        parameter, step = transform.parameters[0].default, 1e-6
        z = parameter * np.random.default_rng(3).standard_normal((2, 4, 5))
        slope = transform.slope(z, parameter)
        derivative = (transform.of(z + step, parameter) - transform.of(z - step, parameter)) / (2 * step)
        if not np.allclose(slope, derivative, atol=1e-6):
            np.testing.assert_allclose(slope * z, transform.of(z, parameter), rtol=1e-12)

    @pytest.mark.parametrize("name", [name for name in TRANSFORMS if TRANSFORMS[name].odd])
    def test_those_that_are_odd_are(self, name):
        of, parameter = TRANSFORMS[name].of, TRANSFORMS[name].parameters[0].default
        z = parameter * np.random.default_rng(4).standard_normal((2, 4, 5))
        np.testing.assert_allclose(of(-z, parameter), -of(z, parameter), rtol=1e-12)
        # Of each logit alone, whatever stands beside it.
        np.testing.assert_allclose(of(z[:, :1, :1], parameter), of(z, parameter)[:, :1, :1], rtol=1e-12)
