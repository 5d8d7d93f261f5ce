"""The planted key: closed forms, an independent quadrature, limits and Monte Carlo."""

import math
import re

import numpy as np
import pytest
import synthetic_planted
from figure_cases import describe
from scipy import integrate, special, stats

from sqrtdk.figures.catalogue import load
from sqrtdk.studies import planted_key
from sqrtdk.studies.planted_key import retrieval_law, weight_law
from sqrtdk.theory import gaussian_rows
from sqrtdk.words import numbers


@pytest.mark.parametrize(("d_k", "rho", "factor"), [(16, 1, 1.0), (64, 0.5, 0.125), (16, 0.5, 0.25), (64, 0.9, 1 / 64)])
def test_two_keys_are_one_logistic_integral(d_k, rho, factor):
    """With one other key p* is the logistic function of a gap that is normal given ‖q‖."""

    def given(norm):
        centre, spread = factor * rho * norm**2, factor * norm * math.sqrt(2 - rho**2)
        gap, step = np.linspace(centre - 12 * spread, centre + 12 * spread, 4001, retstep=True)
        return float(special.expit(gap) @ stats.norm.pdf(gap, centre, spread)) * step

    expected, _ = integrate.quad(lambda r: given(r) * stats.chi.pdf(r, d_k), 0.01, math.sqrt(d_k) + 7, limit=200)
    assert weight_law(d_k, rho, factor)(2) == pytest.approx(expected, rel=1e-6)


def test_three_keys_are_a_double_sum():
    """With two other keys and ρ = 1, p* is averaged over both of their logits directly."""
    d_k, factor = 16, 0.25
    norm, share = gaussian_rows.norm_nodes(d_k, 0.1)
    g = np.linspace(-9, 9, 301)
    density = stats.norm.pdf(g) * (g[1] - g[0])
    total = 0.0
    for r, w in zip(norm, share, strict=True):
        others = np.logaddexp.outer(factor * r * g, factor * r * g)
        total += w * (density @ special.expit(factor * r**2 - others) @ density)
    assert weight_law(d_k, 1, factor)(3) == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize("rho", [1, 0.5, 0.05])
@pytest.mark.parametrize("factor", [1.0, 0.25, 1 / 16])
def test_a_single_key_has_all_the_weight_and_more_keys_leave_less(rho, factor):
    law = weight_law(16, rho, factor)
    assert law(1) == pytest.approx(1, abs=1e-12)
    values = [law(n) for n in planted_key.N_KEYS]
    assert np.all(np.diff(values) < 0)
    assert retrieval_law(16, rho)(1) == pytest.approx(1, abs=1e-12)


def test_no_scale_leaves_every_key_its_share():
    law = weight_law(16, 0.5, 1e-9)
    assert law(1000) == pytest.approx(1 / 1000, rel=1e-6)


@pytest.mark.slow
def test_the_weight_tends_to_the_retrieval_as_softmax_sharpens():
    laws, largest = [weight_law(16, 0.5, factor) for factor in (0.25, 1.0, 2.0)], retrieval_law(16, 0.5)
    for n in (2, 64, 1024):
        missing = [largest(n) - law(n) for law in laws]
        assert missing[0] > missing[1] > missing[2] > 0
        assert missing[2] < 0.03
        assert missing[0] > 0.05  # the negative control


def test_retrieval_among_two_is_a_student_t():
    """k* beats one other key where ρ‖q‖ > √(2 − ρ²) g with a normal g: a Student t of d_k degrees."""
    for d_k, rho in ((16, 1), (64, 0.5)):
        expected = stats.t.cdf(rho * math.sqrt(d_k / (2 - rho**2)), d_k)
        assert retrieval_law(d_k, rho)(2) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("d_k", "rho", "factor"), [(16, 1, 1.0), (32, 0.5, 1.0), (256, 1, 1 / 16), (256, 1, 1.0)])
def test_steps_are_fine_enough(monkeypatch, d_k, rho, factor):
    coarse = weight_law(d_k, rho, factor)
    monkeypatch.setattr(planted_key, "NORM_STEP", planted_key.NORM_STEP / 2)
    monkeypatch.setattr(planted_key, "STEP", planted_key.STEP / 2)
    fine = weight_law(d_k, rho, factor)
    for n in (2, 1024, 2**20):
        assert coarse(n) == pytest.approx(fine(n), rel=1e-6)


def test_nodes_are_those_of_the_chi_law():
    norm, share = gaussian_rows.norm_nodes(64, planted_key.NORM_STEP)
    assert share @ norm**2 == pytest.approx(64, rel=1e-10)
    assert share @ norm == pytest.approx(stats.chi.mean(64), rel=1e-10)


def test_capacity_is_where_the_weight_is_one_half():
    law = weight_law(64, 1, 1 / 8)
    assert law(law.capacity()) == pytest.approx(0.5, abs=1e-9)
    assert law.capacity() == pytest.approx(planted_key.leading_capacity(64, 1, 1 / 8), rel=0.05)
    assert planted_key.leading_capacity(64, 1, 1 / 8) == pytest.approx(math.exp(7.5))
    assert weight_law(16, 1, 1e-9).capacity() == pytest.approx(2, rel=1e-6)
    sure = planted_key.Power(np.ones(1), np.zeros(1))
    assert sure.capacity() is None


def test_no_factor_beats_the_leading_capacity_at_the_cosine():
    """The exponent cρ − c²/2 grows up to c = ρ, and a sharper softmax adds nothing."""
    capacities = [planted_key.leading_capacity(64, 0.5, c) for c in (0.1, 0.3, 0.5, 0.7, 1.0)]
    assert np.all(np.diff(capacities[:3]) > 0)
    assert capacities[2:] == [pytest.approx(math.exp(8))] * 3


@pytest.mark.slow
def test_approximation_is_its_formula_while_many_keys_share():
    d, n, rho, c = 64, 4096, 1.0, 1 / 8
    assert planted_key.approximation(d, n, rho, c) == pytest.approx(math.exp(8) / (math.exp(8) + n * math.exp(0.5)))
    # Where few keys do, n e^{c²d/2} would put nearly all of the weight on the others.
    exact = weight_law(64, 0.5, 1.0)(64)
    assert planted_key.approximation(64, 64, 0.5, 1.0) == pytest.approx(exact, abs=0.1)
    assert exact - special.expit(32 - math.log(64) - 32) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(("d_k", "n_keys"), [(16, 16), (64, 64), (16, 300)])
def test_monte_carlo_agrees(d_k, n_keys):
    cosines, factors = (1, 0.5), (1.0, d_k**-0.5, 1 / d_k)
    weight, retrieved = planted_key.simulate(d_k, n_keys, cosines, factors, 64, 3)
    for i, rho in enumerate(cosines):
        laws = [*(weight_law(d_k, rho, c) for c in factors), retrieval_law(d_k, rho)]
        for law, blocks in zip(laws, (*weight[i], retrieved[i]), strict=True):
            if law(n_keys) < 0.999:
                se = blocks.std(ddof=1) / 8
                assert abs(blocks.mean() - law(n_keys)) < 4.5 * se
                if law(n_keys) < 0.97:
                    assert abs(blocks.mean() - law(n_keys / 2)) > 6 * se  # the negative control


def test_rows_are_softmax_of_real_scores():
    """The same rows by another way: all keys in one matrix, and scipy's softmax."""
    n, d = 8, 16
    weight, retrieved = planted_key.simulate(d, n, (0.5,), (0.25,), 2, 5)
    from sqrtdk.sampling import streams

    rng, own = streams.generator(5, "planted_key", d, n), streams.generator(5, "planted_key", d, n, "0.5")
    for block in range(2):
        q = streams.standard_normal(rng, (planted_key.N_QUERIES, d)).astype(float)
        others = streams.standard_normal(rng, (n - 1, d)).astype(float)
        g = streams.standard_normal(own, (planted_key.N_QUERIES, d))
        scores = np.column_stack([np.sum(q * (0.5 * q + 0.75**0.5 * g), axis=1), q @ others.T])
        p = special.softmax(0.25 * scores, axis=1)
        assert weight[0, 0, block] == pytest.approx(p[:, 0].mean(), rel=1e-5)
        assert retrieved[0, block] == (scores.argmax(axis=1) == 0).mean()


def test_a_cosine_or_a_rule_more_leaves_the_others_as_they_are():
    alone, _ = planted_key.simulate(16, 16, (0.5,), (1.0,), 3, 1)
    both, _ = planted_key.simulate(16, 16, (1, 0.5), (0.25, 1.0), 3, 1)
    assert np.array_equal(alone[0, 0], both[1, 1])


@pytest.fixture(scope="module")
def small_table():
    widths = planted_key.WIDTHS
    planted_key.WIDTHS = (16,)
    try:
        return planted_key.table((1, 0.5), ("none", "1/d_k"), 24 * 64, 1)
    finally:
        planted_key.WIDTHS = widths


def test_the_table_holds_every_combination_once_and_simulates_what_is_affordable(small_table):
    keys, capacities = small_table
    combinations = {(row["rho"], row["n_keys"], row["scaling"], row["measure"]) for row in keys}
    assert len(keys) == len(combinations) == 2 * 3 * len(planted_key.N_KEYS)
    assert {row["n_keys"] for row in keys if row["estimate"] is not None} == {16, 64}
    assert {row["n_blocks"] for row in keys if row["n_keys"] == 64} == {24}
    assert all((row["scaling"] is None) == (row["measure"] == "retrieved") for row in keys)
    assert len(capacities) == 6
    for row in capacities:
        curve = {
            key["n_keys"]: key["theory"] for key in keys if all(key[name] == row[name] for name in ("rho", "scaling"))
        }
        assert row["capacity"] > 2
        assert all((value > 0.5) == (n < row["capacity"]) for n, value in curve.items())


def test_the_capacity_in_the_literature_is_met():
    """d_k = 64, ρ = 1, 1/√d_k: e^{√64 − ½} = 1808 keys, and a weight of 0.6 at 1024."""
    law = weight_law(64, 1, 1 / 8)
    assert 1700 < law.capacity() < 1900
    assert law(1024) == pytest.approx(0.6, abs=0.01)
    assert weight_law(64, 1, 1.0)(2**20) > 0.999


def _words(**changed):
    return describe("planted-key", synthetic_planted.tables() | changed)


def test_the_figure_reads_noise_signal_and_capacity_from_the_numbers():
    text = _words().reading
    assert "With 1/√d_k the noise is normalised: its spread stays at 1 from d_k = 16 to 64" in text
    assert "while the signal goes from 4 to 8, and the capacity goes from 40 to 2200 keys" in text
    assert re.search(r"With 1/d_k the signal is normalised: it stays at 1 .* and the capacity stays at 3.2 keys", text)
    assert "is right to a factor of 1.20." in text
    capacity = synthetic_planted.tables()["planted_capacity"]
    capacity["capacity"] = 7.0
    text = _words(planted_capacity=capacity).reading
    assert "the signal goes from 4 to 8, and the capacity stays at 7 keys" in text


def test_the_figure_says_when_simulation_and_theory_part():
    assert "as many as 95 % allows" in _words().reading
    table = synthetic_planted.tables()["planted_key"]
    table["theory"] *= 0.8
    assert "too few for 95 %" in _words(planted_key=table).reading


@pytest.mark.slow
def test_capacities_are_marked_where_they_are_on_the_axis():
    figure = load("planted-key").draw(synthetic_planted.tables())
    marks = [line for axes in figure.get_axes() for line in axes.get_lines() if line.get_label() == "_capacity"]
    shown = synthetic_planted.tables()["planted_capacity"].query("measure == 'weight' and rho == 1 and d_k == 64")
    capacity = shown["capacity"][shown["capacity"] <= 2**20]
    assert sorted(float(line.get_xdata()[0]) for line in marks) == sorted(capacity)
    assert len(capacity) == 2
    told = [text.get_text() for axes in figure.get_axes() for text in axes.texts]
    assert {f"{numbers.significant(value, 2)} keys" for value in capacity} <= set(told)


def test_a_law_of_very_wide_logits_takes_no_longer_and_agrees_with_simulation():
    """√d_k times the scores, as a rule that was turned over: logits spread by d_k."""
    law = planted_key.weight_law(16, 0.1, 24.0)
    assert law.weight.size < 500_000
    weight, _ = planted_key.simulate(16, 16, [0.1], [24.0], 200, 1)
    values = weight[0, 0]
    assert abs(values.mean() - law(16)) < 4.5 * values.std(ddof=1) / math.sqrt(len(values))
