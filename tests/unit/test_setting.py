"""What the headline is about, when two numbers differ, and whether errors can be trusted: the numbers decide."""

import math

import numpy as np
import pandas as pd
import pytest
import synthetic_results

from sqrtdk.report import calibrating
from sqrtdk.report.comparing import agreement, compare
from sqrtdk.report.setting import Setting, choose
from sqrtdk.results.grid import nearest

SPECS = {"gaussian": {"family": "gaussian"}}
MOMENTS = synthetic_results.moments()
SATURATION = synthetic_results.softmax_saturation(("gaussian",), (16, 64), (16, 64))
AT = Setting("gaussian", 64, 64, "1/sqrt(d_k)", "none")


def keys(sentences) -> list[str]:
    return [sentence.key for sentence in sentences]


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


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_calibration_knows_errors_that_are_too_small():
    assert keys(calibrating.moments(MOMENTS)) == ["calibration.good"]
    columns = [name for name in MOMENTS if name.endswith("_se")]
    proud = MOMENTS.assign(**{name: MOMENTS[name] / 3 for name in columns})
    modest = MOMENTS.assign(**{name: MOMENTS[name] * 30 for name in columns})
    assert keys(calibrating.moments(proud)) == ["calibration.poor"]
    # Errors that are far too large cover everything: with this few cells 100 % cannot be told from 95 %.
    assert calibrating.moments(modest)[0].values["share"] == "100.0 %"
    exact = [name for name in MOMENTS if name.startswith("exact_")]
    assert keys(calibrating.moments(MOMENTS.assign(**dict.fromkeys(exact, np.nan)))) == ["calibration.none"]


def test_calibration_leaves_out_what_is_not_trusted():
    wild = MOMENTS.assign(excess_kurtosis=MOMENTS["excess_kurtosis"].where(MOMENTS["kurtosis_trusted"], 1e6))
    assert calibrating.moments(wild)[0].values == calibrating.moments(MOMENTS)[0].values


def test_averages_are_held_against_theory_where_their_errors_are_trusted():
    rows = pd.DataFrame(
        {"estimate": [1.0, 1.1, 2.0], "se": 0.1, "theory": [1.05, 1.0, 1.0], "trusted": [True, True, False]}
    )
    found, left_out = calibrating.theory_scores(rows, rows.iloc[:0])
    assert found.tolist() == pytest.approx([0.5, 1.0])
    assert left_out == 1
    assert calibrating.theory_scores(rows.assign(theory=np.nan), rows.iloc[:0])[0].empty
