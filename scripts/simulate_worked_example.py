"""Measure a widely used example of three logits, and random rows at its d_k with and without the scale."""

from pathlib import Path

from program import run
from sqrtdk.results.writing import write_table
from sqrtdk.studies import worked_example


def simulate_worked_example(n_rows: int, seed: int, output: Path):
    """Write one row for each measure of each triple, number of keys and scale rule."""
    write_table(output, worked_example.table(n_rows, seed))


if __name__ == "__main__":
    run(simulate_worked_example)
