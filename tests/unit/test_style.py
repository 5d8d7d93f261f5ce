"""One place for looks: known keys, unknown keys, and marks that everybody can tell apart."""

import dataclasses
import itertools

import pytest

from sqrtdk.figures import style
from sqrtdk.rows import softmax
from sqrtdk.variants import notation, scalings

DEFAULT = ["gaussian", "uniform", "rademacher", "laplace", "student_t", "shifted", "equicorrelated", "ar1", "aligned"]


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    dark, light = sorted([_luminance(one), _luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def test_unknown_keys_raise_and_name_the_known_ones():
    for ask in (style.scaling, style.scaling_words, style.measure):
        with pytest.raises(style.UnknownKey, match=r"no style for .* 'nonsense'; styles exist for \w+"):
            ask("nonsense")
    with pytest.raises(style.UnknownKey):
        style.scalings(["none", "nonsense"])


def test_every_scale_rule_and_measure_of_the_library_has_a_look():
    for name in scalings.names():
        assert style.scaling(name).label
        assert style.scaling_words(name)
    for name in softmax.MEASURES:
        assert style.measure(name)


def test_scale_rules_come_in_one_order():
    assert style.scalings(["1/d_k", "none", "1/d_k"]) == ["none", "1/d_k"]
    assert style.scalings(["ssmax", "1/d_k", "none"]) == ["none", "1/d_k", "ssmax"]


def test_an_ensemble_looks_the_same_whatever_else_is_in_the_run():
    everything = style.ensembles(DEFAULT)
    assert style.ensembles(["mine", "aligned", "yours"])["aligned"] == everything["aligned"]
    assert style.ensembles(["yours", "mine"])["mine"] == style.ensembles(["mine", *DEFAULT, "yours"])["mine"]
    assert len({(look.colour, look.marker) for look in everything.values()}) == len(DEFAULT)


def test_of_two_ensembles_that_choose_one_look_the_later_takes_another():
    chosen = {}
    for number in range(100):
        chosen.setdefault(style.ensembles([f"extra_{number}"])[f"extra_{number}"].marker, []).append(f"extra_{number}")
    alone = {name: style.ensembles([name])[name] for names in chosen.values() for name in names}
    first, second = next(
        (one, other)
        for one, other in itertools.combinations(alone, 2)
        if (alone[one].marker, alone[one].dash) == (alone[other].marker, alone[other].dash)
    )
    looks = style.ensembles([first, second])
    assert looks[first] == alone[first]
    assert (looks[second].marker, looks[second].dash) != (alone[first].marker, alone[first].dash)


def test_labels_are_those_of_the_configuration_and_end_where_they_were_given():
    with style.labelled({"mine": "My own"}):
        assert style.ensembles(["mine"])["mine"].label == style.ensemble_label("mine") == "My own"
        assert style.ensemble_label("gaussian") == "gaussian"
    assert style.ensemble_label("mine") == "mine"
    assert style.ensemble_label("gaussian") == "Gaussian"


@pytest.mark.parametrize("at", [0, 3, len(scalings.SCALINGS)])
def test_a_new_scale_rule_changes_the_look_of_no_other(monkeypatch, at):
    before = {name: style.scaling(name) for name in scalings.SCALINGS}
    new = dataclasses.replace(scalings.SCALINGS["8/d_k"], name="fourth_root")
    rules = list(scalings.SCALINGS.items())
    rules.insert(at, ("fourth_root", new))
    for module in (scalings, notation):
        monkeypatch.setattr(module, "SCALINGS", dict(rules))
    assert {name: style.scaling(name) for name in before} == before
    assert style.scaling("fourth_root") not in before.values()


def test_an_unknown_ensemble_is_labelled_literally_and_looks_like_no_other():
    looks = style.ensembles([*DEFAULT, "<b>$x_{", "mine"])
    assert looks["<b>$x_{"].label == "<b>$x_{"
    assert len({(look.colour, look.marker, look.dash) for look in looks.values()}) == len(looks)
    assert list(looks) == [*DEFAULT, "<b>$x_{", "mine"]


def test_colour_is_never_the_only_sign():
    looks = list(style.ensembles([*DEFAULT, *(f"extra_{i}" for i in range(40))]).values())
    for one, other in itertools.combinations(looks[: len(DEFAULT)], 2):
        assert one.marker != other.marker
    assert len({(look.colour, look.marker, look.dash) for look in looks}) == len(looks)
    # Whichever of the built-in ones and thirty others meet in a legend: printed grey they still differ.
    grey = style.ensembles([*style._ENSEMBLES, *(f"extra_{i}" for i in range(30))])
    assert len({(look.marker, look.dash) for look in grey.values()}) == len(grey) > 70
    rules = [style.scaling(name) for name in scalings.names()]
    for one, other in itertools.combinations(rules[:3], 2):
        assert one.colour != other.colour
        assert one.marker != other.marker
        assert one.dash != other.dash
    assert len({(rule.colour, rule.marker, rule.dash) for rule in rules}) == len(rules)


def test_every_colour_can_be_seen_on_a_white_and_on_a_dark_page():
    colours = {look.colour for look in style.ensembles([f"extra_{i}" for i in range(40)]).values()}
    colours |= {style.scaling(name).colour for name in scalings.names()}
    colours |= {look.colour for look in style.sequence(list(range(9))).values()}
    for colour in colours:
        assert _contrast(colour, "#ffffff") >= 3, colour
        assert _contrast(colour, "#161616") >= 3, colour
    assert _contrast("#ffffff", "#eeeeee") < 3  # the measure itself can fail


def test_an_ordered_series_has_ordered_and_different_looks():
    looks = style.sequence([16, 64, 256, 1024])
    assert list(looks) == [16, 64, 256, 1024]
    assert len({look.colour for look in looks.values()}) == 4
    assert len({look.marker for look in looks.values()}) == 4
    assert style.sequence([64])[64].label == "64"
    assert style.sequence([]) == {}
