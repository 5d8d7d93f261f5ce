"""Fit the candidate laws of the variance, the mean and the quartiles of q·k against d_k to the table of moments."""

from pathlib import Path

from program import run
from sqrtdk.results import reading
from sqrtdk.results.writing import write_table
from sqrtdk.sampling import local_laws
from sqrtdk.sampling.laws import fit_mean_laws, fit_spread_laws, fit_variance_laws


def main(
    moments: Path, tail_d_k: int, variance_laws: Path, mean_laws: Path, spread_laws: Path, local_exponents: Path
) -> None:
    """Read the moments of all cells; write a row per ensemble, law and parameter, and one per pair of widths."""
    frame = reading.table(moments)
    write_table(variance_laws, fit_variance_laws(frame, tail_d_k).to_dict("records"))
    write_table(mean_laws, fit_mean_laws(frame).to_dict("records"))
    write_table(spread_laws, fit_spread_laws(frame, tail_d_k).to_dict("records"))
    write_table(local_exponents, local_laws.local_exponents(frame).to_dict("records"))


if __name__ == "__main__":
    run(main)
