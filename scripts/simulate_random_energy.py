"""Simulate softmax over a number of independent Gaussian logits, for every standard deviation of the grid."""

from pathlib import Path

from program import run
from sqrtdk.results.writing import write_rows
from sqrtdk.theory.energy_grid import simulate


def simulate_random_energy(n_keys: int, logit_std: list, seed: int, n_draws: int, output: Path):
    """Write a row for each standard deviation and measure."""
    write_rows(output, simulate(n_keys, logit_std, seed, n_draws))


if __name__ == "__main__":
    run(simulate_random_energy)
