"""Simulate q·k of one cell, an ensemble at one d_k, and write its moments beside the exact ones."""

import json
from pathlib import Path

from program import run
from sqrtdk.results.writing import write_text
from sqrtdk.sampling import ensembles, moments


def simulate_moments(ensemble: str, spec: dict, d_k: int, seed: int, precision: float, max_scalars: float, cell: Path):
    """Write {"row": ..., "histogram": ...} as JSON."""
    result = moments.simulate_cell(ensembles.build(spec), d_k, ensemble, seed, precision, max_scalars)
    write_text(cell, json.dumps(result, allow_nan=False, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    run(simulate_moments)
