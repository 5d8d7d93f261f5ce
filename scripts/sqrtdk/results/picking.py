"""Rows of tables picked by what they are: simulated ensembles, given values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

ENUMERATED = "enumerated"
"""What stands in `stopped_by` of a real head, whose token pairs were all counted."""


def simulated(moments: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of simulated ensembles of a table of moments, without the real heads, numbered anew."""
    return moments[moments["stopped_by"] != ENUMERATED].reset_index(drop=True)


def truth(column: pd.Series) -> pd.Series:
    """Return a column of truth values that may be missing as booleans; an empty cell is false."""
    return column.eq(True)


def at(frame: pd.DataFrame, **where: Any) -> pd.DataFrame:
    """Return the rows at these values of columns."""
    return frame.iloc[_places(frame, where)]


def find(frame: pd.DataFrame, **where: Any) -> Any:
    """Return the first row at these values of columns, None where there is none."""
    places = _places(frame, where)
    return _row(frame, places[0]) if len(places) else None


def pick(frame: pd.DataFrame, what: str, **where: Any) -> dict[str, Any]:
    """Return the one row at these values; raises ValueError that names them where there is none or more than one."""
    places = _places(frame, where)
    if len(places) != 1:
        raise ValueError(f"{what} has {len(places)} rows for {where}, one is needed")
    return _row(frame, places[0])


def _places(frame: pd.DataFrame, where: dict[str, Any]) -> np.ndarray:
    import numpy as np

    # By places: the report asks for hundreds of rows, and a frame for each step takes three times as long.
    places = np.arange(len(frame))
    for column, value in where.items():
        places = places[np.asarray(frame[column].array[places] == value, dtype=bool)]
    return places


def _row(frame: pd.DataFrame, place: int) -> dict[str, Any]:
    found = ((column, frame[column].array[place]) for column in frame.columns)
    return {column: value.item() if hasattr(value, "item") else value for column, value in found}
