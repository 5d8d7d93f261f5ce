"""The checks that only claims need: against exact values, and against plain code that shares nothing with them."""

import math

import numpy as np
import pytest
from scipy import special
from synthetic_claims import rows_of_checks as rows

from sqrtdk.results.described import columns
from sqrtdk.rows import softmax
from sqrtdk.studies import claim_checks
from sqrtdk.variants.normalisers import NORMALISERS

SEED = 1


def row(check: str, **where) -> dict:
    found = [one for one in rows() if one["check"] == check and all(one[key] == value for key, value in where.items())]
    assert len(found) == 1
    return found[0]


def plain_rows(d_k: int, n_keys: int, n_rows: int, seed: int = 1) -> np.ndarray:
    """Return unscaled scores, each row with a query and keys of its own."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_keys)) * np.sqrt(rng.chisquare(d_k, (n_rows, 1)))


def test_rows_are_complete_and_told_apart():
    keys = [(one["check"], one["case"], one["d_k"], one["n_keys"]) for one in rows()]
    assert len(set(keys)) == len(keys)
    for one in rows():
        assert tuple(one) == tuple(columns("claim_checks"))
        assert math.isfinite(one["estimate"])
        # What is drawn has an error; what is not has none.
        assert (one["se"] > 0) == (one["n_blocks"] > 1)


def test_estimates_agree_with_exact_values_to_their_errors():
    z = [(one["estimate"] - one["exact"]) / one["se"] for one in rows() if one["exact"] is not None and one["se"] > 0]
    # A share of 1 has an error that is wider on purpose.
    assert len(z) == 27
    assert np.abs(z).max() < 4.5
    assert np.mean(np.abs(z) < 1.96) > 0.8


def test_errors_are_those_between_runs():
    """The spread over seeds is what the standard errors say, for the checks that have no exact value too."""
    runs = [claim_checks.row_weights(16, seed) for seed in range(24)]
    for number, one in enumerate(runs[0]):
        values = np.array([run[number]["estimate"] for run in runs])
        errors = np.array([run[number]["se"] for run in runs])
        ratio = values.std(ddof=1) / math.sqrt(np.mean(errors**2))
        assert 0.6 < ratio < 1.5, (one["check"], one["case"], ratio)


def test_what_is_calculated_is_exact():
    for one in rows():
        if one["se"] == 0 and one["exact"] is not None:
            assert one["estimate"] == pytest.approx(one["exact"], abs=1e-12), one["check"]


@pytest.mark.parametrize("d_k", [16, 256])
def test_sizes_of_scores_by_plain_code(d_k):
    scores = np.abs(plain_rows(d_k, 64, 20_000)) / math.sqrt(d_k)
    for check, values in (("mean_size", scores), ("largest_score", scores.max(axis=1))):
        of_rows = values.reshape(len(scores), -1).mean(axis=1)
        found = row(check, d_k=d_k)
        se = math.hypot(of_rows.std() / math.sqrt(len(of_rows)), found["se"])
        assert abs(of_rows.mean() - found["estimate"]) < 4.5 * se


def test_exact_sizes_by_their_definitions():
    x = np.linspace(0, 60, 600_001)
    density = 2 * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    largest = 64 * density * (2 * special.ndtr(x) - 1) ** 63
    exact = claim_checks.exact_scores(1, 64)
    # At d_k = 1 the length of a query is |z|, whose mean is that of the half-normal law.
    assert exact["largest_score", ""] == pytest.approx(np.trapezoid(x * largest, x) * math.sqrt(2 / math.pi), rel=1e-6)
    assert exact["mean_size", ""] == pytest.approx(2 / math.pi, rel=1e-12)
    assert claim_checks.mean_length(3) == pytest.approx(2 * math.sqrt(2 / math.pi), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("n_keys", [16, 1024])
def test_weights_of_rows_by_plain_code(n_keys):
    scores = plain_rows(claim_checks.D_K, n_keys, 8_000)
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p = np.sort(p / p.sum(axis=1, keepdims=True), axis=1)
    top = p[:, -2:].sum(axis=1)
    found = row("top_two_weight", n_keys=n_keys)
    assert abs(top.mean() - found["estimate"]) < 4.5 * math.hypot(top.std() / math.sqrt(len(top)), found["se"])
    hot = p[p[:, -1] > claim_checks.ONE_HOT]
    for case, place in (("runner_up", -2), ("largest", -1)):
        jacobian = -hot[:, [place]] * hot
        jacobian[:, place] += hot[:, place]
        norms = np.linalg.norm(jacobian, axis=1)
        found = row("one_hot_gradient", case=case, n_keys=n_keys)
        assert abs(norms.mean() - found["estimate"]) < 4.5 * math.hypot(
            norms.std() / math.sqrt(len(norms)), found["se"]
        )


def test_alignment_by_plain_code():
    rng = np.random.default_rng(3)
    q, k = rng.normal(size=(2, 50_000, claim_checks.D_K))
    s = np.einsum("ij,ij->i", q, k)
    cosine = s / np.linalg.norm(q, axis=1) / np.linalg.norm(k, axis=1)
    sigma = math.sqrt(math.log(2))
    for case, lengths in (("equal_lengths", 1.0), ("unequal_lengths", np.exp(sigma * rng.normal(size=len(s))))):
        assert np.corrcoef(s * lengths, cosine)[0, 1] == pytest.approx(row("alignment", case=case)["exact"], abs=0.02)


def test_complex_steps_are_derivatives():
    z = np.array([[0.3, -1.2, 2.0]])
    found = claim_checks._complex_steps(lambda x: np.exp(x) * x[..., :1], z)[0]
    expected = np.diag(np.exp(z[0]) * z[0, 0])
    expected[:, 0] += np.exp(z[0])
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_the_loss_gradient_is_that_of_differences():
    z, step = np.array(claim_checks.EXAMPLE), 1e-6
    moved = z + step * np.eye(3)
    loss = [-math.log(p[claim_checks.TARGET]) for p in softmax.softmax(np.vstack([moved, z]))]
    gradient = (np.array(loss[:3]) - loss[3]) / step
    y = softmax.softmax(z)
    assert np.abs(gradient - y * (1 - y)).max() == pytest.approx(row("loss_formula_error")["estimate"], abs=1e-5)


def test_softmax_with_a_phantom_key_is_no_shifted_softmax():
    z = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    golden = [0.0116, 0.0315, 0.0858, 0.2331, 0.6337]
    np.testing.assert_allclose(NORMALISERS["softmax1"]().weights(z), golden, atol=1e-4)
    assert row("shifted_from_softmax")["estimate"] < 1e-15
    assert row("shifted_from_softmax1")["estimate"] > 0.05


def test_larger_weights_are_a_larger_scale_and_nothing_else_is():
    assert row("twice_the_weights")["estimate"] == 0.0
    c = claim_checks.TRAINED_D_K**-0.5
    twice = claim_checks._losses(SEED, c, 2.0, 1.0)
    for factor, rate in ((4 * c, 1.0), (2 * c, 0.25), (c, 1.0)):
        assert np.abs(claim_checks._losses(SEED, factor, 1.0, rate) / twice - 1).max() > 1e-6


@pytest.mark.parametrize("name", ["window", "top_k"])
def test_sparse_attention_by_plain_code(name):
    scores, keys = plain_rows(64, 64, 20_000), []
    for factor in (1 / 8, 1.0):
        kept = scores[:, :16] if name == "window" else np.sort(scores, axis=1)[:, -8:]
        p = np.exp(factor * (kept - kept.max(axis=1, keepdims=True)))
        keys.append(1 / np.square(p / p.sum(axis=1, keepdims=True)).sum(axis=1))
    means = [one.mean() for one in keys]
    se = means[0] / means[1] * math.hypot(*(one.std() / one.mean() / math.sqrt(len(scores)) for one in keys))
    found = row("sparse_effect", case=name)
    assert abs(means[0] / means[1] - found["estimate"]) < 4.5 * math.hypot(se, found["se"])


def test_a_logit_far_beyond_ln_n_has_nearly_all_the_weight_of_any_row():
    for n in claim_checks.MANY_KEYS:
        z = np.zeros(n)
        z[0] = math.log(n) + claim_checks.FAR
        expected = softmax.softmax(z)[0]
        assert row("far_logit_weight", case="beyond_ln_n", n_keys=n)["estimate"] == pytest.approx(expected, rel=1e-12)


def test_heads_of_published_models_are_counted():
    odd = {name for name, (d_model, h, d_k) in claim_checks.WIDTHS_OF_HEADS.items() if d_k != d_model / h}
    assert odd == {"T5 3B", "Gemma 7B", "Gemma 2 9B", "Gemma 2 27B", "Gemma 3 27B"}
    assert row("heads_of_usual_width")["estimate"] == 11 / 16


def test_the_largest_rate_of_large_weights_is_that_of_the_progress(monkeypatch):
    """Where progress is known, so are the ratio of the two ends and its error over seeds."""
    ends = {1.0: np.linspace(0.9, 1.1, 8) * 0.04, claim_checks.LARGE: np.linspace(0.95, 1.05, 8) * 0.02}

    def progress(optimiser, seed, weights):
        rates = np.array(claim_checks.TRIED["adam"][2][weights])
        return np.clip(claim_checks.WORKS * (1 + np.log(ends[weights] / rates[:, None])), 0, 1)

    monkeypatch.setattr(claim_checks, "_progress", progress)
    found = claim_checks.rate_of_large_weights("adam", SEED)
    assert found["estimate"] == pytest.approx(0.5, rel=0.02)
    assert 0 < found["se"] < 0.02
    ends[claim_checks.LARGE] = ends[1.0] = np.linspace(0.9, 1.1, 8) * 0.03
    assert claim_checks.rate_of_large_weights("adam", SEED)["estimate"] == pytest.approx(1.0)


def test_heads_are_observations(shipped_dump):
    q, k = (array[0] for array in (shipped_dump.q, shipped_dump.k))
    heads = [claim_checks.TrainedHead("one", *pair, 0.25) for pair in zip(q, k, strict=True)]
    found = claim_checks.trained_heads(heads)
    shares = [np.mean(np.abs(one @ other.T) <= 40) for one, other in zip(q, k, strict=True)]
    assert [one["check"] for one in found] == ["share_within", "alignment"]
    assert found[0]["estimate"] == pytest.approx(np.mean(shares))
    assert found[0]["se"] == pytest.approx(np.std(shares, ddof=1) / math.sqrt(len(shares)))
    assert found[0]["n_blocks"] == len(q)
    assert 0.9 < found[1]["estimate"] < 1
    assert claim_checks.trained_heads([]) == []
    assert claim_checks.trained_heads(heads[:1]) == []


def test_of_several_models_each_is_an_observation(shipped_dump):
    q, k = (array[0, :4] for array in (shipped_dump.q, shipped_dump.k))
    causal = np.tri(len(q[0]), dtype=bool)
    models = ("one", "one", "one", "another")
    heads = [claim_checks.TrainedHead(name, *pair, 0.25, causal) for name, *pair in zip(models, q, k, strict=True)]
    shares = [np.mean(np.abs((one @ other.T)[causal]) <= 40) for one, other in zip(q, k, strict=True)]
    found = claim_checks.trained_heads(heads)
    assert found[0]["estimate"] == pytest.approx((np.mean(shares[:3]) + shares[3]) / 2)
    assert found[0]["n_blocks"] == 2
    assert found[0]["d_k"] == q.shape[-1]
    narrow = heads[:3] + [heads[3]._replace(q=q[3, :, :16], k=k[3, :, :16])]
    assert claim_checks.trained_heads(narrow)[0]["d_k"] == 0


def test_streams_belong_to_what_they_are_for():
    assert claim_checks.scores(16, SEED) == claim_checks.scores(16, SEED)
    assert claim_checks.scores(16, SEED)[0]["estimate"] != claim_checks.scores(16, SEED + 1)[0]["estimate"]
