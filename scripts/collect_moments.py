"""Collect the cells' moments, histograms and real heads into one table each, in the order of the configuration."""

import json
from pathlib import Path

from program import run
from sqrtdk.heads.enumeration import row_of_moments
from sqrtdk.results.described import columns
from sqrtdk.results.writing import write_table
from sqrtdk.sampling import cells as stored
from sqrtdk.sampling.moments import histogram_rows


def collect_moments(
    folder: Path,
    cells: dict,
    heads: Path,
    dumps: list,
    moments: Path,
    score_histograms: Path,
    real_heads: Path,
):
    """Write the three tables; `cells` maps each ensemble to its files, and these to their widths."""
    found = []
    for name, parts in cells.items():
        for part, widths in parts.items():
            simulated = stored.found(folder / name / f"{part}.npz")
            found += [simulated[d_k] for d_k in widths]
    rows = [cell["row"] for cell in found]
    head_rows = [row for dump in dumps for row in json.loads((heads / f"{dump}.json").read_text("utf-8"))]
    write_table(moments, rows + [row_of_moments(row, columns("moments")) for row in head_rows])
    write_table(score_histograms, [line for cell in found for line in histogram_rows(cell)])
    write_table(real_heads, head_rows)


if __name__ == "__main__":
    run(collect_moments)
