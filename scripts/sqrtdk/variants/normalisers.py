"""Normalisers: how a row of logits becomes attention weights, and the exact way back. A new one is one class here.

All but the sigmoid have a Jacobian of one form, from which backward pass and norm follow:

    J = ∂p/∂z = diag(s) − s sᵀ / S,   S = Σ s + rest.

The largest slope is kept apart, so that nothing cancels where one key takes almost all of the weight.
"""

import abc
import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sqrtdk.rows import softmax
from sqrtdk.sampling.parameters import Parameter, number_text, parameter


@dataclass(frozen=True, kw_only=True)
class Normaliser(abc.ABC):
    """A map from logits z (..., n_keys) to weights of the same shape. Its fields are its parameters.

    name: how the configuration and the tables spell it. label: how a figure does (Matplotlib mathtext).
    formula: the weights in the subset of TeX that the report reads. source: where it is proposed or used.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    formula: ClassVar[str]
    source: ClassVar[str]

    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        """Return the parameters, in the order of their fields."""
        return tuple(Parameter(field.name, **field.metadata) for field in dataclasses.fields(cls))

    @property
    def spelling(self) -> str:
        """The name with all parameters, as the configuration can spell it: `top_k(k=8)`."""
        given = ", ".join(f"{name}={number_text(value)}" for name, value in vars(self).items())
        return f"{self.name}({given})" if given else self.name

    @abc.abstractmethod
    def weights(self, z: np.ndarray) -> np.ndarray:
        """Return the weights p of finite logits."""

    def slopes(self, z: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        """Return s (..., n_keys) and rest (...) of the Jacobian diag(s) − s sᵀ/(Σ s + rest)."""
        return p, 0.0

    def null_mass(self, z: np.ndarray) -> np.ndarray | None:
        """Return the weight (...) that goes to no key, 1 − Σp, without cancellation; None where none can."""
        return None

    def backward(self, z: np.ndarray, p: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return ∂L/∂z = Jᵀ v from v = ∂L/∂p; p are the weights of z, all (..., n_keys)."""
        s, rest = self.slopes(z, p)
        top = s.argmax(axis=-1)[..., None]
        v_top = np.take_along_axis(v, top, axis=-1)
        total, rest = s.sum(axis=-1, keepdims=True) + _column(rest), _column(rest)
        difference = v - v_top
        return s * (difference - (s * difference).sum(axis=-1, keepdims=True) / total + v_top * rest / total)

    def jacobian_norm(self, z: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return ‖J‖_F (...).

        With t = s/R over the other keys, R = Σ s + rest without the largest, r = R/S and T_k = Σ t^k it is
        R² ((1 − r)² (1 + 2 T₂) + T₂ − 2 r T₃ + r² T₂²), where r t <= 1/2.
        """
        s, rest = self.slopes(z, p)
        top = s.argmax(axis=-1)[..., None]
        largest = np.take_along_axis(s, top, axis=-1)[..., 0]
        t = s.copy()
        np.put_along_axis(t, top, 0.0, axis=-1)
        others = t.sum(axis=-1) + rest
        t /= np.where(others > 0, others, 1.0)[..., None]
        r = others / (largest + others)
        t2, t3 = np.vecdot(t, t), np.vecdot(t * t, t)
        return others * np.sqrt((1 - r) ** 2 * (1 + 2 * t2) + t2 - 2 * r * t3 + (r * t2) ** 2)

    def exact(self, n_keys: int, spread: float) -> dict[str, float]:
        """Return the measures that have an exact value over rows of independent N(0, spread²) logits."""
        return {}


def _column(x: np.ndarray | float) -> np.ndarray | float:
    return x[..., None] if isinstance(x, np.ndarray) else x


NORMALISERS: dict[str, type[Normaliser]] = {}
"""Every normaliser by name, in the order in which figures and tables show them."""


def register(cls: type[Normaliser]) -> type[Normaliser]:
    """Class decorator: make a normaliser known under its own name."""
    if cls.name in NORMALISERS:
        raise ValueError(f"two normalisers are called {cls.name}")
    NORMALISERS[cls.name] = cls
    return cls


@register
@dataclass(frozen=True, kw_only=True)
class Softmax(Normaliser):
    """All weight to the keys, in proportion to e^z."""

    name: ClassVar[str] = "softmax"
    label: ClassVar[str] = "softmax"
    formula: ClassVar[str] = r"p_j = \frac{e^{z_j}}{\sum_l e^{z_l}}"
    source: ClassVar[str] = "Bridle 1990; Bahdanau et al. 2015 for attention"

    def weights(self, z: np.ndarray) -> np.ndarray:
        return softmax.softmax(z)

    def exact(self, n_keys: int, spread: float) -> dict[str, float]:
        from sqrtdk.theory import normaliser_averages

        return {"row_sum": 1.0, "support": float(n_keys)} | normaliser_averages.softmax(n_keys, spread)


@dataclass(frozen=True, kw_only=True)
class _WithSink(Normaliser):
    """Softmax with one more logit b that belongs to no key, whose weight is dropped."""

    @abc.abstractmethod
    def sink(self) -> float:
        """Return b."""

    def _all(self, z: np.ndarray) -> np.ndarray:
        return softmax.softmax(np.concatenate([z, np.full((*z.shape[:-1], 1), self.sink())], axis=-1))

    def weights(self, z: np.ndarray) -> np.ndarray:
        return self._all(z)[..., :-1]

    def null_mass(self, z: np.ndarray) -> np.ndarray:
        return self._all(z)[..., -1]

    def slopes(self, z: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        return p, self.null_mass(z)

    def exact(self, n_keys: int, spread: float) -> dict[str, float]:
        from sqrtdk.theory import normaliser_averages

        return {"support": float(n_keys)} | normaliser_averages.sink(n_keys, spread, self.sink())


@register
@dataclass(frozen=True, kw_only=True)
class Softmax1(_WithSink):
    """Not exp(z − 1)/Σ exp(z − 1), which is softmax itself."""

    name: ClassVar[str] = "softmax1"
    label: ClassVar[str] = "softmax$_1$"
    formula: ClassVar[str] = r"p_j = \frac{e^{z_j}}{1 + \sum_l e^{z_l}}"
    source: ClassVar[str] = "Miller 2023"

    def sink(self) -> float:
        return 0.0


@register
@dataclass(frozen=True, kw_only=True)
class Sink(_WithSink):
    """Softmax with one more logit b that is learned, whose weight goes to no key."""

    name: ClassVar[str] = "sink"
    label: ClassVar[str] = "learned sink"
    formula: ClassVar[str] = r"p_j = \frac{e^{z_j}}{e^b + \sum_l e^{z_l}}"
    source: ClassVar[str] = "OpenAI 2025 (gpt-oss): one learned logit for each head"
    b: float = parameter("logit of the sink, which is learned", default=0.0, low=-1e4, high=1e4)

    def sink(self) -> float:
        return float(self.b)


@register
@dataclass(frozen=True, kw_only=True)
class Sparsemax(Normaliser):
    """The point of the simplex nearest to z."""

    name: ClassVar[str] = "sparsemax"
    label: ClassVar[str] = "sparsemax"
    formula: ClassVar[str] = r"p_j = \max ( z_j - \tau , 0 ) , \quad \sum_j p_j = 1"
    source: ClassVar[str] = "Martins and Astudillo 2016"

    def weights(self, z: np.ndarray) -> np.ndarray:
        # A key that is 1 below the largest has no weight, however far below.
        x = np.maximum(z - z.max(axis=-1, keepdims=True), -1.0)
        ordered, k = _descending(x)
        above = ordered.cumsum(axis=-1) - 1
        size = (k * ordered > above).sum(axis=-1, keepdims=True)
        return np.maximum(x - np.take_along_axis(above, size - 1, axis=-1) / size, 0.0)

    def slopes(self, z: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        return (p > 0).astype(np.float64), 0.0

    def exact(self, n_keys: int, spread: float) -> dict[str, float]:
        from sqrtdk.theory import normaliser_averages

        return {"row_sum": 1.0} | normaliser_averages.one_hot(n_keys, spread, gap=1.0)


@register
@dataclass(frozen=True, kw_only=True)
class Entmax15(Normaliser):
    """The α-entmax with α = 1.5, between softmax (α = 1) and sparsemax (α = 2)."""

    name: ClassVar[str] = "entmax15"
    label: ClassVar[str] = "1.5-entmax"
    formula: ClassVar[str] = r"p_j = \max ( z_j / 2 - \tau , 0 )^2 , \quad \sum_j p_j = 1"
    source: ClassVar[str] = "Peters, Niculae and Martins 2019, algorithm 2"

    def weights(self, z: np.ndarray) -> np.ndarray:
        x = np.maximum((z - z.max(axis=-1, keepdims=True)) / 2, -1.0)
        ordered, k = _descending(x)
        mean = ordered.cumsum(axis=-1) / k
        variance = (ordered**2).cumsum(axis=-1) / k - mean**2
        threshold = mean - np.sqrt(np.maximum(1 / k - variance, 0.0))
        size = (threshold <= ordered).sum(axis=-1, keepdims=True)
        return np.maximum(x - np.take_along_axis(threshold, size - 1, axis=-1), 0.0) ** 2

    def slopes(self, z: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        return np.sqrt(p), 0.0

    def exact(self, n_keys: int, spread: float) -> dict[str, float]:
        from sqrtdk.theory import normaliser_averages

        return {"row_sum": 1.0} | normaliser_averages.one_hot(n_keys, spread, gap=2.0)


def _descending(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.sort(x, axis=-1)[..., ::-1], np.arange(1, x.shape[-1] + 1)


@register
@dataclass(frozen=True, kw_only=True)
class Sigmoid(Normaliser):
    """Each key by itself, with a bias of −ln n so that the weights of n equal logits of 0 sum to about 1."""

    name: ClassVar[str] = "sigmoid"
    label: ClassVar[str] = "sigmoid"
    formula: ClassVar[str] = r"p_j = \frac{1}{1 + n^{a} e^{- b - z_j}}"
    source: ClassVar[str] = "Ramapuram et al. 2024"
    a: float = parameter("the bias falls as −a ln n_keys; 0 for a plain sigmoid", default=1.0, low=-100, high=100)
    b: float = parameter("part of the bias that does not depend on n_keys", default=0.0, low=-1e4, high=1e4)

    def _biased(self, z: np.ndarray) -> np.ndarray:
        return z + (self.b - self.a * math.log(z.shape[-1]))

    def weights(self, z: np.ndarray) -> np.ndarray:
        return _logistic(self._biased(z))

    def slopes(self, z: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
        return p * _logistic(-self._biased(z)), math.inf

    def backward(self, z: np.ndarray, p: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.slopes(z, p)[0] * v

    def jacobian_norm(self, z: np.ndarray, p: np.ndarray) -> np.ndarray:
        return np.linalg.norm(self.slopes(z, p)[0], axis=-1)

    def exact(self, n_keys: int, spread: float) -> dict[str, float]:
        from sqrtdk.theory import normaliser_averages

        offset = self.b - self.a * math.log(n_keys)
        return {"support": float(n_keys)} | normaliser_averages.sigmoid(n_keys, spread, offset)


def _logistic(x: np.ndarray) -> np.ndarray:
    # exp of a number that is not positive, for either sign.
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1 + e)


@register
@dataclass(frozen=True, kw_only=True)
class TopK(Normaliser):
    """Softmax over the k largest logits; of equal ones the first keep their place."""

    name: ClassVar[str] = "top_k"
    label: ClassVar[str] = "top-$k$ softmax"
    formula: ClassVar[str] = r"p_j = \frac{e^{z_j}}{\sum_{l \in T} e^{z_l}} , \quad j \in T , \text{the largest } k"
    source: ClassVar[str] = "Gupta et al. 2021"
    k: int = parameter("keys that are kept", default=8, kind="integer", low=1, low_open=False)

    def weights(self, z: np.ndarray) -> np.ndarray:
        kept = np.argsort(-z, axis=-1, stable=True)[..., : self.k]
        p = np.zeros(z.shape)
        np.put_along_axis(p, kept, softmax.softmax(np.take_along_axis(z, kept, axis=-1)), axis=-1)
        return p

    def exact(self, n_keys: int, spread: float) -> dict[str, float]:
        return {"row_sum": 1.0, "support": float(min(self.k, n_keys))}


@register
@dataclass(frozen=True, kw_only=True)
class Window(Normaliser):
    """Softmax over a window of keys: the first `width` of the row, since its logits do not say where the query is.

    Logits that are exchangeable, as random ones are, have the same law in any window.
    """

    name: ClassVar[str] = "window"
    label: ClassVar[str] = "sliding window"
    formula: ClassVar[str] = r"p_j = \frac{e^{z_j}}{\sum_{l \le w} e^{z_l}} , \quad j \le w"
    source: ClassVar[str] = "Beltagy et al. 2020 (Longformer); Jiang et al. 2023 (Mistral)"
    width: int = parameter("keys in the window", default=16, kind="integer", low=1, low_open=False)

    def weights(self, z: np.ndarray) -> np.ndarray:
        p = np.zeros(z.shape)
        p[..., : self.width] = softmax.softmax(z[..., : self.width])
        return p

    def exact(self, n_keys: int, spread: float) -> dict[str, float]:
        return Softmax().exact(min(self.width, n_keys), spread)


@register
@dataclass(frozen=True, kw_only=True)
class PostScale(Normaliser):
    """Softmax times a constant, which values or output weights can absorb: no other function, J times a."""

    name: ClassVar[str] = "post_scale"
    label: ClassVar[str] = r"$a$ softmax"
    formula: ClassVar[str] = r"p_j = a \frac{e^{z_j}}{\sum_l e^{z_l}}"
    source: ClassVar[str] = "a constant in place of 1, to show what it cannot do"
    a: float = parameter("factor after softmax", default=2.0, low=0, high=1e6)

    def weights(self, z: np.ndarray) -> np.ndarray:
        return self.a * softmax.softmax(z)

    def exact(self, n_keys: int, spread: float) -> dict[str, float]:
        found = Softmax().exact(n_keys, spread)
        return found | {name: self.a * found[name] for name in ("row_sum", "jacobian_frobenius")}
