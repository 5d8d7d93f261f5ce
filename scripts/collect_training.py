"""Collect the logs of all trained models into one table, and the sizes at the start into another."""

from pathlib import Path

from program import run
from sqrtdk.results.reading import texts
from sqrtdk.results.writing import write_table

NAMES = ("experiment", "task", "optimiser", "scaling", "d_k")


def collect_training(folder: Path, trained: dict, training: Path, start: Path):
    """Write the two tables. `trained` maps each experiment to its task, optimiser and cells (folder, rule, width)."""
    for kind, output in (("log", training), ("start", start)):
        rows = []
        for name, entry in trained.items():
            for slug, scaling, d_k in entry["cells"]:
                key = dict(zip(NAMES, (name, entry["task"], entry["optimiser"], scaling, d_k), strict=True))
                rows += [key | row for row in texts(folder / name / slug / f"{d_k}.{kind}.csv")]
        write_table(output, rows)


if __name__ == "__main__":
    run(collect_training)
