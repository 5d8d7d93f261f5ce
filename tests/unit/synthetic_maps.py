"""Maps of freezing from a smooth made-up law, and attention matrices, for tests of what reads them."""

import math

import pandas as pd

from sqrtdk.studies import attention_maps, one_query, phases, typical_rows
from sqrtdk.theory.asymptotics import critical_spread

N_KEYS = (2, *(4**power for power in range(1, 11)))
FACTORS = {"none": lambda d: 1.0, "1/sqrt(d_k)": lambda d: d**-0.5, "1/d_k": lambda d: 1 / d}


def _participation(n: int, s: float) -> float:
    """From 1/n to 1, one half at 1.2 √(2 ln n) (log2(n) − 1)^¼."""
    return n ** (-1 / (1 + (s / (1.2 * critical_spread(n))) ** 4))


def phase_map(scalings) -> pd.DataFrame:
    rows = []
    for scaling in scalings:
        for n in N_KEYS:
            for d in phases.D_K:
                s = FACTORS[scaling](d) * d**0.5
                p = _participation(n, s)
                row = dict(d_k=d, n_keys=n, scaling=scaling, logit_std=s, participation=p, effective_keys=1 / p)
                row |= dict(effective_share=1 / p / n, normalised_entropy=1 - p, phase="hot" if p < 0.5 else "frozen")
                rows.append(row)
    return pd.DataFrame(rows)


def freezing_frontier() -> pd.DataFrame:
    rows = []
    for n in N_KEYS:
        std = 1.2 * critical_spread(n) * (math.log2(n) - 1) ** 0.25 if n > 2 else math.nan
        row = dict(n_keys=n, critical_std=critical_spread(n), half_std=std, half_d_k_fixed_norm=std**2)
        rows.append(row | dict(least_d_k_fixed_norm=std**2 // 1 + 1, half_d_k=std**2 + 1, least_d_k=std**2 // 1 + 2))
    return pd.DataFrame(rows)


def entropy_scale() -> pd.DataFrame:
    return pd.DataFrame(
        dict(n_keys=n, d_k=d, normalised_entropy=h, scale=s / d**0.5, scale_times_sqrt_d_k=s, achieved=h)
        for n in N_KEYS
        for d in phases.ENTROPY_D_K
        for h in phases.ENTROPIES
        for s in [2 + math.log(n) / 8 - h]
    )


def tables(scalings=tuple(FACTORS)) -> dict[str, pd.DataFrame]:
    return {
        "phase_map": phase_map(scalings),
        "freezing_frontier": freezing_frontier(),
        "entropy_scale": entropy_scale(),
        "one_query": pd.DataFrame(one_query.one_query(5)),
        "attention_maps": pd.DataFrame(attention_maps.attention_maps(5)),
        "typical_rows": pd.DataFrame(typical_rows.typical_rows((4, 16, 64, 256), (16, 64, 256), scalings, 6000, 5)),
    }
