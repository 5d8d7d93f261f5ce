"""Numbers in words."""

import math

import pytest

from sqrtdk.words import numbers


@pytest.mark.parametrize(
    ("value", "se", "text"),
    [
        (0.9999, 0.0001, "0.9999(1)"),
        (0.9999, 0.00014, "0.99990(14)"),
        (4096.3, 4.2, "4096(4)"),
        (16777216.0, 18000.0, "1.6777(18) × 10⁷"),
        (1.2345e-7, 3e-10, "1.235(3) × 10⁻⁷"),
        (-0.23, 0.01, "−0.23(1)"),
        (12.34, 1.4, "12.3(1.4)"),
        (0.0012, 0.003, "0.001(3)"),
        (0.0, 0.002, "0.000(2)"),
        (99.96, 0.3, "100.0(3)"),
        (3e-6, 2e-5, "0(2) × 10⁻⁵"),
        (0.099949, 0.00096, "0.0999(10)"),
        (0.99999999999751, 1.5e-13, "1.00000000"),
        (12345678.0, 2.0, "1.2345678(2) × 10⁷"),
    ],
)
def test_a_value_is_rounded_by_its_own_error(value, se, text):
    assert numbers.with_error(value, se) == text


def test_what_rounds_to_zero_has_no_sign():
    assert numbers.with_error(-0.0001, 0.004) == "0.000(4)"
    assert numbers.with_error(-1e-7, 6e-6) == "0(6) × 10⁻⁶"
    assert numbers.plus_minus(-0.0001, 0.004) == "0.000 ± 0.004"


def test_plus_minus_rounds_as_brackets_do():
    assert numbers.plus_minus(0.9999, 0.00014) == "0.99990 ± 0.00014"
    assert numbers.plus_minus(16777216.0, 18000.0) == "(1.6777 ± 0.0018) × 10⁷"


@pytest.mark.parametrize("se", [math.nan, None, 0.0, math.inf])
def test_an_unusable_error_leaves_four_digits(se):
    assert numbers.with_error(1.23456, se) == "1.235"
    assert numbers.with_error(64.0, se) == "64"


@pytest.mark.parametrize("se", [0.001, math.nan])
def test_a_missing_value_is_not_available(se):
    assert numbers.with_error(math.nan, se) == "n/a"


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (4096, 2, "4096"),
        (0.0123456, 3, "0.0123"),
        (343.2, 2, "340"),
        (23312.4, 2, "2.3 × 10⁴"),
        (1.23456e8, 3, "1.23 × 10⁸"),
        (-1.5e-9, 2, "−1.5 × 10⁻⁹"),
        (9.9996, 3, "10.0"),
        (0, 3, "0"),
        (math.inf, 3, "∞"),
    ],
)
def test_significant_digits(value, digits, text):
    assert numbers.significant(value, digits) == text


def test_rounding_is_never_off_by_more_than_half_of_the_last_digit():
    for value in (0.123456789, 7.5, 99.9951, 1e-5 / 3, 12345.678):
        for se in (0.5, 0.0123, 3e-4, 1e-5, 0.0995):
            text = numbers.plus_minus(value, se).replace("−", "-")
            scale = 1.0
            if "×" in text:
                text, power = text.split(" × 10")
                scale = 10.0 ** int(power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")))
            shown, error = (float(part) * scale for part in text.strip("()").split(" ± "))
            assert abs(shown - value) <= 0.51 * error
            assert 0.66 <= error / se <= 1.5


def test_intervals_are_spelled_to_two_digits_of_their_width():
    assert numbers.interval(0.9991, 1.0003) == "[0.9991, 1.0003]"
    assert numbers.interval(-0.1, 0.2) == "[−0.10, 0.20]"
    assert numbers.interval(900, 1100) == "[900, 1100]"
    assert numbers.interval(1.2e9, 1.3e9) == "[1.20 × 10⁹, 1.30 × 10⁹]"
    assert numbers.interval(1.0, 1.0) == "[1, 1]"
    assert numbers.interval(0.5, math.inf) == "[0.5000, ∞)"
    assert numbers.rough_interval(-math.inf, 0.1234) == "(−∞, 0.12]"


def test_counts():
    assert numbers.count(9999) == "9999"
    assert numbers.count(123456) == "123\u202f456"
    assert numbers.count(2.34e9) == "2.3 × 10⁹"
    assert numbers.counted(1, "cell") == "1 cell"
    assert numbers.counted(2, "cell") == "2 cells"
    assert numbers.percent(0.95726) == "95.7 %"
