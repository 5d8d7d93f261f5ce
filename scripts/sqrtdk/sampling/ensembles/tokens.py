"""q and k projected from tokens by Gaussian weights that are drawn anew in every block, as at initialisation.

The weights are never drawn themselves. A Gaussian matrix has the same law in every orthonormal basis, so that W x is
drawn exactly from W's values in a basis of the tokens' span: with tokens X = √D·A·B, rows of B orthonormal, W X has
the law of A Z with Z standard normal, whatever the width D.
"""

import abc
import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sqrtdk.sampling import streams
from sqrtdk.sampling.ensembles.base import Ensemble, Exact, register
from sqrtdk.sampling.parameters import parameter
from sqrtdk.sampling.streams import signs, standard_normal

WIDTH = "width D of a token; the weights have variance 1/D"


def relative_variance(
    d_k: int, square_q: float, square_k: float, product: float, norms_q: float = 1.0, norms_k: float = 1.0
) -> float:
    """Relative variance of a block's mean S², S = q·k, q and k Gaussian given the tokens' Gram matrices G and H.

    Args:
        square_q, square_k: mean over all pairs of tokens of E G_ij², of E H_ij². product: of E[G_ij² H_lm²].
        norms_q, norms_k: of E[G_ii G_jj], of E[H_ii H_jj]; all relative to E G_ii = E H_ii = 1.
    """
    mean_square = norms_q * norms_k + 2 * (square_q * norms_k + square_k * norms_q) / d_k
    return mean_square + 2 * (1 + 1 / d_k) * product - 1


@register
@dataclass(frozen=True, kw_only=True)
class Tied(Ensemble):
    """q = k = W x with one matrix W for both."""

    family: ClassVar[str] = "tied"
    summary: ClassVar[str] = (
        "one random projection for queries and keys, q = k = W x for a token's own pair; the tokens are orthogonal"
    )
    source: ClassVar[str] = "S = ‖W x‖² is a chi-square with d_k degrees of freedom"
    matched: ClassVar[bool] = True
    variance_formula: ClassVar[str] = r"2 d_k"

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        x = standard_normal(rng, (n_blocks, max(n_queries, n_keys), d_k))
        # A copy, because a caller may change q in place.
        return x[:, :n_queries].copy(), x[:, :n_keys]

    def exact(self, d_k: int) -> Exact:
        # The keys of other tokens are independent of q.
        return Exact(float(d_k), 2.0 * d_k, float(d_k), 12 / d_k)

    def block_relative_variance(self, d_k: int, n_queries: int, n_keys: int) -> float | None:
        return (2 + 12 / d_k) / n_queries


@register
@dataclass(frozen=True, kw_only=True)
class SharedTokens(Ensemble):
    """Queries of one block have correlation `cosine` with each other, keys too: softmax sees only what differs."""

    cosine: float = parameter("cosine between any two tokens", low=0.0, high=1.0, low_open=False)

    family: ClassVar[str] = "shared_tokens"
    summary: ClassVar[str] = (
        "tokens of norm √D with one cosine between any two of them, projected by random Gaussian weights"
    )
    source: ClassVar[str] = (
        "E[W x (W x')ᵀ] = cos(x, x') I: one score has the law of Gaussian q and k, but a row varies only by d_k (1 − c)"
    )
    variance_formula: ClassVar[str] = r"d_k"

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        def project(n: int) -> np.ndarray:
            z = standard_normal(rng, (n_blocks, n + 1, d_k))
            z[:, 1:] *= math.sqrt(1 - self.cosine)
            z[:, 1:] += np.float32(math.sqrt(self.cosine)) * z[:, :1]
            return z[:, 1:]

        return project(n_queries), project(n_keys)

    def exact(self, d_k: int) -> Exact:
        return Exact(0.0, float(d_k), d_k * (1 - self.cosine), 6 / d_k)

    def row_spectrum(self, d_k: int) -> list[tuple[float, float, float]] | None:
        # What all keys of a row share, softmax does not see.
        return [(1.0, 1 - self.cosine, d_k)]

    def block_relative_variance(self, d_k: int, n_queries: int, n_keys: int) -> float | None:
        q, k = ((1 + (n - 1) * self.cosine**2) / n for n in (n_queries, n_keys))
        return relative_variance(d_k, q, k, q * k)


@dataclass(frozen=True, kw_only=True)
class RandomLayer(Ensemble):
    """q = W_q x and k = W_k x', entries of W_q and W_k independent N(0, 1/D), one W_q and one W_k for each block."""

    variance_formula: ClassVar[str] = r"d_k"

    @abc.abstractmethod
    def coordinates(self, rng: np.random.Generator, n_blocks: int, n: int) -> np.ndarray:
        """Return tokens over √D in a basis of their span, (n_blocks or 1, n, r), those above the diagonal zero."""

    def project(self, rng: np.random.Generator, n_blocks: int, tokens: np.ndarray, n: int, d_k: int) -> np.ndarray:
        """Draw W x for the first n tokens, which span at most n coordinates."""
        tokens = tokens[:, :n, :n]
        return tokens @ standard_normal(rng, (n_blocks, tokens.shape[-1], d_k))

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        tokens = self.coordinates(rng, n_blocks, max(n_queries, n_keys))
        q, k = (self.project(rng, n_blocks, tokens, n, d_k) for n in (n_queries, n_keys))
        return q, k

    def exact(self, d_k: int) -> Exact:
        return Exact(0.0, float(d_k), float(d_k), 6 / d_k)


@functools.lru_cache(maxsize=4)
def _fixed_tokens(d_model: int, n: int) -> np.ndarray:
    """Return `coordinates` of the first n of the fixed tokens of this width, (1, n, min(n, d_model)) float32."""
    x = streams.generator(0, "fixed tokens", d_model).standard_normal((n, d_model))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return np.linalg.qr(x.T)[1].T[None].astype(np.float32)


@functools.cache
def _mean_square_cosine(d_model: int, drawn: int, n: int) -> float:
    """Return the mean squared cosine between the first n of so many fixed tokens. A plan asks for few of them often."""
    tokens = _fixed_tokens(d_model, drawn)[0].astype(float)[:n]
    return float(np.mean((tokens @ tokens.T) ** 2))


@register
@dataclass(frozen=True, kw_only=True)
class RandomWeights(RandomLayer):
    """The tokens are fixed vectors of norm √D, each with a random sign."""

    d_model: int = parameter(WIDTH, default=64, low=1, low_open=False, kind="integer")

    family: ClassVar[str] = "random_weights"
    summary: ClassVar[str] = (
        "fixed tokens of norm √D, each with a random sign, projected by random Gaussian weights, q = W_q x and "
        "k = W_k x; the tokens come from a generator of their own that no seed changes"
    )
    source: ClassVar[str] = "W x is N(0, I) for every fixed x of norm √D: the law of Gaussian q and k, for x = x' too"

    def coordinates(self, rng: np.random.Generator, n_blocks: int, n: int) -> np.ndarray:
        return _fixed_tokens(self.d_model, n)

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        q, k = super().draw(rng, n_blocks, n_queries, n_keys, d_k)
        # The signs make the mean cosine between tokens 0, so that a row varies by d_k whichever tokens it holds.
        sign = signs(rng, (n_blocks, max(n_queries, n_keys), 1))
        q *= sign[:, :n_queries]
        k *= sign[:, :n_keys]
        return q, k

    def block_relative_variance(self, d_k: int, n_queries: int, n_keys: int) -> float | None:
        q, k = (_mean_square_cosine(self.d_model, max(n_queries, n_keys), n) for n in (n_queries, n_keys))
        return relative_variance(d_k, q, k, q * k)


def gaussian_coordinates(rng: np.random.Generator, n_blocks: int, n: int, width: int) -> np.ndarray:
    """Draw n standard normal vectors of a width in a basis of their span, (n_blocks, n, min(n, width)) float32.

    The lower triangle of the decomposition of Bartlett (1933): roots of chi-squares on the diagonal.
    """
    r = min(n, width)
    x = standard_normal(rng, (n_blocks, n, r))
    x *= np.tri(n, r, -1, dtype=np.float32)
    shapes = (width - np.arange(r, dtype=np.float32)) / 2
    diagonal = rng.standard_gamma(shapes, (n_blocks, r), dtype=np.float32)
    diagonal *= 2
    # float32 chi-squares of one degree of freedom underflow once in 10^7 draws; a direction must not be 0/0.
    np.maximum(diagonal, np.float32(1e-12), out=diagonal)
    x[:, np.arange(r), np.arange(r)] = np.sqrt(diagonal, out=diagonal)
    return x


@register
@dataclass(frozen=True, kw_only=True)
class RawTokens(RandomLayer):
    """The tokens are white Gaussian vectors, those of keys independent of those of queries."""

    d_model: int = parameter(WIDTH, default=64, low=1, low_open=False, kind="integer")

    family: ClassVar[str] = "raw_tokens"
    summary: ClassVar[str] = (
        "white Gaussian tokens that nothing normalises, projected by random Gaussian weights, q = W_q x and "
        "k = W_k x'; the keys' tokens are not the queries'"
    )
    source: ClassVar[str] = "S = (‖x‖ ‖x'‖ / D) times a Gaussian score, and E‖x‖⁴ = D (D + 2)"

    def coordinates(self, rng: np.random.Generator, n_blocks: int, n: int) -> np.ndarray:
        tokens = gaussian_coordinates(rng, n_blocks, n, self.d_model)
        tokens *= 1 / math.sqrt(self.d_model)
        return tokens

    def draw(
        self, rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        q, k = (self.project(rng, n_blocks, self.coordinates(rng, n_blocks, n), n, d_k) for n in (n_queries, n_keys))
        return q, k

    def exact(self, d_k: int) -> Exact:
        kurtosis = 3 * ((1 + 2 / self.d_model) ** 2 * (1 + 2 / d_k) - 1)
        return Exact(0.0, float(d_k), float(d_k), kurtosis)

    def block_relative_variance(self, d_k: int, n_queries: int, n_keys: int) -> float | None:
        q, k = ((1 + (n + 1) / self.d_model) / n for n in (n_queries, n_keys))
        norms_q, norms_k = (1 + 2 / (self.d_model * n) for n in (n_queries, n_keys))
        return relative_variance(d_k, q, k, q * k, norms_q, norms_k)


@dataclass(frozen=True, kw_only=True)
class NormalisedTokens(RandomLayer):
    """White Gaussian tokens after a normalisation: uniform on the sphere of radius √D in `dimension()` dimensions."""

    @abc.abstractmethod
    def dimension(self) -> int:
        """Return the number of dimensions that the normalisation leaves."""

    def coordinates(self, rng: np.random.Generator, n_blocks: int, n: int) -> np.ndarray:
        tokens = gaussian_coordinates(rng, n_blocks, n, self.dimension())
        tokens *= (1 / np.sqrt(np.vecdot(tokens, tokens)))[..., None]
        return tokens

    def block_relative_variance(self, d_k: int, n_queries: int, n_keys: int) -> float | None:
        m = self.dimension()
        q, k = ((1 + (n - 1) / m) / n for n in (n_queries, n_keys))
        # Cosines of different pairs are pairwise independent on a sphere; queries and keys share their tokens.
        n = min(n_queries, n_keys)
        shared = 2 * n * (n - 1) * 2 * (m - 1) / (m**2 * (m + 2)) / (n_queries * n_keys) ** 2
        return relative_variance(d_k, q, k, q * k + shared)


@register
@dataclass(frozen=True, kw_only=True)
class RmsNormTokens(NormalisedTokens):
    """Tokens on the sphere in D dimensions."""

    d_model: int = parameter(WIDTH, default=64, low=1, low_open=False, kind="integer")

    family: ClassVar[str] = "rmsnorm_tokens"
    summary: ClassVar[str] = (
        "RMS-normalised Gaussian tokens, projected by random Gaussian weights, q = W_q x and k = W_k x"
    )
    source: ClassVar[str] = "W x is N(0, I) given any x of norm √D, which RMSNorm makes of every token"

    def dimension(self) -> int:
        return self.d_model


@register
@dataclass(frozen=True, kw_only=True)
class LayerNormTokens(NormalisedTokens):
    """Tokens on the sphere in the D − 1 dimensions without the mean."""

    d_model: int = parameter(WIDTH, default=64, low=2, low_open=False, kind="integer")

    family: ClassVar[str] = "layernorm_tokens"
    summary: ClassVar[str] = (
        "Gaussian tokens after LayerNorm without gain and bias, projected by random Gaussian weights, q = W_q x and "
        "k = W_k x"
    )
    source: ClassVar[str] = "W x is N(0, I) given any x of norm √D, which LayerNorm makes of every token"

    def dimension(self) -> int:
        return self.d_model - 1
