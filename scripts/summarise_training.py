"""Summarise the training runs: loss against rate, usable rates, speed, verdicts, halves of the repair, and growth."""

from pathlib import Path

from program import run
from sqrtdk.results import reading
from sqrtdk.results.writing import write_table


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
    from sqrtdk.training import cells, comparisons
    from sqrtdk.training import growth as of_widths
    from sqrtdk.training import summary as of

    found = cells.cells(reading.table(training))
    write_table(curves, of.curves(found))
    write_table(summary, of.summaries(found, seed))
    write_table(verdicts, comparisons.verdicts(found, seed))
    write_table(transfer, of_widths.transfer(found, seed))
    write_table(growth, of_widths.growth(found, seed))
    write_table(start_rate, comparisons.start_rate(found))


if __name__ == "__main__":
    run(summarise_training)
