"""How many rows of attention a cell simulates: from costs, a discarded pilot and a cap, before anything that counts."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sqrtdk.sampling.ensembles.base import Ensemble

N_LOGITS = 600_000
"""Most logits softened for each number of keys and scale rule; fewer where the goals need no more."""
GOALS = {
    **dict.fromkeys(("entropy", "participation_ratio"), 0.01),
    **dict.fromkeys(("jacobian_frobenius", "grad_logits", "grad_query", "grad_key"), 0.02),
    **dict.fromkeys(("grad_logits_values", "grad_query_values", "grad_key_values"), 0.02),
}
"""Relative standard error that a measure is to have."""
SOFTENED = ("entropy", "participation_ratio", "jacobian_frobenius")
GRADED = ("grad_logits", "grad_query", "grad_key")
"""Measures that are planned for; gradients through values are left to come out as they do."""
SQUARED = ("jacobian_frobenius", *GRADED)
"""Root mean squares among them."""
MARGIN = 1.3  # ASSUME
"""Blocks to draw for each that would do on average: what the pilot says and the error that is reached both scatter."""
MIN_BLOCKS = 32
WANTED_BLOCKS = 64
"""Blocks drawn where they are affordable, though the goals need fewer: the errors are estimated from them."""
PILOT_BLOCKS = 32
PILOT_SHARE = 64
"""The pilot draws at most one logit for so many of the cap, unless its least number of blocks needs more."""
MIN_QUERIES = 8
"""Queries per block even where sharing keys saves little: smaller products cost more than they give."""
MAX_BLOCK = 2**18
"""Logits of a block with more than the fewest queries: what stays near a core."""
MIN_ROWS = 1024
MAX_ROWS = 2**18
SCALARS_PER_LOGIT = 16
"""Random numbers for q and k for each logit of the cap; exceeded where MIN_BLOCKS blocks of few queries need more."""
MULTIPLICATIONS_PER_LOGIT = 2**13
"""Multiplications spent on each kind of query gradient likewise; beyond, fewer queries of each block are used."""
BATCH_LOGITS = 2**16
"""Logits worked on at a time: what stays in a core's cache."""
BATCH_SCALARS = 2**22
"""Random numbers for q and k held at a time, at least one block."""
WHOLE_KEYS = 2**14
WHOLE_SCALARS = 2**24
"""Beyond so many keys, or random numbers for the keys of one block, keys are drawn in pieces where they can be."""
QUERY_SCALARS = 2**23
"""Random numbers for the queries of one block, unless the fewest queries have more."""
PIECE_LOGITS = 2**15
PIECE_SCALARS = 2**23
"""Logits and random numbers of one piece."""
KEYS_PER_PULL = 32
"""Keys of a piece for each query gradient: merging pieces costs per query gradient, drawing them per key."""
SPECTRAL_SHARE = 16
"""One query in so many gets its spectral norm."""


@dataclass(frozen=True)
class Share:
    """What of the drawn blocks one scale factor gets.

    softened: blocks whose rows are softened. graded: the first so many of them also get gradients. Whole batches each.
    n_queries: the first so many rows of each block are used.
    """

    softened: int
    graded: int
    n_queries: int


@dataclass(frozen=True)
class RowPlan:
    """Independent blocks of `n_queries` rows that share `n_keys` keys, drawn `batch` blocks at a time.

    most: blocks that the cap allows, at which a last batch is cut.
    n_pulled, n_spectral: the first so many rows of each block get a query gradient and a spectral norm.
    shares: scale factor -> what it gets of them.
    piece: keys drawn at a time; None where a row is held whole.
    """

    n_keys: int
    n_queries: int
    most: int
    batch: int
    n_pulled: int
    n_spectral: int
    shares: Mapping[Any, Share]
    piece: int | None = None


def plan(
    d_k: int,
    n_keys: int,
    n_logits: int,
    matched: bool,
    factors: Sequence[Any],
    pilot: Callable[[RowPlan], Mapping[Any, Any]] | None,
    streamed: bool = False,
) -> RowPlan:
    """Fix queries per block from the costs, and blocks for each scale factor from a pilot that is then discarded.

    Enough blocks for GOALS, at least WANTED_BLOCKS and at most what the cap allows. Gradients cost several times the
    rest and have their own number of blocks. Stopping on the estimated error itself would bias the intervals. What one
    factor gets does not depend on the others.

    Args:
        matched: q_i and k_i are drawn together, so that each row has its own key and n_queries <= n_keys.
        factors: different scale factors.
        pilot: called with a RowPlan; returns factor -> measure -> values (n_blocks, n_rows) of independent draws.
        streamed: rows are too long to be held whole; there is no pilot then.
    """
    n_queries = _queries(d_k, n_keys, n_logits, matched)
    scalars, logits = (n_queries + n_keys) * d_k, n_queries * n_keys
    affordable = min(n_logits // logits, SCALARS_PER_LOGIT * n_logits // scalars, MAX_ROWS // n_queries)
    most = max(MIN_BLOCKS, affordable)
    n_pulled = max(1, min(n_queries, MULTIPLICATIONS_PER_LOGIT * n_logits // (most * n_keys * d_k)))
    if streamed:
        piece = max(1, min(PIECE_LOGITS // n_queries, PIECE_SCALARS // d_k))
        n_pulled = max(1, min(n_pulled, piece // KEYS_PER_PULL))
        return RowPlan(
            n_keys, n_queries, most, 1, n_pulled, 0, dict.fromkeys(factors, Share(most, most, n_queries)), piece
        )
    batch = max(1, min(most, BATCH_LOGITS // logits, BATCH_SCALARS // scalars))

    n_spectral = math.ceil(n_queries / SPECTRAL_SHARE)

    def made(shares: Mapping[Any, Share]) -> RowPlan:
        return RowPlan(n_keys, n_queries, most, batch, n_pulled, n_spectral, shares)

    def whole(n_blocks: float) -> int:
        return min(most, -(-math.ceil(n_blocks) // batch) * batch)

    wanted = min(most, WANTED_BLOCKS)
    # At least 4, so that there is a spread between blocks, and few where few are all that there will be.
    n_pilot = whole(max(min(PILOT_BLOCKS, most // 8), most // PILOT_SHARE))
    if pilot is None:
        raise ValueError("rows that are held whole need a pilot")
    found = pilot(made(dict.fromkeys(factors, Share(n_pilot, n_pilot, n_queries))))
    shares = {}
    for factor in factors:
        softened, graded = (max(needed_blocks(found[factor], name) for name in names) for names in (SOFTENED, GRADED))
        # Where that is fewer blocks than are wanted, fewer rows of each do.
        rows = max(MIN_QUERIES, MIN_ROWS / wanted, n_queries * max(softened, graded) / wanted)
        blocks, graded_blocks = (whole(max(wanted, number)) for number in (max(softened, graded), graded))
        shares[factor] = Share(blocks, graded_blocks, min(n_queries, math.ceil(rows)))
    return made(shares)


def in_pieces(ensemble: Ensemble, d_k: int, n_keys: int) -> bool:
    """Say whether rows are too long to be held whole and the ensemble's keys can be drawn in pieces."""
    return ensemble.independent_keys and (n_keys > WHOLE_KEYS or n_keys * d_k > WHOLE_SCALARS)


def _queries(d_k: int, n_keys: int, n_logits: int, matched: bool) -> int:
    """Choose the rows that share their keys: twice as much is spent on them as on the keys.

    Rows of nearly orthogonal queries are nearly independent though they share keys, and keys are what costs at large
    d_k. Nanoseconds, roughly: 3 for a random number, 15 for a logit and 1/50 for each multiplication of its products.
    """
    keys = 3 * n_keys * d_k
    row = 3 * d_k + n_keys * (15 + d_k / 50)
    n_queries = max(MIN_QUERIES, min(int(2 * keys / row), MAX_BLOCK // n_keys, QUERY_SCALARS // d_k))
    n_queries = max(1, min(n_queries, n_logits // (MIN_BLOCKS * n_keys)))
    return min(n_queries, n_keys) if matched else n_queries


def needed_blocks(found: Mapping[str, np.ndarray], measure: str) -> float:
    """Return how many blocks a measure needs for its goal, from a pilot; 0 for one that is always 0.

    The spread of block means of a short pilot may be too small by chance; it is no less than that of independent rows.
    """
    values, goal = found[measure], GOALS[measure]
    # Relative to the largest, so that no square is lost below the smallest number.
    values = values / max(values.max(), np.finfo(float).tiny)
    if measure in SQUARED:
        values, goal = values**2, 2 * goal
    centre = values.mean()
    if not centre > 0:
        return 0.0
    spread = max(values.mean(axis=1).var(ddof=1), values.var() / values.shape[1])
    return float(MARGIN * spread / (goal * centre) ** 2)


def precise(measure: str, estimate: float | None, se: float | None) -> bool | None:
    """Say whether an estimate has the relative error that is aimed at; None for a measure without a goal."""
    if measure not in GOALS or estimate is None or se is None:
        return None
    return bool(se <= GOALS[measure] * abs(estimate))
