"""Masks: which key each query may see, whatever way it was written down."""

from pathlib import Path
from typing import Any

import numpy as np

from sqrtdk.heads.errors import InputError
from sqrtdk.heads.limits import ADDITIVE, IN_SCORES
from sqrtdk.heads.reading import Tensor, tensors

CHOICES = ("auto", "causal")


def causal(n: int, m: int) -> np.ndarray:
    """Return the causal mask (n, m); of fewer queries than keys the last query sees all keys."""
    return np.tri(n, m, m - n, dtype=bool)


def as_allowed(mask: np.ndarray) -> np.ndarray:
    """Return where attention is allowed from a mask that is boolean, 0/1 with 1 for allowed, or added to the logits."""
    if mask.dtype == bool:
        return mask
    # 0 and 1 alone are truth values; 0 alone is an additive mask that forbids nothing.
    if mask.any() and np.isin(mask, (0.0, 1.0)).all():
        return mask == 1
    return mask > ADDITIVE


def as_bias(mask: np.ndarray) -> np.ndarray | None:
    """Return what a mask adds to the logits where it allows attention, such as ALiBi; None where that is nothing."""
    allowed = as_allowed(mask)
    if mask.dtype == bool or np.isin(mask, (0.0, 1.0)).all():
        return None
    bias = np.where(allowed, mask, 0.0)
    return bias if bias.any() else None


def from_scores(scores: np.ndarray) -> np.ndarray | None:
    """Return where scores were not masked by −∞ or a large negative number, or None where none was.

    A mask leaves a gap: between what it forbids and the rest there is more than the rest spreads over.
    """
    low = scores <= IN_SCORES
    endless = np.isneginf(scores)
    if not low.any():
        return None
    rest, finite = scores[~low], scores[low & ~endless]
    if finite.size:
        spread = np.ptp(rest) if rest.size else np.inf
        if not (rest.size and rest.min() - finite.max() > spread):
            low = endless
    return ~low if low.any() else None


def read(file: Path) -> Tensor:
    """Return the one array of a mask file, or the one whose name says mask."""
    found = tensors(file)
    named = {key: tensor for key, tensor in found.items() if "mask" in key.lower()}
    chosen = list((named or found).values())
    if len(chosen) != 1:
        raise InputError(f"{file}: holds {len(chosen)} arrays that could be the mask, not one")
    return chosen[0]


def part(mask: Tensor, batch: tuple[int, int], head: tuple[int, int], n: int, m: int) -> np.ndarray:
    """Return the mask of one sequence and head, (n, m) or (1, m), as it was written down.

    Shapes (m), (n, m), (batch, m), (batch or head, n, m) and (batch, head, n, m) are understood, with 1 for all.
    batch, head: the index and how many there are.
    """
    shape = mask.shape
    last = shape[-2:] if len(shape) > 1 else (1, *shape)
    pick: tuple[Any, ...] | None = None
    if last in ((n, m), (1, m)):
        lead = shape[:-2] if len(shape) > 1 else ()
        if not lead:
            pick = ()
        elif len(lead) == 1:
            sides = [side for side in (batch, head) if lead[0] in (1, side[1])]
            pick = (sides[0][0] if lead[0] > 1 else 0,) if sides else None
        elif len(lead) == 2 and lead[0] in (1, batch[1]) and lead[1] in (1, head[1]):
            pick = (batch[0] if lead[0] > 1 else 0, head[0] if lead[1] > 1 else 0)
    if pick is None and len(shape) == 2 and shape == (batch[1], m):
        pick = (batch[0],)
    if pick is None:
        raise InputError(f"{mask.where} has shape {shape}, which is no mask for {n} queries and {m} keys")
    return np.atleast_2d(mask.read(pick))
