"""Watch attention scores in a forward pass, and gradients in the backward pass, of whatever framework made them.

Arrays come through DLPack or `__array__`; no framework is imported. Only some rows (queries) are looked at, evenly
spaced, so that the cost stays a small part of the attention's own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sqrtdk.heads.masks import as_allowed, from_scores
from sqrtdk.heads.tally import SATURATED

ROWS = 64
"""Queries of each head and sequence that are looked at."""
MEAN = (-1.0, 1.0)
ROW_VARIANCE = (1 / 16, 6.25)
"""Within-row variance of the logits that is taken as sound at the start of training: a factor of 4 in the standard
deviation below 1, as `nn.Linear` starts (1/3), and of 2.5 above it, as He initialisation does (2)."""


class ScoreError(AssertionError):
    """Scores are not as expected; `facts` holds what was measured."""

    def __init__(self, message: str, facts: "ScoreFacts"):
        super().__init__(message)
        self.facts = facts


@dataclass(frozen=True)
class ScoreFacts:
    """Facts of logits over the rows looked at.

    rows: how many. mean, row_variance: of the logits, the variance within rows. largest: largest |logit|.
    entropy: mean over rows, over its maximum ln(keys). max_weight, saturated_share: mean largest weight, and share of
    rows whose is above 0.99.
    """

    rows: int
    mean: float
    row_variance: float
    largest: float
    entropy: float
    max_weight: float
    saturated_share: float


def as_array(x) -> np.ndarray:
    """Return an array of any framework as a NumPy array: by DLPack, else by `__array__`, after `detach` and `cpu`.

    Raises TypeError where none of them works.
    """
    if isinstance(x, np.ndarray):
        return x
    for method in ("detach", "cpu"):
        x = getattr(x, method)() if hasattr(x, method) else x
    # NumPy has no bfloat16, and no memory of a GPU: such arrays come by the other way, or widened by their framework.
    ways = [np.from_dlpack] if hasattr(x, "__dlpack__") else []
    ways += [np.asarray, *([lambda x: np.asarray(x.float())] if hasattr(x, "float") else [])]
    for way in ways:
        try:
            array = way(x)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            problem = error
        else:
            if array.dtype.kind in "fiubV":  # V is the kind of ml_dtypes.bfloat16
                return array
            problem = f"it becomes {array.dtype}"
    raise TypeError(f"cannot read an array of type {type(x).__name__}: {problem}")


def _some_rows(x, rows: int | None):
    """Return evenly spaced rows of (..., n, m), in its own framework still, so that no more is copied than needed."""
    n = x.shape[-2]
    step = 1 if rows is None else max(1, -(-n // rows))
    return x if step == 1 else x[..., ::step, :]


def measure(scores, mask=None, rows: int | None = ROWS) -> ScoreFacts:
    """Return the facts of logits (..., queries, keys) as they enter softmax.

    Args:
        mask: boolean (true allows), 0/1, or additive, broadcastable to the scores; None where it is in the scores as
            large negative numbers, or where there is none.
        rows: queries looked at in each matrix; None for all.

    Raises ValueError for less than two axes, NaN in a mask or where attention is allowed, infinite numbers there, or
    rows that leave no choice of a key.
    """
    scores = scores if hasattr(scores, "shape") else np.asarray(scores)
    if len(scores.shape) < 2:
        raise ValueError(f"scores need a query and a key axis, not the shape {tuple(scores.shape)}")
    n = scores.shape[-2]
    z = np.array(as_array(_some_rows(scores, rows)), np.float64)
    if mask is None:
        # Before the mask is read off: NaN is not above any number, and would count as masked.
        if np.isnan(z).any():
            raise ValueError("scores hold NaN")
        allowed = from_scores(z)
    else:
        if len(mask.shape) > 1 and mask.shape[-2] == n:
            mask = _some_rows(mask, rows)
        mask = as_array(mask)
        mask = mask if mask.dtype == bool else np.asarray(mask, np.float64)
        if np.isnan(mask).any():
            raise ValueError("scores hold NaN, which comes from their mask")
        allowed = np.broadcast_to(as_allowed(mask), z.shape)
        if (np.isnan(z) & allowed).any():
            raise ValueError("scores hold NaN")
    z = z.reshape(-1, z.shape[-1])
    if allowed is None:
        counts = np.full(len(z), z.shape[-1])
    else:
        allowed = allowed.reshape(z.shape)
        counts = allowed.sum(axis=1)
        kept = counts > 1
        z, allowed, counts = z[kept], allowed[kept], counts[kept]
        z[~allowed] = 0.0
    if not z.size or z.shape[-1] < 2:
        raise ValueError("no query has two keys to choose from")
    mean = z.sum(axis=1) / counts
    largest = float(np.abs(z).max())
    if not math.isfinite(largest):
        raise ValueError("scores hold infinite values where attention is allowed")
    total = float(z.sum() / counts.sum())
    z -= mean[:, None]
    if allowed is not None:
        z *= allowed
    variance = float(np.vecdot(z, z).sum() / (counts - 1).sum())
    if allowed is not None:
        z[~allowed] = -np.inf
    z -= z.max(axis=1, keepdims=True)
    weight = np.exp(z)
    if allowed is not None:
        z[~allowed] = 0.0
    sums = weight.sum(axis=1)
    entropy = np.log(sums) - np.vecdot(weight, z) / sums
    top = 1 / sums
    return ScoreFacts(
        len(z), total, variance, largest, float(np.mean(entropy / np.log(counts))), float(top.mean()),
        float(np.mean(top > SATURATED)),
    )  # fmt: skip


def check_scores(
    scores,
    mask=None,
    *,
    mean: tuple[float, float] | None = MEAN,
    row_variance: tuple[float, float] | None = ROW_VARIANCE,
    rows: int | None = ROWS,
    name: str = "scores",
) -> ScoreFacts:
    """Assert that mean and within-row variance of logits are within bounds, and return the facts.

    The bounds are for the start of training; None leaves one out. It is the variance within rows that softmax sees.

    Raises ScoreError, an AssertionError, that says what was measured; ValueError as `measure` does.
    """
    facts = measure(scores, mask, rows)
    for words, value, bounds in (("mean", facts.mean, mean), ("within-row variance", facts.row_variance, row_variance)):
        if bounds is not None and not bounds[0] <= value <= bounds[1]:
            hint = ""
            if words != "mean" and value > bounds[1]:
                hint = "; if this is d_k, the scale 1/sqrt(d_k) is missing"
            elif words != "mean":
                hint = "; if this is 1/d_k, the scale is applied twice"
            raise ScoreError(
                f"{name}: {words} of the logits is {value:.4g}, not within {bounds[0]:g} to {bounds[1]:g}{hint}", facts
            )
    return facts


@dataclass
class Running:
    """Count, mean, standard deviation, extremes and last value of a number that comes step by step (Welford)."""

    count: int = 0
    mean: float = 0.0
    square: float = 0.0
    low: float = math.inf
    high: float = -math.inf
    last: float = math.nan

    def add(self, value: float) -> None:
        self.count += 1
        change = value - self.mean
        self.mean += change / self.count
        self.square += change * (value - self.mean)
        self.low, self.high, self.last = min(self.low, value), max(self.high, value), value

    @property
    def std(self) -> float:
        return math.sqrt(self.square / (self.count - 1)) if self.count > 1 else math.nan


@dataclass
class AttentionMonitor:
    """Running statistics of scores and gradients over the steps of a training run, by name.

    every: only every so many observations of a name are measured. rows: queries looked at in each matrix.

        monitor = AttentionMonitor(every=10)
        scores = monitor.watch("layer 3", scores)     # returns them; gradients are measured in the backward pass
        print(monitor.report())
    """

    every: int = 1
    rows: int | None = ROWS
    statistics: dict[str, dict[str, Running]] = field(default_factory=dict)
    _seen: dict[tuple[str, str], int] = field(default_factory=dict)

    def _due(self, name: str, kind: str) -> bool:
        seen = self._seen.get((name, kind), 0)
        self._seen[name, kind] = seen + 1
        return seen % self.every == 0

    def _add(self, name: str, values: dict[str, float]) -> None:
        kept = self.statistics.setdefault(name, {})
        for key, value in values.items():
            kept.setdefault(key, Running()).add(value)

    def observe(self, name: str, scores, mask=None) -> ScoreFacts | None:
        """Add logits of one step; return their facts, or None where this step is not measured."""
        if not self._due(name, "scores"):
            return None
        facts = measure(scores, mask, self.rows)
        self._add(name, {key: value for key, value in vars(facts).items() if key != "rows"})
        return facts

    def observe_gradient(self, name: str, gradient) -> float | None:
        """Add the gradient (..., queries, anything) of one step; return the root mean square of its rows' norms."""
        if not self._due(name, "gradient"):
            return None
        some = np.asarray(as_array(_some_rows(gradient, self.rows)), np.float64)
        norm = math.sqrt(np.vecdot(some, some).mean())
        self._add(name, {"gradient_norm": norm})
        return norm

    def watch(self, name: str, scores, mask=None):
        """Observe logits, and their gradient where they have `register_hook`; return them as they are."""
        self.observe(name, scores, mask)
        if hasattr(scores, "register_hook") and getattr(scores, "requires_grad", True):

            def backward(gradient) -> None:  # What a hook returns would replace the gradient.
                self.observe_gradient(name, gradient)

            scores.register_hook(backward)
        return scores

    def hook(self, name: str, pick: Callable = lambda output: output) -> Callable:
        """Return a forward hook, (module, inputs, output) -> None, that watches what `pick` takes of the output."""

        def forward(module, inputs, output) -> None:
            self.watch(name, pick(output))

        return forward

    def report(self) -> list[dict]:
        """Return a row for each name and statistic: count, mean, std, low, high and last over the steps."""
        return [
            {"name": name, "statistic": key, "count": one.count, "mean": one.mean, "std": one.std}
            | {"low": one.low, "high": one.high, "last": one.last}
            for name, kept in self.statistics.items()
            for key, one in kept.items()
        ]
