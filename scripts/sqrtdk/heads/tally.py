"""One pass over the scores of a sequence: sums by query and by key, from which facts and their errors follow.

Rows are taken in pieces, so memory does not grow with the square of the length. Everything is float64.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sqrtdk.heads.findings import Finding
from sqrtdk.heads.limits import HALF_MAXIMUM

PIECE = 2**16
"""Scores that are held at once: few enough for a processor's cache, enough that NumPy's calls cost little beside."""
EXP_HALF = math.log(HALF_MAXIMUM)
"""From here on exp overflows in float16, where no maximum is subtracted first."""
SATURATED = 0.99


@dataclass(frozen=True)
class Block:
    """One sequence of a head: q (n, d_k) and k (m, d_k), or None; scores (n, m) that were given, or None.

    allowed: which key each query may see, (n, m) or (m,) for all queries; None for all. shared: whether query i and
    key i are the same token. softcap: logits z become softcap · tanh(z / softcap); None where they do not. sink: a
    logit beside those of the keys that takes weight and gives nothing, one or one per query. bias: what is added to
    the logits, (n, m) or (m,). positions: the place of each query among the
    keys. findings: what reading the arrays has shown. left_out: tokens of padding.

    Scores that were given are logits as they enter softmax, with cap and bias in them.
    """

    q: np.ndarray | None
    k: np.ndarray | None
    scores: np.ndarray | None = None
    allowed: np.ndarray | None = None
    shared: bool = True
    softcap: float | None = None
    sink: float | np.ndarray | None = None
    bias: np.ndarray | None = None
    positions: np.ndarray | None = None
    findings: tuple[Finding, ...] = ()
    left_out: int = 0

    @property
    def pair(self) -> tuple[np.ndarray, np.ndarray]:
        """Queries and keys, of a block that has them."""
        assert self.q is not None
        assert self.k is not None
        return self.q, self.k

    @property
    def given(self) -> np.ndarray:
        """The scores that were given, of a block that has them."""
        assert self.scores is not None
        return self.scores

    @property
    def shape(self) -> tuple[int, int]:
        """How many queries and how many keys there are."""
        return self.given.shape if self.q is None else (len(self.pair[0]), len(self.pair[1]))

    @property
    def plain(self) -> bool:
        """Whether the logits are one number times what is tallied: q·k, or the scores where these are alone."""
        return (self.scores is None and self.softcap is None and self.bias is None) or self.q is None

    def used(self) -> tuple[np.ndarray, np.ndarray]:
        """Return which tokens see a key as a query, and which are seen as a key."""
        n, m = self.shape
        if self.allowed is None:
            return np.ones(n, bool), np.ones(m, bool)
        allowed = np.broadcast_to(self.allowed, (n, m))
        return np.any(allowed, axis=1), np.any(allowed, axis=0)


class Sums:
    """Sums of numbers (query, key) by query, by key, and of query i with key i.

    rows: also the squares within a row. columns, diagonal: also what each key adds to them. reference: number that all
    are taken relative to. low, high: extremes.
    """

    def __init__(self, n: int, m: int, reference: float) -> None:
        self.rows = {name: np.zeros(n) for name in ("count", "sum", "square", "within")}
        self.columns = {name: np.zeros(m) for name in _COLUMN}
        self.diagonal = {name: np.zeros(n) for name in _COLUMN}
        self.reference, self.low, self.high = reference, math.inf, -math.inf

    def add(
        self, part: slice, x: np.ndarray, shift: np.ndarray, use: np.ndarray | None, count: np.ndarray, shared: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Add some rows of x (rows, m), up to the number `shift` of each row; 0 where `use` is not.

        Returns what is left of x without its rows' means, and these means.
        """
        rows, columns, m = self.rows, self.columns, x.shape[1]
        some = count > 0
        mean = x.sum(axis=1) / np.maximum(count, 1.0)
        y = np.subtract(x, mean[:, None], out=x)
        if use is not None:
            y *= use
        level = np.where(some, mean + shift, 0.0)
        square = y * y
        within = square.sum(axis=1)
        weight = np.where(some, count / np.maximum(count - 1, 1.0), 0.0)

        rows["count"][part], rows["sum"][part] = count, count * level
        rows["square"][part], rows["within"][part] = within + count * level**2, within
        powers = np.stack([np.ones(len(count)), level, level**2])
        seen, levels, squares = powers.sum(axis=1)[:, None] if use is None else powers @ use
        total, cross = powers[:2] @ y
        columns["count"] += seen
        columns["sum"] += total + levels
        columns["square"] += powers[0] @ square + 2 * cross + squares
        columns["loss"] += weight @ square
        if some.any():
            # What is masked is 0, as the row's mean is, hence no extreme.
            middle = level + self.reference
            self.low = min(self.low, (y.min(axis=1) + middle)[some].min())
            self.high = max(self.high, (y.max(axis=1) + middle)[some].max())
        if shared:
            place = np.arange(part.start, min(part.stop, m))
            here = place - part.start
            seen = np.ones(len(here)) if use is None else use[here, place].astype(float)
            value = y[here, place]
            self.diagonal["count"][place] = seen
            self.diagonal["sum"][place] = value + level[here] * seen
            self.diagonal["square"][place] = (value + level[here] * seen) ** 2
            self.diagonal["loss"][place] = weight[here] * value**2
        return y, level


_COLUMN = ("count", "sum", "square", "loss")
WEIGHTS = ("entropy", "max_weight", "saturated", "jacobian", "gradient")


class Tally:
    """Sums over a block.

    scores: those of q·k, or of scores where these are alone. logits: those of the logits, None where these are `factor`
    times the scores.

    rows, columns, diagonal: what each query, each key and both in common add to the measures of the weights. attention:
    the weight that each key takes; `sink`, that of the learned sink. top: the key of the largest weight in each row, m
    for the sink and −1 for rows without a choice. overflow: scores beyond float16, and logits whose exp is.
    """

    def __init__(self, n: int, m: int, reference: float, logits: float | None) -> None:
        self.scores = Sums(n, m, reference)
        self.logits = None if logits is None else Sums(n, m, logits)
        self.rows = {name: np.zeros(n) for name in WEIGHTS}
        self.columns = {name: np.zeros(m) for name in WEIGHTS}
        self.diagonal = {name: np.zeros(n) for name in WEIGHTS}
        self.attention, self.sink, self.top = np.zeros(m), 0.0, np.full(n, -1)
        self.overflow = np.zeros(2)

    @property
    def count(self) -> np.ndarray:
        """Return how many keys each query with a choice sees, and 0 for the others."""
        return self.scores.rows["count"]


def tally_of(block: Block, factor: float, plain: bool = True) -> Tally:
    """Return the sums of a block whose scores are multiplied by `factor`.

    plain: whether all blocks of the head are; else the logits have sums of their own.
    """
    n, m = block.shape
    if block.q is not None:
        q, k = block.pair
        key_mean, query_mean = k.mean(axis=0), q.mean(axis=0)
        k, reference = k - key_mean, float(query_mean @ key_mean)
        offset = (q - query_mean) @ key_mean
    else:
        reference = _mean(block.given, block.allowed)
    centre = None
    if not plain:
        if block.scores is not None:
            centre = _mean(block.scores, block.allowed)
        else:
            centre = float(capped(factor * reference, block.softcap))
    tally = Tally(n, m, reference, centre)
    step = max(1, PIECE // m)
    for start in range(0, n, step):
        part = slice(start, min(start + step, n))
        if block.q is not None:
            x, shift = q[part] @ k.T, offset[part]
        else:
            x, shift = block.given[part] - reference, np.zeros(part.stop - part.start)
        _add(tally, block, part, x, shift, factor)
    return tally


def capped(z: Any, softcap: float | None) -> Any:
    """Return logits, one or an array, after a soft cap, where there is one."""
    return z if softcap is None else softcap * np.tanh(z / softcap)


def _mean(scores: np.ndarray, allowed: np.ndarray | None) -> float:
    finite = scores if allowed is None else scores[np.broadcast_to(allowed, scores.shape)]
    return float(finite.mean()) if finite.size else 0.0


def rows_of(array: np.ndarray | None, part: slice | np.ndarray) -> np.ndarray | None:
    """Return some rows of an array (n, m), or the one row that all share, or None."""
    if array is None:
        return None
    return array[part] if array.ndim == 2 and array.shape[0] > 1 else array.reshape(1, -1)


def choices(allowed: np.ndarray | None, shape: tuple[int, ...]) -> tuple[np.ndarray | None, np.ndarray]:
    """Return where rows with at least two keys allow attention, None for everywhere, and how many keys these have."""
    if allowed is None:
        return None, np.full(shape[0], float(shape[1]))
    use = np.broadcast_to(allowed, shape)
    count = use.sum(axis=1).astype(float)
    if (count < 2).any():  # A row with one key has no choice, and one without a key no weights.
        use = use & (count > 1)[:, None]
        count = np.where(count > 1, count, 0.0)
    return use, count


def _add(tally: Tally, block: Block, part: slice, x: np.ndarray, shift: np.ndarray, factor: float) -> None:
    """Add some rows: x (rows, m) scores up to the number `shift` of each row, already relative to the reference."""
    use, count = choices(rows_of(block.allowed, part), x.shape)
    if use is not None:
        x = np.where(use, x, 0.0)
    scores, sums, slopes = tally.scores, tally.logits, np.ones(1)
    logits = None if sums is None else _logits(block, part, factor * (x + (shift + scores.reference)[:, None]))
    y, level = scores.add(part, x, shift, use, count, block.shared)
    level += scores.reference
    if sums is None or logits is None:
        z, centre, highest = factor * y, factor * level, max(factor * scores.low, factor * scores.high)
    else:
        if block.softcap is not None:
            bias = rows_of(block.bias, part)
            slopes = 1 - ((logits - (0.0 if bias is None else bias)) / block.softcap) ** 2
        logits = logits - sums.reference
        if use is not None:
            logits = np.where(use, logits, 0.0)
        z, centre = sums.add(part, logits, np.zeros(len(count)), use, count, block.shared)
        centre, highest = centre + sums.reference, sums.high
    if max(-scores.low, scores.high) > HALF_MAXIMUM or highest > EXP_HALF:
        beyond = np.stack([np.abs(y + level[:, None]) > HALF_MAXIMUM, z + centre[:, None] > EXP_HALF])
        tally.overflow += np.sum(beyond, axis=(1, 2), where=True if use is None else use)
    squares = np.nan if block.q is None else factor**2 * np.vecdot(block.q[part], block.q[part])
    if block.sink is not None:
        # The sink is one more outcome, which is no key.
        sink = np.broadcast_to(block.sink, block.shape[:1])[part] - centre
        z = np.column_stack([z, sink])
        use = None if use is None else np.column_stack([use, count > 0])
        slopes = np.column_stack([np.broadcast_to(slopes, x.shape), np.zeros(len(count))])
    _soften(tally, part, z, use, count > 0, squares, slopes, block.shared)


def _logits(block: Block, part: slice, products: np.ndarray) -> np.ndarray:
    if block.scores is not None:
        return block.scores[part]
    bias = rows_of(block.bias, part)
    return capped(products, block.softcap) if bias is None else capped(products, block.softcap) + bias


def _soften(
    tally: Tally,
    part: slice,
    z: np.ndarray,
    use: np.ndarray | None,
    some: np.ndarray,
    squares: float | np.ndarray,
    slopes: np.ndarray,
    shared: bool,
) -> None:
    """Add the weights' measures of some rows, and how each changes when a key is taken away.

    z (rows, outcomes): logits, up to a number for each row; the outcomes are the keys, and the sink where there is one.
    squares: squared length of the slope of a logit in its key, without the soft cap, whose slopes are `slopes`.

    Without key j, p_i becomes p_i/(1 − p_j) and H becomes (H + p_j ln p_j)/(1 − p_j) + ln(1 − p_j). The top key, for
    which this cancels in rows that are nearly one-hot, is left out of all sums over keys and added where it belongs.
    """
    rows, columns, m = tally.rows, tally.columns, tally.attention.size
    if use is not None:
        np.copyto(z, -np.inf, where=~use)
        z[~some] = 0.0
    top = z.argmax(axis=1)
    z -= np.take_along_axis(z, top[:, None], axis=1)
    e = np.exp(z)
    if use is not None:
        np.copyto(z, 0.0, where=~use)
    np.put_along_axis(e, top[:, None], 0.0, axis=1)
    live = some.astype(float)
    second, rest = e.max(axis=1), e.sum(axis=1)
    total = 1 + rest
    largest = live / total
    below = np.vecdot(e, z)
    entropy = (np.log1p(rest) - below / total) * live

    p = np.multiply(e, largest[:, None], out=e)
    square = p * p
    r1, r2, r3 = rest * largest, square.sum(axis=1), np.vecdot(square, p)
    jacobian = (largest * r1) ** 2 + r2 * (1 + 2 * largest**2) + r2**2 - 2 * r3
    rows["entropy"][part], rows["max_weight"][part] = entropy, largest
    rows["saturated"][part] = live * (largest > SATURATED)
    rows["jacobian"][part] = jacobian
    gradient = squares * _slowed(p, largest, top, jacobian, slopes)
    rows["gradient"][part] = gradient * jacobian
    attention = p.sum(axis=0) + np.bincount(top, largest, z.shape[1])
    tally.attention += attention[:m]
    tally.sink += attention[m:].sum()
    tally.top[part] = np.where(some, top, -1)

    ratio = 1 - p
    np.divide(p, ratio, out=ratio)
    p2, p3 = largest**2 + r2, largest**3 + r3
    # To first order, since no other key has more than half of the weight.
    slope = 2 * (1 + 2 * p2)
    bend = 6 * p
    bend -= slope[:, None]
    bend *= square
    bend += np.multiply((slope * p2 - 6 * p3)[:, None], p, out=square)
    z += (entropy - np.log1p(rest))[:, None]
    z *= ratio
    z += np.log1p(np.negative(p, out=p), out=p)
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = some & (rest > 0)
        left = np.where(alone, np.log(rest) - below / rest, 0.0)
        share = np.where(alone, second / rest, 1.0)
        q2 = np.where(alone, r2 / r1**2, 1.0)
        q3 = np.where(alone, r3 / r1**3, 1.0)
    curve = q2 - 2 * q3 + q2**2 - jacobian
    changes = {
        "entropy": (z, np.ones(len(top)), left - entropy),
        "max_weight": (ratio, largest, share - largest),
        "saturated": (None, None, (share > SATURATED).astype(float) - rows["saturated"][part]),
        "jacobian": (bend, np.ones(len(top)), curve),
        "gradient": (bend, gradient, gradient * curve),
    }
    place = np.arange(part.start, min(part.stop, m)) if shared else np.zeros(0, int)
    here = place - part.start
    for name, (others, times, at_top) in changes.items():
        at_top = at_top * live
        columns[name] += np.bincount(top, at_top, z.shape[1])[:m]
        tally.diagonal[name][place] = np.where(top[here] == place, at_top[here], 0.0)
        if others is not None:
            columns[name] += ((times * live) @ others)[:m]
            tally.diagonal[name][place] += (times * live)[here] * others[here, place]


def _slowed(
    p: np.ndarray, largest: np.ndarray, top: np.ndarray, jacobian: np.ndarray, slopes: np.ndarray
) -> float | np.ndarray:
    """Return the part of the softmax Jacobian's square that the slopes of the logits leave, below 1 under a cap."""
    if slopes.ndim == 1:
        return 1.0
    weights = p.copy()
    np.put_along_axis(weights, top[:, None], largest[:, None], axis=1)
    square = weights**2
    left = np.vecdot(slopes**2 * square, 1 - 2 * weights + square.sum(axis=1)[:, None])
    return np.divide(left, jacobian, out=np.zeros(len(top)), where=jacobian > 0)
