"""Initialisation, depth and rounding in words and tables: chosen by the numbers, and against us where they are."""

import re
from pathlib import Path

import pytest
import synthetic_start as synthetic
from figure_cases import describe

from sqrtdk.report.tables import start
from sqrtdk.words import numbers
from sqrtdk.words import texts as words

FRAMES = synthetic.frames()


def reading(name: str, **changed) -> str:
    return describe(name, FRAMES | changed).reading


def test_initialisations_are_read_from_the_numbers():
    text = reading("initialisation")
    assert "Of 13 initialisations, 4 start within 10 % of 1 (LeCun, " in text
    assert re.search(r"smallest is 0\.30\d+\(\d+\) \(N\(0, 0\.02²\) at D = 768\)", text)
    assert "L2 with g = 10 (1.2" in text
    table = synthetic.initialisation()
    table["estimate"] = table["exact"] = 1.0
    same = reading("initialisation", initialisation=table)
    assert "13 start within 10 % of 1" in same
    assert "all 7 kinds of inputs start within 10 % of 1" in same
    assert "depends on" not in same


def test_a_biased_measurement_is_called_wrong():
    table = synthetic.initialisation()
    table["estimate"] *= 1.05
    assert "too few for 95 %" in reading("initialisation", initialisation=table)


def test_growth_in_spite_of_a_normalisation_is_said():
    assert "With a normalisation the spread of the logits never rises" in reading("depth")
    table = synthetic.depth()
    grown = (table["norm"] == "pre_rmsnorm") & (table["scaling"] == "none") & (table["layer"] == 6)
    table.loc[grown & (table["measure"] == "logit_std"), "estimate"] = 40.0
    text = reading("depth", depth=table)
    assert re.search(
        r"In spite of a normalisation the spread grows with depth for pre-RMSNorm without a scale \(5", text
    )
    assert "never rises" not in text


def test_depth_says_what_happens_without_a_normalisation():
    assert re.search(r"but with residuals: without a scale it rises from 8\.\d+\(\d+\) to 2\d\d", reading("depth"))
    table = synthetic.depth()
    table.loc[(table["norm"] == "none") & (table["measure"] == "logit_std"), ["estimate", "se"]] = 3.0, 0.01
    assert "without a scale it stays at 3.00(1)" in reading("depth", depth=table)
    table["estimate"] *= 1.2
    assert "too few for 95 %" in reading("depth", depth=table)


def test_errors_of_rounding_are_compared_by_the_numbers():
    text = reading("rounding")
    assert "At d_k = 64, where the logits are 8 times larger without the scale" in text
    assert (
        re.search(r"larger without the scale, [78]\.\d to 8\.\d times", text) or "larger without the scale, 8" in text
    )
    table = synthetic.rounding()
    table["scaling"] = table["scaling"].replace({"none": "1/sqrt(d_k)", "1/sqrt(d_k)": "none"})
    assert "is smaller without the scale: " in reading("rounding", rounding=table)
    table.loc[table["measure"] == "overflow_share", ["estimate", "exact", "se"]] = 0.0
    calm = reading("rounding", rounding=table)
    assert "overflow: without a scale none; with 1/√d_k none." in calm


def texts(table, column: str) -> dict[str, str]:
    place = table.columns.index(column)
    return {row[0].text or row[1].text: row[place].text for row in table.rows}


def test_table_of_initialisations_holds_measured_and_exact_values():
    table = start.initialisation(FRAMES["initialisation"])
    assert len(table.rows) == 13
    row = next(row for row in table.rows if row[0].text.text == "PyTorch linear layer")
    frame = FRAMES["initialisation"].query("scheme == 'linear_default' and quantity == 'logit_variance'").iloc[0]
    assert (row[-1].text, row[-1].note) == (numbers.with_error(frame["estimate"], frame["se"]), "0.1111")
    assert row[1].formula == r"\frac{1}{3 D}"
    widths = [row[2].text for row in table.rows if row[0].text.text.startswith("N(0")]
    assert widths == ["768", "1600", "4096", "12288"]


def test_table_of_normalisations_has_a_column_for_each_width():
    table = start.normalisation(FRAMES["initialisation"])
    assert table.columns == ("group", "scheme", "d_k_64", "d_k_128")
    notes = {row[1].text.text: (row[2].note, row[3].note) for row in table.rows}
    assert notes["L2 / √dₖ"] == ("0.01562", "0.007812")
    assert notes["variance 4"] == ("4", "")
    assert notes["RMSNorm (no scale)"] == ("8", "11.31")


def test_table_of_rounding_is_at_one_width():
    table = start.rounding(FRAMES["rounding"])
    assert table.values == {"d_k": "64", "n_keys": "64"}
    assert texts(table, "digits") == dict(
        zip(
            ("float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"), ("24", "8", "11", "4", "3"), strict=True
        )
    )
    float16 = FRAMES["rounding"].query("format == 'float16' and d_k == 64 and scaling == 'none'")
    error = float16.query("rounded == 'logits' and measure == 'total_variation'").iloc[0]
    assert texts(table, "error_unscaled")["float16"] == numbers.with_error(error["estimate"], error["se"])
    assert start.rounding(synthetic.rounding(d_k=(4, 16))).values["d_k"] == "16"


@pytest.mark.parametrize("name", ["initialisation", "normalisation", "rounding"])
def test_every_column_has_its_heading(name):
    heading = words.read(Path(__file__).parents[2] / "report", "en")["tables"][name]
    frame = FRAMES["rounding" if name == "rounding" else "initialisation"]
    table = getattr(start, name)(frame)
    assert set(table.columns) == set(heading["columns"])
    assert all(len(row) == len(table.columns) for row in table.rows)
