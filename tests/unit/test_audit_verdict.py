"""Verdicts: every mistake by name and factor, what is no mistake, neighbours, dumps over time, the shipped model."""

import math

import audit_files
import numpy as np
import pytest

from sqrtdk.heads import page
from sqrtdk.heads.cases import Options
from sqrtdk.heads.conventions import CONVENTIONS, convention, declared_scale, scale
from sqrtdk.heads.dumps import dump_of, read_dumps
from sqrtdk.heads.errors import InputError
from sqrtdk.heads.explanations import EXPLANATIONS
from sqrtdk.heads.verdict import ALL_COLUMNS, COLUMNS, audit
from sqrtdk.results.described import columns


def judge(arrays, declared=None, name=None, stage="unknown", **sizes):
    options = Options(convention(name), None if declared is None else scale(declared).of, stage, **sizes)
    return audit([dump_of(arrays)], options)


def heads(gain=1.0, **sizes):
    q, k = audit_files.normal(**({"d": 64, "n": 64} | sizes))
    return {"q": gain * q, "k": gain * k}


def only(verdicts):
    """Return the one finding that all heads have."""
    findings = {(f.kind, f.level, f.explanations) for v in verdicts for f in v.findings}
    assert len(findings) == 1, findings
    return verdicts[0].findings[0]


class TestScales:
    @pytest.mark.parametrize(
        ("text", "number"),
        [
            ("0.125", 0.125),
            ("1/8", 0.125),
            ("1/sqrt(64)", 0.125),
            ("8/64", 0.125),
            ("none", 1.0),
            ("1/sqrt(d_k)", 0.125),
            ("1/d_k", 1 / 64),
            ("8/d_k", 0.125),
            ("fixed_width(width=16)", 0.25),
            ("0", 0.0),
            ("1e-3", 1e-3),
            ("d_k**-0.5", 0.125),
            ("1 / math.sqrt(64)", 0.125),
            ("head_dim**-0.5", 0.125),
            ("self.head_dim ** -0.5", 0.125),
            ("1/√(d_k)", 0.125),
            ("torch.rsqrt(dk)", 0.125),
            ("1/√64", 0.125),
            ("1/√d_k", 0.125),
            ("self.dim_head ** -0.5", 0.125),
            ("1 / math.sqrt(q.size(-1))", 0.125),
            ("1 / np.sqrt(query.shape[-1])", 0.125),
            ("1 / torch.sqrt(torch.tensor(64))", 0.125),
            ("math.pow(head_dim, -0.5)", 0.125),
            ("(256 // 4) ** -0.5", 0.125),
            ("math.log(n_keys) / math.sqrt(d_k)", math.log(100) / 8),
        ],
    )
    def test_spellings(self, text, number):
        assert scale(text).of(64, 100) == pytest.approx(number, rel=1e-15)

    @pytest.mark.parametrize(
        "text",
        [
            *("-1", "nan", "inf", "1/0", "1/sqrt(width)", "qk_norm", "", "__import__('os')"),
            *("1e31", "1e-31", "1e300", "1/1e31", "fixed_width(width=1e80)"),
            *("x.size(-1)**-0.5", "q.shape[0]**-0.5", "pow(2)"),
            *("sqrt((0-1)**0.5)", "log((1-2)**0.5)", "(1-2)**0.5"),
        ],
    )
    def test_what_is_no_scale_is_refused(self, text):
        with pytest.raises(InputError, match="--scale"):
            scale(text)

    def test_what_is_refused_is_told_what_there_is(self):
        with pytest.raises(InputError, match=r"'d_model' is not known; .* numbers, code of d_k, .*sqrt"):
            scale("d_model**-0.5")

    @pytest.mark.parametrize(
        ("text", "numbers"),
        [
            ("0.125, 0.1", {0: 0.125, 1: 0.1}),
            ("3: 1/8, 5: d_k**-1", {3: 1 / 8, 5: 1 / 64}),
            ("d_k**-0.5 / (layer_idx + 1)", {0: 1 / 8, 3: 1 / 32}),
            ("none", {0: 1.0, 7: 1.0}),
            ("pow(d_k, -0.5), 0.1", {0: 1 / 8, 1: 0.1}),
        ],
    )
    def test_one_for_each_layer(self, text, numbers):
        for layer, number in numbers.items():
            assert declared_scale(text).at(layer).of(64, 10) == pytest.approx(number, rel=1e-15)

    @pytest.mark.parametrize("text", ["1:0.1, 1:0.2", "a:0.1", "0.1,,0.2", "0.1, x"])
    def test_layers_that_are_none(self, text):
        with pytest.raises(InputError, match="--scale"):
            declared_scale(text)

    def test_a_layer_without_a_scale_is_named(self):
        arrays = {f"layers.{i}.{name}": x for i in (0, 1) for name, x in heads().items()}
        options = Options(convention(None), declared_scale("0.125, 1/64"))
        levels = [verdict.level for verdict in audit([dump_of(arrays)], options)]
        assert levels == ["healthy", "healthy", "bug", "bug"]
        with pytest.raises(InputError, match="says nothing of layer 1"):
            audit([dump_of(arrays)], Options(convention(None), declared_scale("0: 0.125")))

    @pytest.mark.parametrize("text", ["0,125", "0: 0.125, 1: 0.1"])
    def test_a_scale_of_no_layer_is_refused(self, text):
        with pytest.raises(InputError, match=f"--scale {text}: there is no layer 1"):
            audit([dump_of(heads())], Options(convention(None), declared_scale(text)))

    def test_conventions(self):
        assert convention(None).assumed
        assert convention("1/d_k").right(64, 10) == (1 / 64,)
        assert convention("mup").right(64, 10) == (1 / 64, 1 / 8)
        assert all(convention(name) is CONVENTIONS[name] for name in CONVENTIONS)
        with pytest.raises(InputError, match="named conventions are"):
            convention("mine")
        with pytest.raises(InputError, match="zero"):
            convention("0")

    def test_a_message_names_where_the_text_came_from(self):
        for text in ("mine", "0", "1e40"):
            with pytest.raises(InputError, match=f"^convention {text}: "):
                convention(text, "convention")


class TestWrongFactors:
    @pytest.mark.parametrize(
        ("declared", "sizes", "explanation", "ratio"),
        [
            ("none", {}, "no scale", 8),
            ("1/d_k", {}, "1/d_k", 1 / 8),
            ("1/d_k", {}, "applied twice", 1 / 8),
            ("1/d_k", {}, "muP (1/d_k)", 1 / 8),
            ("8", {}, "inverted", 64),
            ("1/sqrt(768)", {"d_model": 768}, "d_model in place of d_k", math.sqrt(64 / 768)),
            ("1/sqrt(128)", {}, "d_model in place of d_k", math.sqrt(1 / 2)),
            ("1/sqrt(12)", {"num_heads": 12}, "number of heads in place of d_k", math.sqrt(64 / 12)),
            ("1/sqrt(2)", {}, "number of heads in place of d_k", math.sqrt(32)),
            ("1/sqrt(128)", {"d_v": 128}, "d_v in place of d_k", math.sqrt(1 / 2)),
            (
                "1/sqrt(48)",
                {"d_model": 768, "num_heads": 16},
                "d_model / number of heads in place of d_k",
                math.sqrt(64 / 48),
            ),
        ],
    )
    @pytest.mark.parametrize("given", ["declared", "measured"])
    def test_each_is_found_with_its_factor_and_what_to_do(self, declared, sizes, explanation, ratio, given):
        arrays = heads()
        if given == "measured":
            scores = scale(declared).of(64, 64) * arrays["q"] @ arrays["k"].swapaxes(1, 2)
            verdicts = judge(arrays | {"scores": scores.astype(np.float32)}, None, None, "trained", **sizes)
        else:
            verdicts = judge(arrays, declared, None, "trained", **sizes)
        for verdict in verdicts:
            finding = next(f for f in verdict.findings if f.kind == "wrong scale")
            assert finding.level == "bug"
            assert explanation in finding.explanations
            assert finding.factor == pytest.approx(ratio, rel=1e-5)
            assert EXPLANATIONS[explanation][1] in finding.advice
            assert "64" in finding.evidence

    def test_all_explanations_that_give_the_number_are_named(self):
        assert only(judge(heads(), "1/d_k")).explanations == ("1/d_k", "applied twice", "muP (1/d_k)")
        one = judge(heads(heads=1), "none", None, "init")[0]
        assert {"no scale", "number of heads in place of d_k"} <= set(one.findings[0].explanations)

    def test_a_number_that_is_also_the_right_one_is_healthy(self):
        assert not judge(heads(), "1/8", d_v=64, d_model=64)[0].findings
        assert not judge(heads(), "8/d_k")[0].findings
        assert not judge(heads(heads=16, d=16), "1/sqrt(16)", num_heads=16)[0].findings

    def test_padding_is_no_width(self):
        arrays = {name: np.pad(x, ((0, 0), (0, 0), (0, 32))) for name, x in heads().items()}
        finding = only(judge(arrays, "1/sqrt(96)"))
        assert finding.explanations == ("padded width in place of d_k",)
        assert finding.factor == pytest.approx(math.sqrt(64 / 96), rel=1e-3)
        assert not judge(arrays, "1/sqrt(64)")[0].findings

    def test_zero(self):
        assert only(judge(heads(), "0")).kind == "zero scale"
        assert only(judge(heads() | {"scores": np.zeros((2, 64, 64))}, None, "learned")).kind == "zero scale"

    def test_a_constant_shows_only_where_widths_differ(self):
        wide = heads(d=128, n=60)
        assert only(judge(wide, "0.125")).kind == "unexplained scale"
        dumps = [dump_of(heads(), name="a", order=0), dump_of(wide, name="b", order=1)]
        verdicts = audit(dumps, Options(convention(None), scale("0.125").of))
        assert [v.level for v in verdicts] == ["healthy"] * 2 + ["bug"] * 2
        assert verdicts[2].findings[0].explanations == ("a constant that does not follow d_k",)

    def test_unexplained_is_a_note_unless_the_convention_was_declared(self):
        assert only(judge(heads(), "0.2")).level == "note"
        assert only(judge(heads(), "0.2", "1/sqrt(d_k)")).level == "bug"
        assert not judge(heads(), "0.2", "learned")[0].findings

    def test_scores_that_contradict_the_declared_scale(self):
        arrays = heads()
        arrays["scores"] = arrays["q"] @ arrays["k"].swapaxes(1, 2) / 8
        found = {f.kind: f for f in judge(arrays, "1/d_k")[0].findings}
        assert set(found) == {"other than declared"}
        assert judge(arrays, "1/d_k")[0].row["factor"] == pytest.approx(1 / 8)
        assert found["other than declared"].factor == pytest.approx(8)

    def test_a_wrong_sign(self):
        arrays = heads()
        arrays["scores"] = -arrays["q"] @ arrays["k"].swapaxes(1, 2) / 8
        verdicts = judge(arrays)
        assert verdicts[0].findings[0].explanations == ("wrong sign",)
        # The logits are those of the scores, and what is said of q·k is that of q and k as given.
        alone, right = judge({"scores": arrays["scores"]}), judge({name: arrays[name] for name in "qk"}, "1/8")
        for verdict, of_logits, of_scores in zip(verdicts, alone, right, strict=True):
            assert verdict.row["factor"] == pytest.approx(-1 / 8)
            for name in ("row_logit_std", "row_logit_std_low", "logit_mean", "logit_max", "entropy", "sink_share"):
                assert verdict.row[name] == pytest.approx(of_logits.row[name], rel=1e-9), name
            for name in ("score_mean", "score_max", "row_score_std", "cosine", "q_norm"):
                assert verdict.row[name] == pytest.approx(of_scores.row[name], rel=1e-9), name

    def test_scores_that_are_something_else(self):
        arrays = heads() | {"scores": np.random.default_rng(1).normal(size=(2, 64, 64))}
        assert only(judge(arrays)).kind == "scores are not q·k"

    def test_a_bias_of_positions_does_not_hide_the_factor(self):
        arrays = heads(n=128)
        bias = -0.02 * np.abs(np.subtract.outer(np.arange(128), np.arange(128)))
        arrays["scores"] = arrays["q"] @ arrays["k"].swapaxes(1, 2) + bias
        assert "no scale" in judge(arrays, stage="init")[0].findings[0].explanations


class TestConventions:
    """What is legitimate is no finding."""

    def test_undeclared_scale_of_prescaled_arrays_is_only_a_note(self):
        arrays = heads()
        arrays["q"] = arrays["q"] / 8
        finding = only(judge(arrays, "none"))
        assert finding.level == "note"
        assert "q or k carries the scale already" in finding.explanations
        assert not judge(arrays, "none", "pre-scaled", "init")[0].findings

    def test_normalised_heads_are_recognised(self):
        arrays = {name: 8 * x / np.linalg.norm(x, axis=-1, keepdims=True) for name, x in heads().items()}
        assert judge(arrays, "1")[0].level == "warning"
        assert not judge(arrays, "1", "normalised")[0].findings
        assert not judge(arrays, "1/sqrt(d_k)")[0].findings
        assert judge(arrays, "1/d_k")[0].level == "bug"

    @pytest.mark.parametrize("n", [64, 200])
    def test_norms_with_learned_weights_are_recognised_where_there_are_tokens_enough(self, n):
        rng = np.random.default_rng(3)
        arrays = {
            name: 4 * np.exp(0.5 * rng.normal(size=64)) * x / np.linalg.norm(x, axis=-1, keepdims=True)
            for name, x in heads(n=n).items()
        }
        assert (judge(arrays, "1")[0].level == "healthy") == (n == 200)
        assert judge(heads(n=n), "1")[0].level == "bug"

    def test_a_dead_coordinate_is_no_padding(self):
        arrays = heads()
        arrays["q"][:, :, 63] = 0
        assert not judge(arrays, "0.125")[0].findings

    @pytest.mark.parametrize("cap", [5.0, 20.0, 50.0])
    def test_a_soft_cap_is_no_wrong_scale(self, cap):
        arrays = heads(gain=2.0)
        scores = arrays["q"] @ arrays["k"].swapaxes(1, 2) / 8
        capped = arrays | {"scores": cap * np.tanh(scores / cap)}
        assert not [f for f in judge(capped, "1/8", "1/8", "trained")[0].findings if f.level == "bug"]

    def test_heads_trained_with_the_scale_in_their_weights_are_only_a_note(self):
        arrays = heads(gain=3**0.5)
        arrays["q"] = arrays["q"] / 8
        assert only(judge(arrays, "none")).level == "note"

    def test_an_assumed_scale_is_marked(self):
        (verdict, _) = judge(heads())
        assert verdict.row["scale_source"] == "assumed"
        logit = next(column for column in page.TABLE if column.fact == "row_logit_std")
        score = next(column for column in page.TABLE if column.fact == "row_score_std")
        assert page.cell(logit, verdict.row).endswith("?")
        assert not page.cell(score, verdict.row).endswith("?")
        assert "ASSUMED" in page.basis([verdict])


class TestStages:
    def test_a_large_start_is_a_bug_only_at_the_start(self):
        arrays = heads(gain=2.0)
        finding = only(judge(arrays, "1/sqrt(d_k)", stage="init"))
        assert (finding.kind, finding.level) == ("too-large initialisation", "bug")
        assert finding.factor == pytest.approx(4, rel=0.1)
        assert only(judge(heads(gain=2**0.5), "1/sqrt(d_k)", stage="init")).level == "note"
        for stage in ("trained", "unknown"):
            assert not any(
                f.kind == finding.kind for v in judge(arrays, "1/sqrt(d_k)", stage=stage) for f in v.findings
            )

    def test_weights_of_variance_one_are_recognised(self):
        finding = judge(heads(gain=768**0.5), "1/sqrt(d_k)", stage="init", d_model=768)[0].findings[0]
        assert "W_q with variance 1 in place of 1/d_model" in finding.explanations

    def test_normalisation_is_judged_only_at_the_start(self):
        arrays = heads()
        arrays["q"] = arrays["q"] * np.exp(np.random.default_rng(1).normal(size=(2, 64, 1)))
        assert "broken normalisation" in {f.kind for f in judge(arrays, "1/8", stage="init")[0].findings}
        assert not judge(arrays, "1/8", stage="trained")[0].findings

    def test_unit_vectors_with_the_root_left_in_place(self):
        arrays = {name: x / np.linalg.norm(x, axis=-1, keepdims=True) for name, x in heads().items()}
        found = {f.kind: f for f in judge(arrays, "1/sqrt(d_k)", stage="init")[0].findings}
        assert found["broken normalisation"].factor == pytest.approx(1 / 64)
        assert not judge(arrays, "10", "normalised", "init")[0].findings

    def test_a_trained_spread_of_three_is_a_fact(self):
        assert not judge(heads(gain=3**0.5), "1/sqrt(d_k)", stage="trained")[0].findings

    def test_a_single_collapsed_head_is_a_note_and_no_bug(self):
        arrays = heads(heads=4)
        arrays["q"][2] *= 50
        verdicts = judge(arrays, "1/8", stage="trained")
        assert [v.level for v in verdicts] == ["healthy", "healthy", "note", "healthy"]
        assert verdicts[2].findings[0].kind == "entropy collapse"
        assert verdicts[2].findings[0].factor == pytest.approx(50, rel=0.1)
        # That is no factor of a scale, so that it is not shown as one.
        shown = (page.terminal(verdicts, [], ""), page.page(verdicts, []), verdicts[2].row["findings"])
        assert not any("(factor" in text or "×" in text for text in shown)

    def test_a_query_that_starts_at_zero_is_no_dead_head(self):
        arrays = heads()
        arrays["q"] = 0 * arrays["q"]
        assert not judge(arrays, "1/d_k", "mup", "init")[0].findings
        assert only(judge(arrays, "1/d_k", "mup", "trained")).kind == "dead head"

    def test_precision(self):
        found = {f.kind: f for f in judge(heads(gain=60.0), "1/8", stage="trained")[0].findings}
        assert "rounds by up to" in found["precision at risk"].evidence

    def test_growth_needs_several_dumps_and_is_told_of_the_last(self):
        dumps = [dump_of(heads(gain=gain), name=str(i), order=i) for i, gain in enumerate((1.0, 1.2, 1.5))]
        verdicts = audit(dumps, Options(convention(None), scale("1/8").of))
        assert [bool(v.findings) for v in verdicts] == [False] * 4 + [True] * 2
        assert verdicts[-1].findings[0].kind == "logit growth"
        assert verdicts[-1].findings[0].factor == pytest.approx(2.25, rel=1e-9)
        assert not any(v.findings for v in audit(dumps[::-1], Options(convention(None), scale("1/8").of)))


class TestScoresAlone:
    def test_they_are_logits(self):
        arrays = heads()
        scores = arrays["q"] @ arrays["k"].swapaxes(1, 2) / 8
        alone, whole = judge({"scores": scores})[0].row, judge(arrays, "1/8")[0].row
        for name in ("row_logit_std", "entropy", "max_weight", "row_logit_std_low"):
            assert alone[name] == pytest.approx(whole[name], rel=1e-9)
        assert alone["d_k"] is None
        assert alone["scale_source"] == "scores"


@pytest.fixture(scope="module")
def shipped(request):
    path = request.config.rootpath / "resources" / "minilm-l6-qk.npz"
    return audit(read_dumps([path], "LHSD"), Options(convention(None), scale("1/sqrt(d_k)").of, "trained"))


class TestShippedHeads:
    @pytest.mark.slow
    def test_no_bug_is_reported_in_a_model_that_is_correct(self, shipped):
        assert len(shipped) == 72
        assert not [v.row for v in shipped if v.level == "bug"]

    def test_the_head_that_a_specialist_would_point_at(self, shipped):
        noted = {(v.row["layer"], v.row["head"]): v for v in shipped if v.findings}
        assert noted[0, 2].findings[0].kind == "entropy collapse"
        assert noted[0, 2].row["logit_std"] == pytest.approx(17.1, abs=0.05)
        assert noted[0, 2].row["entropy"] == pytest.approx(0.28, abs=0.005)
        assert set(noted) == {(0, 2), (1, 8)}

    @pytest.mark.slow
    def test_without_its_scale_every_head_has_a_bug(self, request):
        path = request.config.rootpath / "resources" / "minilm-l6-qk.npz"
        verdicts = audit(read_dumps([path], "LHSD"), Options(convention(None), scale("none").of, "trained"))
        assert {v.level for v in verdicts} == {"bug"}

    def test_first_token_sinks_are_counted(self, shipped):
        sinks = [v.row for v in shipped if v.row["sink_count"]]
        assert len(sinks) > 30
        assert {row["sink_key"] for row in sinks} == {0}

    def test_rows_have_every_column(self, shipped):
        assert {*columns("audit")} == {*COLUMNS}
        assert all(set(v.row) == set(ALL_COLUMNS) for v in shipped)
