"""Runs of several seeds, on whatever machines, as one table of moments: their blocks put together, not their tables."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqrtdk.results.writing import write_table, write_text
from sqrtdk.sampling import cells, ensembles, moments
from sqrtdk.sampling.cells import StoredCell

FOLDER = Path("cells/moments")
"""Where results keep the cells, a folder for each ensemble."""
NAMED = 10
"""Mistakes that are said; of more there is the number only."""


class MergeError(ValueError):
    """Runs that cannot be put together; its arguments are all the reasons."""


def merge(runs: Sequence[Path], output: Path) -> dict[str, Any]:
    """Write moments.csv and score_histograms.csv of several runs together, and merged.json, which is returned.

    Real heads are left out: there is nothing random about them.

    Args:
        runs: folders of results, of the same code, libraries and ensembles but of different seeds.

    Raises:
        MergeError: with every reason why the runs cannot be put together.
    """
    stored = {run: _cells(run) for run in runs}
    mistakes = [f"{run}: holds no cells of moments ({FOLDER})" for run, of_run in stored.items() if not of_run]
    if len(runs) < 2:
        mistakes.append("give at least two folders of results")
    keys = {key: None for of_run in stored.values() for key in of_run}
    for run, of_run in stored.items():
        mistakes += [
            f"{run}: lacks {name} at d_k = {d_k}" for name, d_k in keys if of_run and (name, d_k) not in of_run
        ]
    for key in keys:
        together = [(run, of_run[key]) for run, of_run in stored.items() if key in of_run]
        mistakes += [mistake for mistake in _unlike(together) if mistake not in mistakes]
    if mistakes:
        raise MergeError(*mistakes)
    found = [_merged(name, d_k, [of_run[name, d_k] for of_run in stored.values()]) for name, d_k in keys]
    write_table(output / "moments.csv", [cell["row"] for cell in found])
    write_table(output / "score_histograms.csv", [line for cell in found for line in moments.histogram_rows(cell)])
    identities = [next(iter(of_run.values())).identity for of_run in stored.values()]
    record = {"seeds": [identity["seed"] for identity in identities]}
    record |= {key: value for key, value in identities[0].items() if key not in ("seed", "spec")}
    write_text(output / "merged.json", json.dumps(record, indent=2) + "\n")
    return record


def _cells(results: Path) -> dict[tuple[str, int], StoredCell]:
    """Return the cells of a folder of results by ensemble and width, narrow ones first."""
    found: dict[tuple[str, int], StoredCell] = {}
    for folder in sorted(path for path in (results / FOLDER).glob("*") if path.is_dir()):
        widths = {d_k: cell for file in sorted(folder.glob("*.npz")) for d_k, cell in cells.read(file).items()}
        found |= {(folder.name, d_k): widths[d_k] for d_k in sorted(widths)}
    return found


def _unlike(together: Sequence[tuple[Path, StoredCell]]) -> list[str]:
    """Say what keeps the same cell of several runs from being put together."""
    mistakes = []
    (first, model), *rest = together
    for index, (run, cell) in enumerate(rest, 1):
        for earlier, other in together[:index]:
            if other.identity["seed"] == cell.identity["seed"]:
                seed = cell.identity["seed"]
                mistakes.append(f"{run}: has the seed of {earlier} ({seed}), so that its scores are the same ones")
        keys = sorted({*cell.identity, *model.identity} - {"seed"})
        differ = [key for key in keys if cell.identity.get(key) != model.identity.get(key)]
        if not differ and cell.drawn.n_queries != model.drawn.n_queries:
            differ = ["max_scalars, and with it the blocks,"]
        mistakes += [f"{run}: another {key} than {first}" for key in differ]
    return mistakes


def _merged(name: str, d_k: int, found: Sequence[StoredCell]) -> dict[str, Any]:
    ensemble = ensembles.build(found[0].identity["spec"])
    sums = moments.put_together([cell.drawn for cell in found])
    stopped_by = max((cell.drawn.stopped_by for cell in found), key=lambda reason: reason != "precision")
    quartiles = moments.mean_quartiles([cell.found["row"] for cell in found])
    products = sum(cell.drawn.n_products for cell in found)
    drawn = replace(found[0].drawn, n_products=products, stopped_by=stopped_by, sums=sums, quartiles=quartiles)
    return moments.describe_cell(ensemble, d_k, name, drawn)


def main(arguments: list[str]) -> int:
    """Run `sqrtdk merge` and return its exit code."""
    parser = argparse.ArgumentParser(prog="sqrtdk merge", description=(merge.__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RESULTS", help="folders of results of different seeds")
    parser.add_argument("--output", type=Path, default=Path("merged"), help="folder for what is made (default: merged)")
    given = parser.parse_args(arguments)
    try:
        record = merge(given.runs, given.output)
    except MergeError as error:
        print("The runs cannot be put together; nothing was written.", file=sys.stderr)
        print(*(f"  {mistake}" for mistake in error.args[:NAMED]), sep="\n", file=sys.stderr)
        if len(error.args) > NAMED:
            print(f"  and {len(error.args) - NAMED} more", file=sys.stderr)
        return 2
    print(f"{given.output / 'moments.csv'}: seeds {', '.join(map(str, record['seeds']))} put together")
    return 0
