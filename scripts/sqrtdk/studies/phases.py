"""Where attention of standard normal queries and keys is frozen onto one key: exact maps over width and context length.

Half-frozen is where E Σp² = ½. All means are over ‖q‖, whose square is chi-square with d_k degrees of freedom.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqrtdk.theory import gaussian_rows
from sqrtdk.theory.asymptotics import critical_spread
from sqrtdk.theory.gaussian_rows import standard_normal
from sqrtdk.theory.random_energy import Interpolated
from sqrtdk.variants.notation import parse

D_K = sorted({round(2 ** (i / 2)) for i in range(25)})
"""Widths of the map, half an octave apart."""
HALF = 0.5  # ASSUME
"""From this mean participation on a row counts as frozen."""
ENTROPIES = (0.25, 0.5, 0.75, 0.9)
"""Mean entropies over ln n for which the scale is sought, at ENTROPY_D_K."""
ENTROPY_D_K = (16, 64, 128, 256)
_SCALES = 1e-6, 1e2
_WIDTHS = 0.1, 1e5


def phase_map(averages: Mapping[int, Interpolated], scalings: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row for each scale rule, number of keys and width: how many keys share the attention.

    effective_keys is 1/E Σp², effective_share that over n, and frozen where E Σp² is at least ½. No row where no scale
    rule is a constant factor.
    """
    rows = []
    for scaling in scalings:
        for n, averages_of in averages.items():
            for d_k in D_K:
                factor = parse(scaling).constant(d_k, n)
                found = gaussian_rows.measures(standard_normal(d_k), n, factor, averages_of)
                if not found:  # a factor beyond the tabulated spreads
                    continue
                participation = found["participation_ratio"]
                row = {"d_k": d_k, "n_keys": n, "scaling": scaling, "logit_std": factor * math.sqrt(d_k)}
                row |= {"participation": participation, "effective_keys": 1 / participation}
                row |= {"effective_share": 1 / participation / n, "normalised_entropy": found["normalised_entropy"]}
                rows.append(row | {"phase": "hot" if participation < HALF else "frozen"})
    return rows


def freezing_frontier(averages: Mapping[int, Interpolated]) -> list[dict[str, Any]]:
    """Return for each number of keys the spread, and the widths of unscaled heads, at which a row is half-frozen.

    Of two keys Σp² is never below ½, so that they have none.
    """
    return [{"n_keys": n, "critical_std": critical_spread(n), **_half(n, of)} for n, of in averages.items()]


def _half(n_keys: int, averages_of: Interpolated) -> dict[str, Any]:
    if n_keys < 3:
        return dict.fromkeys(("half_std", "half_d_k_fixed_norm", "least_d_k_fixed_norm", "half_d_k", "least_d_k"))
    std = solve(lambda s: float(averages_of("participation", s)), HALF, *_SCALES)
    width = solve(lambda d: gaussian_rows.mean(standard_normal(d), 1.0, averages_of, "participation"), HALF, *_WIDTHS)
    return {
        "half_std": std,
        "half_d_k_fixed_norm": std**2,
        "least_d_k_fixed_norm": math.ceil(std**2),
        "half_d_k": width,
        "least_d_k": math.ceil(width),
    }


def entropy_scales(averages: Mapping[int, Interpolated]) -> list[dict[str, Any]]:
    """Return the scale c*(n, d_k) that gives each chosen mean entropy, with the entropy that it does give."""
    return [row for n, of in averages.items() for d_k in ENTROPY_D_K for row in _entropy_rows(n, d_k, of)]


def _entropy_rows(n_keys: int, d_k: int, averages_of: Interpolated) -> list[dict[str, Any]]:
    mixed, most = standard_normal(d_k), math.log(n_keys)

    def entropy(scale: float) -> float:
        return gaussian_rows.mean(mixed, scale, averages_of, "entropy") / most

    rows = []
    for wanted in ENTROPIES:
        scale = solve(entropy, wanted, *_SCALES)
        row = {"n_keys": n_keys, "d_k": d_k, "normalised_entropy": wanted, "scale": scale}
        rows.append(row | {"scale_times_sqrt_d_k": scale * math.sqrt(d_k), "achieved": entropy(scale)})
    return rows


def solve(function: Callable[[float], float], value: float, low: float, high: float) -> float:
    """Return where a monotone function takes a value between two positive numbers, found on their logarithms."""
    from scipy.optimize import brentq

    return math.exp(brentq(lambda x: function(math.exp(x)) - value, math.log(low), math.log(high), xtol=1e-12))
