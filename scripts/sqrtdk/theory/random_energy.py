"""Exact averages of softmax over n independent Gaussian logits: Derrida's (1981) Random Energy Model at finite n.

With Z = Σ e^{z_j}, z_j = s g_j, every average of products of weights p_j = e^{z_j}/Z is one integral, since
1/Z^k = ∫ t^{k−1} e^{−tZ} dt / Γ(k). With t = e^{−u} and a = e^{z−u} it is built from

    φ(u) = E e^{−a},   m_k(u) = E a^k e^{−a},
    E Π_i p_i^{k_i} = ∫ Π_i m_{k_i}(u) φ(u)^{n−r} du / Γ(Σ k_i)   for r different keys.

None of the averages below cancels, from uniform to one-hot rows.
"""

import csv
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

STEP = 0.25
"""Step of both trapezoidal sums: the integrands are analytic in a strip of ±π/2, so its error is below 1e-14."""
STEP_PER_SPREAD = 0.05
"""Step of the outer sum over s where that is more: averages over logits of spread s are as smooth in u/s."""
NODES = 80
"""Gauss–Hermite nodes of the inner average for small s."""
SMALL_SPREAD = 0.7
"""Below this the inner average over g is a Gauss–Hermite sum, above a trapezoidal one over z − u."""


@dataclass(frozen=True)
class Averages:
    """Exact averages over rows of n Gaussian logits of standard deviation s.

    participation: E Σp². cube: E Σp³. jacobian_square: E‖J‖²_F. trace: E tr J = 1 − E Σp².
    log_partition: E ln Z. entropy: E H in nats, which is E ln Z − s² E tr J.
    pull: E‖Jz‖²/s², the part of the gradient along q, with its limit at s = 0.
    """

    participation: float
    cube: float
    jacobian_square: float
    trace: float
    log_partition: float
    entropy: float
    pull: float


def averages(n_keys: int, spread: float) -> Averages:
    """Integrate the averages of a row of `n_keys` >= 1 keys whose logits have standard deviation `spread` >= 0."""
    s = float(spread)
    if s == 0 or n_keys == 1:
        return _uniform(n_keys)
    u = _grid(n_keys, s)
    return _integrated(n_keys, s, u, *inner(u, s))


def averages_of_each(n_keys: Sequence[int], spread: float) -> list[Averages]:
    """Return `averages` for each number of keys, to rounding: what takes the time is the same for all."""
    s = float(spread)
    if s == 0:
        return [_uniform(n) for n in n_keys]
    widest = _grid(max(n_keys), s)
    log_phi, excess, (first, second, third) = inner(widest, s)
    found = []
    for n in n_keys:
        u = _grid(n, s)
        m, x, xx = (tuple(part[: len(u)] for part in parts) for parts in (first, second, (third,)))
        found.append(_integrated(n, s, u, log_phi[: len(u)], excess[: len(u)], (m, x, *xx)))
    return found


def _uniform(n: int) -> Averages:
    share = 1 / n
    trace = 1 - share
    return Averages(share, share**2, share * trace, trace, float(np.log(n)), float(np.log(n)), share * trace)


def _grid(n: int, s: float) -> np.ndarray:
    """Return the points u of the outer sum, of which fewer keys have the first."""
    return np.arange(-9.5 * s - 7, 9.5 * s + np.log(n) + 45, _step(s))


def _step(s: float) -> float:
    return max(STEP, STEP_PER_SPREAD * s)


def _integrated(
    n: int, s: float, u: np.ndarray, log_phi: np.ndarray, excess: np.ndarray, moments: tuple[Any, ...]
) -> Averages:
    step = _step(s)
    (m1, m2, m3), (x1, x2), xx2 = moments

    def integral(product: np.ndarray, others: int) -> float:
        with np.errstate(under="ignore"):
            return float(np.sum(product * np.exp(others * log_phi)) * step)

    participation = n * integral(m2, n - 1)
    cube = n * integral(m3, n - 1) / 2
    trace = n * (n - 1) * integral(m1 * m1, n - 2)
    jacobian = n * (n - 1) * 2 * integral(m2 * m2, n - 2) / 6
    # (Jz)_i = p_i Σ_j p_j (z_i − z_j): pairs and triples of different keys.
    pull = n * (n - 1) * 2 * integral(xx2 * m2 - x2 * x2, n - 2) / 6
    if n > 2:
        jacobian += n * (n - 1) * (n - 2) * integral(m2 * m1 * m1, n - 3) / 6
        spread3 = xx2 * m1 * m1 - 2 * x2 * x1 * m1 + m2 * x1 * x1
        pull += n * (n - 1) * (n - 2) * integral(spread3, n - 3) / 6
    with np.errstate(under="ignore", over="ignore", invalid="ignore"):
        # ln Z against the Gumbel law of ln n less a Gumbel number, stretched so that the step can resolve it.
        stretch = step / STEP
        reference = np.exp(-np.exp((np.log(n) - u) / stretch))
        gain = reference - np.exp(n * log_phi)
        if stretch == 1:
            # Exact for small s: φ^n against e^{−nt}, and φ e^t = 1 + excess.
            near = np.abs(n * excess) < 1
            gain[near] = -reference[near] * np.expm1(n * excess[near])
    log_partition = float(np.log(n) + np.euler_gamma * (stretch - 1) + np.sum(gain) * step)
    # −Σ p ln p is minus the slope of Σ p^r at r = 1. ln Z − s² tr J is the same, but cancels for large s.
    entropy = -np.euler_gamma - n * integral(x1, n - 1)
    return Averages(participation, cube, jacobian, trace, log_partition, entropy, pull / s**2)


def inner(u: np.ndarray, s: float) -> tuple[np.ndarray, np.ndarray, tuple[Any, ...]]:
    """Return on the grid u: ln φ, ln φ + e^{−u}, and with x = ln a the E a^k e^{−a}, E x a^k e^{−a}, E x² a² e^{−a}."""
    return *log_phi(u, s), moments(u, s)


def log_phi(u: np.ndarray, s: float) -> tuple[np.ndarray, np.ndarray]:
    """Return ln φ and ln φ + e^{−u}, the first two of `inner`."""
    with np.errstate(under="ignore", over="ignore", invalid="ignore", divide="ignore"):
        t = np.exp(-u)
        if s < SMALL_SPREAD:
            g, weight = _hermite()
            # φ e^t − 1 as an average of small terms.
            ratio = np.expm1(-t[:, None] * np.expm1(s * g)) @ weight
            excess = np.log1p(ratio)
            log = np.where(np.isfinite(excess), excess - t, np.log(np.exp(-np.exp(s * g - u[:, None])) @ weight))
            return np.maximum(log, -1e300), np.where(np.isfinite(excess), excess, 1e300)
        x, where = _logits(u, s)
        slope = np.exp(x - np.exp(x))
        # By parts: E F(z − u) = ∫ F'(x) P(z − u > x) dx with F = 1 − e^{−e^x}; neither tail is a difference.
        low = special.ndtr(where) @ slope * STEP
        high = special.ndtr(-where) @ slope * STEP
        log = np.where(high < 0.5, np.log1p(-np.minimum(high, 0.6)), np.log(low))
        return np.maximum(log, -1e300), log + t


def moments(u: np.ndarray, s: float) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...], np.ndarray]:
    """Return the E a^k e^{−a}, E x a^k e^{−a} and E x² a² e^{−a}, the third of `inner`."""
    with np.errstate(under="ignore", over="ignore", invalid="ignore"):
        if s < SMALL_SPREAD:
            g, density = _hermite()
            x = s * g - u[:, None]
            a = np.exp(x)
            first, second, third = (np.exp(k * x - a) for k in (1, 2, 3))
            products = (first, second, third, x * first, x * second, x * x * second)
            m1, m2, m3, x1, x2, xx2 = (product @ density for product in products)
        else:
            x, where = _logits(u, s)
            density = np.exp(-0.5 * where**2) / (s * np.sqrt(2 * np.pi))
            first, second, third = (np.exp(k * x - np.exp(x)) * STEP for k in (1, 2, 3))
            products = (first, second, third, x * first, x * second, x * x * second)
            m1, m2, m3, x1, x2, xx2 = (density @ product for product in products)
        return (m1, m2, m3), (x1, x2), xx2


def root_moment(u: np.ndarray, s: float) -> np.ndarray:
    """Return E √a e^{−a} on the grid u."""
    with np.errstate(under="ignore", over="ignore"):
        if s < SMALL_SPREAD:
            g, weight = _hermite()
            x = s * g - u[:, None]
            moment: np.ndarray = np.exp(x / 2 - np.exp(x)) @ weight
        else:
            x, where = _logits(u, s)
            moment = np.exp(-0.5 * where**2) @ np.exp(x / 2 - np.exp(x)) * (STEP / (s * np.sqrt(2 * np.pi)))
    return moment


@functools.cache
def _hermite() -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights, of sum 1, of a sum over a standard normal number."""
    g, weight = special.roots_hermitenorm(NODES)
    return g, weight / weight.sum()


def _logits(u: np.ndarray, s: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the values x of z − u that are summed over, and z in standard deviations at each u."""
    x = np.arange(-45.0, 4.4, STEP)
    return x, (x + u[:, None]) / s


MAX_SPREAD = 16384.0
"""Beyond this spread of the logits no average is tabulated."""
BENT, KNOTS, FAR_KNOTS = 96.0, 180, 25
"""So many knots up to a spread of BENT; so many beyond, where every average is nearly a power of s."""
COLUMNS = ("spread", "participation", "cube", "jacobian_square", "trace", "log_partition", "entropy", "pull")


def tabulate(n_keys: int) -> list[dict[str, Any]]:
    """Return the averages on the knots from which they are interpolated, s = 0 to MAX_SPREAD, one row for each."""
    near, far = np.arcsinh([BENT, MAX_SPREAD])
    spreads = np.sinh(np.concatenate([np.linspace(0, near, KNOTS), np.linspace(near, far, FAR_KNOTS + 1)[1:]]))
    return [{"spread": float(s), **vars(averages(n_keys, s))} for s in spreads]


def read(path: Path) -> dict[str, list[float]]:
    """Read the columns of a table of `tabulate` from a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) for row in rows] for name in COLUMNS}


class Interpolated:
    """The averages as smooth functions of s from a table of `tabulate`, to 3e-7 relative (3e-6 for a million keys)."""

    def __init__(self, table: Mapping[str, Sequence[float] | np.ndarray], even: bool = True) -> None:
        from scipy.interpolate import CubicSpline

        x = np.arcsinh(np.asarray(table["spread"], float))
        # An average that is even in s has a slope of 0 at 0.
        ends = ((1, 0.0), "not-a-knot") if even else "not-a-knot"
        self._splines = {
            name: CubicSpline(x, np.log(np.asarray(table[name], float)), bc_type=ends)
            for name in table
            if name != "spread"
        }

    def __call__(self, name: str, spread: np.ndarray | float) -> np.ndarray:
        """Return one column of `Averages` at the given spreads, of any shape."""
        return np.exp(self._splines[name](np.arcsinh(spread)))
