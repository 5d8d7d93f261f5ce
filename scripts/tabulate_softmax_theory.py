"""Tabulate exact averages of softmax over a number of independent Gaussian logits against their standard deviation."""

from pathlib import Path

from program import run
from sqrtdk.results.writing import write_rows
from sqrtdk.theory import random_energy


def tabulate_softmax_theory(n_keys: int, output: Path):
    """Write one row for each knot of the interpolation."""
    write_rows(output, random_energy.tabulate(n_keys))


if __name__ == "__main__":
    run(tabulate_softmax_theory)
