"""Families with independent, identically distributed components of q and of k."""

import abc
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sqrtdk.sampling.ensembles.base import Ensemble, Exact, register
from sqrtdk.sampling.parameters import parameter
from sqrtdk.sampling.streams import signs, standard_laplace, standard_normal, student_t

# What single precision can add and multiply without losing the spread of a score beside its mean.
MEAN = {"low": -1e4, "high": 1e4, "low_open": False, "high_open": False}
SD = {"low": 1e-4, "high": 1e4, "low_open": False, "high_open": False}
HEAVY_VARIANCE = "the components have no finite variance"
HEAVY_FOURTH = "the components have no finite fourth moment, so the variance estimate has no standard error"
HEAVY_EIGHTH = "the components have no finite eighth moment, so the kurtosis estimate has no standard error"


@dataclass(frozen=True, kw_only=True)
class Iid(Ensemble):
    """q_i = query_mean + query_sd·Z, k_i = key_mean + key_sd·Z', with standardised independent Z, Z' of one shape."""

    query_mean: float = parameter("mean of each query component", default=0.0, **MEAN)
    key_mean: float = parameter("mean of each key component", default=0.0, **MEAN)
    query_sd: float = parameter("standard deviation of each query component", default=1.0, **SD)
    key_sd: float = parameter("standard deviation of each key component", default=1.0, **SD)

    independent_components: ClassVar[bool] = True
    independent_keys: ClassVar[bool] = True
    source: ClassVar[str] = "cumulants of a sum of d_k independent products q_i k_i add"
    variance_formula: ClassVar[str] = r"d_k ( \sigma_q^2 \sigma_k^2 + m_q^2 \sigma_k^2 + m_k^2 \sigma_q^2 )"

    @abc.abstractmethod
    def shape(self) -> tuple[float, float | None]:
        """Return skewness and kurtosis (Gaussian 3) of the standardised component; no kurtosis where it is infinite."""

    @abc.abstractmethod
    def standardised(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        """Draw components of mean 0 and variance 1."""

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        q = self.standardised(rng, (n_blocks, n_queries, d_k))
        k = self.standardised(rng, (n_blocks, n_keys, d_k))
        for x, mean, sd in ((q, self.query_mean, self.query_sd), (k, self.key_mean, self.key_sd)):
            if sd != 1:
                x *= sd
            if mean != 0:
                x += mean
        return q, k

    def exact(self, d_k: int) -> Exact:
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
        # q_i k_i − E = a Z' + b Z + c Z Z'. Its fourth cumulant term by term, so that large means cancel nothing.
        a, b, c = mq * self.key_sd, mk * self.query_sd, self.query_sd * self.key_sd
        cumulant = (
            (kurtosis - 3) * (a**4 + b**4)
            + (kurtosis**2 - 3) * c**4
            + 6 * (kurtosis - 1) * c**2 * (a**2 + b**2)
            + 4 * kurtosis * skewness * c**3 * (a + b)
            + 12 * skewness * a * b * c * (a + b)
            + 12 * skewness**2 * a * b * c**2
        )
        excess = cumulant / (a**2 + b**2 + c**2) ** 2 / d_k
        return Exact(mean, variance, within_row, excess, HEAVY_EIGHTH if self.finite_moment <= 8 else "")

    def block_relative_variance(self, d_k: int, n_queries: int, n_keys: int) -> float | None:
        exact = self.exact(d_k)
        if exact.variance is None or exact.excess_kurtosis is None:
            return None
        # Var((S − E S)²) of a score, and Var E[(S − E S)² | q] or | k for the scores that share a query or a key.
        query, key = (self.query_mean, self.query_sd), (self.key_mean, self.key_sd)
        shared = (n_keys - 1) * self._conditional_spread(d_k, *query, *key)
        shared += (n_queries - 1) * self._conditional_spread(d_k, *key, *query)
        return (2 + exact.excess_kurtosis + shared / exact.variance**2) / (n_queries * n_keys)

    def _conditional_spread(self, d: int, mean: float, sd: float, other_mean: float, other_sd: float) -> float:
        """Variance of E[(S − E S)² | x] = v'‖x‖² + m'²(Σ (x_i − m))² over the vector x of this mean and sd."""
        skewness, kurtosis = self.shape()
        assert kurtosis is not None  # asked only where the score has one
        v, third, fourth = sd**2, sd**3 * skewness, sd**4 * kurtosis
        other_v, other_square = other_sd**2, other_mean**2
        squares = fourth - v**2 + 4 * mean * third + 4 * mean**2 * v
        sum_squared = fourth - 3 * v**2 + 2 * d * v**2
        together = fourth - v**2 + 2 * mean * third
        return d * (other_v**2 * squares + other_square**2 * sum_squared + 2 * other_v * other_square * together)


@register
@dataclass(frozen=True, kw_only=True)
class Gaussian(Iid):
    """Z ~ N(0, 1)."""

    family: ClassVar[str] = "gaussian"
    summary: ClassVar[str] = "independent Gaussian components"

    @property
    def known_density(self) -> bool:
        return not self.query_mean and not self.key_mean

    def shape(self) -> tuple[float, float | None]:
        return 0.0, 3.0

    def row_spectrum(self, d_k: int) -> list[tuple[float, float, float]] | None:
        return None if self.query_mean else [(self.query_sd**2, self.key_sd**2, d_k)]

    def standardised(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        return standard_normal(rng, size)


@register
@dataclass(frozen=True, kw_only=True)
class Uniform(Iid):
    """Z uniform on ±√3."""

    family: ClassVar[str] = "uniform"
    summary: ClassVar[str] = "independent components uniform on a symmetric interval"

    def shape(self) -> tuple[float, float | None]:
        return 0.0, 9 / 5

    def standardised(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        x = rng.random(size, dtype=np.float32)
        x -= 0.5
        x *= math.sqrt(12)
        return x


@register
@dataclass(frozen=True, kw_only=True)
class Rademacher(Iid):
    """Z = ±1, each with probability ½."""

    family: ClassVar[str] = "rademacher"
    summary: ClassVar[str] = "independent components of random sign and fixed size"

    def shape(self) -> tuple[float, float | None]:
        return 0.0, 1.0

    def standardised(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        return signs(rng, size)


@register
@dataclass(frozen=True, kw_only=True)
class Laplace(Iid):
    """Z of density e^{−√2|z|}/√2."""

    family: ClassVar[str] = "laplace"
    summary: ClassVar[str] = "independent Laplace (double exponential) components"

    def shape(self) -> tuple[float, float | None]:
        return 0.0, 6.0

    def standardised(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        return standard_laplace(rng, size)


@register
@dataclass(frozen=True, kw_only=True)
class StudentT(Iid):
    """Z = t √((df − 2)/df) with Student's t, and t itself where that has no variance."""

    df: float = parameter("degrees of freedom; moments of order df and above are infinite", low=0.0)

    family: ClassVar[str] = "student_t"
    summary: ClassVar[str] = "independent Student-t components, heavy tails of index df"

    @property
    def finite_moment(self) -> float:
        return self.df

    def shape(self) -> tuple[float, float | None]:
        return 0.0, (3 * (self.df - 2) / (self.df - 4) if self.df > 4 else None)

    def standardised(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        x = student_t(rng, self.df, size)
        if self.df > 2:
            # Below there is no variance to standardise by.
            x *= math.sqrt((self.df - 2) / self.df)
        return x


@register
@dataclass(frozen=True, kw_only=True)
class Lognormal(Iid):
    """Z = (e^{σG − σ²/2} − 1)/√(e^{σ²} − 1) with Gaussian G."""

    sigma: float = parameter(
        "standard deviation of the logarithm; above 1 the fourth moment hangs on numbers too rare to draw",
        low=0.01,
        low_open=False,
        high=1.0,
        high_open=False,
    )

    family: ClassVar[str] = "lognormal"
    summary: ClassVar[str] = "independent lognormal components, skewed, moved to mean 0"

    def shape(self) -> tuple[float, float | None]:
        w = math.exp(self.sigma**2)
        return (w + 2) * math.sqrt(w - 1), w**4 + 2 * w**3 + 3 * w**2 - 3

    def standardised(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        x = standard_normal(rng, size)
        x *= self.sigma
        x -= self.sigma**2 / 2
        np.exp(x, out=x)
        x -= 1
        x /= math.sqrt(math.expm1(self.sigma**2))
        return x


@register
@dataclass(frozen=True, kw_only=True)
class Sparse(Iid):
    """Z = BG/√p with Gaussian G and B = 1 with probability p, else 0."""

    p: float = parameter("share of the components that are not zero", low=0.0, high=1.0, high_open=False)

    family: ClassVar[str] = "sparse"
    summary: ClassVar[str] = "independent components that are Gaussian with probability p and else zero"

    def shape(self) -> tuple[float, float | None]:
        return 0.0, 3 / self.p

    def standardised(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        x = standard_normal(rng, size)
        x *= rng.random(size, dtype=np.float32) < self.p
        x /= math.sqrt(self.p)
        return x


@register
@dataclass(frozen=True, kw_only=True)
class Uniform01(Ensemble):
    """Components as they come from a generator of random numbers, which nobody has centred."""

    _twin: ClassVar[Uniform] = Uniform(query_mean=0.5, key_mean=0.5, query_sd=12**-0.5, key_sd=12**-0.5)

    family: ClassVar[str] = "uniform01"
    summary: ClassVar[str] = "independent components uniform on (0, 1), not centred"
    source: ClassVar[str] = "E (q_i k_i)^r = 1/(1+r)², and cumulants of independent products add"
    variance_formula: ClassVar[str] = r"\frac{7}{144} d_k"
    independent_components: ClassVar[bool] = True
    independent_keys: ClassVar[bool] = True

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        q, k = (rng.random((n_blocks, n, d_k), dtype=np.float32) for n in (n_queries, n_keys))
        return q, k

    def exact(self, d_k: int) -> Exact:
        return self._twin.exact(d_k)

    def block_relative_variance(self, d_k: int, n_queries: int, n_keys: int) -> float | None:
        return self._twin.block_relative_variance(d_k, n_queries, n_keys)
