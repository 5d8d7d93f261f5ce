"""Measure the errors and overflows of attention in floating-point formats of few bits."""

from pathlib import Path

from program import run
from sqrtdk.results.writing import write_table
from sqrtdk.studies import rounding


def simulate_rounding(d_k: list, n_logits: int, seed: int, output: Path):
    """Write one row for each width, scale, format, place of rounding and measure."""
    write_table(output, [row for width in d_k for row in rounding.simulate(width, n_logits, seed)])


if __name__ == "__main__":
    run(simulate_rounding)
