"""The key numbers: each is what its source holds, has a name that TeX can have, and no two share one."""

import functools
import math
import re
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

sys.path.append(str(Path(__file__).parents[1] / "report"))
import example

from sqrtdk.report import key_numbers
from sqrtdk.report.facts import Facts, KeyNumber, named
from sqrtdk.report.latex import numbers as latex_numbers
from sqrtdk.report.macro_names import letters
from sqrtdk.report.setting import choose
from sqrtdk.words import texts
from sqrtdk.words.sentences import Quantity, Sentence

SAY = {language: texts.Words(texts.read(example.ROOT / "report", language)) for language in ("en", "zh")}
VERDICTS = ["holds"] * 3 + ["fails"] + ["holds_if"] * 2


FRAMES = functools.partial(example.frames, d_k=(1, 64, 256))


def numbers_of(frames=None, specs=example.SPECS) -> dict[str, KeyNumber]:
    frames = frames or FRAMES() | {"claims": pd.DataFrame({"verdict": VERDICTS, "claim": list("abcdef")})}
    at = choose(frames["moments"], frames["softmax_saturation"], specs)
    return {number.name: number for number in key_numbers.of_run(frames, at, frames["start_rate"])}


def rows_of(frames: dict, number: KeyNumber) -> pd.DataFrame:
    frame = frames[Path(number.source).stem]
    for column, value in number.row.items():
        frame = frame[frame[column] == value]
    return frame


@pytest.mark.slow
def test_every_number_that_is_a_cell_is_that_cell():
    frames, cells = FRAMES(), 0
    for number in numbers_of().values():
        if number.calculation or number.unit == "count":
            continue
        row = rows_of(frames, number)
        assert len(row) == 1, number
        errors = [number.se] * (len(number.columns) in (2, 4)) + [number.low, number.high] * (len(number.columns) > 2)
        values = row[list(number.columns)].iloc[0].to_list()
        for found, expected in zip([number.value, *errors], values, strict=True):
            assert found == expected or (found is None and math.isnan(expected)), number
        cells += 1
    assert cells > 50


def test_calculated_numbers_follow_from_their_rows():
    frames, found = FRAMES(), numbers_of()
    for name, kind in (("LogitsGradientRmsRatio", "estimate"), ("QueryGradientMedianRatio", "median")):
        rows = rows_of(frames, found[name]).set_index("scaling")[list(found[name].columns)]
        plain, scaled = rows.loc["none"], rows.loc["1/sqrt(d_k)"]
        value, relative = plain.iloc[0] / scaled.iloc[0], [row.iloc[1] / row.iloc[0] for row in (plain, scaled)]
        assert found[name].columns[0] == kind
        assert found[name].value == pytest.approx(value)
        assert found[name].se == pytest.approx(value * math.hypot(*relative))
    variance = found["GaussianVariance"]
    assert found["LogitStdUnscaled"].value == pytest.approx(math.sqrt(variance.value))
    assert found["LogitStdOneOverSqrtDK"].value == pytest.approx(math.sqrt(variance.value) / 8)
    heads = frames["real_heads"]["logit_std"]
    assert found["MinilmLSixMedianLogitStd"].value == heads.median()
    assert found["MinilmLSixHeadsNearOne"].value == ((heads - 1).abs() <= 0.1).sum()
    exponents = frames["variance_laws"].query("law == 'power' and parameter == 'exponent' and estimable")
    inside = (exponents["ci_low"] <= 1) & (exponents["ci_high"] >= 1)
    assert (found["ExponentsWithOne"].value, found["ExponentsEstimable"].value) == (inside.sum(), len(inside))


def test_claims_are_counted_by_verdict_where_there_is_a_ledger():
    found = numbers_of()
    assert {name: found[name].value for name in found if name.startswith("Claims")} == {
        "Claims": 6,
        "ClaimsHolds": 3,
        "ClaimsFails": 1,
        "ClaimsHoldsIf": 2,
    }
    without = {name: frame for name, frame in FRAMES().items() if name != "claims"}
    assert not any(name.startswith("Claims") for name in numbers_of(without))


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"d_k": (4,)},
        {"n_keys": (1,)},
        {"scalings": ("none",)},
        {"scalings": ("1/sqrt(d_k)",)},
        {"names": ("student_t_3", "rademacher")},
        {"heads": 0},
    ],
    ids=str,
)
def test_every_kind_of_run_has_its_numbers(change):
    found = numbers_of(example.frames(**{"d_k": (4, 64), "n_keys": (16,)} | change), example.SPECS | example.HEAVY)
    for number in found.values():
        assert math.isfinite(number.value), number
        assert number.se is None or number.se >= 0
        for say in SAY.values():
            assert say.plain(number.description.key, **number.description.values)
    defined = latex_numbers.macros(list(found.values()), SAY["en"], "", {})
    quoted = re.findall(r"\\sqrtdk([A-Z][A-Za-z]*)", latex_numbers.readme(["tab-contrast"], list(found.values())))
    assert len(set(quoted)) > 1
    assert all(f"{{{name}}}" in defined for name in quoted if name != "List")


def test_names_are_systematic_and_every_description_of_a_run_is_different():
    found = numbers_of()
    assert {"GaussianExponent", "EquicorrelatedVariance", "MaxWeightUnscaled", "RecallUnscaledSixFourLoss"} <= set(
        found
    )
    assert all(re.fullmatch("[A-Z][A-Za-z]*", name) for name in found)
    assert 100 <= len(found) <= 250
    for say in SAY.values():
        said = [say.plain(one.description.key, **one.description.values) for one in found.values()]
        assert len(set(said)) == len(said)


def test_numbers_are_rounded_by_their_errors():
    one = KeyNumber("A", 1.23456, Sentence("x"), "s")
    assert replace(one, se=0.012).spelled == "1.235(12)"
    assert replace(one, low=1.0, high=1.5).spelled == "1.23"
    # An interval that is open at an end promises no digits.
    assert replace(one, low=-math.inf, high=1.5).spelled == "1.2"
    assert replace(one, low=1.0, high=math.inf).spelled == "1.2"
    assert replace(one, value=20170612, unit="count").spelled == "20170612"
    assert replace(one, value=0.003).spelled == "0.003"


@pytest.mark.parametrize(
    ("change", "reading"),
    [
        ({"value": 1.686, "se": 0.008}, "1.7"),
        ({"value": 8.0003, "se": 0.0004, "truth": 8.0}, "8"),
        ({"value": 8.0003, "se": 0.0004}, "8.0"),
        ({"value": 0.5962, "unit": "share"}, "60 %"),
        ({"value": 0.99902, "unit": "share"}, "99.9 %"),
        ({"value": 1.0, "unit": "share"}, "100 %"),
        ({"value": 20170612, "unit": "count"}, "2.0 × 10⁷"),
    ],
)
def test_numbers_are_rounded_for_reading(change, reading):
    assert replace(KeyNumber("A", 1.0, Sentence("x"), "s"), **change).reading == reading


def test_what_is_no_number_is_left_out():
    found = [KeyNumber("A", value, Sentence("x"), "s", {"row": value}) for value in (1.0, math.nan)]
    assert named(found) == found[:1]


@pytest.mark.parametrize(
    ("change", "full"),
    [({"low": 2.9, "high": 7.6}, "4.7 [2.9, 7.6]"), ({"se": 0.2, "low": 4.3, "high": 5.1}, "4.7(2)"), ({}, "4.7")],
)
def test_an_interval_stands_beside_a_number_that_has_no_other_error(change, full):
    one = replace(KeyNumber("A", 4.7, Sentence("x"), "s"), **change)
    assert Facts([one]).quote({"word": "A"})["word"].full == one.full == full


def test_a_key_has_one_value_wherever_it_is_quoted():
    facts = Facts([KeyNumber("A", 1.23, Sentence("x"), "s", se=0.01), KeyNumber("B", 2.0, Sentence("x"), "s")])
    assert facts.quote({"word": "A"}) == facts.quote({"word": "A"}) == {"word": Quantity("1.2", "A", "1.23(1)")}
    assert list(facts.quoted) == ["A"]
    with pytest.raises(KeyError):
        facts.quote({"word": "C"})


def test_numbers_of_one_sentence_are_told_apart_where_they_differ():
    near = [KeyNumber(name, value, Sentence("x"), "s") for name, value in (("A", 1.231), ("B", 1.234), ("C", 1.231))]
    told = Facts(near).quote({"one": "A", "other": "B"})
    assert [one.text for one in told.values()] == ["1.231", "1.234"]
    assert [one.text for one in Facts(near).quote({"one": "A", "other": "C"}).values()] == ["1.2", "1.2"]
    # A count stays a count, whatever stands beside it.
    count = KeyNumber("D", 1, Sentence("x"), "s", unit="count")
    assert Facts([*near, count]).quote({"one": "A", "count": "D"})["count"].text == "1"


def test_no_two_numbers_say_the_same_of_one_row():
    """Two studies of one quantity meet in the calibration alone: a text can quote only one of them."""
    found = numbers_of()
    places = [(one.source, str(sorted(one.row.items())), one.columns, one.calculation) for one in found.values()]
    twice = {place for place in places if places.count(place) > 1 and place[2]}
    # What is calculated from one row may be several things: the logits with each factor.
    assert {place for place in twice if "factor of" not in place[3]} == set()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("student_t_3", "StudentTThree"),
        ("ar1", "ArOne"),
        ("1/sqrt(d_k)", "OneOverSqrtDK"),
        ("none", "Unscaled"),
        ("minilm_l6", "MinilmLSix"),
    ],
)
def test_names_of_letters(text, name):
    assert letters(text) == name


@pytest.mark.parametrize("text", ["\\input{x}", "%", "a__b", "a_", "Ä", "漢字", "x y", "-", "A", "$\\undefined$"])
def test_hostile_names_give_letters_that_are_theirs_alone(text):
    assert re.fullmatch("[A-Z][A-Za-z]*", letters(text))
    others = ["a_b", "a", "x", "input_x", "ae", "漢", "undefined", "x_y", ""]
    assert letters(text) not in {letters(other) for other in others}


def test_two_names_that_would_be_one_are_told_apart_and_both_say_so():
    numbers = [
        KeyNumber(f"{letters(name)}Variance", 1.0, Sentence("x"), "moments.csv", {"ensemble": name})
        for name in ("t_3", "t3", "t_three", "u")
    ]
    found = named(numbers)
    names = [number.name for number in found]
    assert len(set(names)) == 4
    assert names[3] == "UVariance"
    assert all(re.fullmatch("TThreeVariance[A-Z][a-z]{4}", name) for name in names[:3])
    assert named(numbers[::-1])[::-1] == found
    with pytest.raises(ValueError, match="no name of its own"):
        named([numbers[0], numbers[0]])


def test_a_macro_that_would_hide_another_is_refused():
    one = KeyNumber("A", 1.0, Sentence("numbers.cells"), "s", low=0.5, high=2.0)
    with pytest.raises(ValueError, match="share a name"):
        latex_numbers.macros([one, replace(one, name="ACI", low=None)], SAY["en"], "", {})
    with pytest.raises(ValueError, match="share a name"):
        latex_numbers.macros([replace(one, name="List")], SAY["en"], "", {})


def test_infinite_ends_of_an_interval_are_open_in_tex_and_null_in_json():
    one = KeyNumber("A", 1.0, Sentence("numbers.cells"), "s", low=0.5, high=math.inf)
    assert r"\sqrtdk@interval{[0.5000, \infty )}" in latex_numbers.macros([one], SAY["en"], "", {})
    assert latex_numbers.record([one], SAY["en"])["A"]["interval"] == [0.5, None]
