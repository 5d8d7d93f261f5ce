"""Keys drawn in pieces have the law of keys drawn at once, and families whose keys share something are held whole."""

import tracemalloc

import numpy as np
import pytest
import yaml
from config_help import ROOT
from ensemble_cases import spec_id, with_every_family

from sqrtdk.config.validation import specification
from sqrtdk.rows import plan as row_plan
from sqrtdk.sampling import ensembles, streams
from sqrtdk.studies import saturation

DEFAULT = yaml.safe_load((ROOT / "config/config.yaml").read_text(encoding="utf-8"))["ensembles"]
# Tokens of one dimension are far from orthogonal.
NARROW = {"random_weights": {"d_model": 1}}
SPECS = [specification(entry) | NARROW.get(entry["family"], {}) for entry in DEFAULT.values()]
SPECS += [
    {"family": "logistic"},
    {"family": "rmsnorm_tokens", "d_model": 4},
    {"family": "fixed_weights_rmsnorm"},
    {"family": "fixed_weights_layernorm"},
]
BUILT = [(spec, ensembles.build(spec)) for spec in with_every_family(SPECS)]
INDEPENDENT = [spec for spec, ensemble in BUILT if ensemble.independent_keys]
SHARED = [spec for spec, ensemble in BUILT if not ensemble.independent_keys]
WIDTH = 12
FACTORS = (1.0, 0.2)


def joined(ensemble, rng, n_blocks, n_queries, n_keys, d_k, piece):
    q, pieces = ensemble.draw_in_pieces(rng, n_blocks, n_queries, n_keys, d_k, piece)
    return q, np.concatenate(list(pieces), axis=1)


def claiming(ensemble):
    """The same ensemble with the claim that its keys are independent, true or not."""
    cls = type(ensemble)
    return type(cls.__name__, (cls,), {"independent_keys": True})(**{f: getattr(ensemble, f) for f in vars(ensemble)})


def statistics(q, k, scale):
    """Return a value per block of each statistic: bounded, for heavy tails, and of keys of different pieces."""
    s = np.tanh(q.astype(float) @ k.swapaxes(-1, -2).astype(float) / scale)
    unit = k.astype(float) / np.sqrt(np.vecdot(k, k, dtype=float) + 1e-300)[..., None]
    size = np.tanh(np.sqrt(np.vecdot(k, k, dtype=float)) / np.sqrt(scale))
    first, last = 0, k.shape[1] - 1
    cosine = np.vecdot(unit[:, first], unit[:, last])
    return {
        "score": s[:, 0, last],
        "square of a score": s[:, 0, last] ** 2,
        "scores of one query": s[:, 0, first] * s[:, 0, last],
        "squares of one query": s[:, 0, first] ** 2 * s[:, 0, last] ** 2,
        "squares of two queries": s[:, 0, first] ** 2 * s[:, 1, last] ** 2,
        "own key": s[:, 1, 1],
        "length of a key": size[:, last],
        "lengths of two keys": size[:, first] * size[:, last],
        "cosine of two keys": cosine,
        "square of it": cosine**2,
    }


def largest_difference(ensemble, n_blocks=6000):
    """The largest |z| between keys drawn at once and in pieces over the statistics."""
    shape = n_blocks, 2, 4, WIDTH
    q, k = ensemble.draw(streams.generator(1, "whole"), *shape)
    scale = float(np.median(np.abs(np.einsum("bd,bd->b", q[:, 0].astype(float), k[:, 0].astype(float))))) + 1e-300
    whole = statistics(q, k, scale)
    pieces = statistics(*joined(ensemble, streams.generator(2, "pieces"), *shape, 1), scale)
    found = {}
    for name, x in whole.items():
        y = pieces[name]
        error = np.sqrt((x.var() + y.var()) / n_blocks)
        difference = abs(x.mean() - y.mean())
        found[name] = difference / error if error > 1e-9 * (1 + abs(x.mean())) else float(difference > 1e-6) * 99
    return max(found.items(), key=lambda item: item[1])


@pytest.mark.parametrize("spec", INDEPENDENT, ids=spec_id)
def test_pieces_have_the_law_of_whole_draws(spec):
    name, z = largest_difference(ensembles.build(spec))
    assert z < 4.5, name


@pytest.mark.slow
@pytest.mark.parametrize("spec", SHARED, ids=spec_id)
def test_keys_that_share_something_would_show(spec):
    """Negative control: claimed to be independent, these families have another law in pieces."""
    ensemble = ensembles.build(spec)
    with pytest.raises(ValueError, match="depend on each other"):
        ensemble.draw_in_pieces(streams.generator(1), 1, 1, 4, 8, 2)
    assert largest_difference(claiming(ensemble), 40_000)[1] > 6


@pytest.mark.parametrize(("n_keys", "piece"), [(5, 2), (4, 4), (3, 7), (6, 1)])
def test_pieces_are_all_keys(n_keys, piece):
    gaussian = ensembles.build({"family": "gaussian"})
    q, pieces = gaussian.draw_in_pieces(streams.generator(3), 2, 3, n_keys, 4, piece)
    sizes = [k.shape for k in pieces]
    assert q.shape == (2, 3, 4)
    assert all(shape[1] <= piece for shape in sizes)
    assert sum(shape[1] for shape in sizes) == n_keys
    whole = gaussian.draw(streams.generator(3), 2, 3, n_keys, 4)
    if piece >= n_keys:
        np.testing.assert_array_equal(whole[0], q)


@pytest.mark.slow
def test_rows_in_pieces_have_the_measures_of_whole_rows(monkeypatch):
    """The same cell on both paths: different draws, the same law."""
    gaussian = ensembles.build({"family": "gaussian"})
    scalings = ["none", "1/sqrt(d_k)"]
    whole = saturation.simulate_cell(gaussian, 16, [200], scalings, 1, "g", 400_000)
    monkeypatch.setattr(row_plan, "WHOLE_KEYS", 100)
    monkeypatch.setattr(row_plan, "PIECE_LOGITS", 500)
    pieces = saturation.simulate_cell(gaussian, 16, [200], scalings, 2, "g", 400_000)
    for one, other in zip(whole[0] + whole[1], pieces[0] + pieces[1], strict=True):
        assert one["measure"] == other["measure"]
        if one["measure"] == "jacobian_spectral":
            assert (other["estimate"], other["se"], other["n_rows"]) == (None, None, 0)
            continue
        error = np.hypot(one["se"], other["se"])
        assert abs(one["estimate"] - other["estimate"]) <= 4.5 * error + 1e-12, (one["scaling"], one["measure"])


def streamed_peak(n_keys, monkeypatch):
    """Peak memory of one block on the way of a real cell."""
    monkeypatch.setattr(row_plan, "MIN_BLOCKS", 1)
    ensemble = ensembles.build({"family": "gaussian"})
    plan = row_plan.plan(4, n_keys, 1, False, FACTORS, None, row_plan.in_pieces(ensemble, 4, n_keys))
    assert plan.piece
    tracemalloc.start()
    (*_, last) = saturation._row_values(ensemble, 4, plan, *(streams.generator(1, part) for part in "ab"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert last[1]["entropy"].shape == (1, plan.n_queries)
    return peak


def test_memory_does_not_grow_with_the_number_of_keys(monkeypatch):
    small, large = (streamed_peak(n, monkeypatch) for n in (2**17, 2**19))
    assert abs(large / small - 1) < 0.2


def test_whole_rows_grow(monkeypatch):
    """Negative control of the last test: without pieces memory is that of the keys."""
    monkeypatch.setattr(row_plan, "PIECE_LOGITS", 2**30)
    small, large = (streamed_peak(n, monkeypatch) for n in (2**15, 2**17))
    assert large / small > 3


@pytest.mark.parametrize(("d_k", "n_keys"), [(65536, 1024), (64, 2**20), (1, 2**20), (2**20, 64), (4096, 2**14)])
def test_what_a_plan_holds_is_bounded(d_k, n_keys):
    plan = row_plan.plan(d_k, n_keys, 2_000_000, False, FACTORS, None, True)
    assert plan.piece >= 1
    assert plan.piece * d_k <= max(row_plan.PIECE_SCALARS, d_k)
    assert plan.piece * plan.n_queries <= max(row_plan.PIECE_LOGITS, plan.n_queries)
    assert plan.n_queries * d_k <= max(row_plan.QUERY_SCALARS, row_plan.MIN_QUERIES * d_k)
    assert plan.n_spectral == 0


def test_keys_that_are_drawn_with_their_queries_are_never_said_to_be_independent():
    assert not any(ensemble.matched and ensemble.independent_keys for _, ensemble in BUILT)
