"""Scores watched in a training run, arrays of other frameworks, and the examples of docs/audit.md, on a stand-in."""

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from stand_ins import Module, Tensor, logits

import sqrtdk
from sqrtdk.heads import facts, scores
from sqrtdk.heads.masks import causal
from sqrtdk.heads.tally import Block

DOCS = Path(__file__).parents[2] / "docs" / "audit.md"


class TestMeasure:
    @pytest.mark.parametrize("mask", [None, "causal"])
    def test_facts_are_those_of_the_audit(self, mask):
        z = logits(shape=(40, 64))
        allowed = causal(40, 40) if mask else None
        found, truth = scores.measure(z, allowed, None), facts.describe([Block(None, None, z, allowed)], 1.0)
        assert found.mean == pytest.approx(truth["logit_mean"], rel=1e-9)
        assert found.row_variance == pytest.approx(truth["row_logit_std"] ** 2, rel=1e-9)
        assert found.max_weight == pytest.approx(truth["max_weight"], rel=1e-9)
        assert found.largest == pytest.approx(max(-truth["logit_min"], truth["logit_max"]))
        if not mask:
            assert found.entropy == pytest.approx(truth["relative_entropy"], rel=1e-9)

    @pytest.mark.parametrize("masked", [False, True])
    def test_nan_is_not_taken_for_masked(self, masked):
        z, mask = logits(), causal(40, 40) if masked else None
        z[1, 2, 30, 5] = np.nan
        for look in (scores.measure, sqrtdk.check_scores):
            with pytest.raises(ValueError, match="scores hold NaN"):
                look(z, mask)

    def test_nan_in_a_mask_is_no_mask(self):
        mask = np.where(causal(40, 40), 0.0, -np.inf)
        mask[3, 1] = np.nan
        with pytest.raises(ValueError, match="scores hold NaN"):
            scores.measure(logits(), mask)

    def test_masks_in_any_spelling(self):
        z, allowed = logits(), causal(40, 40)
        found = [scores.measure(z, allowed)]
        for value in (-np.inf, -1e9, -1e4, np.finfo(np.float32).min):
            additive = np.where(allowed, 0.0, value)
            found += [scores.measure(z, additive), scores.measure(z + additive)]
        assert all(one.row_variance == pytest.approx(found[0].row_variance, rel=1e-9) for one in found)
        assert all(one.entropy == pytest.approx(found[0].entropy, rel=1e-9) for one in found)
        keys = np.arange(40) < 30
        assert scores.measure(z, keys).row_variance == pytest.approx(scores.measure(z[..., :30]).row_variance)

    def test_rows_are_a_sample(self):
        z = logits(shape=(1, 512, 64))
        some, every = scores.measure(z, causal(512, 512), rows=32), scores.measure(z, causal(512, 512), rows=None)
        assert (some.rows, every.rows) == (31, 511)
        assert some.row_variance == pytest.approx(every.row_variance, rel=0.15)

    @pytest.mark.parametrize("bad", [np.ones(3), np.full((3, 3), np.nan), np.full((3, 3), np.inf), np.ones((3, 1))])
    def test_what_cannot_be_measured(self, bad):
        with pytest.raises(ValueError, match=r"axis|NaN|infinite|choose"):
            scores.measure(bad)

    def test_weights_are_no_logits(self):
        z = logits()
        weights = np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)
        for given in (weights, weights.astype(np.float16), np.tri(64) / np.arange(1, 65)[:, None]):
            with pytest.raises(ValueError, match="attention weights: rows sum to 1"):
                sqrtdk.check_scores(given)

    @pytest.mark.parametrize(
        ("shapes", "message"),
        [
            ({"q": (4, 64, 64)}, "one of them is missing"),
            ({"q": (4, 64, 64), "k": (4, 64, 32)}, "not those of one attention"),
            ({"q": (4, 64, 64), "k": (3, 64, 64)}, "not those of one attention"),
            ({"mask": (63, 64)}, r"a mask of shape \(63, 64\) is none of scores of shape \(4, 64, 64\)"),
        ],
    )
    def test_shapes_that_do_not_fit_are_named(self, shapes, message):
        given = {name: np.ones(shape) for name, shape in shapes.items()}
        with pytest.raises(ValueError, match=message):
            sqrtdk.check_scores(logits(shape=(4, 64, 64)), **given)
        if "k" in given:
            with pytest.raises(ValueError, match=message):
                sqrtdk.AttentionMonitor().observe_qk("a", scale=1.0, **given)


class TestCheck:
    def test_sound_scores_pass_and_are_described(self):
        assert sqrtdk.check_scores(logits()).row_variance == pytest.approx(1, rel=0.2)

    @pytest.mark.parametrize(("scale", "hint"), [(1.0, "scale 1/sqrt\\(d_k\\) is missing"), (1e-3, "applied twice")])
    def test_a_wrong_scale_is_an_assertion_that_says_so(self, scale, hint):
        with pytest.raises(AssertionError, match=f"layer 3: within-row variance.*{hint}") as error:
            sqrtdk.check_scores(logits(scale), name="layer 3")
        assert isinstance(error.value, sqrtdk.ScoreError)
        assert error.value.facts.row_variance == pytest.approx((scale * 8) ** 2, rel=0.2)

    def test_the_variance_is_that_within_rows(self):
        z = logits() + 5 * np.random.default_rng(2).normal(size=(2, 3, 40, 1))
        assert z.var() > 20
        sqrtdk.check_scores(z, mean=None)
        with pytest.raises(sqrtdk.ScoreError, match="mean"):
            sqrtdk.check_scores(logits() + 3)
        sqrtdk.check_scores(logits(1.0), row_variance=None)

    @pytest.mark.parametrize("d_model", [128, 256, 512, 768])
    def test_a_start_as_that_of_gpt2_is_sound(self, d_model):
        rng = np.random.default_rng(d_model)
        x = rng.normal(size=(64, d_model))
        q, k = (x @ (0.02 * rng.normal(size=(d_model, 64))) for _ in "qk")
        sqrtdk.check_scores(q @ k.T / 8, q=q, k=k)
        sqrtdk.check_scores(q @ k.T / 8)
        with pytest.raises(sqrtdk.ScoreError, match="applied twice"):
            sqrtdk.check_scores(q @ k.T / 64, q=q, k=k)

    @pytest.mark.parametrize("mask", [None, causal(40, 40)])
    def test_queries_and_keys_tell_a_scale_that_the_spread_does_not(self, mask):
        rng = np.random.default_rng(1)
        q, k = rng.uniform(-1, 1, size=(2, 3, 4, 40, 32))
        k = k[:, :2]
        full = q @ np.repeat(k, 2, axis=1).swapaxes(-1, -2)
        sqrtdk.check_scores(full, mask)
        with pytest.raises(sqrtdk.ScoreError, match="multiplied by 1, not by 0.1768; no scale"):
            sqrtdk.check_scores(full, mask, q=q, k=k)
        sqrtdk.check_scores(full / 32**0.5, mask, q=q, k=k)
        sqrtdk.check_scores(full / 32, mask, q=q, k=k, scale=1 / 32)
        with pytest.raises(ValueError, match="give scores of shape"):
            sqrtdk.check_scores(full, mask, q=q, k=k[..., :20, :])

    def test_a_trained_model_may_have_any_spread(self):
        sqrtdk.check_scores(logits(2.0), stage="trained")
        with pytest.raises(ValueError, match="stage 'late'"):
            sqrtdk.check_scores(logits(), stage="late")


class TestFrameworks:
    def test_tensors_are_detached_and_read(self):
        z = logits().astype(np.float32)
        for tensor in (Tensor(z), Tensor(z, False), Tensor(z, dtype="bfloat16")):
            assert scores.measure(tensor) == scores.measure(z)

    def test_dlpack_alone_and_array_alone(self):
        z = logits()[0, 0]
        exported = types.SimpleNamespace(__dlpack__=z.__dlpack__, __dlpack_device__=z.__dlpack_device__)
        # NumPy looks the methods up on the object, not on its type.
        assert np.array_equal(scores.as_array(exported), z)

        class Array:
            def __array__(self, dtype=None, copy=None):
                return z

        assert np.array_equal(scores.as_array(Array()), z)

    def test_dlpack_that_fails_leaves_the_other_way(self):
        z = logits()[0, 0]

        class OnDevice:
            def __dlpack__(self, **options):
                raise BufferError("not on this device")

            def __dlpack_device__(self):
                return (2, 0)

            def __array__(self, dtype=None, copy=None):
                return z

        assert np.array_equal(scores.as_array(OnDevice()), z)

    def test_what_is_no_array_is_refused(self):
        for bad in (object(), np.ones((2, 2), complex), np.array("text")):
            with pytest.raises(TypeError, match="cannot read an array of type"):
                scores.as_array(bad)

    def test_no_framework_is_imported(self):
        assert not {"torch", "jax"} & set(sys.modules)


class TestMonitor:
    def test_running_statistics_are_those_of_all_steps(self):
        watch, variances = sqrtdk.AttentionMonitor(), []
        for step in range(7):
            variances.append(watch.observe("a", logits(0.1 + 0.02 * step, seed=step)).row_variance)
        row = next(row for row in watch.report() if row["statistic"] == "row_variance")
        assert row["count"] == 7
        assert row["mean"] == pytest.approx(np.mean(variances))
        assert row["std"] == pytest.approx(np.std(variances, ddof=1))
        assert (row["low"], row["high"], row["last"]) == (min(variances), max(variances), variances[-1])

    def test_every_so_many_steps(self):
        watch = sqrtdk.AttentionMonitor(every=3)
        measured = [watch.observe("a", logits()) is not None for _ in range(7)]
        assert measured == [True, False, False, True, False, False, True]

    def test_gradients_in_the_backward_pass(self):
        watch, scores = sqrtdk.AttentionMonitor(rows=None), Tensor(logits(), True)
        assert watch.watch("a", scores) is scores
        gradient = np.random.default_rng(1).normal(size=scores.shape)
        scores.backward(np.zeros(scores.shape))
        scores.backward(gradient)
        row = next(row for row in watch.report() if row["statistic"] == "gradient_norm")
        assert row["last"] == pytest.approx(np.sqrt((gradient**2).sum(axis=-1).mean()))

    def test_as_a_forward_hook(self):
        watch, module = sqrtdk.AttentionMonitor(), Module(lambda scale: Tensor(logits(scale)))
        handle = module.register_forward_hook(watch.hook("layer 0"))
        module(0.125)
        handle.remove()
        module(0.125)
        assert {row["count"] for row in watch.report()} == {1}


class TestWhatGoesWrong:
    def test_logits_that_are_not_finite_are_told_and_the_rest_is_measured(self):
        watch, z = sqrtdk.AttentionMonitor(rows=None), logits()
        for step in range(3):
            if step == 1:
                z = z.copy()
                z[0, 2, 5, 7], z[1, 1, 0, 0] = np.nan, np.inf
            found = watch.observe("layer 3", z, causal(40, 40) if step < 2 else None)
            assert found.row_variance == pytest.approx(1, rel=0.2)
            watch.step()
        assert [str(problem) for problem in watch.problems()] == [
            "step 1: layer 3, head 1: 1 of the rows looked at hold NaN or infinite logits",
            "step 2: layer 3, head 2: 1 of the rows looked at hold NaN or infinite logits",
        ]
        assert watch.latest()["attention/nonfinite"] == 2

    def test_large_logits_and_collapse_are_told_once_with_their_head(self):
        watch, z = sqrtdk.AttentionMonitor(rows=None, max_logit=50), logits()
        watch.observe("a", z)
        watch.step()
        z[:, 1] *= 40
        for _ in range(2):
            watch.observe("a", z)
            watch.step()
        assert {(p.step, p.head, p.kind) for p in watch.problems()} == {(1, 1, "max_logit"), (1, 1, "entropy")}
        name, head, largest = watch.worst()
        assert (name, head, largest) == ("a", 1, np.abs(z).max())

    def test_infinite_gradients_leave_statistics_as_they_are(self):
        watch, scores = sqrtdk.AttentionMonitor(rows=None), Tensor(logits(), True)
        watch.watch("a", scores)
        for bad in (np.inf, np.nan):
            scores.backward(np.full(scores.shape, bad))
        scores.backward(np.ones(scores.shape))
        rows = {row["statistic"]: row for row in watch.report()}
        assert rows["gradient_norm"]["last"] == pytest.approx(np.sqrt(scores.shape[-1]))
        assert rows["gradients_left_out"]["count"] == 2
        assert [problem.kind for problem in watch.problems()] == ["gradient"]

    def test_a_scaler_is_taken_off(self):
        watch = sqrtdk.AttentionMonitor(scaler=types.SimpleNamespace(get_scale=lambda: 8.0))
        assert watch.observe_gradient("a", np.full((3, 4), 8.0)) == pytest.approx(2.0)

    def test_a_step_that_saw_nothing_is_a_warning(self):
        watch = sqrtdk.AttentionMonitor(every=2)
        with pytest.warns(RuntimeWarning, match="step 0: the monitor saw no attention"):
            watch.step()
        watch.step()  # not due
        watch.observe("a", logits())
        watch.step()
        assert watch.observe("a", logits()) is None
        watch.step()
        assert watch.observe("a", logits()) is not None

    def test_reset_forgets_and_goes_on(self):
        watch = sqrtdk.AttentionMonitor()
        watch.observe("a", 1e3 * logits())
        watch.step()
        watch.reset()
        assert (watch.problems(), watch.latest(), watch.report(), watch.worst()) == ([], {}, [], None)
        watch.observe("a", 1e3 * logits())
        assert watch.problems()[0].step == 1


class TestFused:
    @pytest.mark.parametrize("way", ["plain", "causal", "mask", "bias", "cap"])
    def test_rows_computed_again_are_those_of_the_logits(self, way):
        rng = np.random.default_rng(1)
        q, k = rng.normal(size=(2, 4, 40, 16)), rng.normal(size=(2, 2, 50, 16))
        z = 0.3 * q @ np.repeat(k, 2, axis=1).swapaxes(-1, -2)
        options, mask = {}, None
        if way == "causal":
            options, mask = {"causal": True}, causal(40, 50)
        elif way == "mask":
            mask = rng.random((1, 1, 40, 50)) < 0.7
            options = {"mask": mask}
        elif way == "bias":
            options = {"mask": rng.normal(size=(1, 4, 40, 50))}
            z = z + options["mask"]
        elif way == "cap":
            options, z = {"softcap": 2.0}, 2 * np.tanh(z / 2)
        for rows in (None, 8):
            found = sqrtdk.AttentionMonitor(rows=rows).observe_qk("a", q, k, 0.3, **options)
            wanted = scores.measure(z, mask, rows)
            for name, value in vars(wanted).items():
                assert getattr(found, name) == pytest.approx(value, rel=1e-9), name

    def test_other_rows_are_looked_at_from_step_to_step(self):
        z = np.zeros((1, 40, 40))
        z[0, 3, 5] = 60.0
        watch = sqrtdk.AttentionMonitor(rows=4, max_logit=50)
        seen = []
        for _ in range(10):
            seen.append(watch.observe("a", z).largest)
            watch.step()
        assert seen.count(60.0) == 1

    @pytest.mark.parametrize("options", [{"every": 0}, {"rows": 0}])
    def test_options_that_do_not_fit(self, options):
        with pytest.raises(ValueError, match=f"{next(iter(options))}=0"):
            sqrtdk.AttentionMonitor(**options)

    def test_maxima_of_a_kernel(self):
        watch = sqrtdk.AttentionMonitor(max_logit=50)
        watch.observe_max("layers.3.attn", np.array([[3.0, 70.0], [4.0, 2.0]]))
        watch.observe_max("layers.4.attn", np.array([np.nan, 1.0]))
        assert watch.latest() == {
            "attention/layer_03/max_logit": 70.0,
            "attention/layer_04/max_logit": 1.0,
            "attention/max_logit": 70.0,
        }
        assert [(p.name, p.head, p.kind) for p in watch.problems()] == [
            ("layers.3.attn", 1, "max_logit"),
            ("layers.4.attn", 0, "nonfinite"),
        ]


class TestLatest:
    def test_it_is_flat_and_plain(self):
        watch = sqrtdk.AttentionMonitor()
        for layer in (0, 3):
            watch.observe(f"model.layers.{layer}.attn", logits(0.1 * (layer + 1)))
        found = watch.latest()
        assert all(type(value) is float for value in found.values())
        assert all(re.fullmatch(r"[_a-zA-Z]\w*(/[_a-zA-Z]\w*)*", key) for key in found)
        assert (
            found["attention/max_logit"]
            == found["attention/layer_03/max_logit"]
            > found["attention/layer_00/max_logit"]
        )
        assert "attention/gradient_norm" not in found
        heads = watch.latest(heads=True)
        assert (
            max(heads[f"attention/layer_03/head_0{head}/max_logit"] for head in range(3))
            == found["attention/max_logit"]
        )
        assert heads.keys() > found.keys()

    def test_layers_whose_numbers_are_not_enough_go_by_their_path(self):
        watch = sqrtdk.AttentionMonitor()
        for name in ("encoder.0.attn", "decoder.0.attn"):
            watch.observe(name, logits())
        assert "attention/decoder_0_attn/entropy" in watch.latest()


def recipes() -> list[str]:
    return re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)


class TestRecipes:
    """The examples of the documentation that need no framework, as they stand there."""

    def test_checks_and_monitor_run_as_documented(self, capsys):
        (check,) = (text for text in recipes() if "check_scores" in text)
        (watch,) = (text for text in recipes() if "watch(" in text)
        q, k = np.random.default_rng(1).normal(size=(2, 2, 3, 40, 64))
        exec(check, {"logits": q @ k.swapaxes(-1, -2) / 8, "mask": causal(40, 40), "q": q, "k": k})
        names = {"sqrtdk": sqrtdk, "compute_logits": lambda: Tensor(logits())}
        names["run_backward"] = lambda scores: scores.backward(np.ones(scores.shape))
        exec(watch, names)
        assert "gradient_norm" in capsys.readouterr().out
