"""Local exponents: the slope of ln V against ln d_k between neighbouring widths, where one global power law is too few.

A crossover from d_k to d_k² and an exponent that no power law has at finite d_k are seen here and nowhere in one fit.
"""

from typing import Any

import numpy as np
import pandas as pd

from sqrtdk.results.picking import simulated
from sqrtdk.sampling.laws import usable
from sqrtdk.statistics.intervals import t_quantile, welch_dof

QUANTITIES = ("variance", "interquartile_range")
_NUMBERS = ("exponent", "se", "ci_low", "ci_high", "ci_dof", "exact", "weight")


def local_exponents(moments: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each simulated ensemble, quantity and pair of neighbouring d_k of a moments table.

    exponent = ln(V_high / V_low) / ln(d_k_high / d_k_low), its se by the errors of both ends (delta method),
    its 95 % interval by Student's t with the Welch-Satterthwaite degrees of freedom. Neighbouring exponents share a
    width, so their errors are correlated (negatively). `exact` is the same slope of the exact values. `weight` is the
    weight with which the pair enters the exponent of the power law over all d_k: weights sum to 1, and
    sum(weight * exponent) is that exponent. A missing end leaves the numbers empty and says so in `reason`.
    """
    rows = [
        row
        for name, cells in simulated(moments).groupby("ensemble", sort=False)
        for quantity in QUANTITIES
        for row in _pairs(name, quantity, cells.sort_values("d_k"))
    ]
    frame = pd.DataFrame(rows)
    return frame.astype(dict.fromkeys(_NUMBERS, float)) if rows else frame


def _pairs(name: str, quantity: str, cells: pd.DataFrame) -> list[dict[str, Any]]:
    d_k, value, se = (cells[column].to_numpy(float) for column in ("d_k", quantity, f"{quantity}_se"))
    exact = cells.get(f"exact_{quantity}", pd.Series(np.nan, cells.index)).to_numpy(float)
    n_blocks, weights, rows = cells["n_blocks"].to_numpy(float), _weights(quantity, cells), []
    for i in range(d_k.size - 1):
        pair = slice(i, i + 2)
        row = {"ensemble": name, "quantity": quantity, "d_k_low": int(d_k[i]), "d_k_high": int(d_k[i + 1])}
        row |= dict.fromkeys(_NUMBERS) | {"reason": _refusal(cells.iloc[pair], quantity)}
        row["exact"] = _slope(d_k[pair], exact[pair]) if np.all(exact[pair] > 0) else None
        if not row["reason"]:
            estimate, error, dof = local_exponent(d_k[pair], value[pair], se[pair], n_blocks[pair])
            half = t_quantile(dof) * error
            row |= {"exponent": estimate, "se": error, "ci_low": estimate - half, "ci_high": estimate + half}
            row |= {"ci_dof": dof, "weight": weights[i]}
        rows.append(row)
    return rows


def local_exponent(d_k: np.ndarray, values: np.ndarray, se: np.ndarray, n_blocks: np.ndarray) -> tuple[Any, ...]:
    """Return the exponent between two widths, its standard error and degrees of freedom; arguments of shape (2,)."""
    parts = (se / values / np.log(d_k[1] / d_k[0])) ** 2
    return _slope(d_k, values), np.sqrt(parts.sum()), welch_dof(parts, 1.0 / (n_blocks - 1.0))


def _slope(d_k: np.ndarray, values: np.ndarray) -> float:
    return np.log(values[1] / values[0]) / np.log(d_k[1] / d_k[0])


def _refusal(pair: pd.DataFrame, quantity: str) -> str:
    """Say why there is no exponent between two widths. One end may be known exactly (Rademacher at d_k = 1)."""
    value, se = pair[quantity].to_numpy(float), pair[f"{quantity}_se"].to_numpy(float)
    if np.all(value > 0) and np.all(np.isfinite(se)) and np.any(se > 0):
        return ""
    return usable(pair, quantity)[1]


def _weights(quantity: str, cells: pd.DataFrame) -> np.ndarray:
    """Return each pair's weight in the slope of the weighted straight line through all usable ln V against ln d_k.

    The slope is a weighted sum of the heights, and each height the first one plus the steps up to it.
    """
    x = np.log(cells["d_k"].to_numpy(float))
    fitted = cells["d_k"].isin(usable(cells, quantity)[0]["d_k"]).to_numpy()
    if fitted.sum() < 2:
        return np.full(max(x.size - 1, 0), np.nan)
    weight = np.zeros(x.size)
    value, se = (cells[column].to_numpy(float)[fitted] for column in (quantity, f"{quantity}_se"))
    weight[fitted] = (value / se) ** 2
    moment = weight * (x - np.average(x, weights=weight))
    beyond = np.cumsum(moment[::-1])[::-1][1:]
    return np.diff(x) * beyond / np.sum(moment * x)
