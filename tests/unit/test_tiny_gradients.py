"""The count of gradients below 1e-10: exact shares, both arithmetics and the numbers that were printed."""

import math

import numpy as np
import pytest
import synthetic_planted
from scipy import special

from sqrtdk.report.tables import examples
from sqrtdk.rows import softmax
from sqrtdk.studies import tiny_gradients


def shares(d_k, n_blocks, seed=1):
    return tiny_gradients.simulate(d_k, n_blocks, seed)


def test_the_exact_share_is_that_of_independent_logits():
    """Without queries and keys, given ‖q‖: the share in brute-force rows of five normal logits."""
    rng = np.random.default_rng(3)
    n = 200_000
    z = np.sqrt(rng.chisquare(100, (n, 1))) * rng.standard_normal((n, 5))
    odds = z[:, 0] - special.logsumexp(z[:, 1:], axis=1)
    limit = -math.log(tiny_gradients.THRESHOLD)
    low, high = (odds < -limit).mean(), (odds > limit).mean()
    exact = tiny_gradients.theory(100, "none")
    for seen, value in ((low, exact["share_of_small_weights"]), (low + high, exact["share_of_entries"])):
        assert abs(seen - value) < 4.5 * math.sqrt(value * (1 - value) / n)
    assert exact["share_of_entries"] - exact["share_of_small_weights"] > 0.002


@pytest.mark.parametrize("spread", [1.0, 10.0, 30.0])
def test_the_odds_without_a_threshold_are_one_in_five(spread):
    """At log-odds of 0 the two probabilities add up to 1; each key is above one half alike."""
    low, high = tiny_gradients._outside(spread, 0.0)
    assert low + high == pytest.approx(1, abs=1e-9)
    if spread == 30:
        assert high == pytest.approx(0.2, abs=0.02)


@pytest.mark.parametrize("spread", [1.0, 9.0, 33.0])
def test_the_step_is_fine_enough(monkeypatch, spread):
    coarse = tiny_gradients._outside(spread, 23.0)
    monkeypatch.setattr(tiny_gradients, "STEP", tiny_gradients.STEP / 2)
    assert coarse == pytest.approx(tiny_gradients._outside(spread, 23.0), rel=1e-6)


@pytest.mark.parametrize(("d_k", "n_blocks"), [(100, 8000), (1000, 1000)])
def test_simulation_meets_the_exact_share_and_what_was_printed(d_k, n_blocks):
    found = shares(d_k, n_blocks)
    exact = tiny_gradients.theory(d_k, "none")
    for statistic, value in exact.items():
        blocks = found["none", "exact", statistic]
        assert abs(blocks.mean() - value) < 4.5 * blocks.std(ddof=1) / math.sqrt(n_blocks)
    naive = found["none", "float32", "share_of_entries"]
    se = naive.std(ddof=1) / math.sqrt(n_blocks)
    printed = tiny_gradients.PUBLISHED[d_k]
    assert abs(naive.mean() - printed) < 4.5 * math.hypot(se, se * math.sqrt(n_blocks / 1e5))
    # Single precision is what makes the printed number: the exact one is elsewhere.
    assert abs(exact["share_of_entries"] - printed) > 8 * se * math.sqrt(n_blocks / 1e5)
    assert found["none", "exact", "share_of_rows"].mean() < 0.6 * found["none", "exact", "share_of_entries"].mean()
    assert found["1/sqrt(d_k)", "float32", "share_of_entries"].max() == 0


def test_both_arithmetics_agree_where_nothing_cancels_and_part_where_it_does():
    logits = np.array([[0.0, 1.0, -1.0, 0.5, 2.0], [30.0, 0.0, -1.0, -2.0, -3.0]], np.float32)
    y, entry, norm = tiny_gradients.naive(logits)
    y_exact, entry_exact, norm_exact = tiny_gradients.exact(softmax.rows(logits))
    assert y == pytest.approx(y_exact, rel=1e-5)
    assert entry[0] == pytest.approx(entry_exact[0], rel=1e-5)
    assert norm[0] == pytest.approx(norm_exact[0], rel=1e-5)
    assert entry[1, 0] == 0
    assert entry_exact[1, 0] == pytest.approx(
        math.exp(-30) * (1 + math.exp(-1) + math.exp(-2) + math.exp(-3)), rel=1e-9
    )
    jacobian = np.diag(y_exact[0]) - np.outer(y_exact[0], y_exact[0])
    assert norm_exact[0] == pytest.approx(np.linalg.norm(jacobian), rel=1e-12)


def test_a_small_entry_is_no_small_row():
    """Two equal logits far above the others: three of five entries count, and the row passes its gradient on."""
    row = softmax.rows(np.array([0.0, 0.0, -50.0, -60.0, -70.0]))
    _, entry, norm = tiny_gradients.exact(row)
    assert (entry <= tiny_gradients.THRESHOLD).sum() == 3
    assert norm == pytest.approx(0.5)


@pytest.mark.slow
def test_the_table_holds_every_combination_and_the_printed_numbers_once():
    rows = tiny_gradients.table(400, 1)
    keys = [tuple(row[name] for name in ("d_k", "scaling", "arithmetic", "statistic")) for row in rows]
    assert len(set(keys)) == len(rows) == 3 * 2 * 2 * 4
    assert [row["published"] for row in rows if row["published"] is not None] == list(tiny_gradients.PUBLISHED.values())
    assert {row["n_rows"] for row in rows} == {400}
    assert all(
        (row["theory"] is None)
        == (row["arithmetic"] != "exact" or row["statistic"] in ("share_of_zero_entries", "share_of_rows"))
        for row in rows
    )


def test_the_report_puts_the_printed_share_beside_the_exact_one():
    frame = synthetic_planted.examples()["tiny_gradients"]
    table = examples.tiny_gradients(frame)
    assert [(row[0].text, row[1].text) for row in table.rows][:2] == [("10", "none"), ("10", "1/sqrt(d_k)")]
    cells = dict(zip(table.columns, table.rows[-2], strict=True))
    assert cells["published"].text == "69.50"
    assert float(cells["exact"].note) == pytest.approx(66.81, abs=0.01)
    share = frame[(frame["d_k"] == 1000) & (frame["scaling"] == "none") & (frame["arithmetic"] == "exact")]
    share = share.set_index("statistic")["estimate"]
    assert table.values["small"] == f"{100 * share['share_of_small_weights'] / share['share_of_entries']:.0f} %"
