"""What "vanishing" means: the numbers choose the statement, also when it comes out against what is expected."""

from pathlib import Path

import numpy as np
import pytest
import synthetic_results
import synthetic_vanishing

from sqrtdk.report import vanishing
from sqrtdk.report.setting import Setting
from sqrtdk.words import texts

REPORT = Path(__file__).resolve().parents[2] / "report"
GRID = ("gaussian",), (1, 16, 64, 256), (16, 64), ("none", "1/sqrt(d_k)")
GRADIENTS = synthetic_results.gradient_magnitude(*GRID)
TABLES = synthetic_vanishing.tables(*GRID) | {"gradient_magnitude": GRADIENTS}
AT = Setting("gaussian", 64, 64, "1/sqrt(d_k)", "none")


def frames(**changed):
    return {name: table.copy() for name, table in (TABLES | changed).items()}


def put(frame, values, **where):
    """Return the frame with values in the rows at these keys."""
    mask = np.logical_and.reduce([frame[column] == value for column, value in where.items()])
    assert mask.any()
    return frame.assign(**{name: frame[name].mask(mask, value) for name, value in values.items()})


def by_family(found):
    return {sentence.key.split(".")[2]: sentence for sentence in found}


def test_a_statement_of_each_family_with_the_numbers_of_the_tables():
    found = by_family(vanishing.sentences(frames(), AT))
    assert list(found) == ["verdict", "rows", "energy", "crossover", "total"]
    assert found["verdict"].values["d_k"] == "256"
    assert found["rows"].key == "answer.vanishing.rows.larger"
    assert found["rows"].values["scaled"].startswith("< ")
    assert found["energy"].key == "answer.vanishing.energy.larger"
    crossing = TABLES["gradient_crossovers"].query("n_keys == 64 and measure == 'grad_logits' and quantity == 'median'")
    star = crossing["d_k_star"].iloc[0]
    assert 16 < star < 64
    assert float(found["crossover"].values["star"]) == pytest.approx(star, rel=0.05)
    assert found["total"].key == "answer.vanishing.total.never"
    assert found["total"].values["widest"] == "256"


RULES = {"plain": "none", "scaled": "1/sqrt(d_k)"}


@pytest.mark.parametrize("rms", vanishing.VERDICTS)
@pytest.mark.parametrize("median", vanishing.VERDICTS)
def test_the_verdict_is_chosen_by_both_measures(rms, median):
    size = {"larger": 3.0, "level": 1.01, "smaller": 0.4}
    table = GRADIENTS
    for scaling, values in (("1/sqrt(d_k)", (1.0, 1.0)), ("none", (size[rms], size[median]))):
        new = {"estimate": values[0], "se": 0.01, "median": values[1], "median_se": 0.01}
        table = put(table, new, scaling=scaling, measure="grad_query", d_k=256, n_keys=64)
    sentence = by_family(vanishing.sentences(frames(gradient_magnitude=table), AT))["verdict"]
    assert sentence.key == f"answer.vanishing.verdict.{rms}_{median}"
    ratios = {"larger": "3", "level": "1.0", "smaller": "2.5"}
    assert (sentence.values["rms_ratio"], sentence.values["median_ratio"]) == (ratios[rms], ratios[median])


@pytest.mark.parametrize(("family", "statistic"), [("rows", "below_1e-3"), ("energy", "top_tenth_energy")])
@pytest.mark.parametrize(("share", "verdict"), [(0.9, "larger"), (0.52, "level"), (0.1, "smaller")])
def test_rows_and_energy_are_compared(family, statistic, share, verdict):
    where = {"statistic": statistic, "measure": "grad_logits", "d_k": 64, "n_keys": 64}
    table = TABLES["gradient_distribution"]
    table = put(table, {"estimate": 0.5, "se": 0.01}, scaling="1/sqrt(d_k)", **where)
    table = put(table, {"estimate": share, "se": 0.01}, scaling="none", **where)
    sentence = by_family(vanishing.sentences(frames(gradient_distribution=table), AT))[family]
    assert sentence.key == f"answer.vanishing.{family}.{verdict}"
    assert sentence.values["scaled"] == "50(1) %"


def test_two_bounds_are_not_told_apart():
    where = {"statistic": "below_1e-3", "measure": "grad_logits", "d_k": 64, "n_keys": 64}
    none = {"estimate": 0.0, "se": np.nan, "low": 0.0, "high": 0.002}
    table = put(TABLES["gradient_distribution"], none, **where)
    sentence = by_family(vanishing.sentences(frames(gradient_distribution=table), AT))["rows"]
    assert sentence.key == "answer.vanishing.rows.level"
    assert sentence.values["plain"] == "< 0.20 %"
    # A share that the bound of the other allows.
    few = put(table, {"estimate": 0.001, "se": 0.0002}, scaling="none", **where)
    sentence = by_family(vanishing.sentences(frames(gradient_distribution=few), AT))["rows"]
    assert sentence.key == "answer.vanishing.rows.level"
    whole = {"estimate": 1.0, "se": np.nan, "low": 0.997, "high": 1.0}
    table = put(table, whole, scaling="none", **where)
    sentence = by_family(vanishing.sentences(frames(gradient_distribution=table), AT))["rows"]
    assert sentence.key == "answer.vanishing.rows.larger"
    assert sentence.values["plain"] == "> 99.7 %"


CROSSINGS = {
    "above": {"d_k_star": 35.0, "ci_low": 33.0, "ci_high": 37.0},
    "below": {"d_k_star": 135.0, "ci_low": 133.0, "ci_high": 137.0},
    "near": {"d_k_star": 62.0, "ci_low": 58.0, "ci_high": 66.0},
    "never": {"d_k_star": np.nan, "ci_low": np.nan, "ci_high": np.nan, "reason": "not below at the largest width"},
    "always": {"d_k_star": np.nan, "ci_low": np.nan, "ci_high": np.nan, "reason": "below from the second width on"},
}


@pytest.mark.parametrize("verdict", CROSSINGS)
def test_the_asked_width_is_held_against_the_crossover(verdict):
    table = TABLES["gradient_crossovers"].astype({"reason": object})
    for measure, quantity in (("grad_logits", "median"), ("grad_query", "rms")):
        table = put(table, CROSSINGS[verdict], n_keys=64, measure=measure, quantity=quantity)
    found = by_family(vanishing.sentences(frames(gradient_crossovers=table), AT))
    assert found["crossover"].key == f"answer.vanishing.crossover.{verdict}"
    expected = verdict if verdict in ("never", "always") else "beyond"
    assert found["total"].key == f"answer.vanishing.total.{expected}"
    if verdict == "above":
        assert found["crossover"].values["interval"] == "[33.0, 37.0]"


def test_without_one_of_the_rules_nothing_is_said():
    assert vanishing.sentences(frames(), Setting("gaussian", 64, 64, "1/sqrt(d_k)", None)) == []
    assert vanishing.sentences(frames(), Setting("gaussian", 64, 64, None, "none")) == []


def test_every_sentence_has_words_that_its_values_fill():
    tree = texts.read(REPORT, "en")
    written = {f"{family}.{name}" for family, texts in tree["answer"]["vanishing"].items() for name in texts}
    chosen = {f"{family}.{name}" for family, names in vanishing.SENTENCES.items() for name in names}
    assert written == chosen
    say = texts.Words(tree)
    crossings = TABLES["gradient_crossovers"].astype({"reason": object})
    there = {}
    for row in CROSSINGS.values():
        changed = put(crossings, row, n_keys=64)
        for sentence in vanishing.sentences(frames(gradient_crossovers=changed), AT):
            family, name = sentence.key.split(".")[2:]
            assert name in vanishing.SENTENCES[family]
            for verdict in vanishing.SENTENCES[family]:
                there[f"{family}.{verdict}"] = str(say(f"answer.vanishing.{family}.{verdict}", **sentence.values))
    assert set(there) == chosen
    assert all("{" not in text for text in there.values())
