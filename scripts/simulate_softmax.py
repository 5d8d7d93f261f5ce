"""Simulate the attention rows of one cell, an ensemble at one d_k, and write their saturation and gradients."""

from pathlib import Path

from program import run, write_rows
from sqrtdk import ensembles
from sqrtdk.saturation import simulate_cell


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
):
    """Write one table of saturation measures and one of gradient norms, for every number of keys and scale rule."""
    saturation_rows, gradient_rows = simulate_cell(
        ensembles.build(spec), d_k, n_keys, scalings, seed, ensemble, n_logits
    )
    write_rows(saturation, saturation_rows)
    write_rows(gradients, gradient_rows)


if __name__ == "__main__":
    run(simulate_softmax)
