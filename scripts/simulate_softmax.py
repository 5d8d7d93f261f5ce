"""Simulate the attention rows of one cell, an ensemble at one d_k: saturation, gradients, and how these spread."""

from pathlib import Path

from program import run
from sqrtdk.results.writing import write_rows
from sqrtdk.sampling import ensembles
from sqrtdk.studies.saturation import simulate_cell


def simulate_softmax(
    ensemble: str,
    spec: dict,
    d_k: int,
    n_keys: list,
    scalings: list,
    seed: int,
    n_logits: int,
    saturation: Path,
    gradients: Path,
    distribution: Path,
):
    """Write tables of saturation measures, of gradient norms and of their distribution, for all n_keys and scalings."""
    tables = simulate_cell(ensembles.build(spec), d_k, n_keys, scalings, seed, ensemble, n_logits)
    for path, rows in zip((saturation, gradients, distribution), tables, strict=True):
        write_rows(path, rows)


if __name__ == "__main__":
    run(simulate_softmax)
