"""The opening: one query over the same keys, whose row is widened with the head by a slider of the page."""

from typing import Any

import pandas as pd

from sqrtdk.report.setting import WANTED_D_K, WANTED_SCALING
from sqrtdk.results.grid import nearest

DIGITS = 4
"""Decimals of a logit, with which weights are drawn and spelled."""


def one_query(frame: pd.DataFrame) -> dict[str, Any] | None:
    """Return the widths that the slider offers and, by number of keys, the logits with the factor, None without any.

    They are the same at every width; without the factor they are larger by its root.
    """
    rows = frame[frame["scaling"] == WANTED_SCALING] if len(frame) else frame
    if rows.empty:
        return None
    widths = sorted(set(rows["d_k"].tolist()))
    start = nearest(widths, WANTED_D_K)
    logits = {
        str(n): [round(one, DIGITS) for one in part.sort_values("key")["logit"]]
        for n, part in rows[rows["d_k"] == start].groupby("n_keys")
    }
    return {"d_k": widths, "start": start, "logits": logits}
