"""The training run that ships: its tables are those that the code writes, of the configuration that it names."""

import json
import math

import pytest

import ship_training
from ship_training import ROOT
from sqrtdk.results import reading
from sqrtdk.training import rules

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


def test_no_end_is_known_better_than_its_gap_between_rates():
    for row in rows("training_transfer"):
        if row["shift"] is not None:
            assert row["shift_high"] - row["shift_low"] > 0.5
    for row in rows("training_summary"):
        if row["open_below"] or row["open_above"]:
            assert row["window_high"] == math.inf


def test_no_best_rate_is_at_an_edge():
    for name in ("training_summary", "training_verdicts", "start_rate"):
        assert {row["interior"] for row in rows(name)} == {True}, name


def test_the_halves_are_there_at_three_widths_with_their_intervals():
    found = [row for row in rows("start_rate") if (row["experiment"], row["measure"]) == ("recall", "loss")]
    assert sorted({row["d_k"] for row in found}) == [16, 64, 256]
    assert len(found) == 4 * 2 * 3
    assert all(row["low"] < row["estimate"] < row["high"] for row in found)
    both = {row["trained_as"] for row in found if row["start"] and row["rate"]}
    assert both == {"1/sqrt(d_k)", "1/d_k"}


def test_time_is_summed_by_experiment(tmp_path):
    folder = tmp_path / "benchmarks/train_models/mine/none"
    folder.mkdir(parents=True)
    for d_k, seconds in ((16, 1.5), (64, 2.25)):
        (folder / f"{d_k}.tsv").write_text(f"s\tcpu_time\n9\t{seconds}\n", encoding="utf-8")
    assert ship_training.cpu_seconds(tmp_path) == {"mine": 4}


def test_numbers_are_rounded_and_names_are_not():
    kept = [123456, "1e5", "inf", None, math.inf, True]
    given = [0.123456, 1.23456e-09, *kept]
    assert [ship_training._short(value) for value in given] == [0.1235, 1.235e-9, *kept]
