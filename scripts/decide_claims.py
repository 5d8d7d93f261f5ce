"""Decide the claims of two widely read articles on the results of the run."""

from pathlib import Path

from program import run, write_rows
from sqrtdk.claims import ledger
from sqrtdk.results.reading import read


def decide_claims(results: list[Path], shipped_training: list[Path], ensembles: dict, output: Path):
    """Write one row for each claim; `ensembles` maps the names of the run to their specifications."""
    shipped = {f"shipped_{name}": frame for name, frame in read(shipped_training).items()}
    decisions = ledger.decide(read(results) | shipped, ensembles)
    write_rows(output, [ledger.row(decision) for decision in decisions], ledger.COLUMNS)


if __name__ == "__main__":
    run(decide_claims)
