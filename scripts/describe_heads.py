"""Describe every head of a dump of real queries and keys over all token pairs."""

import json
from pathlib import Path

from program import run
from sqrtdk.heads import enumeration
from sqrtdk.results.writing import write_text
from sqrtdk.variants import notation


def describe_heads(dump: str, entry: dict, file: Path, output: Path):
    """Write one JSON list of heads; `entry` is that of the dump in the configuration."""
    arrays, scaling = enumeration.read_dump(file), entry["scaling"]
    d_k, n_tokens = arrays.q.shape[-1], arrays.k.shape[-2]
    rows = enumeration.describe_dump(arrays, dump, scaling, notation.parse(scaling).factor(d_k, n_tokens))
    told = {"model": entry.get("model", dump), "input": entry.get("input", "")}
    rows = [row | told for row in rows]
    write_text(output, json.dumps(rows, allow_nan=False) + "\n")


if __name__ == "__main__":
    run(describe_heads)
