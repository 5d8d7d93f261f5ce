"""Compare the gradients with and without the scale for rows of every number of keys."""

from pathlib import Path

from program import run
from sqrtdk.results.writing import write_table
from sqrtdk.studies import gradients_by_keys


def compare_gradients_by_keys(seed: int, ratios: Path, crossings: Path):
    """Write one table of the ratios and one of the widths at which they are 1."""
    ratio_rows, crossing_rows = gradients_by_keys.table(seed)
    write_table(ratios, ratio_rows)
    write_table(crossings, crossing_rows)


if __name__ == "__main__":
    run(compare_gradients_by_keys)
