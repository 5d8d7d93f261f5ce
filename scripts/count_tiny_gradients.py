"""Repeat the much-copied count of softmax gradients below 1e-10, as it is made and in exact arithmetic."""

from pathlib import Path

from program import run
from sqrtdk.results.writing import write_table
from sqrtdk.studies import tiny_gradients


def count_tiny_gradients(n_rows: int, seed: int, output: Path):
    """Write one row for each d_k, scale rule, arithmetic and statistic."""
    write_table(output, tiny_gradients.table(n_rows, seed))


if __name__ == "__main__":
    run(count_tiny_gradients)
