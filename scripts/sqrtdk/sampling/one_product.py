"""What one matrix product Q Kᵀ of standard normal components tells of the variance of q·k: exact errors and chances."""

import math

import numpy as np

_ANGLES = 200


def relative_error(n: int, d_k: int) -> float:
    """Return the standard error of the mean of the n² squared scores of one product, over the variance d_k itself.

    The scores of a product share queries and keys, so that the error is far above the √(2/n²) of independent ones.
    The square is 4/(n d_k) + 2(d_k + 1)/(d_k n²), from the second moments of two independent Wishart matrices.
    """
    return math.sqrt(4 / (n * d_k) + 2 * (d_k + 1) / (d_k * n**2))


def centred_mean(n: int, d_k: int) -> float:
    """Return the mean of the variance of the n² scores about their own mean, divided by n²: d_k(1 − 1/n²).

    The scores are uncorrelated, so that their mean has the variance d_k/n².
    """
    return d_k * (1 - 1 / n**2)


def chance_below(value: float) -> float:
    """Return the probability that the mean of the four squared scores at n = d_k = 2 is below a positive value.

    Given K the sum of squares is λ₁E₁ + λ₂E₂ with the eigenvalues of KᵀK and exponential E of mean 2. With
    λ = t(1 ± w)/2, t is χ² with 4 degrees of freedom and w = sin φ has the density w/√(1 − w²); the integral over t is
    a Bessel function, that over φ is done numerically.
    """
    from scipy.special import kve

    x = 4 * value
    node, weight = np.polynomial.legendre.leggauss(_ANGLES)
    w = np.sin(math.pi / 4 * (node + 1))
    roots = (np.sqrt(2 * x / (1 + sign * w)) for sign in (1, -1))
    plus, minus = (kve(2, root) * np.exp(-root) for root in roots)
    return float(1 - math.pi / 4 * weight @ (x / 2 * (plus - minus)))
