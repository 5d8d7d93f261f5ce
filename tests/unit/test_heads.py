"""Real heads: all pairs enumerated, the jackknife over runs of tokens against leaving them out one by one."""

import io
import os
from pathlib import Path

import numpy as np
import pytest

from sqrtdk.config import rules
from sqrtdk.heads import enumeration
from sqrtdk.heads.calls import Call, Capture
from sqrtdk.heads.cases import Options
from sqrtdk.heads.conventions import convention, scale
from sqrtdk.heads.dumps import read_dumps
from sqrtdk.heads.errors import InputError
from sqrtdk.heads.reading import words_of
from sqrtdk.heads.verdict import audit
from sqrtdk.results.described import columns


def softmax_rows(z):
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def plainly(q, k, factor):
    """Compute what describe_head estimates, the short and slow way."""
    s = q @ k.T
    p, unscaled = softmax_rows(s * factor), softmax_rows(s)
    independence = len(q[0]) * np.mean(q**2) * np.mean(k**2)

    def entropy(w):
        return np.mean(-np.sum(w * np.log(np.where(w > 0, w, 1)), axis=1))

    return {
        "mean": s.mean(),
        "variance": s.var(),
        "within_row_variance": s.var(axis=1).mean(),
        "excess_kurtosis": np.mean((s - s.mean()) ** 4) / s.var() ** 2 - 3,
        "independence_ratio": s.var() / independence,
        "logit_std": s.std() * factor,
        "within_row_logit_std": np.sqrt(s.var(axis=1).mean()) * factor,
        "entropy": entropy(p),
        "max_weight": p.max(axis=1).mean(),
        "unscaled_entropy": entropy(unscaled),
    }


@pytest.mark.parametrize("spread", [0.3, 1.0, 6.0])
def test_values_and_errors_are_those_of_leaving_tokens_out(spread):
    rng = np.random.default_rng(1)
    q, k = spread * rng.normal(size=(2, 25, 4)) + 0.3
    found = enumeration.describe_head(q, k, 0.5)
    runs = np.array_split(np.arange(1, 24), 21)
    left_out = [plainly(np.delete(q, run, 0), np.delete(k, run, 0), 0.5) for run in runs]
    for name, value in plainly(q, k, 0.5).items():
        assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name
        without = np.array([estimates[name] for estimates in left_out])
        se = np.sqrt(20 * np.mean((without - without.mean()) ** 2))
        assert found[f"{name}_se"] == pytest.approx(se, rel=1e-6, abs=1e-12), name


def masked(q, k, factor, allowed):
    """Compute the same of the pairs that a mask allows, row by row."""
    s = q @ k.T
    rows = [row[seen] for row, seen in zip(s, allowed, strict=True)]
    pairs = np.concatenate(rows)
    weights, unscaled = ([softmax_rows(row[None] * c)[0] for row in rows] for c in (factor, 1.0))
    within = sum(((row - row.mean()) ** 2).sum() for row in rows) / len(pairs)
    return {
        "mean": pairs.mean(),
        "variance": pairs.var(),
        "within_row_variance": within,
        "excess_kurtosis": np.mean((pairs - pairs.mean()) ** 4) / pairs.var() ** 2 - 3,
        "logit_std": pairs.std() * factor,
        "within_row_logit_std": np.sqrt(within) * factor,
        "entropy": np.mean([-np.sum(w * np.log(w)) for w in weights]),
        "max_weight": np.mean([w.max() for w in weights]),
        "unscaled_entropy": np.mean([-np.sum(w * np.log(w)) for w in unscaled]),
    }


def test_masked_pairs_do_not_count_nor_do_queries_that_were_not_kept():
    rng = np.random.default_rng(4)
    places = np.array([0, 2, 3, 7, 11, 18, 24])
    q, k = rng.normal(size=(7, 4)) + 0.3, rng.normal(size=(25, 4)) + 0.3
    allowed = np.arange(25) <= places[:, None]
    found = enumeration.describe_head(q, k, 0.5, allowed, places)
    runs = np.array_split(np.arange(1, 24), 21)
    left_out = []
    for run in runs:
        rows, keys = ~np.isin(places, run), ~np.isin(np.arange(25), run)
        left_out.append(masked(q[rows], k[keys], 0.5, allowed[rows][:, keys]))
    for name, value in masked(q, k, 0.5, allowed).items():
        assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name
        without = np.array([estimates[name] for estimates in left_out])
        se = np.sqrt(20 * np.mean((without - without.mean()) ** 2))
        assert found[f"{name}_se"] == pytest.approx(se, rel=1e-6, abs=1e-12), name
    assert (found["n_queries"], found["n_tokens"], found["n_scores"]) == (7, 25, allowed.sum())
    assert found["uniform_entropy"] == pytest.approx(np.log(allowed.sum(axis=1)).mean())
    assert np.quantile((q @ k.T)[allowed], 0.25) == pytest.approx(found["quartile_1"])


@pytest.mark.parametrize("causal", [False, True])
def test_without_sinks_the_spread_is_that_of_the_other_keys(causal):
    rng = np.random.default_rng(5)
    q, k = rng.normal(size=(2, 60, 8))
    q[:, 0], k[:, 0], k[7, 0] = 4.0, 0.0, 3.0
    allowed = np.tri(60, dtype=bool) if causal else np.ones((60, 60), bool)
    found = enumeration.describe_head(q, k, 1.0, allowed if causal else None)
    rest = masked(q, np.delete(k, 7, axis=0), 1.0, np.delete(allowed, 7, axis=1))
    assert found["sinks"] == 1
    assert found["sinkless_row_logit_std"] == pytest.approx(rest["within_row_logit_std"], rel=1e-9)
    assert found["within_row_logit_std"] > 1.1 * found["sinkless_row_logit_std"]
    none = enumeration.describe_head(*rng.normal(size=(2, 60, 8)), 0.1)
    assert (none["sinks"], none["sinkless_row_logit_std"]) == (0, none["within_row_logit_std"])


def test_the_three_terms_are_the_variance():
    rng = np.random.default_rng(2)
    found = enumeration.describe_head(*(rng.normal(size=(2, 40, 8)) + rng.normal(size=(2, 1, 8))), 1.0)
    terms = found["trace_term"] + found["query_mean_term"] + found["key_mean_term"]
    assert terms == pytest.approx(found["variance"], rel=1e-12)


@pytest.mark.slow
def test_intervals_cover_the_law_of_random_tokens():
    """Tokens of i.i.d. Gaussian vectors: Var(q·k) = d_k within the jackknife's interval nearly as often as 95 %."""
    rng = np.random.default_rng(3)
    studies, covered = 200, 0
    for _ in range(studies):
        found = enumeration.describe_head(*rng.normal(size=(2, 60, 6)), 1.0)
        # The population variance of n² enumerated pairs is low by the share that the mean takes.
        covered += abs(found["variance"] - 6) < 2 * found["variance_se"]
    assert covered > 0.88 * studies


def test_a_head_without_spread_has_no_kurtosis_and_no_ratio():
    found = enumeration.describe_head(np.zeros((5, 2)), np.ones((5, 2)), 1.0)
    assert found["variance"] == 0
    assert found["excess_kurtosis"] is None
    assert found["independence_ratio"] is None
    assert found["entropy"] == pytest.approx(np.log(5))


def test_effective_dimension_counts_the_directions_that_vary():
    rng = np.random.default_rng(6)
    q, k = rng.normal(size=(2, 4000, 8))
    assert enumeration.describe_head(q[:400], k[:400], 1.0)["effective_dimension"] == pytest.approx(8, rel=0.15)
    q[:, 2:] = 0
    assert enumeration.describe_head(q[:400], k[:400], 1.0)["effective_dimension"] == pytest.approx(2, rel=0.05)


def test_errors_hold_where_neighbouring_tokens_are_alike():
    """Tokens that repeat their neighbour five times: single tokens would give less than half of the error."""
    rng = np.random.default_rng(5)
    studies, means, errors = 40, [], []
    for _ in range(studies):
        q, k = (np.repeat(rng.normal(size=(21, 3)) + 0.5, 6, axis=0) for _ in range(2))
        found = enumeration.describe_head(q, k, 1.0)
        means.append(found["mean"])
        errors.append(found["mean_se"])
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.35)


def test_one_wide_key_dominates_without_a_warning():
    q, k = np.zeros((5, 2)), np.zeros((5, 2))
    q[:, 0], k[3, 0] = 100.0, 100.0
    found = enumeration.describe_head(q, k, 1.0)
    assert found["entropy"] == 0
    assert found["max_weight"] == 1


class TestReading:
    def archive(self, tmp_path, **arrays):
        path = tmp_path / "a dump.npz"
        np.savez(path, **arrays)
        return path

    def test_float16_is_read_without_loss(self, tmp_path):
        q = np.random.default_rng(4).normal(size=(1, 2, 5, 4)).astype(np.float16)
        dump = enumeration.read_dump(self.archive(tmp_path, q=q, k=q))
        assert dump.q.dtype == np.float64
        assert np.array_equal(dump.q, q.astype(float))

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"q": np.ones((1, 1, 4, 2))}, "no array 'k'"),
            ({"q": np.ones((4, 2)), "k": np.ones((4, 2))}, "shape"),
            ({"q": np.ones((1, 1, 4, 2)), "k": np.ones((1, 1, 5, 2))}, "k has"),
            ({"q": np.full((1, 1, 4, 2), np.nan), "k": np.ones((1, 1, 4, 2))}, "holds NaN"),
            ({"q": np.full((1, 1, 4, 2), 1e200), "k": np.ones((1, 1, 4, 2))}, "beyond"),
            ({"q": np.array([[object()]]), "k": np.ones((1, 1, 4, 2))}, "pickled"),
        ],
        ids=["missing", "flat", "mismatched", "nan", "absurd", "pickled"],
    )
    def test_what_cannot_be_used_is_named(self, tmp_path, arrays, message):
        with pytest.raises(InputError, match=message) as error:
            enumeration.read_dump(self.archive(tmp_path, **arrays))
        assert "a dump.npz" in str(error.value)

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short", b"text"], ids=["empty", "truncated", "text"])
    def test_broken_files_are_named(self, tmp_path, content):
        path = tmp_path / "broken.npz"
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"broken\.npz"):
            enumeration.read_dump(path)

    def captured(self, tmp_path, **options):
        q, k = np.random.default_rng(3).normal(size=(2, 1, 4, 12, 8)).astype(np.float32)
        options = {"scale": 0.35, "scale_from": "argument", "gains": (0.5, 1.0)} | options
        calls = {
            f"layers.{n}.attn": Call(f"layers.{n}.attn", q[:, 1:3] + n, k[:, :1], layer=n, **options) for n in (0, 3)
        }
        return Capture(calls).save(tmp_path / "captured.npz"), q, k

    @pytest.mark.parametrize("causal", [False, True])
    def test_a_capture_is_read_as_it_says(self, tmp_path, causal):
        path, q, k = self.captured(tmp_path, causal=causal, heads=(1, 2), positions=np.arange(12))
        dump = enumeration.read_dump(path)
        assert (dump.layers, dump.heads) == ((0, 3), (1, 2))
        assert np.array_equal(dump.q, np.stack([2.0 * (q[0, 1:3] + n) for n in (0, 3)]).astype(np.float32))
        assert np.array_equal(dump.k[1, 1], k[0, 0])
        assert dump.allowed is None if not causal else np.array_equal(dump.allowed, np.tri(12, dtype=bool))
        places = [(layer, head) for layer, head, _, _ in dump.each()]
        assert places == [(0, 1), (0, 2), (3, 1), (3, 2)]

    @pytest.mark.parametrize(
        ("options", "message"),
        [({"softcap": 5.0}, "more in its logits than q·k"), ({"sinks": np.zeros(2)}, "more in its logits than q·k")],
    )
    def test_a_capture_with_more_than_products_is_left_to_the_audit(self, tmp_path, options, message):
        with pytest.raises(InputError, match=message):
            enumeration.read_dump(self.captured(tmp_path, **options)[0])

    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(InputError, match="nowhere"):
            enumeration.read_dump(tmp_path / "nowhere.npz")

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
    def test_a_pipe_is_refused_before_it_is_opened(self, tmp_path):
        os.mkfifo(tmp_path / "a.npz")
        (problem,) = rules.dump_problems({"a": {"file": "a.npz", "scaling": "1/sqrt(d_k)"}}, [tmp_path])
        assert "is no ordinary file" in str(problem)

    def test_a_convention_of_a_configuration_is_no_option(self, tmp_path):
        self.archive(tmp_path, q=np.ones((1, 1, 4, 2)), k=np.ones((1, 1, 4, 2)))
        entry = {"file": "a dump.npz", "scaling": "1/sqrt(d_k)", "convention": "mine"}
        (problem,) = rules.dump_problems({"a": entry}, [tmp_path])
        assert "convention mine: 'mine' is not known" in str(problem)
        assert "--convention" not in str(problem)

    def test_a_truncated_archive_is_named(self, tmp_path):
        whole = io.BytesIO()
        np.savez(whole, q=np.ones((1, 1, 4, 2)), k=np.ones((1, 1, 4, 2)))
        path = tmp_path / "half.npz"
        path.write_bytes(whole.getvalue()[: len(whole.getvalue()) // 2])
        with pytest.raises(InputError, match=r"half\.npz"):
            enumeration.read_dump(path)


@pytest.fixture(scope="module")
def rows(shipped_dump):
    return enumeration.describe_dump(shipped_dump, "minilm_l6", "1/sqrt(d_k)", 32**-0.5)


SHIPPED = sorted((Path(__file__).parents[2] / "resources").rglob("*.npz"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_what_ships_is_sound_and_small(path):
    dump = enumeration.read_dump(path)
    assert dump.k.shape[2] >= 128
    assert path.stat().st_size <= 2.5e6
    (one,) = read_dumps([path], layout="auto" if words_of(path) else "LHSD")
    verdicts = audit([one], Options(convention(None), scale("1/sqrt(d_k)").of, "trained"))
    assert {finding.kind for verdict in verdicts for finding in verdict.findings} <= {"entropy collapse", "very sharp"}
    assert all(verdict.level in ("healthy", "note") for verdict in verdicts)


class TestShippedHeads:
    """Facts that were measured independently on the shipped activations."""

    @pytest.mark.slow
    def test_there_are_72(self, rows):
        assert len(rows) == 72
        assert {*rows[0], "model", "input"} == set(columns("real_heads"))

    def test_spreads(self, rows):
        std = {(row["layer"], row["head"]): row["logit_std"] for row in rows}
        assert std[0, 2] == pytest.approx(17.1, abs=0.05)
        first_layer = [std[0, head] for head in range(12) if head != 2]
        assert min(first_layer) == pytest.approx(0.59, abs=0.01)
        assert round(max(first_layer)) == 3
        last = [std[5, head] for head in range(12)]
        assert (min(last), max(last)) == (pytest.approx(1.07, abs=0.01), pytest.approx(1.48, abs=0.01))

    def test_entropies(self, rows):
        entropy = {(row["layer"], row["head"]): row["entropy"] for row in rows}
        unscaled = [row["unscaled_entropy"] for row in rows[:5]]
        assert entropy[0, 2] == pytest.approx(0.28, abs=0.005)
        assert entropy[0, 0] == pytest.approx(5.17, abs=0.005)
        assert unscaled == pytest.approx([1.58, 1.32, 0.05, 1.27, 0.90], abs=0.005)

    def test_ratios_to_independence(self, rows):
        ratios = [row["independence_ratio"] for row in rows]
        assert (min(ratios), max(ratios)) == (pytest.approx(0.86, abs=0.005), pytest.approx(3.04, abs=0.005))


def test_a_head_of_three_tokens_has_moments_and_no_error():
    q, k = np.random.default_rng(1).normal(size=(2, 3, 4))
    head = {"dump": "mine", "layer": 0, "head": 0} | enumeration.describe_head(q, k, 0.5)
    row = enumeration.row_of_moments(head, ["variance", "relative_se"])
    assert row["variance"] > 0
    assert row["relative_se"] is None
