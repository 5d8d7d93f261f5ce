"""How tables find the columns of their description."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqrtdk.results.columns import Field, File


def columns(table: str) -> Mapping[str, Field]:
    """Return the columns of `<table>.csv` in their order; raises ValueError where no such file is described."""
    # Not by an import statement, which would make every word of it a part of each program that reads or writes a table.
    files: Mapping[str, File] = importlib.import_module("sqrtdk.results.dictionary").FILES
    if f"{table}.csv" not in files:
        raise ValueError(f"sqrtdk.results.dictionary describes no file {table}.csv")
    return files[f"{table}.csv"].columns
