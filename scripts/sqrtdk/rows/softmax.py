"""Softmax of rows of logits and how saturated it is, in forms that stay exact for one-hot rows.

A row is kept relative to its runner-up: t = p₂/p₁ = exp(−gap) and f_j = p_j/p₂ for every key but the largest, so that
1 − p₁ = p₁ t Σf is a sum and not a difference, and nothing underflows before the weights themselves do.
A key that may not be attended has a logit of −inf or is False in a mask: its weight is exactly 0 and it is not counted.
Every measure is a function Rows -> array over rows; a new one is one function and one entry in `MEASURES`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# ASSUME where saturation and vanishing begin: no law says.
SATURATED_WEIGHT = 0.99
"""A row whose largest weight is above this counts as saturated."""
VANISHING_NORM = 1e-3
"""A row whose Jacobian has a Frobenius norm below this counts as vanishing."""
VANISHING_RELATIVE = 0.01
"""The same, as a share of the norm that the uniform row of as many keys has."""
FAR = 1e100
"""Stands for an infinite gap: exp(−FAR) is 0 and, unlike with inf, 0·FAR is too."""
SPECTRAL_ITERATIONS = 60
SPECTRAL_TOLERANCE = 4e-16


@dataclass(frozen=True)
class Rows:
    """Softmax of rows: leading axes are rows, the last axis is keys.

    top: index of the largest weight (the first of equals).
    gap: largest minus second largest logit, FAR where there is no second.
    ratio: t = exp(−gap), the runner-up's weight over the largest.
    largest: p₁, 0 in a row without any key.
    n_keys: keys that may be attended, one number for all rows, or one for each where some are masked.
    tail: (..., n_keys), f_j = p_j/p₂, and 0 at `top` and masked keys; None where the keys were streamed.
    sum_1, sum_2, sum_3: Σf, Σf², Σf³.
    sum_log: Σ f ln f, at most 0.
    """

    top: np.ndarray
    gap: np.ndarray
    ratio: np.ndarray
    largest: np.ndarray
    n_keys: int | np.ndarray
    tail: np.ndarray | None
    sum_1: np.ndarray
    sum_2: np.ndarray
    sum_3: np.ndarray
    sum_log: np.ndarray

    @property
    def second(self) -> np.ndarray:
        """The second largest weight p₂."""
        return self.largest * self.ratio

    @property
    def others(self) -> np.ndarray:
        """1 − p₁ as the sum of the other weights."""
        return self.second * self.sum_1

    def __getitem__(self, index: Any) -> "Rows":
        """Take rows by an index of the leading axes."""
        return _take_rows(self, index)


@dataclass(frozen=True)
class Ranked:
    """Rows of logits relative to their runner-up: what every positive scale factor shares.

    top, gap, n_keys: as in Rows. second: the logit of the runner-up, of the key itself where it is alone.
    below: (..., n_keys), logit minus the runner-up's, −FAR at `top` and masked keys.
    """

    top: np.ndarray
    gap: np.ndarray
    n_keys: int | np.ndarray
    second: np.ndarray
    below: np.ndarray

    def __getitem__(self, index: Any) -> "Ranked":
        """Take rows by an index of the leading axes."""
        return _take_rows(self, index)

    def soften(self, factor: float | np.ndarray = 1.0) -> Rows:
        """Return the softmax of factor times the logits; factor must be positive, one number or one for each row."""
        if not np.all(factor > 0):
            raise ValueError(f"the scale factor must be positive, not {factor!r}")
        gap = factor * self.gap
        ratio = np.exp(-gap)
        tail = np.multiply(self.below, np.asarray(factor)[..., None])
        np.exp(tail, out=tail)
        # Inner products, because a plain sum over few keys is several times slower.
        sum_1 = np.vecdot(tail, np.ones(tail.shape[-1]))
        sum_2 = np.vecdot(tail, tail)
        sum_3 = np.vecdot(tail * tail, tail)
        sum_log = factor * np.vecdot(tail, self.below)
        largest = largest_weight(ratio, sum_1, self.n_keys)
        return Rows(self.top, gap, ratio, largest, self.n_keys, tail, sum_1, sum_2, sum_3, sum_log)


def _take_rows(rows: Any, index: slice | np.ndarray) -> Any:
    shared = (int, type(None))
    return type(rows)(**{name: x if isinstance(x, shared) else x[index] for name, x in vars(rows).items()})


def largest_weight(ratio: np.ndarray, sum_1: np.ndarray, n_keys: int | np.ndarray) -> np.ndarray:
    """Return p₁ = 1/(1 + tΣf), and 0 for a row without any key."""
    return np.minimum(n_keys, 1) / (1 + ratio * sum_1)


def take(x: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Return x (..., n) at one index (...) of its last axis."""
    return np.take_along_axis(x, index[..., None], axis=-1)[..., 0]


def rank(logits: np.ndarray, mask: np.ndarray | None = None) -> Ranked:
    """Order rows of logits (..., n_keys), n_keys >= 1, in float64.

    Args:
        logits: finite, or −inf at a key that may not be attended; of any real type.
        mask: boolean, True where a key may be attended, of a shape that the logits broadcast with; None for everywhere.

    Raises ValueError for NaN, +inf, no key at all, and a mask that is not boolean.
    """
    below = np.array(logits, dtype=np.float64, ndmin=1)
    if mask is not None:
        if np.asarray(mask).dtype != np.bool_:
            raise ValueError("a mask must be boolean, True where a key may be attended")
        below = np.where(mask, below, -np.inf)
    n_keys = below.shape[-1]
    if n_keys < 1:
        raise ValueError("a row of logits needs at least one key")
    top = below.argmax(axis=-1)
    first = take(below, top)
    # A NaN counts as the largest.
    if not (first < np.inf).all():
        raise ValueError("a logit is NaN or infinite; only −inf, of a masked key, is allowed")
    np.put_along_axis(below, top[..., None], -np.inf, axis=-1)
    missing = np.isneginf(below)
    if np.count_nonzero(missing) > np.count_nonzero(np.isfinite(first)):
        n_keys = n_keys - missing.sum(axis=-1) + np.isfinite(first)
    # argmax and a look-up are faster than max, most of all for few keys.
    second = take(below, below.argmax(axis=-1))
    # A single key has no runner-up: it is measured from itself. Without any key, 0 serves as well.
    alone = np.isneginf(second)
    second = np.where(alone, np.where(np.isneginf(first), 0.0, first), second)
    below -= second[..., None]
    np.maximum(below, -FAR, out=below)
    gap = np.where(alone, FAR, first - second)
    return Ranked(top, gap, n_keys, second, below)


def rows(logits: np.ndarray, mask: np.ndarray | None = None) -> Rows:
    """Return the softmax rows of logits (..., n_keys), masked as in `rank`."""
    return rank(logits, mask).soften()


def weights(row: Rows) -> np.ndarray:
    """Return the attention weights (..., n_keys)."""
    p = row.tail * row.second[..., None]
    np.put_along_axis(p, row.top[..., None], row.largest[..., None], axis=-1)
    return p


def softmax(logits: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Return exp(z_j)/Σ exp(z_i) along the last axis, for logits of any size, and 0 at keys masked as in `rank`."""
    return weights(rows(logits, mask))


def entropy(row: Rows) -> np.ndarray:
    """Return −Σ p ln p in nats, as a sum of non-negative terms."""
    # With ln p_j = ln p₁ − gap + ln f_j and ln p₁ = −ln(1 + tΣf).
    return np.log1p(row.ratio * row.sum_1) + row.others * row.gap - row.second * row.sum_log


def normalised_entropy(row: Rows) -> np.ndarray:
    """Return the entropy over its maximum ln n_keys; ValueError for a single key, where it is undefined."""
    if np.min(row.n_keys, initial=2) < 2:
        raise ValueError("the normalised entropy of a single key is undefined: ln 1 = 0")
    return entropy(row) / np.log(row.n_keys)


def max_weight(row: Rows) -> np.ndarray:
    """Return the largest weight p₁."""
    return row.largest


def participation_ratio(row: Rows) -> np.ndarray:
    """Return Σp², from 1/n_keys (uniform) to 1 (one-hot)."""
    return row.largest**2 + row.second**2 * row.sum_2


def effective_keys(row: Rows) -> np.ndarray:
    """Return 1/Σp², the number of equal weights with the same participation ratio; 0 in a row without any key."""
    participation = participation_ratio(row)
    return 1 / np.where(participation > 0, participation, np.inf)


def saturated_share(row: Rows) -> np.ndarray:
    """Return 1.0 for each row whose largest weight is above 0.99, else 0.0."""
    return (row.largest > SATURATED_WEIGHT).astype(np.float64)


def jacobian_trace(row: Rows) -> np.ndarray:
    """Return tr J = 1 − Σp² as Σ p(1 − p), for J = diag(p) − p pᵀ."""
    return row.others * (1 + row.largest) - row.second**2 * row.sum_2


def jacobian_frobenius(row: Rows) -> np.ndarray:
    """Return ‖J‖_F for J = diag(p) − p pᵀ.

    ‖J‖² = P₂ − 2P₃ + P₂² cancels for one-hot rows. With r = 1 − p₁ and R_k = Σ p^k over the other keys it is
    p₁²r² + R₂(1 + 2p₁²) + R₂² − 2R₃, where R₃ <= R₂/2.
    """
    p1, p2 = row.largest, row.second
    inside = (p1 * row.sum_1) ** 2 + row.sum_2 * (1 + 2 * p1**2) + (p2 * row.sum_2) ** 2 - 2 * p2 * row.sum_3
    return p2 * np.sqrt(inside)


def jacobian_spectral(row: Rows) -> np.ndarray:
    """Return λ₁, the largest eigenvalue of J = diag(p) − p pᵀ; costs several times all other measures together.

    λ₁ is the root of Σ p/(p − λ) = 0 between p₂ and p₁ (interlacing). In x = λ/p₂ − 1 this reads
    Σ f/(x + 1 − f) = 1/(1 − t − tx). The left side lies below the r + s/x of its own value and slope at the present x:
    each step solves a quadratic, and the steps fall on the root from above (Gragg's method for secular equations).
    ValueError where the keys were streamed: the sums that are kept do not determine it.
    """
    if row.tail is None:
        raise ValueError("the spectral norm needs every weight of a row, and its keys were streamed")
    shape = row.largest.shape
    sum_1, ratio = row.sum_1.ravel(), row.ratio.ravel()
    room = 1 - ratio
    x = np.zeros(sum_1.shape)
    # Where the two largest weights are equal, λ₁ is both of them; a single key has no Jacobian.
    live = np.flatnonzero((room > 0) & (sum_1 > 0))
    tail = row.tail.reshape(-1, row.tail.shape[-1])
    # All other keys as close as the runner-up would give this: an upper bound on x.
    x[live] = row.largest.ravel()[live] * sum_1[live] * room[live]
    for _ in range(SPECTRAL_ITERATIONS):
        if not live.size:
            break
        f, t, c, last = tail[live], ratio[live], room[live], x[live]
        inverse = 1 - f
        np.add(inverse, last[:, None], out=inverse)
        np.divide(1.0, inverse, out=inverse)
        f *= inverse
        slope = np.vecdot(f, inverse)
        s = last * last * slope
        r = f.sum(axis=-1) - last * slope
        b = r * c - s * t - 1
        root = np.sqrt(b * b + 4 * r * t * s * c)
        # Of the two forms of the positive root, the one that adds.
        step = np.where(b < 0, 2 * s * c / (root + np.abs(b)), (root + b) / np.where(b < 0, 1.0, 2 * r * t))
        x[live] = step
        live = live[np.abs(step - last) > SPECTRAL_TOLERANCE * (1 + step)]
    return row.second * (1 + x).reshape(shape)


def vanishing_share(row: Rows) -> np.ndarray:
    """Return 1.0 for each row with ‖J‖_F below 1e-3, else 0.0."""
    return (jacobian_frobenius(row) < VANISHING_NORM).astype(np.float64)


def vanishing_share_relative(row: Rows) -> np.ndarray:
    """Return 1.0 for each row with ‖J‖_F below 1 % of the uniform row's √(n − 1)/n, else 0.0.

    ValueError for a single key, whose uniform row has no gradient either.
    """
    if np.min(row.n_keys, initial=2) < 2:
        raise ValueError("a single key has no gradient to compare with")
    uniform = np.sqrt(row.n_keys - 1) / row.n_keys
    return (jacobian_frobenius(row) < VANISHING_RELATIVE * uniform).astype(np.float64)


@dataclass(frozen=True)
class Measure:
    """A measure of a row: the function, the fewest keys it is defined for, and how rows are summarised.

    summary: "mean" or "rms" over rows. costly: to be evaluated on a sample of the rows.
    whole_row: needs every weight, and so cannot be had from streamed keys.
    """

    of: Callable[[Rows], np.ndarray]
    least_keys: int = 1
    summary: str = "mean"
    costly: bool = False
    whole_row: bool = False


MEASURES: dict[str, Measure] = {
    "entropy": Measure(entropy),
    "normalised_entropy": Measure(normalised_entropy, least_keys=2),
    "max_weight": Measure(max_weight),
    "participation_ratio": Measure(participation_ratio),
    "effective_keys": Measure(effective_keys),
    "saturated_share": Measure(saturated_share),
    "jacobian_trace": Measure(jacobian_trace),
    "jacobian_frobenius": Measure(jacobian_frobenius, summary="rms"),
    "jacobian_spectral": Measure(jacobian_spectral, summary="rms", costly=True, whole_row=True),
    "vanishing_share": Measure(vanishing_share),
    "vanishing_share_relative": Measure(vanishing_share_relative, least_keys=2),
}
"""Every measure by the name it has in the tables, in their order."""


@dataclass(frozen=True)
class Summary:
    """Measures over rows of which some cannot be measured.

    measures: name -> (mean, or root mean square, over the rows that have it, how many those are); None where none has.
    n_masked: rows without any key, which no measure includes. n_single: rows of one key, without normalised measures.
    """

    measures: dict[str, tuple[float | None, int]]
    n_masked: int
    n_single: int


def summarise(logits: np.ndarray, mask: np.ndarray | None = None) -> Summary:
    """Summarise every measure over rows of logits (..., n_keys), masked as in `rank`; masked rows are only counted."""
    row = rows(np.atleast_2d(logits), mask)
    n_keys = np.broadcast_to(row.n_keys, row.top.shape)
    measures: dict[str, tuple[float | None, int]] = {}
    for name, measure in MEASURES.items():
        usable = n_keys >= measure.least_keys
        centre = None
        if usable.any():
            power = 2 if measure.summary == "rms" else 1
            centre = float(np.mean(measure.of(row[usable]) ** power) ** (1 / power))
        measures[name] = centre, int(usable.sum())
    return Summary(measures, int(np.sum(n_keys == 0)), int(np.sum(n_keys == 1)))
