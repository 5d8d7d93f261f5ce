"""Scores watched in a forward pass, arrays of other frameworks, and the recipes of docs/audit.md, run on a stand-in."""

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import sqrtdk
from sqrtdk.__main__ import main
from sqrtdk.heads import facts, monitor
from sqrtdk.heads.masks import causal
from sqrtdk.heads.tally import Block

DOCS = Path(__file__).parents[2] / "docs" / "audit.md"


def logits(scale=0.125, shape=(2, 3, 40, 64), seed=1):
    rng = np.random.default_rng(seed)
    q, k = rng.normal(size=(2, *shape))
    return scale * q @ k.swapaxes(-1, -2)


class Tensor:
    """As far as a hook can tell, a PyTorch tensor: no `__array__` before `detach`, rows by slices, DLPack."""

    def __init__(self, array, requires_grad=True, dtype="float32"):
        self.array, self.requires_grad, self.dtype = array, requires_grad, dtype
        self.shape, self.hooks = array.shape, []

    def __getitem__(self, index):
        return Tensor(self.array[index], self.requires_grad, self.dtype)

    def detach(self):
        return Tensor(self.array, False, self.dtype)

    def cpu(self):
        return self

    def float(self):
        return Tensor(self.array, self.requires_grad)

    def numpy(self):
        return self.__array__()

    def reshape(self, *shape):
        return Tensor(self.array.reshape(*shape), self.requires_grad, self.dtype)

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad or self.dtype == "bfloat16":
            raise RuntimeError("can't call numpy() on this tensor")
        return self.array if dtype is None else self.array.astype(dtype)

    def __dlpack__(self, **options):
        if self.requires_grad:
            raise BufferError("can't export tensors that require gradient")
        if self.dtype == "bfloat16":
            raise BufferError("bfloat16 is not supported")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def register_hook(self, hook):
        self.hooks.append(hook)

    def backward(self, gradient):
        for hook in self.hooks:
            assert hook(Tensor(gradient, False)) is None


class Module:
    """A module with forward hooks, as PyTorch calls them."""

    def __init__(self, forward):
        self.forward, self.hooks = forward, []

    def register_forward_hook(self, hook):
        self.hooks.append(hook)
        return types.SimpleNamespace(remove=lambda: self.hooks.remove(hook))

    def __call__(self, *inputs):
        output = self.forward(*inputs)
        for hook in self.hooks:
            assert hook(self, inputs, output) is None
        return output


class TestMeasure:
    @pytest.mark.parametrize("mask", [None, "causal"])
    def test_facts_are_those_of_the_audit(self, mask):
        z = logits(shape=(40, 64))
        allowed = causal(40, 40) if mask else None
        found, truth = monitor.measure(z, allowed, None), facts.describe([Block(None, None, z, allowed)], 1.0)
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
        for look in (monitor.measure, sqrtdk.check_scores, lambda *a: sqrtdk.AttentionMonitor().observe("a", *a)):
            with pytest.raises(ValueError, match="scores hold NaN"):
                look(z, mask)

    def test_nan_in_a_mask_is_no_mask(self):
        mask = np.where(causal(40, 40), 0.0, -np.inf)
        mask[3, 1] = np.nan
        with pytest.raises(ValueError, match="scores hold NaN"):
            monitor.measure(logits(), mask)

    def test_masks_in_any_spelling(self):
        z, allowed = logits(), causal(40, 40)
        found = [monitor.measure(z, allowed)]
        for value in (-np.inf, -1e9, -1e4, np.finfo(np.float32).min):
            additive = np.where(allowed, 0.0, value)
            found += [monitor.measure(z, additive), monitor.measure(z + additive)]
        assert all(one.row_variance == pytest.approx(found[0].row_variance, rel=1e-9) for one in found)
        assert all(one.entropy == pytest.approx(found[0].entropy, rel=1e-9) for one in found)
        keys = np.arange(40) < 30
        assert monitor.measure(z, keys).row_variance == pytest.approx(monitor.measure(z[..., :30]).row_variance)

    def test_rows_are_a_sample(self):
        z = logits(shape=(1, 512, 64))
        some, every = monitor.measure(z, causal(512, 512), rows=32), monitor.measure(z, causal(512, 512), rows=None)
        assert (some.rows, every.rows) == (31, 511)
        assert some.row_variance == pytest.approx(every.row_variance, rel=0.15)

    @pytest.mark.parametrize("bad", [np.ones(3), np.full((3, 3), np.nan), np.full((3, 3), np.inf), np.ones((3, 1))])
    def test_what_cannot_be_measured(self, bad):
        with pytest.raises(ValueError, match=r"axis|NaN|infinite|choose"):
            monitor.measure(bad)


class TestCheck:
    def test_sound_scores_pass_and_are_described(self):
        assert sqrtdk.check_scores(logits()).row_variance == pytest.approx(1, rel=0.2)

    @pytest.mark.parametrize(("scale", "hint"), [(1.0, "scale 1/sqrt\\(d_k\\) is missing"), (1 / 64, "applied twice")])
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


class TestFrameworks:
    def test_tensors_are_detached_and_read(self):
        z = logits().astype(np.float32)
        for tensor in (Tensor(z), Tensor(z, False), Tensor(z, dtype="bfloat16")):
            assert monitor.measure(tensor) == monitor.measure(z)

    def test_dlpack_alone_and_array_alone(self):
        z = logits()[0, 0]
        exported = types.SimpleNamespace(__dlpack__=z.__dlpack__, __dlpack_device__=z.__dlpack_device__)
        # NumPy looks the methods up on the object, not on its type.
        assert np.array_equal(monitor.as_array(exported), z)

        class Array:
            def __array__(self, dtype=None, copy=None):
                return z

        assert np.array_equal(monitor.as_array(Array()), z)

    def test_dlpack_that_fails_leaves_the_other_way(self):
        z = logits()[0, 0]

        class OnDevice:
            def __dlpack__(self, **options):
                raise BufferError("not on this device")

            def __dlpack_device__(self):
                return (2, 0)

            def __array__(self, dtype=None, copy=None):
                return z

        assert np.array_equal(monitor.as_array(OnDevice()), z)

    def test_what_is_no_array_is_refused(self):
        with pytest.raises(TypeError, match="cannot read an array of type object"):
            monitor.as_array(object())

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


def recipes() -> list[str]:
    return re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)


class TestRecipes:
    """The examples of the documentation, as they stand there."""

    d_k, heads, tokens = 16, 4, 30

    def model(self):
        rng = np.random.default_rng(1)
        modules = {}
        for layer in range(2):
            for name in ("q_proj", "k_proj", "v_proj"):
                weight = rng.normal(size=(64, 64)) / 8
                modules[f"layers.{layer}.self_attn.{name}"] = Module(lambda x, w=weight: Tensor(x @ w, True))
        return modules

    def test_projections_are_captured_by_hooks(self, tmp_path, monkeypatch):
        modules = self.model()

        class Model:
            def named_modules(self):
                return modules.items()

            def __call__(self, batch):
                for module in modules.values():
                    module(batch)

        monkeypatch.chdir(tmp_path)
        batch = np.random.default_rng(2).normal(size=(3, self.tokens, 64))
        exec(recipes()[0], {"model": Model(), "batch": batch, "d_k": self.d_k})
        assert not any(module.hooks for module in modules.values())
        command = ["audit", "heads.npz", "--layout", "BSHD", "--scale", "1/sqrt(d_k)", "--stage", "init"]
        assert main([*command, "--csv", "a.csv"]) == 0
        assert len(Path("a.csv").read_text(encoding="utf-8").splitlines()) == 1 + 2 * self.heads

    def test_calls_of_attention_are_captured(self, tmp_path, monkeypatch):
        functional = types.ModuleType("torch.nn.functional")
        functional.scaled_dot_product_attention = original = lambda q, k, v, **options: v
        torch, nn = types.ModuleType("torch"), types.ModuleType("torch.nn")
        torch.nn, nn.functional = nn, functional
        for name, module in (("torch", torch), ("torch.nn", nn), ("torch.nn.functional", functional)):
            monkeypatch.setitem(sys.modules, name, module)

        def model(batch):
            for layer in range(3):
                q, k = batch + layer, batch[:, :2]
                functional.scaled_dot_product_attention(Tensor(q), Tensor(k), Tensor(k), scale=0.25)

        monkeypatch.chdir(tmp_path)
        batch = np.random.default_rng(2).normal(size=(1, 4, self.tokens, self.d_k))
        exec(recipes()[1], {"model": model, "batch": batch})
        assert functional.scaled_dot_product_attention is original
        assert main(["audit", "calls.npz", "--scale", "1/sqrt(d_k)", "--csv", "a.csv"]) == 0
        assert len(Path("a.csv").read_text(encoding="utf-8").splitlines()) == 1 + 3 * 4

    def test_checks_and_monitor_run_as_documented(self, capsys):
        exec(recipes()[2], {"logits": logits(), "mask": causal(40, 40)})
        names = {"sqrtdk": sqrtdk, "compute_logits": lambda: Tensor(logits())}
        names["run_backward"] = lambda scores: scores.backward(np.ones(scores.shape))
        exec(recipes()[3], names)
        assert "gradient_norm" in capsys.readouterr().out
