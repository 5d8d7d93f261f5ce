"""Ensembles in which a query and its own key depend on each other."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sqrtdk.sampling.ensembles.base import Ensemble, Exact, register
from sqrtdk.sampling.parameters import parameter
from sqrtdk.sampling.streams import standard_normal


@register
@dataclass(frozen=True, kw_only=True)
class Aligned(Ensemble):
    """Gaussian q and k with corr(q_i, k_i) = ρ; the keys of other tokens are independent of q."""

    rho: float = parameter("correlation of q_i with k_i", low=-1.0, high=1.0, low_open=False, high_open=False)

    family: ClassVar[str] = "aligned"
    summary: ClassVar[str] = "Gaussian components, each query component correlated with its own key's"
    source: ClassVar[str] = "S = (1+ρ)/2·χ²(d_k) − (1−ρ)/2·χ²(d_k), two independent chi-squares"
    matched: ClassVar[bool] = True
    variance_formula: ClassVar[str] = r"d_k ( 1 + \rho^2 )"

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        q = standard_normal(rng, (n_blocks, n_queries, d_k))
        k = standard_normal(rng, (n_blocks, n_keys, d_k))
        n = min(n_queries, n_keys)
        own = k[:, :n]
        own *= math.sqrt(1 - self.rho**2)
        own += np.float32(self.rho) * q[:, :n]
        return q, k

    def exact(self, d_k: int) -> Exact:
        square = self.rho**2
        kurtosis = 6 * (1 + 6 * square + square**2) / (d_k * (1 + square) ** 2)
        # In its row a query meets the keys of other tokens, which are independent of it.
        return Exact(self.rho * d_k, d_k * (1 + square), float(d_k), kurtosis)

    def block_relative_variance(self, d_k: int, n_queries: int, n_keys: int) -> float | None:
        kurtosis = self.exact(d_k).excess_kurtosis
        assert kurtosis is not None
        return (2 + kurtosis) / n_queries
