"""Collect the cells' softmax measures and gradient magnitudes into one table each."""

from pathlib import Path

from program import run, write_text


def collect_softmax(folder: Path, cells: dict, saturation: Path, gradients: Path):
    """Write the two tables, the cells' lines under one header; `cells` maps each ensemble to its widths."""
    for kind, output in (("saturation", saturation), ("gradients", gradients)):
        files = [folder / name / f"{d_k}.{kind}.csv" for name, widths in cells.items() for d_k in widths]
        lines = [file.read_text("utf-8").splitlines() for file in files]
        write_text(output, "\n".join([lines[0][0], *(line for cell in lines for line in cell[1:])]) + "\n")


if __name__ == "__main__":
    run(collect_softmax)
