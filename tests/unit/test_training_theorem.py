"""The scale is a convention of initial weights and learning rates: scale c is scale 1 with other weights and rates.

Scale c with W_q, W_k and rate η is scale 1 with √c·W_q, √c·W_k (biases too) and, for these alone, rate c·η (gradient
descent, momentum) or √c·η (Adam without ε). No weight decay, no clipping.
"""

import functools

import numpy as np
import pytest

from sqrtdk.training import model, runs, tasks
from sqrtdk.training.optimisers import Optimiser
from sqrtdk.training.rules import Rule

SCORES = ("w_q", "w_k", "b_q", "b_k")
STABLE = {"sgd": 0.03, "momentum": 0.003, "adam": 3e-4}
UNSTABLE = {"sgd": 3.0, "momentum": 0.3, "adam": 0.03}
POWER = {"sgd": 1.0, "momentum": 1.0, "adam": 0.5}
"""The rate of W_q and W_k is multiplied by c to this power."""


def train(factor, optimiser, rate, steps, d_k, weights=1.0, rates=1.0, layers=1):
    """Train recall with a constant factor; return the losses of all steps and the parameters."""
    shape = tasks.TASKS["recall"].shape(d_k, layers=layers)
    p = runs.initial(shape, Rule(), "recall", 7, range(1))
    names = [name for name in p if name.endswith(SCORES)]
    rng = np.random.default_rng(1)
    for name in names:
        # Biases that are not 0, so that they count.
        p[name] = weights * (p[name] + 0.1 * rng.standard_normal(p[name].shape) * name.split(".")[1].startswith("b"))
    move = Optimiser(optimiser, [rate], epsilon=0.0, factors=dict.fromkeys(names, rates))
    data, losses = runs.batches("recall", 7, range(1)), []
    with np.errstate(all="ignore"):
        for _, (inputs, targets) in zip(range(steps), data, strict=False):
            loss, _, gradients, _ = model.loss_and_gradients(shape, Rule(factor), p, inputs, targets)
            move.step(p, gradients)
            losses.append(loss[0])
    return np.array(losses), p


@functools.cache
def both(optimiser, rate, steps, d_k, layers=1):
    """The same training with the scale 1/√d_k and with scale 1, other weights and other rates."""
    c = d_k**-0.5
    scaled = train(c, optimiser, rate, steps, d_k, layers=layers)
    plain = train(1.0, optimiser, rate, steps, d_k, c**0.5, c ** POWER[optimiser], layers=layers)
    return scaled, plain


def distance(pair, d_k):
    """Return the largest relative distance of a parameter from what the theorem makes of its twin.

    The bias of keys moves no softmax: its gradient is 0 but for rounding, of which Adam without ε makes a step.
    """
    (_, scaled), (_, plain) = pair
    worst = 0.0
    for name, value in scaled.items():
        if not name.endswith("b_k"):
            mapped = value * d_k**-0.25 if name.endswith(SCORES) else value
            worst = max(worst, np.linalg.norm(mapped - plain[name]) / np.linalg.norm(mapped))
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("optimiser", POWER)
@pytest.mark.parametrize(("d_k", "layers"), [(16, 1), (256, 1), (16, 2)])
@pytest.mark.parametrize("rates", [STABLE, UNSTABLE], ids=["stable", "unstable"])
def test_bit_for_bit_where_the_root_of_the_scale_is_a_power_of_two(optimiser, d_k, layers, rates):
    pair = both(optimiser, rates[optimiser], 300 if layers == 1 else 60, d_k, layers)
    np.testing.assert_array_equal(pair[0][0], pair[1][0])
    for name, value in pair[0][1].items():
        mapped = value * d_k**-0.25 if name.endswith(SCORES) else value
        np.testing.assert_array_equal(mapped, pair[1][1][name])
    assert len(set(pair[0][0])) > 50


@pytest.mark.parametrize("optimiser", POWER)
def test_to_rounding_elsewhere_in_one_step(optimiser):
    for d_k in (3, 64, 100):
        assert distance(both(optimiser, STABLE[optimiser], 1, d_k), d_k) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("optimiser", POWER)
def test_to_rounding_elsewhere_over_many_steps_below_the_edge_of_stability(optimiser):
    pair = both(optimiser, STABLE[optimiser], 300, 64)
    assert pair[0][0][-1] < pair[0][0][0]
    assert distance(pair, 64) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("optimiser", POWER)
def test_above_the_edge_of_stability_rounding_grows(optimiser):
    """Not a failure of the theorem: the same arithmetic with another rounding leaves the path too."""
    distances = [distance(both(optimiser, UNSTABLE[optimiser], steps, 64), 64) for steps in (1, 100, 300)]
    assert distances[0] < 1e-12
    assert distances[-1] > 1e-8


@pytest.mark.parametrize("optimiser", POWER)
def test_a_transformed_rate_or_weight_alone_is_something_else(optimiser):
    """Negative control: the other optimiser's power of c, or the weights alone, is not the same training."""
    c = 16**-0.5
    scaled = train(c, optimiser, STABLE[optimiser], 20, 16)[0]
    for rates in (1.0, c ** (1.5 - POWER[optimiser])):
        assert np.abs(train(1.0, optimiser, STABLE[optimiser], 20, 16, c**0.5, rates)[0] - scaled).max() > 1e-6


@pytest.mark.parametrize("optimiser", POWER)
def test_too_large_an_initialisation_is_a_larger_scale(optimiser):
    """Weights twice as large are a scale four times as large, with a rate smaller by 4 (Adam: by 2)."""
    rate = STABLE[optimiser]
    larger_scale = train(4 * 16**-0.5, optimiser, rate, 100, 16)[0]
    rates = 4 ** POWER[optimiser]
    larger_weights = train(16**-0.5, optimiser, rate, 100, 16, weights=2.0, rates=rates)[0]
    np.testing.assert_array_equal(larger_scale, larger_weights)


# ---- the halves of the repair, as experiments train them -------------------------------------------------------------

UNCHANGED = ("loss", "accuracy", "logit_std", "largest_logit", "entropy", "alignment", "grad_norm_v")
NEXT = {"none": "1/sqrt(d_k)", "1/sqrt(d_k)": "1/d_k"}


@functools.cache
def logged(scaling, optimiser, d_k):
    settings = dict(task="recall", rates=[{"sgd": 0.3, "momentum": 0.03, "adam": 0.0047}[optimiser]], n_seeds=1, seed=1)
    rows, _ = runs.train(scaling=scaling, optimiser=optimiser, d_k=d_k, steps=10, **settings)
    return np.array([[row[name] for name in UNCHANGED] for row in rows])


@pytest.mark.parametrize("optimiser", POWER)
@pytest.mark.parametrize("scaling", NEXT)
@pytest.mark.parametrize("d_k", [16, 256])
def test_both_halves_of_the_repair_are_the_next_rule_bit_for_bit(optimiser, scaling, d_k):
    both, following = logged(f"{scaling} + start + rate", optimiser, d_k), logged(NEXT[scaling], optimiser, d_k)
    np.testing.assert_array_equal(both, following)
    for half in ("start", "rate"):
        assert np.abs(logged(f"{scaling} + {half}", optimiser, d_k)[-1] - following[-1]).max() > 1e-3


@pytest.mark.parametrize("optimiser", POWER)
@pytest.mark.parametrize("scaling", NEXT)
def test_both_halves_are_the_next_rule_to_rounding_elsewhere_over_ten_steps(optimiser, scaling, monkeypatch):
    monkeypatch.setattr(runs, "TRAINED_IN", np.float64)
    both, following = (logged.__wrapped__(name, optimiser, 64) for name in (f"{scaling} + start + rate", NEXT[scaling]))
    # Of what is logged, six digits are kept.
    np.testing.assert_allclose(both, following, rtol=2e-6)
