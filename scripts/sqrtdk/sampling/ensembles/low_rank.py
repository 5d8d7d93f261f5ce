"""Gaussian q and k that live in subspaces of few dimensions, as a projection of low rank makes them."""

import abc
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sqrtdk.sampling.ensembles.base import Ensemble, Exact, register
from sqrtdk.sampling.ensembles.correlated import GaussianCovariance
from sqrtdk.sampling.parameters import parameter
from sqrtdk.sampling.streams import standard_normal


def cosine_basis(rank: int, d_k: int) -> np.ndarray:
    """Return (rank, d_k) orthonormal rows: the first vectors of the discrete cosine transform."""
    angle = np.pi / d_k * np.outer(np.arange(rank), np.arange(d_k) + 0.5)
    basis = np.cos(angle) * math.sqrt(2 / d_k)
    basis[0] = 1 / math.sqrt(d_k)
    return basis


def random_bases(rng: np.random.Generator, n: int, rank: int, d_k: int) -> np.ndarray:
    """Draw n uniformly distributed (rank, d_k) sets of orthonormal rows, by Gram and Schmidt from Gaussian ones."""
    basis = standard_normal(rng, (n, rank, d_k))
    for i in range(rank):
        row = basis[:, i]
        row /= np.sqrt(np.einsum("nd,nd->n", row, row))[:, None]
        rest = basis[:, i + 1 :]
        rest -= np.einsum("nrd,nd->nr", rest, row)[..., None] * row[:, None]
    return basis


def gaussian_matrices(rng: np.random.Generator, n: int, rank: int, d_k: int) -> np.ndarray:
    """Draw n (rank, d_k) Gaussian matrices X; where d_k is less, the (d_k, d_k) triangle T of their X = QT instead.

    The vectors zᵀX have the law of zᵀT, Q being orthonormal. The entries of T are independent: a χ on the diagonal and
    normals after it (Bartlett 1933).
    """
    if d_k >= rank:
        return standard_normal(rng, (n, rank, d_k))
    triangle = np.triu(standard_normal(rng, (n, d_k, d_k)), 1)
    i = np.arange(d_k)
    triangle[:, i, i] = np.sqrt(2 * rng.standard_gamma((rank - i) / 2, (n, d_k), dtype=np.float32))
    return triangle


@dataclass(frozen=True, kw_only=True)
class LowRank(Ensemble):
    """q = B_q z and k = B_k z' with Gaussian z, z' of `rank` components."""

    rank: int = parameter("dimensions of the subspace", low=1, low_open=False, kind="integer")


@dataclass(frozen=True, kw_only=True)
class RandomLowRank(LowRank):
    """The matrices B are drawn with each block, which is a layer of its own.

    Given them S = zᵀMz' with M = B_qᵀB_k, so that Var S = E tr C and E S⁴ = 3 E[(tr C)² + 2 tr C²], C = MMᵀ. Two
    scores that share a vector have E[S²S'²] = E[(tr C)² + 2 tr C²], two that share only the matrices E (tr C)².
    """

    @abc.abstractmethod
    def squares(self, d_k: int) -> tuple[float, float]:
        """Return E (tr C)² and E[(tr C)² + 2 tr C²], both over (E tr C)²."""

    @abc.abstractmethod
    def variance(self, d_k: int) -> float:
        """Return E tr C."""

    def exact(self, d_k: int) -> Exact:
        variance = self.variance(d_k)
        return Exact(0.0, variance, variance, 3 * self.squares(d_k)[1] - 3)

    def block_relative_variance(self, d_k: int, n_queries: int, n_keys: int) -> float | None:
        apart, sharing = self.squares(d_k)
        pairs = (2 + n_queries + n_keys - 1) * sharing + (n_queries - 1) * (n_keys - 1) * apart
        return pairs / (n_queries * n_keys) - 1


@register
@dataclass(frozen=True, kw_only=True)
class SharedLowRank(LowRank, GaussianCovariance):
    """B_q = B_k = √(d_k/r) times one fixed orthonormal basis of r vectors."""

    family: ClassVar[str] = "low_rank_shared"
    summary: ClassVar[str] = (
        "Gaussian vectors in one subspace that q and k share: √(d_k/r) times the first r vectors of the cosine "
        "transform; any other orthonormal basis gives the same law"
    )
    variance_formula: ClassVar[str] = r"\frac{d_k^2}{r}"

    def limiting_exponent(self) -> float | None:
        return 2.0

    def undefined_at(self, d_k: int) -> str | None:
        return f"a subspace of {self.rank} dimensions needs as large a d_k" if d_k < self.rank else None

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        basis = (math.sqrt(d_k / self.rank) * cosine_basis(self.rank, d_k)).astype(np.float32)
        q, k = (standard_normal(rng, (n_blocks, n, self.rank)) @ basis for n in (n_queries, n_keys))
        return q, k

    def row_spectrum(self, d_k: int) -> list[tuple[float, float, float]] | None:
        return [(d_k / self.rank, d_k / self.rank, self.rank)]

    def traces(self, d_k: int) -> tuple[float, float]:
        return d_k**2 / self.rank, d_k**4 / self.rank**3


@register
@dataclass(frozen=True, kw_only=True)
class GaussianLowRank(RandomLowRank):
    """B_q = B_k = A, one Gaussian matrix for each block with entries of variance 1/r."""

    family: ClassVar[str] = "low_rank_gaussian"
    summary: ClassVar[str] = (
        "q = Az and k = Az' with Gaussian z, z' of r components and one Gaussian d_k × r matrix A, entries of variance "
        "1/r, that q and k of a block share"
    )
    source: ClassVar[str] = "moments of the real Wishart matrix AᵀA, by pairing its Gaussian factors (Isserlis 1918)"
    variance_formula: ClassVar[str] = r"\frac{d_k ( d_k + r + 1 )}{r}"

    def limiting_exponent(self) -> float | None:
        return 2.0

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        a = gaussian_matrices(rng, n_blocks, self.rank, d_k)
        a /= math.sqrt(self.rank)
        q, k = (standard_normal(rng, (n_blocks, n, a.shape[1])) @ a for n in (n_queries, n_keys))
        return q, k

    def variance(self, d_k: int) -> float:
        return d_k * (d_k + self.rank + 1) / self.rank

    def squares(self, d_k: int) -> tuple[float, float]:
        d, r = d_k, self.rank
        trace = d * r * (d + r + 1)
        spread = 4 * d * r * (2 * d**2 + 2 * r**2 + 5 * d * r + 5 * d + 5 * r + 5)
        fourth = d * r * (d**3 + r**3 + 6 * (d + r) * (d * r + d + r) + 5 * d * r + 21 * (d + r) + 20)
        return 1 + spread / trace**2, 1 + (spread + 2 * fourth) / trace**2


@register
@dataclass(frozen=True, kw_only=True)
class IndependentLowRank(RandomLowRank):
    """B_q and B_k are √(d_k/r) times independent uniform orthonormal bases, drawn with each block."""

    family: ClassVar[str] = "low_rank_independent"
    summary: ClassVar[str] = (
        "Gaussian vectors in two subspaces, one of q and one of k: √(d_k/r) times random orthonormal bases, drawn "
        "independently and with each block"
    )
    source: ClassVar[str] = (
        "‖q‖², ‖k‖² ~ (d_k/r)χ²_r with uniform directions; variance of tr(P_q P_k) for random projections P: Schur"
    )
    variance_formula: ClassVar[str] = r"d_k"

    def undefined_at(self, d_k: int) -> str | None:
        return f"a subspace of {self.rank} dimensions needs as large a d_k" if d_k < self.rank else None

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        def spanned(n: int) -> np.ndarray:
            z = standard_normal(rng, (n_blocks, n, self.rank))
            z *= math.sqrt(d_k / self.rank)
            return z @ random_bases(rng, n_blocks, self.rank, d_k)

        return spanned(n_queries), spanned(n_keys)

    def variance(self, d_k: int) -> float:
        return float(d_k)

    def squares(self, d_k: int) -> tuple[float, float]:
        d, r = d_k, self.rank
        # Directions are uniform in d dimensions, whatever the rank: E cos⁴ = 3/(d(d + 2)).
        sharing = d * (r + 2) ** 2 / (r**2 * (d + 2))
        # P − (r/d)I has squared norm r(d − r)/d, in the (d − 1)(d + 2)/2 dimensions of traceless symmetric matrices.
        apart = 1 + (2 * (d - r) ** 2 / (r**2 * (d - 1) * (d + 2)) if d > 1 else 0.0)
        return apart, sharing
