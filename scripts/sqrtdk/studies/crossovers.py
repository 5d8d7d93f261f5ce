"""At which d_k the unscaled gradient falls below the scaled one, and what of their ratio is the scale factor itself."""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sqrtdk.statistics import crossings
from sqrtdk.statistics.intervals import t_quantile_by_series
from sqrtdk.theory import asymptotics
from sqrtdk.variants.notation import parse

PLAIN, SCALED = "none", "1/sqrt(d_k)"
MEASURES = ("jacobian_frobenius", "grad_logits", "grad_query")
QUANTITIES = ("median", "rms")


def crossing(d_k: Sequence[int], log_ratio: Sequence[float], se: Sequence[float], width: float) -> dict[str, Any]:
    """Return where a ratio that depends on d_k falls below 1 for good: d_k_star, ci_low, ci_high, or the reason.

    Between the widths its logarithm is a cubic in that of d_k; the interval holds what is not known of it.

    Args:
        d_k: widths in ascending order. log_ratio, se: of independent estimates.
        width: standard errors in half a 95 % interval.
    """
    found = crossings.falling(np.log(d_k), np.array(log_ratio, float), np.array(se, float), width, "width")
    ends = {"d_k_star": found.at, "ci_low": found.low, "ci_high": found.high}
    columns: dict[str, Any] = {name: None if end is None else math.exp(end) for name, end in ends.items()}
    return columns | {"reason": found.reason}


def crossovers(
    sizes: Mapping[tuple[Any, ...], Mapping[tuple[Any, ...], tuple[float, float, int]]],
    standard: Container[str] = (),
) -> list[dict[str, Any]]:
    """Return the rows of the table of crossovers.

    Args:
        sizes: (ensemble, n_keys, measure, quantity) -> (d_k, scaling) -> (value, se, n_blocks). The error of a median
            is that of its logarithm times the median. Both rules see the same draws; their errors are added as if
            they were independent, which is too much where they are correlated.
        standard: ensembles whose logits are those of standard normal q and k, for which there is a formula.
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
        known = ensemble in standard and (measure, quantity) == ("jacobian_frobenius", "median")
        formula = asymptotics.frozen_crossover(n_keys) if known else None
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
