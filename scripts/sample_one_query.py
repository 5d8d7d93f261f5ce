"""Write the attention of one query in narrow and wide heads, with and without the usual scale."""

from pathlib import Path

from program import run
from sqrtdk.results.writing import write_table
from sqrtdk.studies.one_query import one_query


def sample_one_query(seed: int, output: Path):
    """Write one row for each number of keys, width, scale rule and key."""
    write_table(output, one_query(seed))


if __name__ == "__main__":
    run(sample_one_query)
