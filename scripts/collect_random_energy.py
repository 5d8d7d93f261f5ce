"""Set the simulated grid of softmax over Gaussian logits beside exact averages and asymptotic laws."""

from pathlib import Path

import numpy as np

from program import run
from sqrtdk.results.reading import texts
from sqrtdk.results.writing import write_table
from sqrtdk.theory import asymptotics, energy_grid, random_energy

CURVES = ("entropy", "participation_ratio", "jacobian_frobenius", "jacobian_trace", "jacobian_median")
MOST = 100
"""Largest standard deviation of the curves."""
FINE = np.geomspace(0.05, 64, 1000)
"""Standard deviations at which the ranges of the asymptotic laws are looked for."""


def collect_random_energy(cells: list[Path], theory: list[Path], energy: Path, curves: Path, ranges: Path):
    """Write the grid, the curves between its points, and the ranges in which the asymptotic laws are good.

    `cells` are simulated tables and `theory` tables of exact averages, both named by their number of keys.
    """
    grid, lines, good = [], [], []
    for cell, table in zip(cells, theory, strict=True):
        n = int(cell.stem)
        simulated = texts(cell)
        exact = {
            s: energy_grid.exact(vars(random_energy.averages(n, float(s)))) | {"identity": 0.0}
            for s in dict.fromkeys(row["logit_std"] for row in simulated)
        }
        for row in simulated:
            judged = {name: row.pop(name) for name in ("trusted", "precise")}
            s, measure = row["logit_std"], row["measure"]
            grid.append(row | _theory(n, float(s), measure, exact[s].get(measure)) | judged)
        exact_of = random_energy.Interpolated(random_energy.read(table))
        spreads = np.array([s for s in random_energy.read(table)["spread"][::2] if 0 < s <= MOST])
        values = _exact(exact_of, spreads)
        for measure in CURVES:
            for s, value in zip(spreads, values.get(measure, np.full(len(spreads), np.nan)), strict=True):
                lines.append(dict(n_keys=n, logit_std=s, measure=measure) | _theory(n, s, measure, value))
        good += asymptotics.ranges(n, FINE, _exact(exact_of, FINE))
    write_table(energy, grid)
    write_table(curves, lines)
    write_table(ranges, good)


def _theory(n_keys: int, spread: float, measure: str, exact: float | None) -> dict:
    laws = {name: law(n_keys, spread).get(measure) for name, law in asymptotics.APPROXIMATIONS.items()}
    return {"exact": exact} | {name: None if value is None else float(value) for name, value in laws.items()}


def _exact(exact_of: random_energy.Interpolated, spreads: np.ndarray) -> dict[str, np.ndarray]:
    return energy_grid.exact({name: exact_of(name, spreads) for name in random_energy.COLUMNS[1:]})


if __name__ == "__main__":
    run(collect_random_energy)
