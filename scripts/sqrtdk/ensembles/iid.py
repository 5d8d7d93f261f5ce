"""Families with independent, identically distributed components of q and of k."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..streams import signs, standard_laplace, standard_normal, student_t
from .base import Ensemble, Exact, parameter, register

HEAVY_VARIANCE = "the components have no finite variance"
HEAVY_FOURTH = "the components have no finite fourth moment, so the variance estimate has no standard error"
HEAVY_EIGHTH = "the components have no finite eighth moment, so the kurtosis estimate has no standard error"


def raw_moments(mean: float, sd: float, skewness: float, kurtosis: float) -> tuple[float, float, float, float]:
    """Raw moments 1 to 4 of mean + sd·Z for a standardised Z with this skewness and (not excess) kurtosis."""
    return (
        mean,
        mean**2 + sd**2,
        mean**3 + 3 * mean * sd**2 + sd**3 * skewness,
        mean**4 + 6 * mean**2 * sd**2 + 4 * mean * sd**3 * skewness + sd**4 * kurtosis,
    )


@dataclass(frozen=True, kw_only=True)
class Iid(Ensemble):
    """q_i = query_mean + query_sd·Z, k_i = key_mean + key_sd·Z', with standardised independent Z, Z' of one shape."""

    query_mean: float = parameter("mean of each query component", default=0.0)
    key_mean: float = parameter("mean of each key component", default=0.0)
    query_sd: float = parameter("standard deviation of each query component", default=1.0, low=0.0)
    key_sd: float = parameter("standard deviation of each key component", default=1.0, low=0.0)

    independent_components: ClassVar[bool] = True
    source: ClassVar[str] = "cumulants of a sum of d_k independent products q_i k_i add"
    variance_formula: ClassVar[str] = r"d_k ( \sigma_q^2 \sigma_k^2 + m_q^2 \sigma_k^2 + m_k^2 \sigma_q^2 )"

    def shape(self) -> tuple[float | None, float | None]:
        """Skewness and kurtosis (Gaussian 3) of the standardised component; None where infinite."""
        raise NotImplementedError

    def standardised(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        """Draw components of mean 0 and variance 1."""
        raise NotImplementedError

    def draw(self, rng, n_blocks, n_queries, n_keys, d_k):
        q = self.standardised(rng, (n_blocks, n_queries, d_k))
        k = self.standardised(rng, (n_blocks, n_keys, d_k))
        for x, mean, sd in ((q, self.query_mean, self.query_sd), (k, self.key_mean, self.key_sd)):
            if sd != 1:
                x *= sd
            if mean != 0:
                x += mean
        return q, k

    def exact(self, d_k):
        mq, mk, vq, vk = self.query_mean, self.key_mean, self.query_sd**2, self.key_sd**2
        if self.finite_moment <= 2:
            # The mean is that of a product of independent variables: finite as soon as both means are.
            mean = d_k * mq * mk if self.finite_moment > 1 else None
            return Exact(mean, None, None, None, HEAVY_VARIANCE)
        mean = d_k * mq * mk
        variance = d_k * (vq * vk + mq**2 * vk + mk**2 * vq)
        within_row = d_k * vk * (vq + mq**2)
        skewness, kurtosis = self.shape()
        if kurtosis is None:
            return Exact(mean, variance, within_row, None, HEAVY_FOURTH)
        q1, q2, q3, q4 = raw_moments(mq, self.query_sd, skewness, kurtosis)
        k1, k2, k3, k4 = raw_moments(mk, self.key_sd, skewness, kurtosis)
        m1, m2, m3, m4 = q1 * k1, q2 * k2, q3 * k3, q4 * k4
        fourth = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
        excess = (fourth / (m2 - m1**2) ** 2 - 3) / d_k
        return Exact(mean, variance, within_row, excess, HEAVY_EIGHTH if self.finite_moment <= 8 else "")

    def block_relative_variance(self, d_k, n_queries, n_keys):
        if self.query_mean or self.key_mean or self.finite_moment <= 4:
            return None
        # Var(S²)/V² of a score, and Var(‖q‖²)/d² for the scores that share a query or a key.
        kurtosis = self.shape()[1]
        score = 2 + (kurtosis**2 - 3) / d_k
        shared = (kurtosis - 1) / d_k
        return (score + (n_keys - 1) * shared + (n_queries - 1) * shared) / (n_queries * n_keys)


@register
@dataclass(frozen=True, kw_only=True)
class Gaussian(Iid):
    family: ClassVar[str] = "gaussian"
    summary: ClassVar[str] = "independent Gaussian components"

    @property
    def known_density(self):
        return not self.query_mean and not self.key_mean

    def shape(self):
        return 0.0, 3.0

    def standardised(self, rng, size):
        return standard_normal(rng, size)


@register
@dataclass(frozen=True, kw_only=True)
class Uniform(Iid):
    family: ClassVar[str] = "uniform"
    summary: ClassVar[str] = "independent components uniform on a symmetric interval"

    def shape(self):
        return 0.0, 9 / 5

    def standardised(self, rng, size):
        x = rng.random(size, dtype=np.float32)
        x -= 0.5
        x *= math.sqrt(12)
        return x


@register
@dataclass(frozen=True, kw_only=True)
class Rademacher(Iid):
    family: ClassVar[str] = "rademacher"
    summary: ClassVar[str] = "independent components of random sign and fixed size"

    def shape(self):
        return 0.0, 1.0

    def standardised(self, rng, size):
        return signs(rng, size)


@register
@dataclass(frozen=True, kw_only=True)
class Laplace(Iid):
    family: ClassVar[str] = "laplace"
    summary: ClassVar[str] = "independent Laplace (double exponential) components"

    def shape(self):
        return 0.0, 6.0

    def standardised(self, rng, size):
        return standard_laplace(rng, size)


@register
@dataclass(frozen=True, kw_only=True)
class StudentT(Iid):
    df: float = parameter("degrees of freedom; moments of order df and above are infinite", low=0.0)

    family: ClassVar[str] = "student_t"
    summary: ClassVar[str] = "independent Student-t components, heavy tails of index df"

    @property
    def finite_moment(self):
        return self.df

    def shape(self):
        return 0.0, (3 * (self.df - 2) / (self.df - 4) if self.df > 4 else None)

    def standardised(self, rng, size):
        if self.df <= 2:
            # No variance to standardise by: the plain t is drawn, in float64, which its tails need.
            return rng.standard_t(self.df, size)
        if self.df >= 8:
            x = student_t(rng, self.df, size)
            x *= math.sqrt((self.df - 2) / self.df)
            return x
        x = standard_normal(rng, size)
        chi_square = rng.standard_gamma(self.df / 2, size, dtype=np.float32)
        chi_square /= (self.df - 2) / 2
        x /= np.sqrt(chi_square, out=chi_square)
        return x
