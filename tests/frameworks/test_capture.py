"""What a capture keeps, whatever computes attention, and that all is put back."""

import importlib
import math

import architectures
import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers as t
from torch import nn
from torch.nn.attention import flex_attention as flex
from torch.utils.checkpoint import checkpoint

import sqrtdk
from sqrtdk.heads.errors import InputError

ids = architectures.tokens()


def llama(**options):
    torch.manual_seed(0)
    return t.LlamaModel(t.LlamaConfig(**architectures.GROUPED, **options)).eval()


def reference(model, batch, path):
    """Return q and k as Llama computes them, from its own parts."""
    kept = {}
    layer = dict(model.named_modules())[path]
    handle = layer.register_forward_pre_hook(lambda module, args, options: kept.update(options), with_kwargs=True)
    with torch.no_grad():
        model(**batch)
        handle.remove()
        shape = (*kept["hidden_states"].shape[:-1], -1, 16)
        q, k = (proj(kept["hidden_states"]).view(shape).transpose(1, 2) for proj in (layer.q_proj, layer.k_proj))
        rotate = importlib.import_module("transformers.models.llama.modeling_llama").apply_rotary_pos_emb
        return [x.numpy() for x in rotate(q, k, *kept["position_embeddings"])]


class TestWhatIsKept:
    def test_queries_and_keys_after_rotation_before_grouping(self):
        model, batch = llama(), dict(input_ids=ids)
        call = sqrtdk.capture(model, batch, dtype="float32")["layers.1.self_attn"]
        q, k = reference(model, batch, "layers.1.self_attn")
        assert k.shape == (2, 2, 48, 16)
        np.testing.assert_allclose(call.q, q, rtol=1e-6)
        np.testing.assert_allclose(call.k, k, rtol=1e-6)
        assert (call.layer, call.module, call.d_model, call.causal) == (1, "LlamaAttention", 64, True)

    @pytest.mark.parametrize("padded", [False, True])
    def test_every_backend_tells_the_same(self, padded):
        batch = dict(input_ids=ids, attention_mask=torch.ones_like(ids))
        if padded:
            batch["attention_mask"][1, :9] = 0
        calls = []
        for backend in ("eager", "sdpa", "flex_attention"):
            model = llama(attn_implementation=backend)
            calls.append(sqrtdk.capture(model, batch)["layers.0.self_attn"])
        for call in calls[1:]:
            np.testing.assert_allclose(call.q, calls[0].q)
            assert (call.scale, call.scale_from, call.causal) == (0.25, "argument", not padded)
            rows = [block.head.blocks()[1].allowed for block in _blocks(calls[0])]
            for row, block in zip(rows, _blocks(call), strict=True):
                # A query of padding sees nothing, or all, and is no query.
                assert np.array_equal(row[9:], block.head.blocks()[1].allowed[9:])
        if padded:
            assert not np.asarray(calls[0].mask)[1, 0, 20, :9].any()

    def test_tokens_and_heads_are_drawn_from_a_seed(self):
        model, batch = llama(), dict(input_ids=ids)
        whole = sqrtdk.capture(model, batch)["layers.0.self_attn"]
        some = sqrtdk.capture(model, batch, tokens=10, heads=[1, 3])["layers.0.self_attn"]
        assert some.q.shape == (2, 2, 10, 16)
        assert some.k.shape == (2, 2, 48, 16)
        assert np.array_equal(some.q, whole.q[:, [1, 3]][:, :, some.positions])
        assert np.array_equal(some.k, whole.k[:, [0, 1]])
        assert [row["head"] for row in sqrtdk.capture(model, batch, heads=[1, 3]).audit().rows][:2] == [1, 3]
        places = [
            sqrtdk.capture(model, batch, tokens=10, seed=seed)["layers.0.self_attn"].positions for seed in (0, 0, 1)
        ]
        assert np.array_equal(places[0], places[1])
        assert not np.array_equal(places[0], places[2])

    def test_facts_of_a_sample_are_near_those_of_all(self):
        model, batch = llama(), dict(input_ids=ids)
        whole, some = (sqrtdk.capture(model, batch, tokens=n).audit().rows[0] for n in (None, 24))
        assert abs(whole["row_logit_std"] - some["row_logit_std"]) < 4 * some["row_logit_std_se"]
        assert whole["scale_source"] == some["scale_source"] == "captured"

    @pytest.mark.parametrize(("layers", "count"), [(0, 1), ("layers.1.*", 1), ([0, 1], 2), ("nothing", 0)])
    def test_layers_by_number_or_path(self, layers, count):
        assert len(sqrtdk.capture(llama(), dict(input_ids=ids), layers=layers)) == count

    def test_what_float16_cannot_hold_is_kept_and_counted(self):
        q, k = 1e5 * architectures.normal(1, 2, 8, 16), architectures.normal(1, 2, 8, 16)
        call = sqrtdk.capture(lambda q, k: F.scaled_dot_product_attention(q, k, k), (q, k))["attention"]
        assert call.overflow == int((q.abs() > 65504).sum()) > 0
        np.testing.assert_array_equal(call.q, q.numpy())
        assert call.k.dtype == np.float16

    def test_scores_where_they_can_be_seen(self):
        model = llama(attn_implementation="eager")
        call = sqrtdk.capture(model, dict(input_ids=ids), scores=True, dtype="float32")["layers.0.self_attn"]
        scores = 0.25 * call.q @ call.k.repeat(2, axis=1).swapaxes(2, 3)
        below = np.tri(48, dtype=bool)
        np.testing.assert_allclose(call.scores[..., below], scores[..., below], rtol=2e-5, atol=1e-6)

    def test_sinks_caps_and_windows(self):
        for name, fields in (("gpt-oss", {"sinks": 4, "window": 128}), ("Gemma 2", {"softcap": 50.0, "window": 16})):
            (one,) = (one for one in architectures.ARCHITECTURES if one.name == name)
            call = next(iter(sqrtdk.capture(*architectures.build(one)).values()))
            for field, value in fields.items():
                found = getattr(call, field)
                assert (len(found) if field == "sinks" else found) == value

    def test_a_bias_of_positions_does_not_hide_the_scale(self):
        bias = architectures.normal(1, 4, 20, 20)

        def attend(q, k):
            return F.softmax(q @ k.mT * 0.3 + bias, dim=-1)

        q, k = architectures.normal(3, 4, 20, 16), architectures.normal(3, 4, 20, 16) + 1
        call = sqrtdk.capture(attend, (q, k))["attention"]
        assert call.scale == pytest.approx(0.3, rel=1e-4)
        assert call.scale_from == "measured"
        alone = sqrtdk.capture(attend, (q[:1], k[:1]))["attention"]
        assert (alone.scale, alone.scale_from) == (None, "unknown")
        assert alone.scores.shape == (1, 4, 20, 20)

    @pytest.mark.parametrize("way", ["matmul", "bmm", "einsum", "in place", "q before", "softmax module"])
    def test_attention_by_hand(self, way):
        def attend(q, k):
            if way == "einsum":
                scores = torch.einsum("bqhd,bkhd->bhqk", q.transpose(1, 2), k.transpose(1, 2)) * 0.2
            elif way == "bmm":
                scores = torch.bmm(q.flatten(0, 1), k.flatten(0, 1).mT).view(2, 4, 20, 20) * 0.2
            elif way == "q before":
                scores = (q * 0.2) @ k.mT
            else:
                scores = torch.matmul(q, k.transpose(-1, -2))
                scores = scores.mul_(0.2) if way == "in place" else scores * 0.2
            scores = scores.masked_fill(torch.ones(20, 20, dtype=torch.bool).triu(1), -math.inf)
            return nn.Softmax(-1)(scores) if way == "softmax module" else scores.softmax(-1)

        q, k = architectures.normal(2, 4, 20, 16), architectures.normal(2, 4, 20, 16) + 1
        call = sqrtdk.capture(attend, (q, k), dtype="float32")["attention"]
        before = 0.2 if way == "q before" else 1.0
        np.testing.assert_allclose(call.q, before * q.numpy(), rtol=1e-6)
        assert call.scale == pytest.approx(0.2 / before, rel=1e-5)
        assert call.causal

    @pytest.mark.parametrize("inside", [True, False])
    @pytest.mark.parametrize("factor", [0.25, 1.0])
    def test_flex_attention_in_ones_own_code(self, inside, factor):
        """The scale may be its argument, or part of what is done to the scores, as a bias is."""
        bias = 2 * architectures.normal(4, 20, 20)

        def attend(q, k):
            mask = flex.create_block_mask(lambda b, h, i, j: i >= j, None, None, 20, 20, device="cpu")
            return flex.flex_attention(
                *(q, k, k, lambda z, b, h, i, j: z * (factor if inside else 1.0) + bias[h, i, j], mask),
                **{"scale": 1.0 if inside else factor, "enable_gqa": True},
            )

        q, k = architectures.normal(2, 4, 20, 16), architectures.normal(2, 2, 20, 16)
        cap = sqrtdk.capture(attend, (q, k))
        assert cap["attention"].scale == pytest.approx(factor, rel=1e-4)
        assert cap.audit().ok == (factor == 0.25)

    def test_keys_that_were_repeated_for_their_group_are_kept_once(self):
        module = architectures.ByHand()
        x = architectures.normal(2, 20, 64)
        call = sqrtdk.capture(module, x, dtype="float32")["attention"]
        k = module.k_proj(x).view(2, 20, 2, 16).transpose(1, 2)
        np.testing.assert_array_equal(call.k, k.detach().numpy())

    def test_a_product_that_enters_no_softmax_is_no_attention(self):
        assert not sqrtdk.capture(lambda x: (x @ x.mT).relu(), (architectures.normal(2, 8, 8),))

    def test_changed_projections_are_not_compared(self):
        class InPlace(architectures.ByHand):
            def forward(self, x):
                q, k = self.q_proj(x), self.k_proj(x)
                q = q.mul_(0.25).view(*x.shape[:2], 4, 16).transpose(1, 2)
                return F.scaled_dot_product_attention(
                    q, k.view(*x.shape[:2], 2, 16).transpose(1, 2), q, enable_gqa=True
                )

        call = sqrtdk.capture(InPlace(), architectures.normal(1, 20, 64))["attention"]
        assert call.gains == (None, 1.0)


def _blocks(call):
    from types import SimpleNamespace

    from sqrtdk.heads.calls import Capture
    from sqrtdk.heads.dumps import dump_of

    return [SimpleNamespace(head=head) for head in dump_of(Capture({call.path: call}).arrays()).heads]


class TestAround:
    def test_a_loop_of_ones_own(self):
        model = llama()
        with sqrtdk.capture(model) as cap:
            for _ in range(3):
                model(input_ids=ids)
        assert {call.calls for call in cap.values()} == {3}

    def test_training_with_checkpointing_is_counted_once(self):
        model = architectures.Blocks(architectures.ByHand, lambda layer, x: checkpoint(layer, x, use_reentrant=False))
        optimiser = torch.optim.SGD(model.parameters(), 0.1)
        with sqrtdk.capture(model) as cap:
            for _ in range(2):
                model(architectures.normal(2, 20, 64)).square().mean().backward()
                optimiser.step()
        assert [call.calls for call in cap.values()] == [2, 2]
        assert list(cap) == ["layers.0", "layers.1"]

    def test_a_compiled_model(self):
        model = llama()
        cap = sqrtdk.capture(torch.compile(model), dict(input_ids=ids))
        assert list(cap) == ["layers.0.self_attn", "layers.1.self_attn"]

    def test_generation(self):
        model = t.LlamaForCausalLM(t.LlamaConfig(**architectures.GROUPED))
        with sqrtdk.capture(model) as cap:
            model.generate(ids[:1, :5], max_new_tokens=3, do_sample=False)
        assert {call.calls for call in cap.values()} == {3}

    def test_several_calls_of_one_module_have_places_of_their_own(self):
        class Twice(nn.Module):
            def forward(self, x):
                return F.scaled_dot_product_attention(F.scaled_dot_product_attention(x, x, x), x, x, scale=0.5)

        cap = sqrtdk.capture(nn.Sequential(Twice()), architectures.normal(1, 2, 8, 16))
        assert {path: call.scale for path, call in cap.items()} == {"0": 0.25, "0#2": 0.5}

    @pytest.mark.parametrize("need_weights", [True, False])
    def test_multi_head_attention_answers_as_ever(self, need_weights):
        torch.manual_seed(0)
        module = nn.MultiheadAttention(64, 4, dropout=0.5)
        x = architectures.normal(9, 2, 64)
        answers = []
        for watched in (False, True):
            torch.manual_seed(1)
            if watched:
                with sqrtdk.capture(module):
                    answers.append(module(x, x, x, need_weights=need_weights))
            else:
                answers.append(module(x, x, x, need_weights=need_weights))
        assert torch.equal(answers[0][0], answers[1][0])

    def test_nothing_seen_is_said(self, tmp_path):
        cap = sqrtdk.capture(nn.Linear(4, 4), architectures.normal(2, 4))
        assert "no attention was seen" in cap.notes[0]
        for use in (cap.audit, lambda: cap.save(tmp_path / "a.npz")):
            with pytest.raises(InputError, match="nothing was captured; no attention was seen"):
                use()

    def test_layers_that_take_nothing_are_told_from_no_attention(self):
        cap = sqrtdk.capture(llama(), dict(input_ids=ids), layers="decoder.*")
        with pytest.raises(InputError, match="takes none of layers.0.self_attn, layers.1.self_attn$"):
            cap.audit()

    @pytest.mark.parametrize("fused", [True, False])
    def test_inference_mode(self, fused):
        implementation = dict(attn_implementation="sdpa" if fused else "eager")
        with torch.inference_mode():
            cap = sqrtdk.capture(llama(**implementation), dict(input_ids=ids))
        assert [call.gains for call in cap.values()] == [(1.0, 1.0)] * 2
        assert cap.audit(stage="init").ok


class TestPutBack:
    def test_all_is_as_before_whatever_the_model_raises(self):
        interface = t.modeling_utils.AttentionInterface
        model = llama().train()
        model.layers[0].eval()
        before = (F.scaled_dot_product_attention, dict(vars(interface)), [m.training for m in model.modules()])

        class Stop(Exception):
            pass

        def fail(*args):
            raise Stop

        handle = model.norm.register_forward_pre_hook(fail)
        with pytest.raises(Stop):
            sqrtdk.capture(model, dict(input_ids=ids))
        handle.remove()
        after = (F.scaled_dot_product_attention, dict(vars(interface)), [m.training for m in model.modules()])
        assert before == after
        assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
        assert model(input_ids=ids).last_hidden_state.requires_grad
        with pytest.raises(TypeError):
            sqrtdk.capture(nn.MultiheadAttention(4, 2), dict(query=ids))
        assert F.scaled_dot_product_attention is before[0]

    @pytest.mark.parametrize("options", [dict(tokens=0), dict(heads=0), dict(heads=[9]), dict(dtype="int8")])
    def test_options_that_do_not_fit(self, options):
        with pytest.raises(InputError, match=next(iter(options))):
            sqrtdk.capture(llama(), dict(input_ids=ids), **options)

    def test_the_answer_is_not_changed(self):
        model = llama()
        with torch.no_grad():
            plain = model(input_ids=ids).last_hidden_state
            with sqrtdk.capture(model):
                watched = model(input_ids=ids).last_hidden_state
        assert torch.equal(plain, watched)


class TestSavedTensors:
    def test_files_of_pytorch(self, tmp_path):
        q, k = architectures.normal(1, 2, 30, 64), architectures.normal(1, 2, 30, 64) + 1
        torch.save({"layers": [{"q": q.bfloat16(), "k": k}], "scale": 0.125}, tmp_path / "a.pt")
        found = sqrtdk.audit(tmp_path / "a.pt")
        assert found.ok
        assert found.rows[0]["scale_source"] == "captured"

    def test_what_would_be_executed_is_refused(self, tmp_path):
        torch.save({"q": nn.Linear(2, 2)}, tmp_path / "a.pt")
        with pytest.raises(InputError, match="holds more than tensors"):
            sqrtdk.audit(tmp_path / "a.pt")
