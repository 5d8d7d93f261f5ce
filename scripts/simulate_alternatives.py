"""Measure every variant of attention at one width."""

from pathlib import Path

from program import run
from sqrtdk.results.writing import write_rows
from sqrtdk.studies import alternatives


def simulate_alternatives(d_k: int, n_keys: list, variants: list, seed: int, output: Path):
    """Write one row for each variant, number of keys and measure."""
    write_rows(output, alternatives.simulate(d_k, n_keys, variants, seed))


if __name__ == "__main__":
    run(simulate_alternatives)
