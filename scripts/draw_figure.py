"""Draw one figure and write it as SVG, PDF and PNG, with its data, its words and how to cite it."""

import hashlib
import json
from pathlib import Path

from program import run, write_bytes, write_frame, write_text
from sqrtdk import __version__, citing, figures
from sqrtdk.figures import saving


def draw_figure(
    figure: str, data: list[Path], svg: Path, pdf: Path, png: Path, csv: Path, bib: Path, json: Path
) -> None:
    """Draw a figure from result tables.

    figure: its id. data: the tables that it needs, each named as in results/. The others are the files to write.
    """
    module = figures.load(figure)
    frames = figures.read(data)
    missing = [name for name in module.INPUTS if name not in frames]
    if missing:
        raise SystemExit(f"figure {figure} needs these tables among --data: {', '.join(missing)}")
    words, drawn = module.describe(frames), module.draw(frames)
    for path in (svg, pdf, png):
        write_bytes(path, saving.save(drawn, path.suffix[1:], figure, module.TITLE, words.alt))
    write_frame(csv, module.data(frames))
    write_text(bib, citing.figure_entry(figure, module.NUMBER, module.TITLE, __version__, _sha256(csv)))
    write_text(json, _record(figure, module, words, [svg, pdf, png, csv, bib]))


def _record(figure: str, module, words: figures.Description, files: list[Path]) -> str:
    record = {
        "id": figure,
        "number": module.NUMBER,
        "title": module.TITLE,
        "question": module.QUESTION,
        "caption": words.caption,
        "alt": words.alt,
        "reading": words.reading,
        "caveat": words.caveat,
        "inputs": list(module.INPUTS),
        "licence": figures.LICENCE,
        "licence_url": figures.LICENCE_URL,
        "files": {
            path.suffix[1:]: {"name": path.name, "sha256": _sha256(path), "bytes": path.stat().st_size}
            for path in files
        },
    }
    return json.dumps(record, ensure_ascii=False, indent=2) + "\n"


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    run(draw_figure)
