"""Answers: the numbers choose the sentence."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import synthetic_results
from answer_cases import AT, FITS, GRADIENTS, MOMENTS, SATURATION, VERDICTS

from sqrtdk.report import answers, calibrating
from sqrtdk.report.comparing import agreement, compare
from sqrtdk.report.setting import Setting, choose
from sqrtdk.results.grid import nearest
from sqrtdk.words.sentences import Sentence

SPECS = {"gaussian": {"family": "gaussian"}}


def keys(sentences) -> list[str]:
    return [sentence.key for sentence in sentences]


def put(frame: pd.DataFrame, values: dict, **where) -> pd.DataFrame:
    """Return the frame with values in the rows at these keys."""
    mask = np.logical_and.reduce([frame[column] == value for column, value in where.items()])
    assert mask.any()
    return frame.assign(**{name: frame[name].mask(mask, value) for name, value in values.items()})


# ---- choosing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "se", "other", "other_se", "verdict"),
    [
        (2.0, 0.1, 1.0, 0.1, "larger"),
        (1.0, 0.1, 2.0, 0.1, "smaller"),
        (1.2, 0.1, 1.0, 0.0, "level"),
        (1.31, 0.1, 1.0, 0.0, "larger"),
        (1.4, 0.1, 1.0, 0.1, "level"),
        (1.0, 0.0, 1.0, 0.0, "level"),
        (1.1, 0.0, 1.0, 0.0, "larger"),
        (9.0, math.nan, 1.0, 0.1, "level"),
        (math.nan, 0.1, 1.0, 0.1, "level"),
    ],
)
def test_a_difference_counts_beyond_three_combined_errors(value, se, other, other_se, verdict):
    assert compare(value, se, other, other_se) == verdict


@pytest.mark.parametrize(
    ("value", "se", "exact", "verdict"),
    [
        (1.0, 0.1, 1.2, "agrees"),
        (1.0, 0.1, 1.4, "differs"),
        (1.0, 0.1, math.nan, "alone"),
        (1.0, math.nan, 1.0, "unsure"),
    ],
)
def test_agreement_with_an_exact_value(value, se, exact, verdict):
    assert agreement(value, se, exact) == verdict


@pytest.mark.parametrize(
    ("values", "wanted", "found"), [([1, 64, 4096], 64, 64), ([32, 128], 64, 32), ([10, 100], 64, 100), ([7], 64, 7)]
)
def test_nearest_in_ratio(values, wanted, found):
    assert nearest(values, wanted) == found


def test_setting_prefers_standard_gaussian_components():
    moments = synthetic_results.moments(("laplace", "gaussian", "shifted"))
    saturation = synthetic_results.softmax_saturation(("laplace", "gaussian", "shifted"), n_rows=20)
    specs = {"laplace": {"family": "laplace"}, "gaussian": {"family": "gaussian", "query_mean": 1.0}}
    assert choose(moments, saturation, specs | {"shifted": {"family": "gaussian"}}).ensemble == "shifted"
    assert choose(moments, saturation, specs | {"shifted": {"family": "laplace"}}).ensemble == "laplace"


@pytest.mark.parametrize(
    ("rules", "scaled", "plain"),
    [
        (("none", "1/sqrt(d_k)", "1/d_k"), "1/sqrt(d_k)", "none"),
        (("none", "1/d_k"), "1/d_k", "none"),
        (("1/d_k",), "1/d_k", None),
        (("none",), None, "none"),
    ],
)
def test_setting_knows_which_rules_the_run_has(rules, scaled, plain):
    found = choose(MOMENTS, SATURATION[SATURATION["scaling"].isin(rules)], SPECS)
    assert (found.scaled, found.plain) == (scaled, plain)


def test_setting_says_when_it_is_not_what_was_asked():
    assert AT.sentences == []
    saturation = synthetic_results.softmax_saturation(("gaussian",), (16, 256), (16, 1024), n_rows=20)
    found = choose(MOMENTS, saturation, SPECS)
    assert [sentence.values for sentence in found.sentences] == [
        {"wanted": "64", "used": "16"} if sentence.key == "setting.n_keys" else {"wanted": "64", "used": str(found.d_k)}
        for sentence in found.sentences
    ]
    assert keys(found.sentences) == ["setting.d_k", "setting.n_keys"]


def test_setting_without_a_simulation_is_refused():
    with pytest.raises(ValueError, match="no simulated ensemble"):
        choose(MOMENTS[MOMENTS["stopped_by"] == "enumerated"], SATURATION, SPECS)
    with pytest.raises(ValueError, match="no row for the ensemble gaussian"):
        choose(MOMENTS, SATURATION.head(0), SPECS)


# ---- the headline ----------------------------------------------------------------------------------------------------

EXPONENT = {"ensemble": "gaussian", "law": "power", "parameter": "exponent"}


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({"estimate": 1.001, "se": 0.001, "exact": 1.0}, "agrees"),
        ({"estimate": 1.01, "se": 0.001, "exact": 1.0}, "differs"),
        ({"exact": np.nan}, "alone"),
        ({"estimable": False, "reason": "too few"}, "not_estimable"),
    ],
)
def test_exponent(values, verdict):
    sentences = answers.exponent(put(FITS, values, **EXPONENT), AT)
    assert keys(sentences) == [f"answer.exponent.{verdict}"]


def test_exponent_is_said_with_its_error():
    fits = put(FITS, {"estimate": 1.00123, "se": 0.0004, "ci_low": 1.0004, "ci_high": 1.002}, **EXPONENT)
    values = answers.exponent(fits, AT)[0].values
    assert values["exponent"] == "1.0012 ± 0.0004"
    assert values["exact"] == "1"


def test_intervals_count_those_with_one():
    rows = FITS[(FITS["law"] == "power") & (FITS["parameter"] == "exponent")]
    # An exponent of 1.5 has no 1 in its interval, and AR(1) and equicorrelated components have such.
    found = answers.intervals(FITS)[0]
    inside = ((rows["ci_low"] <= 1) & (rows["ci_high"] >= 1)).sum()
    assert found.key == "answer.intervals.some"
    assert found.values["inside"] == str(inside)
    assert found.values["top_ensemble"] == "equicorrelated"
    all_in, none_in = rows.assign(ci_low=0.9, ci_high=1.1), rows.assign(ci_low=1.1, ci_high=1.2)
    assert keys(answers.intervals(all_in)) == ["answer.intervals.all"]
    assert keys(answers.intervals(none_in)) == ["answer.intervals.nowhere"]
    assert answers.intervals(rows.head(1)) == []


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({"variance": 64.0, "variance_se": 0.1}, "agrees"),
        ({"variance": 70.0, "variance_se": 0.1}, "differs"),
        ({"exact_variance": np.nan}, "alone"),
        ({"variance_se": np.nan}, "unsure"),
        ({"variance": np.nan, "reason": "heavy"}, "missing"),
    ],
)
def test_variance(values, verdict):
    found = keys(answers.variance(put(MOMENTS, values, ensemble="gaussian", d_k=64), AT))
    assert found == [f"answer.variance.{verdict}"] + ([] if verdict == "missing" else ["answer.variance.scaled"])


def test_variance_says_the_size_of_the_logits():
    moments = put(MOMENTS, {"variance": 64.0, "variance_se": 0.64}, ensemble="gaussian", d_k=64)
    plain, scaled = answers.variance(moments, AT)
    assert plain.values["std"] == "8.00 ± 0.04"
    assert scaled.values["std"] == "1.000 ± 0.005"


@pytest.mark.parametrize(("weight", "verdict"), [(0.9, "larger"), (0.01, "smaller"), (0.1, "level")])
def test_softmax(weight, verdict):
    at = {"d_k": 64, "n_keys": 64, "measure": "max_weight"}
    table = put(SATURATION, {"estimate": 0.1, "se": 0.001}, scaling="1/sqrt(d_k)", **at)
    table = put(table, {"estimate": weight, "se": 0.001}, scaling="none", **at)
    sentence = answers.softmax(table, AT)[0]
    assert sentence.key == f"answer.softmax.{verdict}"
    assert sentence.values["weight_scaled"] == "0.100 ± 0.001"


def test_one_rule_has_nothing_to_compare():
    for at in (Setting("gaussian", 64, 64, None, "none"), Setting("gaussian", 64, 64, "1/d_k", None)):
        assert keys(answers.softmax(SATURATION, at)) == ["answer.one_rule"]
        assert answers.gradient(GRADIENTS, at, "grad_query") == []


@pytest.mark.parametrize(("rms", "median"), list(itertools.product(VERDICTS, VERDICTS)))
def test_gradients_tell_both_stories(rms, median):
    size = {"larger": 2.0, "smaller": 0.5, "level": 1.0}
    at = {"d_k": 64, "n_keys": 64, "measure": "grad_query"}
    table = put(GRADIENTS, {"estimate": 1.0, "se": 0.01, "median": 1.0, "median_se": 0.01}, scaling="1/sqrt(d_k)", **at)
    table = put(
        table, {"estimate": size[rms], "se": 0.01, "median": size[median], "median_se": 0.01}, scaling="none", **at
    )
    found = answers.gradient(table, AT, "grad_query")
    start = "answer.gradient"
    assert keys(found) == [
        f"{start}.grad_query.rms.{rms}",
        f"{start}.grad_query.median.{median}",
        f"{start}.together.{rms}_{median}",
    ]
    assert found[0].values["ratio"] == ("1" if rms == "level" else "2")


@pytest.mark.parametrize(("std", "verdict"), [([1.0, 1.09], "all"), ([1.0, 0.95, 3.0], "most"), ([1.0, 2.0], "few")])
def test_real_heads(std, verdict):
    frame = synthetic_results.real_heads(layers=1, heads=len(std)).assign(logit_std=std)
    sentence = answers.real_heads(frame)[0]
    assert sentence.key == f"answer.heads.{verdict}"
    assert sentence.values["near"] == str(sum(abs(value - 1) <= 0.1 for value in std))
    assert sentence.values["high_head"] == Sentence("place.head", {"layer": 0, "head": std.index(max(std))})
    assert sentence.values["low_head"] == Sentence("place.head", {"layer": 0, "head": std.index(min(std))})


def test_every_dump_has_a_sentence_and_no_dump_another():
    assert len(answers.real_heads(synthetic_results.real_heads(1, 2, ("a", "b")))) == 2
    assert keys(answers.real_heads(pd.DataFrame())) == ["answer.heads.none"]


def test_calibration_knows_errors_that_are_too_small():
    assert keys(calibrating.moments(MOMENTS)) == ["answer.calibration.good"]
    columns = [name for name in MOMENTS if name.endswith("_se")]
    proud = MOMENTS.assign(**{name: MOMENTS[name] / 3 for name in columns})
    modest = MOMENTS.assign(**{name: MOMENTS[name] * 30 for name in columns})
    assert keys(calibrating.moments(proud)) == ["answer.calibration.poor"]
    # Errors that are far too large cover everything: with this few cells 100 % cannot be told from 95 %.
    assert calibrating.moments(modest)[0].values["share"] == "100.0 %"
    exact = [name for name in MOMENTS if name.startswith("exact_")]
    assert keys(calibrating.moments(MOMENTS.assign(**dict.fromkeys(exact, np.nan)))) == ["answer.calibration.none"]


def test_softmax_is_held_against_theory_where_its_errors_are_trusted():
    rows = pd.DataFrame(
        {"estimate": [1.0, 1.1, 2.0], "se": 0.1, "theory": [1.05, 1.0, 1.0], "trusted": [True, True, False]}
    )
    found = calibrating.theory(rows, rows.iloc[:0])
    assert keys(found) == ["answer.theory.good"]
    assert found[0].values | {"covered": ""} == dict(count="2", share="100.0 %", worst="1.0", left_out="1", covered="")
    assert keys(calibrating.theory(rows.assign(trusted=True), rows.iloc[:0])) == ["answer.theory.far"]
    assert calibrating.theory(rows.assign(theory=np.nan), rows.iloc[:0]) == []


def test_calibration_leaves_out_what_is_not_trusted():
    wild = MOMENTS.assign(excess_kurtosis=MOMENTS["excess_kurtosis"].where(MOMENTS["kurtosis_trusted"], 1e6))
    assert calibrating.moments(wild)[0].values == calibrating.moments(MOMENTS)[0].values


# ---- what follows ----------------------------------------------------------------------------------------------------


def test_laws_are_grouped_and_rejected_ones_named():
    found = {sentence.key: sentence.values["names"] for sentence in answers.selected_laws(FITS)}
    assert found["follows.selected.quadratic"] == "equicorrelated"
    assert "gaussian" in found["follows.selected.linear"].split(", ")
    assert "follows.selected.rejected" not in found or "gaussian" not in found["follows.selected.rejected"]
    worse = put(FITS, {"p_value": 1e-9}, ensemble="gaussian")
    assert "gaussian" in answers.selected_laws(worse)[-1].values["names"]
    assert keys(answers.selected_laws(FITS.assign(selected=False))) == ["follows.selected.none"]


def test_spread_of_the_logits_at_the_largest_width():
    sentence = answers.spread(MOMENTS, AT)[0]
    assert sentence.key == "follows.spread.many"
    assert (sentence.values["d_k"], sentence.values["high_ensemble"]) == ("1024", "equicorrelated")
    alike = MOMENTS[MOMENTS["ensemble"].isin(["gaussian", "uniform"])]
    assert keys(answers.spread(alike, AT)) == ["follows.spread.one"]
    # Shifted means leave a standard deviation of √1.74.
    unlike = MOMENTS[MOMENTS["ensemble"].isin(["gaussian", "shifted"])]
    assert keys(answers.spread(unlike, AT)) == ["follows.spread.many"]
    assert answers.spread(MOMENTS, Setting("gaussian", 64, 64, None, "none")) == []


def test_number_of_keys():
    assert answers.keys_matter(SATURATION[SATURATION["n_keys"] == 16], AT) == []
    for many, verdict in ((0.9, "larger"), (0.1, "smaller"), (0.5, "level")):
        at = {"d_k": 64, "measure": "max_weight", "scaling": "none"}
        table = put(SATURATION, {"estimate": 0.5, "se": 0.01}, n_keys=16, **at)
        table = put(table, {"estimate": many, "se": 0.01}, n_keys=64, **at)
        assert keys(answers.keys_matter(table, AT)) == [f"follows.keys.{verdict}"]


def test_gradient_by_number_of_keys():
    assert answers.gradient_by_keys(GRADIENTS[GRADIENTS["n_keys"] == 16], AT) == []
    for many, verdict in ((0.9, "larger"), (0.1, "smaller"), (0.5, "level")):
        at = {"d_k": 64, "measure": "grad_logits", "scaling": "1/sqrt(d_k)"}
        table = put(GRADIENTS, {"estimate": 0.5, "se": 0.01}, n_keys=16, **at)
        table = put(table, {"estimate": many, "se": 0.01}, n_keys=64, **at)
        assert keys(answers.gradient_by_keys(table, AT)) == [f"follows.gradient.{verdict}"]


def test_tails_name_the_farthest_from_normal():
    assert keys(answers.tails(MOMENTS)) == ["follows.tails.some"]
    assert answers.tails(MOMENTS)[0].values["top_ensemble"] == "equicorrelated"
    assert keys(answers.tails(MOMENTS.assign(excess_kurtosis=0.01))) == ["follows.tails.all"]
    assert keys(answers.tails(MOMENTS.assign(excess_kurtosis=-0.2))) == ["follows.tails.some"]
    assert answers.tails(MOMENTS.assign(excess_kurtosis=np.nan)) == []


def test_entropy_without_the_models_factor():
    heads = synthetic_results.real_heads(layers=1, heads=3).assign(entropy=[4, 4, 1], unscaled_entropy=[1, 2, 2])
    values = answers.sharpened(heads)[0].values
    assert (values["lower"], values["count"], values["uniform"].items) == ("2", "3", ("5.53",))
