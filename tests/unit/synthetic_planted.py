"""Tables of the planted key, from approximations and seeded noise, and of the examples, to test what reads them."""

import functools

import numpy as np
import pandas as pd

from sqrtdk.studies import planted_key, tiny_gradients, worked_example
from sqrtdk.variants.notation import parse


def _laws(d: int, rho: float, scaling: str | None, n: int) -> tuple[float, float | None]:
    """Return stand-ins for the exact value and for the approximation."""
    if scaling is None:
        return 1 / (1 + n * np.exp(-(rho**2) * d / 2)), None
    approximation = planted_key.approximation(d, n, rho, parse(scaling).factor(d, n))
    return 0.9 * approximation + 0.1 / n, approximation


def tables(
    widths=(16, 64), cosines=(1, 0.5), scalings=("none", "1/sqrt(d_k)", "1/d_k"), n_keys=(2, 16, 64, 2**20), seed=5
) -> dict[str, pd.DataFrame]:
    """Return the tables of weights and of capacities, simulated at all but the first and the last number of keys."""
    rng = np.random.default_rng(seed)
    keys, capacities = [], []
    for d in widths:
        for rho in cosines:
            for scaling in (*scalings, None):
                measure = "weight" if scaling else "retrieved"
                base = dict(d_k=d, rho=rho)
                for n in n_keys:
                    theory, approximation = _laws(d, rho, scaling, n)
                    seen = n in n_keys[1:-1] or len(n_keys) == 1
                    se = 0.01 * theory * (1 - theory)
                    row = base | dict(n_keys=n, scaling=scaling, measure=measure)
                    row |= dict(estimate=theory + rng.normal(0, se) if seen else np.nan, se=se if seen else np.nan)
                    row |= dict(n_rows=4096 * seen, n_blocks=64 * seen, theory=theory, approximation=approximation)
                    keys.append(row)
                factor = parse(scaling).factor(d, 2) if scaling else 1.0
                formula = planted_key.leading_capacity(d, rho, factor)
                capacity = base | dict(scaling=scaling, measure=measure, capacity=1.2 * formula)
                capacities.append(capacity | dict(formula=formula if scaling else np.nan))
    return {"planted_key": pd.DataFrame(keys), "planted_capacity": pd.DataFrame(capacities)}


@functools.lru_cache(maxsize=1)
def _examples() -> dict[str, pd.DataFrame]:
    return {
        "worked_example": pd.DataFrame(worked_example.table(1000, 1)),
        "tiny_gradients": pd.DataFrame(tiny_gradients.table(1000, 1)),
    }


def examples() -> dict[str, pd.DataFrame]:
    """Return the tables of the worked example and of the tiny gradients from very few rows, as fresh copies."""
    return {name: table.copy() for name, table in _examples().items()}
