"""Draw one block of queries and keys and write its attention matrices for heads of several widths."""

from pathlib import Path

from program import run
from sqrtdk.results.writing import write_table
from sqrtdk.studies.attention_maps import attention_maps


def sample_attention_maps(seed: int, output: Path):
    """Write one row for each width, scale rule and query."""
    write_table(output, attention_maps(seed))


if __name__ == "__main__":
    run(sample_attention_maps)
