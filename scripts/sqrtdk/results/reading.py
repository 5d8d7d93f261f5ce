"""Tables of results/ read with the types of their description: a name stays text, whatever it looks like."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from sqrtdk.results import described, writing
from sqrtdk.results.columns import NUMBER, TEXT, TRUTH, WHOLE, Field

if TYPE_CHECKING:
    import pandas as pd

_TRUTHS = {"true": True, "false": False}
_VALUES: dict[str, Callable[[str], Any]] = {TEXT: str, WHOLE: int, NUMBER: float, TRUTH: _TRUTHS.__getitem__}


def tables(paths: Iterable[Path]) -> dict[str, pd.DataFrame]:
    """Read tables of results/ into data frames by the stem of their file names."""
    return {Path(path).stem: table(path) for path in paths}


def table(path: Path) -> pd.DataFrame:
    """Read a table of results/, named as there, into a data frame.

    Numbers are float64, whole numbers int64 and truth values bool. An empty cell is NaN, which makes whole numbers
    float64 and truth values object. Raises ValueError, naming the column, where the columns are not those of the
    description or hold another type.
    """
    with Path(path).open(encoding="utf-8", newline="") as file:
        return _frame(Path(path).stem, file)


def frame(name: str, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows of a table as the data frame that is read where they were written."""
    return _frame(name, io.StringIO(writing.table_text(name, rows), newline=""))


def rows(path: Path) -> list[dict[str, Any]]:
    """Read a table of results/ as a dictionary for each row, of str, int, float and bool; an empty cell is None.

    Raises ValueError as `table` does.
    """
    name, found = Path(path).stem, []
    with Path(path).open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        header = next(lines, [])
        columns = _declared(name, header)
        for line in lines:
            row = {}
            for column, spelled in zip(header, line, strict=True):
                try:
                    row[column] = _VALUES[columns[column].type](spelled) if spelled else None
                except (ValueError, KeyError):
                    raise _mistake(name, column, columns[column].type) from None
            found.append(row)
    return found


def texts(path: Path) -> list[dict[str, str]]:
    """Read any CSV file, as that of a cell, as a dictionary of texts for each row: as it is spelled."""
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _frame(name: str, file: TextIO) -> pd.DataFrame:
    import pandas as pd

    spelled = {column: str for column, said in described.columns(name).items() if said.type in (TEXT, TRUTH)}
    try:
        found = pd.read_csv(file, dtype=spelled, keep_default_na=False, na_values=[""])
    except pd.errors.EmptyDataError:
        found = pd.DataFrame()
    for column, said in _declared(name, found.columns).items():
        if said.type != TEXT:
            found[column] = _typed(name, found[column], said.type)
    return found


def _typed(name: str, values: pd.Series, kind: str) -> pd.Series:
    known = values.dropna()
    if kind == TRUTH and known.isin(_TRUTHS).all():
        return values.map(_TRUTHS).astype(bool if len(known) == len(values) else object)
    if kind != TRUTH and (known.empty or known.dtype.kind in "iuf"):
        if kind == NUMBER or known.empty:
            return values.astype(float)
        if known.dtype.kind != "f" or (known % 1 == 0).all():
            return values
    raise _mistake(name, str(values.name), kind)


def _declared(name: str, header: Iterable[str]) -> Mapping[str, Field]:
    columns = described.columns(name)
    if [*header] != [*columns]:
        differing = ", ".join(sorted({*header} ^ {*columns})) or "their order"
        raise ValueError(f"{name}.csv differs from its description in its columns: {differing}")
    return columns


def _mistake(name: str, column: str, kind: str) -> ValueError:
    return ValueError(f"{name}.csv: {column} holds something that is no {kind}")
