"""Inputs as people have them, for `audit_study.py`: repeated tokens, biases, masks, padding, grouped heads, real text.

Each kind draws queries, keys, and what stands beside them: a mask, and what is added to the logits or done to them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

REAL = Path(__file__).resolve().parents[1] / "resources" / "minilm-l6-qk.npz"


@dataclass
class Input:
    """Queries and keys (head, token, d_k), a mask, and logits -> scores; `scored` says that scores have to be given."""

    q: np.ndarray
    k: np.ndarray
    mask: np.ndarray | None = None
    after: Callable[[np.ndarray], np.ndarray] = field(default=lambda z: z)
    scored: bool = False

    def arrays(self, factor: float | None) -> dict:
        """Return the arrays of a dump, with the scores that a factor gives, in float32 as models have them."""
        found = {"q": self.q, "k": self.k} | ({} if self.mask is None else {"mask": self.mask})
        if factor is None:
            return found
        k = np.repeat(self.k, len(self.q) // len(self.k), axis=0)
        with np.errstate(invalid="ignore"):
            scores = self.after(factor * (self.q @ k.swapaxes(1, 2)))
        return found | {"scores": scores.astype(np.float32)}


def _normal(rng, size) -> tuple[np.ndarray, np.ndarray]:
    return tuple(rng.normal(size=(2, size.h, size.n, size.d)))


def _rotated(x: np.ndarray) -> np.ndarray:
    half = x.shape[-1] // 2
    angle = np.arange(x.shape[-2])[:, None] * 10000.0 ** (-np.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], axis=-1)


def repeated_tokens(rng, size) -> Input:
    """Few distinct tokens, at their places or not."""
    tokens = rng.integers(0, int(rng.integers(size.n // 4, size.n)), size.n)
    q, k = (x[:, tokens] for x in _normal(rng, size))
    return Input(_rotated(q), _rotated(k)) if rng.random() < 0.5 else Input(q, k)


def biased_scores(rng, size) -> Input:
    """ALiBi, a table by distance as T5 has it, or a soft cap, beside q·k in the scores."""
    distance = np.subtract.outer(np.arange(size.n), np.arange(size.n))
    kind = rng.integers(3)
    if kind == 0:
        bias = -np.abs(distance) * 2.0 ** -rng.uniform(1, 8, (size.h, 1, 1))
    elif kind == 1:
        bias = rng.uniform(1, 4) * rng.normal(size=(size.h, 2 * size.n - 1))[:, distance + size.n - 1]
    else:
        cap = float(rng.choice((15.0, 30.0, 50.0)))
        return Input(*_normal(rng, size), after=lambda z: cap * np.tanh(z / cap), scored=True)
    return Input(*_normal(rng, size), after=lambda z: z + bias, scored=True)


def masks(rng, size) -> Input:
    """Causal, a window, a finite bias: as truth values, 0/1 or additive, beside the scores and perhaps in them."""
    n = size.n
    distance = np.subtract.outer(np.arange(n), np.arange(n))
    allowed = [distance >= 0, np.abs(distance) < max(4, n // 4), (distance >= 0) & (distance < max(4, n // 2))]
    allowed = allowed[rng.integers(3)]
    kind = rng.integers(4)
    if kind < 2:
        return Input(*_normal(rng, size), mask=allowed if kind else allowed.astype(int))
    low = float(rng.choice((-np.inf, -1e4, -3.4e38)))
    mask = np.where(allowed, -0.1 * np.abs(distance) if kind == 2 else 0.0, low)
    inside = rng.random() < 0.5
    return Input(*_normal(rng, size), mask=mask, after=lambda z: z + mask if inside else z)


def padding(rng, size) -> Input:
    """Tokens at either end that are masked, zero, or not even numbers."""
    q, k = _normal(rng, size)
    count = int(rng.integers(1, size.n // 3))
    there = np.arange(size.n) >= count if rng.random() < 0.5 else np.arange(size.n) < size.n - count
    filling = float(rng.choice((np.nan, 0.0, 1.0)))
    q, k = (np.where(there[:, None], x, filling) for x in (q, k))
    mask = None if filling == 0 and rng.random() < 0.5 else there if rng.random() < 0.5 else there & there[:, None]
    return Input(q, k, mask)


def grouped_heads(rng, size) -> Input:
    """Fewer heads of k, or one."""
    q, k = _normal(rng, size)
    few = [n for n in range(1, size.h + 1) if size.h % n == 0]
    return Input(q, k[: int(rng.choice(few))])


def real_text(rng, size) -> Input:
    """A run of tokens in a layer of the trained model that ships."""
    with np.load(REAL) as dump:
        layer = int(rng.integers(dump["q"].shape[0]))
        q, k = (dump[name][layer].astype(float) for name in ("q", "k"))
    n = min(size.n, q.shape[1])
    start = int(rng.integers(q.shape[1] - n + 1))
    return Input(q[:, start : start + n], k[:, start : start + n])


KINDS: dict[str, Callable[[np.random.Generator, object], Input]] = {
    "repeated tokens": repeated_tokens,
    "biased scores": biased_scores,
    "masks": masks,
    "padding": padding,
    "grouped heads": grouped_heads,
    "real text": real_text,
}
