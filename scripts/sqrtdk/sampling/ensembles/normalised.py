"""q and k that are themselves normalised: their norm is fixed and only the angle between them is random."""

import abc
import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sqrtdk.sampling.ensembles.base import Ensemble, Exact, register
from sqrtdk.sampling.parameters import parameter
from sqrtdk.sampling.streams import signs, standard_normal

MAX_CUMULANT_WIDTH = 2**14
"""Up to this d_k the excess kurtosis from four raw moments is right to about 2e-6; the error grows as d_k²."""
CANCELS = "the fourth cumulant is lost in the rounding of the raw moments at this width"


@dataclass(frozen=True, kw_only=True)
class Spherical(Ensemble):
    """S = radius²·cos θ between independent uniform points of a sphere in `dimension(d_k)` dimensions."""

    independent_keys: ClassVar[bool] = True

    @abc.abstractmethod
    def radius(self, d_k: int) -> float:
        """Return the norm of q and of k."""

    def dimension(self, d_k: int) -> int:
        """Return the number of dimensions of the sphere."""
        return d_k

    def point(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        """Draw uniform points of the sphere, as vectors of d_k components."""
        radius = self.radius(size[-1])
        if size[-1] == 1:
            # ±radius without rounding: the score then has one absolute value exactly.
            return signs(rng, size) * np.float32(radius)
        x = standard_normal(rng, size)
        x *= (np.float32(radius) / np.sqrt(np.vecdot(x, x)))[..., None]
        return x

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        return self.point(rng, (n_blocks, n_queries, d_k)), self.point(rng, (n_blocks, n_keys, d_k))

    def exact(self, d_k: int) -> Exact:
        m = self.dimension(d_k)
        variance = self.radius(d_k) ** 4 / m
        return Exact(0.0, variance, variance, -6 / (m + 2))

    def block_relative_variance(self, d_k: int, n_queries: int, n_keys: int) -> float | None:
        # The angles of different pairs of points are pairwise independent.
        m = self.dimension(d_k)
        return 2 * (m - 1) / ((m + 2) * n_queries * n_keys)


@register
@dataclass(frozen=True, kw_only=True)
class RmsNorm(Spherical):
    """S = d_k cos θ in d_k dimensions."""

    family: ClassVar[str] = "rmsnorm"
    summary: ClassVar[str] = "RMS-normalised Gaussian q and k, of norm √d_k"
    source: ClassVar[str] = "S = d_k cos θ, and (1 + cos θ)/2 has the law Beta((d_k − 1)/2, (d_k − 1)/2)"
    variance_formula: ClassVar[str] = r"d_k"

    def radius(self, d_k: int) -> float:
        return math.sqrt(d_k)


@register
@dataclass(frozen=True, kw_only=True)
class LayerNorm(Spherical):
    """S = d_k cos θ in d_k − 1 dimensions."""

    family: ClassVar[str] = "layernorm"
    summary: ClassVar[str] = "Gaussian q and k after LayerNorm without gain and bias: mean 0 and norm √d_k"
    source: ClassVar[str] = "S = d_k cos θ on the sphere of the d_k − 1 dimensions that are left without the mean"
    variance_formula: ClassVar[str] = r"\frac{d_k^2}{d_k - 1}"

    def radius(self, d_k: int) -> float:
        return math.sqrt(d_k)

    def dimension(self, d_k: int) -> int:
        return d_k - 1

    def undefined_at(self, d_k: int) -> str | None:
        return "LayerNorm of a single component is 0/0, so d_k must be at least 2" if d_k < 2 else None

    def point(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        if size[-1] == 2:
            return signs(rng, (*size[:-1], 1)) * np.array([1, -1], np.float32)
        x = standard_normal(rng, size)
        x -= x.mean(axis=-1, keepdims=True)
        x *= (np.float32(self.radius(size[-1])) / np.sqrt(np.vecdot(x, x)))[..., None]
        return x


@register
@dataclass(frozen=True, kw_only=True)
class L2Norm(Spherical):
    """S = g cos θ in d_k dimensions."""

    scale: float = parameter("factor g on the cosine", default=1.0, low=0.0)

    family: ClassVar[str] = "l2norm"
    summary: ClassVar[str] = "Gaussian q and k normalised to unit length, so that the score is g times a cosine"
    source: ClassVar[str] = "S = g cos θ, and (1 + cos θ)/2 has the law Beta((d_k − 1)/2, (d_k − 1)/2)"
    variance_formula: ClassVar[str] = r"\frac{g^2}{d_k}"

    def radius(self, d_k: int) -> float:
        return math.sqrt(self.scale)

    def limiting_exponent(self) -> float | None:
        return -1.0


@functools.lru_cache(maxsize=1)
def _transforms() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return y, φ_r(e^{2y}) for r = 0..4, (5, len(y)), and ln φ_0: φ_r(t) = ∫ x^r e^{−x − t x²} dx over x > 0.

    Trapezoids in ln x, whose error on this analytic integrand is below rounding.
    """
    y = np.arange(-400, 401) / 10
    x = np.exp(np.arange(-850, 47) / 10)
    kernel = np.exp(-x - np.exp(2 * y)[:, None] * x**2)
    phi = (x ** np.arange(1, 6)[:, None] / 10) @ kernel.T
    # φ_0 + 2t φ_1 = 1 gives a logarithm that is still exact to rounding after it is multiplied by a large d_k.
    below_one = 2 * np.exp(2 * y) * phi[1]
    return y, phi, np.where(below_one < 0.5, np.log1p(-np.minimum(below_one, 0.5)), np.log(phi[0]))


def direction_moment(d_k: int, powers: tuple[int, ...]) -> float:
    """Return E Π u_i^{a_i} over the given powers, u = E/‖E‖ for d_k independent exponentials E_i.

    With ‖E‖^{−p} = ∫ t^{p/2−1} e^{−t‖E‖²} dt / Γ(p/2) the components separate; t = e^{2y}, trapezoids in y.
    """
    y, phi, log_phi_0 = _transforms()
    p = sum(powers)
    log_integrand = p * y + (d_k - len(powers)) * log_phi_0
    product = np.exp(log_integrand) * np.prod([phi[a] for a in powers], axis=0)
    return 2 * float(product.sum()) / 10 / math.gamma(p / 2)


_EQUAL_COMPONENTS: dict[int, dict[tuple[int, ...], int]] = {
    1: {(1,): 1},
    2: {(2,): 1, (1, 1): 1},
    3: {(3,): 1, (2, 1): 3, (1, 1, 1): 1},
    4: {(4,): 1, (3, 1): 4, (2, 2): 3, (2, 1, 1): 6, (1, 1, 1, 1): 1},
}
"""Ways in which p factors fall on equal and different components, and how many orders each has."""


def direction_sum(d_k: int, p: int, power: int) -> float:
    """Return the sum over all p-tuples of components of (E u_i u_j ...)^power.

    Power 1 gives E(Σu_i)^p and power 2 gives E(u·v)^p for independent u and v.
    """
    return sum(
        count * math.perm(d_k, len(powers)) * direction_moment(d_k, powers) ** power
        for powers, count in _EQUAL_COMPONENTS[p].items()
        if len(powers) <= d_k
    )


@register
@dataclass(frozen=True, kw_only=True)
class RmsNormExponential(Ensemble):
    """What RMSNorm does not mend: the norm is fixed, but the directions keep to the positive orthant."""

    family: ClassVar[str] = "rmsnorm_exponential"
    independent_keys: ClassVar[bool] = True
    summary: ClassVar[str] = "RMS-normalised q and k whose components were independent exponentials: all of one sign"
    source: ClassVar[str] = (
        "u = q/‖q‖, E u_i = μ and E u_i u_j = β; these and the fourth moments are one-dimensional integrals, computed "
        "by quadrature to about 1e-12"
    )
    variance_formula: ClassVar[str] = r"d_k + d_k^3 ( d_k - 1 ) \beta^2 - d_k^4 \mu^4"

    def undefined_at(self, d_k: int) -> str | None:
        return "one positive component is always 1 after RMSNorm, so d_k must be at least 2" if d_k < 2 else None

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        def normalised(n: int) -> np.ndarray:
            x = rng.standard_exponential((n_blocks, n, d_k), dtype=np.float32)
            x *= np.sqrt(d_k / np.vecdot(x, x))[..., None]
            return x

        return normalised(n_queries), normalised(n_keys)

    def exact(self, d_k: int) -> Exact:
        m1, m2, m3, m4 = (d_k**p * direction_sum(d_k, p, 2) for p in range(1, 5))
        variance = m2 - m1**2
        mean, pair = direction_moment(d_k, (1,)), direction_moment(d_k, (1, 1))
        within_row = d_k**2 * (1 / d_k - mean**2 + d_k * (d_k - 1) * pair * (pair - mean**2))
        if d_k > MAX_CUMULANT_WIDTH:
            return Exact(m1, variance, within_row, None, CANCELS)
        fourth = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
        return Exact(m1, variance, within_row, fourth / variance**2 - 3)

    def block_relative_variance(self, d_k: int, n_queries: int, n_keys: int) -> float | None:
        if d_k > MAX_CUMULANT_WIDTH:
            return None
        # E[(S − E S)² | u] = a T² + b T + c with T = Σu_i: what the scores of one query or one key share.
        exact, t = self.exact(d_k), [1.0, *(direction_sum(d_k, p, 1) for p in range(1, 5))]
        assert exact.mean is not None
        assert exact.variance is not None
        assert exact.excess_kurtosis is not None
        mean, pair = direction_moment(d_k, (1,)), direction_moment(d_k, (1, 1))
        quadratic = np.array([d_k - d_k**2 * pair + exact.mean**2, -2 * exact.mean * d_k * mean, d_k**2 * pair])
        shared = float(np.convolve(quadratic, quadratic) @ t) / exact.variance**2 - 1
        return (2 + exact.excess_kurtosis + (n_queries + n_keys - 2) * shared) / (n_queries * n_keys)
