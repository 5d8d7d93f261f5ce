"""Scales: what is no normalisation, what the start shows, explanations by name, findings by factor, and sharp heads."""

import math

import audit_files
import numpy as np
import pytest
from audit_cases import STANDARD, exit_code, found, heads, kinds

from sqrtdk.heads.ellipsoids import on_ellipsoid
from sqrtdk.heads.judgement import audit

CAUSAL = np.tri(48, dtype=bool)


class TestEllipsoids:
    @pytest.mark.parametrize("distinct", [30, 40, 64, 100])
    @pytest.mark.parametrize("rotated", [True, False])
    def test_repeated_tokens_lie_on_none(self, tmp_path, distinct, rotated):
        rng = np.random.default_rng(distinct)
        tokens = rng.integers(0, distinct, 256)
        q, k = rng.normal(size=(2, 2, distinct, 64))[:, :, tokens]
        if rotated:
            q, k = _rotated(q), _rotated(k)
        judgement = audit({"q": q, "k": k}, scale="none")
        assert ("bug", "wrong scale", ("no scale", "q or k carries the scale already")) in found(judgement)
        assert exit_code(tmp_path, {"q": q, "k": k}, "--scale", "none") == 1

    def test_learned_weights_of_a_norm_are_found_in_repeated_tokens_too(self):
        rng = np.random.default_rng(6)
        x = rng.normal(size=(300, 32))
        x = x / np.linalg.norm(x, axis=1, keepdims=True) * np.exp(0.4 * rng.normal(size=32))
        tokens = rng.integers(0, 300, 3000)
        assert on_ellipsoid(x[tokens])
        assert not on_ellipsoid(rng.normal(size=(300, 32))[tokens])
        assert not on_ellipsoid(x[rng.integers(0, 60, 3000)])


def _rotated(x):
    """Turn each pair of components by an angle that grows with the place."""
    half = x.shape[-1] // 2
    angle = np.arange(x.shape[-2])[:, None] * 10000.0 ** (-np.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], axis=-1)


class TestStart:
    @pytest.mark.parametrize(
        ("variance", "level"), [(1.0, "bug"), (1 / 3, "bug"), (0.0004 * 512, "warning"), (2.0, "bug")]
    )
    def test_scores_alone_without_a_scale(self, variance, level):
        product = heads(gain=variance**0.5, heads=8)[1]
        without = audit({"scores": product}, stage="init", d_model=512, num_heads=8)
        assert {one for one in found(without) if one[0] == level} == {(level, "wrong scale", ("no scale",))}
        assert not found(audit({"scores": product / 8}, stage="init", d_model=512, num_heads=8))
        assert not [
            one for one in found(audit({"scores": product}, d_model=512, num_heads=8)) if one[1] == "wrong scale"
        ]

    @pytest.mark.parametrize("options", [("--d-model", "512", "--num-heads", "8"), ("--d-model", "512")])
    def test_their_exit_code(self, tmp_path, options):
        scores = heads(heads=8)[1]
        assert exit_code(tmp_path, {"scores": scores}, "--stage", "init", *options) == 1
        assert exit_code(tmp_path, {"scores": scores}, "--stage", "init") == 0

    @pytest.mark.parametrize("width", [16, 64, 128])
    @pytest.mark.parametrize(
        ("powers", "words"),
        [
            ((0.5, 0), "q carries the scale already"),
            ((0, 0.5), "k carries the scale already"),
            ((0.25, 0.25), "q and k carry half of the scale each"),
        ],
    )
    def test_a_scale_that_q_or_k_carries_is_applied_again(self, width, powers, words):
        q, k = audit_files.normal(n=64, d=width)
        arrays = {"q": q * width ** -powers[0], "k": k * width ** -powers[1]}
        assert found(audit(arrays, scale=STANDARD, stage="init")) == {
            ("warning", "scale may be applied twice", (words,))
        }
        assert not found(audit(arrays, scale="none", convention="pre-scaled", stage="init"))
        assert not found(audit(arrays, scale=STANDARD, stage="trained"))

    @pytest.mark.parametrize("d_model", [256, 512, 768, 1024])
    def test_a_small_start_is_no_scale_applied_twice(self, d_model):
        arrays, product = heads(gain=0.02 * d_model**0.5)
        assert not found(audit(arrays, scale=STANDARD, stage="init"))
        assert not found(audit({"scores": product / 8}, stage="init", d_model=d_model, num_heads=d_model // 64))

    @pytest.mark.parametrize("variance", [1 / 3, 1 / 2, 2 / 5, 2.0, 4e-4 * 384])
    @pytest.mark.parametrize("width", [8, 48])
    def test_usual_starts_are_no_scale_applied_twice_or_missing(self, variance, width):
        """Of 384 columns: 48 heads of width 8, or 8 of width 48."""
        count = 384 // width
        arrays, product = heads(gain=variance**0.5, heads=count, d=width)
        for given, options in ((arrays, {}), ({"scores": product * width**-0.5}, {"d_model": 384})):
            judgement = audit(given, scale=STANDARD, stage="init", **options)
            assert not judgement.bugs
            assert not [one for one in judgement.warnings if one.finding.kind != "too-large initialisation"]

    def test_what_a_right_scale_may_look_like_too_is_a_note(self):
        """Without a scale, nn.Linear's own start at d_k = 36 spreads as He's does with it."""
        product = heads(gain=3**-0.5, heads=8, d=36)[1]
        judgement = audit({"scores": product}, stage="init", d_model=288, num_heads=8)
        (one,) = judgement.notes
        assert (one.finding.kind, one.finding.explanations) == ("scale may be missing", ("no scale",))
        assert "with the right scale with He's start" in one.finding.evidence
        assert judgement.ok

    def test_a_number_without_an_explanation_is_a_warning(self, tmp_path):
        arrays, _ = heads()
        levels = {stage: kinds(audit(arrays, scale="0.2", stage=stage)) for stage in ("init", "trained", "unknown")}
        assert levels["init"] == {("warning", "unexplained scale")}
        assert levels["trained"] == levels["unknown"] == {("note", "unexplained scale")}
        options = ("--scale", "0.2", "--stage", "init")
        assert exit_code(tmp_path, arrays, *options) == 0
        assert exit_code(tmp_path, arrays, *options, "--fail-on", "warning") == 1

    @pytest.mark.parametrize("sharp", [1, 8])
    def test_collapse_of_all_heads_is_not_milder_than_of_one(self, sharp):
        scores = heads(heads=8)[1] / 8
        scores[:sharp] *= 20
        judgement = audit({"scores": scores}, stage="init")
        assert [head.level for head in judgement.heads] == ["bug"] * sharp + ["healthy"] * (8 - sharp)
        assert kinds(judgement) == {("bug", "entropy collapse")}


def _normalised(norm, n=128, d=64):
    """Return q and k of one length, or of one each, in float16."""
    lengths = np.broadcast_to(norm, 2)
    return {
        name: np.asarray(length * x / np.linalg.norm(x, axis=-1, keepdims=True), np.float16)
        for name, length, x in zip("qk", lengths, audit_files.normal(n=n, d=d), strict=True)
    }


class TestNormalisedHeads:
    """q and k of length √d_k still need the scale: without it logits spread by √d_k."""

    @pytest.mark.parametrize("d", [16, 64, 128])
    @pytest.mark.parametrize(("stage", "level"), [("init", "warning"), ("unknown", "warning"), ("trained", "note")])
    @pytest.mark.parametrize("seen", ["declared", "captured", "scores"])
    def test_a_missing_scale_is_said(self, d, stage, level, seen):
        arrays, options = _normalised(d**0.5, d=d), {"stage": stage}
        product = arrays["q"].astype(float) @ arrays["k"].astype(float).swapaxes(1, 2)
        extra = {"captured": {"scale": np.float64(1.0)}, "scores": {"scores": product}}
        options |= {"scale": "none"} if seen == "declared" else {}
        judgement = audit(arrays | extra.get(seen, {}), **options)
        assert (level, "scale may be missing", ("no scale after normalisation",)) in found(judgement)
        assert judgement.ok
        (one,) = [one for one in judgement.warnings + judgement.notes if one.finding.kind == "scale may be missing"]
        assert one.finding.factor == pytest.approx(d**0.5)
        assert f"directions spreads by {d**0.5:.4g};" in one.finding.evidence

    def test_learned_gains_of_the_norms_do_not_hide_it(self):
        gains = np.exp(0.3 * np.random.default_rng(3).normal(size=(2, 64)))
        arrays = {name: x * gain for (name, x), gain in zip(_normalised(8, n=300).items(), gains, strict=True)}
        assert ("warning", "scale may be missing") in kinds(audit(arrays, scale="none"))
        assert not found(audit(arrays, scale=STANDARD))

    def test_its_exit_code(self, tmp_path):
        assert exit_code(tmp_path, _normalised(8), "--scale", "none") == 0
        assert exit_code(tmp_path, _normalised(8), "--scale", "none", "--fail-on", "warning") == 1

    @pytest.mark.parametrize(
        ("norm", "scale", "convention"),
        [
            (8, "1/sqrt(d_k)", None),  # Qwen 3, OLMo 2, Gemma 3 where its number is the width
            (8, "1/sqrt(256)", "1/sqrt(256)"),  # Gemma 3 with another query_pre_attn_scalar
            (1, "10", None),  # Swin v2 at its start: the cosine times a learned temperature
            (1, "100", None),  # and at its limit
            ((18, 1), "none", None),  # QKNorm with its g in q
            (18**0.5, "none", None),  # and in both
            (64**0.25, "none", None),  # gains that have learned the scale
            (1.5 * 64**0.25, "none", None),
            (8, "none", "normalised"),  # Gemma 3n, as declared
            (8, "none", "learned"),
        ],
    )
    @pytest.mark.parametrize("stage", ["init", "trained", "unknown"])
    def test_sound_designs_are_healthy(self, norm, scale, convention, stage):
        assert not found(audit(_normalised(norm), scale=scale, convention=convention, stage=stage))

    def test_a_factor_that_grows_with_the_number_of_keys_is_no_missing_scale(self):
        for stage in ("init", "trained"):
            judgement = audit(_normalised(8), scale=f"0.43 * {np.log(128)} / sqrt(64)", stage=stage)
            assert "scale may be missing" not in {kind for _, kind in kinds(judgement)}
            assert judgement.ok

    def test_heads_of_one_width_need_none(self):
        assert not found(audit(_normalised(1, d=1), scale="none"))


class TestExplanations:
    @pytest.mark.parametrize(
        ("factor", "width", "explanation", "level"),
        [
            (64**-0.25, 64, "scaled on one side only", "bug"),
            (math.log2(math.e) / 8, 64, "log2(e) left in", "bug"),
            (math.log(2) / 8, 64, "log2(e) left out", "bug"),
            (48**-0.5, 64, "number of keys in place of d_k", "bug"),
            (96**-0.5, 80, "width rounded up in place of d_k", "bug"),
            (128**-0.5, 80, "width rounded up in place of d_k", "bug"),
            (128**-0.5, 192, "width without the rotary part (MLA)", "bug"),
            (64**-0.5, 192, "width of the rotary part (MLA)", "bug"),
            (192**-0.5, 576, "keys absorbed into the latent (MLA)", "note"),
            ((0.1 * math.log(32) + 1) ** 2 / 8, 64, "YaRN", "note"),
            ((0.1 * math.log(40) + 1) ** 2 * 192**-0.5, 192, "YaRN", "note"),
            (144**-0.5, 128, "query_pre_attn_scalar", "note"),
            (224**-0.5, 256, "query_pre_attn_scalar", "note"),
            (32**0.5 / 128, 128, "muP with another base width", "note"),
        ],
    )
    def test_numbers_by_name(self, factor, width, explanation, level):
        arrays, _ = heads(d=width, heads=1)
        ((found_level, _, names),) = found(audit(arrays, scale=repr(factor), num_heads=25))
        assert explanation in names
        assert found_level == level
        ((found_level, _, _),) = found(audit(arrays, scale=repr(factor), convention=STANDARD, num_heads=24))
        assert found_level == "bug"

    def test_the_width_of_all_key_heads(self):
        arrays, _ = heads(heads=8)
        arrays["k"] = arrays["k"][:2]
        ((_, _, names),) = found(audit(arrays, scale="128**-0.5"))
        assert names[0] == "width of all key heads in place of d_k"

    def test_causes_come_before_coincidences(self):
        arrays, _ = heads(heads=1)
        (one,) = audit(arrays, scale="none").bugs
        assert one.finding.explanations[0] == "no scale"
        assert "number of heads in place of d_k" in one.finding.explanations
        ((_, _, names),) = found(audit(arrays, scale="128**-0.5", d_model=128, num_heads=2))
        assert names[0] == "d_model in place of d_k"
        ((_, _, names),) = found(audit(arrays, scale="128**-0.5", d_v=128))
        assert names[0] == "d_v in place of d_k"

    @pytest.mark.parametrize("base", [4, 16, 32, 40, 64, 96])
    def test_any_base_of_mup_is_right_where_mup_is_declared(self, tmp_path, base):
        arrays, _ = heads(d=128)
        scale = f"{base**0.5 / 128:.6g}"
        assert not found(audit(arrays, scale=scale, convention="mup"))
        assert exit_code(tmp_path, arrays, "--scale", scale, "--convention", "mup") == 0

    @pytest.mark.parametrize(("scale", "level"), [("none", "bug"), ("128**0.5", "bug"), ("128**-0.5", "warning")])
    def test_other_factors_are_not(self, scale, level):
        assert {
            one[0] for one in found(audit(heads(d=128)[0], scale=scale, convention="mup")) if "scale" in one[1]
        } == {level}

    @pytest.mark.parametrize("first", [0, 1])
    @pytest.mark.parametrize("declared", [None, STANDARD])
    def test_a_factor_that_follows_the_layer(self, first, declared):
        arrays = {}
        for layer in range(first, first + 5):
            one, product = heads(seed=layer)
            scores = {"scores": product / 8 / (layer + 1 - first)}
            arrays |= {f"layers.{layer}.{name}": x for name, x in (one | scores).items()}
        judgement = audit(arrays, convention=declared)
        assert found(judgement) == {("note", "scale follows the layer", ("1/layer number",))}
        assert [head.level for head in judgement.heads] == ["healthy"] * 2 + ["note"] * 8
        # One layer that does not follow makes it none.
        arrays[f"layers.{first + 1}.scores"] = arrays[f"layers.{first + 1}.scores"] * 1.5
        assert "scale follows the layer" not in {kind for _, kind in kinds(audit(arrays, convention=declared))}

    def test_each_factor_has_its_own_finding_and_evidence(self):
        arrays, product = heads(heads=6)
        factors = np.array([0.2, 0.2, 0.2, 0.3, 0.3, 0.125])
        judgement = audit(arrays | {"scores": factors[:, None, None] * product})
        assert [(one.finding.factor, len(one.places)) for one in judgement.notes] == [
            (pytest.approx(1.6, rel=1e-6), 3),
            (pytest.approx(2.4, rel=1e-6), 2),
        ]
        assert all(
            f"{8 * factor:.5g} times" in one.finding.evidence
            for one, factor in zip(judgement.notes, (0.2, 0.3), strict=True)
        )
        many = audit(arrays | {"scores": np.linspace(0.2, 0.7, 6)[:, None, None] * product})
        (one,) = [one for one in many.notes if one.finding.kind == "unexplained scale"]
        assert len(one.places) == 6
        assert "6 factors from 1.6 to 5.6" in one.finding.evidence

    def test_one_mistake_is_one_bug_though_declared_otherwise(self):
        arrays, product = heads()
        judgement = audit(arrays | {"scores": product}, scale=STANDARD)
        assert {one for one in found(judgement) if one[0] == "bug"} == {
            ("bug", "wrong scale", ("no scale", "q or k carries the scale already"))
        }
        assert "declared was 0.125" in judgement.bugs[0].finding.evidence
        assert kinds(audit(arrays | {"scores": 0.2 * product}, scale=STANDARD)) == {("bug", "other than declared")}


class TestSharpHeads:
    @pytest.mark.parametrize(
        ("where", "name", "words"),
        [
            ((range(1, 48), range(47)), "previous token", "on the previous token"),
            ((range(48), range(48)), "own token", "on the own token"),
            ((range(3, 48), range(45)), "fixed offset", "a fixed offset of -3"),
            ((slice(None), 0), "first token", "on the first token"),
            ((slice(None), 17), "single token", "one token, key 17"),
            ((slice(11, 48), 10), "single token", "% of the rows have their largest weight on one token, key 10"),
        ],
    )
    def test_what_they_look_at_is_said(self, where, name, words):
        scores = np.random.default_rng(2).normal(size=(1, 48, 48))
        scores[0][tuple(list(x) if isinstance(x, range) else x for x in where)] += 20
        judgement = audit({"scores": scores}, stage="trained")
        (note,) = judgement.notes
        assert judgement.heads[0].row["pattern"] == name
        assert words in note.finding.evidence

    def test_first_is_the_first_that_is_no_padding(self):
        scores = np.random.default_rng(2).normal(size=(1, 48, 48))
        scores[0, :, 5] += 20
        mask = CAUSAL & (np.arange(48) >= 5)
        judgement = audit({"scores": scores, "mask": mask}, stage="trained")
        assert judgement.heads[0].row["pattern"] == "first token"
        assert judgement.heads[0].row["sink_key"] == 5

    def test_spread_out(self):
        judgement = audit({"scores": 15 * np.random.default_rng(2).normal(size=(1, 48, 48))}, stage="trained")
        assert judgement.heads[0].row["pattern"] == "spread out"
        assert "spread out over keys" in judgement.notes[0].finding.evidence

    def test_heads_that_differ_in_it_have_findings_of_their_own(self):
        scores = np.random.default_rng(2).normal(size=(3, 48, 48))
        scores[0, :, 0] += 20
        scores[1:, :, 17] += 20
        assert [len(one.places) for one in audit({"scores": scores}, stage="trained").notes] == [1, 2]
