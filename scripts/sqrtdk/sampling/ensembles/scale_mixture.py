"""Gaussian q and k of random length: one factor for all components of a vector."""

import abc
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sqrtdk.sampling.ensembles.base import Ensemble, Exact, register
from sqrtdk.sampling.ensembles.iid import HEAVY_EIGHTH, HEAVY_FOURTH, HEAVY_VARIANCE
from sqrtdk.sampling.parameters import parameter
from sqrtdk.sampling.streams import standard_normal


@dataclass(frozen=True, kw_only=True)
class ScaleMixture(Ensemble):
    """q = f z and k = f' z' with Gaussian z, z' and one random factor of E f² = 1 for each vector.

    The components are uncorrelated, and yet the kurtosis of q·k does not fall off with d_k.
    """

    independent_keys: ClassVar[bool] = True
    source: ClassVar[str] = "E S⁴ = E f⁴ E f'⁴ · 3 d_k (d_k + 2), f² of mean 1"
    variance_formula: ClassVar[str] = r"d_k"

    @abc.abstractmethod
    def fourth_moments(self) -> tuple[float, float]:
        """Return E f⁴ of the query's factor and of the key's, which may be infinite."""

    @abc.abstractmethod
    def factors(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw the factors of the queries (n_blocks, n_queries, 1) and of the keys (n_blocks, n_keys, 1)."""

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        q, k = standard_normal(rng, (n_blocks, n_queries, d_k)), standard_normal(rng, (n_blocks, n_keys, d_k))
        query_factors, key_factors = self.factors(rng, n_blocks, n_queries, n_keys)
        return q * query_factors, k * key_factors

    def exact(self, d_k: int) -> Exact:
        if self.finite_moment <= 2:
            return Exact(0.0 if self.finite_moment > 1 else None, None, None, None, HEAVY_VARIANCE)
        if self.finite_moment <= 4:
            return Exact(0.0, float(d_k), float(d_k), None, HEAVY_FOURTH)
        query, key = self.fourth_moments()
        reason = HEAVY_EIGHTH if self.finite_moment <= 8 else ""
        return Exact(0.0, float(d_k), float(d_k), 3 * query * key * (1 + 2 / d_k) - 3, reason)

    def block_relative_variance(self, d_k: int, n_queries: int, n_keys: int) -> float | None:
        if self.finite_moment <= 4:
            return None
        query, key = (moment * (1 + 2 / d_k) for moment in self.fourth_moments())
        score = 3 * query * key / (1 + 2 / d_k) - 1
        return (score + (n_keys - 1) * (query - 1) + (n_queries - 1) * (key - 1)) / (n_queries * n_keys)


@register
@dataclass(frozen=True, kw_only=True)
class LognormalScale(ScaleMixture):
    """f = e^{σG − σ²} with Gaussian G, one σ for queries and one for keys."""

    query_sigma: float = parameter(
        "standard deviation of the logarithm of a query's factor", low=0.0, low_open=False, high=1.0, high_open=False
    )
    key_sigma: float = parameter(
        "standard deviation of the logarithm of a key's factor", low=0.0, low_open=False, high=1.0, high_open=False
    )

    family: ClassVar[str] = "scale_mixture"
    summary: ClassVar[str] = "Gaussian vectors, each times a lognormal factor of its own"

    def fourth_moments(self) -> tuple[float, float]:
        return math.exp(4 * self.query_sigma**2), math.exp(4 * self.key_sigma**2)

    def factors(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int
    ) -> tuple[np.ndarray, np.ndarray]:
        query, key = (
            np.exp(np.float32(sigma) * standard_normal(rng, (n_blocks, n, 1)) - np.float32(sigma**2))
            for n, sigma in ((n_queries, self.query_sigma), (n_keys, self.key_sigma))
        )
        return query, key


@register
@dataclass(frozen=True, kw_only=True)
class MultivariateT(ScaleMixture):
    """f² = (df − 2)/χ²(df), and df/χ²(df) where that has no mean."""

    df: float = parameter("degrees of freedom; moments of order df and above are infinite", low=0.0)

    family: ClassVar[str] = "multivariate_t"
    summary: ClassVar[str] = "vectors with the multivariate t distribution, heavy tails that all components share"

    @property
    def finite_moment(self) -> float:
        return self.df

    def fourth_moments(self) -> tuple[float, float]:
        moment = (self.df - 2) / (self.df - 4) if self.df > 4 else math.inf
        return moment, moment

    def factors(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int
    ) -> tuple[np.ndarray, np.ndarray]:
        # With no variance to standardise by, the plain t, in float64, which its tails need.
        unit = self.df - 2 if self.df > 2 else self.df
        kind = np.float64 if self.df <= 8 else np.float32
        query, key = (
            np.sqrt(unit / 2 / rng.standard_gamma(self.df / 2, (n_blocks, n, 1))).astype(kind)
            for n in (n_queries, n_keys)
        )
        return query, key
