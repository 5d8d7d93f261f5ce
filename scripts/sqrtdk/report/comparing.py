"""Whether two numbers differ in the words of the report."""

import math

from sqrtdk.report.tables.cells import missing

DISTINCT = 3.0
"""Two numbers differ, in the words of the report, when they are more than this many combined standard errors apart."""
MARGIN = 0.1
"""A head's logits count as having standard deviation 1 within this margin."""


def compare(value: float, se: float, other: float, other_se: float) -> str:
    """Return `larger`, `smaller` or `level` (not told apart): a difference counts beyond DISTINCT combined errors.

    Without a number or an error on both sides they are not told apart.
    """
    if not abs(value - other) > DISTINCT * math.hypot(se, other_se):
        return "level"
    return "larger" if value > other else "smaller"


def agreement(value: float, se: float, exact: float) -> str:
    """Return `agrees` or `differs` against an exact value, `alone` where there is none, `unsure` without an error."""
    if missing(exact) or missing(se):
        return "alone" if missing(exact) else "unsure"
    return "agrees" if compare(value, se, exact, 0.0) == "level" else "differs"
