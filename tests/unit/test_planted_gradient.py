"""The gradient that would find a planted key, against batches in which every vector is drawn."""

import math

import numpy as np
import pytest

from sqrtdk.results.described import columns
from sqrtdk.studies import planted_gradient
from sqrtdk.studies.planted_gradient import HEADS, signal_and_noise


def batch(rng, n_rows, d_k, n_keys, rho, factor):
    """Return ∂(−ln p*)/∂W of each row, (n_rows, d_k, D), for W and T that pick the first and the next components."""
    x = rng.standard_normal((n_rows, HEADS * d_k))
    q, t = x[:, :d_k], x[:, d_k : 2 * d_k]
    k = rng.standard_normal((n_rows, n_keys, d_k))
    k[:, 0] = rho * q + math.sqrt(1 - rho**2) * t
    z = factor * np.einsum("rd,rnd->rn", q, k)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[:, 0] -= 1
    return factor * np.einsum("rn,rnd->rd", p, k)[:, :, None] * x[:, None, :]


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1.0, 4**-0.5])
@pytest.mark.parametrize("rho", [1.0, 0.5, 0.0])
def test_batches_of_so_many_rows_point_half_right(rho, factor):
    """Their cosine to the mean of a much larger batch, whose own noise is taken off, is 1/√2 by the number of rows."""
    rng, d_k, n_keys = np.random.default_rng(2), 4, 8
    found = {name: float(x[0]) for name, x in signal_and_noise(d_k, (n_keys,), rho, factor).items()}
    size = round(found["rows"])
    large = [batch(rng, 40_000, d_k, n_keys, rho, factor) for _ in range(2)]
    means = [rows.mean(axis=0) for rows in large]
    # The product of two independent means has no noise of its own.
    signal = math.sqrt(np.sum(means[0] * means[1]))
    assert found["signal"] == pytest.approx(signal, rel=0.06)
    noise = math.sqrt(np.mean([rows.var(axis=0).sum() for rows in large]))
    assert found["noise"] == pytest.approx(noise, rel=0.04)
    expected = (means[0] + means[1]) / 2
    small = [batch(rng, size, d_k, n_keys, rho, factor).mean(axis=0) for _ in range(max(60, 30_000 // size))]
    products = np.mean([np.sum(mean * expected) for mean in small]) / signal
    lengths = math.sqrt(np.mean([np.sum(mean**2) for mean in small]))
    assert products / lengths == pytest.approx(1 / math.sqrt(2), rel=0.08)


def test_a_key_in_the_direction_of_the_query_is_found_without_learning():
    """At cosine 1 and d_k = 64 next to nothing is left to learn without the scale, and next to no gradient with it."""
    plain, scaled = (signal_and_noise(64, (64,), 1.0, factor) for factor in (1.0, 1 / 8))
    assert plain["missed"][0] < 1e-6 < 0.01 < scaled["missed"][0]
    assert plain["signal"][0] < 1e-6 * scaled["signal"][0]


def test_the_integrals_have_converged(monkeypatch):
    coarse = signal_and_noise(64, (3, 1024), 0.5, 1.0)
    monkeypatch.setattr(planted_gradient, "NORM_STEP", 0.15)
    monkeypatch.setattr(planted_gradient, "STEP", 0.25)
    fine = signal_and_noise(64, (3, 1024), 0.5, 1.0)
    for name, values in coarse.items():
        assert values == pytest.approx(fine[name], rel=1e-5), name


@pytest.mark.slow
def test_rows_of_the_table():
    rows = planted_gradient.table([1, 0.5])
    assert all(set(row) == set(columns("planted_gradient")) for row in rows)
    assert {row["rho"] for row in rows} == {1, 0.5, 0}
    assert {row["ratio"] for row in rows if row["scaling"] == "1/sqrt(d_k)"} == {1}
    start = [row["ratio"] for row in rows if row["scaling"] == "none" and row["rho"] == 0]
    assert 1 < min(start) < max(start) < 2
