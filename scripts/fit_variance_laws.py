"""Fit the candidate laws of the variance, the mean and the quartiles of q·k against d_k to the table of moments."""

from pathlib import Path

import pandas as pd

from program import run, write_frame
from sqrtdk.sampling import local_laws
from sqrtdk.sampling.laws import fit_mean_laws, fit_spread_laws, fit_variance_laws


def main(
    moments: Path, tail_d_k: int, variance_laws: Path, mean_laws: Path, spread_laws: Path, local_exponents: Path
) -> None:
    """Read the moments of all cells; write a row per ensemble, law and parameter, and one per pair of widths."""
    # Only an empty cell is missing: an ensemble may be called `null`.
    frame = pd.read_csv(moments, keep_default_na=False, na_values=[""])
    write_frame(variance_laws, fit_variance_laws(frame, tail_d_k))
    write_frame(mean_laws, fit_mean_laws(frame))
    write_frame(spread_laws, fit_spread_laws(frame, tail_d_k))
    write_frame(local_exponents, local_laws.local_exponents(frame))


if __name__ == "__main__":
    run(main)
