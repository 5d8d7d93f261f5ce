"""Tables of initialisation, depth and rounding made from formulas and seeded noise, for tests of what reads them."""

import functools
import itertools

import numpy as np
import pandas as pd

from sqrtdk.studies import depth as stacks
from sqrtdk.studies import rounding as precision
from sqrtdk.studies.initialisation import LAYERS

RULES = ("none", "1/sqrt(d_k)")


@functools.lru_cache
def _initialisation(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = []
    for layer in LAYERS:
        for shape in layer.shapes:
            place = dict(group=layer.group, scheme=layer.name, d_model=shape.d_model, d_k=shape.d_k)
            for quantity, exact in layer.exact(shape).items():
                se = 0.002 * exact
                rows.append(place | dict(n_heads=shape.n_heads, quantity=quantity))
                rows[-1] |= dict(estimate=exact + rng.normal(0, se), se=se, exact=exact, n_blocks=64)
    return pd.DataFrame(rows)


def initialisation(seed=5) -> pd.DataFrame:
    return _initialisation(seed).copy()


def depth(rules=RULES, n_layers=6, kinds=6, seed=6) -> pd.DataFrame:
    """Stacks whose tokens align by some law that is not theirs."""
    rng = np.random.default_rng(seed)
    rows = []
    chosen = [(one.norm, one.residual) for one in stacks.VARIANTS[:kinds]]
    for rule, (norm, residual) in itertools.product(rules, chosen):
        for layer in range(n_layers):
            cosine = 1 - np.exp(-layer / (20 if residual else 3))
            size = 2.0**layer if norm == "none" and residual else 1.0
            std = size * (1 - cosine) ** 0.5 * (8 if rule == "none" else 1)
            exact = dict(query_std=size**0.5, logit_std=std, logit_variance_ratio=1.0)
            exact |= dict(normalised_entropy=1 / (1 + std**2 / 4), token_cosine=cosine)
            for measure, value in exact.items():
                se = 0.01 * max(value, 0.01)
                known = value if measure not in ("normalised_entropy", "token_cosine") else np.nan
                rows.append(dict(norm=norm, residual=residual, scaling=rule))
                rows[-1] |= dict(layer=layer + 1, measure=measure, estimate=value + rng.normal(0, se), se=se)
                rows[-1] |= dict(exact=known, n_stacks=16)
    return pd.DataFrame(rows)


def rounding(d_k=(1, 4, 16, 64, 256), rules=RULES, seed=7) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = []
    for d in d_k:
        for rule in rules:
            s = d**0.5 if rule == "none" else 1.0
            for name, form in precision.FORMATS.items():
                unit = 2.0**-form.bits
                share = min(0.5, s / (50 * max(form.largest, 1) ** 0.01)) if s > 3 else 0.0
                values = {("naive_exp", "overflow_share"): share, ("naive_exp", "undefined_rows"): min(1.0, 20 * share)}
                if name in precision.ROUNDED:
                    values |= {("logits", "total_variation"): 0.1 * s * unit, ("logits", "logit_error"): 0.2 * s * unit}
                    values |= {("logits", "overflow_share"): 0.0, ("logits", "undefined_rows"): 0.0}
                    values |= {("inputs", "total_variation"): 0.1 * s * unit, ("inputs", "logit_error"): 0.3 * s * unit}
                    values |= {("probabilities", "total_variation"): 0.1 * unit / s}
                for (place, measure), value in values.items():
                    se = 0.01 * value
                    rows.append(dict(format=name, rounded=place, scaling=rule, d_k=d, n_keys=64, measure=measure))
                    rows[-1] |= dict(estimate=value + rng.normal(0, se), se=se)
                    rows[-1] |= dict(exact=value if place == "naive_exp" else np.nan, n_rows=4000, n_blocks=64)
    return pd.DataFrame(rows)


def frames(rules=RULES, d_k=(1, 4, 16, 64, 256), n_layers=6) -> dict[str, pd.DataFrame]:
    """Return the tables by name."""
    return {"initialisation": initialisation(), "depth": depth(rules, n_layers), "rounding": rounding(d_k, rules)}
