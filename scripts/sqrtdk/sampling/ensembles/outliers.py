"""Gaussian q and k in which a few dimensions are much larger than the others."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sqrtdk.sampling.ensembles.base import register
from sqrtdk.sampling.ensembles.correlated import GaussianCovariance
from sqrtdk.sampling.parameters import parameter
from sqrtdk.sampling.streams import standard_normal


@dataclass(frozen=True, kw_only=True)
class Outliers(GaussianCovariance):
    """Independent Gaussian components of variance 1, but for the outlier dimensions, of standard deviation `scale`."""

    n_outliers: int = parameter(
        "number of outlier dimensions of q, and of k", default=1, low=1, low_open=False, kind="integer"
    )
    scale: float = parameter("standard deviation of an outlier dimension; the others have 1", low=0.0)

    first_key_outlier: ClassVar[int]
    """First outlier dimension of k in units of their number; those of q begin at 0."""

    def undefined_at(self, d_k: int) -> str | None:
        needed = (1 + self.first_key_outlier) * self.n_outliers
        return f"the outliers take up {needed} dimensions" if d_k < needed else None

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        q, k = standard_normal(rng, (n_blocks, n_queries, d_k)), standard_normal(rng, (n_blocks, n_keys, d_k))
        m = self.n_outliers
        start = self.first_key_outlier * m
        q[..., :m] *= np.float32(self.scale)
        k[..., start : start + m] *= np.float32(self.scale)
        return q, k


@register
@dataclass(frozen=True, kw_only=True)
class AlignedOutliers(Outliers):
    """The outlier dimensions of k are those of q."""

    family: ClassVar[str] = "outliers_aligned"
    summary: ClassVar[str] = "independent Gaussian components, a few dimensions large in both q and k"
    variance_formula: ClassVar[str] = r"d_k - m + m c^4"
    first_key_outlier: ClassVar[int] = 0

    def row_spectrum(self, d_k: int) -> list[tuple[float, float, float]] | None:
        m, square = self.n_outliers, self.scale**2
        return [(square, square, m), (1.0, 1.0, d_k - m)]

    def traces(self, d_k: int) -> tuple[float, float]:
        m, c = self.n_outliers, self.scale
        return d_k - m + m * c**4, d_k - m + m * c**8


@register
@dataclass(frozen=True, kw_only=True)
class MisalignedOutliers(Outliers):
    """The outlier dimensions of k come after those of q."""

    family: ClassVar[str] = "outliers_misaligned"
    summary: ClassVar[str] = "independent Gaussian components, a few dimensions large in q and as many others in k"
    variance_formula: ClassVar[str] = r"d_k - 2 m + 2 m c^2"
    first_key_outlier: ClassVar[int] = 1

    def row_spectrum(self, d_k: int) -> list[tuple[float, float, float]] | None:
        m, square = self.n_outliers, self.scale**2
        return [(square, 1.0, m), (1.0, square, m), (1.0, 1.0, d_k - 2 * m)]

    def traces(self, d_k: int) -> tuple[float, float]:
        m, c = self.n_outliers, self.scale
        return d_k - 2 * m + 2 * m * c**2, d_k - 2 * m + 2 * m * c**4
