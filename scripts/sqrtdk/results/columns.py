"""What a description of a results file is made of: what it holds, and each column with its type and meaning."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

TEXT, WHOLE, NUMBER, TRUTH = "text", "whole number", "number", "truth value"


class Field(NamedTuple):
    """One column: its type (TEXT, WHOLE, NUMBER or TRUTH) and what it means, in Markdown."""

    type: str
    meaning: str

    @property
    def whole(self) -> bool:
        """Say whether it holds whole numbers."""
        return self.type == WHOLE


class File(NamedTuple):
    """One file or folder of results/: what it holds, in Markdown, and the columns of a table in their order."""

    meaning: str
    columns: Mapping[str, Field] = MappingProxyType({})


def table(meaning: str, /, **columns: Field) -> File:
    """Describe a CSV file with these columns."""
    return File(meaning, columns)


def text(meaning: str) -> Field:
    """Describe a column of text, which stays text: `true`, `null` and `1e5` are names like others."""
    return Field(TEXT, meaning)


def whole(meaning: str) -> Field:
    """Describe a column of whole numbers."""
    return Field(WHOLE, meaning)


def number(meaning: str) -> Field:
    """Describe a column of real numbers, which may be infinite."""
    return Field(NUMBER, meaning)


def truth(meaning: str) -> Field:
    """Describe a column of `true` and `false`."""
    return Field(TRUTH, meaning)
