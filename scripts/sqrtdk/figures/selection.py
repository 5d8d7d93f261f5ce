"""Rows of result tables that figures draw, and what their words tell apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqrtdk.figures import style

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    Ends = tuple[pd.Series, pd.Series]
    Frames = Mapping[str, pd.DataFrame]
    Data = Callable[[Frames], pd.DataFrame]


class Once(dict[str, "pd.DataFrame"]):
    """Result tables of which a figure's table is made once, for its drawing, its words and its file."""

    def __init__(self, frames: Frames) -> None:
        super().__init__(frames)
        self.made: dict[Any, pd.DataFrame] = {}


def table(data: Data, frames: Frames) -> pd.DataFrame:
    """Return what `data` makes of result tables."""
    if not isinstance(frames, Once):
        return data(frames)
    if data not in frames.made:
        frames.made[data] = data(frames)
    return frames.made[data]


def order(column: Iterable[Any]) -> list[Any]:
    """Return the values of a column in order of first appearance, which is the order of the configuration."""
    return list(dict.fromkeys(column))


def front(table: pd.DataFrame) -> str:
    """Return the ensemble that a figure shows in front: the Gaussian, else the first."""
    names = order(table["ensemble"])
    return "gaussian" if "gaussian" in names else names[0]


def covers(low: pd.Series, high: pd.Series, value: pd.Series | float) -> pd.Series:
    """Say which intervals hold a value; false where one of the three is missing."""
    return (low <= value) & (value <= high)


def finite(table: pd.DataFrame) -> np.ndarray:
    """Return all finite numbers of some columns as one flat array."""
    import numpy as np

    values = table.to_numpy(dtype=float).ravel()
    return values[np.isfinite(values)]


def labels(names: Sequence[str]) -> list[str]:
    """Return the labels of ensembles."""
    return [style.ensemble_label(name) for name in names]


def ends(rows: pd.DataFrame, by: str) -> Ends | None:
    """Return the first and the last row in the order of a column; None where there is no row."""
    rows = rows.sort_values(by)
    return (rows.iloc[0], rows.iloc[-1]) if len(rows) else None


def noise(*errors: float) -> float:
    """Return three combined standard errors; a missing one counts as zero."""
    return 3 * sum(error**2 for error in errors if error == error) ** 0.5
