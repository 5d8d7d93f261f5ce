"""Tasks, runs and optimisers: what is asked can be known only by attending, and runs repeat, pair and fail openly."""

import numpy as np
import pytest

from sqrtdk.results.described import columns
from sqrtdk.training import model, rules, runs, tasks
from sqrtdk.training.optimisers import Optimiser

SHORT = dict(task="recall", optimiser="adam", d_k=8, rates=[0.01, 0.03], n_seeds=2, steps=12, seed=3)

MEASURED = [*columns("training")][8:-1]
"""What is measured at a logged step."""


def train(**changes):
    return runs.train(**{"scaling": "1/sqrt(d_k)"} | SHORT | changes)


# ---- tasks -----------------------------------------------------------------------------------------------------------


def test_recall_asks_for_the_value_of_each_key():
    inputs, targets = tasks.recall(np.random.default_rng(1), 5)
    pairs, keys = np.split(inputs, 2, axis=1)
    key_of_pair, value = pairs[..., : tasks.SYMBOLS].argmax(-1), pairs[..., tasks.SYMBOLS :].argmax(-1)
    assert (pairs.sum(-1) == 2).all()
    assert (keys.sum(-1) == 1).all()
    np.testing.assert_array_equal(key_of_pair, keys.argmax(-1))
    np.testing.assert_array_equal(value, targets)
    assert all(len(set(row)) == tasks.PAIRS for row in key_of_pair)


def test_induction_asks_for_what_followed_before():
    inputs, targets = tasks.induction(np.random.default_rng(1), 4)
    symbols = inputs[..., : tasks.SYMBOLS].argmax(-1)
    for row, answers in zip(symbols, targets, strict=True):
        for at, answer in zip(range(tasks.HALF, len(row)), answers, strict=True):
            first = list(row).index(row[at])
            assert first < tasks.HALF
            assert row[first + 1] == answer
    assert inputs.shape[1] - tasks.HALF == targets.shape[1]


def test_the_text_is_asked_for_its_next_letter_and_its_end_is_held_out():
    letters, alphabet = tasks.text()
    words = "".join(alphabet[i] for i in letters)
    assert words.startswith("in the beginning god created the heaven and the earth. and")
    assert "#" not in alphabet
    held = set()
    for held_out in (False, True):
        inputs, targets = tasks.characters(np.random.default_rng(1), 50, held_out)
        for row, answers in zip(inputs[..., : len(alphabet)].argmax(-1), targets, strict=True):
            window = "".join(alphabet[i] for i in (*row, answers[-1]))
            np.testing.assert_array_equal(row[1:], answers[:-1])
            assert window in words
            if held_out:
                held.add(words.rindex(window))
    assert min(held) >= 0.9 * len(words) - 1


@pytest.mark.parametrize("name", tasks.names())
def test_guessing_by_frequency_has_the_loss_of_the_task(name):
    """A model whose output is one fixed distribution, that of the answers."""
    task = tasks.TASKS[name]
    _, targets = task.draw(np.random.default_rng(2), 4000, False)
    share = np.bincount(targets.ravel()) / targets.size
    assert -(share[share > 0] * np.log(share[share > 0])).sum() == pytest.approx(task.guess(), rel=0.01)


@pytest.mark.parametrize(("name", "rate", "steps", "below"), [("recall", 0.01, 80, 1.0), ("text", 0.01, 60, 2.6)])
def test_a_task_is_learned(name, rate, steps, below):
    rows, _ = train(task=name, rates=[rate], steps=steps, d_k=16)
    last = [row["loss"] for row in rows if row["step"] == steps]
    assert max(last) < below < tasks.TASKS[name].guess()


def test_recall_cannot_be_learned_without_attending():
    """Negative control: with uniform weights the answer is not known."""
    rows, _ = train(rates=[0.01], steps=80, scaling="constant(c=1e-6)")
    assert min(row["loss"] for row in rows) > 2


# ---- runs ------------------------------------------------------------------------------------------------------------


def test_runs_repeat_and_do_not_depend_on_the_other_rates_and_seeds():
    rows, _ = train()
    assert rows == train()[0]
    alone = train(rates=[0.03], n_seeds=1)[0]
    same = [row for row in rows if row["learning_rate"] == 0.03 and row["seed"] == 0]
    assert alone == same
    assert train(seed=4)[0] != rows


def test_rules_optimisers_and_rates_share_data_and_initial_weights():
    """At step 0 nothing but the rule has acted: a factor of 1 is a factor of 1 whatever its name."""
    start = {row["seed"]: row["loss"] for row in train(scaling="none")[0] if row["step"] == 0}
    for changes in (dict(scaling="constant(c=1)"), dict(optimiser="sgd"), dict(rates=[1.0])):
        other = train(**{"scaling": "none"} | changes)[0]
        assert {row["seed"]: row["loss"] for row in other if row["step"] == 0} == start
    assert len(set(start.values())) == 2
    for inputs, _ in (next(runs.batches("recall", 1, range(2))), runs.held_out("recall", 1, range(2))):
        assert (inputs[0] != inputs[1]).any()


def test_every_logged_step_of_every_run_has_its_row():
    rows, _ = train()
    keys = [(row["learning_rate"], row["seed"], row["step"]) for row in rows]
    assert keys == [(rate, seed, step) for rate in (0.01, 0.03) for seed in (0, 1) for step in (0, 10, 12)]
    assert all([*row] == [*columns("training")][5:] for row in rows)
    assert runs.logged_steps(300) == [0, 10, 18, 32, 56, 100, 178, 300]
    assert runs.logged_steps(2) == [0, 2]


def test_a_run_that_diverges_stays_in_the_table_as_such():
    rows, _ = train(optimiser="sgd", rates=[1e200, 0.1], steps=12)
    lost = [row for row in rows if row["diverged"]]
    assert {row["learning_rate"] for row in lost} == {1e200}
    assert {row["step"] for row in lost} == {10, 12}
    assert all(row[name] is None for row in lost for name in MEASURED)
    sound = [row for row in rows if row["learning_rate"] == 0.1]
    assert all(np.isfinite(row[name]) for row in sound for name in MEASURED)


def test_what_is_logged_is_what_attention_does():
    shape = tasks.TASKS["recall"].shape(8)
    rule = rules.build("1/sqrt(d_k)", 8, 16)
    p = runs.initial(shape, rule, "recall", 1, range(2))
    inputs, targets = runs.held_out("recall", 1, range(2))
    found = runs.measure(shape, rule, p, inputs, targets)
    assert [*found] == MEASURED
    _, _, gradients, (seen,) = model.loss_and_gradients(shape, rule, p, inputs, targets)
    one = seen.weights[1]
    assert found["entropy"][1] == pytest.approx(-(one * np.log(one)).sum(-1).mean())
    assert found["max_weight"][1] == pytest.approx(one.max(-1).mean())
    assert found["saturated_share"][1] == np.mean(one.max(-1) > 0.99)
    assert found["logit_std"][1] ** 2 == pytest.approx(np.var(seen.logits[1], axis=-1, ddof=1).mean())
    assert found["score_max"][1] == seen.scores[1].max()
    assert found["largest_logit"][1] == np.abs(seen.logits[1]).max()
    assert found["grad_norm_q"][1] == pytest.approx(np.linalg.norm(gradients["0.w_q"][1]))
    assert found["grad_norm_qk"] ** 2 == pytest.approx(found["grad_norm_q"] ** 2 + found["grad_norm_k"] ** 2)
    step = 1e-6  # of the output: its gradient is that of the way from there to the loss
    assert found["grad_norm_output"][1] > step


def test_keys_that_a_causal_query_does_not_see_do_not_count():
    shape = tasks.TASKS["induction"].shape(8, layers=1)
    rule = rules.build("none", 8, 31)
    p = runs.initial(shape, rule, "induction", 1, range(1))
    _, _, _, (seen,) = model.loss_and_gradients(shape, rule, p, *runs.held_out("induction", 1, range(1)))
    rows = runs._rows(seen)
    assert rows["weight"].shape[-1] == 30
    second = seen.logits[0, :, 0, 1, :2]
    np.testing.assert_allclose(rows["spread"][0, :, 0, 0], np.var(second, axis=-1, ddof=1))
    np.testing.assert_allclose(seen.weights.sum(-1), 1)
    assert (seen.weights[..., ~np.tri(31, dtype=bool)] == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"layers": 3, "mlp": 16}, {"layers": 2, "layer_norm": False}])
@pytest.mark.parametrize("d_k", [16, 64])
def test_queries_keys_and_logits_start_with_the_predicted_size(settings, d_k):
    _, sizes = train(rates=[0.1], n_seeds=60, steps=0, d_k=d_k, **settings)
    assert len(sizes) == 3 * settings.get("layers", 1)
    for row in sizes:
        assert abs(row["estimate"] - row["prediction"]) < 4.5 * row["se"], row
        if settings.get("layer_norm", True) and row["quantity"] != "logit_variance":
            assert row["prediction"] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("halves", ["start", "rate", "start + rate"])
def test_halves_of_the_repair_start_as_they_say(halves):
    """A start times d_k^(−1/4) has 1/√d_k of the variance of q and k, and 1/d_k of that of the logits."""
    _, sizes = train(rates=[0.1], n_seeds=40, steps=0, d_k=16, scaling=f"none + {halves}")
    smaller = 16**-0.5 if "start" in halves else 1.0
    for row in sizes:
        assert abs(row["estimate"] - row["prediction"]) < 4.5 * row["se"], row
        if row["quantity"] != "logit_variance":
            assert row["prediction"] == pytest.approx(smaller, abs=1e-3)


def test_models_of_several_heads_are_trained():
    rows, _ = train(heads=4, rates=[0.01], steps=60)
    assert max(row["loss"] for row in rows if row["step"] == 60) < 3


def test_a_batch_is_as_large_as_it_is_asked_to_be():
    assert next(runs.batches("recall", 1, range(2), 7))[0].shape[:2] == (2, 7)
    assert next(runs.batches("recall", 1, range(2)))[0].shape[:2] == (2, tasks.TASKS["recall"].batch)
    assert train(batch=4)[0] == train()[0] != train(batch=8)[0]


def test_rates_rise_and_fall():
    parts = [runs.part_of_rate("warm_up_and_decay", step, 100) for step in range(100)]
    assert parts[:11] == pytest.approx([*np.arange(1, 11) / 10, 1])
    assert parts[55] == pytest.approx(0.5)
    assert 0 < parts[99] < 1e-3
    assert sorted(parts[10:], reverse=True) == parts[10:]
    assert {runs.part_of_rate("constant", step, 100) for step in range(100)} == {1.0}
    warm = train(optimiser="sgd", rates=[0.1], steps=20, schedule="warm_up_and_decay")[0]
    cold = train(optimiser="sgd", rates=[0.05], steps=20)[0]
    assert warm[0]["loss"] == cold[0]["loss"]
    assert warm[-1]["loss"] != cold[-1]["loss"]


def test_mirrored_models_are_the_same_but_for_rounding():
    """Under plain descent: Adam makes steps of the rounding errors in the gradient of b_k, which is 0."""
    settings = dict(optimiser="sgd", rates=[0.03], heads=2)
    plain, mirrored = train(**settings)[0], train(**settings, mirrored=True)[0]
    for name in ("loss", "logit_std", "grad_norm_q", "alignment"):
        pair = np.array([[row[name] for row in rows] for rows in (plain, mirrored)])
        np.testing.assert_allclose(pair[0], pair[1], rtol=1e-4)
    weights = np.arange(12.0).reshape(1, 2, 6)
    assert runs._mirrored(weights, 2)[0, 0].tolist() == [2, 1, 0, 5, 4, 3]


@pytest.mark.parametrize("task", ["recall", "induction"])
def test_queries_are_held_against_the_keys_that_they_have_to_find(task):
    """Found by the symbols alone: the answer follows, or belongs to, what the key holds."""
    shape = tasks.TASKS[task].shape(8)
    inputs, targets = tasks.TASKS[task].draw(np.random.default_rng(1), 3, False)
    symbols = inputs[..., : tasks.SYMBOLS].argmax(-1)
    for row, answers, place in zip(symbols, targets, inputs, strict=True):
        keys, asked = row[shape.sources], row[shape.readers][shape.answers]
        for answer, reader, key in zip(answers, asked, shape.wanted, strict=True):
            if task == "recall":
                assert keys[key] == reader
                assert place[key, tasks.SYMBOLS :].argmax() == answer
            else:
                assert keys[key] == answer
                assert keys[key - 1] == reader
    rule = rules.build("none", 8, 16)
    p = runs.initial(shape, rule, task, 1, range(2))
    evaluation = runs.held_out(task, 1, range(2))
    seen = model.loss_and_gradients(shape, rule, p, *evaluation)[3][-1]
    q, k = seen.q[1, :, 0, shape.asked :], seen.k[1, :, 0, list(shape.wanted)].swapaxes(0, 1)
    cosine = np.sum(q * k, axis=-1) / np.linalg.norm(q, axis=-1) / np.linalg.norm(k, axis=-1)
    assert runs.measure(shape, rule, p, *evaluation)["alignment"][1] == pytest.approx(cosine.mean())


def test_text_has_no_key_to_find():
    rows, _ = train(task="text", steps=1)
    assert {row["alignment"] for row in rows} == {None}


# ---- rates -----------------------------------------------------------------------------------------------------------


def test_rates_around_a_known_one_go_in_steps_of_at_most_one_and_a_half():
    entry = {"scalings": ["none", "1/d_k"], "around": [0.0023, 1.0]}
    found = rules.rates(entry, "none")
    assert found == [0.00022, 0.00068, 0.001, 0.0015, 0.0022, 0.0033, 0.0047, 0.0068, 0.022]
    assert rules.rates(entry, "1/d_k")[4] == 1.0
    near = np.array(found[1:-1])
    assert (near[1:] / near[:-1] <= 1.5 + 1e-12).all()
    assert near[-1] / near[3] > 3 < near[3] / near[0]
    assert rules.rates(entry | {"rates": [0.1, 0.2]}, "none") == [0.1, 0.2]
    assert rules.rates({"scalings": ["none"]}, "none") == list(rules.RATES)


# ---- optimisers ------------------------------------------------------------------------------------------------------


def test_optimisers_take_the_published_steps():
    g = np.array([[0.5, -2.0]])
    expected = {"sgd": -0.1 * (g + g / 2), "momentum": -0.1 * (g + (0.9 * g + g / 2))}
    m, v = 0.1 * g, 0.001 * g**2
    first = m / (1 - 0.9) / (np.sqrt(v / (1 - 0.999)) + 1e-8)
    m, v = 0.9 * m + 0.1 * g / 2, 0.999 * v + 0.001 * g**2 / 4
    second = m / (1 - 0.9**2) / (np.sqrt(v / (1 - 0.999**2)) + 1e-8)
    expected["adam"] = -0.1 * (first + second)
    for name, value in expected.items():
        p, move = {"w": np.zeros((1, 2))}, Optimiser(name, [0.1])
        move.step(p, {"w": g.copy()})
        move.step(p, {"w": g / 2})
        np.testing.assert_allclose(p["w"], value, rtol=1e-12)
    with pytest.raises(ValueError, match="no optimiser 'lion'"):
        Optimiser("lion", [0.1])


def test_adam_without_epsilon_leaves_alone_what_has_no_gradient():
    p, move = {"w": np.ones((1, 2))}, Optimiser("adam", [0.1], epsilon=0.0)
    move.step(p, {"w": np.array([[0.0, 1.0]])})
    np.testing.assert_allclose(p["w"], [[1.0, 0.9]])


def test_a_smaller_rate_of_one_parameter_is_a_change_of_its_units():
    """With half the rate, and twice the epsilon for gradients twice as large, w is half of what it is without."""
    moves = []
    for factors, size in ((None, 1.0), ({"w": 0.5}, 2.0)):
        p, move = {"w": np.zeros((1, 3))}, Optimiser("adam", [0.1], epsilon=0.01, factors=factors)
        for g in (0.03, -0.01, 0.02):
            move.step(p, {"w": size * np.array([[g, 0.5 * g, 0.0]])})
        moves.append(p["w"])
    np.testing.assert_array_equal(moves[0], 2 * moves[1])
    assert np.abs(moves[0]).max() > 0.01
