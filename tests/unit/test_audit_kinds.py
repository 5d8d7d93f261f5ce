"""Inputs that were once read wrongly, and others of their kind: facts from scores, masks, padding, layouts."""

import math

import audit_files
import numpy as np
import pytest
from audit_cases import LOGITS, STANDARD, exit_code, found, heads, kinds, same_facts, weights_of

from sqrtdk.heads import facts, page
from sqrtdk.heads.errors import InputError
from sqrtdk.heads.judgement import audit
from sqrtdk.heads.tally import Block

CAUSAL = np.tri(48, dtype=bool)
DISTANCE = np.subtract.outer(np.arange(48), np.arange(48))


class TestFactsOfScores:
    @pytest.mark.parametrize("cap", [2.0, 4.0, 30.0])
    def test_capped_scores_have_their_own_facts_and_show_the_factor(self, tmp_path, cap):
        arrays, product = heads(gain=3.0)
        scores = (cap * np.tanh(product / 8 / cap)).astype(np.float32)
        whole = audit(arrays | {"scores": scores}, scale=STANDARD)
        same_facts(whole, audit({"scores": scores}))
        assert not whole.bugs
        assert not whole.warnings
        for head, mine in zip(whole.heads, scores, strict=True):
            assert head.row["logit_max"] == pytest.approx(mine.max(), rel=1e-9)
            assert head.row["measured_factor"] == pytest.approx(1 / 8, rel=1e-3)
            assert head.row["softcap"] == pytest.approx(cap, rel=1e-3)
            assert head.row["row_score_std"] > 60
        assert exit_code(tmp_path, arrays | {"scores": scores}, "--scale", STANDARD) == 0

    def test_a_cap_hides_no_missing_scale(self):
        arrays, product = heads()
        judgement = audit(arrays | {"scores": 50 * np.tanh(product / 50)})
        assert ("bug", "wrong scale", ("no scale", "q or k carries the scale already")) in found(judgement)

    def test_gradients_are_those_of_what_was_capped(self):
        """By a second implementation: Jacobian of softmax after the cap, in each key."""
        (arrays, product), cap, factor = heads(n=12, d=8, gain=2.0), 1.5, 0.4
        q, z = arrays["q"][0].astype(float), cap * np.tanh(factor * product[0] / cap)
        sizes = []
        for i, row in enumerate(weights_of(z)):
            jacobian = (np.diag(row) - np.outer(row, row)) * (1 - (z[i] / cap) ** 2)
            sizes.append(factor**2 * (q[i] ** 2).sum() * (jacobian**2).sum())
        block = Block(q, arrays["k"][0].astype(float), softcap=cap)
        assert facts.describe([block], factor)["key_gradient"] == pytest.approx(math.sqrt(np.mean(sizes)), rel=1e-9)

    def test_a_cap_in_a_file_is_that_of_its_scores(self):
        arrays, product = heads(gain=2.0)
        beside = audit(arrays | {"scale": 0.125, "softcap": 5.0})
        same_facts(beside, audit({"scores": 5 * np.tanh(product / 8 / 5)}))

    @pytest.mark.parametrize("offset", [0.0, -6000.0])
    def test_the_level_of_a_row_is_nothing_to_softmax(self, offset):
        _, product = heads()
        levels = offset + np.random.default_rng(3).normal(size=(2, 48, 1))
        same_facts(
            audit({"scores": product / 8 + levels}), audit({"scores": product / 8}), ("entropy", "row_logit_std")
        )

    def test_a_sink_takes_weight_and_is_no_key(self):
        arrays, product = heads()
        column = np.concatenate([product / 8, np.full((2, 48, 1), 3.0)], axis=2)
        weights = weights_of(column)
        given = audit(arrays | {"scores": column}, scale=STANDARD)
        in_file = audit(arrays | {"scale": 0.125, "sinks": np.array([3.0])})
        for judgement in (given, in_file, audit({"scores": column})):
            for head, mine in zip(judgement.heads, weights, strict=True):
                assert head.level == "healthy"
                assert head.row["learned_sink_share"] == pytest.approx(mine[:, -1].mean(), rel=1e-4)
                entropy = -(mine * np.log(mine)).sum(axis=1).mean()
                assert head.row["entropy"] == pytest.approx(entropy, rel=1e-4)
                assert head.row["uniform_entropy"] == pytest.approx(math.log(49), rel=1e-9)
                assert head.row["n_keys"] == 48

    def test_entropy_is_over_the_keys_that_a_row_has(self):
        scores = np.zeros((1, 48, 48))
        judgement = audit({"scores": np.where(CAUSAL, scores, -np.inf)})
        assert judgement.heads[0].row["relative_entropy"] == pytest.approx(1, rel=1e-12)


class TestMasks:
    alibi = np.where(CAUSAL, -0.25 * np.abs(DISTANCE), -np.inf)

    @pytest.mark.parametrize("forbidden", [-np.inf, -1e4, -3e38])
    def test_finite_numbers_of_a_mask_are_added(self, forbidden):
        arrays, product = heads()
        mask = np.where(CAUSAL, self.alibi, forbidden)
        with_mask = audit(arrays | {"mask": mask}, scale=STANDARD)
        same_facts(with_mask, audit({"scores": product / 8 + self.alibi}))
        assert any("added to the logits" in words for words in with_mask.assumed)

    def test_a_shifted_window_lowers_and_does_not_forbid(self):
        arrays, product = heads(n=49)
        mask = np.where(np.random.default_rng(2).random((49, 49)) < 0.3, -100.0, 0.0)
        same_facts(audit(arrays | {"mask": mask}, scale=STANDARD), audit({"scores": product / 8 + mask}))

    @pytest.mark.parametrize("inside", [True, False])
    @pytest.mark.parametrize("known", [True, False])
    def test_a_bias_is_in_scores_once(self, inside, known):
        arrays, product = heads()
        scores = product / 8 + (self.alibi if inside else 0.0)
        judgement = audit(({} if not known else arrays) | {"scores": scores, "mask": self.alibi})
        same_facts(judgement, audit({"scores": product / 8 + self.alibi}))
        assert not known or judgement.heads[0].row["measured_factor"] == pytest.approx(1 / 8, rel=1e-6)

    @pytest.mark.parametrize("kind", ["slope", "table", "all"])
    @pytest.mark.parametrize("factor", [1.0, 1 / 8])
    def test_a_bias_beside_q_k_hides_no_factor(self, kind, factor):
        rng = np.random.default_rng(5)
        sequences = [heads(seed=seed) for seed in range(3)]
        arrays = {name: np.stack([one[name] for one, _ in sequences]) for name in "qk"}
        bias = {
            "slope": np.where(CAUSAL, -0.5 * np.abs(DISTANCE), -1e4),
            "table": 3 * rng.normal(size=95)[DISTANCE + 47],
            "all": 3 * rng.normal(size=(48, 48)),
        }[kind]
        scores = factor * np.stack([product for _, product in sequences]) + bias
        judgement = audit(arrays | {"scores": scores}, layout="BHSD")
        wrong = {one for one in found(judgement) if one[1] == "wrong scale"}
        assert bool(wrong) == (factor == 1)
        assert judgement.heads[0].row["measured_factor"] == pytest.approx(factor, rel=1e-6)

    @pytest.mark.parametrize("kind", ["grows", "log n", "own"])
    @pytest.mark.parametrize(("factor", "name"), [(1 / 8, ""), (1.0, "no scale"), (1 / 64, "applied twice")])
    def test_a_temperature_that_differs_between_queries_hides_no_factor(self, kind, factor, name):
        arrays, product = heads()
        places = np.arange(48)
        growth = {
            "grows": 1 + 0.1 * np.log1p(places // 12),  # Llama 4
            "log n": 0.5 * np.log(places + 2),
            "own": np.exp(0.3 * np.random.default_rng(2).normal(size=48)),
        }[kind]
        scores = np.where(CAUSAL, factor * product * growth[:, None], -np.inf)
        judgement = audit(arrays | {"scores": scores})
        assert [name in one.finding.explanations for one in judgement.bugs] == ([True] if name else [])
        assert not judgement.warnings
        low, high = (f"{factor * end:.4g}" for end in (growth[7:].min(), growth[7:].max()))
        assert any(f"q·k is multiplied by {low} to {high}" in words for words in judgement.assumed)

    def test_few_keys_show_no_factor_of_a_query(self):
        """Any two scores are a multiple of two others."""
        arrays, product = heads()
        mask = np.abs(DISTANCE - 0.5) < 2
        noise = np.random.default_rng(3).normal(size=product.shape)
        judgement = audit(arrays | {"scores": np.where(mask, product / 8 + noise, -np.inf)})
        assert ("note", "scores are not q·k") in kinds(judgement)

    @pytest.mark.parametrize(
        "mask",
        [
            ~CAUSAL,
            (~CAUSAL).astype(int),
            np.where(CAUSAL, -np.inf, 0.0),
            np.arange(48) >= 40,
            np.broadcast_to(np.arange(48) >= 40, (1, 2, 1, 48)),
        ],
    )
    def test_an_inverted_mask_is_noted(self, tmp_path, mask):
        arrays, _ = heads()
        assert kinds(audit(arrays | {"mask": mask}, scale=STANDARD)) == {("note", "mask may be inverted")}
        assert exit_code(tmp_path, arrays | {"mask": mask}, "--scale", STANDARD) == 0

    @pytest.mark.parametrize("mask", [CAUSAL, np.arange(48) < 40, np.abs(DISTANCE) < 5, np.arange(48) >= 8])
    def test_a_right_mask_is_not(self, mask):
        assert not found(audit(heads()[0] | {"mask": mask}, scale=STANDARD))

    @pytest.mark.parametrize("causal", [True, False])
    @pytest.mark.parametrize("left", [True, False])
    @pytest.mark.parametrize("given", ["mask", "scores"])
    def test_short_sequences_of_a_batch_are_no_inverted_mask(self, causal, left, given):
        sequences = [heads(seed=seed) for seed in range(3)]
        arrays = {name: np.stack([one[name] for one, _ in sequences]) for name in "qk"}
        there = np.arange(48) < np.array([[48], [20], [9]])
        mask = (there[:, ::-1] if left else there)[:, None, None, :] & (CAUSAL | (not causal))
        scores = np.where(mask, np.stack([product for _, product in sequences]) / 8, -np.inf)
        judgement = audit(arrays | {given: mask if given == "mask" else scores}, layout="BHSD", scale=STANDARD)
        assert not found(judgement)
        assert any("67 of 144 tokens are padding" in words for words in judgement.assumed)

    def test_a_mask_against_that_of_the_scores_is_inverted(self):
        arrays, product = heads()
        scores = np.where(CAUSAL, product / 8, -np.inf)
        judgement = audit(arrays | {"mask": ~CAUSAL, "scores": scores})
        assert kinds(judgement) == {("note", "mask may be inverted")}
        same_facts(judgement, audit({"scores": scores}))

    def test_a_transposed_mask_is_noted(self):
        arrays, _ = heads()
        assert kinds(audit(arrays | {"mask": CAUSAL.T}, scale=STANDARD)) == {("note", "mask may be transposed")}


class TestLowScores:
    def test_wide_scores_are_no_mask(self, tmp_path):
        scores = 3000 * np.random.default_rng(4).normal(size=(1, 4, 64, 64))
        judgement = audit({"scores": scores})
        assert judgement.heads[0].row["logit_min"] == pytest.approx(scores[0, 0].min(), rel=1e-12)
        assert judgement.heads[0].row["n_scores"] == 64 * 64
        assert exit_code(tmp_path, {"scores": scores}) == 0

    @pytest.mark.parametrize("causal", [True, False])
    def test_what_q_k_explains_is_no_mask_however_low(self, causal):
        arrays, _ = heads()
        arrays["k"] = arrays["k"].astype(float)
        arrays["k"][:, 9] *= 5000
        product = arrays["q"].astype(float) @ arrays["k"].swapaxes(1, 2)
        scores = np.where(CAUSAL | (not causal), product / 8, -np.inf)
        row = audit(arrays | {"scores": scores}).heads[0].row
        lowest = np.where(CAUSAL | (not causal), product / 8, 0)[0].min()
        assert row["logit_min"] == pytest.approx(lowest, rel=1e-12)
        assert row["measured_factor"] == pytest.approx(1 / 8, rel=1e-9)

    @pytest.mark.parametrize("spread", [1.0, 300.0])
    @pytest.mark.parametrize("known", [True, False])
    def test_a_mask_is_read_off_where_a_gap_shows_it(self, spread, known):
        arrays, product = heads()
        scores = spread * product / 8
        masked = ({} if not known else arrays) | {"scores": np.where(CAUSAL, scores, scores - 1e4)}
        same_facts(audit(masked), audit({"scores": np.where(CAUSAL, scores, -np.inf)}))


class TestWeightsForLogits:
    @pytest.mark.parametrize("kind", ["plain", "causal", "float16", "bfloat16", "beside q and k"])
    def test_rows_that_sum_to_one_are_refused(self, tmp_path, kind, capsys):
        arrays, product = heads()
        weights = weights_of(np.where(CAUSAL | (kind != "causal"), product / 8, -np.inf))
        if kind == "bfloat16":
            weights = audit_files.from_bfloat16(audit_files.bfloat16(weights))
        weights = weights.astype(np.float16 if kind == "float16" else np.float32)
        given = (arrays if kind == "beside q and k" else {}) | {"scores": weights}
        assert exit_code(tmp_path, given) == 2
        assert "these are attention weights: rows sum to 1" in capsys.readouterr().err

    def test_their_logarithms_are_logits(self):
        arrays, product = heads()
        judgement = audit(arrays | {"scores": np.log(weights_of(product / 8))})
        assert judgement.heads[0].row["measured_factor"] == pytest.approx(1 / 8, rel=1e-6)
        assert not found(judgement)


class TestWhatIsNotFinite:
    def test_masked_tokens_are_left_out(self, tmp_path):
        arrays, _ = heads()
        there = np.arange(48) < 42
        whole = {name: x[:, there] for name, x in arrays.items()}
        holes = {name: np.where(there[:, None], x, np.nan) for name, x in arrays.items()}
        for mask in (there[:, None] & there, there):
            judgement = audit(holes | {"mask": mask}, scale=STANDARD)
            assert not found(judgement)
            assert any("6 of 48 tokens are padding" in words for words in judgement.assumed)
            same_facts(judgement, audit(whole, scale=STANDARD), (*LOGITS, "q_norm", "q_norm_low", "cosine", "n_keys"))
        assert exit_code(tmp_path, holes | {"mask": there}, "--scale", STANDARD) == 0

    def test_scores_say_too_which_tokens_are_padding(self):
        arrays, product = heads()
        there = np.arange(48) >= 6
        holes = {name: np.where(there[:, None], x, np.nan) for name, x in arrays.items()}
        scores = np.where(there, np.where(there[:, None], product / 8, np.nan), -np.inf)
        judgement = audit(holes | {"scores": scores}, scale=STANDARD)
        assert not found(judgement)
        same_facts(judgement, audit({"scores": (product / 8)[:, 6:, 6:]}), ("entropy", "row_logit_std", "max_weight"))

    @pytest.mark.parametrize("given", ["q and k", "scores"])
    def test_rows_of_padding_may_be_nan_in_the_scores(self, given):
        arrays, product = heads()
        there = np.arange(48) >= 6
        scores = np.where(there[:, None], product / 8, np.nan)
        judgement = audit((arrays if given == "q and k" else {}) | {"scores": scores, "mask": there})
        assert not found(judgement)
        same_facts(judgement, audit({"scores": (product / 8)[:, 6:, 6:]}), ("entropy", "row_logit_std", "max_weight"))
        assert ("bug", "not finite") in kinds(audit({"scores": scores}))

    @pytest.mark.parametrize("given", ["q and k", "scores"])
    def test_zero_tokens_are_padding(self, given):
        arrays, product = heads()
        there = np.arange(48) < 30
        zero = {name: np.where(there[:, None], x, 0) for name, x in arrays.items()}
        if given == "scores":
            zero = {"scores": np.where(there & there[:, None], product / 8, 0)}
        judgement = audit(zero, scale=STANDARD)
        same_facts(judgement, audit({"scores": (product / 8)[:, :30, :30]}))
        assert any("18 of 48 tokens are padding" in words for words in judgement.assumed)

    def test_a_query_that_starts_at_zero_is_no_padding(self):
        arrays, _ = heads()
        judgement = audit({"q": 0 * arrays["q"], "k": arrays["k"]}, scale="1/d_k", convention="mup", stage="init")
        assert not found(judgement)
        assert judgement.heads[0].row["n_scores"] == 48 * 48

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_others_are_named_and_the_rest_is_judged(self, value):
        arrays, _ = heads()
        arrays["k"][1, [5, 7], 3] = value
        judgement = audit(arrays, scale="none")
        (bad,) = [one for one in judgement.bugs if one.finding.kind in ("not finite", "overflow of float16")]
        assert bad.places == (("", 0, 1),)
        assert "k holds 2" in bad.finding.evidence
        assert "tokens 5, 7" in bad.finding.evidence
        assert sum(one.finding.kind == "wrong scale" for one in judgement.bugs) == 1
        assert judgement.heads[1].row["n_keys"] == 46

    @pytest.mark.parametrize(("count", "groups"), [(3, 3), (8, 1)])
    def test_heads_with_other_tokens_have_findings_of_their_own(self, count, groups):
        arrays, _ = heads(heads=8)
        for head in range(count):
            arrays["q"][head, 10 + head, 3] = np.nan
        bad = audit(arrays, scale=STANDARD).bugs
        assert len(bad) == groups
        assert bad[0].finding.evidence.endswith("q holds 1 NaN at token 10")
        assert sum(len(one.places) for one in bad) == count

    def test_a_head_of_nothing_else_stops_no_other(self):
        arrays, _ = heads()
        arrays["q"][1] = np.nan
        judgement = audit(arrays, scale=STANDARD)
        assert [head.level for head in judgement.heads] == ["healthy", "bug"]
        assert judgement.heads[1].row["entropy"] is None
        assert page.table_text(judgement.heads).count("\n") == 3
        assert "not finite" in page.terminal(judgement.heads, [], "")
        with pytest.raises(InputError, match="nothing can be judged: q holds"):
            audit({name: x[1:] for name, x in arrays.items()})

    @pytest.mark.parametrize("causal", [True, False])
    def test_what_float16_could_not_hold(self, tmp_path, causal):
        arrays, product = heads(gain=45.0)
        factor = 1.2 * 65504 / np.abs(np.where(CAUSAL, product, 0)).max()
        with np.errstate(over="ignore"):
            scores = np.where(CAUSAL | (not causal), factor * product, -np.inf).astype(np.float16)
        judgement = audit(arrays | {"scores": scores})
        (bad,) = [one for one in judgement.bugs if one.finding.kind == "overflow of float16"]
        largest = np.abs(np.where(CAUSAL | (not causal), factor * product, 0)).max()
        assert f"{largest / 65504:.2f}"[:3] in bad.finding.evidence
        # What is infinite is judged as q·k says.
        assert max(head.row["logit_max"] for head in judgement.heads) <= largest * 1.001
        assert exit_code(tmp_path, arrays | {"scores": scores}) == 1

    def test_infinite_scores_alone(self):
        scores = heads()[1] / 8
        scores[0, 3, 4] = np.inf
        scores[1, 5, 6] = np.nan
        assert kinds(audit({"scores": scores})) == {("bug", "overflow of float16"), ("bug", "not finite")}


class TestLayouts:
    @pytest.mark.slow
    @pytest.mark.parametrize(("n_heads", "shared"), [(4, 2), (8, 2), (6, 3)])
    @pytest.mark.parametrize("factor", [1.0, 1 / 8])
    def test_tiled_key_heads_are_named(self, tmp_path, n_heads, shared, factor):
        q, k = audit_files.normal(heads=n_heads, n=48, d=64)
        k = k[:shared]
        scores = factor * q @ np.tile(k, (n_heads // shared, 1, 1)).swapaxes(1, 2)
        judgement = audit({"q": q, "k": k, "scores": np.where(CAUSAL, scores, -np.inf)}, scale=str(factor))
        assert ("warning", "key/value heads tiled instead of repeated") in kinds(judgement)
        assert all(head.row["measured_r2"] > 0.999 for head in judgement.heads)
        assert bool(judgement.bugs) == (factor == 1)
        repeated = factor * q @ np.repeat(k, n_heads // shared, axis=0).swapaxes(1, 2)
        assert not audit({"q": q, "k": k, "scores": repeated}, scale="0.125", stage="trained").warnings

    def test_transposed_scores_are_named(self, tmp_path):
        arrays, product = heads()
        scores = np.where(CAUSAL, product / 8, -np.inf).swapaxes(1, 2)
        judgement = audit(arrays | {"scores": scores}, scale=STANDARD)
        assert kinds(judgement) == {("warning", "scores are transposed")}
        same_facts(judgement, audit({"scores": np.where(CAUSAL, product / 8, -np.inf)}))
        assert kinds(audit({"scores": scores})) == {("note", "scores may be transposed")}
        assert exit_code(tmp_path, arrays | {"scores": scores}, "--scale", STANDARD) == 0
        assert exit_code(tmp_path, arrays | {"scores": scores}, "--scale", STANDARD, "--fail-on", "warning") == 1

    @pytest.mark.slow
    @pytest.mark.parametrize("options", [{"num_heads": 8}, {"d_model": 512}, {}])
    def test_tokens_and_heads_exchanged_are_said(self, options):
        rng = np.random.default_rng(3)
        q, k = rng.normal(size=(2, 100, 8, 64)), rng.normal(size=(2, 100, 8 if options else 2, 64))
        judgement = audit({"q": q, "k": k}, scale=STANDARD, layout="BHSD", **options)
        assert kinds(judgement) == {("warning", "tokens and heads may be exchanged")}
        assert not found(audit({"q": q, "k": k}, scale=STANDARD, layout="BSHD", **options))
        with pytest.raises(InputError, match="are tokens and heads exchanged"):
            audit({"q": q, "k": q, "scores": np.zeros((2, 8, 100, 100))}, layout="BHSD")

    def test_the_number_of_heads_against_the_file(self):
        arrays, _ = heads(heads=4)
        judgement = audit(arrays, scale=STANDARD, num_heads=2)
        assert kinds(judgement) == {("warning", "other number of heads than declared")}
        assert not found(audit(arrays, scale=STANDARD, num_heads=12))
