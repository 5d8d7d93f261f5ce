"""Draw one figure and write it as SVG, PDF and PNG, with its data and what it says."""

import json as json_format
import logging
import re
import warnings
from hashlib import sha256
from pathlib import Path

from program import run
from sqrtdk import __version__
from sqrtdk.figures import catalogue, framing, saving, selection, speaking, style
from sqrtdk.figures.targets import LARGE, TARGETS, TYPE
from sqrtdk.results import reading
from sqrtdk.results.writing import write_bytes, write_frame, write_text
from sqrtdk.words import texts
from sqrtdk.words.phrases import Phrases

DIGITS = 6
"""Significant digits of plotted data."""
ENGLISH = "en"
_SENTENCE = re.compile(r".+?(?:\.(?= )|。|$)", re.DOTALL)


def draw_figure(
    figure: str,
    data: list[Path],
    target: str,
    labels: dict,
    words: list[Path],
    language: str,
    svg: Path,
    pdf: Path,
    png: Path,
    csv: Path,
    json: Path,
):
    """Draw a figure from result tables.

    figure: its id. data: the tables that it needs, each named as in results/. target: where it will stand.
    labels: what ensembles are called, by name. words: files of report/words/ that it is put into words with, in English
    and in `language`. The others are the files to write; the record has the hashes of the other files.

    Labels, title and definition are in that language; in PDF and PNG only where a font with its signs is at hand.
    """
    module, place = catalogue.load(figure), catalogue.places()[figure]
    frames = selection.Once(reading.tables(data))
    missing = [name for name in module.INPUTS if name not in frames]
    if missing:
        raise SystemExit(f"figure {figure} needs these tables among --data: {', '.join(missing)}")
    sources = {"/".join(("words", *path.parts[-2:])): path.read_text(encoding="utf-8") for path in words}
    tree = texts.tree(sources, language)
    with style.labelled(labels):
        drawn = module.draw(frames, TARGETS[target])
    with style.labelled(labels, texts.Words(tree).phrase):
        said = speaking.record(module.describe(frames))
    size = LARGE if place.part == "article" else TYPE

    def framed(tongue: str) -> framing.Frame:
        spoken = speaking.words(texts.Words(texts.tree(sources, tongue)), figure, said)
        definition = _SENTENCE.match(spoken["caption"])
        source = f"sqrtdk {__version__}, fig-{figure}, {catalogue.LICENCE}"
        return framing.add(drawn, spoken["title"], definition[0] if definition else "", source, size)

    translated = Phrases((tree.get("phrases") or {}) | (tree.get("drawn") or {}))
    found = framing.font("".join(sources.values())) if language != ENGLISH else ""
    if found is None:
        logging.warning("no font with the signs of %s is at hand: PDF and PNG stay English", language)
    if found is not None:
        framing.translate(drawn, translated)
    room = framed(language if found is not None else ENGLISH)
    if found:
        framing.use_font(drawn, found)
    write_bytes(pdf, saving.save(drawn, "pdf", TARGETS[target], room))
    write_bytes(png, saving.save(drawn, "png", TARGETS[target], room))
    if found is None:
        framing.remove(drawn)
        framing.translate(drawn, translated)
        room = framed(language)
    with warnings.catch_warnings():
        # The text of an SVG is drawn in the reader's own fonts.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        write_bytes(svg, saving.save(drawn, "svg", TARGETS[target], room))
    # The tables hold full precision; what is plotted needs less.
    write_frame(csv, selection.table(module.data, frames), digits=DIGITS)
    record = {"id": figure, "inputs": list(module.INPUTS), "target": target, "language": language}
    scale = TARGETS[target].width / drawn.get_figwidth()
    record |= {"frame": {"top": scale * room.top, "bottom": scale * room.bottom}, "words": said}
    record["sha256"] = {path.suffix[1:]: sha256(path.read_bytes()).hexdigest() for path in (svg, pdf, png, csv)}
    write_text(json, json_format.dumps(record, ensure_ascii=False, indent=2) + "\n")


if __name__ == "__main__":
    run(draw_figure)
