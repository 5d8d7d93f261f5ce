"""Measure the logits of layers by initial weights and normalisations, and write them beside the exact values."""

from pathlib import Path

from program import run
from sqrtdk.results.writing import write_table
from sqrtdk.studies import initialisation


def simulate_initialisation(n_draws: int, seed: int, output: Path):
    """Write one row for each layer, shape and quantity, from so many independent draws of the weights."""
    write_table(output, initialisation.simulate_all(n_draws, seed))


if __name__ == "__main__":
    run(simulate_initialisation)
