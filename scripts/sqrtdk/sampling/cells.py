"""The cells of one ensemble in one file: what each has drawn, to be continued or merged, and what follows from it."""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sqrtdk.results.writing import write_bytes
from sqrtdk.sampling.moments import BlockSums, Draws

ABOUT = "about"
"""Array of the file that holds all but the blocks, as JSON in UTF-8."""
BLOCKS = ("powers", "within_row", "kept")
TOGETHER = 1e9
"""Random numbers of a cell at most, for all widths of an ensemble to share a job and a file."""


@dataclass(frozen=True)
class StoredCell:
    """One cell of a file.

    identity: what its numbers come from: the ensemble's specification, the seed, the code and its libraries.
    found: {"row", "histogram"} as `moments.simulate_cell` returns them.
    """

    identity: Mapping[str, Any]
    drawn: Draws
    found: Mapping[str, Any]


def parts(widths: list[int], max_scalars: float) -> dict[str, list[int]]:
    """Return the widths of each job of an ensemble, by its name: a program starts as long as a small cell takes."""
    return {"all": widths} if max_scalars <= TOGETHER else {str(d_k): [d_k] for d_k in widths}


def write(file: Path, cells: Mapping[int, StoredCell]) -> None:
    """Write cells by width, whole or not at all."""
    about: dict[int, dict[str, Any]] = {}
    arrays: dict[str, np.ndarray] = {}
    for d_k, cell in cells.items():
        drawn, sums = cell.drawn, cell.drawn.sums
        about[d_k] = {
            "identity": cell.identity,
            "drawn": {
                "n_queries": drawn.n_queries,
                "n_products": drawn.n_products,
                "stopped_by": drawn.stopped_by,
                "quartiles": drawn.quartiles,
            },
            "sums": {
                "shift": sums.shift,
                "n_scores": sums.n_scores,
                "counts": None if sums.counts is None else sums.counts.tolist(),
            },
            "found": cell.found,
        }
        arrays |= {f"{d_k}/{name}": getattr(sums, name) for name in BLOCKS}
    text = json.dumps(about, allow_nan=False, ensure_ascii=False)
    whole = io.BytesIO()
    np.savez(whole, allow_pickle=False, **{ABOUT: np.frombuffer(text.encode(), np.uint8)}, **arrays)
    write_bytes(file, whole.getvalue())


def found(file: Path) -> dict[int, dict[str, Any]]:
    """Return what was found in each width's cell, without its blocks."""
    with file.open("rb") as opened, np.load(opened) as stored:
        return {int(d_k): said["found"] for d_k, said in _about(stored).items()}


def read(file: Path) -> dict[int, StoredCell]:
    """Return the cells of a file by width; none where there is no file, or one of another kind."""
    try:
        with file.open("rb") as opened, np.load(opened) as stored:
            return {int(d_k): _cell(stored, d_k, said) for d_k, said in _about(stored).items()}
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        return {}


def _about(stored: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return json.loads(stored[ABOUT].tobytes())


def _cell(stored: Mapping[str, np.ndarray], d_k: str, said: Mapping[str, Any]) -> StoredCell:
    counts = said["sums"]["counts"]
    powers, within_row, kept = (stored[f"{d_k}/{name}"] for name in BLOCKS)
    sums = BlockSums(
        said["sums"]["shift"],
        powers,
        within_row,
        kept,
        said["sums"]["n_scores"],
        None if counts is None else np.array(counts, np.int64),
    )
    return StoredCell(said["identity"], Draws(sums=sums, **said["drawn"]), said["found"])
