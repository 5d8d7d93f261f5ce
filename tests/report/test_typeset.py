"""What a text takes up, typeset by LaTeX: macros with siunitx and without, every table, a figure with its citation."""

import json
import re

import example
import jsonschema
import pytest
from example import ROOT
from typeset import document, typeset

import publish_figures
from sqrtdk.figures import style
from sqrtdk.figures.catalogue import load
from sqrtdk.report import contents, rendering
from sqrtdk.report.latex import ledger as claims_in_tex
from sqrtdk.report.latex import tables as latex_tables
from sqrtdk.report.latex import text as latex
from sqrtdk.report.tables.cells import Cell, Table
from sqrtdk.results import reading
from sqrtdk.words import texts

HOSTILE = "a&%$#_{}~^\\b\"'`<>|"
LANGUAGES = sorted(folder.name for folder in (ROOT / "report/words").iterdir() if (folder / "tables.yaml").exists())
CHINESE = (r"\usepackage{CJKutf8}", r"\begin{CJK*}{UTF8}{gbsn}" + "\n", "\n" + r"\end{CJK*}")
AROUND = {"zh": CHINESE}
FIGURE = "variance-law"


@pytest.fixture(scope="module", params=LANGUAGES)
def written(request, tmp_path_factory):
    """Write everything in a language from the example's results, and return the language and the folder."""
    return request.param, example.write_latex(tmp_path_factory.mktemp(request.param), language=request.param)


def test_each_table_of_the_page_is_there_with_all_its_cells(written):
    language, out = written
    settings = example.configuration()
    cited = rendering.read_references((ROOT / "report/references.bib").read_text(encoding="utf-8"))
    say = latex.TexWords(texts.read(ROOT / "report", language), cited, contents.constants(settings))
    frames = example.frames()
    longer = reading.tables(sorted((out.parent / "longer").glob("*.csv")))
    with style.labelled({}, say.phrase):
        found = contents.report_tables(frames, longer, settings, language, contents.facts(frames, longer, settings))
    found["claims"] = claims_in_tex.table(found["claims"], frames["claims"], language)
    assert {path.stem for path in (out / "latex").glob("tab-*.tex")} == set(map(latex_tables.label, found))
    listed = re.findall(r"^- `(tab-[\w-]+)\.tex`$", (out / "latex/README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert listed == list(map(latex_tables.label, found))
    for key, table in found.items():
        text = (out / f"latex/{latex_tables.label(key)}.tex").read_text(encoding="utf-8").replace(r"\allowbreak{}", "")
        body = re.split(r"\\midrule\n", text)[-1].removeprefix("\\endhead\n\\bottomrule\n\\endfoot\n")
        rows = [line for line in body.splitlines() if line.endswith(r" \\")]
        assert len(rows) == len(table.rows), key
        for line, row in zip(rows, table.rows, strict=True):
            cells = re.split(r"(?<!\\) & ", line.removesuffix(r" \\"))
            assert len(cells) == len(row), key
            for cell, meant in zip(cells, row, strict=True):
                assert cell.startswith(latex_tables.cell_text(meant, say)), key
                assert latex_tables.cell_note(meant, say) in cell
        # Names of authors have letters that every LaTeX knows; no other sign is left to luck.
        assert language != "en" or {sign for sign in text if not sign.isascii()} <= set("àáâäåæçèéêëíîïñóôöøùúûüß")


def test_the_summary_is_as_its_schema_says(written):
    summary, schema = (json.loads((written[1] / f"summary{part}.json").read_text("utf-8")) for part in ("", ".schema"))
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    assert [error.message for error in validator.iter_errors(summary)] == []
    assert len(summary["numbers"]) > 10
    assert {row["verdict"] for row in summary["verdicts"]["claims"]} > {"holds", "fails"}
    assert sum(summary["verdicts"]["audit"].values()) == len(example.frames()["audit"])
    number = next(iter(summary["numbers"].values()))
    for wrong in (
        {"seed": "x"},
        {"extra": 1},
        {"numbers": {"a_b": number}},
        {"numbers": {"A": number | {"unit": "m"}}},
    ):
        assert list(validator.iter_errors(summary | wrong)) != [], wrong


@pytest.mark.latex
@pytest.mark.parametrize("siunitx", [True, False], ids=["siunitx", "plain"])
def test_macros_and_tables_typeset(written, siunitx, tmp_path):
    language, out = written
    (tmp_path / "latex").symlink_to(out / "latex")
    numbers = json.loads((out / "numbers.json").read_text(encoding="utf-8"))["numbers"]
    labels = sorted(path.stem for path in (out / "latex").glob("tab-*.tex"))
    package, before, after = AROUND.get(language, ("", "", ""))
    packages = ",".join(("graphicx", *latex_tables.PACKAGES, *(["siunitx"] if siunitx else [])))
    preamble = f"\\usepackage{{{packages}}}{package}\n\\input{{latex/numbers}}\n\\usepackage{{hyperref}}"
    quoted = "\n\n".join(f"{name}: \\sqrtdk{name}." for name in numbers)
    body = (
        "\\section{Exponent \\sqrtdkGaussianExponent}\n\\tableofcontents\n$x = \\sqrtdkGaussianExponent$\n\n" + quoted
    )
    body += "\n\n\\sqrtdkList\n" + "".join(f"\\input{{latex/{label}}}\nTable~\\ref{{{label}}}.\n" for label in labels)
    text, complaints = typeset(tmp_path, "text", document(preamble, before + body + after))
    assert complaints == []
    if not siunitx:  # which groups digits
        squeezed = re.sub(r"\s", "", text).replace("−", "-").replace("·", "×")
        for name, number in numbers.items():
            plain = re.sub(r" × 10.*", "", number["text"]).replace("−", "-").replace("\u202f", "")
            assert f"{name}:{plain}" in squeezed, name


@pytest.mark.latex
def test_names_of_any_kind_typeset(tmp_path):
    names = (HOSTILE, "a_1", "a1", "x\\input{y}")
    tables = dict(example.frames(names=("gaussian", "rademacher", "equicorrelated", "aligned")))
    renamed = dict(zip(example.SPECS, names, strict=True))
    for name, frame in tables.items():
        if "ensemble" in frame:
            tables[name] = frame.assign(ensemble=frame["ensemble"].replace(renamed))
    settings = example.configuration() | {"ensembles": dict(zip(names, example.SPECS.values(), strict=True))}
    out = example.write_latex(tmp_path, tables, settings)
    numbers = json.loads((out / "numbers.json").read_text(encoding="utf-8"))["numbers"]
    assert len([name for name in numbers if re.fullmatch("AOneExponent[A-Z][a-z]{4}", name)]) == 2
    labels = sorted(path.stem for path in (out / "latex").glob("tab-*.tex"))
    preamble = f"\\usepackage[T1]{{fontenc}}\\usepackage{{{','.join(latex_tables.PACKAGES)}}}\\input{{latex/numbers}}"
    body = "\\sqrtdkList" + "".join(f"\\input{{latex/{label}}}" for label in labels)
    text, complaints = typeset(out, "text", document(preamble, body))
    assert [line for line in complaints if not line.startswith("Overfull")] == []
    assert text.count("#_{}") >= 2


@pytest.mark.latex
def test_a_table_goes_over_pages_where_it_has_many_rows_or_high_ones():
    say = latex.TexWords(texts.read(ROOT / "report", "en"), {}, {})

    def made(rows: int, text: str) -> str:
        row = (Cell("0.11 [0.034, 0.19]"), *[Cell(text)] * 3)
        columns = ("situation", "use", "measured", "evidence")
        return latex_tables.tex(Table("practice", columns, (row,) * rows, {}, room="article"), say, 1, "")

    assert made(0, "").count(r" \\") == 1  # its head
    assert r"\begin{longtable}" not in made(12, "some words")
    assert r"\begin{longtable}" in made(12, "some words " * 12)
    assert r"\begin{longtable}" in made(30, "some words")
    assert "0.11 [0.034,~0.19]" in made(1, "some words")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_figure_typesets_with_its_caption_label_and_citation(language, tmp_path):
    import draw_figure

    frames, drawn = example.frames(), tmp_path / "drawn"
    tables = [tmp_path / f"{name}.csv" for name in load(FIGURE).INPUTS]
    example.synthetic_results.write(tmp_path, {name: frames[name] for name in load(FIGURE).INPUTS})
    files = {kind: drawn / f"fig-{FIGURE}.{kind}" for kind in ("svg", "pdf", "png", "csv", "json")}
    own = sorted((ROOT / "report/words" / language).glob("*.yaml"))
    draw_figure.draw_figure(FIGURE, tables, "report", {}, own, language, **files)
    publish_figures.publish_figures(
        [files["json"]], own, language, "ab" * 32, ROOT / "CITATION.cff", tmp_path / "manifest.json"
    )
    package, before, after = AROUND.get(language, ("", "", ""))
    body = f"See Figure~\\ref{{fig:sqrtdk-{FIGURE}}} and \\cite{{sqrtdk-{FIGURE}}}.\\input{{fig-{FIGURE}.tex}}"
    body += f"\\bibliographystyle{{plain}}\\bibliography{{fig-{FIGURE}}}"
    size = "width=\\linewidth,height=.7\\textheight,keepaspectratio"  # as README.md has it
    preamble = f"\\usepackage{{graphicx}}\\setkeys{{Gin}}{{{size}}}{package}"
    text, complaints = typeset(tmp_path, "text", document(preamble, before + body + after), bibliography=True)
    assert complaints == []
    words_of = json.loads((tmp_path / f"fig-{FIGURE}.json").read_text(encoding="utf-8"))
    assert "See Figure 1 and [1]" in text.replace("\n", " ")
    assert "sqrtdk developers" in text
    assert words_of["caption"][:12].replace(" ", "") in re.sub(r"\s", "", text)
