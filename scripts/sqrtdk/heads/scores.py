"""Facts of attention scores of whatever framework made them, and a check of them.

Arrays come through DLPack or `__array__`; no framework is imported. Only some rows (queries) are looked at, evenly
spaced, so that the cost stays a small part of the attention's own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sqrtdk.heads.limits import ROWS_OF_WEIGHTS, WEIGHTS_SUM
from sqrtdk.heads.masks import as_allowed, from_scores
from sqrtdk.heads.regression import TRUSTED, slope_of
from sqrtdk.heads.tally import SATURATED

ROWS = 64
"""Queries of each head and sequence that are looked at."""
MEAN = (-1.0, 1.0)
ROW_VARIANCE = (1e-4, 6.25)
"""Within-row variance of the logits that is taken as sound at the start of training: of a factor of 2.5 above 1 in the
standard deviation, as He initialisation gives (2), down to what weights of standard deviation 0.02 give in a narrow
model (0.003 at d_model 128), below which attention is uniform."""
SCALE = 0.05
"""How far the scale that scores show may be from 1/√d_k, as a part of it."""


class ScoreError(AssertionError):
    """Scores are not as expected; `facts` holds what was measured."""

    def __init__(self, message: str, facts: "ScoreFacts") -> None:
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


@dataclass(frozen=True)
class ScoreRows:
    """Facts of single rows, arrays (..., query); those that are not `sound` hold 0: no choice of a key, or not finite.

    broken: rows that hold NaN, or infinite logits where attention is allowed.
    """

    sound: np.ndarray
    broken: np.ndarray
    count: np.ndarray
    total: np.ndarray
    square: np.ndarray
    largest: np.ndarray
    entropy: np.ndarray
    max_weight: np.ndarray

    def facts(self, where: Any = ...) -> ScoreFacts | None:
        """Return the facts of some rows together, such as those of one head; None where none is sound."""
        sound = self.sound[where]
        if not sound.any():
            return None
        count, total, square, largest, entropy, top = (
            getattr(self, name)[where][sound]
            for name in ("count", "total", "square", "largest", "entropy", "max_weight")
        )
        return ScoreFacts(
            int(sound.sum()),
            float(total.sum() / count.sum()),
            float(square.sum() / (count - 1).sum()),
            float(largest.max()),
            float(entropy.mean()),
            float(top.mean()),
            float(np.mean(top > SATURATED)),
        )


_NUMBERS = "fiubV"
"""Kinds of real numbers; V is that of ml_dtypes.bfloat16."""


def as_array(x: Any) -> np.ndarray:
    """Return an array of any framework as a NumPy array: by DLPack, else by `__array__`, after `detach` and `cpu`.

    Raises TypeError where none of them works.
    """
    if isinstance(x, np.ndarray) and x.dtype.kind in _NUMBERS:
        return x
    for method in ("detach", "cpu"):
        x = getattr(x, method)() if hasattr(x, method) else x
    # NumPy has no bfloat16, and no memory of a GPU: such arrays come by the other way, or widened by their framework.
    ways: list[Callable[[Any], np.ndarray]] = [np.from_dlpack] if hasattr(x, "__dlpack__") else []
    ways += [np.asarray, *([lambda x: np.asarray(x.float())] if hasattr(x, "float") else [])]
    for way in ways:
        try:
            array = way(x)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            problem: Any = error
        else:
            if array.dtype.kind in _NUMBERS:
                return array
            problem = f"it becomes {array.dtype}"
    raise TypeError(f"cannot read an array of type {type(x).__name__}: {problem}")


def some_rows(x: Any, rows: int | None, start: int = 0) -> Any:
    """Return evenly spaced rows of (..., n, m), in its own framework still, so that no more is copied than needed.

    start: another one looks at other rows.
    """
    n = x.shape[-2]
    step = 1 if rows is None else max(1, -(-n // rows))
    return x if step == 1 else x[..., start % step :: step, :]


def products_of(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Return q·k of q (..., head, query, d_k) and k (..., kv_head, key, d_k), whose heads are shared by neighbours.

    Raises ValueError for shapes that do not fit.
    """
    shared = k
    if min(q.ndim, k.ndim) > 2 and q.shape[-3] % k.shape[-3] == 0:
        shared = np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3)
    try:
        return q @ shared.swapaxes(-1, -2)
    except ValueError as error:
        raise ValueError(f"q of shape {q.shape} and k of shape {k.shape} are not those of one attention") from error


def to_shape(mask: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return a mask in the shape of the scores; ValueError where it does not fit."""
    try:
        return np.broadcast_to(mask, shape)
    except ValueError as error:
        raise ValueError(f"a mask of shape {mask.shape} is none of scores of shape {shape}") from error


def rows_of(scores: Any, mask: Any = None, rows: int | None = ROWS, start: int = 0) -> ScoreRows:
    """Return the facts of some rows of logits (..., queries, keys); arguments as of `measure`."""
    scores = scores if hasattr(scores, "shape") else np.asarray(scores)
    if len(scores.shape) < 2:
        raise ValueError(f"scores need a query and a key axis, not the shape {tuple(scores.shape)}")
    n = scores.shape[-2]
    z = np.array(as_array(some_rows(scores, rows, start)), np.float64)
    broken = np.isnan(z)
    if mask is None:
        allowed = from_scores(np.where(broken, 0.0, z))
    else:
        if len(mask.shape) > 1 and mask.shape[-2] == n:
            mask = some_rows(mask, rows, start)
        mask = as_array(mask)
        mask = mask if mask.dtype == bool else np.asarray(mask, np.float64)
        if np.isnan(mask).any():
            raise ValueError("scores hold NaN, which comes from their mask")
        allowed = to_shape(as_allowed(mask), z.shape)
    use = np.ones(z.shape, bool) if allowed is None else allowed
    faulty = (~np.isfinite(z) & use).any(axis=-1)
    count = use.sum(axis=-1)
    sound = (count > 1) & ~faulty
    use = use & sound[..., None]
    z = np.where(use, z, 0.0)
    count = np.where(sound, count, 2)
    total = z.sum(axis=-1)
    largest = np.abs(z).max(axis=-1, initial=0.0)
    y = np.where(use, z - (total / count)[..., None], 0.0)
    square = np.vecdot(y, y)
    y = np.where(use, y, -np.inf)
    y -= np.where(sound, y.max(axis=-1, initial=-np.inf), 0.0)[..., None]
    weight = np.where(use, np.exp(y), 0.0)
    sums = np.where(sound, weight.sum(axis=-1), 1.0)
    entropy = np.log(sums) - np.vecdot(weight, np.where(use, y, 0.0)) / sums
    return ScoreRows(
        sound, faulty, count, total, square, largest, np.where(sound, entropy / np.log(count), 0.0), 1 / sums
    )


def measure(scores: Any, mask: Any = None, rows: int | None = ROWS) -> ScoreFacts:
    """Return the facts of logits (..., queries, keys) as they enter softmax.

    Args:
        mask: boolean (true allows), 0/1, or additive, broadcastable to the scores; None where it is in the scores as
            large negative numbers, or where there is none.
        rows: queries looked at in each matrix; None for all.

    Raises ValueError for less than two axes, NaN in a mask or where attention is allowed, infinite numbers there, or
    rows that leave no choice of a key.
    """
    found = rows_of(scores, mask, rows)
    if found.broken.any():
        raise ValueError("scores hold NaN or infinite values where attention is allowed")
    facts = found.facts()
    if facts is None:
        raise ValueError("no query has two keys to choose from")
    sums = found.total[found.sound]
    if sums.size > 1 and facts.largest <= 1 + WEIGHTS_SUM and (abs(sums - 1) < WEIGHTS_SUM).mean() >= ROWS_OF_WEIGHTS:
        raise ValueError("these are attention weights: rows sum to 1; give the logits, as they enter softmax")
    return facts


def check_scores(
    scores: Any,
    mask: Any = None,
    *,
    q: Any = None,
    k: Any = None,
    scale: float | None = None,
    stage: str = "init",
    mean: tuple[float, float] | None = MEAN,
    row_variance: tuple[float, float] | None = ROW_VARIANCE,
    rows: int | None = ROWS,
    name: str = "scores",
) -> ScoreFacts:
    """Assert that logits are finite and sound for their stage, and return their facts.

    Args:
        q, k: (..., query, d_k) and (..., key, d_k), from which the scale at work is told; it has to be `scale`, 1/√d_k
            by default. Without them, small weights cannot be told from a scale that is applied twice.
        stage: init, where mean and within-row variance have to be within bounds (None leaves one out), or trained.

    Raises ScoreError, an AssertionError, that says what was measured; ValueError as `measure` does.
    """
    if stage not in ("init", "trained"):
        raise ValueError(f"stage {stage!r}: init or trained")
    if (q is None) != (k is None):
        raise ValueError("q and k tell the scale together: one of them is missing")
    facts = measure(scores, mask, rows)
    if q is not None:
        _check_scale(scores, mask, q, k, scale, rows, name, facts)
    bounds = (("mean", facts.mean, mean), ("within-row variance", facts.row_variance, row_variance))
    for words, value, limits in bounds if stage == "init" else ():
        if limits is not None and not limits[0] <= value <= limits[1]:
            hint = ""
            if words != "mean" and value > limits[1]:
                hint = "; if this is d_k, the scale 1/sqrt(d_k) is missing"
            elif words != "mean":
                hint = "; weights that start very small, or a scale that is applied twice: q and k would tell"
            raise ScoreError(
                f"{name}: {words} of the logits is {value:.4g}, not within {limits[0]:g} to {limits[1]:g}{hint}", facts
            )
    return facts


def _check_scale(
    scores: Any, mask: Any, q: Any, k: Any, scale: float | None, rows: int | None, name: str, facts: ScoreFacts
) -> None:
    """Compare the slope of scores on q·k within rows with what the scale has to be."""
    z = np.array(as_array(some_rows(scores, rows)), np.float64)
    q = np.asarray(as_array(some_rows(q, rows)), np.float64)
    x = products_of(q, np.asarray(as_array(k), np.float64))
    if x.shape != z.shape:
        raise ValueError(f"q and k give scores of shape {x.shape}, not {z.shape}")
    allowed = from_scores(z)
    if mask is not None:
        part = some_rows(mask, rows) if len(mask.shape) > 1 and mask.shape[-2] == scores.shape[-2] else mask
        allowed = to_shape(as_allowed(np.asarray(as_array(part))), z.shape)
    use = np.ones(z.shape, bool) if allowed is None else allowed
    fit = slope_of(*(one.reshape(-1, z.shape[-1]) for one in (x, z, use)))
    right = q.shape[-1] ** -0.5 if scale is None else scale
    if fit.factor is None or fit.r2 is None or fit.r2 < TRUSTED:
        return
    found = float(fit.factor)
    if abs(found - right) > SCALE * right:
        words = {1.0: "no scale", right**2: "the scale is applied twice", 1 / right: "multiplied in place of divided"}
        near = [text for value, text in words.items() if abs(found - value) <= SCALE * value]
        hint = f"; {near[0]}" if near else ""
        raise ScoreError(f"{name}: q·k is multiplied by {found:.4g}, not by {right:.4g}{hint}", facts)
