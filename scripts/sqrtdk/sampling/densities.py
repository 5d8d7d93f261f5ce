"""Exact laws of the score: of Gaussian q and k, independent or correlated, and of normalised q and k (the sphere)."""

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

# Below this order scipy's Bessel function is used; above it the uniform expansion, whose error there is under 1e-11.
_DEBYE_ORDER = 50.0
_DEBYE_TERMS = 7


def log_gaussian_density(score: np.ndarray | float, d_k: int, rho: float = 0.0) -> np.ndarray:
    """Return the log density of s = q·k for standard Gaussian q, k of width d_k with corr(q_i, k_i) = rho.

    f(s) = |s|^v e^(ρs/(1−ρ²)) K_v(|s|/(1−ρ²)) / (√(π(1−ρ²)) Γ(d_k/2) 2^v) with v = (d_k − 1)/2: a variance-gamma law,
    with characteristic function (1 + t²)^(−d_k/2) at ρ = 0. Any shape in, the same out. At d_k = 1 the density is
    infinite at 0. Raises ValueError for d_k < 1 or |rho| >= 1.
    """
    from scipy.special import gammaln

    if d_k < 1:
        raise ValueError(f"d_k must be at least 1, not {d_k}")
    if not -1 < rho < 1:
        raise ValueError(f"rho must be within (-1, 1), not {rho}")
    score, rest = np.asarray(score, dtype=float), 1 - rho**2
    size = np.abs(score) / rest
    order = (d_k - 1) / 2
    log_product = _log_power_bessel_large(size, order) if order >= _DEBYE_ORDER else _log_power_bessel(size, order)
    tilt = rho * score / rest + order * np.log(rest) - 0.5 * np.log(rest) if rho else 0.0
    return log_product + tilt - 0.5 * np.log(np.pi) - gammaln(d_k / 2) - order * np.log(2)


def gaussian_density(score: np.ndarray | float, d_k: int) -> np.ndarray:
    """Return the density of s = q·k for independent q, k ~ N(0, I) of width d_k; see `log_gaussian_density`."""
    return np.exp(log_gaussian_density(score, d_k))


@functools.cache
def _quadrature() -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of Gauss-Legendre quadrature, which take longer to find than to use."""
    return np.polynomial.legendre.leggauss(240)


def gaussian_cumulative(score: np.ndarray | float, d_k: int) -> np.ndarray:
    """Return P(q·k <= score) for independent q, k ~ N(0, I) of width d_k, to about 1e-10.

    Gauss-Legendre quadrature of the density from 0, in the variable u with s = score · u⁴, which removes the
    logarithmic peak of d_k = 1. Infinite scores give 0 and 1.
    """
    score = np.asarray(score, dtype=float)
    # Twelve times √d_k and 60 beyond lies less than 1e-24 of the probability, whatever d_k.
    reach = np.minimum(np.abs(score), 60 + 12 * np.sqrt(d_k))
    size = np.where(reach > 0, reach, 1.0)  # at 0 the sign below makes the integral 0
    nodes, weights = _quadrature()
    u, weights = (nodes + 1) / 2, weights / 2
    density = gaussian_density(size[..., None] * u**4, d_k)
    inside = (density * 4 * u**3 * weights).sum(-1) * size
    return np.clip(0.5 + np.sign(score) * inside, 0.0, 1.0)


def score_gaussian(d_k: int, rho: float = 0.0) -> "GaussianScore":
    """Return the law of q·k for standard Gaussian q, k of width d_k with corr(q_i, k_i) = rho, as a distribution.

    It has the methods of a frozen scipy.stats distribution that are named in `GaussianScore`. At rho = ±1 the score is
    ±‖q‖², a chi-square. Raises ValueError for d_k < 1 or |rho| > 1.
    """
    if d_k < 1 or not -1 <= rho <= 1:
        raise ValueError(f"d_k must be at least 1 and rho within [-1, 1], not {d_k} and {rho}")
    return GaussianScore(d_k, float(rho))


def score_sphere(m: int) -> Any:
    """Return the law of the cosine of two vectors, one of them uniform on the sphere in m dimensions, frozen.

    (1 + cos θ)/2 ~ Beta((m − 1)/2, (m − 1)/2). m = d_k for vectors with an RMS or L2 norm, d_k − 1 after LayerNorm,
    which takes the mean out. Raises ValueError for m < 2: on a line the cosine is ±1 and has no density.
    """
    from scipy.stats import beta

    if m < 2:
        raise ValueError(f"a density of the cosine needs at least 2 dimensions, not {m}")
    return beta((m - 1) / 2, (m - 1) / 2, loc=-1, scale=2)


@dataclass(frozen=True)
class GaussianScore:
    """Law of S = (1+ρ)/2·X − (1−ρ)/2·Y with independent X, Y ~ χ²(d_k): that of q·k, see `score_gaussian`."""

    d_k: int
    rho: float

    def logpdf(self, score: np.ndarray | float) -> np.ndarray:
        """Return the log density."""
        if abs(self.rho) < 1:
            return log_gaussian_density(score, self.d_k, self.rho)
        from scipy.stats import chi2

        return chi2(self.d_k).logpdf(self.rho * np.asarray(score, dtype=float))

    def pdf(self, score: np.ndarray | float) -> np.ndarray:
        """Return the density."""
        return np.exp(self.logpdf(score))

    def cdf(self, score: np.ndarray | float) -> np.ndarray:
        """Return P(S <= score), with a small relative error in the lower tail too."""
        score = np.asarray(score, dtype=float)
        return self._by_sign(score, _share(np.abs(score), self.d_k, self.rho, True), False)

    def sf(self, score: np.ndarray | float) -> np.ndarray:
        """Return P(S > score), with a small relative error in the upper tail too."""
        score = np.asarray(score, dtype=float)
        return self._by_sign(score, _share(np.abs(score), self.d_k, self.rho, False), True)

    def _by_sign(self, score: np.ndarray, right: np.ndarray, below: bool) -> np.ndarray:
        """Return `right` where the score is not negative; else the share of −S, the score of q and −k, on that side."""
        if np.all(score >= 0):
            return right
        return np.where(score >= 0, right, _share(np.abs(score), self.d_k, -self.rho, below))

    def ppf(self, share: Any) -> np.ndarray:
        """Return the quantile, the inverse of `cdf`; NaN outside [0, 1]."""
        share = np.asarray(share, dtype=float)
        lower = share <= 0.5
        return np.where(lower, self._invert(share, -1), self._invert(1 - share, 1))

    def isf(self, share: Any) -> np.ndarray:
        """Return the inverse of `sf`; NaN outside [0, 1]."""
        return -GaussianScore(self.d_k, -self.rho).ppf(share)

    def mean(self) -> float:
        """Return E S = ρ d_k."""
        return self.rho * self.d_k

    def var(self) -> float:
        """Return Var S = (1 + ρ²) d_k."""
        return (1 + self.rho**2) * self.d_k

    def std(self) -> float:
        """Return the root of the variance."""
        return math.sqrt(self.var())

    def skewness(self) -> float:
        """Return the third standardised cumulant."""
        return self.rho * (6 + 2 * self.rho**2) / (math.sqrt(self.d_k) * (1 + self.rho**2) ** 1.5)

    def kurtosis(self) -> float:
        """Return the excess kurtosis, 0 for a normal law."""
        square = self.rho**2
        return 6 * (1 + 6 * square + square**2) / (self.d_k * (1 + square) ** 2)

    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draw scores by the two chi-squares."""
        return (1 + self.rho) / 2 * rng.chisquare(self.d_k, size) - (1 - self.rho) / 2 * rng.chisquare(self.d_k, size)

    def _invert(self, tail: np.ndarray, side: int) -> np.ndarray:
        """Return the score beyond which, on a side (−1 lower, 1 upper), lies a tail of at most a half."""
        from scipy.optimize import elementwise

        found = np.full(tail.shape, np.nan)
        found[tail == 0] = side * np.inf
        inside = (tail > 0) & (tail < 1)
        if not inside.any():
            return found
        tails = self.cdf if side < 0 else self.sf

        def excess(score: np.ndarray, target: np.ndarray) -> np.ndarray:
            return np.log(np.maximum(tails(score), np.finfo(float).tiny)) - np.log(target)

        # Tails are at most exponential: the score at a tail p is within 2|ln p| + 12 standard deviations of the mean.
        reach = (12 + 2 * np.abs(np.log(tail[inside]))) * max(self.std(), 1.0)
        bracket = (np.full(reach.shape, self.mean()) - reach, np.full(reach.shape, self.mean()) + reach)
        found[inside] = elementwise.find_root(excess, bracket, args=(tail[inside],)).x
        return found


def normal_distance(d_k: int) -> float:
    """Return sup |F − Φ| between the law of q·k/√d_k, for independent Gaussian q and k, and the standard normal law."""
    from scipy.special import ndtr

    low, high = 0.0, 3.0
    for _ in range(3):  # the law is symmetric and the difference has one hump on the right, at 0.74 for large d_k
        score = np.linspace(low, high, 41)
        apart = np.abs(gaussian_cumulative(score * math.sqrt(d_k), d_k) - ndtr(score))
        best, step = score[np.argmax(apart)], score[1] - score[0]
        low, high = max(best - step, 0.0), best + step
    return float(apart.max())


def normal_distance_law() -> float:
    """Return lim d_k · sup |F − Φ| = max |x³ − 3x| φ(x) / 4, from the first Edgeworth term, γ/24 with γ = 6/d_k."""
    square = 3 - math.sqrt(6)
    return math.sqrt(square) * (3 - square) * math.exp(-square / 2) / math.sqrt(2 * math.pi) / 4


def _share(score: np.ndarray, d_k: int, rho: float, below: bool) -> np.ndarray:
    """Return P(S <= score), or P(S > score), for score >= 0 by E[P(X <= (score + bY)/a | Y)]; see `GaussianScore`.

    All terms are positive, so that tails keep their digits. The trapezoid rule in ln Y converges exponentially fast; a
    first coarse pass finds where the integrand lives, which in the tails is not where Y does.
    """
    from scipy.special import gammainc, gammaincc, gammaln

    a, b, half, gamma = (1 + rho) / 2, (1 - rho) / 2, d_k / 2, gammainc if below else gammaincc
    if a == 0:
        return np.full(score.shape, float(below))
    if b == 0:
        return gamma(half, score / 2)
    flat = np.minimum(np.ravel(score), 1e6 * (d_k + 1))[:, None]  # beyond, no probability is left

    def log_integrand(t: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            inner = np.log(gamma(half, (flat + b * np.exp(t)) / (2 * a)))
        return half * (t - math.log(2)) - np.exp(t) / 2 - gammaln(half) + inner

    # Y leaves this range with less than e^-800 of its probability.
    low = math.log(d_k) - 1600 / d_k - math.sqrt(3200 / d_k)
    high = math.log(d_k) + math.log1p(1600 / d_k) + math.sqrt(3200 / d_k)
    coarse = np.linspace(low, high, 500)
    heights = log_integrand(coarse[None, :])
    alive = np.isfinite(heights) & (heights > heights.max(axis=1, keepdims=True) - 45)
    step = coarse[1] - coarse[0]
    first = coarse[np.argmax(alive, axis=1)] - step
    last = coarse[len(coarse) - 1 - np.argmax(alive[:, ::-1], axis=1)] + step
    u = np.linspace(0, 1, 300)
    total = np.exp(log_integrand(first[:, None] + (last - first)[:, None] * u)).sum(axis=1)
    return np.clip(total * (last - first) / (len(u) - 1), 0.0, 1.0).reshape(score.shape)


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


def _debye_polynomials(number: int) -> list[Any]:
    """Return u_0 ... u_(number−1) of DLMF 10.41.9 as polynomials."""
    from numpy.polynomial import Polynomial

    square, kernel = Polynomial([0, 0, 0.5, 0, -0.5]), Polynomial([1, 0, -5])
    polynomials = [Polynomial([1.0])]
    for _ in range(number - 1):
        u = polynomials[-1]
        polynomials.append(square * u.deriv() + (kernel * u).integ() / 8)
    return polynomials
