"""Collect the cells' softmax measures and gradient magnitudes into one table each."""

from pathlib import Path

from program import run, write_text


def collect_softmax(cells: Path, ensembles: list, d_k: list, saturation: Path, gradients: Path):
    """Write the two tables: the cells' lines under one header."""
    for kind, output in (("saturation", saturation), ("gradients", gradients)):
        lines = [
            (cells / name / f"{width}.{kind}.csv").read_text("utf-8").splitlines()
            for name in ensembles
            for width in d_k
        ]
        write_text(output, "\n".join([lines[0][0], *(line for cell in lines for line in cell[1:])]) + "\n")


if __name__ == "__main__":
    run(collect_softmax)
