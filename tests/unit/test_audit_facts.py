"""Facts of a head against the short and slow way, their intervals against the truth, masks, offsets and types."""

import math

import audit_files
import numpy as np
import pytest

from sqrtdk.heads import facts, tally
from sqrtdk.heads.dumps import dump_of
from sqrtdk.heads.masks import causal
from sqrtdk.heads.tally import Block
from sqrtdk.heads.verdict import iid_entropy
from sqrtdk.theory import random_energy


def plainly(q, k, factor, allowed=None):
    """Compute the facts of a head the slow way, and nothing cleverly."""
    s = q @ k.T
    allowed = np.ones(s.shape, bool) if allowed is None else np.broadcast_to(allowed, s.shape)
    rows = [np.flatnonzero(row) for row in allowed]
    rows = [(i, keys) for i, keys in enumerate(rows) if len(keys) > 1]
    pooled = np.concatenate([s[i, keys] for i, keys in rows])
    found = {"score_mean": pooled.mean(), "score_std": pooled.std(ddof=1), "n_scores": pooled.size}
    within = sum(((s[i, keys] - s[i, keys].mean()) ** 2).sum() for i, keys in rows)
    found["row_score_std"] = math.sqrt(within / sum(len(keys) - 1 for _, keys in rows))
    entropy, largest, jacobian, gradient, saturated = [], [], [], [], []
    for i, keys in rows:
        z = factor * s[i, keys]
        p = np.exp(z - z.max())
        p /= p.sum()
        entropy.append(-np.sum(p * np.log(np.where(p > 0, p, 1))))
        largest.append(p.max())
        saturated.append(p.max() > 0.99)
        matrix = np.diag(p) - np.outer(p, p)
        jacobian.append((matrix**2).sum())
        gradient.append(factor**2 * (q[i] ** 2).sum() * (matrix**2).sum())
    found |= {"entropy": np.mean(entropy), "max_weight": np.mean(largest), "saturated_share": np.mean(saturated)}
    found["jacobian"], found["key_gradient"] = math.sqrt(np.mean(jacobian)), math.sqrt(np.mean(gradient))
    return found | {"score_min": pooled.min(), "score_max": pooled.max(), "logit_max": factor * pooled.max()}


def masks_of(n):
    holes = np.random.default_rng(5).random((n, n)) < 0.7
    holes[3], holes[7] = False, np.arange(n) == 2  # a query without a key, and one with a single key
    return {"none": None, "causal": causal(n, n), "holes": holes, "padded keys": (np.arange(n) < n - 5)[None]}


@pytest.mark.parametrize("mask", ["none", "causal", "holes", "padded keys"])
@pytest.mark.parametrize("spread", [0.3, 1.0, 5.0])
def test_values_are_those_of_the_slow_way(mask, spread):
    q, k = (spread * x[0] + 0.3 for x in audit_files.normal(n=30, d=6))
    allowed = masks_of(30)[mask]
    found = facts.describe([Block(q, k, None, allowed)], 0.5)
    for name, value in plainly(q, k, 0.5, allowed).items():
        assert found[name] == pytest.approx(value, rel=1e-9), name


@pytest.mark.parametrize("mask", ["none", "causal", "holes", "padded keys"])
@pytest.mark.parametrize("shared", [True, False])
def test_errors_of_the_spreads_are_those_of_leaving_tokens_out(mask, shared):
    n = 20
    q, k = (x[0] + 0.2 for x in audit_files.normal(n=n, d=5))
    allowed = np.broadcast_to(np.True_ if masks_of(n)[mask] is None else masks_of(n)[mask], (n, n))
    found = facts.describe([Block(q, k, None, allowed, shared)], 1.0)

    def without(rows, keys):
        # The choice of rows is made once: a row that loses a key of two stays, with nothing to add.
        used = allowed & (allowed.sum(axis=1) > 1)[:, None]
        used = np.delete(np.delete(used, rows, 0), keys, 1)
        s = np.delete(np.delete(q @ k.T, rows, 0), keys, 1)
        pooled = s[used]
        within = [s[i, row] for i, row in enumerate(used) if row.any()]
        square = sum(((row - row.mean()) ** 2).sum() for row in within)
        freedom = sum(len(row) for row in within) - sum(1 for i in range(n) if i not in rows and allowed[i].sum() > 1)
        return pooled.mean(), np.log(pooled.var(ddof=1)) / 2, np.log(square / freedom) / 2

    sets = (
        [[([i], [i]) for i in range(n)]] if shared else [[([i], []) for i in range(n)], [([], [i]) for i in range(n)]]
    )
    variance = 0.0
    for one in sets:
        replicates = np.array([without(*tokens) for tokens in one])
        variance = variance + (n - 1) / n * ((replicates - replicates.mean(axis=0)) ** 2).sum(axis=0)
    errors = np.sqrt(variance)
    assert found["score_mean_se"] == pytest.approx(errors[0], rel=1e-9)
    assert found["score_std_se"] / found["score_std"] == pytest.approx(errors[1], rel=1e-9)
    assert found["row_score_std_se"] / found["row_score_std"] == pytest.approx(errors[2], rel=1e-9)


@pytest.mark.parametrize("mask", ["none", "causal", "padded keys"])
@pytest.mark.parametrize("spread", [0.5, 4.0])
def test_errors_of_entropy_and_largest_weight_are_those_of_leaving_tokens_out(mask, spread):
    n = 14
    q, k = (spread**0.5 * x[0] for x in audit_files.normal(n=n, d=4))
    allowed = np.broadcast_to(np.True_ if masks_of(n)[mask] is None else masks_of(n)[mask], (n, n))
    found = facts.describe([Block(q, k, None, allowed)], 1.0)
    counted = allowed.sum(axis=1) > 1

    def without(token):
        entropy, largest = [], []
        for i in range(n):
            keys = [j for j in range(n) if allowed[i, j] and j != token]
            if i == token or not counted[i]:
                continue
            z = q[i] @ k[keys].T
            p = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
            entropy.append(-np.sum(p * np.log(p)))
            largest.append(p.max())
        return np.mean(entropy), np.mean(largest)

    replicates = np.array([without(token) for token in range(n)])
    errors = np.sqrt((n - 1) / n * ((replicates - replicates.mean(axis=0)) ** 2).sum(axis=0))
    assert found["entropy_se"] == pytest.approx(errors[0], rel=1e-6)
    assert found["max_weight_se"] == pytest.approx(errors[1], rel=1e-6)
    assert found["jacobian_se"] > 0


def differences(found, wanted, **tolerance):
    """Return the facts that differ, of which some are no numbers."""
    assert found.keys() == wanted.keys()
    return {
        name: (found[name], value)
        for name, value in wanted.items()
        if found[name] != (pytest.approx(value, rel=1e-9, **tolerance) if isinstance(value, float) else value)
    }


def test_pieces_of_rows_change_nothing(monkeypatch):
    q, k = (x[0] for x in audit_files.normal(n=50, d=6))
    whole = facts.describe([Block(q, k, q @ k.T, causal(50, 50))], 0.4)
    monkeypatch.setattr(tally, "PIECE", 150)
    pieces = facts.describe([Block(q, k, q @ k.T, causal(50, 50))], 0.4)
    assert differences(pieces, whole, abs=1e-12) == {}


@pytest.mark.slow
@pytest.mark.parametrize("d_k", [4, 64])
@pytest.mark.parametrize("shared", [True, False])
def test_intervals_of_the_spreads_cover(d_k, shared):
    """A 64 × 64 dump: at least 92 %, of which 300 studies are allowed to miss by three binomial errors."""
    rng, studies, held = np.random.default_rng([d_k, shared]), 300, np.zeros(2)
    for _ in range(studies):
        found = facts.describe([Block(*rng.normal(size=(2, 64, d_k)), shared=shared)], 1.0)
        names = ("score_std", "row_score_std")
        held += [found[f"{name}_low"] <= math.sqrt(d_k) <= found[f"{name}_high"] for name in names]
    assert (held / studies > 0.92 - 3 * math.sqrt(0.92 * 0.08 / studies)).all(), held / studies


@pytest.mark.slow
def test_intervals_of_the_weights_cover():
    """Entropy and largest weight of random tokens against the mean over many studies, whose truth they estimate."""
    rng, found = np.random.default_rng(9), []
    for _ in range(200):
        found.append(facts.describe([Block(*rng.normal(size=(2, 48, 8)))], 0.5))
    for name in ("entropy", "max_weight", "jacobian", "key_gradient", "cosine", "q_norm"):
        truth = np.mean([one[name] for one in found])
        held = np.mean([one[f"{name}_low"] <= truth <= one[f"{name}_high"] for one in found])
        assert held > 0.87, name


def test_the_interval_of_a_share_of_the_largest_entropy_stays_a_share():
    for spread in (0.05, 20.0):
        found = facts.describe([Block(*np.random.default_rng(4).normal(size=(2, 6, 3)))], spread)
        assert 0 <= found["relative_entropy_low"] <= found["relative_entropy_high"] <= 1


def test_large_offsets_lose_nothing():
    """Exact arithmetic on float32 inputs that sit on an offset of 10⁴: spreads agree to ten digits."""
    rng = np.random.default_rng(2)
    q, k = (rng.normal(size=(20, 4)) + offset for offset in (1e4, -2e4))
    q, k = q.astype(np.float32), k.astype(np.float32)
    found = facts.describe([Block(q.astype(float), k.astype(float))], 1.0)
    from fractions import Fraction

    exact = [[sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x, y, strict=True)) for y in k] for x in q]
    rows = [sum(row) / 20 for row in exact]
    within = sum((v - mean) ** 2 for row, mean in zip(exact, rows, strict=True) for v in row) / (20 * 19)
    mean = sum(rows) / 20
    pooled = sum((v - mean) ** 2 for row in exact for v in row) / 399
    assert found["row_score_std"] == pytest.approx(math.sqrt(within), rel=1e-10)
    assert found["score_std"] == pytest.approx(math.sqrt(pooled), rel=1e-10)
    assert found["score_mean"] == pytest.approx(float(mean), rel=1e-14)


class TestMasks:
    """One mask in five spellings, as a mask of its own and inside given scores."""

    def spelled(self, allowed):
        lowest = float(np.finfo(np.float16).min)
        yield from (np.where(allowed, 0.0, value) for value in (-np.inf, lowest, -3.4028235e38, -1e9, -1e4, -9984.0))
        yield allowed
        yield allowed.astype(np.int64)
        yield allowed.astype(float)

    def test_spellings_give_identical_statistics(self):
        q, k = audit_files.normal(heads=1)
        allowed = causal(40, 40)
        found = []
        for mask in self.spelled(allowed):
            (head,) = dump_of({"q": q, "k": k, "mask": mask}).heads
            found.append(facts.describe(head.blocks(), 0.25))
        assert all(one == found[0] for one in found)
        assert found[0]["rows_left_out"] == 1
        assert found[0]["n_scores"] == 40 * 41 // 2 - 1

    def test_masks_inside_scores_give_identical_statistics(self):
        q, k = audit_files.normal(heads=1)
        scores, found = 0.25 * q @ k.swapaxes(1, 2), []
        for mask in list(self.spelled(causal(40, 40)))[:6]:
            (head,) = dump_of({"q": q, "k": k, "scores": scores + mask}).heads
            found.append(facts.describe(head.blocks(), 0.25))
        assert [differences(one, found[0]) for one in found] == [{}] * len(found)
        assert found[0]["measured_factor"] == pytest.approx(0.25, rel=1e-9)
        assert found[0]["rows_left_out"] == 1

    def test_causal_lets_the_last_query_see_all_keys(self):
        assert causal(2, 4).tolist() == [[True, True, True, False], [True] * 4]
        assert causal(4, 2).tolist() == [[False, False], [False, False], [True, False], [True, True]]

    def test_no_query_with_a_choice_is_refused(self):
        q, k = audit_files.normal(heads=1)
        with pytest.raises(facts.Unmeasurable):
            facts.describe([Block(q[0], k[0], None, np.eye(40, dtype=bool))], 1.0)


def test_numbers_beyond_float64_are_refused():
    q, k = (1e200 * x[0] for x in audit_files.normal())
    with pytest.raises(facts.Unmeasurable, match="beyond"):
        facts.describe([Block(q, k)], 0.25)


@pytest.mark.parametrize(("n", "m"), [(1, 30), (2, 2), (3, 30), (30, 2)])
def test_few_tokens_have_facts_and_perhaps_no_interval(n, m):
    q, k = (x[0] for x in audit_files.normal(n=n, m=m))
    found = facts.describe([Block(q, k, shared=n == m)], 0.25)
    assert found["row_score_std"] > 0
    assert found["score_std_low"] is None or found["score_std_low"] < found["score_std"]


def test_padding_is_counted_out_of_the_width():
    q, k = (np.pad(x[0], ((0, 0), (0, 8))) for x in audit_files.normal(d=16))
    found = facts.describe([Block(q, k)], 0.25)
    assert (found["d_k"], found["effective_d_k"]) == (24, 16)
    assert found["q_rms"] == pytest.approx(1, abs=0.1)


def test_the_three_terms_are_the_variance():
    q, k = (x[0] + 0.4 for x in audit_files.normal(d=8))
    found = facts.describe([Block(q, k)], 1.0)
    terms = found["trace_term"] + found["query_mean_term"] + found["key_mean_term"]
    assert terms == pytest.approx(found["score_std"] ** 2 * (1 - 1 / 1600), rel=1e-9)


def test_a_sink_is_found_and_overflow_counted():
    q, k = (x[0] for x in audit_files.normal(n=60, d=8))
    q[:, 0], k[5, 0] = 3.0, 8.0
    found = facts.describe([Block(q, k)], 8**-0.5)
    assert (found["sink_key"], found["sink_count"]) == (5, 1)
    assert found["sink_share"] > 0.9
    assert found["fp16_score_overflow"] == 0
    exact = np.mean(q @ k.T > np.log(65504))
    assert facts.describe([Block(q, k)], 1.0)["fp16_exp_overflow"] == pytest.approx(exact, rel=1e-12)
    assert facts.describe([Block(300 * q, 300 * k)], 1.0)["fp16_score_overflow"] > 0


def test_of_keys_that_take_as_much_the_first_is_the_sink():
    """One token at several places: rounding, of other digits in each row, must not choose between them."""
    for seed in range(20):
        q, k = (x[0] for x in audit_files.normal(seed, heads=1, n=60, d=24))
        repeated = k[np.arange(60) % 15]
        assert facts.describe([Block(q, repeated)], 0.3)["sink_key"] < 15, seed


def test_several_sequences_are_pooled():
    rng = np.random.default_rng(4)
    blocks = [Block(*(rng.normal(size=(2, n, 6)) + shift)) for n, shift in ((30, 0.0), (20, 0.5))]
    found = facts.describe(blocks, 0.4)
    pooled = np.concatenate([(b.q @ b.k.T).ravel() for b in blocks])
    assert found["score_std"] == pytest.approx(pooled.std(ddof=1), rel=1e-12)
    assert found["score_mean"] == pytest.approx(pooled.mean(), rel=1e-12)
    assert found["score_std_low"] < found["score_std"] < found["score_std_high"]


def test_baseline_is_that_of_independent_logits():
    assert iid_entropy(1.5, np.full(50, 64)) == pytest.approx(random_energy.averages(64, 1.5).entropy, rel=1e-9)
    exact = np.mean([random_energy.averages(n, 1.5).entropy for n in range(2, 65)])
    assert iid_entropy(1.5, np.arange(2, 65)) == pytest.approx(exact, rel=0.02)
    assert iid_entropy(None, np.full(5, 64)) is None
