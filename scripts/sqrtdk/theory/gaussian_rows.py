"""Exact averages over attention rows whose keys are Gaussian: given its query, a row is n independent Gaussian logits.

Let the covariances of q (centred Gaussian) and k share their eigenvectors, with variances a_i of q and b_i of k. Then
q·k given q has the variance Q = qᵀΣ_k q = Σ a_i b_i z_i² with standard normal z_i, and an average over rows is the mean
of a function of s = c √Q over a weighted sum of chi-squares. A mean that all keys share adds the same to every logit of
a row, which softmax does not see.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sqrtdk.rows import softmax
from sqrtdk.theory import asymptotics, concentration
from sqrtdk.theory.random_energy import MAX_SPREAD

NEGLIGIBLE = 1e-12
"""Probability that the quadrature over a chi-square leaves out on either side."""
NORM_REACH = 5.4
"""The norm of the query is integrated over √(d_k − 1) ± NORM_REACH, outside of which lies less than 1e-12."""
AveragesOf = Callable[[str, np.ndarray], np.ndarray]
"""The name of a column of `random_energy.Averages` and spreads, any shape -> that average at each."""


class Directions(NamedTuple):
    """So many orthogonal directions along which q and k have these variances."""

    query: float
    key: float
    number: float


class Mixture(NamedTuple):
    """Nodes of a quadrature over queries: arrays of one length.

    weight: probabilities, sum 1. variance: Q = qᵀΣ_k q. query_square: E[‖q‖² | Q]. along: E[‖Σ_k q‖² | Q] / Q, the
    variance of a key along the gradient of its logit. total: tr Σ_k, a number.
    """

    weight: np.ndarray
    variance: np.ndarray
    query_square: np.ndarray
    along: np.ndarray
    total: float


def chi_square(dof: float) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights, of sum 1, for means over a chi-square of so many degrees of freedom, a real number.

    A trapezoidal sum in the logarithm, on which the density e^{ay − e^y}, a = dof/2, y = ln(χ²/2), is smooth and falls
    off at both ends, however singular it is in χ² at 0.
    """
    a = dof / 2
    lost = -np.log(NEGLIGIBLE)
    # Below the peak at ln a it falls at least as a Gaussian of variance 1/a or as e^{ay}, above it as e^{−e^y}.
    low = np.log(a) - np.sqrt(2 * lost / a) - lost / a
    high = np.log(a + np.sqrt(2 * lost * a) + lost)
    step = min(0.25, 0.6 / np.sqrt(a))
    y = np.arange(low, high + step, step)
    log_weight = a * y - np.exp(y)
    weight = np.exp(log_weight - log_weight.max())
    return 2 * np.exp(y), weight / weight.sum()


def norm_nodes(d_k: int, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Return values of ‖q‖ on an even grid and their weights under χ(d_k), for d_k >= 2."""
    centre = math.sqrt(d_k - 1)
    norm = centre + np.arange(-NORM_REACH, NORM_REACH + step, step)
    norm = norm[norm > 0]
    weight = np.exp((d_k - 1) * np.log(norm / centre) - (norm**2 - centre**2) / 2)
    return norm, weight / weight.sum()


def standard_normal(d_k: float) -> Mixture:
    """Return the quadrature over standard normal queries and keys of d_k components, a real number."""
    mixed = mixture([(1.0, 1.0, d_k)])
    assert mixed is not None  # every a_i b_i is 1
    return mixed


def mixture(spectrum: list[tuple[float, float, float]]) -> Mixture | None:
    """Return the quadrature over queries for a list of `Directions`.

    None where a_i b_i has more than two different values other than 0, or none.
    """
    directions = [Directions(*entry) for entry in spectrum]
    groups = _equal_products(directions)
    if not 1 <= len(groups) <= 2:
        return None
    unseen = sum(d.query * d.number for d in directions if d.query * d.key == 0)
    weight, sums = np.ones(1), [np.zeros(1), np.full(1, float(unseen)), np.zeros(1)]
    for group in groups:
        # Given their sum, equally weighted squares share it in proportion to their number.
        number = sum(d.number for d in group)
        chi, w = chi_square(number)
        shares = [sum(d.number * d.query * d.key**power for d in group) / number for power in (1, 0, 2)]
        weight = np.outer(weight, w).ravel()
        sums = [np.add.outer(x, share * chi).ravel() for x, share in zip(sums, shares, strict=True)]
    kept = weight > NEGLIGIBLE * weight.max()
    variance, query_square, pulled = (x[kept] for x in sums)
    total = sum(d.key * d.number for d in directions)
    return Mixture(weight[kept] / weight[kept].sum(), variance, query_square, pulled / variance, total)


def _equal_products(directions: list[Directions]) -> list[list[Directions]]:
    """Group the directions along which q·k has the same variance, without those along which it has none."""
    groups: list[list[Directions]] = []
    for d in directions:
        for group in groups:
            if math.isclose(d.query * d.key, group[0].query * group[0].key, rel_tol=1e-12):
                group.append(d)
                break
        else:
            if d.query * d.key * d.number > 0:
                groups.append([d])
    return groups


def mean(mixed: Mixture, factor: float, averages_of: AveragesOf, name: str) -> float:
    """Return the mean over queries of one column of `random_energy.Averages` under the scale `factor`."""
    return float(mixed.weight @ averages_of(name, factor * np.sqrt(mixed.variance)))


def concentration_of(mixed: Mixture, factor: float, averages_of: AveragesOf) -> dict[str, float]:
    """Return the exact mean of each of `concentration.NAMES`; none where a row reaches beyond the table."""
    if factor * math.sqrt(mixed.variance.max()) > MAX_SPREAD:
        return {}
    return {name: mean(mixed, factor, averages_of, name) for name in concentration.NAMES}


def frozen_laws(mixed: Mixture, n_keys: int, factor: float) -> dict[str, float]:
    """Return what the law of the frozen phase says of the shares of rows that are saturated, or have no gradient."""
    m = asymptotics.hazard(n_keys) / (factor * np.sqrt(mixed.variance))
    uniform = math.sqrt(n_keys - 1) / n_keys
    shares = {
        "saturated_share": concentration.saturated_share(m, 1 - softmax.SATURATED_WEIGHT),
        "vanishing_share": concentration.vanishing_share(m, softmax.VANISHING_NORM),
        "vanishing_share_relative": concentration.vanishing_share(m, softmax.VANISHING_RELATIVE * uniform),
    }
    return {name: float(mixed.weight @ share) for name, share in shares.items()}


def measures(mixed: Mixture, n_keys: int, factor: float, averages_of: AveragesOf) -> dict[str, float]:
    """Return exact measures of an attention row under the scale `factor`; none where it reaches beyond the table.

    Gradients are root mean squares for an upstream gradient of independent entries of unit variance. With g_z = Jv the
    gradient c Σ_j g_j k_j of the query splits each key into its part along Σ_k q, which goes with the logit, and a rest
    that is independent of it: E‖g_q‖² = c² E[r ‖Jz‖²/s² + (tr Σ_k − r) ‖J‖²], r = ‖Σ_k q‖²/qᵀΣ_k q. The keys' is
    E‖g_k‖² = c² E‖q‖²‖J‖².
    """
    spread = factor * np.sqrt(mixed.variance)
    if spread.max() > MAX_SPREAD:
        return {}
    average = {
        name: averages_of(name, spread) for name in ("entropy", "participation", "trace", "jacobian_square", "pull")
    }
    jacobian_square = average["jacobian_square"]
    entropy = float(mixed.weight @ average["entropy"])
    found = {
        "entropy": entropy,
        "participation_ratio": float(mixed.weight @ average["participation"]),
        "jacobian_trace": float(mixed.weight @ average["trace"]),
    }
    if n_keys > 1:
        found["normalised_entropy"] = entropy / math.log(n_keys)
    squares = {
        "grad_logits": jacobian_square,
        "grad_query": factor**2 * (mixed.along * average["pull"] + (mixed.total - mixed.along) * jacobian_square),
        "grad_key": factor**2 * mixed.query_square * jacobian_square,
    }
    gradients = {name: math.sqrt(mixed.weight @ square) for name, square in squares.items()}
    found["jacobian_frobenius"] = gradients["grad_logits"]
    return found | gradients | {f"{name}_values": value for name, value in gradients.items()}
