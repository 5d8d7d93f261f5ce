"""All claims: complete in both languages, decided on data, and turned over when the data are made wrong."""

import contextlib
import dataclasses
import functools
import itertools
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import synthetic_claims as synthetic
import yaml

from sqrtdk.claims import catalogue as claims
from sqrtdk.claims import ledger, lookup, runs
from sqrtdk.claims.catalogue import CLAIMS
from sqrtdk.claims.core import KINDS, UNTESTED_PART, VERDICTS, WHOLE, Measured
from sqrtdk.claims.lookup import Results
from sqrtdk.claims.texts import Text
from sqrtdk.figures import catalogue
from sqrtdk.results import dictionary
from sqrtdk.results.described import columns

ROOT = Path(__file__).resolve().parents[2]
DECIDED = ("holds", "holds_if", "fails")
TESTED = [name for name, claim in CLAIMS.items() if not claim.opinion and claim.untested != WHOLE]
BY_DATA = [name for name in TESTED if CLAIMS[name].kind != "arithmetic"]
UNTESTED = [name for name, claim in CLAIMS.items() if claim.untested]
CHANGES = (
    *(lambda value, to=to: to for to in (0.0, 1.0, 100.0, -1.0, 0.5, 0.1, 2.0, 10.0, 64.0)),
    *(lambda value, factor=factor: factor * value for factor in (100.0, 0.01, 4.0, 0.25, 2.0, 0.5, 1e4, 1e-4)),
)
"""What a number is made in turn, to see whether a claim depends on it."""


@functools.cache
def usual() -> dict[str, str]:
    return {one.claim.id: one.verdict for one in ledger.decide(synthetic.frames(), synthetic.SPECS)}


@contextlib.contextmanager
def read_as(change):
    """Let `change` (number of the reading, estimate) stand for every estimate that a test reads from a table."""
    count = itertools.count()

    def made(*values, **named):
        return change(next(count), Measured(*values, **named))

    with pytest.MonkeyPatch.context() as patch:
        for module in (lookup, runs):
            patch.setattr(module, "Measured", made)
        yield


def verdict(name: str, change) -> str:
    """Return the verdict on a claim if what is read from the synthetic tables is changed."""
    with read_as(change):
        return CLAIMS[name].decide(tables()).verdict


def readings(name: str) -> int:
    """Return how many estimates the test of a claim reads."""
    seen = []
    verdict(name, lambda number, estimate: seen.append(number) or estimate)
    return len(seen)


def turns(name: str, which, unless: tuple) -> bool:
    """Say whether some change of some readings gives the claim another verdict than some."""

    def changed(to):
        def change(number, estimate):
            surely = dict(value=to(estimate.value), se=1e-6 * estimate.se, log=False)
            return dataclasses.replace(estimate, **surely) if number in which else estimate

        return change

    return any(verdict(name, changed(to)) not in unless for to in CHANGES)


@functools.cache
def tables() -> Results:
    return Results(synthetic.frames(), synthetic.SPECS)


class TestRegister:
    def test_all_ids_are_there_without_a_gap(self):
        assert list(CLAIMS) == [f"C{number}" for number in range(1, len(CLAIMS) + 1)]
        assert [claim.id for claim in CLAIMS.values()] == list(CLAIMS)

    def test_enough_of_them_rest_on_data(self):
        assert {claim.kind for claim in CLAIMS.values()} == set(KINDS)
        assert len(TESTED) >= 50
        assert len(BY_DATA) >= 40

    def test_both_languages_say_something_of_their_own(self):
        for claim in CLAIMS.values():
            for text in (claim.says, claim.measures, claim.holds_if, claim.not_if):
                if isinstance(text, Text):
                    assert re.search(r"[\u3000-\u9fff]", text.zh), claim.id
                    assert not re.search(r"[\u3000-\u9fff\uff00-\uffef]", text.en), claim.id
                    assert not re.search(r"[{}$<>]", text.en + text.zh), claim.id
            assert claim.says.en.endswith("."), claim.id
            assert claim.says.zh.endswith("。"), claim.id

    def test_evidence_exists(self):
        tables = yaml.safe_load((ROOT / "report/words/en/tables.yaml").read_text(encoding="utf-8"))["tables"]
        anchors = {f"fig-{name}" for name in catalogue.names()} | {"tab-claim-checks"}
        anchors |= {f"tab-{key.replace('_', '-')}" for key, entry in tables.items() if "columns" in entry}
        assert {claim.evidence for claim in CLAIMS.values()} <= anchors

    def test_tables_of_the_workflow_are_those_that_claims_read(self):
        assert {f"{name}.csv" for name in claims.tables()} <= set(dictionary.FILES)
        assert "claims" not in claims.tables()


class TestVerdicts:
    def test_most_are_decided_by_a_test_and_many_on_data(self):
        decided = [name for name, found in usual().items() if found in DECIDED]
        assert len(decided) >= 48
        assert len([name for name in decided if name in BY_DATA]) >= 35

    def test_what_is_known_exactly_comes_out(self):
        expected = {
            "holds": (
                "C2",
                "C3",
                "C5",
                "C6",
                "C7",
                "C8",
                "C9",
                "C12",
                "C15",
                "C16",
                "C17",
                "C19",
                "C25",
                "C38",
                "C39",
                "C41",
                "C46",
                "C50",
            ),
            "holds_if": ("C1", "C4", "C10", "C18", "C21", "C42", "C55", "C62", "C72", "C75"),
            "fails": ("C36", "C40", "C45", "C47", "C48", "C56", "C73"),
        }
        for word, names in expected.items():
            assert {name: usual()[name] for name in names} == dict.fromkeys(names, word)

    def test_rows_are_complete(self):
        rows = [ledger.row(one) for one in ledger.decide(synthetic.frames(), synthetic.SPECS)]
        for row in rows:
            assert set(row) == set(columns("claims"))
            assert row["verdict"] in VERDICTS
            assert row["measured"] is not None
            assert row["low"] is None or row["low"] <= row["measured"] <= row["high"]
            assert (row["not_if"] is None) == (row["not_if_measured"] is None)
            assert row["verdict"] != "holds_if" or row["not_if_low"] is not None
            assert (row["reason"] != "") == (row["verdict"] == "undecided")
        assert [row["claim"] for row in rows] == list(CLAIMS)
        assert sum(row["surprise"] for row in rows) >= 10


class TestNegativeControls:
    @pytest.mark.parametrize("name", TESTED)
    def test_wrong_numbers_turn_the_verdict(self, name):
        # With a part untested a claim that fails can but become undecided.
        unless = (usual()[name],) if CLAIMS[name].untested else (usual()[name], "undecided")
        several = range(readings(name))
        # Every other reading is one side of all the ratios.
        some = (several, several[::2], several[1::2], *([one] for one in several))
        assert any(turns(name, which, unless) for which in some)

    def test_every_number_that_is_read_can_turn_what_holds(self):
        holding = [name for name in TESTED if usual()[name] in ("holds", "holds_if")]
        idle = [(name, i) for name in holding for i in range(readings(name)) if not turns(name, [i], (usual()[name],))]
        assert holding != []
        assert idle == []

    @pytest.mark.parametrize("name", BY_DATA)
    def test_large_errors_leave_it_undecided(self, name):
        assert verdict(name, lambda i, e: dataclasses.replace(e, se=1e4 * (abs(e.value) + 1))) == "undecided"

    @pytest.mark.parametrize("name", BY_DATA)
    @pytest.mark.parametrize("se", [0.0, np.nan])
    def test_without_errors_nothing_is_decided(self, name, se):
        assert verdict(name, lambda i, e: dataclasses.replace(e, se=se)) == "undecided"

    @pytest.mark.parametrize(
        ("name", "table", "where", "column", "factor", "expected"),
        [
            ("C16", "moments", "ensemble == 'normal' and d_k == 512", "variance", 1.05, "fails"),
            ("C16", "moments", "ensemble == 'normal' and d_k == 512", "variance_se", 20, "undecided"),
            ("C7", "moments", "ensemble == 'one'", "variance", 1.2, "fails"),
            ("C41", "moments", "ensemble == 'unequal'", "variance_se", 1000, "undecided"),
            ("C2", "variance_laws", "ensemble == 'normal'", "estimate", 1.1, "fails"),
            ("C3", "gradient_by_keys", "d_k == 1024", "ratio", 100, "fails"),
            ("C51", "planted_gradient", "n_keys == 64 and rho == 0", "ratio", 0.1, "fails"),
            ("C42", "worked_example", "measure == 'wide'", "estimate", 2, "holds"),
            ("C64", "depth", "norm == 'none' and scaling != 'none' and layer == 6", "estimate", 1e4, "fails"),
            ("C4", "initialisation", "scheme == 'kaiming_normal'", "estimate", 0.5, "holds"),
            ("C75", "initialisation", "scheme == 'linear_default'", "estimate", 3, "holds"),
            ("C22", "real_heads", "d_k > 0", "independence_variance", 0, "fails"),
            ("C56", "worked_example", "measure == 'grad_query' and scaling != 'none'", "estimate", 1e4, "holds"),
            ("C13", "claim_checks", "case == 'runner_up'", "estimate", 50, "fails"),
            ("C11", "training", "scaling == 'none'", "grad_norm_qk", 1e-4, "holds"),
            ("C34", "claim_checks", "check == 'rate_of_large_weights'", "estimate", 2, "fails"),
            ("C31", "claim_checks", "check == 'heads_of_usual_width'", "estimate", 0.5, "fails"),
            ("C18", "claim_checks", "check == 'scaled_jacobian' and n_keys == 512", "estimate", 0.1, "fails"),
            ("C18", "claim_checks", "check == 'scaled_jacobian' and n_keys == 4096", "estimate", 4, "holds"),
            ("C28", "claim_checks", "case == 'limit_10_unscaled' and d_k == 64", "estimate", 0.1, "fails"),
            ("C20", "training", "scaling == 'none'", "loss", 0.01, "fails"),
            ("C57", "training", "scaling == 'none'", "loss", 0.01, "fails"),
            ("C1", "claim_checks", "case == 'unequal_lengths'", "estimate", 1.4, "holds"),
            ("C38", "claim_checks", "case == 'limit_10_unscaled'", "estimate", 1.25, "fails"),
            ("C55", "linear_attention", "scaling == '1/sqrt(d_k)'", "estimate", 2, "holds"),
            ("C25", "normalisers", "measure == 'row_sum'", "estimate", 0.5, "fails"),
        ],
    )
    def test_a_wrong_column_turns_the_claim_that_reads_it(self, name, table, where, column, factor, expected):
        frames = synthetic.frames()
        rows = frames[table].query(where).index
        assert len(rows) > 0
        frames[table][column] = frames[table][column].astype(float)
        frames[table].loc[rows, column] *= factor
        assert usual()[name] != expected or factor == 0 or column == "median"
        assert CLAIMS[name].decide(Results(frames, synthetic.SPECS)).verdict == expected


class TestUntested:
    """What the project does not measure, no number decides; what it measures of a claim can still refute it."""

    @pytest.mark.parametrize("name", UNTESTED)
    def test_no_number_makes_it_hold(self, name):
        every = range(readings(name))
        allowed = ("undecided",) if CLAIMS[name].untested == WHOLE else ("undecided", "fails")
        assert not any(turns(name, which, allowed) for which in (every, every[::2], every[1::2]))

    @pytest.mark.parametrize("name", UNTESTED)
    def test_but_for_the_mark_its_numbers_would_decide_it(self, name, monkeypatch):
        monkeypatch.setitem(CLAIMS, name, dataclasses.replace(CLAIMS[name], untested=""))
        every = range(readings(name))
        assert any(turns(name, which, ("undecided", "fails")) for which in (every, every[::2], every[1::2]))

    def test_each_says_so_in_the_ledger(self):
        rows = {row["claim"]: row for row in map(ledger.row, ledger.decide(synthetic.frames(), synthetic.SPECS))}
        whole = [name for name, row in rows.items() if row["reason"] == "untested"]
        assert whole == [name for name in UNTESTED if CLAIMS[name].untested == WHOLE]
        assert all(rows[name]["verdict"] == rows[name]["other_verdict"] == "undecided" for name in whole)
        part = [name for name, row in rows.items() if row["reason"] == UNTESTED_PART]
        assert part != []
        assert set(part) <= set(UNTESTED)
        assert all(rows[name]["remark"] for name in UNTESTED)


class TestRates:
    @pytest.mark.parametrize(("scaling", "choose"), [("none", "best"), ("1/sqrt(d_k)", "top")])
    def test_no_run_has_a_part_in_the_choice_of_its_own_rate(self, scaling, choose):
        """The luck of half of the runs at a rate that nobody would choose moves the other half to it."""

        def chosen(frames) -> np.ndarray:
            found = runs.Runs(Results(frames, {}), "recall", 64)
            return found.plain.best_rates().index if choose == "best" else found.top_rates()[1].index

        frames = synthetic.frames()
        logs = frames["training"]
        last, even = logs["learning_rate"] == logs["learning_rate"].max(), logs["seed"] % 2 == 0
        lucky = logs.assign(
            loss=logs["loss"].where(~(last & even & (logs["scaling"] == scaling)), 1e-4),
            diverged=logs["diverged"] & ~last,
        )
        before, after = chosen(frames), chosen(frames | {"training": lucky})
        top = logs["learning_rate"].nunique() - 1
        assert (before < top).all()
        np.testing.assert_array_equal(after[::2], before[::2])
        np.testing.assert_array_equal(after[1::2], top)


class TestMissing:
    def test_without_any_table_nothing_is_decided_and_nothing_breaks(self):
        rows = [ledger.row(one) for one in ledger.decide({}, {})]
        assert {row["verdict"] for row in rows} == {"undecided", "opinion"}
        assert {row["reason"] for row in rows} == {"missing"}
        assert all(row["missing"] for row in rows)

    @pytest.mark.parametrize("table", claims.tables())
    def test_an_empty_table_leaves_its_claims_undecided(self, table):
        frames = tables().frames | {table: pd.DataFrame()}
        for claim in CLAIMS.values():
            if table in claim.reads:
                found = claim.decide(Results(frames, synthetic.SPECS))
                # What others trained stands in for what this run has not.
                assert (found.reason == "missing") != (f"shipped_{table}" in claim.reads), claim.id

    @pytest.mark.parametrize("role", [*synthetic.SPECS])
    def test_an_ensemble_that_is_not_there_is_not_stood_in_for(self, role):
        specs = {name: spec for name, spec in synthetic.SPECS.items() if name != role}
        found = {one.claim.id: one for one in ledger.decide(tables().frames, specs)}
        lost = [name for name, one in found.items() if one.reason == "missing"]
        # Where other variances would do, the standard normal ones do as well.
        assert lost or (role == "unequal" and found["C41"].verdict == "holds")
        assert all("ensembles: " in found[name].missing for name in lost)

    def test_a_name_means_nothing(self):
        """An ensemble called gaussian that is none is not taken for the standard normal one."""
        specs = synthetic.SPECS | {"normal": {"family": "gaussian", "query_sd": 2.0}}
        assert CLAIMS["C2"].decide(Results(synthetic.frames(), specs)).missing == "ensembles: standard"

    def test_a_neighbouring_width_is_said_and_a_far_one_refused(self):
        frames = dict(tables().frames)
        frames["moments"] = frames["moments"][frames["moments"]["d_k"] != 64]
        row = ledger.row(CLAIMS["C5"].decide(Results(frames, synthetic.SPECS)))
        assert (row["d_k"], row["instead_of"]) == (16, "d_k = 64")
        frames["moments"] = frames["moments"][frames["moments"]["d_k"] < 16]
        found = CLAIMS["C5"].decide(Results(frames, synthetic.SPECS))
        assert (found.verdict, found.missing) == ("undecided", "moments: d_k = 64")

    def test_shipped_numbers_are_marked_and_give_way_to_those_of_the_run(self):
        frames = synthetic.frames()
        assert ledger.row(CLAIMS["C30"].decide(Results(frames, synthetic.SPECS)))["shipped"]
        for name in ("verdicts", "summary"):
            frames[f"training_{name}"] = frames[f"shipped_training_{name}"]
        assert not ledger.row(CLAIMS["C30"].decide(Results(frames, synthetic.SPECS)))["shipped"]


def test_a_difference_of_two_shares_stays_between_minus_1_and_1():
    """However wide the interval of Student's t is that the table gives."""
    frames = synthetic.frames()
    for name in ("training_verdicts", "shipped_training_verdicts"):
        frames[name].loc[frames[name]["unit"] == "share", ["estimate", "low", "high"]] = -0.84, -1.16, -0.52
    found = Results(frames, synthetic.SPECS).against_reference("none", "accuracy", 64, task="induction")
    assert found.interval() == pytest.approx((-1.0, -0.52))
    assert found.scaled(-1).interval() == pytest.approx((0.52, 1.0))
