"""Exact law of the score of independent standard normal q and k, for any d_k."""

import numpy as np

# Below this order scipy's Bessel function is used; above it the uniform expansion, whose error there is under 1e-11.
_DEBYE_ORDER = 50.0
_DEBYE_TERMS = 7


def log_gaussian_density(score, d_k: int) -> np.ndarray:
    """Return the log density of s = q·k for independent q, k ~ N(0, I) of width d_k.

    f(s) = |s|^v K_v(|s|) / (√π Γ(d_k/2) 2^v) with v = (d_k − 1)/2: the variance-gamma law with characteristic function
    (1 + t²)^(−d_k/2). Any shape in, the same out. At d_k = 1 the density is infinite at 0. Raises ValueError for
    d_k < 1.
    """
    from scipy.special import gammaln

    if d_k < 1:
        raise ValueError(f"d_k must be at least 1, not {d_k}")
    size = np.abs(np.asarray(score, dtype=float))
    order = (d_k - 1) / 2
    log_product = _log_power_bessel_large(size, order) if order >= _DEBYE_ORDER else _log_power_bessel(size, order)
    return log_product - 0.5 * np.log(np.pi) - gammaln(d_k / 2) - order * np.log(2)


def gaussian_density(score, d_k: int) -> np.ndarray:
    """Return the density of s = q·k for independent q, k ~ N(0, I) of width d_k; see `log_gaussian_density`."""
    return np.exp(log_gaussian_density(score, d_k))


def gaussian_cumulative(score, d_k: int) -> np.ndarray:
    """Return P(q·k <= score) for independent q, k ~ N(0, I) of width d_k, to about 1e-10.

    Gauss-Legendre quadrature of the density from 0, in the variable u with s = score · u⁴, which removes the
    logarithmic peak of d_k = 1. Infinite scores give 0 and 1.
    """
    score = np.asarray(score, dtype=float)
    # Twelve times √d_k and 60 beyond lies less than 1e-24 of the probability, whatever d_k.
    reach = np.minimum(np.abs(score), 60 + 12 * np.sqrt(d_k))
    size = np.where(reach > 0, reach, 1.0)  # at 0 the sign below makes the integral 0
    nodes, weights = np.polynomial.legendre.leggauss(240)
    u, weights = (nodes + 1) / 2, weights / 2
    density = gaussian_density(size[..., None] * u**4, d_k)
    inside = (density * 4 * u**3 * weights).sum(-1) * size
    return np.clip(0.5 + np.sign(score) * inside, 0.0, 1.0)


def _log_power_bessel(size: np.ndarray, order: float) -> np.ndarray:
    """Return log(|s|^v K_v(|s|)) by scipy's scaled Bessel function, by its limit where that overflows."""
    from scipy.special import gammaln, kve

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        bessel = kve(order, size)
        direct = np.where(size > 0, order * np.log(size), 0.0) + np.log(bessel) - size
    # K_v(s) → Γ(v) 2^(v−1) s^(−v): the next term is smaller by s²/(4(v − 1)), below rounding wherever kve overflows.
    limit = gammaln(order) + (order - 1) * np.log(2) if order > 0 else np.inf
    return np.where(np.isfinite(bessel), direct, limit)


def _log_power_bessel_large(size: np.ndarray, order: float) -> np.ndarray:
    """Return log(|s|^v K_v(|s|)) for large v by the uniform (Debye) expansion, DLMF 10.41.4."""
    root = np.hypot(1.0, size / order)
    series = sum(polynomial(1 / root) / (-order) ** k for k, polynomial in enumerate(_debye_polynomials(_DEBYE_TERMS)))
    # v log s − v η with the logarithms of s cancelled by hand, so that s = 0 is no special case.
    phase = order * (np.log(order) - root + np.log1p(root))
    return phase + 0.5 * np.log(np.pi / (2 * order)) - 0.5 * np.log(root) + np.log(series)


def _debye_polynomials(number: int) -> list:
    """Return u_0 ... u_(number−1) of DLMF 10.41.9 as polynomials."""
    from numpy.polynomial import Polynomial

    square, kernel = Polynomial([0, 0, 0.5, 0, -0.5]), Polynomial([1, 0, -5])
    polynomials = [Polynomial([1.0])]
    for _ in range(number - 1):
        u = polynomials[-1]
        polynomials.append(square * u.deriv() + (kernel * u).integ() / 8)
    return polynomials
