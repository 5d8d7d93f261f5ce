"""Gaussian q and k, independent of each other, whose components are correlated."""

import abc
import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sqrtdk.sampling.ensembles.base import Ensemble, Exact, register
from sqrtdk.sampling.parameters import parameter
from sqrtdk.sampling.streams import CHUNK, standard_normal


def toeplitz_trace_of_square(first: np.ndarray, second: np.ndarray) -> float:
    """Return tr((AB)²) for the symmetric Toeplitz matrices A, B with these first rows, in O(d²) time and O(d) memory.

    M = AB obeys M[i+1, j+1] = M[i, j] + a[i+1] b[j+1] − a[d−1−i] b[d−1−j], so each diagonal is a cumulative sum.
    """
    d = len(first)
    a, b = np.asarray(first, float), np.asarray(second, float)
    reversed_a, reversed_b = a[::-1], b[::-1]
    # Row 0 of AB is a convolution of a with the even extension of b; the same for BA gives column 0 of AB.
    row, column = (np.convolve(x, np.concatenate([y[:0:-1], y]), "valid") for x, y in ((a, b), (b, a)))
    total = 0.0
    for h in range(d):
        step = slice(1, d - h), slice(h + 1, d), slice(0, d - h - 1), slice(h, d - 1)
        upper = a[step[0]] * b[step[1]] - reversed_a[step[2]] * reversed_b[step[3]]
        lower = a[step[1]] * b[step[0]] - reversed_a[step[3]] * reversed_b[step[2]]
        diagonals = (
            start + np.concatenate([[0.0], np.cumsum(x)]) for start, x in ((row[h], upper), (column[h], lower))
        )
        total += (1 if h == 0 else 2) * float(np.dot(*diagonals))
    return total


@functools.lru_cache(maxsize=256)
def _traces(ensemble: "GaussianCovariance", d_k: int) -> tuple[float, float]:
    """Remember the traces, which planning asks for at every size of block."""
    return ensemble.traces(d_k)


@dataclass(frozen=True, kw_only=True)
class GaussianCovariance(Ensemble):
    """Centred Gaussian vectors, all independent: everything follows from two traces."""

    independent_keys: ClassVar[bool] = True
    source: ClassVar[str] = (
        "Var S = tr(Σ_q Σ_k) and excess kurtosis 6 tr((Σ_q Σ_k)²)/tr(Σ_q Σ_k)², S given q being Gaussian"
    )

    @abc.abstractmethod
    def traces(self, d_k: int) -> tuple[float, float]:
        """Return tr(Σ_q Σ_k) and tr((Σ_q Σ_k)²)."""

    def exact(self, d_k: int) -> Exact:
        trace, square = _traces(self, d_k)
        return Exact(0.0, trace, trace, 6 * square / trace**2)

    def block_relative_variance(self, d_k: int, n_queries: int, n_keys: int) -> float | None:
        trace, square = _traces(self, d_k)
        concentration = 2 * square / trace**2
        return (2 + 3 * concentration + (n_keys + n_queries - 2) * concentration) / (n_queries * n_keys)


@register
@dataclass(frozen=True, kw_only=True)
class Equicorrelated(GaussianCovariance):
    """Gaussian q and k with the covariances (1 − ρ) I + ρ 11ᵀ, one ρ for each."""

    query_rho: float = parameter("correlation of any two query components", low=-1.0, high=1.0)
    key_rho: float = parameter("correlation of any two key components", low=-1.0, high=1.0)

    family: ClassVar[str] = "equicorrelated"
    summary: ClassVar[str] = "Gaussian components, every two of them equally correlated"
    variance_formula: ClassVar[str] = r"d_k + d_k ( d_k - 1 ) \rho_q \rho_k"

    def limiting_exponent(self) -> float | None:
        return 2.0 if self.query_rho * self.key_rho else 1.0

    def problems_at(self, d_k: int) -> list[str]:
        return [
            f"{name} = {rho:g} is outside [{-1 / (d_k - 1):g}, 1), the range for a correlation of {d_k} components"
            for name, rho in (("query_rho", self.query_rho), ("key_rho", self.key_rho))
            if d_k > 1 and rho < -1 / (d_k - 1)
        ]

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        def correlated(n: int, rho: float) -> np.ndarray:
            z = standard_normal(rng, (n_blocks, n, d_k))
            # Stretch the mean over components, whose eigenvalue is 1 + (d_k − 1)ρ, against the rest, 1 − ρ.
            rest = math.sqrt(1 - rho)
            mean = z.mean(axis=-1, keepdims=True, dtype=np.float64)
            mean *= math.sqrt(max(0.0, 1 + (d_k - 1) * rho)) - rest
            z *= rest
            z += mean.astype(np.float32)
            return z

        return correlated(n_queries, self.query_rho), correlated(n_keys, self.key_rho)

    def row_spectrum(self, d_k: int) -> list[tuple[float, float, float]] | None:
        mean, rest = ((1 + x * self.query_rho, 1 + x * self.key_rho) for x in (d_k - 1, -1))
        return [(*mean, 1), (*rest, d_k - 1)]

    def traces(self, d_k: int) -> tuple[float, float]:
        common = (1 + (d_k - 1) * self.query_rho) * (1 + (d_k - 1) * self.key_rho)
        rest = (1 - self.query_rho) * (1 - self.key_rho)
        return common + (d_k - 1) * rest, common**2 + (d_k - 1) * rest**2


@register
@dataclass(frozen=True, kw_only=True)
class Autoregressive(GaussianCovariance):
    """Gaussian q and k with the covariances φ^|i−j|, one φ for each."""

    query_phi: float = parameter("correlation of neighbouring query components", low=-1.0, high=1.0)
    key_phi: float = parameter("correlation of neighbouring key components", low=-1.0, high=1.0)

    family: ClassVar[str] = "ar1"
    summary: ClassVar[str] = "Gaussian components from a stationary first-order autoregression, correlation φ^|i−j|"
    variance_formula: ClassVar[str] = (
        r"d_k \frac{1 + r}{1 - r} - \frac{2 r ( 1 - r^{d_k} )}{( 1 - r )^2} , \quad r = \phi_q \phi_k"
    )

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        def autoregressive(n: int, phi: float) -> np.ndarray:
            z = standard_normal(rng, (n_blocks, n, d_k))
            rows, at_once = z.reshape(-1, d_k), max(1, CHUNK // d_k)
            for start in range(0, len(rows), at_once):
                piece = rows[start : start + at_once]
                piece[:, 1:] *= math.sqrt(1 - phi**2)
                # Doubling: after step j the sum Σ φ^h z_{i−h} holds lags h < 2^j; stop when φ^lag is below rounding.
                lag, weight = 1, phi
                while lag < d_k and abs(weight) > 1e-9:
                    piece[:, lag:] += np.float32(weight) * piece[:, :-lag]
                    lag, weight = 2 * lag, weight**2
            return z

        return autoregressive(n_queries, self.query_phi), autoregressive(n_keys, self.key_phi)

    def traces(self, d_k: int) -> tuple[float, float]:
        r = self.query_phi * self.key_phi
        trace = d_k * (1 + r) / (1 - r) - 2 * r * (1 - r**d_k) / (1 - r) ** 2
        # Where φ^d is below rounding the ends no longer meet, and each further component adds the same.
        slowest = max(abs(self.query_phi), abs(self.key_phi))
        settled = math.ceil(-45 / math.log(slowest)) if slowest > 0 else 1
        square = self._trace_of_square(min(d_k, settled + 1))
        if d_k > settled + 1:
            square += (d_k - settled - 1) * (square - self._trace_of_square(settled))
        return trace, square

    def _trace_of_square(self, d_k: int) -> float:
        lags = np.arange(d_k)
        # 0.0**0 is 1, so φ = 0 needs no case of its own.
        return toeplitz_trace_of_square(self.query_phi**lags, self.key_phi**lags)
