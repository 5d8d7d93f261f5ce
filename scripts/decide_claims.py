"""Decide the claims of two widely read articles on the results of the run."""

from pathlib import Path

from program import run
from sqrtdk.claims import ledger
from sqrtdk.results import reading
from sqrtdk.results.writing import write_table


def decide_claims(results: list[Path], shipped_training: list[Path], ensembles: dict, output: Path):
    """Write one row for each claim; `ensembles` maps the names of the run to their specifications."""
    shipped = {f"shipped_{name}": frame for name, frame in reading.tables(shipped_training).items()}
    decisions = ledger.decide(reading.tables(results) | shipped, ensembles)
    write_table(output, [ledger.row(decision) for decision in decisions])


if __name__ == "__main__":
    run(decide_claims)
