"""Scale rules: their factors, their names and what figures and formulas show of them."""

import dataclasses
import math
from xml.etree import ElementTree

import pytest

from sqrtdk.scalings import SCALINGS, Scaling, names


def test_the_names_are_those_of_the_configuration_in_order():
    assert names() == ["none", "1/sqrt(d_k)", "1/d_k"]
    assert names() == list(SCALINGS) == [rule.name for rule in SCALINGS.values()]


@pytest.mark.parametrize("name", names())
def test_one_component_needs_no_scale(name):
    assert SCALINGS[name].factor(1, 16) == 1.0


@pytest.mark.parametrize(
    ("name", "d_k", "expected"),
    [("none", 64, 1.0), ("1/sqrt(d_k)", 64, 0.125), ("1/d_k", 64, 1 / 64), ("1/sqrt(d_k)", 2, math.sqrt(0.5))],
)
def test_factors(name, d_k, expected):
    assert SCALINGS[name].factor(d_k, 16) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("name", names())
def test_factors_are_positive_floats_over_the_whole_range(name):
    for d_k in (1, 3, 64, 65536):
        for n_keys in (1, 2, 2**20):
            factor = SCALINGS[name].factor(d_k, n_keys)
            assert isinstance(factor, float)
            assert 0 < factor <= 1


@pytest.mark.parametrize("rule", SCALINGS.values(), ids=names())
def test_a_rule_says_what_a_reader_needs(rule):
    assert isinstance(rule, Scaling)
    assert rule.label
    assert rule.source
    ElementTree.fromstring(f"<math>{rule.formula}</math>")
    assert len({other.label for other in SCALINGS.values()}) == len(SCALINGS)


def test_a_rule_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SCALINGS["none"].name = "other"
