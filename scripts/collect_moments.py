"""Collect the cells' moments, histograms and real heads into one table each, in the order of the configuration."""

import json
from pathlib import Path

from program import run, write_rows
from sqrtdk.heads import enumeration as real
from sqrtdk.sampling import moments as simulated


def collect_moments(
    folder: Path,
    cells: dict,
    heads: Path,
    dumps: list,
    moments: Path,
    score_histograms: Path,
    real_heads: Path,
):
    """Write the three tables; `cells` maps each ensemble to its widths."""
    files = [folder / name / f"{d_k}.json" for name, widths in cells.items() for d_k in widths]
    found = [json.loads(file.read_text("utf-8")) for file in files]
    rows = [cell["row"] for cell in found]
    head_rows = [row for dump in dumps for row in json.loads((heads / f"{dump}.json").read_text("utf-8"))]
    write_rows(moments, rows + [simulated.row_of_head(row) for row in head_rows], simulated.COLUMNS)
    write_rows(
        score_histograms, [line for cell in found for line in simulated.histogram_rows(cell)], simulated.HISTOGRAM
    )
    write_rows(real_heads, head_rows, real.COLUMNS)


if __name__ == "__main__":
    run(collect_moments)
