"""What the explore panel shows: for each width, number of keys and scale rule a typical row and its measures."""

from typing import Any

import pandas as pd

from sqrtdk.figures import style
from sqrtdk.report.setting import WANTED_D_K, WANTED_N_KEYS
from sqrtdk.report.tables.cells import missing
from sqrtdk.results.grid import nearest
from sqrtdk.studies.typical_rows import RANKS
from sqrtdk.words import numbers

DIGITS, LEAST = 3, 1e-8
"""Significant digits of a weight that is drawn as a bar, and the smallest that is."""
MEASURES = {
    "entropy": ("softmax_saturation", "entropy", "estimate", "se"),
    "max_weight": ("softmax_saturation", "max_weight", "estimate", "se"),
    "effective_keys": ("softmax_saturation", "effective_keys", "estimate", "se"),
    "jacobian": ("softmax_saturation", "jacobian_frobenius", "estimate", "se"),
    "grad_logits": ("gradient_magnitude", "grad_logits", "estimate", "se"),
    "grad_query": ("gradient_magnitude", "grad_query", "estimate", "se"),
    "grad_query_median": ("gradient_magnitude", "grad_query", "median", "median_se"),
    "grad_key": ("gradient_magnitude", "grad_key", "estimate", "se"),
}
"""Measures shown: table, its measure, and the columns of the number and its standard error."""
_CELL = ["d_k", "n_keys", "scaling"]


def panel(frames: dict[str, pd.DataFrame], ensemble: str) -> dict[str, Any] | None:
    """Return what the page offers and shows, None where no typical row was drawn.

    Cells run over d_k, then n_keys, then scale rules. `weights`, `low` and `high` hold the mean and the 10 % and 90 %
    quantiles over rows, rounded, one for each rank without the zeros at the end; `largest` and `rest` spell the
    mean of the largest weight and of those without a rank together; `measures` hold the numbers of `ensemble` as they
    are spelled, in the order of MEASURES. What was not measured is empty.
    """
    rows = frames["typical_rows"]
    if rows.empty:
        return None
    widths, n_keys = (sorted(set(rows[column].tolist())) for column in ("d_k", "n_keys"))
    rules = style.scalings(rows["scaling"])
    drawn = dict(list(rows.sort_values("first_rank").groupby(_CELL)))
    measured = [_spelled(frames, ensemble, *place) for place in MEASURES.values()]
    found: dict[str, list[Any]] = {name: [] for name in ("weights", "low", "high", "largest", "rest", "measures")}
    for cell in ((d_k, n, rule) for d_k in widths for n in n_keys for rule in rules):
        single = drawn[cell]["first_rank"] == drawn[cell]["last_rank"]
        ranked, rest = drawn[cell][single], drawn[cell][~single]
        for name, column in (("weights", "estimate"), ("low", "q10"), ("high", "q90")):
            found[name].append(_rounded(ranked[column]))
        for name, part in (("largest", ranked.head(1)), ("rest", rest)):
            found[name].append("".join(map(numbers.with_error, part["estimate"], part["se"])))
        found["measures"].append([spelled.get(cell, "") for spelled in measured])
    start = [nearest(widths, WANTED_D_K), nearest(n_keys, WANTED_N_KEYS), rules[0]]
    return {"d_k": widths, "n_keys": n_keys, "scalings": rules, "start": start, "ranks": RANKS, **found}


def _rounded(weights: Any) -> list[float]:
    found = [float(f"{weight:.{DIGITS}g}") if weight >= LEAST else 0 for weight in weights]
    while found and found[-1] == 0:
        del found[-1]
    return found


def _spelled(
    frames: dict[str, Any], ensemble: str, table: str, measure: str, value: str, se: str
) -> dict[tuple[Any, ...], str]:
    rows = frames[table]
    rows = rows[(rows["ensemble"] == ensemble) & (rows["measure"] == measure)]
    found = zip(*(rows[column] for column in (*_CELL, value, se)), strict=True)
    return {tuple(cell): numbers.with_error(number, error) for *cell, number, error in found if not missing(number)}
