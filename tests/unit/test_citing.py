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
    assert fields["note"].endswith(f"SHA-256 {HASH[:12]}")
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


ADDRESS = "https://example.org/a_b/sqrtdk"


def test_the_address_of_the_repository_stands_in_each_citation_where_there_is_one():
    with_url = citing.figure_entry("exponents", "E2", "T", "1.2.3", HASH, ADDRESS)
    assert _fields(with_url)["url"] == ADDRESS
    assert _fields(citing.figure_entry("exponents", "E2", "T", "1.2.3", HASH)).keys() == _fields(with_url).keys() - {
        "url"
    }
    assert citing.repository(f"version: 1.0.0\nrepository-code: {ADDRESS}\n") == ADDRESS
    assert citing.repository("version: 1.0.0\n") == ""


def test_citations_in_plain_text_name_figure_and_version():
    whole = citing.plain("Why √d_k", "1.2.3", url=ADDRESS)
    assert whole == f"The sqrtdk developers (2026). Why √d_k. sqrtdk 1.2.3. {ADDRESS}"
    assert citing.plain("T", "1.2.3", "E2") == "The sqrtdk developers (2026). T. sqrtdk 1.2.3, figure E2."
    assert citing.in_line("1.2.3", "E2") == "(sqrtdk 1.2.3, Fig. E2)"
    assert citing.in_line("1.2.3") == "(sqrtdk 1.2.3)"
