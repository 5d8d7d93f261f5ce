"""Variants of attention, written as `SCALE | TRANSFORM | NORMALISER`, such as `1/sqrt(d_k) | soft_cap(cap=30)`.

Each piece is a name, or a name with parameters in brackets; the scale rule comes first, the others may be left out.
"""

import functools
import importlib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sqrtdk.sampling.parameters import Parameter, listed, nearest_name, number_text
from sqrtdk.variants import sizes
from sqrtdk.variants.scalings import SCALINGS, Scaling
from sqrtdk.variants.transforms import TRANSFORMS, Transform

_CALL = re.compile(r"(?P<name>.+?)\((?P<arguments>\s*[a-z_]\w*\s*=.*)\)")
CHI_NODES = 60
NORMAL_NODES = 4001
"""So many that the kink of a clip costs nothing."""


class VariantError(ValueError):
    """What is wrong with the text of a variant: `problem` in words, and the `nearest` text that is right, or None."""

    def __init__(self, problem: str, nearest: str | None = None) -> None:
        super().__init__(problem)
        self.problem, self.nearest = problem, nearest


@dataclass(frozen=True)
class Variant:
    """One way to make attention weights. `text` is its canonical spelling; values bind the parameters of its pieces.

    Scores, logits and gradients have the shape (..., m, n): the last two axes are the queries and the keys of a block.
    """

    text: str
    scaling: Scaling
    values: tuple[Any, ...]
    transforms: tuple[tuple[Transform, float], ...] = ()
    normaliser: Any = None
    """A `Normaliser`, or None for softmax; their module is loaded only where one is named."""

    def factor(self, d_k: int, n_keys: int) -> float | None:
        """Return the constant that multiplies q·k, or None where it depends on the data or more is done to it."""
        if self.scaling.factor is None or self.transforms or self.normaliser is not None:
            return None
        return self._number(self.scaling.factor, d_k, n_keys)

    def constant(self, d_k: int, n_keys: int) -> float:
        """Return `factor` of a rule that is known to be one; VariantError where it depends on the data."""
        factor = self.factor(d_k, n_keys)
        if factor is None:
            raise VariantError(f"{self.text} multiplies scores by no constant")
        return factor

    def _number(self, function: Callable[..., float], d_k: int, n_keys: int) -> float:
        return float(function(d_k, n_keys, **dict(self.values)))

    def scale(self, scores: np.ndarray, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Return the scaled scores of q (..., m, d_k) and k (..., n, d_k)."""
        d_k, n_keys = q.shape[-1], k.shape[-2]
        rule = self.scaling
        if rule.factor is not None:
            return self._number(rule.factor, d_k, n_keys) * scores
        if rule.cosine is not None:
            return self._number(rule.cosine, d_k, n_keys) * scores / (_norm(q) * _norm(k).swapaxes(-1, -2))
        assert rule.size is not None  # a rule is a factor, a cosine or a size
        flat = _flat(scores) if rule.rows else scores
        return (flat / _divisor(rule.size, flat)).reshape(scores.shape)

    def transform(self, z: np.ndarray) -> np.ndarray:
        """Return the logits from scaled scores."""
        for transform, value in self.transforms:
            z = transform.of(z, value)
        return z

    def logits(self, scores: np.ndarray, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Return what enters the normaliser."""
        return self.transform(self.scale(scores, q, k))

    def slope(self, z: np.ndarray) -> np.ndarray:
        """Return the derivative of each logit with respect to its scaled score."""
        total = np.ones_like(z)
        for transform, value in self.transforms:
            total = total * transform.slope(z, value)
            z = transform.of(z, value)
        return total

    def query_gradient(
        self,
        scores: np.ndarray,
        q: np.ndarray,
        k: np.ndarray,
        scaled_gradient: np.ndarray,
        n_queries: int | None = None,
    ) -> np.ndarray:
        """Return ∂L/∂q (..., m, d_k) from the gradient with respect to the scaled scores, through the rule itself.

        n_queries: only for the first so many queries of a block; None for all.
        """
        rule, some = self.scaling, slice(n_queries)
        g = scaled_gradient[..., some, :]
        if rule.factor is not None:
            return self._number(rule.factor, q.shape[-1], k.shape[-2]) * (g @ k)
        if rule.cosine is not None:
            q_norm = _norm(q[..., some, :])
            unit = q[..., some, :] / q_norm
            along = (g / _norm(k).swapaxes(-1, -2)) @ k
            across = along - unit * np.vecdot(unit, along)[..., None]
            return self._number(rule.cosine, q.shape[-1], k.shape[-2]) * across / q_norm
        # A size over the whole head mixes the rows, one over a row does not.
        rows = slice(None) if rule.rows else some
        return self._score_gradient(scores[..., rows, :], scaled_gradient[..., rows, :])[..., some, :] @ k

    def key_norms(self, scores: np.ndarray, q: np.ndarray, k: np.ndarray, scaled_gradient: np.ndarray) -> np.ndarray:
        """Return (Σ_j ‖∂L/∂k_j‖²)^½ of each row's own scores, (..., m), from the gradient of the scaled scores."""
        rule, g = self.scaling, scaled_gradient
        query = _norm(q)[..., 0]
        if rule.factor is not None:
            return self._number(rule.factor, q.shape[-1], k.shape[-2]) * query * np.sqrt(np.vecdot(g, g))
        if rule.cosine is not None:
            key = _norm(k).swapaxes(-1, -2)
            sine = np.sqrt(np.maximum(1 - (scores / (query[..., None] * key)) ** 2, 0.0))
            moved = g * sine / key
            return self._number(rule.cosine, q.shape[-1], k.shape[-2]) * np.sqrt(np.vecdot(moved, moved))
        score_gradient = self._score_gradient(scores, g)
        return query * np.sqrt(np.vecdot(score_gradient, score_gradient))

    def _score_gradient(self, scores: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return ∂L/∂S through a size h: z = S/h(S), so it is (g − (g·z) ∇h)/h."""
        assert self.scaling.size is not None
        size = getattr(sizes, self.scaling.size)
        flat, flat_g = (_flat(scores), _flat(g)) if self.scaling.rows else (scores, g)
        h = _divisor(self.scaling.size, flat)
        inner = np.sum(flat_g * flat, axis=-1, keepdims=True) / h
        return ((flat_g - inner * size.gradient(flat, h)) / h).reshape(scores.shape)

    def exact_std(self, d_k: int, n_keys: int) -> float | None:
        """Return the root of the mean within-row variance of the logits for standard normal q and k, where known."""
        rule = self.scaling
        if any(not transform.odd for transform, _ in self.transforms) or rule.rows:
            return None
        if rule.size is not None:
            known = None if self.transforms else getattr(sizes, rule.size).unit_variance(n_keys)
            return None if known is None or not np.isfinite(known) else known**0.5
        function = rule.factor or rule.cosine
        assert function is not None
        number = self._number(function, d_k, n_keys)
        if not self.transforms:
            return number * (d_k**0.5 if rule.factor else d_k**-0.5)
        if rule.factor is None:
            return None
        # An odd function of independent centred logits of one row has mean 0: its variance is its mean square.
        norm, weight = _query_norms(d_k)
        g = np.linspace(-9, 9, NORMAL_NODES)
        density = np.exp(-(g**2) / 2)
        z = self.transform(number * norm[:, None] * g)
        return float((weight @ (z**2 @ density) / density.sum()) ** 0.5)

    def limit_std(self, d_k: int) -> float | None:
        """Return the spread that is approached as queries and keys grow in number, for rules that divide by a size."""
        if self.scaling.size is None or self.transforms:
            return None
        limit = getattr(sizes, self.scaling.size).limit
        if not limit:
            return None
        if not self.scaling.rows or self.scaling.size == "STD":
            return limit**0.5
        return _spread_over_size(d_k, self.scaling.size)


def _norm(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.vecdot(x, x))[..., None]


def _divisor(size: str, scores: np.ndarray) -> np.ndarray:
    """Return the size that scores are divided by, 1 where it is zero: equal scores stay as they are."""
    h = getattr(sizes, size).value(scores)
    return np.where(h > 0, h, 1.0)


def _flat(x: np.ndarray) -> np.ndarray:
    return x.reshape(*x.shape[:-2], -1)


@functools.lru_cache
def _query_norms(d_k: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of ‖q‖ for standard normal q."""
    from scipy.special import chdtri

    # The chi law through its quantile function: accurate at d_k = 1 too, where its density does not vanish at 0.
    x, share = np.polynomial.legendre.leggauss(CHI_NODES)
    return np.sqrt(chdtri(d_k, (1 - x) / 2)), share / 2


def _spread_over_size(d_k: int, size: str) -> float:
    """Return √d_k over the mean or the median of |q·k| for standard normal q and k."""
    if size == "MEAN_ABS":
        return float(d_k**0.5 * np.pi**0.5 / 2 * np.exp(math.lgamma(d_k / 2) - math.lgamma((d_k + 1) / 2)))
    from scipy.special import erf

    norm, weight = _query_norms(d_k)
    low, high = 0.0, 10 * d_k**0.5
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if weight @ erf(middle / (norm * 2**0.5)) < 0.5 else (low, middle)
    return float(d_k**0.5 / middle)


def allowed() -> str:
    """Say in words what the text of a variant may be."""
    return (
        f"a scale rule ({listed(SCALINGS)}), with parameters as in ssmax(s=0.5), then after | a score transform "
        f"({listed(TRANSFORMS)}) or a normaliser ({listed(_normalisers())})"
    )


def _normalisers() -> dict[str, Any]:
    # No import that a reader of the source can follow: only what measures normalisers depends on them, and says so.
    return importlib.import_module(f"{__package__}.normalisers").NORMALISERS


@functools.lru_cache
def parse(text: str) -> Variant:
    """Return the variant that a text such as `none | hard_clip(limit=5)` describes; VariantError says what is wrong."""
    pieces = [piece.strip() for piece in text.split("|")]
    name, given = _call(pieces[0])
    if name not in SCALINGS:
        if name in TRANSFORMS or name in _normalisers():
            words = f"{name} is no scale rule, but comes after one"
            raise VariantError(words, " | ".join(["none", *pieces]))
        raise _unknown("scale rule", name, SCALINGS)
    rule = SCALINGS[name]
    values = _bind(name, rule.parameters, given)
    spelled = [_spell(name, rule.parameters, values)]
    transforms, normaliser = [], None
    for piece in pieces[1:]:
        name, given = _call(piece)
        if normaliser is not None:
            raise VariantError(f"nothing may follow the normaliser, and {piece!r} does")
        if name in TRANSFORMS:
            bound = _bind(name, TRANSFORMS[name].parameters, given)
            transforms.append((TRANSFORMS[name], bound[0][1]))
            spelled.append(_spell(name, TRANSFORMS[name].parameters, bound))
            continue
        known = _normalisers()
        if name not in known:
            raise _unknown("score transform or normaliser", name, [*TRANSFORMS, *known])
        bound = _bind(name, known[name].parameters(), given)
        normaliser = known[name](**dict(bound))
        spelled.append(_spell(name, known[name].parameters(), bound))
    return Variant(" | ".join(spelled), rule, values, tuple(transforms), normaliser)


def kind(text: str) -> str:
    """Return what a variant is: its scale rule's kind, or `transform` or `normaliser` where it has one."""
    variant = parse(text)
    if variant.normaliser is not None:
        return "normaliser"
    return "transform" if variant.transforms else variant.scaling.kind


def all_names(extra: Iterable[str]) -> list[str]:
    """Return every scale rule at its default parameters, then the extra variants, each once in canonical spelling."""
    return list(dict.fromkeys([*SCALINGS, *(parse(text).text for text in extra)]))


def _call(piece: str) -> tuple[str, dict[str, str]]:
    """Split `name(a=1, b=2)` into the name and its arguments."""
    found = _CALL.fullmatch(piece)
    if found is None:
        return piece, {}
    arguments = {}
    for part in found["arguments"].split(","):
        key, equals, value = (text.strip() for text in part.partition("="))
        if not equals or key in arguments:
            raise VariantError(f"{part.strip()!r} in {piece!r} is not one `parameter=value`")
        arguments[key] = value
    return found["name"].strip(), arguments


def _bind(name: str, parameters: Sequence[Parameter], given: dict[str, str]) -> tuple[Any, ...]:
    """Return (parameter, value) pairs of a piece, its defaults filled in."""
    by_name = {parameter.name: parameter for parameter in parameters}
    for key in given:
        if key not in by_name:
            words = f"{name} has no parameter {key!r}; it has {', '.join(by_name) or 'none'}"
            raise VariantError(words, nearest_name(key, by_name))
    values = []
    for parameter in parameters:
        value = parameter.default if parameter.name not in given else parameter.read(given[parameter.name])
        if value is None and parameter.name in given:
            raise VariantError(f"{parameter.name} = {given[parameter.name]!r} of {name} has to be {parameter.domain}")
        values.append((parameter.name, value))
    return tuple(values)


def _spell(name: str, parameters: Sequence[Parameter], values: Sequence[tuple[str, float]]) -> str:
    changed = [
        f"{key}={number_text(value)}" for (key, value), p in zip(values, parameters, strict=True) if value != p.default
    ]
    return f"{name}({', '.join(changed)})" if changed else name


def _unknown(kind: str, name: str, known: Iterable[str]) -> VariantError:
    return VariantError(f"no {kind} {name!r}; there are {', '.join(known)}", nearest_name(name, known))
