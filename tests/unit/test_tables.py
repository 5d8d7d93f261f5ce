"""Tables: every cell says what its frame says, rounded by its error, and what does not exist is not invented."""

import math

import numpy as np
import pandas as pd
import pytest
import synthetic_alternatives
import synthetic_planted
import synthetic_results
import synthetic_start
import synthetic_vanishing

from sqrtdk.figures.style import ensemble_label
from sqrtdk.report import contents
from sqrtdk.report.setting import Setting
from sqrtdk.report.tables import heads, moments, rows
from sqrtdk.report.tables.cells import NONE, Cell, estimate, exact, signed
from sqrtdk.report.tables.rows import GRADIENT_MEASURES, SATURATION_MEASURES, by_rule, contrast
from sqrtdk.results.picking import pick
from sqrtdk.sampling import ensembles, laws
from sqrtdk.studies import normalisation
from sqrtdk.words import mathml, numbers
from sqrtdk.words.sentences import Phrase, Sentence

MOMENTS = synthetic_results.moments()
SPECS = {"gaussian": {"family": "gaussian"}, "student_t": {"family": "student_t", "df": 10}}


def measures(ensemble="gaussian", d_k=64, n_keys=(16, 64), rules=("none", "1/sqrt(d_k)")) -> dict[str, pd.DataFrame]:
    """Return softmax tables in which every number can be told from every other."""
    rows = ([], [])
    value = 1.0
    for n in n_keys:
        for rule in rules:
            key = {"ensemble": ensemble, "d_k": d_k, "n_keys": n, "scaling": rule}
            for table, names in zip(rows, (SATURATION_MEASURES, GRADIENT_MEASURES), strict=True):
                for name in names:
                    value += 1
                    table.append(key | {"measure": name, "estimate": value, "se": 0.01, "theory": np.nan})
                    table[-1] |= {"median": value + 0.5, "median_se": 0.02}
    frames = {"softmax_saturation": pd.DataFrame(rows[0]), "gradient_magnitude": pd.DataFrame(rows[1])}
    return frames | {"moments": MOMENTS}


def rows_of(table) -> dict[str, tuple[Cell, ...]]:
    return {row[0].text or row[0].word: row for row in table.rows}


def test_numbers_are_rounded_by_their_error_and_missing_ones_are_a_dash():
    assert estimate(1.23456, 0.012).text == numbers.with_error(1.23456, 0.012) == "1.235(12)"
    assert estimate(math.nan, 0.1) == estimate(None, None) == NONE
    noted = estimate(1.0, 0.1, "2", "tables.exact")
    assert (noted.note, noted.note_word) == ("2", "tables.exact")
    assert estimate(1.0, 0.1, "", "tables.exact").note_word == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.09375, "0.09375"),
        (0.00375, "0.00375"),
        (64.0, "64"),
        (100.0, "100"),
        (1.0000000001, "1"),
        (1.5e-9, "1.5 × 10⁻⁹"),
    ],
)
def test_exact_numbers_have_no_zeros_that_look_known(value, text):
    assert exact(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1.26, "+1.3"), (-1.26, "−1.3"), (-0.01, "0.0"), (0.0, "0.0"), (math.nan, "")]
)
def test_deviations_have_a_sign(value, text):
    assert signed(value) == text


@pytest.mark.parametrize(
    ("value", "se", "exact", "z"),
    [
        (3.0, 0.5, 2.0, 2.0),
        (3.0, 0.0, 2.0, None),
        (3.0, math.nan, 2.0, None),
        (3.0, 0.5, math.nan, None),
        (None, 1, 1, None),
    ],
)
def test_z_score(value, se, exact, z):
    assert moments.z_score(value, se, exact) == z


def test_pick_wants_one_row_and_names_what_it_looked_for():
    frame = pd.DataFrame({"a": [1, 1, 2], "b": ["x", "y", "x"]})
    assert pick(frame, "it", a=1, b="y") == {"a": 1, "b": "y"}
    for where, count in (({"a": 1}, 2), ({"a": 3}, 0)):
        with pytest.raises(ValueError, match=rf"it has {count} rows for \{{'a': {where['a']}\}}"):
            pick(frame, "it", **where)


def test_ensembles_show_estimate_exact_value_and_z():
    table = moments.ensembles(MOMENTS, 64)
    rows = rows_of(table)
    assert list(rows) == list(map(ensemble_label, synthetic_results.ENSEMBLES))
    cells = dict(zip(table.columns, rows["Student t"], strict=True))
    frame = MOMENTS[(MOMENTS["ensemble"] == "student_t") & (MOMENTS["d_k"] == 64)].iloc[0]
    assert cells["variance"].text == numbers.with_error(frame["variance"], frame["variance_se"])
    assert cells["variance"].note == "64"
    assert float(cells["z_variance"].text.replace("−", "-")) == pytest.approx(
        (frame["variance"] - 64) / frame["variance_se"], abs=0.06
    )
    assert cells["reached"].note == Sentence(f"stopped.{frame['stopped_by']}")
    assert table.values == {"d_k": "64"}


def test_ensembles_without_an_exact_value_or_an_error_say_nothing_of_it():
    given = MOMENTS[MOMENTS["d_k"] == 64].copy()
    given.loc[:, ["exact_mean", "variance_se", "relative_se"]] = np.nan
    table = moments.ensembles(given, 64)
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    assert cells["mean"].note == ""
    assert cells["z_mean"] == cells["z_variance"] == NONE
    assert cells["reached"].word == "tables.none"


def test_laws_show_the_exponent_its_interval_and_the_selected_law():
    frame = laws.fit_variance_laws(MOMENTS, 64)
    table = moments.laws(frame, "variance_laws", ("power", "exponent"), ("affine_tail", "slope"))
    rows = rows_of(table)
    fit = pick(frame, "it", ensemble="gaussian", law="power", parameter="exponent")
    cells = dict(zip(table.columns, rows["Gaussian"], strict=True))
    assert cells["leading"].text == numbers.with_error(fit["estimate"], fit["se"])
    assert cells["leading"].note == "1"
    assert cells["interval"].text == numbers.interval(fit["ci_low"], fit["ci_high"])
    tail = pick(frame, "it", ensemble="gaussian", law="affine_tail", parameter="slope")
    assert cells["tail"].text == numbers.with_error(tail["estimate"], tail["se"])
    assert cells["selected"].word == "laws.linear"
    assert [one.key for one in cells["parameters"].text.items] == ["parameters.slope"]
    assert cells["parameters"].text.items[0].values["value"].startswith("1.0")
    quadratic = dict(zip(table.columns, rows["equicorrelated"], strict=True))
    assert quadratic["selected"].word == "laws.quadratic"
    assert len(quadratic["parameters"].text.items) == 2


def test_laws_of_the_mean_without_a_parameter():
    table = moments.laws(laws.fit_mean_laws(MOMENTS), "mean_laws", ("linear", "slope"))
    cells = dict(zip(table.columns, rows_of(table)["Gaussian"], strict=True))
    assert cells["selected"].word == "laws.zero"
    assert cells["parameters"] == NONE


def test_laws_that_are_not_estimable_say_why():
    frame = laws.fit_variance_laws(MOMENTS[MOMENTS["d_k"] == 4], 64)
    table = moments.laws(frame, "variance_laws", ("power", "exponent"))
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    assert cells["leading"].word == "tables.not_estimable"
    assert "needs at least 3" in cells["leading"].note.text
    assert cells["interval"] == NONE
    assert cells["selected"].word == "tables.no_law"
    assert "needs at least" in cells["selected"].note.items[0].text


def test_tiny_p_values_are_only_said_to_be_small():
    frame = laws.fit_variance_laws(MOMENTS, 64).assign(p_value=1e-30)
    table = moments.laws(frame, "variance_laws", ("power", "exponent"))
    assert dict(zip(table.columns, table.rows[0], strict=True))["p_value"].text == "< 0.0001"


def test_laws_want_the_leading_parameter_of_every_ensemble():
    frame = laws.fit_variance_laws(MOMENTS, 64)
    with pytest.raises(ValueError, match=r"variance_laws.csv has 0 rows for .*'gaussian'.*'exponent'"):
        moments.laws(frame[frame["parameter"] != "exponent"], "variance_laws", ("power", "exponent"))


def test_contrast_puts_each_rule_in_its_own_column():
    frames = measures()
    table = contrast(frames, "gaussian", 64, 64)
    assert table.columns == ("measure", "scaling:none", "scaling:1/sqrt(d_k)")
    rows = rows_of(table)
    for name in SATURATION_MEASURES:
        for column, rule in enumerate(("none", "1/sqrt(d_k)"), start=1):
            row = pick(frames["softmax_saturation"], "it", measure=name, n_keys=64, scaling=rule)
            assert rows[f"measures.{name}"][column].text == numbers.with_error(row["estimate"], row["se"])
    row = pick(frames["gradient_magnitude"], "it", measure="grad_query", n_keys=64, scaling="none")
    assert rows["measures.grad_query_rms"][1].text == numbers.with_error(row["estimate"], 0.01)
    assert rows["measures.grad_query_median"][1].text == numbers.with_error(row["median"], 0.02)


def test_standard_deviation_of_the_logits_follows_the_rule_and_the_delta_method():
    row = {"d_k": 64, "variance": 64.0, "variance_se": 0.64}
    assert moments.logit_std(row, "none", 8) == pytest.approx((8.0, 0.04))
    assert moments.logit_std(row, "1/sqrt(d_k)", 8) == pytest.approx((1.0, 0.005))
    assert moments.logit_std(row, "1/d_k", 8) == pytest.approx((0.125, 0.000625))
    assert all(map(math.isnan, moments.logit_std(row | {"variance": math.nan}, "none", 8)))
    std, se = moments.logit_std(row | {"variance": 0.0, "variance_se": 0.0}, "none", 8)
    assert std == 0
    assert math.isnan(se)


@pytest.mark.parametrize(("key", "frame"), [("saturation", "softmax_saturation"), ("gradients", "gradient_magnitude")])
def test_tables_by_rule_have_a_row_for_each_number_of_keys_and_rule(key, frame):
    frames = measures()
    table = by_rule(frames[frame], key, "gaussian", 64)
    assert [(row[0].text, row[1].text) for row in table.rows] == [
        (n, rule) for n in ("16", "64") for rule in ("none", "1/sqrt(d_k)")
    ]
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert len({cell.text for row in table.rows for cell in row[2:]}) == len(table.rows) * (len(table.columns) - 2)


def test_tables_by_rule_show_theory_and_a_dash_where_a_measure_is_undefined():
    frame = measures()["softmax_saturation"]
    frame.loc[0, "theory"] = 2.5
    frame.loc[frame["measure"] == "normalised_entropy", "estimate"] = np.nan
    table = by_rule(frame, "saturation", "gaussian", 64)
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    assert (cells["max_weight"].note, cells["max_weight"].note_word) == ("2.5", "tables.theory")
    assert cells["normalised_entropy"] == NONE


def test_missing_measure_is_an_error():
    frame = measures()["softmax_saturation"]
    with pytest.raises(ValueError, match="'measure': 'effective_keys'"):
        by_rule(frame[frame["measure"] != "effective_keys"], "saturation", "gaussian", 64)


def test_real_heads_have_a_row_each_and_none_without_heads():
    frame = synthetic_results.real_heads(layers=2, heads=3)
    table = heads.real_heads(frame)
    assert [row[0].text for row in table.rows] == [
        f"{frame['model'][0]} {layer}.{head}" for layer in range(2) for head in range(3)
    ]
    cells = dict(zip(table.columns, table.rows[4], strict=True))
    assert cells["logit_std"].text == numbers.with_error(frame["logit_std"][4], frame["logit_std_se"][4])
    assert heads.real_heads(frame.head(0)).rows == ()
    assert heads.real_heads(pd.DataFrame()).rows == ()


def test_columns_of_numbers_are_known():
    table = moments.ensembles(MOMENTS, 64)
    assert table.numeric == (False, *[True] * (len(table.columns) - 1))
    assert heads.real_heads(pd.DataFrame()).numeric[0] is False


def test_specification_is_spelled_as_in_the_configuration():
    spec = {"family": "x", "a": 0.5, "b": True, "c": "<i>"}
    assert moments.specification(spec) == "family: x, a: 0.5, b: true, c: <i>"


EVERY = {name: SPECS.get(name, {"family": "gaussian"}) for name in synthetic_results.ENSEMBLES}


def members(specs=EVERY):
    return {name: ensembles.build(spec) for name, spec in specs.items()}


def test_families_show_formula_exact_measured_and_source():
    table = moments.families(MOMENTS, SPECS, members(), 64)
    rows = rows_of(table)
    assert list(rows) == list(map(ensemble_label, synthetic_results.ENSEMBLES))
    cells = dict(zip(table.columns, rows["Student t"], strict=True))
    row = pick(MOMENTS, "it", ensemble="student_t", d_k=64)
    # Its name in files stands here alone.
    assert cells["ensemble"].note == "student_t; family: student_t, df: 10"
    assert cells["formula"].formula == members()["student_t"].variance_formula
    assert (cells["exact"].text, cells["limit"].text) == ("64", "1")
    assert cells["measured"].text == numbers.with_error(row["variance"], row["variance_se"])
    assert cells["z"].text == signed(moments.z_score(row["variance"], row["variance_se"], 64.0))
    assert cells["distribution"].note == Phrase(members()["student_t"].source)
    for row in table.rows:
        assert mathml.mathml(row[2].formula)


def test_families_without_a_variance_or_a_row_at_this_width_have_dashes():
    specs = {"gaussian": {"family": "student_t", "df": 1.5}}
    given = MOMENTS[(MOMENTS["d_k"] != 64) | (MOMENTS["ensemble"] == "gaussian")].copy()
    given.loc[:, ["variance", "variance_se", "exact_variance"]] = np.nan
    table = moments.families(given, specs, members(EVERY | specs), 64)
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    assert [cells[name] for name in ("formula", "limit", "exact", "measured", "z")] == [NONE] * 5
    assert cells["distribution"].text
    absent = dict(zip(table.columns, table.rows[1], strict=True))
    assert absent["limit"].text == "1"
    assert absent["measured"] == NONE


def test_ranges_of_quartiles_are_shown_for_those_whose_variance_has_no_exponent():
    given = synthetic_results.moments(("gaussian", "student_t_3"))
    frames = {
        "variance_laws": laws.fit_variance_laws(given, 64),
        "spread_laws": laws.fit_spread_laws(given, 64),
    }
    shown = moments.refused(frames)
    assert set(shown["ensemble"]) == {"student_t_3"}
    table = moments.laws(shown, "spread_laws", ("power", "exponent"), ("power_tail", "exponent"))
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    assert cells["selected"].word == "laws.square_root"
    assert float(cells["tail"].text.split("(")[0]) == pytest.approx(0.5, abs=0.05)


def test_usual_widths_have_their_exact_and_their_measured_spread():
    given = synthetic_results.moments(("gaussian",), (16, 64, 256))
    table = moments.widths(given, "gaussian", 64)
    assert [row[0].text for row in table.rows] == ["64", "256"]
    assert [row[1].text for row in table.rows] == ["8", "16"]
    row = given[given["d_k"] == 64].iloc[0]
    measured = numbers.with_error(row["variance"] ** 0.5, row["variance_se"] / row["variance"] ** 0.5 / 2)
    assert table.rows[0][2].text == measured


def test_what_becomes_smaller_is_said_for_each_number_of_keys_and_width():
    ratios = synthetic_vanishing.by_keys()["gradient_by_keys"]
    table = rows.vanishing(ratios)
    assert table.columns == ("n_keys", "width:16", "width:64", "width:256")
    found = {row[0].text: [cell.word.removeprefix("tables.vanishing.") for cell in row[1:]] for row in table.rows}
    # The median falls as e^−√(d_k/n) from 0.9 or √n, the root mean square stays there.
    widths = (16, 64, 256)
    assert found == {"3": ["both"] * 3} | {str(n): [_falls(n, d_k) for d_k in widths] for n in (16, 64, 1024)}
    # An interval that reaches 1 is no smaller gradient.
    unsure = ratios.assign(high=ratios["high"].mask(ratios["high"].notna(), 1.5))
    assert {cell.word for row in rows.vanishing(unsure).rows for cell in row[1:]} == {
        "tables.vanishing.rms",
        "tables.vanishing.neither",
    }


def _falls(n: int, d_k: int) -> str:
    return "median" if 1.1 * n**0.5 * math.exp(-math.sqrt(d_k / n)) < 1 else "neither"


@pytest.mark.slow
def test_report_has_its_tables_in_order():
    frames = measures() | {
        "variance_laws": laws.fit_variance_laws(MOMENTS, 64),
        "mean_laws": laws.fit_mean_laws(MOMENTS),
        "spread_laws": laws.fit_spread_laws(MOMENTS, 64),
        "real_heads": synthetic_results.real_heads(layers=1),
        "audit": synthetic_results.synthetic_audit.table(),
        "normalisers": pd.DataFrame(normalisation.simulate_normalisers(1, 1000)),
        "linear_attention": pd.DataFrame(normalisation.simulate_kernels(1, n_blocks=4)),
        **synthetic_start.frames(),
        **synthetic_planted.examples(),
        "alternatives": synthetic_alternatives.table(),
        **synthetic_vanishing.by_keys(),
    }
    found = contents.result_tables(frames, EVERY, Setting("gaussian", 64, 64, "1/sqrt(d_k)", "none"))
    order = [
        "widths",
        "vanishing",
        "contrast",
        "families",
        "ensembles",
        "variance_laws",
        "mean_laws",
        "saturation",
        "gradients",
    ]
    order += ["three_numbers", "before_after", "tiny_gradients", "scale_rules", "mistakes", "normalisers"]
    order += ["linear_attention", "initialisation", "normalisation", "rounding", "real_heads"]
    order += ["audit", "audit_all"]
    assert [table.key for table in found] == order


def test_a_dump_goes_by_its_model_and_by_its_input_where_the_model_read_several():
    rows = [("one", "One"), ("two_first", "Two"), ("two_second", "Two")]
    found = heads.read_by(pd.DataFrame(rows, columns=["dump", "model"]))
    assert found == {"one": "One", "two_first": "Two (first)", "two_second": "Two (second)"}


class TestAudit:
    frame, heads = synthetic_results.synthetic_audit.table(), synthetic_results.real_heads(layers=1)

    def test_heads_with_findings_and_those_at_the_ends_are_pointed_at(self):
        told = heads.pointed_at(self.frame)
        shown = {(row["dump"], row["layer"], row["head"]): why for row, why in zip_rows(self.frame, told)}
        assert shown["minilm_l6", 0, 1] == ""
        assert [shown["sound", 0, head] for head in range(3)] == ["widest", "flattest", "sink"]
        assert all(shown["twice", 0, head] == "" for head in range(3))

    def test_all_heads_have_a_row_and_the_caption_counts_them(self):
        short, whole = heads.audit(self.frame, self.heads)
        assert len(whole.rows) == len(self.frame) == int(whole.values["count"])
        assert len(short.rows) < len(whole.rows)
        assert short.values["bugs"] == "3"
        assert short.values["notes"] == "1"
        assert "applied twice" in short.rows[-1][1].note.text

    def test_no_heads_no_tables(self):
        assert heads.audit(self.frame.head(0), self.heads) == []


def zip_rows(frame, places):
    return ((frame.iloc[place], why) for place, why in places.items())
