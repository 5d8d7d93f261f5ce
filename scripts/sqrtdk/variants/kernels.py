"""Attention whose weights are no function of one row of logits q·k: linear, with random features, and additive.

Each has `weights(q, k, scale)` for q (..., m, d_k) and k (..., n, d_k), and `query_gradient`, the exact way back to q.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sqrtdk.rows import gradients, softmax


def _transposed(x: np.ndarray) -> np.ndarray:
    return x.swapaxes(-1, -2)


@dataclass(frozen=True)
class DotProduct:
    """Softmax of scale·q·k, to compare with."""

    name: ClassVar[str] = "softmax"

    def weights(self, q: np.ndarray, k: np.ndarray, scale: float) -> np.ndarray:
        """Return the weights (..., m, n)."""
        return softmax.softmax(scale * (q @ _transposed(k)))


@dataclass(frozen=True)
class FeatureMap:
    """Weights φ(c q)·φ(k_j)/Σ_l φ(c q)·φ(k_l) of a feature map φ >= 0 that acts on each component."""

    name: str
    source: str
    feature: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]

    def weights(self, q: np.ndarray, k: np.ndarray, scale: float) -> np.ndarray:
        """Return the weights (..., m, n); all 0 for a query whose features meet those of no key."""
        a, b = self.feature(scale * q), self.feature(k)
        return _divided(a @ _transposed(b), a @ b.sum(axis=-2)[..., None])

    def query_gradient(self, q: np.ndarray, k: np.ndarray, scale: float, v: np.ndarray) -> np.ndarray:
        """Return ∂L/∂q (..., m, d_k) from v = ∂L/∂p (..., m, n)."""
        a, b = self.feature(scale * q), self.feature(k)
        total = b.sum(axis=-2)[..., None]
        mean = (v * self.weights(q, k, scale)).sum(axis=-1, keepdims=True)
        return scale * self.slope(scale * q) * _divided(v @ b - mean * _transposed(total), a @ total)


def _divided(x: np.ndarray, total: np.ndarray) -> np.ndarray:
    return np.divide(x, total, out=np.zeros(x.shape), where=total > 0)


RELU = FeatureMap(
    name="relu",
    source="Qin et al. 2022 (cosFormer); linear attention is that of Katharopoulos et al. 2020",
    feature=lambda x: np.maximum(x, 0.0),
    slope=lambda x: (x > 0).astype(np.float64),
)
"""relu(c q) = c relu(q) for c > 0: the scale has exactly no effect on the weights."""
ELU = FeatureMap(
    name="elu+1",
    source="Katharopoulos et al. 2020, equation 7",
    feature=lambda x: np.where(x > 0, x + 1, np.exp(np.minimum(x, 0.0))),
    slope=lambda x: np.exp(np.minimum(x, 0.0)),
)


@dataclass(frozen=True, eq=False)
class RandomFeatures:
    """Positive random features of Choromanski et al. 2021 (FAVOR+), whose mean over the features estimates e^{c q·k}.

    φ_i(x) = exp(ω_i·x − ‖x‖²/2) of x = √c q and √c k. omega: (..., m_features, d_k), i.i.d. N(0, 1).
    """

    omega: np.ndarray
    name: ClassVar[str] = "favor+"

    def logits(self, q: np.ndarray, k: np.ndarray, scale: float) -> np.ndarray:
        """Return the logarithm (..., m, n) of the estimate of e^{scale q·k}, which nothing can overflow."""
        a, b = (self._exponents(math.sqrt(scale) * x) for x in (q, k))
        # Both features are shifted to 1 at the largest of their product.
        exponent = a[..., :, None, :] + b[..., None, :, :]
        largest = exponent.max(axis=-1, keepdims=True)
        exponent -= largest
        return largest[..., 0] + np.log(np.exp(exponent, out=exponent).mean(axis=-1))

    def _exponents(self, x: np.ndarray) -> np.ndarray:
        return x @ _transposed(self.omega) - 0.5 * (x * x).sum(axis=-1, keepdims=True)

    def weights(self, q: np.ndarray, k: np.ndarray, scale: float) -> np.ndarray:
        """Return the estimated softmax weights (..., m, n)."""
        return softmax.softmax(self.logits(q, k, scale))


def log_relative_second_moment(q: np.ndarray, k: np.ndarray, scale: float) -> np.ndarray:
    """Return ln(1 + relative variance) (..., m, n) of the estimate of e^{scale q·k} by one feature: scale ‖q + k‖².

    Choromanski et al. 2021, lemma 2: the relative variance of m features is (e^{scale ‖q + k‖²} − 1)/m.
    """
    square = (q * q).sum(axis=-1)[..., :, None] + (k * k).sum(axis=-1)[..., None, :]
    return scale * (square + 2 * (q @ _transposed(k)))


@dataclass(frozen=True, eq=False)
class Additive:
    """Softmax of scale·vᵀ tanh(q + k) (Bahdanau et al. 2015), q and k already projected. v: (d_k,)."""

    v: np.ndarray
    name: ClassVar[str] = "additive"

    def scores(self, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Return vᵀ tanh(q + k) (..., m, n)."""
        return np.tanh(q[..., :, None, :] + k[..., None, :, :]) @ self.v

    def weights(self, q: np.ndarray, k: np.ndarray, scale: float) -> np.ndarray:
        """Return the weights (..., m, n)."""
        return softmax.softmax(scale * self.scores(q, k))

    def query_gradient(self, q: np.ndarray, k: np.ndarray, scale: float, v: np.ndarray) -> np.ndarray:
        """Return ∂L/∂q (..., m, d_k) from v = ∂L/∂p (..., m, n)."""
        t = np.tanh(q[..., :, None, :] + k[..., None, :, :])
        g = gradients.softmax_backward(softmax.rows(scale * (t @ self.v)), v)
        return scale * self.v * np.einsum("...n,...nd->...d", g, 1 - t * t)


def additive_score_variance(within_row: bool = False) -> float:
    """Return Var(vᵀ tanh(q + k))/‖v‖² for standard normal q and k: E tanh²(√2 g) = 0.52.

    Within a row, which is what softmax sees, the mean over k given q drops out: E Var(tanh(q + g) | q).
    """
    g, step = np.linspace(-10, 10, 801, retstep=True)
    weight = np.exp(-0.5 * g**2) * step / math.sqrt(2 * math.pi)
    variance = float(weight @ np.tanh(math.sqrt(2) * g) ** 2)
    mean_of_row = np.tanh(g[:, None] + g) @ weight
    return variance - float(weight @ mean_of_row**2) if within_row else variance
