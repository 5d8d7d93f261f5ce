"""Describe every head of a dump of real queries and keys over all token pairs."""

import json
from pathlib import Path

from program import run
from sqrtdk.heads import enumeration
from sqrtdk.results.writing import write_text
from sqrtdk.variants import notation


def describe_heads(dump: str, file: Path, scaling: str, output: Path):
    """Write one JSON list of heads."""
    arrays = enumeration.read_dump(file)
    d_k, n_tokens = arrays.q.shape[-1], arrays.k.shape[-2]
    rows = enumeration.describe_dump(arrays, dump, scaling, notation.parse(scaling).factor(d_k, n_tokens))
    write_text(output, json.dumps(rows, allow_nan=False) + "\n")


if __name__ == "__main__":
    run(describe_heads)
