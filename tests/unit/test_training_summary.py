"""Summaries of training: windows, speeds, verdicts and their intervals on logs whose truth is known."""

import itertools

import numpy as np
import pandas as pd
import pytest
import synthetic_training as synthetic

from sqrtdk.report.tables import training as tables_of
from sqrtdk.results.described import columns
from sqrtdk.training import cells, comparisons, growth, summary
from sqrtdk.training.comparisons import decide

RATES = np.array([1e-3, 1e-2, 1e-1, 1.0])


def frame(rows):
    return pd.DataFrame(rows)


def test_a_verdict_needs_the_whole_interval():
    assert decide(0.3, 0.5, 0.2) == "hurts"
    assert decide(-0.5, -0.3, 0.2) == "helps"
    assert decide(-0.1, 0.1, 0.2) == "no difference"
    assert decide(0.1, 0.5, 0.2) == decide(-0.5, 0.5, 0.2) == decide(-0.5, 0.1, 0.2) == "undecided"


def test_diverged_runs_count_as_guessing_and_are_counted():
    table = synthetic.training()
    curves = frame(summary.curves(cells.cells(table)))
    lost = curves[(curves["scaling"] == "none") & (curves["learning_rate"] == 0.1)]
    assert (lost["n_diverged"] == 8).all()
    assert (lost["n_guessing"] == 8).all()
    assert lost["loss"].to_numpy() == pytest.approx(np.log(32))
    # A finite loss above guessing is no better, and not diverged.
    above = curves[(curves["n_guessing"] > 0) & (curves["n_diverged"] == 0)]
    assert len(above) > 0
    assert (curves["loss"] <= curves["guess"] * (1 + 1e-12)).all()
    assert (curves["n_seeds"] == 8).all()


def test_the_order_of_the_rows_does_not_matter():
    table = synthetic.training(n_seeds=3)
    shuffled = table.sample(frac=1, random_state=1)
    one, other = (frame(summary.summaries(cells.cells(t), 1)) for t in (table, shuffled))
    other = other.set_index(cells.KEY).loc[one.set_index(cells.KEY).index].reset_index()
    pd.testing.assert_frame_equal(one, other)


def test_summaries_know_the_law_that_the_logs_were_made_from():
    table = frame(summary.summaries(cells.cells(synthetic.training()), 1)).set_index(["scaling", "d_k"])
    ceilings = table["rate_ceiling"]
    assert (ceilings["1/d_k"].std() / ceilings["1/d_k"].mean()) < 0.05
    assert ceilings["none", 16] > ceilings["none", 64] > ceilings["none", 256]
    assert (table.loc["1/d_k", "window"] > table.loc["none", "window"]).all()
    assert (table["window_low"] <= table["window"]).all()
    assert (table["window"] <= table["window_high"]).all()
    assert table["gradient"]["none", 64] / table["gradient"]["1/sqrt(d_k)", 64] == pytest.approx(8, rel=0.3)
    assert table["late_rise"].to_numpy() == pytest.approx(1)
    assert (table["share_reached"] == 1).all()


def test_steps_to_the_target_are_interpolated_and_infinite_where_it_is_not_reached():
    cell = cells.cells(synthetic.training(scalings=("none",), d_k=(64,)))[0]
    found = cell.steps_to_target()
    good, bad = found[1], found[4]
    assert np.isfinite(good).all()
    assert np.isinf(bad).all()
    assert (cell.duration()[4] == cell.steps[-1]).all()
    i = np.searchsorted(cell.steps, good[0])
    assert cell.path[1, 0, i - 1] >= cell.target >= cell.path[1, 0, i]
    share = (cell.path[1, 0, i - 1] - cell.target) / (cell.path[1, 0, i - 1] - cell.path[1, 0, i])
    assert good[0] == pytest.approx(cell.steps[i - 1] + share * (cell.steps[i] - cell.steps[i - 1]))


def test_where_no_run_learns_the_rate_with_the_lowest_loss_counts_as_the_fastest():
    table = synthetic.training(scalings=("1/sqrt(d_k)",), d_k=(64,), diverge=False)
    cell = cells.cells(table.assign(loss=2 + table["learning_rate"].sub(0.01).abs()))[0]
    assert np.isinf(cell.steps_to_target()).all()
    assert cell.fastest_rates().rate == 0.01
    assert cell.fastest_rates().interior


def test_verdicts_are_those_of_the_truth():
    table = frame(comparisons.verdicts(cells.cells(synthetic.training()), 1))
    assert set(table["scaling"]) == {"none", "1/d_k"}
    assert list(table["comparison"].unique()) == ["loss", "accuracy", "speed", "same_rate", "window"]
    found = table.set_index(["scaling", "d_k", "comparison"])["verdict"]
    # Losses near 0 are no difference, whatever their ratio; at the rate of the other rule they are one.
    best = table.set_index(["scaling", "d_k", "comparison"]).loc[("none", 64, "loss")]
    assert best["value"] / best["reference_value"] > 2
    assert (table[table["comparison"].isin(["loss", "accuracy"])]["verdict"] == "no difference").all()
    assert "hurts" in {found["none", d_k, "same_rate"] for d_k in (64, 256)}
    assert {found["1/d_k", d_k, "same_rate"] for d_k in (16, 64, 256)} == {"no difference"}
    # The smallest rate is usable with 1/√d_k, so that the window is open.
    assert (table[table["comparison"] == "window"]["verdict"] == "undecided").all()


@pytest.mark.parametrize(
    ("change", "comparison"),
    [(dict(loss=lambda x: x + 0.2), "loss"), (dict(accuracy=lambda x: x - 0.1), "accuracy")],
)
def test_a_measure_that_is_worse_hurts_and_one_that_is_better_helps(change, comparison):
    table = synthetic.training(scalings=("1/sqrt(d_k)",), d_k=(64,))
    last = table["step"] == table["step"].max()
    other = table.assign(scaling="copy")
    for name, how in change.items():
        other.loc[last, name] = how(other.loc[last, name])
    for rule, verdict in (("1/sqrt(d_k)", "hurts"), ("copy", "helps")):
        mine, theirs = (table, other) if verdict == "hurts" else (other, table)
        pair = pd.concat([mine.assign(scaling="1/sqrt(d_k)"), theirs.assign(scaling="copy")])
        rows = frame(comparisons.verdicts(cells.cells(pair), 1)).set_index("comparison")
        assert rows.loc[comparison, "verdict"] == verdict, rule


def test_a_slower_rule_hurts_though_it_ends_alike():
    table = synthetic.training(scalings=("1/sqrt(d_k)",), d_k=(64,))
    slow = table.assign(scaling="copy")
    early = (slow["step"] > 0) & (slow["step"] < 100)
    slow.loc[early, "loss"] = np.minimum(3 * slow.loc[early, "loss"], synthetic.GUESS)
    rows = frame(comparisons.verdicts(cells.cells(pd.concat([table, slow])), 1)).set_index("comparison")
    assert rows.loc["loss", "verdict"] == "no difference"
    assert rows.loc["speed", "verdict"] == "hurts"
    assert rows.loc["speed", "estimate"] > 1.25


def test_a_best_rate_at_an_edge_decides_nothing():
    table = synthetic.training(scalings=("none", "1/sqrt(d_k)"), d_k=(64,))
    near = table[table["learning_rate"] < 0.02]
    rows = frame(comparisons.verdicts(cells.cells(near), 1)).set_index("comparison")
    assert not rows.loc["loss", "interior"]
    assert (rows.loc[["loss", "accuracy", "speed", "same_rate"], "verdict"] == "undecided").all()


def test_a_rule_that_learns_at_no_rate_is_decided_and_not_by_the_edge_where_chance_is_lowest():
    table = synthetic.training(scalings=("none", "1/sqrt(d_k)"), d_k=(64,), diverge=False)
    fails, last = table["scaling"] == "none", table["step"] == table["step"].max()
    first = table["learning_rate"] == table["learning_rate"].min()
    table.loc[fails, ["loss", "accuracy"]] = [synthetic.GUESS * 1.01, 0.03]
    table.loc[fails & last & first, "loss"] = synthetic.GUESS * 0.995
    rows = frame(comparisons.verdicts(cells.cells(table), 1)).set_index("comparison")
    assert rows.loc["loss", "interior"]
    assert rows.loc[["loss", "accuracy", "speed"], "verdict"].tolist() == ["hurts"] * 3
    # A rate at the edge at which something is learned decides nothing, as ever.
    table.loc[fails & last & first, "loss"] = synthetic.GUESS * 0.8
    rows = frame(comparisons.verdicts(cells.cells(table), 1)).set_index("comparison")
    assert not rows.loc["loss", "interior"]


def test_a_rule_against_itself_is_no_difference():
    """Negative control: the same runs under another name, and others from other seeds with the same law."""
    table = synthetic.training(scalings=("1/sqrt(d_k)",))
    verdicts = frame(comparisons.verdicts(cells.cells(pd.concat([table, table.assign(scaling="copy")])), 1))
    assert (verdicts[verdicts["comparison"] != "window"]["verdict"] == "no difference").all()
    assert (verdicts[verdicts["comparison"] == "window"]["verdict"] == "undecided").all()
    assert (verdicts["estimate"] - (verdicts["comparison"] == "speed")).abs().max() < 1e-12
    other = synthetic.training(scalings=("1/sqrt(d_k)",), seed=7).assign(scaling="copy")
    verdicts = frame(comparisons.verdicts(cells.cells(pd.concat([table, other])), 1))
    assert not verdicts["verdict"].isin(["hurts", "helps"]).any()


# ---- rates that other seeds choose -----------------------------------------------------------------------------------


def test_no_seed_has_a_part_in_the_choice_of_its_own_rate():
    """One lucky run at a bad rate: its own half is not given that rate."""
    cost = np.full((4, 6), 1.0)
    cost[1], cost[2] = 0.5, 0.6
    cost[2, 0] = -0.5
    choice = cells.choose(RATES, cost)
    assert choice.index.tolist() == [1, 2, 1, 2, 1, 2]
    assert choice.of(cost).tolist() == pytest.approx([0.5, 0.6, 0.5, 0.6, 0.5, 0.6])
    assert choice.rate == RATES[2]
    assert choice.interior


def test_a_rate_at_an_edge_that_only_some_seeds_are_given_is_seen():
    cost = np.array([[0.4, 0.9, 0.4, 0.9], [0.5, 0.4, 0.5, 0.4], [1.0, 1, 1, 1]])
    choice = cells.choose(RATES[:3], cost)
    assert choice.rate == RATES[1]
    assert choice.index.tolist() == [1, 0, 1, 0]
    assert not choice.interior


@pytest.mark.parametrize("gap", [0.0, 0.2, 1.0])
def test_choosing_by_the_same_seeds_flatters_and_by_the_others_does_not(gap):
    """Two rules at nine rates, alike but for chance: the difference is 0, in 95 % of the intervals."""
    rng, own, inside, n = np.random.default_rng(2), [], 0, 1000
    rates = np.geomspace(1e-3, 1, 9)
    middle = 1 + gap * np.abs(np.arange(9) - 4)[:, None]
    for _ in range(n):
        pair = [middle + 0.3 * rng.standard_normal((9, 8)) for _ in range(2)]
        own.append(pair[0][pair[0].mean(axis=1).argmin()].mean())
        values = [cells.choose(rates, cost).of(cost) for cost in pair]
        _, low, high = comparisons.MEASURES["loss"].compare(*values)
        inside += low <= 0 <= high
    assert inside / n > 0.95 - 0.02 - 3 * (0.95 * 0.05 / n) ** 0.5
    assert gap > 0 or np.mean(own) < 0.9


# ---- halves of the repair, and growth --------------------------------------------------------------------------------

HALVES = ("none", "none + start", "none + rate", "1/sqrt(d_k)")


def test_halves_are_held_against_neither_and_both():
    table = synthetic.training(scalings=HALVES, d_k=(16, 64))
    last = (table["step"] == table["step"].max()) & table["scaling"].isin(["none", "none + rate"])
    table.loc[last, "loss"] += 0.5
    rows = frame(comparisons.start_rate(cells.cells(table)))
    assert len(rows) == 4 * 3 * 2
    assert set(rows["scaling"]) == {"none"}, "around 1/√d_k not all four were trained"
    loss = rows[(rows["measure"] == "loss") & (rows["d_k"] == 64)].set_index(["start", "rate"])
    assert loss.loc[(True, True), "trained_as"] == "1/sqrt(d_k)"
    arms = [(False, False), (True, False), (False, True), (True, True)]
    assert [loss.loc[arm, "verdict_neither"] for arm in arms[1:]] == ["helps", "no difference", "helps"]
    assert [loss.loc[arm, "verdict_both"] for arm in arms[:3]] == ["hurts", "no difference", "hurts"]
    assert loss.loc[arms[0], "against_neither"] is None or np.isnan(loss.loc[arms[0], "against_neither"])
    estimates = loss["estimate"]
    for (halves, row), word in itertools.product(loss.iterrows(), ("neither", "both")):
        if isinstance(row[f"verdict_{word}"], str):
            other = estimates[(False, False) if word == "neither" else (True, True)]
            assert row[f"against_{word}"] == pytest.approx(row["estimate"] - other), halves


def test_both_halves_trained_under_their_own_name_count():
    table = synthetic.training(scalings=(*HALVES, "none + start + rate"), d_k=(64,))
    rows = frame(comparisons.start_rate(cells.cells(table)))
    assert set(rows[rows["start"] & rows["rate"]]["trained_as"]) == {"none + start + rate"}


def test_exponents_are_those_that_the_logs_were_made_with():
    rows = frame(growth.growth(cells.cells(synthetic.training()), 1)).set_index(["scaling", "quantity"])
    for scaling, exponent in (("none", 0.5), ("1/sqrt(d_k)", 0.0), ("1/d_k", -0.5)):
        start, end = rows.loc[(scaling, "spread_start")], rows.loc[(scaling, "spread_end")]
        assert start["exponent"] == pytest.approx(exponent, abs=1e-9)
        assert start["predicted"] == pytest.approx(exponent)
        assert end["predicted"] == pytest.approx(exponent + 0.5)
    ratio = rows.loc[("none", "rate_against_reference")]
    assert ratio["predicted"] == pytest.approx(-0.25)
    assert rows.loc[("1/d_k", "rate_against_reference"), "predicted"] == pytest.approx(0.25)
    assert ratio["low"] <= ratio["exponent"] <= ratio["high"]
    assert ratio["exponent"] == pytest.approx(
        rows.loc[("none", "largest_rate"), "exponent"] - rows.loc[("1/sqrt(d_k)", "largest_rate"), "exponent"]
    )


def test_transfer_says_how_the_largest_usable_rate_moves():
    rows = frame(growth.transfer(cells.cells(synthetic.training()), 1)).set_index("scaling")
    assert rows.loc["1/d_k", "shift"] == pytest.approx(0, abs=0.05)
    assert rows.loc["none", "shift"] < -0.1
    gap = np.log10(0.1 / 0.03)
    assert rows.loc["1/d_k", "shift_high"] - rows.loc["1/d_k", "shift_low"] >= gap
    assert rows.loc["1/d_k", "shift_low"] <= rows.loc["1/d_k", "shift"] <= rows.loc["1/d_k", "shift_high"]
    assert (rows["cost"] >= 1).all()


# ---- the words -------------------------------------------------------------------------------------------------------


def test_a_run_without_training_has_no_table():
    empty = {name: table.iloc[:0] for name, table in synthetic.tables().items()}
    assert tables_of.report_tables(empty, {}) == []


def test_the_table_holds_every_comparison():
    tables = synthetic.tables()
    (table,) = tables_of.report_tables(tables, {})
    assert len(table.rows) == 6
    first = table.rows[0]
    verdicts = tables["training_verdicts"].query("scaling == 'none' and d_k == 16")["verdict"]
    words = ["same" if verdict == "no difference" else verdict for verdict in verdicts]
    assert [cell.note.key for cell in first[4:9]] == [f"verdicts.{word}" for word in words]


def shipped():
    return synthetic.tables(scalings=(*HALVES, "1/d_k"), d_k=(16, 64))


def test_the_table_of_halves_spells_each_combination_and_its_verdict():
    tables = shipped()
    found = {table.key: table for table in tables_of.report_tables(tables, tables)}
    assert list(found) == ["training", "start_rate", "training_growth", "training_shipped"]
    halves = found["start_rate"]
    assert len(halves.rows) == 2 * 3
    assert [row[3].word for row in halves.rows[:3]] == [
        "trained_measures.loss",
        "trained_measures.accuracy",
        "trained_measures.speed",
    ]
    frame = tables["start_rate"].query("d_k == 16 and measure == 'loss'").set_index(["start", "rate"])
    neither, start, rate, both = halves.rows[0][4:]
    assert neither.note == ""
    for cell, arm in ((start, (True, False)), (rate, (False, True)), (both, (True, True))):
        verdict = frame.loc[arm, "verdict_neither"]
        assert cell.note.key == f"verdicts.{'same' if verdict == 'no difference' else verdict}"


def test_the_table_of_growth_leaves_out_what_is_not_bounded():
    tables = shipped()
    table = {one.key: one for one in tables_of.report_tables(tables, tables)}["training_growth"]
    frame = tables["training_growth"]
    assert frame["exponent"].isna().sum() > 0 or len(table.rows) == len(frame)
    assert len(table.rows) == frame["exponent"].notna().sum() > 0
    without = frame.assign(exponent=np.nan)
    assert "training_growth" not in {
        t.key for t in tables_of.report_tables(tables, tables | {"training_growth": without})
    }


def test_every_row_has_the_columns_of_its_table():
    found = cells.cells(synthetic.training(scalings=(*HALVES, "1/d_k"), d_k=(16, 64)))
    made = {
        "training_curves": summary.curves(found),
        "training_summary": summary.summaries(found, 1),
        "training_verdicts": comparisons.verdicts(found, 1),
        "training_transfer": growth.transfer(found, 1),
        "training_growth": growth.growth(found, 1),
        "start_rate": comparisons.start_rate(found),
    }
    for name, rows in made.items():
        assert rows, name
        assert {frozenset(row) for row in rows} == {frozenset(columns(name))}, name
