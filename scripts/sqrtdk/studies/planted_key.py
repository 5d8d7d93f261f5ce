"""One key aligned with the query among independent ones: what weight it gets, exactly and by Monte Carlo.

The planted key is k* = ρ q + √(1 − ρ²) g, all others are N(0, I). Given ‖q‖ its logit is N(cρ‖q‖², c²(1 − ρ²)‖q‖²) and
those of the other keys are independent N(0, c²‖q‖²), so that with φ of `random_energy`

    E p* = ∫ E[a* e^{−a*}] φ(u)^{n−1} du, a* = e^{z* − u},   P(z* largest) = E Φ(ρ‖q‖ + √(1 − ρ²) g)^{n−1}.

Both are averages of F(X)^{n−1} with a distribution function F and a random X, and both are mixed over ‖q‖ ~ χ(d_k).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from sqrtdk.sampling import streams
from sqrtdk.statistics import estimates
from sqrtdk.theory import gaussian_rows, random_energy
from sqrtdk.theory.asymptotics import critical_spread
from sqrtdk.variants.notation import parse

WIDTHS = (16, 64, 256)
N_KEYS = tuple(2**p for p in range(1, 21))
"""Numbers of keys at which the exact values are tabulated."""
SIMULATED = tuple(4**p for p in range(2, 8))
"""Those that are simulated too, where the cost allows."""
N_QUERIES = 64
"""Rows of a block, which share the other keys."""
MIN_BLOCKS, MAX_BLOCKS = 24, 128
NORM_STEP = 0.2
STEP = 0.5
"""Trapezoidal steps of ‖q‖ (finer where the logits are wide) and of u: relative errors are below 1e-6."""
FINEST, WIDE = 4.0, 64.0
"""How much finer ‖q‖ is cut at most unless ρ asks for more, and the spread of logits from which u is cut coarser."""
LARGEST_LOG = 600.0
"""No capacity beyond e to this is searched for."""


@dataclass(frozen=True)
class Power:
    """The average of F(X)^{n−1}: weights of the values of X, which sum to 1, and ln F of each."""

    weight: np.ndarray
    log_below: np.ndarray

    def __call__(self, n_keys: float) -> float:
        """Return the average for `n_keys` >= 1 keys, the planted one included."""
        with np.errstate(under="ignore"):
            return float(self.weight @ np.exp((n_keys - 1) * self.log_below))

    def capacity(self) -> float | None:
        """Return the number of keys at which the average is 1/2, None where there is none below e^LARGEST_LOG."""
        low, high = -20.0, LARGEST_LOG
        if self(1 + math.exp(high)) > 0.5:
            return None
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self(1 + math.exp(middle)) > 0.5 else (low, middle)
        return 1 + math.exp(low)


def weight_law(d_k: int, rho: float, factor: float) -> Power:
    """Return the mean softmax weight of the planted key as a function of the number of keys."""
    weights, logs = [], []
    # The weight passes from 0 to 1 within a few units of the logit cρ‖q‖², or of the spread of the key's own part.
    across = math.sqrt(max(1 - rho**2, 0.0))
    finer = min(factor * math.sqrt(d_k) / 4, max(FINEST, 8 * NORM_STEP * rho / across) if across else math.inf)
    norms = gaussian_rows.norm_nodes(d_k, NORM_STEP / max(1.0, finer))
    for norm, share in zip(*norms, strict=True):
        spread = factor * norm
        own = spread * across
        step = STEP * max(1.0, own / WIDE)
        u = np.arange(-5.0 - 8 * own, 45.0 + 8 * own, step)
        # E a* e^{−a*} is that of one logit of standard deviation `own`, moved to its mean.
        first = random_energy.moments(u, own)[0][0]
        weights.append(share * step * first)
        logs.append(random_energy.log_phi(u + spread * rho * norm, spread)[0])
    weight = np.concatenate(weights)
    return Power(weight / weight.sum(), np.concatenate(logs))


def retrieval_law(d_k: int, rho: float) -> Power:
    """Return the probability that the planted key has the largest weight, the same for every scale factor."""
    norm, share = gaussian_rows.norm_nodes(d_k, NORM_STEP)
    g = np.arange(-8.0, 8.0 + NORM_STEP, NORM_STEP) if rho < 1 else np.zeros(1)
    normal = np.exp(-(g**2) / 2)
    score = rho * norm[:, None] + math.sqrt(max(1 - rho**2, 0.0)) * g
    return Power(np.outer(share, normal / normal.sum()).ravel(), special.log_ndtr(score).ravel())


def approximation(d_k: int, n_keys: int, rho: float, factor: float) -> float:
    """Return 1/(1 + e^{ln Z − cρ d_k}) with the leading free energy ln Z of Derrida's (1981) model.

    With s = c√d_k, ln Z = ln n + s²/2 for s < √(2 ln n) and s √(2 ln n) beyond: e^{cρd}/(e^{cρd} + n e^{c²d/2}) as
    long as many keys share the rest of the weight.
    """
    spread, edge = factor * math.sqrt(d_k), critical_spread(n_keys)
    log_partition = math.log(n_keys) + spread**2 / 2 if spread < edge else spread * edge
    return float(special.expit(factor * rho * d_k - log_partition))


def leading_capacity(d_k: int, rho: float, factor: float) -> float:
    """Return the number of keys at which `approximation` is 1/2: e^{d(cρ − c²/2)} for c <= ρ, else e^{dρ²/2}."""
    c = min(factor, rho)
    return math.exp(d_k * (c * rho - c**2 / 2))


def simulate(
    d_k: int, n_keys: int, cosines: Sequence[float], factors: Sequence[float], n_blocks: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw queries, their planted keys and the other keys, and return means over the rows of each block.

    The rows of a block share the other keys, so that errors belong between blocks. All cosines and factors see the
    same queries and other keys.

    Returns:
        weight of the planted key (cosines, factors, n_blocks), and share of rows in which it is the largest
        (cosines, n_blocks).
    """
    rng = streams.generator(seed, "planted_key", d_k, n_keys)
    own = [streams.generator(seed, "planted_key", d_k, n_keys, repr(float(rho))) for rho in cosines]
    weight = np.empty((len(cosines), len(factors), n_blocks))
    retrieved = np.empty((len(cosines), n_blocks))
    for block in range(n_blocks):
        q = streams.standard_normal(rng, (N_QUERIES, d_k))
        score = q @ streams.standard_normal(rng, (n_keys - 1, d_k)).T
        largest = score.max(axis=1, keepdims=True)
        score -= largest
        top = largest[:, 0].astype(np.float64)
        log_others = [
            factor * top + np.log(np.exp(np.float32(factor) * score).sum(axis=1, dtype=np.float64))
            for factor in factors
        ]
        for i, (rho, stream) in enumerate(zip(cosines, own, strict=True)):
            g = streams.standard_normal(stream, (N_QUERIES, d_k))
            planted = np.vecdot(q, rho * q + math.sqrt(1 - rho**2) * g).astype(np.float64)
            retrieved[i, block] = np.mean(planted > top)
            for j, factor in enumerate(factors):
                weight[i, j, block] = np.mean(special.expit(factor * planted - log_others[j]))
    return weight, retrieved


def table(cosines: Sequence[float], scalings: Sequence[str], n_others: int, seed: int) -> tuple[list[Any], list[Any]]:
    """Return the rows of planted_key.csv and of planted_capacity.csv.

    At most `n_others` other keys are drawn for each d_k and number of keys. Where that is less than MIN_BLOCKS blocks
    of them, and at numbers of keys that are not SIMULATED, the estimate is None.
    """
    keys, capacities = [], []
    for d_k in WIDTHS:
        # A factor may depend on the number of keys, and then the law does, too.
        laws: dict[tuple[float, float | None], Power] = {(rho, None): retrieval_law(d_k, rho) for rho in cosines}
        estimates = {n: _estimates(d_k, n, cosines, scalings, n_others, seed) for n in N_KEYS}
        for rho in cosines:
            for scaling in (*scalings, None):
                for n in N_KEYS:
                    factor = parse(scaling).constant(d_k, n) if scaling else None
                    if factor is not None and (rho, factor) not in laws:
                        laws[rho, factor] = weight_law(d_k, rho, factor)
                    row = dict(d_k=d_k, rho=rho, n_keys=n, scaling=scaling)
                    row |= dict(measure="weight" if scaling else "retrieved")
                    row |= estimates[n].get((rho, scaling), dict(estimate=None, se=None, n_rows=0, n_blocks=0))
                    row |= dict(theory=laws[rho, factor](n))
                    keys.append(
                        row | dict(approximation=None if factor is None else approximation(d_k, n, rho, factor))
                    )
                capacities.append(_capacity(d_k, rho, scaling, laws))
    return keys, capacities


def _estimates(
    d_k: int, n_keys: int, cosines: Sequence[float], scalings: Sequence[str], n_others: int, seed: int
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the Monte-Carlo columns by cosine and scale rule, the rule None for the retrieval; empty if too costly."""
    n_blocks = min(MAX_BLOCKS, n_others // n_keys)
    if n_blocks < MIN_BLOCKS or n_keys not in SIMULATED:
        return {}
    factors = [parse(scaling).constant(d_k, n_keys) for scaling in scalings]
    weight, retrieved = simulate(d_k, n_keys, cosines, factors, n_blocks, seed)
    found = {}
    for i, rho in enumerate(cosines):
        for scaling, values in zip((*scalings, None), (*weight[i], retrieved[i]), strict=True):
            estimate, se = estimates.mean(values)
            found[rho, scaling] = dict(estimate=estimate, se=se, n_rows=n_blocks * N_QUERIES, n_blocks=n_blocks)
    return found


def _capacity(
    d_k: int, rho: float, scaling: str | None, laws: dict[tuple[float, float | None], Power]
) -> dict[str, Any]:
    row = dict(d_k=d_k, rho=rho, scaling=scaling, measure="weight" if scaling else "retrieved")
    factors: set[float | None] = {parse(scaling).constant(d_k, n) for n in N_KEYS} if scaling else {None}
    if len(factors) > 1:
        return row | dict(capacity=None, formula=None)
    factor = factors.pop()
    capacity = laws[rho, factor].capacity()
    return row | dict(capacity=capacity, formula=None if factor is None else leading_capacity(d_k, rho, factor))
