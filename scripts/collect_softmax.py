"""Collect the cells' softmax measures and gradient magnitudes into one table each, with theory where it is exact."""

from pathlib import Path

from program import run
from sqrtdk.results.reading import texts
from sqrtdk.results.writing import write_table
from sqrtdk.sampling import ensembles
from sqrtdk.theory import concentration, gaussian_rows, random_energy
from sqrtdk.variants.notation import parse


def collect_softmax(
    folder: Path,
    cells: dict,
    exact: dict,
    theory: list[Path],
    saturation: Path,
    gradients: Path,
    distribution: Path,
):
    """Write the three tables.

    `cells` maps each ensemble to its widths, `exact` those whose rows have exact averages to their specification, and
    `theory` are tables of exact averages, named by their number of keys.
    """
    averages = {int(path.stem): random_energy.Interpolated(random_energy.read(path)) for path in theory}
    concentrations = concentration.tabulate(list(averages)) if exact else {}
    mixtures = {
        (name, d_k): gaussian_rows.mixture(spectrum)
        for name, spec in exact.items()
        for d_k in cells[name]
        if (spectrum := ensembles.build(spec).row_spectrum(d_k))
    }
    known, laws = {}, {}
    tables = {"saturation": saturation, "gradients": gradients, "distribution": distribution}
    for kind, output in tables.items():
        rows = []
        for name, widths in cells.items():
            for d_k in widths:
                for row in texts(folder / name / f"{d_k}.{kind}.csv"):
                    mixed = mixtures.get((name, d_k))
                    if mixed and "theory" in row:
                        key = name, d_k, int(row["n_keys"]), row["scaling"]
                        if key not in known:
                            factor = parse(key[3]).factor(d_k, key[2])
                            known[key], laws[key] = {}, {}
                            if factor is not None:
                                n = key[2]
                                known[key] = gaussian_rows.measures(mixed, n, factor, averages[n])
                                known[key] |= gaussian_rows.concentration_of(mixed, factor, concentrations[n])
                                laws[key] = gaussian_rows.frozen_laws(mixed, n, factor) if n > 1 else {}
                        row["theory"] = known[key].get(row["measure"])
                    if kind == "saturation":
                        row["law"] = laws[key].get(row["measure"]) if mixed else None
                    rows.append(row)
        write_table(output, rows)


if __name__ == "__main__":
    run(collect_softmax)
