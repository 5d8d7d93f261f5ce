"""Collect the widths of the alternatives into one table, with theory where the rule is a constant factor."""

from pathlib import Path

from program import run
from sqrtdk.results.reading import texts
from sqrtdk.results.writing import write_table
from sqrtdk.theory import gaussian_rows, random_energy
from sqrtdk.variants import notation


def collect_alternatives(cells: list[Path], theory: list[Path], output: Path):
    """Write one table; `theory` are tables of exact averages, named by their number of keys."""
    averages = {int(path.stem): random_energy.Interpolated(random_energy.read(path)) for path in theory}
    known, rows = {}, []
    for cell in cells:
        for row in texts(cell):
            key = row["variant"], int(row["d_k"]), int(row["n_keys"])
            if key not in known:
                known[key] = _theory(*key, averages[key[2]])
            row["exact"] = row["exact"] or known[key].get(row["measure"])
            rows.append({"variant": row["variant"], "kind": notation.kind(row["variant"]), **row})
    write_table(output, rows)


def _theory(variant: str, d_k: int, n_keys: int, averages) -> dict[str, float]:
    factor = notation.parse(variant).factor(d_k, n_keys)
    if factor is None:
        return {}
    return gaussian_rows.measures(gaussian_rows.standard_normal(d_k), n_keys, factor, averages)


if __name__ == "__main__":
    run(collect_alternatives)
