"""Exact averages of normalisers over n independent N(0, s²) logits, as one-dimensional integrals.

Names of measures are those of the tables; see random_energy for the integrals over u and their φ and m_k.
"""

import math

import numpy as np
from scipy import special

from sqrtdk.theory import random_energy

NODES = 4001
"""Points of the trapezoidal sum over one Gaussian logit, whose integrand is smooth."""
REACH = 12.0
"""Standard deviations that the sum reaches to either side."""


def softmax(n_keys: int, spread: float) -> dict[str, float]:
    """Return the participation ratio and the root mean square Jacobian norm of softmax."""
    a = random_energy.averages(n_keys, spread)
    return {"participation_ratio": a.participation, "jacobian_frobenius": math.sqrt(a.jacobian_square)}


def sink(n_keys: int, spread: float, b: float) -> dict[str, float]:
    """Return row sum, null mass and root mean square Jacobian norm of softmax with a sink of logit b.

    The sink is one more factor e₀ = exp(−e^{b − u}) in the integrals of random_energy, with its own a₀ = e^{b − u}.
    """
    n, s = n_keys, float(spread)
    if s == 0:
        total = np.logaddexp(math.log(n), b)
        p, null = math.exp(-total), math.exp(b - total)
        square = n * p * p * (((n - 1) * p + null) ** 2 + (n - 1) * p * p)
        return {"row_sum": n * p, "null_mass": null, "jacobian_frobenius": math.sqrt(square)}
    step = random_energy.STEP
    u = np.arange(min(-9.5 * s, b) - 7, max(9.5 * s + math.log(n), b) + 45, step)
    log_phi, _, ((m1, m2, _), _, _) = random_energy.inner(u, s)
    with np.errstate(under="ignore", over="ignore"):
        a0 = np.exp(np.minimum(b - u, 700.0))

        def integral(product: np.ndarray, others: int) -> float:
            return float(np.sum(product * np.exp(others * log_phi - a0)) * step)

        null = integral(a0, n)
        row_sum = n * integral(m1, n - 1)
        # p_i² (1 − p_i)² with 1 − p_i the sum over all others and the sink, then p_i² p_j²; 6 = Γ(4).
        square = integral(m2 * a0 * a0, n - 1)
        if n > 1:
            square += (n - 1) * integral(2 * m2 * m2 + 2 * m2 * m1 * a0, n - 2)
        if n > 2:
            square += (n - 1) * (n - 2) * integral(m2 * m1 * m1, n - 3)
    return {"row_sum": row_sum, "null_mass": null, "jacobian_frobenius": math.sqrt(n * square / 6)}


def one_hot(n_keys: int, spread: float, gap: float) -> dict[str, float]:
    """Return the share of rows whose largest logit is at least `gap` above all others, which have no gradient."""
    if n_keys == 1:
        share = 1.0
    elif spread == 0:
        share = 0.0
    else:
        g, weight = _normal()
        share = float(n_keys * np.sum(weight * np.exp((n_keys - 1) * special.log_ndtr(g - gap / spread))))
    return {"one_hot_share": share, "zero_gradient_mass": share}


def sigmoid(n_keys: int, spread: float, bias: float) -> dict[str, float]:
    """Return row sum and root mean square Jacobian norm of sigmoids, whose Jacobian is diag(p (1 − p))."""
    g, weight = _normal()
    x = spread * g + bias
    slope = special.expit(x) * special.expit(-x)
    return {
        "row_sum": float(n_keys * weight @ special.expit(x)),
        "jacobian_frobenius": math.sqrt(n_keys * weight @ slope**2),
    }


def _normal() -> tuple[np.ndarray, np.ndarray]:
    """Return points g and weights of a sum over a standard normal number."""
    g, step = np.linspace(-REACH, REACH, NODES, retstep=True)
    return g, np.exp(-0.5 * g**2) * step / math.sqrt(2 * math.pi)


def annealed_null_mass(n_keys: int, spread: float) -> float:
    """Return 1/(1 + n e^{s²/2}), where E Z stands for Z: good for small s, and far too small for large s."""
    return 1 / (1 + n_keys * math.exp(spread**2 / 2))
