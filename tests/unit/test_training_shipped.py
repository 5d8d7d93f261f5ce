"""The training run that ships: its tables are those that the code writes, of the configuration that it names."""

import itertools
import json
import math

import pytest

import ship_training
from program import CPU_LINE
from ship_training import ROOT
from sqrtdk.results import reading
from sqrtdk.training import rules, tasks

FOLDER = ROOT / "resources/training"


def rows(name):
    return reading.rows(FOLDER / f"{name}.csv")


@pytest.fixture(scope="module")
def made_of():
    return json.loads((FOLDER / "provenance.json").read_text("utf-8"))


def test_it_says_what_it_was_made_with(made_of):
    # Whether that is the overlay as it is, `make release-check` says.
    assert made_of.keys() == {*ship_training.configuration(), "versions", "command", "cpu_seconds"}
    assert made_of["command"] == ship_training.COMMAND
    assert made_of["cpu_seconds"].keys() == made_of["training"].keys()
    assert all(seconds > 0 for seconds in made_of["cpu_seconds"].values())
    assert set(made_of["versions"]) == {"python", "numpy", "scipy", "pandas"}


def test_it_holds_every_experiment_in_full(made_of):
    found = {(row["experiment"], row["scaling"], row["d_k"]): row for row in rows("training_summary")}
    expected = {
        (name, rule, d_k): entry
        for name, entry in made_of["training"].items()
        for rule in entry["scalings"]
        for d_k in entry["d_k"]
    }
    assert found.keys() == expected.keys()
    for key, entry in expected.items():
        row = found[key]
        assert (row["task"], row["optimiser"]) == (entry["task"], entry["optimiser"])
        assert (row["n_seeds"], row["steps"]) == (entry["seeds"], entry["steps"])
        assert row["n_rates"] == len(rules.rates(entry, key[1]))
        assert entry["seeds"] >= 8


def test_every_rule_has_its_verdicts(made_of):
    found = rows("training_verdicts")
    others = [rule for entry in made_of["training"].values() for rule in entry["scalings"] * len(entry["d_k"])]
    assert len(found) == 5 * sum(rule != "1/sqrt(d_k)" for rule in others)
    for row in found:
        assert row["verdict"] in ("hurts", "helps", "no difference", "undecided")
        assert row["low"] <= row["estimate"] <= row["high"]


def test_no_end_is_known_better_than_its_gap_between_rates(made_of):
    known = [row for row in rows("training_transfer") if row["shift"] is not None]
    assert known != []
    for row in known:
        tried = rules.rates(made_of["training"][row["experiment"]], row["scaling"])
        gap = min(math.log10(high / low) for low, high in itertools.pairwise(tried))
        # An end at either width.
        assert row["shift_high"] - row["shift_low"] > 1.99 * gap
    for row in rows("training_summary"):
        if row["open_below"] or row["open_above"]:
            assert row["window_high"] == math.inf


def test_no_best_rate_is_at_an_edge():
    for name in ("training_summary", "training_verdicts", "start_rate"):
        assert {row["interior"] for row in rows(name)} == {True}, name


@pytest.mark.parametrize(
    ("experiment", "widths"), [("recall", [16, 64, 256]), ("recall_sgd", [16, 64, 256]), ("induction", [64])]
)
def test_the_halves_are_there_with_their_intervals(experiment, widths):
    found = [row for row in rows("start_rate") if (row["experiment"], row["measure"]) == (experiment, "loss")]
    assert sorted({row["d_k"] for row in found}) == widths
    assert len(found) == 4 * 2 * len(widths)
    assert all(row["low"] < row["estimate"] < row["high"] for row in found)
    both = {row["trained_as"] for row in found if row["start"] and row["rate"]}
    assert both == {"1/sqrt(d_k)", "1/d_k"}


def test_both_optimisers_and_all_tasks_are_there(made_of):
    assert {entry["optimiser"] for entry in made_of["training"].values()} >= {"adam", "sgd"}
    assert {entry["task"] for entry in made_of["training"].values()} == set(tasks.names())


def test_it_was_made_within_its_budget(made_of):
    assert sum(made_of["cpu_seconds"].values()) < 6 * 3600


def test_time_is_summed_by_experiment(tmp_path):
    folder = tmp_path / "logs/train_models/mine/none"
    folder.mkdir(parents=True)
    for d_k, seconds in ((16, 1.5), (64, 2.25)):
        (folder / f"{d_k}.log").write_text(CPU_LINE.format(1, seconds), encoding="utf-8")
    assert ship_training.cpu_seconds(tmp_path) == {"mine": 4}


def test_numbers_are_rounded_and_names_are_not():
    kept = [123456, "1e5", "inf", None, math.inf, True]
    given = [0.123456, 1.23456e-09, *kept]
    assert [ship_training._short(value) for value in given] == [0.1235, 1.235e-9, *kept]
