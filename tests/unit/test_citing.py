"""The BibTeX entry of a figure."""

import re

import pytest
from figure_cases import title
from tex_cases import balanced

from sqrtdk.figures import catalogue
from sqrtdk.report import citing

HASH = "ab" * 32


def _fields(entry: str) -> dict[str, str]:
    return dict(re.findall(r"^  (\w+) *= \{(.*)\},?$", entry, re.MULTILINE))


@pytest.mark.parametrize("name", catalogue.names())
def test_every_figure_has_an_entry_with_its_data_and_version(name):
    number = catalogue.places()[name].number
    entry = citing.figure_entry(name, number, title(name), "1.2.3", HASH)
    assert entry.startswith(f"@misc{{sqrtdk-{name},\n")
    assert entry.endswith("\n}\n")
    assert balanced(entry)
    fields = _fields(entry)
    assert list(fields) == ["title", "author", "year", "howpublished", "note"]
    assert f"sqrtdk 1.2.3, figure {number} ({name})" == fields["howpublished"]
    assert HASH in fields["note"]
    assert "CC BY 4.0" in fields["note"]
    assert entry.isascii()


def test_plain_text_becomes_tex():
    assert citing.tex("q·k against √d_k and d_k") == r"$q \cdot k$ against $\sqrt{d_k}$ and $d_k$"
    assert citing.tex("50 % of a_b & {c} #1 \\") == r"50 \% of a\_b \& \{c\} \#1 \textbackslash{}"
    assert balanced(citing.tex("}{ \\ $x_{"))


def test_other_data_other_entry_and_the_same_data_the_same_entry():
    one = citing.figure_entry("exponents", "E2", "T", "1.2.3", HASH)
    assert one == citing.figure_entry("exponents", "E2", "T", "1.2.3", HASH)
    assert one != citing.figure_entry("exponents", "E2", "T", "1.2.3", "cd" * 32)
