"""What given scores say of the factor: their slope on q·k, with soft cap and bias told apart from it.

A row's own level never counts, since softmax does not see it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from sqrtdk.heads.tally import PIECE, Block, choices, rows_of
from sqrtdk.statistics.estimates import jackknife_error

EXACT = 0.9999
"""Share of the scores' variance within rows from which on q·k explains all; less is looked into."""
TRUSTED = 0.9
"""Scores of which q·k explains less say nothing about the factor."""
EXPLAINED, BETTER = 0.99, 0.5
"""A soft cap or a bias is believed where q·k then explains so much, and leaves at most this part of what it left."""
ROWS = 64
"""Queries of a block that are looked at for a soft cap or a bias, evenly spaced."""
SATURATED = 0.99
"""Part of the soft cap beyond which a rounded score says nothing of what was capped."""
GIVEN, OWN = "the bias that was given", "a factor of each query"
ENOUGH = 8
"""Keys of a query from which on its own slope says something: of few, any scores are a multiple of q·k."""
CAPS = np.concatenate([10.0 ** np.linspace(-7, 0, 15), np.linspace(1.5, 15, 10)])
"""Soft caps that are tried first, by how much they exceed the largest score."""


@dataclass(frozen=True)
class ScoreSlope:
    """Slope of given scores on q·k within rows, its error over queries and the share explained; None without scores.

    softcap: the cap that the scores carry. biased: the bias that they carry too, in words, empty where there is none.
    reach: least and largest factor of a query, where queries have factors of their own.
    """

    factor: float | None = None
    se: float | None = None
    r2: float | None = None
    softcap: float | None = None
    biased: str = ""
    reach: tuple[float, float] | None = None

    def facts(self) -> dict[str, Any]:
        """Return what belongs to the facts of a head."""
        return {
            "measured_factor": self.factor,
            "measured_factor_se": self.se,
            "measured_r2": self.r2,
            "softcap": self.softcap,
        }


Rows = Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]
"""q·k and scores of some rows, up to a number for each row, and where attention is allowed."""


def measure(blocks: Iterable[Block]) -> ScoreSlope:
    """Return what the scores of blocks say of the factor."""
    blocks = list(blocks)
    if blocks[0].scores is None or blocks[0].q is None:
        return ScoreSlope(softcap=blocks[0].softcap)
    known = blocks[0].softcap
    ways: dict[str, Callable[[], ScoreSlope]] = {}
    first = _fit(_all_rows(blocks, known))
    if any(block.bias is not None for block in blocks):
        ways[GIVEN] = lambda: _fit(_all_rows(blocks, known, without_bias=True))
    if known is None:
        ways[""] = lambda: _capped(blocks)
    ways["a bias by distance"] = lambda: _fit(_along_diagonals(blocks))
    ways["a bias that all sequences share"] = lambda: _fit(_between(blocks))
    ways[OWN] = lambda: _by_query(blocks, known)
    best = replace(first, softcap=known)
    for words, way in ways.items():
        if best.r2 is None or best.r2 >= EXACT:
            break
        found = way()
        if found.r2 is not None and found.r2 >= EXPLAINED and 1 - found.r2 < BETTER * (1 - best.r2):
            best = replace(found, biased="" if words in (GIVEN, OWN) else words, softcap=found.softcap or known)
    return best


def slope_of(products: np.ndarray, scores: np.ndarray, use: np.ndarray) -> ScoreSlope:
    """Return the slope of scores on q·k within rows, both (query, key), where `use` is true."""
    return _fit(iter([(products, scores, use)]))


def _fit(rows: Rows) -> ScoreSlope:
    """Return the slope within rows and its jackknife error over rows."""
    product, x_square, z_square, _ = _sums(rows)
    if not x_square.sum() > 0:
        return ScoreSlope()
    slope = product.sum() / x_square.sum()
    if not z_square.sum() > 0:
        return ScoreSlope(0.0, 0.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = (product.sum() - product) / (x_square.sum() - x_square)
    r2 = product.sum() ** 2 / (x_square.sum() * z_square.sum())
    return ScoreSlope(slope, jackknife_error(rest[np.isfinite(rest)]), min(r2, 1.0))


def _by_query(blocks: list[Block], cap: float | None) -> ScoreSlope:
    """Return the middle of the slopes of queries, as where a temperature grows with the place (Llama 4, log n)."""
    product, x_square, z_square, count = _sums(_all_rows(blocks, cap))
    some = (count >= ENOUGH) & (x_square > 0)
    if not z_square[some].sum() > 0:
        return ScoreSlope()
    slopes = product[some] / x_square[some]
    r2 = (slopes * product[some]).sum() / z_square[some].sum()
    return ScoreSlope(float(np.median(slopes)), None, min(r2, 1.0), reach=(slopes.min(), slopes.max()))


def _sums(rows: Rows) -> np.ndarray:
    """Return Σ xz, Σ x², Σ z² and the number of keys of each row, x and z without their means."""
    sums = [np.zeros((4, 0))]
    for x, z, use in rows:
        if use is not None:
            x, z = np.where(use, x, 0.0), np.where(use, z, 0.0)
        count = np.full(len(x), x.shape[1]) if use is None else np.maximum(use.sum(axis=1), 1)
        x, z = (one - (one.sum(axis=1) / count)[:, None] for one in (x, z))
        if use is not None:
            x, z = x * use, z * use
        sums.append(np.stack([np.vecdot(x, z), np.vecdot(x, x), np.vecdot(z, z), count]))
    return np.concatenate(sums, axis=1)


def _products(block: Block, part: slice | np.ndarray) -> np.ndarray:
    """Return q·k of some rows, up to a number for each."""
    q, k = block.pair
    return q[part] @ (k - k.mean(axis=0)).T


def _use(block: Block, part: slice | np.ndarray) -> np.ndarray | None:
    return choices(rows_of(block.allowed, part), block.given[part].shape)[0]


def _all_rows(blocks: list[Block], cap: float | None, without_bias: bool = False) -> Rows:
    for block in blocks:
        step = max(1, PIECE // block.shape[1])
        for start in range(0, block.shape[0], step):
            part = slice(start, start + step)
            z, use = block.given[part], _use(block, part)
            bias = rows_of(block.bias, part) if without_bias else None
            if bias is not None:
                z = z - bias
            if cap is not None:
                z, use = _uncapped(z, cap, use)
            yield _products(block, part), z, use


def _uncapped(z: np.ndarray, cap: float, use: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return what a soft cap was applied to, and where that can be told."""
    inside = np.abs(z) < SATURATED * cap
    return cap * np.arctanh(np.where(inside, z / cap, 0.0)), inside if use is None else inside & use


def _some_rows(block: Block, last: int = 0) -> np.ndarray:
    """Return the numbers of some queries, evenly spaced; `last` more come after each."""
    n = block.shape[0] - last
    return np.arange(n) if n <= ROWS else np.linspace(0, n - 1, ROWS).astype(int)


def _capped(blocks: list[Block]) -> ScoreSlope:
    """Return the slope before the soft cap that lets q·k explain most."""
    from scipy.optimize import minimize_scalar

    parts = [(block, _some_rows(block)) for block in blocks]
    held = [(_products(block, part), block.given[part], _use(block, part)) for block, part in parts]
    largest = max(float(np.abs(z if use is None else z[use]).max(initial=0.0)) for _, z, use in held)
    if not largest > 0:
        return ScoreSlope()

    def missed(beyond: float) -> float:
        cap = largest * (1 + beyond)
        r2 = _fit((x, *_uncapped(z, cap, use)) for x, z, use in held).r2
        return 1.0 if r2 is None else 1 - r2

    tried = [missed(beyond) for beyond in CAPS]
    place = int(np.argmin(tried))
    low, high = CAPS[max(place - 1, 0)], CAPS[min(place + 1, len(CAPS) - 1)]
    found = minimize_scalar(missed, bounds=(low, high), method="bounded", options={"xatol": 1e-6 * high})
    beyond = float(found.x) if found.fun < tried[place] else CAPS[place]
    cap = float(f"{largest * (1 + beyond):.4g}")
    cap = cap if cap >= largest else largest * (1 + beyond)
    return replace(_fit(_all_rows(blocks, cap)), softcap=cap)


def _along_diagonals(blocks: list[Block]) -> Rows:
    """Yield each row less the next one, shifted by a key: what depends on the distance alone is gone."""
    for block in blocks:
        n, m = block.shape
        if n < 2 or m < 3:
            continue
        here = _some_rows(block, last=1)
        use, following = _use(block, here), _use(block, here + 1)
        if use is not None and following is not None:
            use = use[:, :-1] & following[:, 1:]
        yield (
            _products(block, here)[:, :-1] - _products(block, here + 1)[:, 1:],
            block.given[here][:, :-1] - block.given[here + 1][:, 1:],
            use,
        )


def _between(blocks: list[Block]) -> Rows:
    """Yield each sequence less the next: what all share is gone."""
    for one, other in pairwise(blocks):
        if one.shape != other.shape:
            continue
        part = _some_rows(one)
        uses = [use for use in (_use(one, part), _use(other, part)) if use is not None]
        yield (
            _products(one, part) - _products(other, part),
            one.given[part] - other.given[part],
            np.logical_and.reduce(uses) if uses else None,
        )
