"""Result tables as data frames, read so that text stays text."""

from pathlib import Path
from typing import Any


def read(paths: list[Path]) -> dict[str, Any]:
    """Read result tables into data frames by the stem of their file names.

    Only an empty cell is a missing value: `none` is a scale rule, and an ensemble may be called `null`.
    """
    import pandas as pd

    frames = {}
    for path in map(Path, paths):
        if path.stat().st_size == 0:
            frames[path.stem] = pd.DataFrame()
            continue
        frames[path.stem] = pd.read_csv(path, keep_default_na=False, na_values=[""])
    return frames
