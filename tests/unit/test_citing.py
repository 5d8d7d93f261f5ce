"""Citations of figures, numbers and claims, and the command that says them."""

import json
import re

import pytest
from figure_cases import title
from tex_cases import balanced

from sqrtdk.__main__ import main
from sqrtdk.figures import catalogue
from sqrtdk.report import cite, citing

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
    assert citing.plain("T", "1.2.3", "figure E2") == "The sqrtdk developers (2026). T. sqrtdk 1.2.3, figure E2."
    assert citing.in_line("1.2.3", "figure E2") == "(sqrtdk 1.2.3, Fig. E2)"
    assert citing.in_line("1.2.3") == "(sqrtdk 1.2.3)"


# ---- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[ADDRESS, ""], ids=["address", "no-address"])
def results(request, tmp_path_factory):
    """What the command reads of a finished run of two figures, two numbers and a claim; and the address in it."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "figures").mkdir()
    titles = {"hero": ("1", "Title √d_k"), "variance-law": ("2", "Variance")}
    for name, (number, words) in titles.items():
        entry = citing.figure_entry(name, number, words, "1.2.3", HASH, request.param)
        (folder / f"figures/fig-{name}.bib").write_text(entry, encoding="utf-8")
        (folder / f"figures/fig-{name}.tex").write_text(f"\\begin{{figure}} {name}", encoding="utf-8")
    figures = {name: {"number": number, "title": words} for name, (number, words) in titles.items()}
    manifest = {"version": "1.2.3", "configuration_sha256": HASH, "figures": figures}
    (folder / "figures/manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    names = ("GaussianExponent", "Keys")
    numbers = {name: {"macro": f"\\sqrtdk{name}", "text": "0.99(2)", "description": f"The {name}"} for name in names}
    (folder / "numbers.json").write_text(json.dumps({"numbers": numbers}), encoding="utf-8")
    (folder / "claims.csv").write_text('claim,statement,verdict\nC1,"It grows, always.",holds_if\n', encoding="utf-8")
    return folder, request.param


def test_a_figure_is_cited_as_its_files_say(results):
    found = cite.cite("hero", results[0])
    assert found.bibtex == (results[0] / "figures/fig-hero.bib").read_text(encoding="utf-8")
    assert found.latex == "\\begin{figure} hero"
    assert found.text == citing.plain("Title √d_k", "1.2.3", "figure 1", results[1])
    assert found.short == "(sqrtdk 1.2.3, Fig. 1)"


@pytest.mark.parametrize(
    ("name", "place", "said"),
    [
        ("GaussianExponent", "number GaussianExponent", "The GaussianExponent: 0.99(2)"),
        ("C1", "claim C1", "It grows, always: holds if"),
    ],
)
def test_a_number_and_a_claim_have_entries_of_their_own(results, name, place, said):
    found = cite.cite(name, results[0])
    fields = _fields(found.bibtex)
    assert found.bibtex.startswith(f"@misc{{sqrtdk-{name},")
    assert (fields["title"], fields["howpublished"]) == (f"{{{said}}}", f"sqrtdk 1.2.3, {place}")
    assert fields.get("url", "") == results[1]
    assert HASH[:12] in fields["note"]
    assert f"\\cite{{sqrtdk-{name}}}" in found.latex
    assert found.text == citing.plain(said, "1.2.3", place, results[1])
    assert found.short == f"(sqrtdk 1.2.3, {place})"


def test_a_number_is_quoted_by_its_macro(results):
    assert "\\sqrtdkKeys~\\cite" in cite.cite("Keys", results[0]).latex


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        *(("2", "variance-law"), ("fig-variance-law", "variance-law"), ("Figure 2", "variance-law")),
        *(("Fig. 1", "hero"), ("#fig-hero", "hero"), ("sqrtdk-hero", "hero"), ("c1", "C1"), ("claim-C1", "C1")),
        *(("\\sqrtdkKeys", "Keys"), ("keys", "Keys"), ("\\sqrtdkGaussianExponentCI", "GaussianExponent")),
    ],
)
def test_what_people_call_a_thing_is_understood(results, asked, meant):
    assert cite.cite(asked, results[0]) == cite.cite(meant, results[0])


@pytest.mark.parametrize(("asked", "meant"), [("variance-lw", "variance-law"), ("GausianExponent", "GaussianExponent")])
def test_a_mistake_gets_the_nearest_name(results, asked, meant, capsys):
    assert main(["cite", asked, "--results", str(results[0])]) == 2
    said = capsys.readouterr()
    assert said.err == f"sqrtdk cite: no figure, number or claim is called '{asked}'; the nearest is {meant}\n"
    assert said.out == ""


def test_a_folder_without_a_finished_run_is_said(tmp_path, capsys):
    assert main(["cite", "hero", "--results", str(tmp_path)]) == 2
    assert f"no finished run: there is no {tmp_path}/figures/manifest.json" in capsys.readouterr().err


def test_the_command_prints_all_four(results, capsys):
    assert main(["cite", "hero", "--results", str(results[0])]) == 0
    said = capsys.readouterr().out
    for part in cite.cite("hero", results[0]):
        assert part.strip() in said
