"""The catalogue of phrases: exact ones, patterns, phrases within phrases, and None for what it does not hold."""

import pytest

from sqrtdk.words.phrases import Phrases
from sqrtdk.words.sentences import Phrase

CATALOGUE = {
    "heavy tails": "T",
    "zero variance": "Z",
    "left out d_k = {widths}: {phrase}": "<{widths}>{phrase}",
    "at least {needed} d_k, usable: {usable}": "{usable}/{needed}",
    "{phrase}; {phrase_2}": "{phrase} + {phrase_2}",
    "{phrase} ({phrase_2})": "{phrase}[{phrase_2}]",
    "{phrase} / {phrase_2}": "{phrase}|{phrase_2}",
    "d / h": "D",
    "muP (1/d)": "M",
}


@pytest.mark.parametrize(
    ("english", "other"),
    [
        ("heavy tails", "T"),
        ("left out d_k = 1, 2, 64: zero variance", "<1, 2, 64>Z"),
        ("at least 3 d_k, usable: 1", "1/3"),
        ("heavy tails; left out d_k = 1: zero variance; heavy tails", "T + <1>Z + T"),
        # Where one phrase ends depends on the next.
        ("d / h", "D"),
        ("d / h / heavy tails", "D|T"),
        ("heavy tails / d / h", "T|D"),
        ("heavy tails / d / h / muP (1/d)", "T|D|M"),
        ("heavy tails (muP (1/d) / d / h)", "T[M|D]"),
        ("", ""),
    ],
)
def test_phrases_are_put_into_the_other_language(english, other):
    assert Phrases(CATALOGUE)(english) == other


@pytest.mark.parametrize(
    "english",
    [
        "heavy",
        "heavy tails!",
        "heavy tails; something else",
        "left out d_k = 1: something else",
        "left out d_k = one and two: zero variance",
        "at least 3 of the d_k, usable: 1",
    ],
)
def test_what_the_catalogue_does_not_hold_has_no_counterpart(english):
    assert Phrases(CATALOGUE)(english) is None


def test_a_long_phrase_with_one_unknown_part_is_refused_without_trying_every_division():
    phrases = Phrases(CATALOGUE)
    assert phrases(" / ".join(["d / h", "heavy tails"] * 20 + ["something else"])) is None
    assert len(phrases._found) < 5000


def test_an_empty_catalogue_leaves_phrases_as_they_are():
    assert Phrases({})("anything at all") == "anything at all"


def test_phrases_that_were_used_are_known():
    phrases = Phrases(CATALOGUE)
    phrases("left out d_k = 1: zero variance")
    phrases("left out d_k = 1: something else")
    assert phrases.used == {"left out d_k = {widths}: {phrase}", "zero variance"}


def test_an_empty_phrase_is_false():
    assert Phrase("a")
    assert not Phrase("")
