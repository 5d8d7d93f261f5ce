"""Files of results/, whole or absent, and tables in the order and spelling of their description."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqrtdk.results import described

if TYPE_CHECKING:
    import pandas as pd


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file under a temporary name and rename it, so that a killed job leaves no half file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    temporary.write_bytes(content)
    temporary.replace(path)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text with LF line ends, whole or not at all."""
    write_bytes(path, text.encode())


def write_table(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a table of results/, named as there; raises ValueError as `table_text` does."""
    write_text(path, table_text(Path(path).stem, rows))


def table_text(name: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """Return a table of results/ as CSV with the columns of its description; rows may have them in any order.

    Raises ValueError where a row has other columns.
    """
    columns = described.columns(name)
    whole = {column for column, said in columns.items() if said.whole}
    return _laid_out(f"{name}.csv", columns.keys(), rows, whole)


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of equal keys, of which there is one at least, as CSV with these columns: the result of a cell."""
    write_text(path, _laid_out(Path(path).name, rows[0].keys(), rows))


def write_frame(path: Path, frame: pd.DataFrame, digits: int) -> None:
    """Write a data frame as CSV, as the data of a figure, with reals rounded to so many significant digits."""

    def rounded(value: Any) -> Any:
        return float(f"{value:.{digits}g}") if isinstance(value, float) and not value.is_integer() else value

    write_text(path, _text(frame.columns, (map(rounded, row) for row in frame.itertuples(index=False))))


def spell(value: Any) -> str:
    """Spell one value: full precision, lower-case truth values, and nothing for what does not exist."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return str(bool(value)).lower()
    if isinstance(value, float):
        return repr(float(value))
    return str(value)


def _laid_out(name: str, columns: Set[str], rows: Iterable[Mapping[str, Any]], whole: Set[str] = frozenset()) -> str:
    lines = []
    for row in rows:
        if row.keys() != columns:
            raise ValueError(f"a row of {name} differs in its columns: {', '.join(sorted(row.keys() ^ columns))}")
        lines.append([_whole(row[column]) if column in whole else row[column] for column in columns])
    return _text(columns, lines)


def _whole(value: Any) -> Any:
    """Return a whole number as such; a data frame holds it as a real one where others of its column are missing."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(header: Iterable[str], lines: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([spell(value) for value in line] for line in lines)
    return text.getvalue()
