"""Measure and integrate the softmax weight of one key aligned with the query, and how many other keys it withstands."""

from pathlib import Path

from program import run
from sqrtdk.results.writing import write_table
from sqrtdk.studies import planted_key


def simulate_planted_key(cosines: list, scalings: list, n_others: int, seed: int, weights: Path, capacity: Path):
    """Write one table of weights and retrievals against the number of keys, and one of the capacities."""
    key_rows, capacity_rows = planted_key.table(cosines, scalings, n_others, seed)
    write_table(weights, key_rows)
    write_table(capacity, capacity_rows)


if __name__ == "__main__":
    run(simulate_planted_key)
