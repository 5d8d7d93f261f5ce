"""The backward pass of the small models against autograd and finite differences, and what their pieces must keep."""

import numpy as np
import pytest
import training_oracle as oracle

from sqrtdk.training import model, rules, runs, tasks
from sqrtdk.training.model import Shape

RULES = ("none", "1/sqrt(d_k)", "1/d_k", "learnable", "qk_norm", "qk_rmsnorm", "row_mean_abs", "row_max_abs")
RULES += ("post_softmax", "d_v_for_d_k(ratio=0.5)")


def random_case(seed, name):
    """A random small shape, its rule, parameters without zeros, inputs and targets."""
    rng = np.random.default_rng(seed)
    heads, layers = (int(x) for x in rng.integers(1, 4, 2))
    memory, causal = (int(rng.integers(2, 5)), False) if rng.random() < 0.5 else (0, bool(rng.random() < 0.7))
    length = memory + int(rng.integers(2, 6))
    settings = dict(d_model=heads * int(rng.integers(4, 7)), layers=layers, heads=heads, mlp=5 * (rng.random() < 0.5))
    settings |= dict(layer_norm=bool(rng.random() < 0.7), memory=memory, causal=causal)
    shape = Shape(int(rng.integers(3, 7)), int(rng.integers(2, 6)), int(rng.integers(1, 6)), **settings)
    shape = Shape(**{**vars(shape), "asked": int(rng.integers(0, length - memory))})
    rule = rules.build(name, shape.d_k, length)
    p = model.initial(shape, rule, rng)
    p = {key: value + 0.3 * rng.standard_normal(value.shape) for key, value in p.items()}
    inputs = rng.random((3, length, shape.inputs)) ** 2
    targets = rng.integers(shape.outputs, size=(3, length - memory - shape.asked))
    return shape, rule, p, inputs, targets


def flat(gradients, names):
    return np.concatenate([np.ravel(gradients[name]) for name in names])


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("seed", range(6))
def test_gradients_are_those_of_autograd(name, seed):
    shape, rule, p, inputs, targets = random_case(seed, name)
    loss, _, gradients, _ = model.loss_and_gradients(shape, rule, {k: v[None] for k, v in p.items()}, inputs, targets)
    expected_loss, expected = oracle.loss_and_gradients(p, shape, rule, inputs, targets)
    assert gradients.keys() == p.keys()
    assert loss == pytest.approx(expected_loss, rel=1e-13)
    total = np.linalg.norm(flat(expected, p))
    for key in p:
        assert gradients[key].shape == (1, *p[key].shape)
        # An exact gradient of 0, as of a key's bias or a cosine in one dimension, is rounding: measured by the whole.
        size = max(np.linalg.norm(expected[key]), 1e-3 * total)
        assert np.linalg.norm(gradients[key][0] - expected[key]) <= 1e-10 * size


@pytest.mark.parametrize("name", RULES)
def test_gradients_are_those_of_finite_differences(name):
    for seed in range(10, 16):
        shape, rule, p, inputs, targets = random_case(seed, name)

        def loss(p, shape=shape, rule=rule, inputs=inputs, targets=targets):
            logits, _, _ = model.forward(shape, rule, {k: v[None] for k, v in p.items()}, inputs)
            return model.cross_entropy(logits, targets)[0][0]

        rng = np.random.default_rng(seed)
        _, _, gradients, _ = model.loss_and_gradients(shape, rule, {k: v[None] for k, v in p.items()}, inputs, targets)
        # One random direction after another: the slope is the gradient's component along it.
        estimated, exact = [], []
        for _ in range(8):
            way = {key: rng.standard_normal(value.shape) for key, value in p.items()}
            h = 1e-6  # small, so that no kink of a ReLU, a maximum or an absolute value lies on the way
            ends = [loss({key: p[key] + sign * h * way[key] for key in p}) for sign in (-2, -1, 1, 2)]
            estimated.append((ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * h))
            exact.append(sum(np.vdot(gradients[key][0], way[key]) for key in p))
        estimated, exact = np.array(estimated), np.array(exact)
        assert np.linalg.norm(estimated - exact) <= 1e-6 * np.linalg.norm(exact)


def test_a_wrong_gradient_is_seen():
    """Negative control: the gradient of a rule that takes its size for a constant is not autograd's."""
    shape, rule, p, inputs, targets = random_case(3, "row_mean_abs")
    lead = {k: v[None] for k, v in p.items()}
    _, expected = oracle.loss_and_gradients(p, shape, rule, inputs, targets)

    class Frozen(rules.Rule):
        def logits(self, q, k, gain=None, seen=None):
            z, scores, _ = super().logits(q, k, gain, seen)
            h = np.where(z == 0, 1.0, scores / np.where(z == 0, 1.0, z))
            return z, scores, lambda g: (*rules._to_vectors(g / h, q, k), None)

    frozen = Frozen(**vars(rule))
    _, _, gradients, _ = model.loss_and_gradients(shape, frozen, lead, inputs, targets)
    worst = np.linalg.norm(gradients["0.w_q"][0] - expected["0.w_q"]) / np.linalg.norm(expected["0.w_q"])
    assert worst > 1e-3


def test_a_model_does_not_depend_on_those_beside_it():
    shape = tasks.TASKS["recall"].shape(8, mlp=12, layers=2)
    rule = rules.build("1/sqrt(d_k)", 8, 16)
    p = runs.initial(shape, rule, "recall", 1, range(3))
    inputs, targets = next(runs.batches("recall", 1, range(3)))
    p["0.w_q"][1] = np.nan
    with np.errstate(all="ignore"):
        _, _, together, _ = model.loss_and_gradients(shape, rule, p, inputs, targets)
    alone = {key: value[2:] for key, value in p.items()}
    _, _, gradients, _ = model.loss_and_gradients(shape, rule, alone, inputs[2:], targets[2:])
    for key in p:
        np.testing.assert_array_equal(gradients[key][0], together[key][2])
        assert np.isfinite(together[key][0]).all()


def test_models_may_share_their_data():
    """Rates on one axis, seeds on another that the data has too."""
    shape, rule, p, inputs, targets = random_case(4, "1/d_k")
    lead = {key: np.stack([[value, value], [value * 1.1, value * 1.1]]) for key, value in p.items()}
    both = np.stack([inputs, inputs[::-1]])
    loss, accuracy, gradients, _ = model.loss_and_gradients(shape, rule, lead, both, np.stack([targets, targets[::-1]]))
    assert loss.shape == accuracy.shape == (2, 2)
    # The mean over sequences does not know their order.
    np.testing.assert_allclose(loss[:, 0], loss[:, 1], rtol=1e-13)
    for g in gradients.values():
        np.testing.assert_allclose(g[1, 0], g[1, 1], rtol=1e-9, atol=1e-14)


def test_no_position_sees_what_comes_after_it():
    task = tasks.TASKS["induction"]
    shape = task.shape(8)
    shape = Shape(**{**vars(shape), "asked": 0})
    rule = rules.build("row_max_abs", 8, 31)
    p = runs.initial(shape, rule, "induction", 1, range(1))
    inputs, _ = task.draw(np.random.default_rng(1), 2, False)
    changed = inputs.copy()
    changed[:, 20] = changed[:, 20, ::-1]
    before, after = (model.forward(shape, rule, p, x)[0] for x in (inputs, changed))
    np.testing.assert_array_equal(before[..., :20, :], after[..., :20, :])
    assert np.abs(before[..., 20:, :] - after[..., 20:, :]).max() > 1e-3


@pytest.mark.parametrize("name", dict.fromkeys(rules.taken_apart(name)[0] for name in rules.names()))
def test_every_rule_can_be_built_and_leaves_other_weights_alone(name):
    shape = tasks.TASKS["recall"].shape(16)
    rule = rules.build(name, 16, 16)
    p = model.initial(shape, rule, np.random.default_rng(1))
    plain = model.initial(shape, rules.build("none", 16, 16), np.random.default_rng(1))
    assert p.keys() - plain.keys() == ({"0.gain"} if rule.start is not None else set())
    for key in plain:
        np.testing.assert_array_equal(p[key], plain[key])


def test_rules_have_the_factors_of_the_catalogue():
    factors = {name: rules.build(name, 64, 16).factor for name in ("none", "1/sqrt(d_k)", "1/d_k", *rules.WRONG_WIDTH)}
    assert list(factors.values()) == pytest.approx([1, 1 / 8, 1 / 64, 1 / 32**0.5, 1 / 128**0.5, 1 / 16])
    assert rules.build("learnable", 64, 16).factor == pytest.approx(1 / 8)
    assert rules.build("learnable", 64, 16).start == 1
    assert rules.build("qk_norm", 64, 16).start == 10
    assert rules.build("post_softmax", 64, 16).after == pytest.approx(1 / 8)
    with pytest.raises(ValueError, match="no model is trained with the scale rule 'global_std'"):
        rules.build("global_std", 64, 16)


def test_the_trained_gain_is_redundant_for_dot_products_and_not_for_cosines():
    """A gain on q·k is a rescaling of W_q; on a cosine nothing else does what it does."""
    rng = np.random.default_rng(5)
    q, k, gain = rng.standard_normal((1, 2, 1, 3, 4)), rng.standard_normal((1, 2, 1, 5, 4)), np.array([[1.7]])
    for name, redundant in (("learnable", True), ("qk_norm", False)):
        rule = rules.build(name, 4, 5)
        one = rule.logits(q, k, gain)[0]
        other = rule.logits(1.7 * q, k, np.array([[1.0]]))[0]
        assert np.allclose(one, other) == redundant
