"""Draw one figure and write it as SVG, PDF and PNG, with its data and what it says, in no language yet."""

import json as json_format
from pathlib import Path

from program import run
from sqrtdk.figures import catalogue, saving, speaking, style
from sqrtdk.figures.targets import TARGETS
from sqrtdk.results import reading
from sqrtdk.results.writing import write_bytes, write_frame, write_text

DIGITS = 6
"""Significant digits of plotted data."""


def draw_figure(
    figure: str,
    data: list[Path],
    target: str,
    labels: dict,
    svg: Path,
    pdf: Path,
    png: Path,
    csv: Path,
    json: Path,
):
    """Draw a figure from result tables.

    figure: its id. data: the tables that it needs, each named as in results/. target: where it will stand.
    labels: what ensembles are called, by name. The others are the files to write.
    """
    module = catalogue.load(figure)
    frames = reading.tables(data)
    missing = [name for name in module.INPUTS if name not in frames]
    if missing:
        raise SystemExit(f"figure {figure} needs these tables among --data: {', '.join(missing)}")
    with style.labelled(labels):
        words, drawn = module.describe(frames), module.draw(frames, TARGETS[target])
    for path in (svg, pdf, png):
        write_bytes(path, saving.save(drawn, path.suffix[1:], TARGETS[target]))
    # The tables hold full precision; what is plotted needs less.
    write_frame(csv, module.data(frames), digits=DIGITS)
    record = {"id": figure, "inputs": list(module.INPUTS), "target": target}
    record["words"] = speaking.record(words)
    write_text(json, json_format.dumps(record, ensure_ascii=False, indent=2) + "\n")


if __name__ == "__main__":
    run(draw_figure)
