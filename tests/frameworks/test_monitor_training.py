"""The monitor in real training loops: compiled, in half precision, with checkpoints, over ranks, and blowing up."""

import gc
import math
import time
import warnings

import architectures
import numpy as np
import pytest
import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing
import torch.nn.functional as F
import transformers as t
from torch import nn
from torch.utils.checkpoint import checkpoint

import sqrtdk
from sqrtdk.heads import scores


class Fused(nn.Module):
    """Causal attention through PyTorch's fused function."""

    def __init__(self, gain: float = 1.0):
        super().__init__()
        self.qkv = nn.Linear(64, 192, bias=False)
        self.out = nn.Linear(64, 64, bias=False)
        with torch.no_grad():
            self.qkv.weight[:128] *= gain

    def heads(self, x):
        return [y.unflatten(-1, (4, 16)).transpose(1, 2) for y in self.qkv(x).chunk(3, dim=-1)]

    def forward(self, x):
        return self.out(F.scaled_dot_product_attention(*self.heads(x), is_causal=True).transpose(1, 2).flatten(2))


def blocks(make=Fused, **options):
    torch.manual_seed(0)
    return architectures.Blocks(make, **options)


def train(model, steps: int, monitor, x=None, lr=1e-3, called=None):
    x = architectures.normal(4, 40, 64) if x is None else x
    optimiser, losses = torch.optim.SGD(model.parameters(), lr), []
    for _ in range(steps):
        loss = (model if called is None else called)(x).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        monitor.step()
        losses.append(loss.item())
    return losses


@pytest.fixture(autouse=True)
def nothing_stays():
    yield
    for monitor in [found for found in gc.get_objects() if type(found) is sqrtdk.AttentionMonitor]:
        monitor.detach()
    assert not torch.overrides._get_current_function_mode_stack()


class TestAttached:
    def test_fused_attention_is_measured_as_it_is(self):
        model, monitor = blocks(), sqrtdk.AttentionMonitor(rows=None)
        monitor.attach(model)
        x = architectures.normal(4, 40, 64)
        model(x)
        q, k, _ = model.layers[0].heads(F.layer_norm(x, (64,)))
        logits = (q @ k.mT / 4).masked_fill(torch.ones(40, 40, dtype=torch.bool).triu(1), -math.inf)
        wanted = scores.measure(logits, None, None)
        found = monitor.latest()
        assert found["attention/layer_00/max_logit"] == pytest.approx(wanted.largest, rel=1e-5)
        assert found["attention/layer_00/entropy"] == pytest.approx(wanted.entropy, rel=1e-5)
        monitor.detach()
        model(x + 1)
        assert monitor.latest() == found

    @pytest.mark.parametrize("name", ["Llama", "gpt-oss", "Gemma 2", "Swin", "Bloom (ALiBi)", "Whisper", "by hand"])
    def test_designs(self, name):
        (one,) = (one for one in architectures.ARCHITECTURES if one.name == name)
        model, batch = architectures.build(one)
        monitor = sqrtdk.AttentionMonitor()
        monitor.attach(model)
        model(**batch) if isinstance(batch, dict) else model(batch)
        monitor.step()
        monitor.detach()
        assert len(monitor.statistics) == one.modules
        assert all(math.isfinite(value) for value in monitor.latest(heads=True).values())
        assert monitor.problems() == []

    def test_a_compiled_model_is_compiled_between_measured_steps(self):
        model, monitor = blocks(), sqrtdk.AttentionMonitor(every=3)
        graphs = []

        def backend(graph, inputs):
            graphs.append(graph)
            return graph

        fast = torch.compile(model, backend=backend)
        monitor.attach(fast)
        losses = train(model, 7, monitor, called=fast)
        assert graphs
        assert {row["count"] for row in monitor.report() if row["statistic"] == "entropy"} == {3}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert losses == pytest.approx(train(blocks(), 7, sqrtdk.AttentionMonitor()), rel=1e-4)

    @pytest.mark.parametrize("reentrant", [True, False])
    def test_checkpoints_are_counted_once(self, reentrant):
        model = blocks(architectures.ByHand, call=lambda layer, x: checkpoint(layer, x, use_reentrant=reentrant))
        monitor = sqrtdk.AttentionMonitor()
        monitor.attach(model)
        train(model, 3, monitor, architectures.normal(2, 20, 64).requires_grad_())
        assert {row["count"] for row in monitor.report() if row["statistic"] == "entropy"} == {3}

    @pytest.mark.parametrize("reentrant", [True, False])
    def test_checkpoints_in_ones_own_code_are_counted_once(self, reentrant):
        monitor = sqrtdk.AttentionMonitor()
        x = architectures.normal(2, 3, 20, 16).requires_grad_()

        def attend(x):
            return monitor.watch("a", x @ x.mT / 4).softmax(-1) @ x

        for _ in range(2):
            checkpoint(attend, x, use_reentrant=reentrant).square().mean().backward()
            monitor.step()
        rows = {row["statistic"]: row["count"] for row in monitor.report()}
        assert (rows["entropy"], rows["gradient_norm"]) == (2, 2)

    def test_gradients_of_logits_that_are_seen(self):
        model, monitor = blocks(architectures.ByHand), sqrtdk.AttentionMonitor()
        monitor.attach(model)
        train(model, 2, monitor)
        assert monitor.latest()["attention/gradient_norm"] > 0

    def test_half_precision_with_a_scaler(self):
        model = blocks(architectures.ByHand)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40, growth_interval=3)
        monitor = sqrtdk.AttentionMonitor(scaler=scaler)
        monitor.attach(model)
        optimiser = torch.optim.SGD(model.parameters(), 1e-3)
        for _ in range(40):
            with torch.autocast("cpu", torch.float16):
                loss = model(architectures.normal(2, 20, 64)).square().mean()
            optimiser.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimiser)
            scaler.update()
            monitor.step()
        rows = {row["statistic"]: row for row in monitor.report()}
        assert rows["gradients_left_out"]["count"] > 0
        assert math.isfinite(rows["gradient_norm"]["mean"])
        assert 0 < rows["gradient_norm"]["last"] < 1
        assert {problem.kind for problem in monitor.problems()} == {"gradient"}

    def test_two_monitors_do_not_mind_each_other(self):
        model, monitors = blocks(), [sqrtdk.AttentionMonitor(every=every) for every in (1, 2)]
        for monitor in monitors:
            monitor.attach(model)
        for _ in range(3):
            model(architectures.normal(2, 20, 64))
            for monitor in monitors:
                monitor.step()
        counts = [{row["count"] for row in monitor.report()} for monitor in monitors]
        assert counts == [{3}, {2}]

    def test_all_is_put_back(self):
        model, monitor = blocks(), sqrtdk.AttentionMonitor()
        before = dict(vars(t.modeling_utils.AttentionInterface))
        monitor.attach(model)
        monitor.attach(model)
        monitor.detach()
        monitor.detach()
        assert dict(vars(t.modeling_utils.AttentionInterface)) == before
        assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
        assert not torch.overrides._get_current_function_mode_stack()


class InHalf(architectures.ByHand):
    """Attention whose scores are float16, as half precision has them, and overflow there."""

    def forward(self, x):
        batch, n, _ = x.shape
        q = self.q_proj(x).view(batch, n, 4, 16).transpose(1, 2)
        k, v = (
            proj(x).view(batch, n, 2, 16).transpose(1, 2).repeat_interleave(2, dim=1)
            for proj in (self.k_proj, self.v_proj)
        )
        logits = (q.half() @ k.half().mT) * self.scaling
        logits = logits.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -math.inf)
        return (logits.float().softmax(-1) @ v).transpose(1, 2).reshape(batch, n, -1)


def test_a_blow_up_is_told_long_before_the_loss_is_lost():
    """Adam at a hundred times its usual rate, to copy the token before: logits grow until float16 cannot hold them."""
    model = nn.Sequential(blocks(InHalf), nn.Linear(64, 64))
    monitor, noise, lost = sqrtdk.AttentionMonitor(), torch.Generator().manual_seed(1), None
    monitor.attach(model)
    optimiser = torch.optim.Adam(model.parameters(), 0.1)
    for step in range(1000):
        x = torch.randn(4, 40, 64, generator=noise)
        loss = (model(x) - x.roll(1, 1)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        monitor.step()
        if not math.isfinite(loss.item()):
            lost = step
            break
    told = {problem.kind: problem for problem in reversed(monitor.problems())}
    print(f"\nthe loss was lost at step {lost}; the monitor had said:", *told.values(), sep="\n  ")
    assert told["entropy"].step <= told["max_logit"].step <= lost - 50
    assert told["nonfinite"].step <= lost
    assert told["nonfinite"].head is not None


def _rank(rank: int, path: str, queue) -> None:
    distributed.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)
    monitor = sqrtdk.AttentionMonitor()
    z = np.random.default_rng(1).normal(size=(2, 30, 30)) * (1 + rank)
    monitor.observe("layers.0", z)
    queue.put((rank, monitor.latest(), monitor.latest(reduced=True)))
    distributed.destroy_process_group()


def test_ranks_are_brought_together(tmp_path):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    running = [context.Process(target=_rank, args=(rank, str(tmp_path / "store"), queue)) for rank in range(2)]
    for process in running:
        process.start()
    (_, one, reduced), (_, other, same) = sorted(queue.get(timeout=120) for _ in running)
    for process in running:
        process.join()
    assert reduced == same
    assert reduced["attention/max_logit"] == max(one["attention/max_logit"], other["attention/max_logit"])
    mean = (one["attention/entropy"] + other["attention/entropy"]) / 2
    assert reduced["attention/entropy"] == pytest.approx(mean)


@pytest.mark.parametrize("tokens", [128, 512, 1024])
def test_what_a_measured_step_costs(tokens, capsys):
    torch.manual_seed(0)
    model = t.LlamaModel(t.LlamaConfig(**(architectures.GROUPED | dict(hidden_size=256, num_hidden_layers=4))))
    ids = torch.randint(0, architectures.WORDS, (2, tokens))

    def seconds(monitor) -> float:
        times = []
        for _ in range(4):
            start = time.process_time()
            model(input_ids=ids).last_hidden_state.square().mean().backward()
            if monitor is not None:
                monitor.step()
            times.append(time.process_time() - start)
        return min(times[1:])

    plain = seconds(None)
    monitor = sqrtdk.AttentionMonitor()
    monitor.attach(model)
    watched = seconds(monitor)
    monitor.detach()
    with capsys.disabled():
        print(
            f"\n{tokens} tokens: {1e3 * plain:.0f} ms a step, measured {1e3 * watched:.0f} ms: × {watched / plain:.2f}"
        )
    assert watched < 4 * plain
