"""Compare the gradients with and without the scale: at which width they cross, and what makes up their ratio."""

from pathlib import Path

from program import run
from sqrtdk.results.reading import rows
from sqrtdk.results.writing import write_table
from sqrtdk.studies import crossovers


def compare_gradients(magnitude: Path, distribution: Path, standard: list, crossings: Path, decomposition: Path):
    """Write one table of crossovers and one of the factors of the ratio of root mean squares.

    `standard` names the ensembles whose logits are those of standard normal q and k.
    """
    gradients, sizes = rows(magnitude), {}
    for measure in ("grad_logits", "grad_query"):
        for row in gradients:
            if row["measure"] == measure:
                for quantity, value, se in (("median", "median", "median_se"), ("rms", "estimate", "se")):
                    _add(sizes, row, measure, quantity, row[value], row[se])
    for row in rows(distribution):
        if (row["measure"], row["statistic"]) == ("jacobian_frobenius", "quantile_0.5"):
            _add(sizes, row, "jacobian_frobenius", "median", row["estimate"], row["se"])
    order = {name: position for position, name in enumerate(dict.fromkeys(row["ensemble"] for row in gradients))}
    found = crossovers.crossovers(sizes, standard)
    found.sort(key=lambda row: (order[row["ensemble"]], row["n_keys"], crossovers.MEASURES.index(row["measure"])))
    write_table(crossings, found)
    write_table(decomposition, crossovers.decomposition(gradients))


def _add(sizes: dict, row: dict, measure: str, quantity: str, value: float, se: float) -> None:
    cells = sizes.setdefault((row["ensemble"], row["n_keys"], measure, quantity), {})
    cells[row["d_k"], row["scaling"]] = value, se, row["n_blocks"]


if __name__ == "__main__":
    run(compare_gradients)
