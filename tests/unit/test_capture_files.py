"""Files of captures and of other tools: what stands beside q and k, names, layouts, and the verdict as an object."""

import json
import re
import subprocess
import sys
import types
from pathlib import Path

import audit_files
import numpy as np
import pytest

import sqrtdk
from sqrtdk.__main__ import main
from sqrtdk.heads.calls import Call, Capture
from sqrtdk.heads.dumps import dump_of, read_dumps
from sqrtdk.heads.errors import InputError
from sqrtdk.heads.names import ROLES

ROOT = Path(__file__).parents[2]


def call(path="layers.0.attn", *, d=64, gain=1.0, n=40, **options):
    rng = np.random.default_rng(7)
    q, k = rng.normal(size=(2, 1, 2, n, d))
    return Call(path, gain * q, k, **({"scale": d**-0.5, "scale_from": "argument"} | options))


def capture(*calls) -> Capture:
    return Capture({one.path: one for one in calls})


def judged(*calls, **options):
    return capture(*calls).audit(**options)


def kinds(judgement) -> set:
    return {(group.finding.level, group.finding.kind, group.finding.explanations) for group in judgement.bugs}


class TestScaleAtWork:
    @pytest.mark.parametrize("stored", [True, False])
    def test_it_is_checked_without_an_option(self, tmp_path, stored):
        for scale, ok in ((1 / 8, True), (1.0, False), (1 / 64, False)):
            found = capture(call(scale=scale))
            judgement = sqrtdk.audit(found.save(tmp_path / "a.npz")) if stored else found.audit()
            assert judgement.ok == ok
            assert "captured at work" in str(judgement)
            assert "not checked." not in str(judgement).splitlines()[0]

    def test_what_was_only_declared_is_said_first(self, tmp_path, capsys):
        q, k = audit_files.normal(d=64)
        np.savez(tmp_path / "a.npz", q=q, k=k)
        for options, word in ((["--scale", "d_k**-0.5"], "declared"), ([], "assumed")):
            main(["audit", str(tmp_path / "a.npz"), *options])
            assert capsys.readouterr().out.splitlines()[0].endswith(f"The scale is as {word}, not checked.")

    def test_a_factor_before_attention_counts(self):
        sound = judged(call(gain=1 / 8, scale=1.0, gains=(1 / 8, 1.0)))
        assert sound.ok
        twice = judged(call(gain=1 / 8, gains=(1 / 8, 1.0)))
        ((level, kind, names),) = kinds(twice)
        assert (level, kind) == ("bug", "wrong scale")
        assert "applied twice" in names
        assert "q was multiplied by 0.125 before" in twice.bugs[0].finding.evidence

    def test_the_logits_are_the_same_however_the_factor_is_split(self):
        rows = [
            judged(call(gain=gain, scale=scale, gains=(gain, 1.0))).rows[0]
            for gain, scale in ((1.0, 1 / 8), (1 / 8, 1.0))
        ]
        for name in ("logit_max", "entropy", "row_score_std"):
            assert rows[0][name] == pytest.approx(rows[1][name], rel=1e-12)

    def test_what_the_configuration_asks_for_is_right(self):
        asked = (1 / 16, "query_pre_attn_scalar = 256")
        assert judged(call(scale=1 / 16, expected=asked)).ok
        assert not judged(call(d=48, expected=asked)).ok
        # A convention that is declared stands above it.
        assert not judged(call(scale=1 / 16, expected=asked), convention="1/d_k").ok

    def test_another_scale_than_declared_is_a_bug(self):
        found = judged(call(), scale="1/d_k")
        assert {kind for _, kind, _ in kinds(found)} == {"other than declared"}

    def test_one_scale_for_each_layer_and_head(self):
        names = {"layers.0": [1 / 8, 1.0], "layers.1": [1.0, 1 / 8]}
        arrays = {}
        for path, scales in names.items():
            q, k = audit_files.normal(d=64)
            arrays |= {f"{path}.q": q, f"{path}.k": k, f"{path}.scale": np.array(scales)}
        assert [row["verdict"] for row in sqrtdk.audit(arrays).rows] == ["healthy", "bug", "bug", "healthy"]


class TestBeside:
    def test_causality_window_and_places(self):
        q, k = audit_files.normal(n=6, m=8, d=8)
        arrays = {"q": q, "k": k, "scale": 0.3}
        (block,) = dump_of(arrays | {"causal": True}).heads[0].blocks()
        assert np.array_equal(block.allowed, np.tri(6, 8, 2, dtype=bool))
        (block,) = dump_of(arrays | {"causal": True, "window": 3}).heads[0].blocks()
        assert np.array_equal(block.allowed, np.tri(6, 8, 2, dtype=bool) & ~np.tri(6, 8, -1, dtype=bool))
        places = np.array([0, 1, 2, 4, 6, 7])
        (block,) = dump_of(arrays | {"causal": True, "positions": places}).heads[0].blocks()
        assert np.array_equal(block.allowed, np.arange(8) <= places[:, None])
        (block,) = dump_of(arrays).heads[0].blocks()
        assert block.allowed is None

    def test_a_divisor_is_one(self):
        q, k = audit_files.normal(d=64)
        assert sqrtdk.audit({"blocks.0.attn.q": q, "blocks.0.attn.k": k, "blocks.0.attn.attn_scale": 8.0}).ok
        assert not sqrtdk.audit({"blocks.0.attn.q": q, "blocks.0.attn.k": k, "blocks.0.attn.attn_scale": 0.125}).ok

    def test_a_scale_for_all_layers(self):
        q, k = audit_files.normal(d=64)
        arrays = {f"layers.{i}.{name}": x for i in range(2) for name, x in (("q", q), ("k", k))}
        assert sqrtdk.audit(arrays | {"scale": 0.125}).ok
        assert len(sqrtdk.audit(arrays | {"scale": 1.0}).bugs[0].places) == 4

    def test_scales_of_normalisations_are_none_of_attention(self, tmp_path):
        q, k = audit_files.normal(d=64)
        np.savez(tmp_path / "a.npz", **{"l0.q": q, "l0.k": k, "l0.norm.scale": np.ones(64), "l0.q_norm.scale": 2.0})
        assert "assumed" in str(sqrtdk.audit(tmp_path / "a.npz")).splitlines()[0]

    @pytest.mark.parametrize(
        "beside",
        [
            *({"scale": np.ones(3)}, {"gains": 1.0}, {"gains": [0.0, 1.0]}, {"attn_scale": 0.0}, {"window": 0}),
            *({"softcap": 0.0}, {"softcap": -5.0}, {"expected": 0.0}, {"expected": -1.0}),
            *({"positions": np.arange(40) - 1}, {"positions": np.arange(40) + 0.5}),
        ],
    )
    def test_what_does_not_fit_is_named(self, beside):
        q, k = audit_files.normal(d=64)
        with pytest.raises(InputError, match=f"'{next(iter(beside))}'"):
            dump_of({"q": q, "k": k} | beside)

    def test_words_that_are_no_description(self, tmp_path):
        q, k = audit_files.normal(d=64)
        for words in (
            "{",
            "[]",
            '{"calls": 3}',
            '{"calls": {"a": 1}}',
            '{"notes": 5}',
            '{"calls": {"a": {"heads": 5}}}',
        ):
            np.savez(tmp_path / "a.npz", q=q, k=k, sqrtdk=np.array(words))
            with pytest.raises(InputError, match="no description of a capture"):
                read_dumps([tmp_path / "a.npz"])

    @pytest.mark.parametrize(
        ("words", "message"), [({"layout": "XYZ"}, "layout XYZ"), ({"calls": {"": {"heads": [3]}}}, "heads")]
    )
    def test_words_that_do_not_fit(self, words, message):
        q, k = audit_files.normal(d=64)
        with pytest.raises(InputError, match=message):
            dump_of({"q": q, "k": k, "sqrtdk": json.dumps(words)})

    def test_a_layout_in_lower_case(self):
        q, k = (x.swapaxes(0, 1) for x in audit_files.normal(d=64))
        judgement = sqrtdk.audit({"q": q, "k": k, "sqrtdk": json.dumps({"layout": "shd"})}, scale="d_k**-0.5")
        assert [head.row["n_keys"] for head in judgement.heads] == [40, 40]

    def test_numbers_beyond_float16_are_told(self):
        assert any("3 numbers of" in words for words in judged(call(overflow=3)).assumed)


class TestNames:
    def test_an_encoder_and_a_decoder(self):
        found = judged(call("encoder.layers.0.attn"), call("decoder.layers.0.attn", scale=1.0))
        assert [row["module"] for row in found.rows] == 2 * ["encoder.layers.0.attn"] + 2 * ["decoder.layers.0.attn"]
        assert "where: arrays, decoder.layers.0.attn heads 0–1" in str(found)
        q, k = audit_files.normal(d=64)
        names = {f"{part}.0.{name}": x for part in ("a", "b") for name, x in (("q", q), ("k", k))}
        assert {head.module for head in dump_of(names).heads} == {"a.0", "b.0"}

    def test_scores_beside_projections(self):
        q, k = audit_files.normal(d=64)
        scores = q @ k.swapaxes(1, 2)
        for ending in ("_proj", ".proj", "_lin"):
            names = {f"layers.3.q{ending}": q, f"layers.3.k{ending}": k, "layers.3.scores": scores}
            found = sqrtdk.audit(names)
            assert {row["scale_source"] for row in found.rows} == {"measured"}
            assert not found.ok

    def test_transformer_lens(self, tmp_path):
        rng = np.random.default_rng(1)
        q, k = rng.normal(size=(2, 1, 30, 3, 16))
        scores = np.einsum("bqhd,bkhd->bhqk", q, k) / 4
        at = "blocks.2.attn.hook_"
        found = sqrtdk.audit({f"{at}q": q, f"{at}k": k, f"{at}attn_scores": scores})
        assert [(row["layer"], row["head"]) for row in found.rows] == [(2, 0), (2, 1), (2, 2)]
        assert found.rows[0]["measured_factor"] == pytest.approx(0.25)
        rotated = {f"{at}rot_q": q, f"{at}rot_k": k}
        found = sqrtdk.audit(rotated | {f"{at}q": q + 1, f"{at}k": k + 1, f"{at}attn_scores": scores})
        assert found.rows[0]["measured_factor"] == pytest.approx(0.25)
        with pytest.raises(InputError, match="taken before rotary positions; save hook_rot_q"):
            sqrtdk.audit({f"{at}q": q, f"{at}k": k, f"{at}rot_k": k})

    @pytest.mark.parametrize("layout", ["sbhd", "SHD", "bhsd", "LBSHD"])
    def test_layouts_in_any_case(self, layout):
        sizes = {"L": 2, "B": 3, "H": 4, "S": 5, "D": 6}
        letters = layout.upper()
        q = np.random.default_rng(1).normal(size=[sizes[letter] for letter in letters])
        head = dump_of({"q": q, "k": 2 * q}, layout).heads[-1]
        index = {"L": 1, "B": 0, "H": 3}
        where = tuple(index.get(letter, slice(None)) for letter in letters)
        assert np.array_equal(head.blocks()[0].q, q[where])
        assert np.array_equal(head.blocks()[0].k, 2 * q[where])

    def test_a_batch_comes_before_layers_and_that_is_said(self):
        q = np.random.default_rng(1).normal(size=(3, 2, 10, 8))
        dump = dump_of({"q": q, "k": q})
        assert len(dump.heads) == 2
        assert any("--layout LHSD" in words for words in dump.assumed)
        assert len(dump_of({"q": q, "k": q}, "LHSD").heads) == 6


class TestManyScores:
    def test_queries_stand_for_all(self, monkeypatch):
        q, k = audit_files.normal(n=600, d=64)
        whole = sqrtdk.audit({"q": q, "k": k, "scale": 0.125, "causal": True}).rows[0]
        monkeypatch.setattr("sqrtdk.heads.dumps.MOST", 600 * 600 // 4)
        found = sqrtdk.audit({"q": q, "k": k, "scale": 0.125, "causal": True})
        assert any("each 4th stands for all" in words for words in found.assumed)
        some = found.rows[0]
        assert some["n_scores"] < whole["n_scores"] / 3
        for name in ("row_logit_std", "entropy", "max_weight"):
            assert abs(some[name] - whole[name]) < 4 * some[f"{name}_se"]


class TestJudgement:
    def test_it_says_what_the_command_says(self, tmp_path, capsys):
        path = capture(call(scale=1.0)).save(tmp_path / "a.npz")
        found = sqrtdk.audit(path)
        assert main(["audit", str(path), "--json"]) == 1
        told = json.loads(capsys.readouterr().out)
        ours = json.loads(found.to_json())
        assert told == ours
        assert told["findings"][0]["explanations"][0] == "no scale"
        assert main(["audit", str(path), "--quiet"]) == 1
        assert capsys.readouterr().out == "2 heads: 2 with a bug, 0 with notes only.\n"

    def test_its_text_is_one_screen(self):
        found = judged(*(call(f"layers.{i}.attn", scale=0.3) for i in range(60)))
        assert len(str(found).splitlines()) == 40
        assert "more lines" in str(found)

    def test_what_was_not_checked(self):
        assert any("q and k carries" in words for words in judged(call()).not_checked)
        assert not any("carries" in words for words in judged(call(gains=(1.0, 1.0))).not_checked)
        assert any("k carries" in words for words in judged(call(gains=(1.0, None))).not_checked)
        assert any("stage init" in words for words in judged(call()).not_checked)
        assert not any("stage init" in words for words in judged(call(), stage="init").not_checked)

    def test_options_are_those_of_the_command(self):
        q, k = audit_files.normal(d=64)
        assert sqrtdk.audit({"q": q, "k": k}, scale=0.125, convention="1/8").ok
        assert not sqrtdk.audit({"q": q, "k": k}, scale=lambda d_k, n_keys: 1.0).ok
        with pytest.raises(InputError, match="stage 'late'"):
            sqrtdk.audit({"q": q, "k": k}, stage="late")
        with pytest.raises(InputError, match="no arrays"):
            sqrtdk.audit({})

    @pytest.mark.parametrize("source", [None, 5, [], np.ones((2, 4, 4)), [np.ones(3)]])
    def test_what_is_no_source_is_refused(self, source):
        with pytest.raises(InputError, match="is nothing to judge: give a file"):
            sqrtdk.audit(source)

    @pytest.mark.parametrize(
        "options", [{"d_model": -1}, {"num_heads": 0}, {"d_v": "a"}, {"mask": "nothing.npy"}, {"layout": "XYZ"}]
    )
    def test_options_that_do_not_fit_are_named(self, options):
        q, k = audit_files.normal(d=64)
        name, value = next(iter(options.items()))
        with pytest.raises(InputError, match=f"{value}" if isinstance(value, str) else name):
            sqrtdk.audit({"q": q, "k": k}, **options)

    def test_the_mask_of_arrays_may_be_a_file(self, tmp_path):
        q, k = audit_files.normal(d=64)
        np.save(tmp_path / "mask.npy", np.tri(40, dtype=bool))
        given = sqrtdk.audit({"q": q, "k": k}, scale=0.125, mask=str(tmp_path / "mask.npy"))
        assert (
            given.rows[0]["n_scores"] == sqrtdk.audit({"q": q, "k": k}, scale=0.125, mask="causal").rows[0]["n_scores"]
        )


class TestCapture:
    def test_it_is_a_mapping_from_paths_to_calls(self):
        found = capture(call("encoder.0"), call("decoder.0"))
        assert list(found) == ["encoder.0", "decoder.0"]
        assert found["decoder.0"].q.shape == (1, 2, 40, 64)
        assert list(found.named("dec*")) == ["decoder.0"]
        assert "scale=0.125 (argument)" in repr(found)
        with pytest.raises(KeyError, match=r"seen were encoder\.0, decoder\.0"):
            found["mine"]

    def test_what_is_not_saved(self, tmp_path):
        with pytest.raises(InputError, match="nothing was captured"):
            Capture().save(tmp_path / "a.npz")
        with pytest.raises(InputError, match="saved as .npz"):
            capture(call()).save(tmp_path / "a.pt")

    def test_without_pytorch_the_message_names_the_way(self, tmp_path):
        code = "import sys; sys.modules['torch'] = None\nimport sqrtdk\ntry: sqrtdk.capture(print)\n"
        code += "except ImportError as error: print(error)\n"
        code += "try: sqrtdk.audit('a.pt')\nexcept sqrtdk.InputError as error: print(error)"
        (tmp_path / "a.pt").write_bytes(b"PK")
        environment = {"PYTHONPATH": str(ROOT / "scripts")}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path, check=True
        )
        assert "needs PyTorch, which is not installed" in done.stdout
        assert "a.pt: PyTorch reads this" in done.stdout


class TestFormatPage:
    """The examples of docs/file-format.md, as they stand there; JAX is a stand-in of NumPy."""

    numpy, jax = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "file-format.md").read_text(encoding="utf-8"), re.DOTALL
    )

    def test_every_name_of_the_table_is_read_and_every_name_that_is_written_is_in_it(self):
        text = (ROOT / "docs" / "file-format.md").read_text(encoding="utf-8")
        listed = set(re.findall(r"^\| `<path>\.(\w+)`", text, re.MULTILINE))
        assert listed == ({*ROLES} - {"divisor"})
        whole = call(
            mask=np.ones((1, 1, 1, 40), bool), causal=True, window=3, softcap=1.0, sinks=np.ones(2), gains=(1.0, 1.0),
            scores=np.ones((1, 2, 40, 40)), positions=np.arange(40), expected=(0.1, "x"),
        )  # fmt: skip
        assert set(whole.arrays()) == listed

    @pytest.mark.parametrize("scale", [1 / 8, 1.0])
    def test_numpy(self, tmp_path, monkeypatch, scale):
        monkeypatch.chdir(tmp_path)
        captured = [np.random.default_rng(layer).normal(size=(2, 1, 3, 30, 64)) for layer in range(2)]
        exec(self.numpy, {"captured": captured, "scale": scale})
        found = sqrtdk.audit("heads.npz")
        assert len(found.rows) == 6
        assert found.ok == (scale == 1 / 8)
        assert found.rows[0]["n_scores"] == 30 * 31 // 2 - 1

    @pytest.mark.parametrize("scale", [1 / 8, 1.0])
    def test_jax(self, tmp_path, monkeypatch, scale):
        jax = types.ModuleType("jax")
        jax.debug = types.SimpleNamespace(callback=lambda function, *arrays: function(*arrays))
        jax.nn = types.SimpleNamespace(dot_product_attention=lambda q, k, v, scale, is_causal: v)
        jax.effects_barrier = lambda: None
        monkeypatch.setitem(sys.modules, "jax", jax)
        monkeypatch.chdir(tmp_path)
        q, k = np.random.default_rng(1).normal(size=(2, 1, 30, 3, 64))
        exec(self.jax, {"run_model": lambda attention: [attention(layer, q, k, k, scale) for layer in range(2)]})
        found = sqrtdk.audit("heads.npz")
        assert [row["n_queries"] for row in found.rows] == [30] * 6
        assert found.ok == (scale == 1 / 8)
