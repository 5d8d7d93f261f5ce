"""Simulate q·k of an ensemble at each of its d_k, and keep the moments beside the exact ones with what was drawn."""

from pathlib import Path

from program import run
from sqrtdk.sampling import cells, ensembles, moments


def simulate_moments(
    ensemble: str,
    spec: dict,
    widths: list,
    seed: int,
    precision: float,
    max_scalars: float,
    made_from: dict,
    output: Path,
):
    """Write the cells of an ensemble, each as soon as it is done.

    A cell that the file has from the same specification, seed and `made_from` (code and libraries) is kept, and
    continued where more precision is asked for.
    """
    built = ensembles.build(spec)
    identity = {"spec": spec, "seed": seed, **made_from}
    kept = {d_k: cell for d_k, cell in cells.read(output).items() if cell.identity == identity}
    done: dict[int, cells.StoredCell] = {}
    for d_k in widths:
        before = kept.get(d_k)
        try:
            drawn = moments.draw_cell(
                built, d_k, ensemble, seed, precision, max_scalars, before.drawn if before else None
            )
            found = moments.describe_cell(built, d_k, ensemble, drawn)
        except Exception as error:
            error.add_note(f"in the cell of {ensemble} at d_k = {d_k}")
            raise
        done[d_k] = cells.StoredCell(identity, drawn, found)
        if not before or before.drawn.n_products != drawn.n_products or before.found != found:
            cells.write(output, kept | done)
    cells.write(output, done)


if __name__ == "__main__":
    run(simulate_moments)
