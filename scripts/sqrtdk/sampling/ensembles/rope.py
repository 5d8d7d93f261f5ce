"""Rotary position embedding: q and k turned against each other by the offset between their positions."""

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sqrtdk.sampling.ensembles.base import Ensemble, Exact, register
from sqrtdk.sampling.ensembles.correlated import Equicorrelated, GaussianCovariance
from sqrtdk.sampling.parameters import parameter
from sqrtdk.sampling.streams import standard_normal


@functools.lru_cache(maxsize=4)
def _turns(d_k: int, offset: int, base: float) -> tuple[np.ndarray, np.ndarray]:
    """Return cos and sin of the angle Δ·base^(−2j/d_k) by which pair j is turned, (d_k/2,) each."""
    angles = offset * base ** (-np.arange(0, d_k, 2) / d_k)
    return np.cos(angles), np.sin(angles)


@dataclass(frozen=True, kw_only=True)
class Rotary(Ensemble):
    """Component j and component j + d_k/2 are a pair, turned by Δ θ_j with θ_j = base^(−2j/d_k)."""

    offset: int = parameter("position of the query minus position of its key, Δ", default=16, kind="integer")
    base: float = parameter("the angle of pair j is Δ·base^(−2j/d_k)", default=10000.0, low=1.0)

    def undefined_at(self, d_k: int) -> str | None:
        return "rotary embedding turns pairs of components, so d_k must be even" if d_k % 2 else None

    def cosines(self, d_k: int) -> np.ndarray:
        """Return cos(Δ θ_j) of each pair."""
        return _turns(d_k, self.offset, self.base)[0]

    def turn(self, x: np.ndarray) -> np.ndarray:
        """Return float32 vectors (..., d_k) turned by the offset."""
        half = x.shape[-1] // 2
        cos, sin = (table.astype(np.float32) for table in _turns(2 * half, self.offset, self.base))
        first, second = x[..., :half], x[..., half:]
        turned = np.empty_like(x)
        np.multiply(first, cos, out=turned[..., :half])
        turned[..., :half] -= second * sin
        np.multiply(second, cos, out=turned[..., half:])
        turned[..., half:] += first * sin
        return turned


@register
@dataclass(frozen=True, kw_only=True)
class Rope(Rotary, GaussianCovariance):
    """Gaussian q, and k turned by the offset between their positions."""

    family: ClassVar[str] = "rope"
    summary: ClassVar[str] = "independent Gaussian components, the key turned by rotary embedding at one offset"
    source: ClassVar[str] = "a turned isotropic vector is isotropic: the law of Gaussian q and k at every offset"
    variance_formula: ClassVar[str] = r"d_k"

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        q = standard_normal(rng, (n_blocks, n_queries, d_k))
        return q, self.turn(standard_normal(rng, (n_blocks, n_keys, d_k)))

    def row_spectrum(self, d_k: int) -> list[tuple[float, float, float]] | None:
        return [(1.0, 1.0, d_k)]

    def traces(self, d_k: int) -> tuple[float, float]:
        return float(d_k), float(d_k)


@register
@dataclass(frozen=True, kw_only=True)
class RopeAligned(Rotary):
    """Before they are turned, corr(q_i, k_i) = ρ; the keys of other tokens are independent of q."""

    rho: float = parameter(
        "correlation of q_i with k_i before they are turned", low=-1.0, high=1.0, low_open=False, high_open=False
    )

    family: ClassVar[str] = "rope_aligned"
    summary: ClassVar[str] = (
        "Gaussian components, each query component correlated with its own key's, the key then turned by rotary "
        "embedding at one offset"
    )
    source: ClassVar[str] = (
        "pair j adds the cumulants of −ln(1 − 2ρ cos(Δθ_j) t − (1 − ρ²) t²); the mean is 2ρ Σ cos(Δθ_j)"
    )
    matched: ClassVar[bool] = True
    variance_formula: ClassVar[str] = r"( 1 - \rho^2 ) d_k + 4 \rho^2 \sum_j \operatorname{cos}^2 ( \Delta \theta_j )"

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        q = standard_normal(rng, (n_blocks, n_queries, d_k))
        k = standard_normal(rng, (n_blocks, n_keys, d_k))
        n = min(n_queries, n_keys)
        # Only what comes from the query needs turning: the rest is isotropic.
        k[:, :n] *= math.sqrt(1 - self.rho**2)
        k[:, :n] += np.float32(self.rho) * self.turn(q[:, :n])
        return q, k

    def exact(self, d_k: int) -> Exact:
        cosines, rest = self.cosines(d_k), 1 - self.rho**2
        signal = 2 * self.rho * cosines
        pair_variances = signal**2 + 2 * rest
        variance = float(pair_variances.sum())
        fourth_cumulant = 6 * float(np.sum(pair_variances**2 - 2 * rest**2))
        # In its row a query meets the keys of other tokens, which are independent of it.
        return Exact(float(signal.sum()), variance, float(d_k), fourth_cumulant / variance**2)

    def block_relative_variance(self, d_k: int, n_queries: int, n_keys: int) -> float | None:
        kurtosis = self.exact(d_k).excess_kurtosis
        assert kurtosis is not None
        return (2 + kurtosis) / n_queries


@register
@dataclass(frozen=True, kw_only=True)
class RopeEquicorrelated(Rotary, Equicorrelated):
    """As `Equicorrelated`, with k turned by the offset between its position and that of q."""

    family: ClassVar[str] = "rope_equicorrelated"
    summary: ClassVar[str] = (
        "Gaussian components, every two of them equally correlated, the key then turned by rotary embedding at one "
        "offset"
    )
    variance_formula: ClassVar[str] = (
        r"d_k ( 1 - \rho_q \rho_k ) + \rho_q \rho_k \left( 2 \sum_j \operatorname{cos} ( \Delta \theta_j ) \right)^2"
    )

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        q, k = Equicorrelated.draw(self, rng, n_blocks, n_queries, n_keys, d_k)
        return q, self.turn(k)

    def row_spectrum(self, d_k: int) -> list[tuple[float, float, float]] | None:
        # The turn parts the eigenvectors of q and k.
        return None

    def traces(self, d_k: int) -> tuple[float, float]:
        # Σ_q = p I + ρ_q 11ᵀ and R Σ_k Rᵀ = r I + ρ_k wwᵀ with w = R1: two directions apart from the identity.
        p, r = 1 - self.query_rho, 1 - self.key_rho
        overlap = 2 * float(self.cosines(d_k).sum())
        a, b, c = r * self.query_rho, p * self.key_rho, self.query_rho * self.key_rho * overlap
        added = (a + b) * d_k + c * overlap
        square = d_k * (p * r) ** 2 + 2 * p * r * added + (a**2 + b**2) * d_k**2 + (c * overlap) ** 2
        square += 2 * a * b * overlap**2 + 2 * (a + b) * c * d_k * overlap
        return d_k * p * r + added, square
