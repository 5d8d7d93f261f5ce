"""Draw rows of attention over every width and number of keys, and write their weights in order of size."""

from pathlib import Path

from program import run
from sqrtdk.results.writing import write_table
from sqrtdk.studies.typical_rows import typical_rows


def sample_typical_rows(d_k: list, n_keys: list, scalings: list, n_logits: int, seed: int, output: Path):
    """Write one row for each width, number of keys, scale rule and rank."""
    write_table(output, typical_rows(d_k, n_keys, scalings, n_logits, seed))


if __name__ == "__main__":
    run(sample_typical_rows)
