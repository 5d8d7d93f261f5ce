"""Map where attention is frozen onto one key and where it is nearly uniform, from exact averages."""

from pathlib import Path

from program import run
from sqrtdk.results.writing import write_table
from sqrtdk.studies import phases
from sqrtdk.theory import random_energy


def map_phases(theory: list[Path], scalings: list, phase_map: Path, frontier: Path, entropy_scale: Path):
    """Write the three tables.

    `theory` are tables of exact averages, named by their number of keys.
    """
    averages = {
        int(path.stem): random_energy.Interpolated(random_energy.read(path))
        for path in sorted(theory, key=lambda path: int(path.stem))
    }
    write_table(phase_map, phases.phase_map(averages, scalings))
    write_table(frontier, phases.freezing_frontier(averages))
    write_table(entropy_scale, phases.entropy_scales(averages))


if __name__ == "__main__":
    run(map_phases)
