"""Block sampling: how many independent blocks of queries and keys a cell draws, and their scores in batches."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sqrtdk.sampling.ensembles.base import Ensemble

MIN_BLOCKS = 64
MAX_BLOCKS = 4096
"""More products than this are put together, so that the sums kept for the standard errors stay few."""
CHUNKS_PER_DOUBLING = 16
FIRST_SCALARS = 2**16
"""Random numbers of a cell's first chunk at most, or as many as 64 products take."""
TYPICAL_PRECISION = 1e-3
"""Scores are kept for quartiles until a cell has as many products as it would have at this precision."""
SIDES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 224)
"""Numbers of queries (and keys) of a block to choose from."""
MAX_SIDE_SCALARS = 2**22
"""A query matrix holds at most this many numbers, which bounds the memory at any width."""
PILOT_SCORES = 2**14
BATCH_SCALARS = 2**18
"""Random numbers drawn at a time: about what a core's cache holds."""
BATCH_SCORES = 2**15
"""Scores of small blocks worked on at a time, which is less memory than a larger block takes anyway."""


@dataclass(frozen=True)
class Plan:
    """What a cell draws: `n_blocks` independent blocks of `stack` products of (n_queries × n_keys) scores.

    typical: number of products at `TYPICAL_PRECISION`, whatever the precision that is asked for.
    first: number of products of the first chunk.
    """

    n_queries: int
    n_keys: int
    stack: int
    n_blocks: int
    stopped_by: str
    typical: int = 0
    first: int = MIN_BLOCKS

    @property
    def n_products(self) -> int:
        """Number of products in all blocks."""
        return self.stack * self.n_blocks


class Planned(Protocol):
    """What a plan asks of an ensemble."""

    @property
    def matched(self) -> bool:
        """True where only matched pairs are scores."""

    def block_relative_variance(self, d_k: int, n_queries: int, n_keys: int) -> float | None:
        """Relative variance of one block's variance estimate; None where a pilot has to find it."""


def side(ensemble: Planned, d_k: int, max_scalars: float) -> int:
    """Choose the queries per block with the most precision for the time, within memory and the cap for 64 blocks.

    Where the rows of a block share little, many queries make drawing cheap; where they share much (a random basis, a
    common factor), more of them tell nothing new.
    """
    least = 3 if ensemble.matched else 2
    most = min(MAX_SIDE_SCALARS // d_k, int(max_scalars / (2 * MIN_BLOCKS * d_k)))
    candidates = [m for m in SIDES if least <= m <= most] or [least]
    if ensemble.block_relative_variance(d_k, least, least) is None:
        # About as many as components, where drawing and multiplying cost alike.
        return max((m for m in candidates if m <= max(6, d_k)), default=candidates[0])

    def cost(m: int) -> float:
        # ASSUME nanoseconds of one product: drawing, multiplying, summing the scores, and the overhead of small ones.
        return 6 * m * d_k + 0.02 * m * m * d_k + 5 * m * m + 60

    def variance(m: int) -> float:
        relative = ensemble.block_relative_variance(d_k, m, m)
        assert relative is not None  # theory that covers the least block covers all
        return max(relative, _mean_spread(ensemble, m))

    return min(candidates, key=lambda m: variance(m) * cost(m))


def _mean_spread(ensemble: Planned, m: int) -> float:
    """Variance of a product's mean score over the variance of a score: the mean wants its precision too."""
    return 1 / (m if ensemble.matched else m * m)


def stack(n_products: int) -> int:
    """Return how many products are put together to a block: a power of 2, so that what is there can be put together."""
    return 1 << max(0, (n_products - 1).bit_length() - MAX_BLOCKS.bit_length() + 1)


def chunks(first: int) -> Iterator[tuple[int, int]]:
    """Yield the first product and the number of products of each chunk, without end.

    A chunk has its own random stream and is drawn whole, so that a cell can be continued where it ended. Its size
    depends on its place alone and is a multiple of the blocks that there are once it is drawn.

    first: size of the first, a power of 2 of at most `MAX_BLOCKS`.
    """
    start, size = 0, first
    while True:
        yield start, size
        start += size
        size = (1 << start.bit_length() >> 1) // CHUNKS_PER_DOUBLING


def _first(m: int, d_k: int) -> int:
    """Return the products of a first chunk that is worth a random stream of its own."""
    most = min(BATCH_SCORES // (m * m), FIRST_SCALARS // (2 * m * d_k), MAX_BLOCKS)
    return max(MIN_BLOCKS, 1 << most.bit_length() >> 1)


def _in_chunks(first: int, wanted: float, affordable: float) -> int:
    """Return the products of whole chunks: at least as many as wanted, or else as many as are affordable."""
    total = first
    for start, size in chunks(first):
        if total >= wanted or start + size > max(affordable, first):
            return total
        total = start + size
    raise AssertionError("chunks have no end")


def plan(ensemble: Planned, d_k: int, precision: float, max_scalars: float, pilot: Callable[[Plan], float]) -> Plan:
    """Fix the number of blocks before anything that counts is drawn.

    Enough for the relative standard error `precision` on the variance, but at most `max_scalars` random numbers and at
    least 64 blocks, in whole chunks. Stopping on the estimated error itself would bias the intervals. The shape of a
    product does not depend on `precision`, so that a cell can be continued.

    Args:
        pilot: called with a Plan where theory does not give the relative variance of one product's estimate;
            returns that relative variance from blocks that are then discarded.
    """
    m = side(ensemble, d_k, max_scalars)
    spread = ensemble.block_relative_variance(d_k, m, m)
    if spread is None:
        few = min(-(-PILOT_SCORES // (m * m)), int(max_scalars / (4 * MIN_BLOCKS * m * d_k)))
        spread = pilot(Plan(m, m, max(1, few), MIN_BLOCKS // 2, "pilot"))
    spread = max(spread, _mean_spread(ensemble, m))
    first, affordable = _first(m, d_k), max_scalars / (2 * m * d_k)

    def products(precision: float) -> int:
        return _in_chunks(first, _with_margin(spread / precision**2), affordable)

    n_products = products(precision)
    stopped_by = "precision" if spread / precision**2 <= n_products else "max_scalars"
    together = stack(n_products)
    return Plan(m, m, together, n_products // together, stopped_by, products(TYPICAL_PRECISION), first)


def _with_margin(n: float) -> float:
    """Products to draw where n would do on average: the error that is reached scatters by √(2/n)."""
    return math.ceil(n * (1.05 + 3 * math.sqrt(2 / min(max(n, 1), MAX_BLOCKS)))) if math.isfinite(n) else math.inf


def batches(
    ensemble: Ensemble, d_k: int, plan: Plan, rng: np.random.Generator
) -> Iterator[tuple[int, int, np.ndarray]]:
    """Draw a plan: yield (block, product, scores (n_blocks, n_products, n_queries, n_keys) in float64).

    A batch is either whole blocks, the first of which is `block`, or a part of that block, from its `product` on.
    """
    m, n = plan.n_queries, plan.n_keys
    at_once = max(1, BATCH_SCALARS // ((m + n) * d_k))
    most = max(1, BATCH_SCORES // (m * n))
    for first in range(0, plan.n_products, at_once):
        q, k = ensemble.draw(rng, min(at_once, plan.n_products - first), m, n, d_k)
        start = 0
        while start < len(q):
            block, product = divmod(first + start, plan.stack)
            whole = min(most, len(q) - start) // plan.stack if product == 0 else 0
            size = whole * plan.stack or min(most, len(q) - start, plan.stack - product)
            part = slice(start, start + size)
            scores = np.matmul(q[part], k[part].transpose(0, 2, 1)).astype(np.float64, copy=False)
            yield block, product, scores.reshape(whole or 1, -1, m, n)
            start += size
