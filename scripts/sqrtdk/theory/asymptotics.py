"""Softmax over n independent Gaussian logits as n grows: laws of the hot and of the frozen phase, as functions of s.

Below s_c = √(2 ln n) very many keys share the weight (Derrida 1981). Above it the weights are those of the
Poisson–Dirichlet law PD(m, 0) with m = s_c/s (Pitman & Yor 1997): a few keys hold nearly all. Both hold up to terms of
order 1/ln n; the exact averages at finite n are in `random_energy`. Every function takes n >= 2 and an array of
standard deviations s, and returns a dict from measure to array, NaN where s is outside its phase.
"""

import math
from typing import Any

import numpy as np
from scipy import special

FORMULA_KEYS = 16
"""Fewest keys for which `frozen_crossover` is right to a few per cent."""


def critical_spread(n_keys: int) -> float:
    """Return s_c = √(2 ln n), the standard deviation of the logits at which few keys begin to hold the weight."""
    return float(np.sqrt(2 * np.log(n_keys)))


def threshold(n_keys: int) -> float:
    """Return b_n with n Φ̄(b_n) = 1: one of n standard normal numbers is expected above it."""
    return float(-special.ndtri(1 / n_keys))


def hazard(n_keys: int) -> float:
    """Return a_n = n φ(b_n), the rate at which the largest of n normal numbers thin out; a_n/s_c tends to 1."""
    return float(n_keys * np.exp(-(threshold(n_keys) ** 2) / 2) / np.sqrt(2 * np.pi))


def frozen_crossover(n_keys: int) -> float | None:
    """Return the d_k above which the median of ‖J‖_F is smaller without a scale than with 1/√d_k.

    That is a_n² (1 + ½ log2(n/e))², from its law once frozen, 2^{1 − s/a_n}, and its size √(e/n) at s = 1; to a few per
    cent from FORMULA_KEYS keys on, and None for fewer.
    """
    if n_keys < FORMULA_KEYS:
        return None
    return hazard(n_keys) ** 2 * (1 + math.log2(n_keys / math.e) / 2) ** 2


def hot(n_keys: int, spread: np.ndarray) -> dict[str, np.ndarray]:
    """Return the laws of the hot phase: averages with Z in place of its mean n e^{s²/2}.

    E Σp^k = n^{1−k} e^{(k² − k)s²/2} needs k s² < ln n + s²/2, that is s < s_c/√3 for k = 2 and s_c/√5 for k = 3; the
    other measures, which hold a Σp², end with it too. Only ln Z goes on to s_c.
    """
    s, critical = np.asarray(spread, float), critical_spread(n_keys)
    pairs, triples = (np.where(s < critical / root, s, np.nan) ** 2 for root in (3**0.5, 5**0.5))
    participation = np.exp(pairs) / n_keys
    return {
        "entropy": np.log(n_keys) - pairs / 2 - np.expm1(pairs) / (2 * n_keys) + pairs * participation,
        "participation_ratio": participation,
        "cube": np.exp(3 * triples) / n_keys**2,
        "jacobian_frobenius": np.sqrt(participation),
        "jacobian_trace": 1 - participation,
        "log_partition": np.log(n_keys) + np.where(s < critical, s, np.nan) ** 2 / 2,
    }


def frozen(n_keys: int, spread: np.ndarray) -> dict[str, np.ndarray]:
    """Return the laws of the frozen phase s > s_c, as n → ∞."""
    s, critical = np.asarray(spread, float), critical_spread(n_keys)
    s = np.where(s > critical, s, np.nan)
    return _poisson_dirichlet(critical / s) | {"log_partition": s * critical}


def hazard_corrected(n_keys: int, spread: np.ndarray) -> dict[str, np.ndarray]:
    """Return the laws of the frozen phase with a_n in place of s_c, where s > a_n.

    The largest logits are then s times a Poisson process of intensity a_n e^{−a_n(x − b_n)}. Its Z is a one-sided
    stable variable, whose E ln Z is exact; the gap of the two largest logits is exponential with mean s/a_n, and where
    it is large ‖J‖_F = 2e^{−gap}: hence the median of ‖J‖_F.
    """
    s, rate = np.asarray(spread, float), hazard(n_keys)
    s = np.where(s > rate, s, np.nan)
    m = rate / s
    stable = special.gammaln(1 - m) / m + np.euler_gamma * (1 / m - 1)
    return _poisson_dirichlet(m) | {
        "log_partition": s * threshold(n_keys) + stable,
        "jacobian_median": 2 ** (1 - 1 / m),
    }


def _poisson_dirichlet(m: np.ndarray) -> dict[str, np.ndarray]:
    """Return averages over PD(m, 0), from E Σp^k = Γ(k − m)/(Γ(1 − m) Γ(k)) and E (Σp²)² = (1 − m)(3 − 2m)/3."""
    return {
        "entropy": special.psi(1) - special.psi(1 - m),
        "participation_ratio": 1 - m,
        "cube": (1 - m) * (2 - m) / 2,
        "jacobian_frobenius": np.sqrt(m * (1 - m) / 3),
        "jacobian_trace": m,
    }


APPROXIMATIONS = {"hot": hot, "frozen": frozen, "hazard": hazard_corrected}
TOLERANCES = (0.05, 0.1)


def ranges(n_keys: int, spread: np.ndarray, exact: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Measure where each approximation is good: a row for each approximation, measure and tolerance.

    Args:
        spread: increasing standard deviations. exact: measure -> exact values at them.

    Returns:
        Rows with the ends of the longest run of `spread` (in ratio) within the tolerance, NaN for none, and the largest
        relative error within the approximation's phase and where it is.
    """
    rows = []
    for name, law in APPROXIMATIONS.items():
        values = law(n_keys, spread)
        for measure in exact.keys() & values.keys():
            error = np.abs(values[measure] / exact[measure] - 1)
            there = np.flatnonzero(np.isfinite(error))
            worst = there[np.argmax(error[there])] if len(there) else None
            for tolerance in TOLERANCES:
                low, high = _longest_run(spread, error <= tolerance)
                rows.append(
                    dict(n_keys=n_keys, measure=measure, approximation=name, tolerance=tolerance)
                    | dict(critical_logit_std=critical_spread(n_keys), from_logit_std=low, to_logit_std=high)
                    | dict(worst=np.nan if worst is None else float(error[worst]))
                    | dict(worst_logit_std=np.nan if worst is None else float(spread[worst]))
                )
    return sorted(rows, key=lambda row: list(exact).index(row["measure"]))


def _longest_run(spread: np.ndarray, good: np.ndarray) -> tuple[float, float]:
    """Return the ends of the run of true values that covers the largest ratio."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], good, [False]])))
    runs = [(float(spread[first]), float(spread[end - 1])) for first, end in zip(edges[::2], edges[1::2], strict=True)]
    return max(runs, key=lambda run: run[1] / run[0], default=(np.nan, np.nan))
