"""Train the models of one scale rule at one width, at every rate and from every seed, and write what was logged."""

from pathlib import Path

from program import run
from sqrtdk.results.writing import write_rows
from sqrtdk.training import runs


def train_models(scaling: str, d_k: int, settings: dict, seed: int, output: Path, start: Path):
    """Write the logged steps and the sizes at the start. `settings`: an experiment's entry without rules and widths."""
    rows, sizes = runs.train(scaling=scaling, d_k=d_k, seed=seed, n_seeds=settings.pop("seeds"), **settings)
    write_rows(output, rows)
    write_rows(start, sizes)


if __name__ == "__main__":
    run(train_models)
