"""At which d_k the unscaled gradient falls below the scaled one, and what of their ratio is the scale factor itself."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sqrtdk.statistics.intervals import t_quantile_by_series
from sqrtdk.theory import asymptotics
from sqrtdk.variants.notation import parse

PLAIN, SCALED = "none", "1/sqrt(d_k)"
MEASURES = ("jacobian_frobenius", "grad_logits", "grad_query")
QUANTITIES = ("median", "rms")


def crossing(d_k: Iterable[int], log_ratio: Iterable[float], se: Iterable[float], width: float) -> dict[str, Any]:
    """Return where a ratio that depends on d_k falls below 1 for good: d_k_star, ci_low, ci_high, or the reason.

    Between neighbouring widths the logarithm of the ratio is taken to be linear in √d_k, as that of the median is once
    the rows are frozen. The interval comes from both errors through the slope.

    Args:
        d_k: widths in ascending order. log_ratio, se: of independent estimates.
        width: standard errors in half a 95 % interval.
    """
    x, y, error = np.sqrt(np.array([*d_k], float)), np.array([*log_ratio]), np.array([*se])
    nowhere = dict.fromkeys(("d_k_star", "ci_low", "ci_high"))
    above = np.flatnonzero(~(y < 0))
    if not len(above):
        return nowhere | {"reason": "below at every width"}
    i = int(above[-1])
    if i == len(y) - 1:
        return nowhere | {"reason": "not below at the largest width"}
    if y[i] == 0 and i == 0:
        return nowhere | {"reason": "below from the second width on"}
    share = y[i] / (y[i] - y[i + 1])
    star = x[i] + share * (x[i + 1] - x[i])
    reach = width * math.hypot((1 - share) * error[i], share * error[i + 1]) * (x[i + 1] - x[i]) / (y[i] - y[i + 1])
    return {
        "d_k_star": float(star**2),
        "ci_low": float(max(star - reach, 0.0) ** 2),
        "ci_high": float((star + reach) ** 2),
        "reason": None,
    }


def frozen_crossover(n_keys: int) -> float:
    """Return d_k* of the median of ‖J‖_F from its law once frozen, 2^{1 − s/a_n}, and its size √(e/n) at s = 1.

    a_n² (1 + ½ log2(n/e))² with the hazard a_n of `asymptotics`; to a few per cent from 16 keys on.
    """
    return asymptotics.hazard(n_keys) ** 2 * (1 + math.log2(n_keys / math.e) / 2) ** 2


def crossovers(
    sizes: Mapping[tuple[Any, ...], Mapping[tuple[Any, ...], tuple[float, float, int]]],
) -> list[dict[str, Any]]:
    """Return the rows of the table of crossovers.

    Args:
        sizes: (ensemble, n_keys, measure, quantity) -> (d_k, scaling) -> (value, se, n_blocks). The error of a median
            is that of its logarithm times the median. Both rules see the same draws; their errors are added as if
            they were independent, which is too much where they are correlated.
    """
    rows = []
    for (ensemble, n_keys, measure, quantity), cells in sizes.items():
        widths = sorted({d_k for d_k, _ in cells if (d_k, PLAIN) in cells and (d_k, SCALED) in cells})
        found = dict.fromkeys(("d_k_star", "ci_low", "ci_high")) | {"reason": "one of the two scale rules is missing"}
        if widths:
            pairs = [(cells[d_k, PLAIN], cells[d_k, SCALED]) for d_k in widths]
            if any(not scaled[0] > 0 for _, scaled in pairs):
                found["reason"] = "the scaled gradient is zero"
            else:
                ratio = [_log_ratio(*pair) for pair in pairs]
                reach = t_quantile_by_series(min(cell[2] for cell in sum(pairs, ())))
                found = crossing(widths, [log for log, _ in ratio], [se for _, se in ratio], reach)
        formula = frozen_crossover(n_keys) if (measure, quantity) == ("jacobian_frobenius", "median") else None
        key = {"ensemble": ensemble, "n_keys": n_keys, "measure": measure, "quantity": quantity}
        rows.append(key | found | {"d_k_formula": formula})
    return rows


def _log_ratio(plain: tuple[Any, ...], scaled: tuple[Any, ...]) -> tuple[float, float]:
    """Return ln(plain/scaled) and its standard error; a ratio of 0 counts as one of e⁻⁶⁰⁰."""
    ratio = plain[0] / scaled[0]
    se = math.hypot(plain[1] / plain[0], scaled[1] / scaled[0]) if plain[0] > 0 else 0.0
    return math.log(ratio) if ratio > 0 else -600.0, se


def decomposition(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Split the root mean square gradient of the query, over that with 1/√d_k, into factors.

    total = scale_part · softmax_part · rest: the ratio of the factors c, that of the root mean square ‖J‖_F (measured
    by the gradient of the logits), and what is left, the part of a gradient along the query and the dependence of
    Jacobian and keys. Exactly, for Gaussian keys, E‖g_q‖² = c²(d_k − 1) E‖J‖²_F + E[‖Jz‖²/‖q‖²].

    Args:
        rows: the table of gradients, with numbers; se, estimate and theory may be None.
    """
    cells = {
        (row["ensemble"], row["d_k"], row["n_keys"], row["scaling"], row["measure"]): row
        for row in rows
        if row["measure"] in ("grad_logits", "grad_query")
    }
    found = []
    for (ensemble, d_k, n_keys, scaling, measure), query in cells.items():
        place = ensemble, d_k, n_keys
        scaled_query, scaled_logits = (cells.get((*place, SCALED, name)) for name in ("grad_query", "grad_logits"))
        logits = cells[(*place, scaling, "grad_logits")]
        if measure != "grad_query" or scaling == SCALED or scaled_query is None or scaled_logits is None:
            continue
        factor = parse(scaling).factor(d_k, n_keys)
        if factor is None:
            continue
        total, total_se, exact_total = _ratio(query, scaled_query)
        softmax, softmax_se, exact_softmax = _ratio(logits, scaled_logits)
        scale = factor / parse(SCALED).constant(d_k, n_keys)
        rest = rest_se = exact_rest = None
        if total and softmax:
            rest = total / (scale * softmax)
            assert total_se is not None
            assert softmax_se is not None
            rest_se = rest * math.hypot(total_se / total, softmax_se / softmax)
        if exact_total and exact_softmax:
            exact_rest = exact_total / (scale * exact_softmax)
        row = {"ensemble": ensemble, "d_k": d_k, "n_keys": n_keys, "scaling": scaling, "measure": measure}
        row |= {"total": total, "total_se": total_se, "exact_total": exact_total, "scale_part": scale}
        row |= {"softmax_part": softmax, "softmax_part_se": softmax_se, "exact_softmax_part": exact_softmax}
        found.append(row | {"rest": rest, "rest_se": rest_se, "exact_rest": exact_rest})
    return found


def _ratio(row: Mapping[str, Any], reference: Mapping[str, Any]) -> tuple[float | None, float | None, float | None]:
    """Return the ratio of two root mean squares, its standard error as if they were independent, and the exact one."""
    if not reference["estimate"]:
        return None, None, None
    value = row["estimate"] / reference["estimate"]
    se = math.hypot(row["se"], value * reference["se"]) / reference["estimate"]
    exact = row["theory"] / reference["theory"] if row["theory"] is not None and reference["theory"] else None
    return value, se, exact
