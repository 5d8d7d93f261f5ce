"""What the headline is about, when two numbers differ, and whether errors can be trusted: the numbers decide."""

import math

import numpy as np
import pandas as pd
import pytest
import synthetic_results
from scipy import special

from sqrtdk.report import calibrating
from sqrtdk.report.comparing import agreement, compare
from sqrtdk.report.setting import Setting, choose
from sqrtdk.results.grid import nearest
from sqrtdk.statistics.estimates import UNSTEADY

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


def test_setting_is_about_an_ensemble_whose_softmax_was_measured():
    first = MOMENTS.assign(ensemble=MOMENTS["ensemble"].replace("gaussian", "alone"))
    assert (
        choose(pd.concat([first, MOMENTS]), SATURATION, SPECS | {"alone": {"family": "gaussian"}}).ensemble != "alone"
    )


def test_setting_without_a_simulation_is_refused():
    with pytest.raises(ValueError, match="no simulated ensemble"):
        choose(MOMENTS[MOMENTS["stopped_by"] == "enumerated"], SATURATION, SPECS)
    with pytest.raises(ValueError, match="no row for the ensemble gaussian"):
        choose(MOMENTS, SATURATION.head(0), SPECS)


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_calibration_knows_errors_that_are_too_small_or_too_large():
    assert keys(calibrating.moments(MOMENTS))[0] == "calibration.moments.good"
    columns = [name for name in MOMENTS if name.endswith("_se")]
    for factor in (1 / 3, 3):
        wrong = MOMENTS.assign(**{name: MOMENTS[name] * factor for name in columns})
        assert keys(calibrating.moments(wrong))[0] == "calibration.moments.poor"
    exact = [name for name in MOMENTS if name.startswith("exact_")]
    assert keys(calibrating.moments(MOMENTS.assign(**dict.fromkeys(exact, np.nan)))) == ["calibration.none"]
    few = MOMENTS[MOMENTS["ensemble"] == "gaussian"].head(3)
    assert keys(calibrating.moments(few))[0] == "calibration.moments.few"


def rows_with_theory(distance, trusted=True, measure="entropy"):
    """Return a row of the table of saturation for each distance, in standard errors, of as many cells."""
    cells = {"ensemble": "gaussian", "d_k": range(len(distance)), "n_keys": 16, "scaling": "none", "measure": measure}
    theory = np.linspace(1, 2, len(distance))
    values = {"estimate": theory + 0.1 * np.array(distance), "se": 0.1, "theory": theory, "n_blocks": 4000}
    return pd.DataFrame(cells | values | {"trusted": trusted})


NORMAL_DISTANCES = special.ndtri((np.arange(40) + 0.5) / 40)


def test_softmax_is_held_against_theory():
    rows = rows_with_theory(NORMAL_DISTANCES)
    none = rows.iloc[:0]
    (found,) = calibrating.theory(rows, none)
    assert found.key == "calibration.rows.good"
    assert found.values["count"] == "40"
    # The same value under another name, or as the value of another rule, counts once.
    again = pd.concat([rows, rows.assign(measure="normalised_entropy"), rows.assign(scaling="1/d_k")])
    assert calibrating.theory(again, none)[0].values == found.values
    far = rows_with_theory([*NORMAL_DISTANCES[1:], 5.5])
    assert keys(calibrating.theory(far, none))[0] in ("calibration.rows.far", "calibration.rows.poor")
    assert keys(calibrating.theory(rows_with_theory(2 * NORMAL_DISTANCES), none)) == ["calibration.rows.poor"]
    assert calibrating.theory(rows.assign(theory=np.nan), none) == []


def test_what_is_flagged_counts_and_is_told_apart():
    rows = rows_with_theory(NORMAL_DISTANCES, np.arange(40) < 38)
    found = calibrating.theory(rows, rows.iloc[:0])
    assert keys(found) == ["calibration.rows.good", "calibration.flagged.rows"]
    assert found[0].values["count"] == "40"
    assert float(found[0].values["worst"]) < NORMAL_DISTANCES[-1]
    assert found[1].values == {"flagged": "2", "extreme": "2.2"}


def test_a_kurtosis_whose_error_is_infinite_is_left_out():
    unknown = ~MOMENTS["kurtosis_trusted"] & (MOMENTS["reason"] != UNSTEADY)
    wild = MOMENTS.assign(excess_kurtosis=MOMENTS["excess_kurtosis"].where(~unknown, 1e6))
    assert unknown.any()
    assert calibrating.moments(wild) == calibrating.moments(MOMENTS)


def test_kurtoses_are_judged_by_themselves():
    proud = MOMENTS.assign(excess_kurtosis_se=MOMENTS["excess_kurtosis_se"] / 3)
    assert keys(calibrating.moments(MOMENTS)) == ["calibration.moments.good", "calibration.kurtosis.good"]
    assert keys(calibrating.moments(proud)) == ["calibration.moments.good", "calibration.kurtosis.poor"]
