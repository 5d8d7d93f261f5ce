"""Gaussian q and k whose correlations, or whose variances, fall off as a power of distance or of rank."""

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sqrtdk.sampling.ensembles.base import register
from sqrtdk.sampling.ensembles.correlated import GaussianCovariance, toeplitz_trace_of_square
from sqrtdk.sampling.parameters import parameter
from sqrtdk.sampling.streams import standard_normal


def circulant_spectrum(correlation: np.ndarray) -> np.ndarray:
    """Eigenvalues of the circulant matrix that embeds a Toeplitz matrix.

    A convex decreasing non-negative correlation is a constant plus a sum of triangles (1 − h/t)₊ with weights ≥ 0, and
    a triangle that is wrapped around a circle has Fejér's kernel for its spectrum: no eigenvalue is negative (Dietrich
    and Newsam 1997).

    Args:
        correlation: (d + 1,) at the lags 0 … d.

    Returns:
        (d + 1,), the first half of the 2d eigenvalues; the other half mirrors it.
    """
    circle = np.concatenate([correlation, correlation[-2:0:-1]])
    return np.maximum(np.fft.rfft(circle).real, 0.0)


CHOLESKY_WIDTH = 256
"""Up to this width one matrix product costs less than the Fourier transforms."""


@functools.lru_cache(maxsize=4)
def _cholesky(alpha: float, d_k: int) -> np.ndarray:
    i = np.arange(d_k)
    return np.linalg.cholesky((1.0 + abs(i[:, None] - i)) ** -alpha).astype(np.float32)


@functools.lru_cache(maxsize=64)
def _correlation_traces(query_alpha: float, key_alpha: float, d_k: int) -> tuple[float, float]:
    lags = np.arange(d_k)
    products = (1.0 + lags) ** -(query_alpha + key_alpha)
    trace = d_k + 2 * float(np.sum((d_k - lags[1:]) * products[1:]))
    return trace, toeplitz_trace_of_square((1.0 + lags) ** -query_alpha, (1.0 + lags) ** -key_alpha)


@register
@dataclass(frozen=True, kw_only=True)
class PowerLawCorrelation(GaussianCovariance):
    """Gaussian q and k with the covariances (1 + |i − j|)^−α, one α for each."""

    query_alpha: float = parameter("exponent at which the correlation of query components falls off", low=0.0)
    key_alpha: float = parameter("exponent at which the correlation of key components falls off", low=0.0)

    family: ClassVar[str] = "power_law_correlation"
    summary: ClassVar[str] = "Gaussian components with long memory, correlation (1+|i−j|)^−α"
    variance_formula: ClassVar[str] = r"d_k + 2 \sum_{h=1}^{d_k - 1} ( d_k - h ) ( 1 + h )^{- \alpha_q - \alpha_k}"

    def limiting_exponent(self) -> float | None:
        # At a sum of 1 the variance grows as 2 d_k ln d_k, whose exponent tends to 1 as well.
        return max(1.0, 2.0 - (self.query_alpha + self.key_alpha))

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        def stationary(n: int, alpha: float) -> np.ndarray:
            if d_k <= CHOLESKY_WIDTH:
                white = standard_normal(rng, (n_blocks * n, d_k))
                return (white @ _cholesky(alpha, d_k).T).reshape(n_blocks, n, d_k)
            spectrum = circulant_spectrum((1.0 + np.arange(d_k + 1)) ** -alpha)
            amplitude = np.sqrt(d_k * spectrum)
            # Of the frequencies 0 and d only the real part counts, and has all of the variance.
            amplitude[[0, -1]] *= math.sqrt(2)
            waves = standard_normal(rng, (n_blocks, n, d_k + 1, 2))
            waves *= amplitude.astype(np.float32)[:, None]
            return np.fft.irfft(waves.view(np.complex64)[..., 0], n=2 * d_k)[..., :d_k]

        return stationary(n_queries, self.query_alpha), stationary(n_keys, self.key_alpha)

    def traces(self, d_k: int) -> tuple[float, float]:
        return _correlation_traces(self.query_alpha, self.key_alpha, d_k)


@register
@dataclass(frozen=True, kw_only=True)
class PowerLawSpectrum(GaussianCovariance):
    """Gaussian q and k with independent components of variance i^−b over the mean of these, one b for each."""

    query_b: float = parameter("exponent at which the variances of the query fall off", low=0.0, low_open=False)
    key_b: float = parameter("exponent at which the variances of the key fall off", low=0.0, low_open=False)

    family: ClassVar[str] = "power_law_spectrum"
    summary: ClassVar[str] = (
        "independent Gaussian components with unequal variances, the i-th proportional to i^−b and all of average 1, "
        "largest in the same dimensions of q and k"
    )
    variance_formula: ClassVar[str] = (
        r"\frac{d_k^2 H( b_q + b_k )}{H( b_q ) H( b_k )} , \quad H( b ) = \sum_{i=1}^{d_k} i^{- b}"
    )

    @staticmethod
    def variances(b: float, d_k: int) -> np.ndarray:
        """Return the (d_k,) variances of the components, of sum d_k."""
        weights = np.arange(1.0, d_k + 1) ** -b
        return d_k * weights / weights.sum()

    def limiting_exponent(self) -> float | None:
        # H(b) grows as d_k^(1 − b) below b = 1, as ln d_k at 1, and is bounded above.
        def growth(b: float) -> float:
            return max(0.0, 1.0 - b)

        return 2 + growth(self.query_b + self.key_b) - growth(self.query_b) - growth(self.key_b)

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        q, k = standard_normal(rng, (n_blocks, n_queries, d_k)), standard_normal(rng, (n_blocks, n_keys, d_k))
        q *= np.sqrt(self.variances(self.query_b, d_k)).astype(np.float32)
        k *= np.sqrt(self.variances(self.key_b, d_k)).astype(np.float32)
        return q, k

    def traces(self, d_k: int) -> tuple[float, float]:
        products = self.variances(self.query_b, d_k) * self.variances(self.key_b, d_k)
        return float(products.sum()), float(np.sum(products**2))
