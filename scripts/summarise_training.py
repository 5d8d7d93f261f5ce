"""Summarise the training runs: loss against rate, usable rates, speed, verdicts, halves of the repair, and growth."""

from pathlib import Path

from program import run, write_rows
from sqrtdk.training import tables


def summarise_training(
    training: Path,
    seed: int,
    curves: Path,
    summary: Path,
    verdicts: Path,
    transfer: Path,
    growth: Path,
    start_rate: Path,
):
    """Write the six tables."""
    import pandas as pd

    from sqrtdk.training import cells, comparisons
    from sqrtdk.training import growth as of_widths
    from sqrtdk.training import summary as of

    found = cells.cells(pd.read_csv(training, keep_default_na=False, na_values=[""]))
    write_rows(curves, of.curves(found), tables.CURVES)
    write_rows(summary, of.summaries(found, seed), tables.SUMMARY)
    write_rows(verdicts, comparisons.verdicts(found, seed), tables.VERDICTS)
    write_rows(transfer, of.transfer(found, seed), tables.TRANSFER)
    write_rows(growth, of_widths.growth(found, seed), tables.GROWTH)
    write_rows(start_rate, comparisons.start_rate(found), tables.START_RATE)


if __name__ == "__main__":
    run(summarise_training)
