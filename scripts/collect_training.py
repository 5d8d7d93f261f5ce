"""Collect the logs of all trained models into one table, and the sizes at the start into another."""

from pathlib import Path

from program import read_rows, run, write_rows
from sqrtdk.training import runs

NAMES = ("experiment", "task", "optimiser", "scaling", "d_k")


def collect_training(folder: Path, trained: dict, training: Path, start: Path):
    """Write the two tables. `trained` maps each experiment to its task, optimiser and cells (folder, rule, width)."""
    for kind, output, columns in (("log", training, runs.LOGGED), ("start", start, runs.AT_START)):
        rows = []
        for name, entry in trained.items():
            for slug, scaling, d_k in entry["cells"]:
                key = dict(zip(NAMES, (name, entry["task"], entry["optimiser"], scaling, d_k), strict=True))
                rows += [key | row for row in read_rows(folder / name / slug / f"{d_k}.{kind}.csv")]
        write_rows(output, rows, (*NAMES, *columns))


if __name__ == "__main__":
    run(collect_training)
