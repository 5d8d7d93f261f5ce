"""Render the report: one offline HTML file from the results and the sources in report/."""

import json
import os
from pathlib import Path

from program import Text, run
from sqrtdk import __version__
from sqrtdk.figures import catalogue, style
from sqrtdk.report import citing, contents, figure_numbers, rendering
from sqrtdk.report.article import chapters, design, hero, made, questions
from sqrtdk.report.provenance import report_entry
from sqrtdk.results import reading
from sqrtdk.results.writing import write_text
from sqrtdk.words import texts

SHIPPED = {
    "minilm-l6-qk.npz": "minilm",
    "whisper-tiny-acts.npz": "whisper",
    "rxnmapper-imatinib.npz": "rxnmapper",
    "mgm-community.npz": "mgm",
    "llama-acts.npz": "llama",
    "qwen3-acts.npz": "qwen3",
    "vit-camera.npz": "vit",
}
"""Files of the dumps that ship, and the words at `methods.heads.sources` on their models."""


def render_report(
    figures: list[Path],
    results: list[Path],
    shipped_training: list[Path],
    provenance: Path,
    citation: Path,
    title: Text,
    language: str,
    labels: dict,
    sources: list[Path],
    output: Path,
):
    """Write the page.

    `figures` are all files of the figures, `results` the tables that it reads, `shipped_training` those of the longer
    training run that ships with the project, `citation` CITATION.cff, `labels` what ensembles are called, by name,
    `sources` the files of report/ or that folder.
    """
    frames = reading.tables(results)
    record = json.loads(provenance.read_text(encoding="utf-8"))
    configuration = record["configuration"]
    at = contents.setting(frames, configuration)
    longer = reading.tables(shipped_training)
    read = rendering.read_sources(sources)
    with style.labelled(labels, texts.Words(texts.tree(read, language)).phrase):
        facts = contents.facts(frames, longer, configuration)
        found = contents.report_tables(frames, longer, configuration, language, facts)
        said = chapters.Article(frames, longer, at, facts)
    quoted = figure_numbers.titles(at, facts)
    shown = [figure | {"numbers": quoted.get(figure["id"], ())} for figure in read_figures(figures, output.parent)]
    facts.quoted |= {one.name: one for figure in shown for one in figure["numbers"]}
    asked = questions.Questions(frames, longer, at, facts)
    article = {
        "lede": said.lede(),
        "hero": [figure for figure in shown if figure["topic"] == "answer"],
        "one_query": hero.one_query(frames["one_query"]),
        "cards": said.cards(),
        "chapters": [chapter.with_questions(asked.of(chapter.name)) for chapter in said.chapters()],
        "design": design.card(frames, configuration),
    }
    url = citing.repository(citation.read_text(encoding="utf-8"))
    named = {"report": (title, ""), **{one["anchor"]: (one["title"], f"figure {one['number']}") for one in shown}}
    cited = {
        name: (citing.plain(what, __version__, place, url), citing.in_line(__version__, place))
        for name, (what, place) in named.items()
    }
    context = {
        "title": title,
        "version": __version__,
        "setting": at,
        "article": article,
        "figures": shown,
        "atlas": contents.atlas(shown, found),
        "sources": made.sources(record["rules"], shown),
        "tables": found,
        "chapter_tables": contents.ARTICLE,
        "quoted": list(facts.quoted.values()),
        "provenance": record,
        "rules": list(dict.fromkeys(frames["softmax_saturation"]["scaling"])),
        "shipped_heads": [
            SHIPPED[name] for dump in configuration["dumps"].values() if (name := Path(dump["file"]).name) in SHIPPED
        ],
        "bibtex": report_entry(title, __version__, record, url),
        "cited": cited,
    }
    write_text(output, rendering.render(read, language, context, contents.constants(configuration)))


def read_figures(files: list[Path], folder: Path) -> list[dict]:
    """Return the figures in the order of their numbers; a figure without one of its files is an error."""
    found = []
    for path in (path for path in files if path.suffix == ".json"):
        parts = {kind: path.with_suffix(f".{kind}") for kind in rendering.FIGURE_TEXTS}
        absent = [part.name for part in parts.values() if part not in files]
        if absent:
            raise rendering.MissingPart(f"{path.name} was given without {', '.join(absent)}")
        record = json.loads(path.read_text(encoding="utf-8"))
        here = Path(os.path.relpath(path.parent, folder)).as_posix()
        contents_of = {kind: part.read_text(encoding="utf-8") for kind, part in parts.items()}
        found.append(rendering.figure(record, contents_of, here))
    if not found:
        raise rendering.MissingPart("no figure was given")
    return sorted(found, key=lambda figure: catalogue.order(figure["number"]))


if __name__ == "__main__":
    run(render_report)
