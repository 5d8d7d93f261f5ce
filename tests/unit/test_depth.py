"""Stacks of random layers: their statistics, the exact mean given the inputs, and what a normalisation resets."""

import functools
import math

import numpy as np
import pandas as pd
import pytest

from sqrtdk.rows import softmax
from sqrtdk.sampling import streams
from sqrtdk.studies import depth


@functools.lru_cache
def table() -> pd.DataFrame:
    return pd.DataFrame(depth.simulate(8, 3))


def pick(measure: str, norm: str, residual=True, scaling="1/sqrt(d_k)") -> pd.DataFrame:
    rows = table()
    rows = rows[(rows["measure"] == measure) & (rows["norm"] == norm) & (rows["residual"] == residual)]
    return rows[rows["scaling"] == scaling].sort_values("layer")


def test_token_cosine_is_the_mean_over_pairs():
    x = np.random.default_rng(1).standard_normal((2, 5, 7)) + 1
    unit = x / np.linalg.norm(x, axis=-1, keepdims=True)
    pairs = [[u @ v for i, u in enumerate(one) for v in one[i + 1 :]] for one in unit]
    assert depth.token_cosine(x) == pytest.approx(np.mean(pairs, axis=1))
    assert depth.token_cosine(np.ones((3, 4))) == pytest.approx(1)


def test_expected_variance_is_one_minus_the_cosine_for_normalised_tokens():
    x = np.random.default_rng(2).standard_normal((depth.N_TOKENS, depth.D_MODEL)) + 0.8
    for normalise in (depth.layer_normalise, depth.rms_normalise):
        y = normalise(x)
        assert depth.expected_variance(y, depth.D_K**-0.5) == pytest.approx(1 - depth.token_cosine(y), rel=1e-10)
    y = depth.rms_normalise(x)
    assert depth.expected_variance(3 * y, 1.0) == pytest.approx(81 * depth.D_K * (1 - depth.token_cosine(y)))


def test_expected_variance_is_the_mean_over_weights():
    x = depth.rms_normalise(np.random.default_rng(3).standard_normal((12, 32)) + 0.7)
    rng, variances = np.random.default_rng(4), []
    for _ in range(400):
        w_q, w_k = rng.standard_normal((2, 32, depth.D_K)) / math.sqrt(32)
        logits = (x @ w_q) @ (x @ w_k).T
        variances.append(np.var(logits, axis=1, ddof=1).mean())
    se = np.std(variances, ddof=1) / 20
    assert abs(np.mean(variances) - depth.expected_variance(x, 1.0)) < 4.5 * se
    assert abs(np.mean(variances) - depth.D_K) > 10 * se  # the pooled variance is not what a row has


def test_one_layer_is_attention():
    """Follow one variant by hand for two layers, with the stream's own numbers."""
    found = depth.one_stack(streams.generator(5, "stack"))
    place = depth.VARIANTS.index(depth.Stack("pre_layernorm", True, "1/sqrt(d_k)"))
    rng = streams.generator(5, "stack")
    state = streams.standard_normal(rng, (depth.N_TOKENS, depth.D_MODEL)).astype(float)
    state = depth.layer_normalise(state)
    for layer in range(2):
        w = streams.standard_normal(rng, (4, depth.D_MODEL, depth.D_MODEL)).astype(float) / math.sqrt(depth.D_MODEL)
        x = depth.layer_normalise(state)
        heads, variance, entropy = [], [], []
        for h in range(depth.N_HEADS):
            part = slice(h * depth.D_K, (h + 1) * depth.D_K)
            q, k, v = (x @ w[i][:, part] for i in range(3))
            logits = q @ k.T / math.sqrt(depth.D_K)
            variance.append(np.var(logits, axis=1, ddof=1).mean())
            entropy.append(softmax.normalised_entropy(softmax.rows(logits)).mean())
            heads.append(softmax.softmax(logits) @ v)
        expected = [((x @ w[0]) ** 2).mean(), 1.0, np.mean(variance)]
        assert found[layer, place, :3] == pytest.approx(expected, rel=1e-9)
        assert found[layer, place, 4:] == pytest.approx([np.mean(entropy), depth.token_cosine(x)], rel=1e-9)
        state = state + np.concatenate(heads, axis=1) @ w[3]


@pytest.mark.slow
def test_first_layer_is_alike_for_all_and_has_its_exact_values():
    first = table()[table()["layer"] == 1]
    for scaling, std in (("none", 8.0), ("1/sqrt(d_k)", 1.0)):
        rows = first[(first["scaling"] == scaling) & (first["measure"] == "logit_std")]
        assert rows["estimate"].nunique() <= 2  # twelve times the same, but for rounding
        assert np.ptp(rows["estimate"]) < 1e-9
        # Eight stacks: Student's t with 7 degrees of freedom is 7 out once in 10⁴ times.
        assert abs(rows["estimate"].iloc[0] - std) < 7 * rows["se"].iloc[0]
    cosine = first[first["measure"] == "token_cosine"]
    assert (abs(cosine["estimate"]) < 7 * cosine["se"]).all()
    assert (cosine["exact"] == 0).all()


def test_query_std_is_one_wherever_the_inputs_are_normalised():
    for norm in ("pre_layernorm", "post_layernorm", "pre_rmsnorm"):
        rows = pick("query_std", norm)
        assert rows["exact"].to_numpy() == pytest.approx(1, rel=1e-12)
        assert (abs(rows["estimate"] - 1) < 7 * rows["se"]).all()


def test_given_the_inputs_the_variance_is_exact_in_every_layer_and_kind():
    rows = table()[(table()["measure"] == "logit_variance_ratio") & table()["estimate"].notna()]
    z = (rows["estimate"] - 1) / rows["se"]
    assert len(rows) > 100
    assert (abs(z) < 9).all()
    assert abs(z).median() == pytest.approx(0.71, abs=0.35)


def test_depth_builds_nothing_up_under_a_normalisation_and_does_without():
    for scaling in ("none", "1/sqrt(d_k)"):
        for norm in ("pre_layernorm", "post_layernorm", "pre_rmsnorm"):
            spread = pick("logit_std", norm, scaling=scaling)["estimate"]
            assert spread.max() < 1.02 * spread.iloc[0]
        free = pick("logit_std", "none", scaling=scaling)["estimate"]
        assert free.iloc[-1] > 5 * free.iloc[0]


def test_without_residuals_tokens_collapse_and_what_is_left_is_not_called_a_number():
    rows = pick("logit_std", "none", residual=False)
    assert rows["estimate"].isna().sum() >= 6
    assert rows["estimate"].isna().is_monotonic_increasing
    assert (rows["estimate"].dropna() > depth.SMALLEST_STD).all()
    cosine = pick("token_cosine", "pre_layernorm", residual=False)["estimate"]
    assert cosine.iloc[0] < 0.01
    assert cosine.iloc[-1] == pytest.approx(1, abs=1e-9)


def test_without_residuals_a_norm_before_attention_or_after_it_is_the_same(monkeypatch):
    kinds = tuple(depth.Stack(f"{place}_layernorm", False, "none") for place in ("pre", "post"))
    monkeypatch.setattr(depth, "VARIANTS", kinds)
    found = depth.one_stack(streams.generator(6, "same"))[:6]
    assert found[:, 0, [0, 2, 4]] == pytest.approx(found[:, 1, [0, 2, 4]], rel=1e-6)
    # With residuals the two differ.
    monkeypatch.setattr(depth, "VARIANTS", tuple(depth.Stack(kind.norm, True, "none") for kind in kinds))
    found = depth.one_stack(streams.generator(6, "same"))[:6]
    assert abs(found[5, 0, 5] / found[5, 1, 5] - 1) > 0.05


@pytest.mark.slow
def test_every_kind_and_layer_is_there_and_the_seed_repeats():
    few = pd.DataFrame(depth.simulate(2, 3))
    pd.testing.assert_frame_equal(few, pd.DataFrame(depth.simulate(2, 3)))
    assert set(few["measure"]) == set(depth.MEASURES)
    assert len(few) == len(depth.VARIANTS) * depth.N_LAYERS * len(depth.MEASURES)
    assert few["estimate"].dropna().iloc[0] != table()["estimate"].dropna().iloc[0]
