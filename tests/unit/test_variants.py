"""Variants of attention: how they are spelled, their exact spread, their gradients, and exact statements about them."""

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad

from sqrtdk.sampling import streams
from sqrtdk.studies import alternatives
from sqrtdk.variants import sizes
from sqrtdk.variants.notation import VariantError, all_names, kind, parse
from sqrtdk.variants.scalings import SCALINGS

RULES = list(SCALINGS)
TRANSFORMED = (
    "none | soft_cap(cap=5)",
    "1/sqrt(d_k) | hard_clip(limit=1)",
    "none | soft_cap(cap=3) | hard_clip(limit=2)",
)


class TestSpelling:
    @pytest.mark.parametrize(
        ("text", "canonical"),
        [
            ("none", "none"),
            (" none|softmax1 ", "none | softmax1"),
            ("ssmax(s=0.43)", "ssmax"),
            ("ssmax( s = 1 )", "ssmax(s=1)"),
            ("1/sqrt(d_k)|soft_cap(cap=30)|sparsemax", "1/sqrt(d_k) | soft_cap(cap=30) | sparsemax"),
            ("sqrt(ln(n)/d_k)", "sqrt(ln(n)/d_k)"),
            ("none | top_k(k=8)", "none | top_k"),
        ],
    )
    def test_one_variant_has_one_spelling(self, text, canonical):
        assert parse(text).text == canonical
        assert parse(canonical).text == canonical

    @pytest.mark.parametrize(
        ("text", "words", "nearest"),
        [
            ("1/sqrt(dk)", "no scale rule '1/sqrt(dk)'", "1/sqrt(d_k)"),
            ("", "no scale rule ''", None),
            ("none | sparsmax", "no score transform or normaliser 'sparsmax'", "sparsemax"),
            ("none | softmax1 | soft_cap", "nothing may follow the normaliser", None),
            ("ssmax(t=1)", "ssmax has no parameter 't'", None),
            ("yarn(strech=2)", "yarn has no parameter", "stretch"),
            ("ssmax(s=-1)", "has to be a number in [1e-06, 10000]", None),
            ("ssmax(s=nan)", "has to be a number in [1e-06, 10000]", None),
            ("ssmax(s=1, s=2)", "is not one `parameter=value`", None),
            ("none(g=1)", "none has no parameter 'g'; it has none", None),
            ("none | top_k(k=1.5)", "has to be a whole number", None),
        ],
    )
    def test_what_cannot_be_read_says_why(self, text, words, nearest):
        with pytest.raises(VariantError) as error:
            parse(text)
        assert words in error.value.problem
        assert error.value.nearest == nearest


def blocks(d_k, n_keys, n_queries=24, n_blocks=400, seed=1):
    rng = streams.generator(seed, "variants", d_k, n_keys)
    q = streams.standard_normal(rng, (n_blocks, n_queries, d_k)).astype(float)
    k = streams.standard_normal(rng, (n_blocks, n_keys, d_k)).astype(float)
    return q, k, q @ k.swapaxes(-1, -2)


def test_every_variant_has_a_kind():
    kinds = [kind(text) for text in ("none", "yarn", "inverted", "none | soft_cap", "none | soft_cap | softmax1")]
    assert kinds == ["rule", "model", "mistake", "transform", "normaliser"]


class TestSpread:
    @pytest.mark.parametrize("d_k", [4, 64])
    @pytest.mark.parametrize("text", [*RULES, *TRANSFORMED])
    def test_measured_logits_have_the_exact_spread(self, text, d_k):
        q, k, scores = blocks(d_k, 32)
        variance = parse(text).logits(scores, q, k).var(axis=-1, ddof=1).mean(axis=1)
        exact = parse(text).exact_std(d_k, 32)
        if exact is None:
            assert SCALINGS[parse(text).scaling.name].rows
            return
        se = variance.std(ddof=1) / len(variance) ** 0.5
        # Division by its own standard deviation leaves nothing random but rounding.
        assert abs(variance.mean() - exact**2) < max(4.5 * se, 1e-12)
        assert se / (2 * exact**2) < 0.02

    @pytest.mark.parametrize("n", [4, 5, 6, 16, 65, 1024])
    @pytest.mark.parametrize("name", ["MEAN_ABS", "MEDIAN_ABS", "MAX_ABS"])
    def test_sizes_of_independent_scores(self, name, n):
        x = np.random.default_rng(n).standard_normal((40_000 if n < 100 else 4000, n))
        size = getattr(sizes, name)
        ratio = x.var(axis=1, ddof=1) / size.value(x)[:, 0] ** 2
        # Few keys make the median's inverse square heavy-tailed, so the largest thousandth is left to the tolerance.
        assert abs(ratio.mean() - size.unit_variance(n)) < 4.5 * ratio.std() / len(x) ** 0.5

    @pytest.mark.parametrize("name", ["STD", "MEAN_ABS", "MEDIAN_ABS"])
    def test_sizes_approach_their_limits(self, name):
        size = getattr(sizes, name)
        gaps = [abs(size.unit_variance(n) - size.limit) for n in (2**8, 2**14, 2**20)]
        assert gaps[0] > gaps[1] > gaps[2]
        assert gaps[2] < 1e-5

    def test_a_clip_is_integrated_over_its_kink(self):
        # ∫ min(|x|, 1/4)² φ(x) dx twice: by parts, for one key direction of norm close to 32.
        from scipy.stats import norm

        s = 5 / 32
        exact = 2 * (norm.cdf(s) - 0.5 - s * norm.pdf(s)) + 2 * s * s * norm.sf(s)
        # At d_k = 1024 the norm of q varies by 2 %, which moves the mean by far less than a thousandth.
        assert parse("none | hard_clip(limit=5)").exact_std(1024, 64) == pytest.approx(32 * exact**0.5, rel=1e-3)

    def test_published_limits(self):
        # √(π/2) for the mean absolute value, 1/0.6745 for the median.
        assert sizes.MEAN_ABS.limit**0.5 == pytest.approx(1.2533, abs=1e-4)
        assert sizes.MEDIAN_ABS.limit**0.5 == pytest.approx(1.4826, abs=1e-4)

    @pytest.mark.parametrize("text", ["global_std", "global_mean_abs", "global_median_abs"])
    def test_rules_over_a_whole_head_approach_their_limit(self, text):
        q, k, scores = blocks(16, 256, n_queries=256, n_blocks=60)
        variance = parse(text).logits(scores, q, k).var(axis=-1, ddof=1).mean(axis=1)
        limit = parse(text).limit_std(16)
        # The size is estimated from one head, which biases it by a share of its own relative variance.
        assert variance.mean() ** 0.5 == pytest.approx(limit, rel=0.01)

    def test_the_root_law_is_the_only_one_of_the_three_with_the_same_spread_at_every_width(self):
        three = ("none", "1/sqrt(d_k)", "1/d_k")
        spreads = {text: {parse(text).exact_std(d_k, 64) for d_k in (16, 64, 256)} for text in three}
        assert [len(found) for found in spreads.values()] == [3, 1, 3]


def autograd_loss(text):
    """Return the loss Σ v·softmax(logits) of one block as a function of q, k and v, written out for autograd."""
    variant = parse(text)

    def loss(q, k, v):
        s = anp.dot(q, k.T)
        rule, values = variant.scaling, dict(variant.values)
        d_k, n = q.shape[-1], k.shape[0]
        if rule.factor:
            z = rule.factor(d_k, n, **values) * s
        elif rule.cosine:
            norms = anp.sqrt(anp.sum(q**2, axis=1))[:, None] * anp.sqrt(anp.sum(k**2, axis=1))[None]
            z = rule.cosine(d_k, n, **values) * s / norms
        else:
            axis = None if rule.rows else 1
            if rule.size == "STD":
                h = anp.sqrt(anp.mean((s - anp.mean(s, axis=axis, keepdims=True)) ** 2, axis=axis, keepdims=True))
            elif rule.size == "MEAN_ABS":
                h = anp.mean(anp.abs(s), axis=axis, keepdims=True)
            elif rule.size == "MAX_ABS":
                h = anp.max(anp.abs(s), axis=axis, keepdims=True)
            else:
                parts = [s.reshape(-1)] if rule.rows else [s[i] for i in range(s.shape[0])]
                parts, m = [anp.sort(anp.abs(part)) for part in parts], parts[0].size
                h = anp.stack([(part[(m - 1) // 2] + part[m // 2]) / 2 for part in parts])[:, None]
            z = s / h
        for transform, value in variant.transforms:
            if transform.name == "soft_cap":
                z = value * anp.tanh(z / value)
            elif transform.name == "hard_clip":
                z = anp.where(anp.abs(z) < value, z, value * anp.sign(z))
        e = anp.exp(z - anp.max(z, axis=1, keepdims=True))
        return anp.sum(v * e / anp.sum(e, axis=1, keepdims=True))

    return loss


class TestGradient:
    @pytest.mark.parametrize("n_keys", [6, 7])
    @pytest.mark.parametrize("text", [*RULES, *TRANSFORMED])
    def test_the_gradient_of_the_query_agrees_with_autograd(self, text, n_keys):
        rng = np.random.default_rng(7)
        q, k, v = rng.standard_normal((5, 3)), rng.standard_normal((n_keys, 3)), rng.standard_normal((5, n_keys))
        expected = grad(autograd_loss(text))(q, k, v)
        ours = alternatives.row_measures(parse(text), (q @ k.T)[None], q[None], k[None], v[None])
        lengths = np.sqrt(np.sum(expected**2, axis=1))
        np.testing.assert_allclose(ours["grad_query"][0], lengths, rtol=1e-9, atol=1e-12)

    def test_through_a_soft_cap_at_finite_differences(self):
        rng = np.random.default_rng(3)
        q, k, v = rng.standard_normal((2, 3)), rng.standard_normal((5, 3)), rng.standard_normal((2, 5))
        loss = autograd_loss("none | soft_cap(cap=2)")
        step, expected = 1e-6, np.zeros_like(q)
        for i in np.ndindex(q.shape):
            ahead, behind = q.copy(), q.copy()
            ahead[i] += step
            behind[i] -= step
            expected[i] = (loss(ahead, k, v) - loss(behind, k, v)) / (2 * step)
        variant = parse("none | soft_cap(cap=2)")
        measures = alternatives.row_measures(variant, (q @ k.T)[None], q[None], k[None], v[None])
        np.testing.assert_allclose(measures["grad_query"][0], np.sqrt(np.sum(expected**2, axis=1)), rtol=1e-6)

    @pytest.mark.parametrize("text", RULES)
    def test_a_few_queries_have_the_gradient_they_have_among_all(self, text):
        rng = np.random.default_rng(9)
        q, k, g = rng.standard_normal((2, 5, 3)), rng.standard_normal((2, 7, 3)), rng.standard_normal((2, 5, 7))
        scores = q @ k.swapaxes(-1, -2)
        everything = parse(text).query_gradient(scores, q, k, g)
        np.testing.assert_allclose(parse(text).query_gradient(scores, q, k, g, 2), everything[:, :2], rtol=1e-12)


class TestExactStatements:
    """What the report says is exactly so."""

    def row(self, text, q, k, v):
        return alternatives.row_measures(parse(text), q @ k.swapaxes(-1, -2), q, k, v)

    @pytest.fixture
    def attention(self):
        rng = np.random.default_rng(11)
        return rng.standard_normal((3, 4, 16)), rng.standard_normal((3, 9, 16)), rng.standard_normal((3, 4, 9))

    def test_a_learnable_scalar_is_absorbed_by_the_query_weights(self, attention):
        q, k, _ = attention
        with_g = parse("learnable(g=4)").logits(q @ k.swapaxes(-1, -2), q, k)
        absorbed = parse("1/sqrt(d_k)").logits(4 * q @ k.swapaxes(-1, -2), 4 * q, k)
        np.testing.assert_array_equal(with_g, absorbed)

    def test_with_normalised_queries_it_is_not(self, attention):
        q, k, _ = attention
        scores = q @ k.swapaxes(-1, -2)
        one = parse("qk_norm(g=1)").logits(scores, q, k)
        np.testing.assert_allclose(parse("qk_norm(g=1)").logits(4 * scores, 4 * q, k), one, rtol=1e-14)
        np.testing.assert_allclose(parse("qk_norm(g=4)").logits(scores, q, k), 4 * one, rtol=1e-14)

    @pytest.mark.parametrize("text", [rule for rule in RULES if SCALINGS[rule].factor is None])
    def test_rules_that_normalise_do_not_see_the_size_of_the_weights(self, text, attention):
        q, k, _ = attention
        scores = q @ k.swapaxes(-1, -2)
        larger = parse(text).logits(32 * scores, 8 * q, 4 * k)
        np.testing.assert_allclose(larger, parse(text).logits(scores, q, k), rtol=1e-13)

    def test_rmsnorm_on_queries_and_keys_with_the_root_is_the_cosine_times_the_root(self, attention):
        q, k, _ = attention
        rms = lambda x: x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True))  # noqa: E731
        plain = rms(q) @ rms(k).swapaxes(-1, -2) / 4
        np.testing.assert_allclose(parse("qk_rmsnorm").logits(q @ k.swapaxes(-1, -2), q, k), plain, rtol=1e-13)

    def test_scaling_after_softmax_multiplies_the_gradient_and_changes_nothing_else(self, attention):
        plain, scaled = (self.row(text, *attention) for text in ("none", "none | post_scale(a=0.5)"))
        np.testing.assert_allclose(scaled["grad_query"], 0.5 * plain["grad_query"], rtol=1e-13)
        np.testing.assert_allclose(scaled["row_sum"], 0.5, rtol=1e-14)
        for measure in ("entropy", "effective_keys", "max_weight"):
            np.testing.assert_allclose(scaled[measure], plain[measure], rtol=1e-13)

    def test_a_hard_clip_below_every_logit_stops_the_gradient(self, attention):
        clipped = self.row("none | hard_clip(limit=1e-6)", *attention)
        assert (clipped["dead_share"] == 1).all()
        np.testing.assert_allclose(clipped["clipped_mass"], 1, rtol=1e-15)
        assert (self.row("none | soft_cap(cap=1)", *attention)["dead_share"] == 0).all()

    def test_a_gap_of_one_makes_sparsemax_one_hot_and_dead(self):
        q, k = np.ones((1, 1, 1)), np.array([[[0.0], [1.0], [2.5]]])
        v = np.random.default_rng(0).standard_normal((1, 1, 3))
        sparse = self.row("none | sparsemax", q, k, v)
        assert sparse["dead_share"][0, 0] == 1
        assert sparse["effective_keys"][0, 0] == 1
        assert self.row("none", q, k, v)["dead_share"][0, 0] == 0


class TestSimulation:
    def test_every_rule_is_measured_and_a_variant_changes_no_other_number(self):
        first = alternatives.simulate(4, [8], all_names([]), seed=3)
        more = alternatives.simulate(4, [8], all_names(["none | softmax1", "none|softmax1"]), seed=3)
        assert list(dict.fromkeys(row["variant"] for row in first)) == RULES
        kept = [row for row in more if row["variant"] != "none | softmax1"]
        assert kept == first
        assert len(more) == len(first) + len(alternatives.MEASURES)

    def test_estimates_lie_within_their_errors_of_the_exact_spread(self):
        rows = alternatives.simulate(64, [64], all_names(["none | soft_cap(cap=20)"]), seed=5)
        spreads = [row for row in rows if row["measure"] == "logit_std" and row["exact"] is not None]
        assert len(spreads) > 20
        for row in spreads:
            assert abs(row["estimate"] - row["exact"]) <= max(4.5 * row["se"], 1e-12), row
            assert row["se"] <= 0.005 * row["estimate"], row

    def test_extreme_logits_give_finite_measures(self):
        q, k = 1e3 * np.ones((1, 2, 4)), 1e3 * np.random.default_rng(1).standard_normal((1, 6, 4))
        for text in [*RULES, "none | softmax1", "none | entmax15", "none | sigmoid", "none | qk_clip"]:
            found = alternatives.row_measures(parse(text), q @ k.swapaxes(-1, -2), q, k, np.ones((1, 2, 6)))
            assert all(np.isfinite(values).all() for values in found.values()), text


@pytest.mark.parametrize("text", [rule for rule in RULES if SCALINGS[rule].size])
def test_rows_of_equal_scores_are_uniform_and_not_divided_by_zero(text):
    q, k, v = np.ones((1, 2, 1)), np.zeros((1, 4, 1)) if "abs" in text else np.ones((1, 4, 1)), np.arange(8.0)
    found = alternatives.row_measures(parse(text), q @ k.swapaxes(-1, -2), q, k, v.reshape(1, 2, 4))
    np.testing.assert_allclose(found["effective_keys"], 4)
    assert all(np.isfinite(values).all() for values in found.values())


class TestNumbers:
    def test_a_number_is_spelled_so_that_it_reads_back_as_the_same(self):
        for text in ("constant(c=0.0883883476)", "none | top_k(k=1234567)", "learnable(g=1.0000001)"):
            assert parse(text).text == text
            assert parse(parse(text).text).values == parse(text).values
        assert parse("constant(c=0.0883883476)").text != parse("constant(c=0.0883883477)").text

    @pytest.mark.parametrize("text", ["constant(c=1e300)", "cosine(temperature=1e-320)", "none | post_scale(a=1e300)"])
    def test_numbers_that_nobody_runs_are_refused(self, text):
        with pytest.raises(VariantError, match=r"has to be a number in"):
            parse(text)
