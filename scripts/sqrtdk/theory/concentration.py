"""How concentrated a row of n independent Gaussian logits is: its largest weight and its effective number of keys.

With f the density of a logit and φ_z(t) = E[e^{−t e^{z' − z}}; z' < z], the largest weight is 1/Z of the largest key:

    E max p = n ∫ dz f(z) ∫ dt e^{−t} φ_z(t)^{n−1}.

The effective number 1/Σp² is Z² over the sum of e^{2z}, which is the Z of logits twice as wide, with φ of those:

    E 1/Σp² = 1 + n (n − 1) ∫ du (E √a e^{−a})² φ(u)^{n−2}, a = e^{2z − u}.

In the frozen phase the weights follow the Poisson–Dirichlet law PD(m, 0) (Pitman & Yor 1997); m = a_n/s with the hazard
a_n of `asymptotics` is better at finite n than its limit √(2 ln n)/s.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from sqrtdk.theory import random_energy
from sqrtdk.theory.random_energy import STEP

NAMES = ("max_weight", "effective_keys")
KNOTS, FAR_KNOTS = 120, 25
"""Spreads that are integrated: so many up to `random_energy.BENT`, so many beyond."""
WIDTH = 0.1
"""Step of the sum over the largest logit, in standard deviations."""
PANELS = (0.0, 0.08, 0.25, 0.55, 1.0)
"""Where the distances below the largest logit are divided for Gauss–Legendre sums of NODES points each."""
NODES = 24
FARTHEST = 45.0
"""Logits farther than this below the largest add nothing to Z."""


def tabulate(n_keys: Sequence[int]) -> dict[int, random_energy.Interpolated]:
    """Return both averages as functions of the spread, for each number of keys."""
    near, far = np.arcsinh([random_energy.BENT, random_energy.MAX_SPREAD])
    spreads = np.sinh(np.concatenate([np.linspace(0, near, KNOTS), np.linspace(near, far, FAR_KNOTS + 1)[1:]]))
    found = np.array([(max_weight(n_keys, s), effective_keys(n_keys, s)) for s in spreads])
    return {
        n: random_energy.Interpolated({"spread": spreads} | dict(zip(NAMES, found[:, :, i].T, strict=True)), even=False)
        for i, n in enumerate(n_keys)
    }


def max_weight(n_keys: Sequence[int], spread: float) -> list[float]:
    """Return the mean largest weight of rows of each number of keys."""
    s, most = float(spread), max(n_keys)
    if s == 0:
        return [1 / n for n in n_keys]
    g = np.arange(-9.0, 9.0 + WIDTH / 2, WIDTH)
    y = np.arange(-math.log(most) - 30.0, math.log(FARTHEST) + STEP / 2, STEP)
    x, weight = _below(min(FARTHEST, 18.5 * s))
    with np.errstate(under="ignore"):
        # 1 − φ: what lies above, and what of the rest is lost to e^{−t e^{−x}}.
        density = np.exp(-((g[:, None] - x / s) ** 2) / 2) * (weight / (s * math.sqrt(2 * math.pi)))
        lost = density @ -np.expm1(-np.exp(y - x[:, None]))
        log_phi = np.log1p(-np.minimum(special.ndtr(-g)[:, None] + lost, 1 - 2.0**-53))
        over_y = np.exp(y - np.exp(y)) * STEP
        over_g = np.exp(-(g**2) / 2) * WIDTH / math.sqrt(2 * math.pi)
        return [float(n * over_g @ np.exp((n - 1) * log_phi) @ over_y) for n in n_keys]


def _below(reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights of a sum over the distances from 0 to `reach`."""
    node, weight = np.polynomial.legendre.leggauss(NODES)
    ends = reach * np.array(PANELS)
    half = np.diff(ends)[:, None] / 2
    return (ends[:-1, None] + half * (1 + node)).ravel(), (half * weight).ravel()


def effective_keys(n_keys: Sequence[int], spread: float) -> list[float]:
    """Return the mean of 1/Σp² for rows of each number of keys."""
    s = 2 * float(spread)
    if s == 0:
        return [float(n) for n in n_keys]
    step = max(STEP, random_energy.STEP_PER_SPREAD * s)
    u = np.arange(-9.5 * s - 7, 9.5 * s + math.log(max(n_keys)) + 45, step)
    root, (log_phi, _) = random_energy.root_moment(u, s), random_energy.log_phi(u, s)
    with np.errstate(under="ignore"):
        pairs = [float(np.sum(root**2 * np.exp(max(n - 2, 0) * log_phi)) * step) for n in n_keys]
    return [1 + n * (n - 1) * pair for n, pair in zip(n_keys, pairs, strict=True)]


def saturated_share(m: np.ndarray, rest: float) -> np.ndarray:
    """Return the share of rows of PD(m, 0) whose largest weight is above 1 − rest, for rest <= 1/2; 0 for m >= 1.

    sin(πm)/(πm) · (rest/(1 − rest))^m.
    """
    m = np.minimum(np.asarray(m, float), 1.0)
    share: np.ndarray = np.sinc(m) * (rest / (1 - rest)) ** m
    return share


def vanishing_share(m: np.ndarray, norm: float) -> np.ndarray:
    """Return the share of rows of PD(m, 0) with ‖J‖_F below a small norm; 0 for m >= 1.

    Such a row has ‖J‖ = r √(1 + 3Y), r the weight beside the largest and Y its participation ratio, which follows
    PD(m, m): the law of r, with the root at the mean (1 − m)/(1 + m) of Y, is right to a few per cent.
    """
    m = np.minimum(np.asarray(m, float), 1.0)
    share: np.ndarray = np.sinc(m) * (norm**2 * (1 + m) / (4 - 2 * m)) ** (m / 2)
    return share
