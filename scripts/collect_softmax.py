"""Collect the cells' softmax measures and gradient magnitudes into one table each, with theory where it is exact."""

import csv
from pathlib import Path

from program import run, write_rows
from sqrtdk import random_energy


def collect_softmax(folder: Path, cells: dict, exact: list, theory: list[Path], saturation: Path, gradients: Path):
    """Write the two tables.

    `cells` maps each ensemble to its widths, `exact` names those with standard normal queries and keys, and `theory`
    are tables of exact averages, named by their number of keys.
    """
    averages = {int(path.stem): random_energy.Interpolated(_columns(path)) for path in theory}
    known = {}
    for kind, output in (("saturation", saturation), ("gradients", gradients)):
        rows = []
        for name, widths in cells.items():
            for d_k in widths:
                for row in _rows(folder / name / f"{d_k}.{kind}.csv"):
                    if name in exact:
                        key = d_k, int(row["n_keys"]), row["scaling"]
                        if key not in known:
                            known[key] = random_energy.gaussian_theory(*key, averages[key[1]])
                        row["theory"] = known[key].get(row["measure"])
                    rows.append(row)
        write_rows(output, rows)


def _rows(path: Path) -> list[dict]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _columns(path: Path) -> dict[str, list[float]]:
    rows = _rows(path)
    return {name: [float(row[name]) for row in rows] for name in rows[0]}


if __name__ == "__main__":
    run(collect_softmax)
