"""Sizes of scores that a scale rule may divide by: homogeneous of degree 1, so that the logits have a fixed size.

For rows of n independent centred Gaussian scores the exact variance of score/h is known. With R² = Σx² and any size h
that depends on |x| alone, R²/h² does not depend on R (Basu), and signs are independent of sizes, so that

    E[Var(x)/h²] = (n − 2)/n · σ² E[1/h²],

where Var is the unbiased variance within the row.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

GRID = 4001
"""Points of the trapezoidal sums below."""


@dataclass(frozen=True)
class Size:
    """A size h of scores along their last axis.

    value: (..., n) -> (..., 1). gradient: (scores, h) -> ∂h/∂scores, (..., n).
    unit_variance: n -> exact E[Var(x/h)] of n independent Gaussian scores. limit: its value for n → ∞.
    """

    value: Callable[[np.ndarray], np.ndarray]
    gradient: Callable[[np.ndarray, np.ndarray], np.ndarray]
    unit_variance: Callable[[int], float]
    limit: float


def _std_gradient(x: np.ndarray, h: np.ndarray) -> np.ndarray:
    return (x - x.mean(axis=-1, keepdims=True)) / (x.shape[-1] * h)


def _median_gradient(x: np.ndarray, h: np.ndarray) -> np.ndarray:
    # The middle one, or the middle two, whose mean the median is.
    n = x.shape[-1]
    order = np.argsort(np.abs(x), axis=-1)
    middle = order[..., (n - 1) // 2 : n // 2 + 1]
    gradient = np.zeros_like(x)
    signs = np.sign(np.take_along_axis(x, middle, axis=-1))
    np.put_along_axis(gradient, middle, signs / middle.shape[-1], axis=-1)
    return gradient


def _max_gradient(x: np.ndarray, h: np.ndarray) -> np.ndarray:
    top = np.abs(x).argmax(axis=-1)[..., None]
    gradient = np.zeros_like(x)
    np.put_along_axis(gradient, top, np.sign(np.take_along_axis(x, top, axis=-1)), axis=-1)
    return gradient


def _mean_abs_variance(n: int) -> float:
    """E[1/h²] = n² ∫ t L(t)ⁿ dt with the Laplace transform L(t) = erfcx(t/√2) of |x|."""
    from scipy.special import erfcx

    if n < 3:
        return np.nan
    # ∫ t L(t)ⁿ dt over t = e^w; L falls like 1/t, so that n >= 3 ends the tail.
    w = np.linspace(-12 - np.log(n), 60 / (n - 2), GRID)
    t = np.exp(w)
    with np.errstate(under="ignore"):
        inverse = n * n * np.trapezoid(t * t * erfcx(t / np.sqrt(2)) ** n, w)
    return float((n - 2) / n * inverse)


def _max_abs_variance(n: int) -> float:
    """E[1/h²] = ∫ 2 h⁻³ P(max|x| > 0 … h) dh with P(max|x| < h) = (2Φ(h) − 1)ⁿ."""
    from scipy.special import erf

    if n < 3:
        return np.nan
    w = np.linspace(-20 / (n - 2), np.log(40), GRID)
    h = np.exp(w)
    with np.errstate(under="ignore"):
        inverse = np.trapezoid(2 * h**-2 * erf(h / np.sqrt(2)) ** n, w) + 40.0**-2
    return float((n - 2) / n * inverse)


def _median_abs_variance(n: int) -> float:
    """E[1/h²] over the law of the middle one of the |x|, or, where n is even, of the two in the middle.

    Given the lower of the two, the upper is the smallest of n/2 independent ones above it. No finite value for n < 4.
    """
    from scipy.special import erf, erfcinv, gammaln

    if n < 4:
        return np.nan
    k = (n + 1) // 2
    # Around the median 0.674 of one, as wide as its spread and its power-law tail below need.
    w = np.log(0.6745) + np.linspace(-40 / k - 12 / k**0.5, min(3.4, 12 / k**0.5), GRID)
    x = np.exp(w)
    cdf, density = erf(x / np.sqrt(2)), np.sqrt(2 / np.pi) * np.exp(-(x**2) / 2)
    with np.errstate(divide="ignore", under="ignore"):
        log_weight = gammaln(n + 1) - gammaln(k) - gammaln(n - k + 1)
        weight = np.exp(log_weight + (k - 1) * np.log(cdf) + (n - k) * np.log1p(-cdf)) * density * x
        if n % 2:
            inverse = 1 / x**2
        else:
            u, share = np.polynomial.legendre.leggauss(60)
            upper = np.sqrt(2) * erfcinv((1 - cdf[:, None]) * ((1 + u) / 2) ** (1 / (n - k)))
            inverse = 4 / (x[:, None] + np.maximum(upper, x[:, None])) ** 2 @ (share / 2)
    return float((n - 2) / n * np.trapezoid(weight * inverse, w))


STD = Size(
    lambda x: x.std(axis=-1, keepdims=True),
    _std_gradient,
    lambda n: n / (n - 1) if n > 1 else np.nan,
    1.0,
)
MEAN_ABS = Size(
    lambda x: np.abs(x).mean(axis=-1, keepdims=True),
    lambda x, h: np.sign(x) / x.shape[-1],
    _mean_abs_variance,
    np.pi / 2,
)
MEDIAN_ABS = Size(
    lambda x: np.median(np.abs(x), axis=-1, keepdims=True),
    _median_gradient,
    _median_abs_variance,
    1 / 0.6744897501960817**2,
)
MAX_ABS = Size(
    lambda x: np.abs(x).max(axis=-1, keepdims=True),
    _max_gradient,
    _max_abs_variance,
    0.0,
)
