"""Ensembles put together for figures of many: those with one law, and how the variance of each grows in the end."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

PROPORTIONAL, FASTER, SLOWER = "proportional", "faster", "slower"
_SAME = 1e-9
_FLAT = 0.03
"""A variance counts as proportional to d_k where its exponent at the widest heads is within this of 1."""


def alike(table: pd.DataFrame, column: str = "exact") -> list[list[str]]:
    """Return the ensembles in groups, in order of first appearance; in a group the exact values agree at every width.

    An ensemble that lacks a value somewhere is alone.
    """
    groups: list[tuple[dict[str, Any], list[str]]] = []
    for name, cells in table.groupby("ensemble", sort=False):
        law = dict(zip(cells["d_k"], cells[column], strict=True))
        for other, members in groups:
            # Some ensembles do not exist at some widths; where both do they must agree, and at most of them.
            shared = other.keys() & law.keys()
            if 2 * len(shared) > max(len(other), len(law)) and all(_agree(law[d_k], other[d_k]) for d_k in shared):
                members.append(name)
                break
        else:
            groups.append((law, [name]))
    return [members for _, members in groups]


def _agree(value: float, other: float) -> bool:
    return abs(value - other) <= _SAME * abs(other)


def end_slope(d_k: Iterable[int], values: Iterable[float]) -> float | None:
    """Return the slope of ln values against ln d_k between the two widest heads that have one."""
    pairs = sorted((width, value) for width, value in zip(d_k, values, strict=True) if value > 0)
    if len(pairs) < 2:
        return None
    (low, first), (high, last) = pairs[-2:]
    return math.log(last / first) / math.log(high / low)


def kinds(table: pd.DataFrame) -> dict[str, str]:
    """Return how each ensemble's variance grows at the widest heads: exact, or measured where there is no exact one.

    An ensemble without a variance is left out, one with a single width counts as proportional.
    """
    growths = {}
    for name, cells in table.groupby("ensemble", sort=False):
        values = cells["exact"] if cells["exact"].notna().all() else cells["variance"]
        if not (values > 0).any():
            continue
        slope = end_slope(cells["d_k"], values)
        growths[name] = PROPORTIONAL if slope is None or abs(slope - 1) <= _FLAT else FASTER if slope > 1 else SLOWER
    return growths
