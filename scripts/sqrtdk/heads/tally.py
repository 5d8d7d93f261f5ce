"""One pass over the scores of a sequence: sums by query and by key, from which facts and their errors follow.

Rows are taken in pieces, so memory does not grow with the square of the length. Everything is float64.
"""

import math
from dataclasses import dataclass

import numpy as np

PIECE = 2**15
"""Scores that are held at once: few enough for a processor's cache, which makes it twice as fast."""
HALF_MAXIMUM = 65504.0
"""Largest number of float16."""
EXP_HALF = math.log(HALF_MAXIMUM)
"""From here on exp overflows in float16, where no maximum is subtracted first."""
SATURATED = 0.99


@dataclass(frozen=True)
class Block:
    """One sequence of a head: q (n, d_k) and k (m, d_k), or None; scores (n, m) that were given, or None.

    allowed: which key each query may see, (n, m) or (m,) for all queries; None for all. shared: whether query i and
    key i are the same token. softcap: logits z become softcap · tanh(z / softcap); None where they do not. sink: a
    logit beside those of the keys that takes weight and gives nothing.
    """

    q: np.ndarray | None
    k: np.ndarray | None
    scores: np.ndarray | None = None
    allowed: np.ndarray | None = None
    shared: bool = True
    softcap: float | None = None
    sink: float | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.scores.shape if self.q is None else (self.q.shape[0], self.k.shape[0])


class Tally:
    """Sums over the scores of a block.

    rows, columns: what each query and each key adds, arrays by name. diagonal: what query i and key i add in common.
    reference: number that scores are taken relative to. low, high: extremes. overflow: scores beyond float16, and
    logits whose exp is.
    """

    def __init__(self, n: int, m: int, reference: float):
        self.rows = {name: np.zeros(n) for name in _ROW}
        self.columns = {name: np.zeros(m) for name in _COLUMN}
        self.diagonal = {name: np.zeros(n) for name in _COLUMN}
        self.reference, self.low, self.high = reference, math.inf, -math.inf
        self.overflow = np.zeros(2)


_ROW = (
    *("count", "sum", "square", "within", "entropy", "max_weight", "saturated", "jacobian", "gradient"),
    *("product", "x_square", "z_square"),
)
WEIGHTS = ("entropy", "max_weight", "saturated", "jacobian", "gradient")
_COLUMN = ("count", "sum", "square", "loss", "attention", *WEIGHTS)


def tally_of(block: Block, factor: float) -> Tally:
    """Return the sums of a block whose scores are multiplied by `factor`."""
    n, m = block.shape
    if block.q is not None:
        key_mean, query_mean = block.k.mean(axis=0), block.q.mean(axis=0)
        k, reference = block.k - key_mean, float(query_mean @ key_mean)
        offset = (block.q - query_mean) @ key_mean
    else:
        finite = block.scores if block.allowed is None else block.scores[np.broadcast_to(block.allowed, (n, m))]
        reference = float(finite.mean()) if finite.size else 0.0
    tally = Tally(n, m, reference)
    step = max(1, PIECE // m)
    for start in range(0, n, step):
        part = slice(start, min(start + step, n))
        if block.q is not None:
            x, shift = block.q[part] @ k.T, offset[part]
        else:
            x, shift = block.scores[part] - reference, np.zeros(part.stop - part.start)
        allowed = _piece(block.allowed, part)
        given = block.scores[part] if block.scores is not None and block.q is not None else None
        query_squares = np.nan if block.q is None else np.vecdot(block.q[part], block.q[part])
        _add(tally, part, x, shift, allowed, factor, given, query_squares, block.shared)
    return tally


def _piece(allowed, part: slice):
    if allowed is None:
        return None
    return allowed[part] if allowed.ndim == 2 and allowed.shape[0] > 1 else allowed.reshape(1, -1)


def _add(tally, part, x, shift, allowed, factor, given, query_squares, shared) -> None:
    """Add some rows: x (rows, m) scores up to the number `shift` of each row, already relative to the reference."""
    rows, columns, n = tally.rows, tally.columns, x.shape[0]
    m = x.shape[1]
    if allowed is None:
        use = None
        count = np.full(n, float(m))
    else:
        use = np.broadcast_to(allowed, x.shape)
        count = use.sum(axis=1).astype(float)
        if (count < 2).any():  # A row with one key has no choice, and one without a key no weights.
            use = use & (count > 1)[:, None]
            count = np.where(count > 1, count, 0.0)
        x = np.where(use, x, 0.0)
    some = count > 0
    safe = np.maximum(count, 1.0)
    mean = x.sum(axis=1) / safe
    y = x - mean[:, None]
    if use is not None:
        y *= use
    level = np.where(some, mean + shift, 0.0)
    square = y * y
    within = square.sum(axis=1)
    weight = np.where(some, count / np.maximum(count - 1, 1.0), 0.0)

    rows["count"][part], rows["sum"][part] = count, count * level
    rows["square"][part], rows["within"][part] = within + count * level**2, within
    ones = np.ones(n)
    columns["count"] += ones @ use if use is not None else float(n)
    columns["sum"] += ones @ y + (level @ use if use is not None else level.sum())
    columns["square"] += ones @ square + 2 * (level @ y) + (level**2 @ use if use is not None else (level**2).sum())
    columns["loss"] += weight @ square
    if shared:
        place = np.arange(part.start, min(part.stop, m))
        here = place - part.start
        seen = np.ones(len(here)) if use is None else use[here, place].astype(float)
        value = y[here, place]
        tally.diagonal["count"][place] = seen
        tally.diagonal["sum"][place] = value + level[here] * seen
        tally.diagonal["square"][place] = (value + level[here] * seen) ** 2
        tally.diagonal["loss"][place] = weight[here] * value**2

    scores = y + (level + tally.reference)[:, None]
    if use is None:
        tally.low, tally.high = min(tally.low, scores.min()), max(tally.high, scores.max())
        size = scores
    elif use.any():
        size = scores[use]
        tally.low, tally.high = min(tally.low, size.min()), max(tally.high, size.max())
    else:
        size = np.zeros(0)
    if size.size and max(abs(tally.low), abs(tally.high)) * max(factor, 1.0) > EXP_HALF:
        tally.overflow += (np.abs(size) > HALF_MAXIMUM).sum(), (factor * size > EXP_HALF).sum()
    if given is not None:
        _regress(rows, part, y, given, use, safe)
    _soften(tally, part, y, use, some, factor, query_squares, shared)


def _regress(rows, part, y, given, use, safe) -> None:
    """Add the sums of a regression of the given scores on q·k, both relative to their row's mean."""
    given = given if use is None else np.where(use, given, 0.0)
    z = given - (given.sum(axis=1) / safe)[:, None]
    if use is not None:
        z *= use
    rows["product"][part] = np.vecdot(y, z)
    rows["x_square"][part] = np.vecdot(y, y)
    rows["z_square"][part] = np.vecdot(z, z)


def _soften(tally, part, y, use, some, factor, query_squares, shared) -> None:
    """Add the weights' measures of some rows, and how each changes when a key is taken away.

    Without key j, p_i becomes p_i/(1 − p_j) and H becomes (H + p_j ln p_j)/(1 − p_j) + ln(1 − p_j). The top key, for
    which this cancels in rows that are nearly one-hot, is left out of all sums over keys and added where it belongs.
    """
    rows, columns, m = tally.rows, tally.columns, y.shape[1]
    z = factor * y
    if use is not None:
        z[~use] = -np.inf
        z[~some] = 0.0
    top = z.argmax(axis=1)
    z -= np.take_along_axis(z, top[:, None], axis=1)
    e = np.exp(z)
    if use is not None:
        z[~use] = 0.0
    np.put_along_axis(e, top[:, None], 0.0, axis=1)
    live = some.astype(float)
    second, rest = e.max(axis=1), e.sum(axis=1)
    total = 1 + rest
    largest = live / total
    below = np.vecdot(e, z)
    entropy = (np.log1p(rest) - below / total) * live

    p = e * largest[:, None]
    square = p * p
    r1, r2, r3 = rest * largest, square.sum(axis=1), np.vecdot(square, p)
    jacobian = (largest * r1) ** 2 + r2 * (1 + 2 * largest**2) + r2**2 - 2 * r3
    rows["entropy"][part], rows["max_weight"][part] = entropy, largest
    rows["saturated"][part] = live * (largest > SATURATED)
    rows["jacobian"][part] = jacobian
    rows["gradient"][part] = factor**2 * query_squares * jacobian
    columns["attention"] += p.sum(axis=0) + np.bincount(top, largest, m)

    ratio = p / (1 - p)
    p2, p3 = largest**2 + r2, largest**3 + r3
    # To first order, since no other key has more than half of the weight.
    slope = 2 * (1 + 2 * p2)
    bend = (6 * p - slope[:, None]) * square + (slope * p2 - 6 * p3)[:, None] * p
    z += (entropy - np.log1p(rest))[:, None]
    z *= ratio
    z += np.log1p(-p)
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = rest > 0
        left = np.where(alone, np.log(rest) - below / rest, 0.0)
        share = np.where(alone, second / rest, 1.0)
        q2 = np.where(alone, r2 / r1**2, 1.0)
        q3 = np.where(alone, r3 / r1**3, 1.0)
    gradient = factor**2 * query_squares
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
        columns[name] += np.bincount(top, at_top, m)
        tally.diagonal[name][place] = np.where(top[here] == place, at_top[here], 0.0)
        if others is not None:
            columns[name] += (times * live) @ others
            tally.diagonal[name][place] += (times * live)[here] * others[here, place]
