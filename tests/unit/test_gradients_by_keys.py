"""Gradients with and without the scale by the number of keys, against vectors that are drawn and other integrals."""

import math

import numpy as np
import pytest

from sqrtdk.results.described import columns
from sqrtdk.sampling import streams
from sqrtdk.studies import gradients_by_keys
from sqrtdk.studies.crossovers import MEASURES
from sqrtdk.theory import gaussian_rows


def drawn_sizes(rng, n_rows, n_keys, d_k, factor):
    """Return ln of ‖J‖_F, ‖g_z‖ and ‖g_q‖ of rows of which every vector is drawn, by textbook formulas."""
    q = rng.standard_normal((n_rows, d_k))
    k = rng.standard_normal((n_rows, n_keys, d_k))
    z = factor * np.einsum("rd,rnd->rn", q, k)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    jacobian = p[:, :, None] * np.eye(n_keys) - p[:, :, None] * p[:, None, :]
    gradient = np.einsum("rij,rj->ri", jacobian, rng.standard_normal((n_rows, n_keys)))
    pulled = factor * np.einsum("rn,rnd->rd", gradient, k)
    norms = [np.linalg.norm(jacobian, axis=(1, 2)), *(np.linalg.norm(x, axis=1) for x in (gradient, pulled))]
    return dict(zip(MEASURES, np.log(norms), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("n_keys", "d_k"), [(3, 4), (16, 16)])
def test_no_vector_needs_to_be_drawn(n_keys, d_k):
    rng = np.random.default_rng(1)
    medians = gradients_by_keys.Medians(n_keys, 5)
    plain, scaled = (drawn_sizes(rng, 8000, n_keys, d_k, factor) for factor in (1.0, d_k**-0.5))
    for measure, log in medians.log_ratios(d_k).items():
        halves = [np.median(size[measure].reshape(20, -1), axis=1) for size in (plain, scaled)]
        se = math.hypot(*(half.std(ddof=1) / math.sqrt(20) for half in halves))
        value = np.median(plain[measure]) - np.median(scaled[measure])
        assert abs(log.value - value) < 4.5 * math.hypot(log.se, se), measure


@pytest.mark.slow
def test_frozen_rows_need_only_their_largest_keys():
    rng, n_keys, d_k = streams.generator(3, "test"), 1024, gradients_by_keys.FROZEN
    few = gradients_by_keys.draw(rng, n_keys, gradients_by_keys.KEPT)
    whole = gradients_by_keys.draw(rng, n_keys, n_keys)
    for measure, values in gradients_by_keys.log_sizes(few, d_k, 1.0).items():
        others = gradients_by_keys.log_sizes(whole, d_k, 1.0)[measure]
        errors = [np.median(x, axis=1).std(ddof=1) / math.sqrt(len(x)) for x in (values, others)]
        assert abs(np.median(values) - np.median(others)) < 4.5 * math.hypot(*errors), measure
    # What they leave out is below 1e-3 of the runner-up's weight, in the mean over rows.
    rest = np.exp(d_k**0.5 * (whole.x[..., gradients_by_keys.KEPT :] - whole.x[..., 1:2])).sum(axis=-1)
    assert np.median(rest) < 1e-3


@pytest.fixture(scope="module")
def table():
    return gradients_by_keys.table(20170612)


def find(rows, **wanted):
    (row,) = (row for row in rows if all(row[name] == value for name, value in wanted.items()))
    return row


@pytest.mark.slow
def test_rows_of_both_tables(table):
    for rows, name in zip(table, ("gradient_by_keys", "key_crossovers"), strict=True):
        assert all(set(row) == set(columns(name)) for row in rows)
    assert find(table[0], n_keys=3, d_k=64, measure="grad_query", quantity="rms")["n_rows"] is None
    # The numbers with which it was first said that the number of keys decides.
    ratios = {(3, "median", "grad_logits"): 1 / 70, (3, "median", "grad_query"): 0.12, (3, "rms", "grad_logits"): 0.44}
    ratios |= {(16, "rms", "grad_logits"): 0.82, (64, "rms", "grad_logits"): 1.49}
    for (n_keys, quantity, measure), value in ratios.items():
        row = find(table[0], n_keys=n_keys, d_k=64, measure=measure, quantity=quantity)
        assert row["ratio"] == pytest.approx(value, rel=0.1)
    for row in table[1]:
        assert (row["d_k_formula"] is not None) == (
            row["n_keys"] >= 16 and (row["measure"], row["quantity"]) == ("jacobian_frobenius", "median")
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_keys", "measure", "quantity"),
    [
        (8, "jacobian_frobenius", "median"),
        (3, "grad_query", "median"),
        (64, "grad_logits", "median"),
        (16, "grad_logits", "rms"),
        (32, "grad_query", "median"),
    ],
)
def test_the_ratio_is_one_at_the_crossovers_in_a_simulation_of_its_own(table, n_keys, measure, quantity):
    """Independent normal logits and textbook formulas at d_k*, with many more rows."""
    found = find(table[1], n_keys=n_keys, measure=measure, quantity=quantity)
    rng, star, logs = np.random.default_rng(n_keys), found["d_k_star"], {}
    slope_at = {}
    x, v = (rng.standard_normal((20, 2**17 // n_keys, n_keys)) for _ in range(2))
    length, rest = (np.sqrt(rng.chisquare(dof, x.shape[:2])) for dof in (star, star - 1))
    for width in (star, 1.1 * star):
        for factor in (1.0, width**-0.5):
            z = factor * (length * math.sqrt(width / star))[..., None] * x
            p = np.exp(z - z.max(axis=-1, keepdims=True))
            p /= p.sum(axis=-1, keepdims=True)
            gradient = p * (v - np.vecdot(p, v)[..., None])
            norm = np.linalg.norm(gradient, axis=-1)
            if measure == "jacobian_frobenius":
                others = np.square(p).sum(axis=-1)
                norm = np.sqrt(np.square(p * (1 - p)).sum(axis=-1) + others**2 - (p**4).sum(axis=-1))
            if measure == "grad_query":
                norm = factor * np.hypot(np.vecdot(gradient, x), norm * rest)
            logs[width, factor] = norm
        over, under = (
            np.median(np.log(size), axis=1) if quantity == "median" else np.log(np.mean(size**2, axis=1)) / 2
            for size in (logs[width, 1.0], logs[width, width**-0.5])
        )
        slope_at[width] = over - under
    at, slope = slope_at[star], (slope_at[star] - slope_at[1.1 * star]).mean() / math.log(1.1)
    own = slope * math.log(found["ci_high"] / found["ci_low"]) / (2 * 2.04)
    assert abs(at.mean()) < 4.5 * math.hypot(own, at.std(ddof=1) / math.sqrt(len(at)))


@pytest.mark.slow
def test_a_crossover_that_is_known(table):
    """n = 16, median of ‖J‖_F: 20.57(2) by independent code."""
    found = find(table[1], n_keys=16, measure="jacobian_frobenius", quantity="median")
    error = (found["ci_high"] - found["ci_low"]) / (2 * 2.04)
    assert abs(found["d_k_star"] - 20.57) < 4.5 * math.hypot(error, 0.02)
    assert error < 0.5


def test_known_root_mean_squares():
    """The query's gradient without the scale at 64 keys, by independent code."""
    averages_of = gradients_by_keys.exact_averages([64])[64]
    for d_k, value in ((256, 3.302), (1024, 4.839)):
        exact = gaussian_rows.measures(gaussian_rows.standard_normal(d_k), 64, 1.0, averages_of)
        assert exact["grad_query"] == pytest.approx(value, abs=6e-4)
