"""Fit the candidate laws of the variance and of the mean of q·k against d_k to the table of moments."""

from pathlib import Path

import pandas as pd

from program import run, write_frame
from sqrtdk.laws import fit_mean_laws, fit_variance_laws


def main(moments: Path, tail_d_k: int, variance_laws: Path, mean_laws: Path) -> None:
    """Read the moments of all cells; write one row per ensemble, law and parameter to two tables."""
    # Only an empty cell is missing: an ensemble may be called `null`.
    frame = pd.read_csv(moments, keep_default_na=False, na_values=[""])
    write_frame(variance_laws, fit_variance_laws(frame, tail_d_k))
    write_frame(mean_laws, fit_mean_laws(frame))


if __name__ == "__main__":
    run(main)
