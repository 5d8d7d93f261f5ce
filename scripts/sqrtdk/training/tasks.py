"""What the small models learn: tasks that need attention, as batches of symbols and of what is asked for.

A task is one object in `TASKS`: the model that it takes, its batch, and `draw`.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sqrtdk.training.model import Shape

PAIRS = 16
SYMBOLS = 32
HALF = 16
"""Length of the random sequence that is repeated."""
WINDOW = 32
"""Characters that a text model sees at most."""
HELD_OUT = 0.1
"""Share of the text, its end, that is only for evaluation."""
TEXT = Path(__file__).resolve().parents[3] / "resources" / "genesis.txt"


@dataclass(frozen=True)
class Task:
    """A task: `shape` builds its model from d_k and further settings, `batch` is the number of its sequences.

    draw: (rng, n, held_out) -> inputs (n, T, symbols), how often each symbol stands at each position, and targets
        (n, answers). guess: loss, in nats, of answering by frequency without a look at the input.
    floor: loss, in nats, of the best answers that there are; None where nobody knows it.
    target: loss, in nats, at which the task counts as learned.
    """

    shape: Callable[..., Shape]
    draw: Callable[[np.random.Generator, int, bool], tuple[np.ndarray, np.ndarray]]
    guess: Callable[[], float]
    batch: int
    floor: float | None
    target: float


def _count(*symbols: np.ndarray, n: int) -> np.ndarray:
    """Return (n_sequences, T, n) counts of several symbols at each position."""
    counts = np.zeros((*symbols[0].shape, n), np.float32)
    for symbol in symbols:
        np.put_along_axis(counts, symbol[..., None], 1, axis=-1)
    return counts


def _distinct(rng: np.random.Generator, n: int, length: int, among: int) -> np.ndarray:
    return np.argsort(rng.random((n, among)), axis=-1)[:, :length]


def recall(rng: np.random.Generator, n: int, held_out: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Draw associative recall: PAIRS pairs of a key and a value, then each key alone, whose value is asked for."""
    keys = _distinct(rng, n, PAIRS, SYMBOLS)
    values = rng.integers(SYMBOLS, size=(n, PAIRS))
    pairs = _count(keys, SYMBOLS + values, n=2 * SYMBOLS)
    return np.concatenate([pairs, _count(keys, n=2 * SYMBOLS)], axis=1), values


def induction(rng: np.random.Generator, n: int, held_out: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Draw a sequence of distinct random symbols, then itself again, where each next symbol is asked for."""
    half = _distinct(rng, n, HALF, SYMBOLS)
    sequence = np.concatenate([half, half[:, :-1]], axis=1)
    places = np.broadcast_to(SYMBOLS + np.arange(2 * HALF - 1), sequence.shape)
    return _count(sequence, places, n=SYMBOLS + 2 * HALF - 1), half[:, 1:]


@functools.cache
def text() -> tuple[np.ndarray, str]:
    """Return the text as indices into its alphabet, and the alphabet."""
    words = " ".join(line for line in TEXT.read_text("utf-8").splitlines() if not line.startswith("#")).lower()
    words = " ".join(words.split())
    alphabet = "".join(sorted(set(words)))
    return np.array([alphabet.index(letter) for letter in words]), alphabet


def characters(rng: np.random.Generator, n: int, held_out: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Draw windows of English prose, whose every next character is asked for; `held_out` ones from its end."""
    letters, alphabet = text()
    border = round(len(letters) * (1 - HELD_OUT))
    low, high = (border, len(letters)) if held_out else (0, border)
    starts = rng.integers(low, high - WINDOW, size=n)
    windows = letters[starts[:, None] + np.arange(WINDOW + 1)]
    places = np.broadcast_to(len(alphabet) + np.arange(WINDOW), (n, WINDOW))
    return _count(windows[:, :-1], places, n=len(alphabet) + WINDOW), windows[:, 1:]


def _recall_shape(d_k: int, **settings: Any) -> Shape:
    return Shape(2 * SYMBOLS, SYMBOLS, d_k, memory=PAIRS, wanted=tuple(range(PAIRS)), **settings)


def _induction_shape(d_k: int, **settings: Any) -> Shape:
    inputs = SYMBOLS + 2 * HALF - 1
    # The first time that a symbol stood there, the next one followed it.
    wanted = tuple(range(1, HALF))
    return Shape(inputs, SYMBOLS, d_k, wanted=wanted, **{"layers": 2, "causal": True, "asked": HALF} | settings)


def _text_shape(d_k: int, **settings: Any) -> Shape:
    symbols = len(text()[1])
    return Shape(symbols + WINDOW, symbols, d_k, **{"layers": 1, "mlp": 128, "causal": True} | settings)


def _entropy(symbols: np.ndarray) -> float:
    share = np.bincount(symbols) / len(symbols)
    return float(-(share * np.log(share, where=share > 0, out=np.zeros_like(share))).sum())


TASKS: dict[str, Task] = {
    # All that is asked for is in the input, so that nothing is left to guess.
    "recall": Task(_recall_shape, recall, lambda: float(np.log(SYMBOLS)), 4, 0.0, 0.35),
    "induction": Task(_induction_shape, induction, lambda: float(np.log(SYMBOLS)), 4, 0.0, 0.35),
    "text": Task(_text_shape, characters, lambda: _entropy(text()[0]), 4, None, 2.4),
}


def names() -> tuple[str, ...]:
    """Return the names of all tasks."""
    return tuple(TASKS)
