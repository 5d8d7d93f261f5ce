"""Measure the weight of one key aligned with the query, how many others it withstands, and the gradient to find it."""

from pathlib import Path

from program import run
from sqrtdk.results.writing import write_table
from sqrtdk.studies import planted_gradient, planted_key


def simulate_planted_key(
    cosines: list, scalings: list, n_others: int, seed: int, weights: Path, capacity: Path, gradient: Path
):
    """Write one table of weights and retrievals against the number of keys, of the capacities and of the gradients."""
    key_rows, capacity_rows = planted_key.table(cosines, scalings, n_others, seed)
    write_table(weights, key_rows)
    write_table(capacity, capacity_rows)
    write_table(gradient, planted_gradient.table(cosines))


if __name__ == "__main__":
    run(simulate_planted_key)
