"""The ledger in words: both languages complete, numbers as they are in claims.csv, sentences chosen by the counts."""

import re
from pathlib import Path

import pandas as pd
import pytest
import synthetic_claims as synthetic

from sqrtdk.claims import ledger
from sqrtdk.claims.catalogue import CLAIMS
from sqrtdk.claims.core import KINDS, REASONS, VERDICTS
from sqrtdk.claims.lookup import ROLES
from sqrtdk.claims.thresholds import ALL
from sqrtdk.report import ledger as page
from sqrtdk.results import reading
from sqrtdk.words import texts as words
from sqrtdk.words.sentences import Sentence

REPORT = Path(__file__).resolve().parents[2] / "report"
LANGUAGES = ("en", "zh")


def leaves(tree, before=""):
    if not isinstance(tree, dict):
        return {before: tree}
    return {key: text for name, part in tree.items() for key, text in leaves(part, f"{before}.{name}").items()}


def texts(language: str) -> dict[str, str]:
    return leaves({"claims": words.read(REPORT, language)["claims"]})


@pytest.fixture(scope="module")
def frame():
    return reading.frame("claims", map(ledger.row, ledger.decide(synthetic.frames(), synthetic.SPECS)))


@pytest.mark.parametrize("language", LANGUAGES)
def test_whatever_can_be_a_surprise_is_quoted_and_nothing_else(language):
    quoted = words.read(REPORT, language)["quotations"]
    assert quoted.keys() == {claim.id for claim in CLAIMS.values() if claim.widespread}
    assert all(2 <= len(text.split()) <= 30 or language == "zh" for text in quoted.values())


def test_both_languages_have_the_same_words_with_the_same_places():
    one, other = (texts(language) for language in LANGUAGES)
    assert one.keys() == other.keys()
    for key in one:
        assert set(re.findall(r"\{\w+\}|\$[^$]+\$", one[key])) == set(re.findall(r"\{\w+\}|\$[^$]+\$", other[key])), key
        assert re.search(r"[\u4e00-\u9fff]", other[key]) or one[key].startswith("$"), key
        assert not re.search(r"[\u3000-\u9fff]", one[key]), key


@pytest.mark.parametrize("language", LANGUAGES)
def test_whatever_a_row_can_be_has_its_words(language):
    say = words.Words(words.read(REPORT, language))
    values = dict.fromkeys(
        ("holds_if", "not_if", "value", "what", "interval", "bound", "place", "distance", "other", "verdict", "claims"),
        "7",
    )
    keys = [f"verdicts.{name}" for name in VERDICTS] + [f"kinds.{name}" for name in KINDS]
    keys += [f"reasons.{name}" for name in REASONS]
    keys += [f"conditions.{name}" for name in VERDICTS if name != "opinion"] + ["otherwise", "instead_of", "identity"]
    keys += [
        "from.shipped",
        "from.longer",
        "distance",
        "distance_otherwise",
        "other.stays",
        "other.turned",
        "counts_once",
    ]
    for key in keys:
        assert say(f"claims.{key}", **values)
    assert {key.replace("_", " ") for key in words.read(REPORT, language)["claims"]["lacking"]} == set(ROLES)


def test_the_kind_of_ensemble_that_a_run_lacks_is_said_in_words():
    without = {"fixed": {"family": "laplace"}}
    decided = pd.DataFrame([ledger.row(one) for one in ledger.decide(synthetic.frames(), without)])
    lines = {line.id: line for line in page.ledger(decided, "zh").rows}
    assert lines["C2"].why == Sentence("claims.lacking.standard")
    assert lines["C70"].why == Sentence("claims.lacking.correlated_on_one_side")


@pytest.mark.parametrize("language", LANGUAGES)
def test_lines_say_what_the_table_holds(frame, language):
    lines = {line.id: line for line in page.ledger(frame, language).rows}
    assert lines.keys() == CLAIMS.keys()
    assert lines["C39"].expected == "0.87 ± 0.005"
    assert lines["C39"].measured == "0.8668"
    assert lines["C19"].expected == "≥ 3"
    assert lines["C56"].expected == "≤ 0.1"
    row = frame.set_index("claim").loc["C4"]
    assert lines["C4"].measured == page.numbers.with_error(row["measured"], row["se"])
    assert lines["C4"].otherwise == page.numbers.with_error(row["not_if_measured"], row["not_if_se"])
    assert [lines[name].expected for name in ("C53", "C30")] == ["", ""]
    assert lines["C30"].why == Sentence("claims.reasons.untested", {"what": ""})
    assert lines["C43"].why.key == "claims.reasons.untested_part"
    assert [lines[name].identity for name in ("C9", "C4")] == [True, False]
    assert "<sub>q</sub>" in lines["C14"].measures
    assert 'class="math"' in lines["C2"].says


@pytest.mark.parametrize(("se", "spelled"), [(0.02, "0.050 [0.010, 0.30]"), (0.01, "0.05(1)"), (0.0, "0.05")])
def test_a_large_error_is_spelled_as_an_interval(se, spelled):
    assert page._number({"measured": 0.05, "se": se, "low": 0.01, "high": 0.3}) == spelled


def test_distances_and_other_thresholds_stand_beside_each_verdict(frame):
    lines = {line.id: line for line in page.ledger(frame, "en").rows}
    row = frame.set_index("claim").loc["C40"]
    found = {one.key: one.values for one in lines["C40"].distance}
    assert row["other_verdict"] == "holds" != row["verdict"]
    assert found["claims.other.turned"] == {"other": "0.5", "verdict": Sentence("claims.verdicts.holds")}
    assert found["claims.distance"]["distance"] == f"−{-100 * row['relative_distance']:.3g} %"
    both = {one.key: one.values for one in lines["C4"].distance}
    assert both["claims.distance_otherwise"]["distance"].startswith("−")
    assert both["claims.other.stays"]["other"] == "0.1"
    (same,) = (one.values["claims"] for one in lines["C2"].distance if one.key == "claims.counts_once")
    assert same == "C5, C6, C7, C8, C15, C16, C41, C50"
    assert not any(one.key == "claims.counts_once" for one in lines["C1"].distance)
    assert lines["C53"].distance == lines["C30"].distance == ()


@pytest.mark.parametrize("language", LANGUAGES)
def test_thresholds_are_listed_with_their_reasons(frame, language):
    shown = page.ledger(frame, language).thresholds
    assert len(shown) == len(ALL)
    assert all(means and why and value != other for means, value, other, why in shown)


def test_repeated_claims_and_identities_are_counted(frame):
    (caveats,) = (one.values for one in page.summary(frame) if one.key == "claims.summary.caveats")
    assert int(caveats["distinct"]) + int(caveats["repeated"]) == len(frame)
    # Nine claims on one variance, four on one start, two on one example.
    assert caveats["repeated"] == "12"
    assert int(caveats["identities"]) == sum(claim.identity for claim in CLAIMS.values()) >= 4
    assert int(caveats["turned"]) == int((frame["verdict"] != frame["other_verdict"]).sum())


def test_claims_stand_by_question_and_the_worst_of_each_before_all(frame):
    shown = page.ledger(frame, "en")
    assert list(shown.groups) == list(page.SUBJECTS)
    assert sorted(line.id for line in shown.rows) == sorted(CLAIMS)
    for name, lines in {**shown.groups, "": shown.surprises}.items():
        ranks = [page.ORDER.index(line.verdict) for line in lines]
        assert ranks == sorted(ranks), name
    assert [line.id for line in shown.groups["gradients"] if line.id == "C11"]
    assert len(shown.surprises) == frame["surprise"].sum()
    assert {verdict: count for verdict, count, _ in shown.counts()} == frame["verdict"].value_counts().to_dict()
    verdicts = frame.set_index("claim")["verdict"]
    for question in shown.groups:
        assert all(verdicts[first] == verdict for verdict, _, first in shown.counts(question))
    assert sum(count for name in shown.groups for _, count, _ in shown.counts(name)) == len(CLAIMS)


def test_an_undecided_claim_names_the_bound_that_its_interval_crosses(frame):
    rows = frame[frame["reason"] == "interval"]
    assert len(rows)
    lines = {line.id: line for line in page.ledger(frame, "en").rows}
    for row in rows.to_dict("records"):
        bound = float(lines[row["claim"]].why.values["bound"])
        assert min(abs(bound - row["expected"] - margin) for margin in (row["margin"], -row["margin"])) < 1e-3
        crossed = [row[f"{side}low"] <= bound <= row[f"{side}high"] for side in ("", "not_if_")]
        assert any(crossed), row["claim"]


@pytest.mark.parametrize(
    ("verdicts", "word"),
    [
        (["holds"] * 3 + ["fails"], "most"),
        (["holds", "fails"], "half"),
        (["holds", "fails", "holds_if"], "few"),
        (["undecided", "opinion"], "none"),
    ],
)
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_summary_is_chosen_by_the_counts(frame, verdicts, word, language):
    few = frame.head(len(verdicts)).assign(
        verdict=verdicts, reason="", kind=["arithmetic", *["simulated"] * (len(verdicts) - 1)]
    )
    found = page.summary(few)
    assert f"claims.summary.{word}" in [sentence.key for sentence in found]
    say = words.Words(words.read(REPORT, language))
    text = " ".join(str(say(sentence.key, **sentence.values)) for sentence in found)
    assert str(len(verdicts)) in text
    lacking = page.summary(few.assign(reason="missing"))
    assert (lacking[-1].key == "claims.summary.lacking") == (word != "none")


def test_counts_are_those_of_the_table(frame):
    values = page.summary(frame)[0].values
    assert sum(int(values[name]) for name in VERDICTS) == int(values["count"]) == len(frame)
    assert int(values["decided"]) == int(frame["verdict"].isin(["holds", "holds_if", "fails"]).sum())
    assert int(values["data"]) < int(values["decided"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_checks_are_spelled_with_their_errors(language):
    table = page.checks(synthetic.frames()["claim_checks"])
    say = words.Words(words.read(REPORT, language))
    for name, *_, found, _ in table.rows:
        assert say(name.word)
        assert not name.note or say(name.note_word)
        assert found.text
    weights = [row[3].text for row in table.rows if row[0].word.endswith("top_two_weight")]
    assert re.fullmatch(r"0\.95\d+\(\d+\)", weights[0])
    far = [row[3].text for row in table.rows if row[0].word.endswith("far_logit_weight")]
    assert far == ["0.9971", "1", "0.02057", "1"]
