"""Summaries of training: windows, speeds, verdicts and their intervals on logs whose truth is known."""

import numpy as np
import pandas as pd
import pytest
import synthetic_training as synthetic

from sqrtdk.report import training_answers as answers
from sqrtdk.training import summary
from sqrtdk.training.summary import decide, window

RATES = np.array([1e-3, 1e-2, 1e-1, 1.0])


def frame(rows):
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        ([0.0, 1.0, 1.0, 0.0], (-2.5, -0.5)),
        ([1.0, 1.0, 0.0, 0.0], (-3.0, -1.5)),
        ([0.0, 0.0, 0.0, 1.0], (-0.5, 0.0)),
        ([0.0, 0.5, 0.25, 0.0], (-2.0, -2.0)),
        ([1.0, 0.0, 0.9, 0.0], (-3.0, -2.5)),
    ],
)
def test_a_window_is_the_run_of_usable_rates_around_the_best(progress, expected):
    assert window(RATES, np.array(progress), 0.5) == pytest.approx(expected)


def test_no_usable_rate_is_no_window():
    low, high = window(RATES, np.array([0.1, 0.2, 0.1, 0.0]), 0.5)
    assert np.isnan(low)
    assert np.isnan(high)
    assert summary._width(low, high) == 0


INF = np.inf


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        ([0.0, 1.0, 1.0, 0.0], (-3, -2, -1, 0)),
        ([1.0, 1.0, 0.0, 0.0], (-INF, -3, -2, -1)),
        ([0.0, 0.0, 0.0, 1.0], (-1, 0, 0, INF)),
        ([0.0, 0.4, 0.2, 0.0], (-3, np.nan, np.nan, -2)),
        ([0.4, 0.2, 0.0, 0.0], (-INF, np.nan, np.nan, -3)),
    ],
)
def test_ends_lie_between_a_usable_and_an_unusable_rate(progress, expected):
    assert summary.brackets(RATES, np.array(progress), 0.5) == pytest.approx(expected, nan_ok=True)


def logs(low, high, rates, scaling="1/sqrt(d_k)", d_k=64):
    """Runs that learn between two decimal logarithms of the rate and nowhere else, two seeds alike."""
    rows = synthetic.training(n_seeds=2, scalings=("1/sqrt(d_k)",), d_k=(64,), diverge=False)
    one = rows[rows["learning_rate"] == synthetic.RATES[0]]
    lost = 1.1 * synthetic.GUESS
    parts = [
        one.assign(learning_rate=rate, loss=0.01 if low <= np.log10(rate) <= high else lost, scaling=scaling, d_k=d_k)
        for rate in rates
    ]
    return pd.concat(parts)


COARSE = (0.001, 0.003, 0.01, 0.03, 0.1)
FINE = tuple(10 ** np.linspace(-3.2, -0.8, 49))


@pytest.mark.parametrize(("low", "high"), [(-2.9, -1.6), (-2.95, -2.05), (-2.6, -2.1), (-2.4, -1.1), (-2.3, -2.1)])
def test_intervals_hold_what_a_finer_grid_finds(low, high):
    """Even where no tried rate is usable, as in the last case."""
    coarse, fine = (frame(summary.summaries(summary.cells(logs(low, high, r)), 1)).iloc[0] for r in (COARSE, FINE))
    assert coarse["window_low"] <= fine["window"] <= coarse["window_high"]
    assert coarse["window_low"] <= high - low <= coarse["window_high"]


def test_where_nothing_learns_no_rate_is_usable():
    row = frame(summary.summaries(summary.cells(logs(9, 9, COARSE)), 1)).iloc[0]
    assert row["window"] == row["window_low"] == 0
    assert row["rate_ceiling"] is None


def test_transfers_hold_what_a_finer_grid_finds():
    """The coarse grid sees no move where there is one of 0.4 decades, and does not claim that there is none."""
    coarse, fine = (
        frame(
            summary.transfer(summary.cells(pd.concat([logs(-2.9, -1.05, r, d_k=16), logs(-2.9, -1.45, r, d_k=256)])), 1)
        ).iloc[0]
        for r in (COARSE, FINE)
    )
    assert coarse["shift"] == pytest.approx(0)
    assert coarse["shift_low"] <= -0.4 <= fine["shift_high"] + 0.06
    assert coarse["shift_low"] <= fine["shift"] <= coarse["shift_high"]


def windows(plain, scaled, rates):
    table = pd.concat([logs(*plain, rates, scaling="none"), logs(*scaled, rates)])
    rows = frame(summary.verdicts(summary.cells(table), 1))
    return rows[rows["comparison"] == "window"].iloc[0]


def test_windows_are_decided_where_the_grid_can():
    assert windows((-2.2, -1.8), (-2.7, -1.3), FINE)["verdict"] == "hurts"
    assert windows((-2.7, -1.3), (-2.2, -1.8), FINE)["verdict"] == "helps"
    assert windows((-2.2, -1.8), (-2.2, -1.8), FINE)["verdict"] == "no difference"
    assert windows((-9, -9), (-2.7, -1.3), FINE)["verdict"] == "undecided", "a best rate at the edge is open"


def test_open_windows_decide_nothing_that_the_rates_beyond_could_change():
    for plain, scaled in [((-9, 9), (-9, 9)), ((-2.1, -1.9), (-9, -1.9))]:
        row = windows(plain, scaled, COARSE)
        assert row["verdict"] == "undecided"
        assert np.isinf(row["high"])
    # Whatever a window gains beyond the rates, the other stays narrower.
    assert windows((-2.1, -1.9), (-9, -1.2), FINE)["verdict"] == "hurts"


def test_a_verdict_needs_the_whole_interval():
    assert decide(0.3, 0.5, 0.2) == "hurts"
    assert decide(-0.5, -0.3, 0.2) == "helps"
    assert decide(-0.1, 0.1, 0.2) == "no difference"
    assert decide(0.1, 0.5, 0.2) == decide(-0.5, 0.5, 0.2) == decide(-0.5, 0.1, 0.2) == "undecided"


def test_diverged_runs_count_as_guessing_and_are_counted():
    table = synthetic.training()
    curves = frame(summary.curves(summary.cells(table)))
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
    one, other = (frame(summary.summaries(summary.cells(t), 1)) for t in (table, shuffled))
    other = other.set_index(summary.KEY).loc[one.set_index(summary.KEY).index].reset_index()
    pd.testing.assert_frame_equal(one, other)


def test_summaries_know_the_law_that_the_logs_were_made_from():
    table = frame(summary.summaries(summary.cells(synthetic.training()), 1)).set_index(["scaling", "d_k"])
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
    cell = summary.cells(synthetic.training(scalings=("none",), d_k=(64,)))[0]
    good, bad = (summary.steps_to(cell, rate, 0.5) for rate in (1, 4))
    assert np.isfinite(good).all()
    assert np.isinf(bad).all()
    i = np.searchsorted(cell.steps, good[0])
    target = 0.5 * cell.guess
    assert cell.path[1, 0, i - 1] >= target >= cell.path[1, 0, i]


def test_verdicts_are_those_of_the_truth():
    table = frame(summary.verdicts(summary.cells(synthetic.training()), 1))
    assert set(table["scaling"]) == {"none", "1/d_k"}
    assert list(table["comparison"].unique()) == ["best", "same_rate", "speed", "window"]
    best = table[table["comparison"] == "best"].set_index(["scaling", "d_k"])["verdict"]
    assert best["none", 256] == "hurts"
    assert (best["1/d_k"] != "hurts").all()
    windows = table[table["comparison"] == "window"].set_index(["scaling", "d_k"])["verdict"]
    # The smallest rate is usable with 1/√d_k, so that the window is open.
    assert (windows == "undecided").all()


def test_a_rule_against_itself_is_no_difference():
    """Negative control: the same runs under another name, and others from other seeds with the same law."""
    table = synthetic.training(scalings=("1/sqrt(d_k)",))
    verdicts = frame(summary.verdicts(summary.cells(pd.concat([table, table.assign(scaling="copy")])), 1))
    assert (verdicts[verdicts["comparison"] != "window"]["verdict"] == "no difference").all()
    assert (verdicts[verdicts["comparison"] == "window"]["verdict"] == "undecided").all()
    assert (verdicts["estimate"] - (verdicts["comparison"] != "window")).abs().max() < 1e-12
    other = synthetic.training(scalings=("1/sqrt(d_k)",), seed=7).assign(scaling="copy")
    verdicts = frame(summary.verdicts(summary.cells(pd.concat([table, other])), 1))
    assert not verdicts["verdict"].isin(["hurts", "helps"]).any()


def test_transfer_says_how_the_largest_usable_rate_moves():
    rows = frame(summary.transfer(summary.cells(synthetic.training()), 1)).set_index("scaling")
    assert rows.loc["1/d_k", "shift"] == pytest.approx(0, abs=0.05)
    assert rows.loc["none", "shift"] < -0.1
    gap = np.log10(0.1 / 0.03)
    assert rows.loc["1/d_k", "shift_high"] - rows.loc["1/d_k", "shift_low"] >= gap
    assert rows.loc["1/d_k", "shift_low"] <= rows.loc["1/d_k", "shift"] <= rows.loc["1/d_k", "shift_high"]
    assert (rows["cost"] >= 1).all()


# ---- the words -------------------------------------------------------------------------------------------------------


def sentences(tables):
    follows = {figure: [one.key for one in found] for figure, found in answers.follows(tables).items()}
    return [one.key for one in answers.headline(tables)], follows


def test_sentences_turn_with_the_numbers():
    tables = synthetic.tables()
    headline, follows = sentences(tables)
    assert headline[1:] == ["answer.training.window.open", "answer.training.mup.undecided"]
    assert follows["training-telemetry"] == ["follows.training.gradient.larger", "follows.training.start"]
    assert "follows.training.transfer.scaled.undecided" in follows["training-curves"]
    assert "follows.training.transfer.plain.undecided" in follows["training-curves"]
    turned = tables["training_verdicts"].assign(verdict="no difference")
    assert sentences(tables | {"training_verdicts": turned})[0] == [
        "answer.training.best.same",
        "answer.training.window.same",
        "answer.training.mup.same",
    ]
    reversed_ = tables["training_summary"].copy()
    plain = reversed_["scaling"] == "none"
    for name in ("gradient", "gradient_low", "gradient_high"):
        reversed_.loc[plain, name] /= 1e6
    assert sentences(tables | {"training_summary": reversed_})[1]["training-telemetry"] == [
        "follows.training.gradient.smaller",
        "follows.training.start",
    ]


def test_transfers_say_why_they_are_not_known():
    tables = synthetic.tables()
    lost = tables["training_transfer"].assign(shift=np.nan)
    table = tables["training_summary"]

    def said(found):
        given = tables | {"training_summary": found, "training_transfer": lost}
        return {one.key.rpartition(".")[2]: list(one.values["where"].items) for one in answers.transfers(given)}

    assert said(table.assign(open_above=False)) == {"unsure": [16, 256]}
    assert said(table.assign(open_above=table["d_k"] == 256)) == {"beyond": [256]}
    nowhere = table.assign(rate_ceiling=table["rate_ceiling"].mask(table["d_k"] == 16), open_above=table["d_k"] == 256)
    assert said(nowhere) == {"nowhere": [16]}


@pytest.mark.parametrize(("rules", "word"), [(["none"], "plain"), (["1/sqrt(d_k)"], "scaled"), (None, "both")])
def test_windows_that_exist_at_no_rate_are_named(rules, word):
    tables = synthetic.tables()
    table = tables["training_summary"]
    gone = table["scaling"].isin(rules or table["scaling"])
    found = answers.headline(tables | {"training_summary": table.assign(rate_ceiling=table["rate_ceiling"].mask(gone))})
    assert f"answer.training.nowhere.{word}" in [one.key for one in found]


def test_a_run_without_training_says_so():
    empty = {name: table.iloc[:0] for name, table in synthetic.tables().items()}
    headline, follows = sentences(empty)
    assert headline == ["answer.training.none"]
    assert follows == {"training-curves": [], "training-telemetry": []}
    assert answers.report_tables(empty, {}) == []


def test_the_table_holds_every_comparison():
    tables = synthetic.tables()
    (table,) = answers.report_tables(tables, {})
    assert len(table.rows) == 6
    first = table.rows[0]
    verdicts = tables["training_verdicts"].query("scaling == 'none' and d_k == 16")["verdict"]
    words = ["same" if verdict == "no difference" else verdict for verdict in verdicts]
    assert [cell.note.key for cell in first[4:8]] == [f"verdicts.{word}" for word in words]
