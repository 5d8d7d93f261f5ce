"""Write what a text about a run takes up: its numbers and tables in LaTeX, and the same numbers for programs."""

import json
from pathlib import Path

from program import run
from sqrtdk import __version__
from sqrtdk.figures import style
from sqrtdk.figures.catalogue import LICENCE
from sqrtdk.report import contents, summary
from sqrtdk.report.latex import ledger as claims_in_tex
from sqrtdk.report.latex import numbers as latex_numbers
from sqrtdk.report.latex import tables as latex_tables
from sqrtdk.report.latex import text
from sqrtdk.report.rendering import read_references
from sqrtdk.results import reading
from sqrtdk.results.writing import write_text
from sqrtdk.words import texts


def write_latex(
    results: list[Path],
    shipped_training: list[Path],
    provenance: Path,
    manifest: Path,
    language: str,
    labels: dict,
    word_files: list[Path],
    references: Path,
    schema: Path,
    folder: Path,
    numbers: Path,
    summary_file: Path,
    summary_schema: Path,
):
    """Write the folder of LaTeX files, numbers.json, summary.json and its schema.

    `results` are the tables of the report, `shipped_training` those of the longer training run that ships with the
    project, `labels` what ensembles are called, by name, `word_files` the words of the language, `references` the works
    that they cite (BibTeX).
    """
    frames, made = reading.tables(results), json.loads(provenance.read_text(encoding="utf-8"))
    longer = reading.tables(shipped_training)
    configuration = made["configuration"]
    sources = {f"words/{language}/{path.name}": path.read_text(encoding="utf-8") for path in word_files}
    cited = read_references(references.read_text(encoding="utf-8"))
    say = text.TexWords(texts.tree(sources, language), cited, contents.constants(configuration))
    with style.labelled(labels, say.phrase):
        quoted = contents.facts(frames, longer, configuration)
        tables = contents.report_tables(frames, longer, configuration, language, quoted)
    found = list(quoted.by_name.values())
    hashed = made["configuration_sha256"]
    origin = f"sqrtdk {__version__}, configuration {hashed}, {LICENCE}."

    tables["claims"] = claims_in_tex.table(tables["claims"], frames["claims"], language)
    labels = [latex_tables.label(key) for key in tables]
    for number, (label, table) in enumerate(zip(labels, tables.values(), strict=True), start=1):
        write_text(folder / f"{label}.tex", latex_tables.tex(table, say, number, origin))
    constants = {"Version": __version__, "Configuration": hashed, "Seed": str(configuration["seed"])}
    write_text(folder / "numbers.tex", latex_numbers.macros(found, say, origin, constants))
    write_text(folder / "README.md", latex_numbers.readme(labels, found))

    head = {"version": __version__, "configuration_sha256": hashed}
    _write_json(numbers, head | {"numbers": latex_numbers.record(found, say)})
    shown = json.loads(manifest.read_text(encoding="utf-8"))
    _write_json(summary_file, summary.summary(__version__, made, found, say, frames, shown))
    write_text(summary_schema, schema.read_text(encoding="utf-8"))


def _write_json(path: Path, content: dict) -> None:
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


if __name__ == "__main__":
    run(write_latex)
