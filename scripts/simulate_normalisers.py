"""Measure what normalisers other than softmax, and attention without a row of logits, do with random scores."""

from pathlib import Path

from program import run
from sqrtdk.results.writing import write_table
from sqrtdk.studies import normalisation


def simulate_normalisers(seed: int, n_logits: int, normalisers: Path, linear_attention: Path):
    """Write one row for each normaliser or kind of attention, setting and measure."""
    write_table(normalisers, normalisation.simulate_normalisers(seed, n_logits))
    write_table(linear_attention, normalisation.simulate_kernels(seed))


if __name__ == "__main__":
    run(simulate_normalisers)
