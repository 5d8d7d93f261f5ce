"""q and k projected from random tokens by weights that stay as they are, as in one given layer."""

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sqrtdk.sampling import streams
from sqrtdk.sampling.ensembles.base import Ensemble, Exact, register
from sqrtdk.sampling.parameters import parameter
from sqrtdk.sampling.streams import standard_normal

WIDTH = "width D of a token; the weights have variance 1/D"
FIXED = (
    "projected by one fixed pair of Gaussian weight matrices, q = W_q x and k = W_k x'; the matrices come from a "
    "generator of their own that no seed changes"
)


@functools.lru_cache(maxsize=4)
def weights(d_model: int, d_k: int, centred: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the fixed W_q and W_k, each (d_k, d_model), or what they do to tokens of mean 0, (d_k, d_model − 1).

    The rows at one d_k are the first rows at every larger d_k.
    """
    query, key = (
        streams.generator(0, "fixed weights", d_model, side).standard_normal((d_k, d_model)) / math.sqrt(d_model)
        for side in ("query", "key")
    )
    if centred:
        # The columns after the first are an orthonormal basis of the tokens of mean 0.
        basis = np.linalg.qr(np.column_stack([np.ones(d_model), np.eye(d_model)[:, 1:]]))[0][:, 1:]
        query, key = query @ basis, key @ basis
    return query, key


@functools.lru_cache(maxsize=4)
def _factors(d_model: int, d_k: int, centred: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return F_q and F_k with F Fᵀ = W Wᵀ and no more columns than d_k: isotropic x enters only through as many."""
    query, key = weights(d_model, d_k, centred)
    if d_k < query.shape[1]:
        query, key = (np.linalg.qr(w.T)[1].T for w in (query, key))
    return query.astype(np.float32), key.astype(np.float32)


@functools.lru_cache(maxsize=64)
def traces(d_model: int, d_k: int, centred: bool) -> tuple[float, float]:
    """Return ‖M‖² and ‖M Mᵀ‖² (Frobenius) for M = W_qᵀ W_k."""
    w_q, w_k = weights(d_model, d_k, centred)
    product = w_q.T @ w_k
    return float(np.sum(product**2)), float(np.sum((product @ product.T) ** 2))


@dataclass(frozen=True, kw_only=True)
class FixedLayer(Ensemble):
    """S = xᵀ W_qᵀ W_k x' with independent isotropic tokens x and x'; everything follows from two traces."""

    d_model: int

    independent_keys: ClassVar[bool] = True
    centred: ClassVar[bool] = False
    normalised: ClassVar[bool] = False
    variance_formula: ClassVar[str] = r"\| W_q^\top W_k \|_F^2"

    def dimension(self) -> int:
        """Return the number of dimensions of the tokens."""
        return self.d_model - self.centred

    def tokens(self, rng: np.random.Generator, size: tuple[int, int], r: int) -> np.ndarray:
        """Draw r of the coordinates of isotropic tokens, (*size, r)."""
        x = standard_normal(rng, (*size, r))
        if self.normalised:
            square = np.vecdot(x, x)
            if r < self.dimension():
                # The norm is that of all coordinates; those not drawn add a chi-square.
                square += 2 * rng.standard_gamma((self.dimension() - r) / 2, size, dtype=np.float32)
            x *= np.sqrt(np.float32(self.d_model) / square)[..., None]
        return x

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        q, k = (
            (self.tokens(rng, (n_blocks, n), factor.shape[1]).reshape(-1, factor.shape[1]) @ factor.T).reshape(
                n_blocks, n, d_k
            )
            for n, factor in zip((n_queries, n_keys), _factors(self.d_model, d_k, self.centred), strict=True)
        )
        return q, k

    def _spread(self, d_k: int) -> tuple[float, float]:
        """Return E S⁴/(E S²)² and the relative variance of E[S² | x], which is that of E[S² | x'] too."""
        trace, square = traces(self.d_model, d_k, self.centred)
        excess = 1 + 2 * square / trace**2
        shrink = self.dimension() / (self.dimension() + 2) if self.normalised else 1.0
        return 3 * shrink**2 * excess, shrink * excess - 1

    def exact(self, d_k: int) -> Exact:
        scale = (self.d_model / self.dimension()) ** 2 if self.normalised else 1.0
        variance = scale * traces(self.d_model, d_k, self.centred)[0]
        return Exact(0.0, variance, variance, self._spread(d_k)[0] - 3)

    def block_relative_variance(self, d_k: int, n_queries: int, n_keys: int) -> float | None:
        fourth, shared = self._spread(d_k)
        return (fourth - 1 + (n_queries + n_keys - 2) * shared) / (n_queries * n_keys)


@register
@dataclass(frozen=True, kw_only=True)
class FixedWeights(FixedLayer):
    """q = W_q x and k = W_k x' with fixed weights and white Gaussian tokens."""

    d_model: int = parameter(WIDTH, default=64, low=1, low_open=False, kind="integer")

    family: ClassVar[str] = "fixed_weights"
    summary: ClassVar[str] = f"white Gaussian tokens x and x', {FIXED}"
    source: ClassVar[str] = (
        "Var S = ‖M‖² and excess kurtosis 6 ‖M Mᵀ‖²/‖M‖⁴ (Frobenius), M = W_qᵀ W_k, computed for these weights"
    )


@register
@dataclass(frozen=True, kw_only=True)
class FixedWeightsRmsNorm(FixedLayer):
    """q = W_q x and k = W_k x' with fixed weights and tokens uniform on the sphere of radius √D."""

    d_model: int = parameter(WIDTH, default=64, low=2, low_open=False, kind="integer")

    family: ClassVar[str] = "fixed_weights_rmsnorm"
    summary: ClassVar[str] = f"RMS-normalised Gaussian tokens x and x', {FIXED}"
    source: ClassVar[str] = (
        "as for fixed weights, with E(a·x)⁴ = 3 ‖a‖⁴ D/(D + 2) for x uniform on the sphere of radius √D"
    )
    normalised: ClassVar[bool] = True


@register
@dataclass(frozen=True, kw_only=True)
class FixedWeightsLayerNorm(FixedLayer):
    """q = W_q x and k = W_k x' with fixed weights and tokens on that sphere with mean component 0."""

    d_model: int = parameter(WIDTH, default=64, low=3, low_open=False, kind="integer")

    family: ClassVar[str] = "fixed_weights_layernorm"
    summary: ClassVar[str] = f"Gaussian tokens x and x' after LayerNorm without gain and bias, {FIXED}"
    source: ClassVar[str] = "as after RMSNorm, on the sphere of D − 1 dimensions of the tokens of mean 0; P = I − 11ᵀ/D"
    variance_formula: ClassVar[str] = r"\frac{D^2}{( D - 1 )^2} \| P W_q^\top W_k P \|_F^2"
    centred: ClassVar[bool] = True
    normalised: ClassVar[bool] = True
