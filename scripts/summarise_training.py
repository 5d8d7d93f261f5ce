"""Summarise the training runs: loss against rate, usable rates, speed, and verdicts with intervals over seeds."""

from pathlib import Path

from program import run, write_rows
from sqrtdk.training import tables


def summarise_training(training: Path, seed: int, curves: Path, summary: Path, verdicts: Path, transfer: Path):
    """Write the four tables."""
    import pandas as pd

    from sqrtdk.training import summary as of

    found = of.cells(pd.read_csv(training, keep_default_na=False, na_values=[""]))
    write_rows(curves, of.curves(found), tables.CURVES)
    write_rows(summary, of.summaries(found, seed), tables.SUMMARY)
    write_rows(verdicts, of.verdicts(found, seed), tables.VERDICTS)
    write_rows(transfer, of.transfer(found, seed), tables.TRANSFER)


if __name__ == "__main__":
    run(summarise_training)
