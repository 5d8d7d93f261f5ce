"""A small table of alternatives, simulated in earnest: it costs less than inventing one."""

import functools

import pandas as pd

from sqrtdk.studies import alternatives
from sqrtdk.variants import notation

EXTRA = ("none | soft_cap(cap=5)", "none | hard_clip(limit=2)", "none | sparsemax", "1/sqrt(d_k) | softmax1")


@functools.lru_cache
def _table(d_k: tuple, n_keys: tuple) -> pd.DataFrame:
    names = notation.all_names(EXTRA)
    table = pd.DataFrame([row for width in d_k for row in alternatives.simulate(width, n_keys, names, seed=1)])
    table.insert(1, "kind", table["variant"].map(notation.kind))
    return table.astype(dict.fromkeys(("median", "median_se", "exact", "limit"), float))


def table(d_k=(4, 64), n_keys=(8,)) -> pd.DataFrame:
    """Return alternatives.csv of a small run, as a fresh copy."""
    return _table(tuple(d_k), tuple(n_keys)).copy()
