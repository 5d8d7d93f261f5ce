"""Tables of softmax over independent Gaussian logits: a small true simulation, exact averages and asymptotic laws."""

import functools

import numpy as np
import pandas as pd

from sqrtdk.theory import asymptotics, energy_grid, random_energy

MEASURES = ("entropy", "participation_ratio", "jacobian_frobenius", "jacobian_trace", "jacobian_median")


def tables(n_keys=(16, 64, 256, 4096), spreads=(0.5, 1, 2, 4, 8, 16), n_draws=30_000, knots=40) -> dict:
    """Return the three tables as fresh copies."""
    return {name: table.copy() for name, table in _tables(tuple(n_keys), tuple(spreads), n_draws, knots).items()}


@functools.lru_cache
def _tables(n_keys, spreads, n_draws, knots):
    grid, curves, ranges = [], [], []
    for n in n_keys:
        for row in energy_grid.simulate(n, spreads, 1, n_draws):
            exact = _exact(n, row["logit_std"]) | {"identity": 0.0}
            grid.append(row | _theory(n, row["logit_std"], row["measure"], exact.get(row["measure"])))
        fine = np.geomspace(0.1, 90, knots)
        every = [_exact(n, float(s)) for s in fine]
        ranges += asymptotics.ranges(n, fine, {m: np.array([x[m] for x in every]) for m in every[0]})
        for s, exact in zip(fine, every, strict=True):
            for measure in MEASURES:
                curves.append(dict(n_keys=n, logit_std=s, measure=measure) | _theory(n, s, measure, exact.get(measure)))
    grid = pd.DataFrame(grid)
    grid["precise"] = grid["precise"].astype(object)
    curves = pd.DataFrame(curves).astype({"exact": float})
    return {"random_energy": grid, "random_energy_curves": curves, "asymptotic_ranges": pd.DataFrame(ranges)}


@functools.lru_cache
def _exact(n, s):
    return energy_grid.exact(vars(random_energy.averages(n, s)))


def _theory(n, s, measure, exact):
    laws = {name: float(law(n, s).get(measure, np.nan)) for name, law in asymptotics.APPROXIMATIONS.items()}
    return {"exact": exact, **laws}
