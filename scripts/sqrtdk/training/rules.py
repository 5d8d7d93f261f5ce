"""Scale rules inside a model that learns: logits from q and k, and the exact way back through the rule.

A rule is a scale rule of `scalings`, with a parameter g of its own trained if it has one, or `post_softmax`, which
leaves the scores alone and multiplies the weights by 1/√d_k instead. `none + start`, `+ rate` and `+ start + rate` take
apart what the scale 1/√d_k does: it is a start of W_q and W_k times d_k^(−1/4) together with a smaller rate for them.
"""

import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sqrtdk.variants import notation, sizes
from sqrtdk.variants.scalings import SCALINGS

POST_SOFTMAX = "post_softmax"
GAIN = "g"
"""The parameter of a rule that training moves, one for each head; all others stay what they are."""
WRONG_WIDTH = tuple(f"d_v_for_d_k(ratio={ratio})" for ratio in ("0.5", "2", "4"))
"""1/√d_v in place of 1/√d_k, for values half, twice and four times as wide as keys."""
HALVES = ("start", "rate")
CHOICES: tuple[tuple[str, ...], ...] = ((), ("start",), ("rate",), HALVES)
REFERENCE = "1/sqrt(d_k)"
"""The rule that all others are held against."""
HALVED = ("none", REFERENCE)
"""The rules around which the halves of a repair are tried."""
SERIES = (1.0, 1.5, 2.2, 3.3, 4.7, 6.8)
"""Steps of 1.5 through a decade (the E6 series of IEC 60063)."""
RATES = (0.001, 0.003, 0.01, 0.03, 0.1)
AROUND = (-6, -3, -2, -1, 0, 1, 2, 3, 6)
"""How many of these steps the rates are away from the one that is known to suit a rule."""
SIZES = ("MEAN_ABS", "MAX_ABS")
"""Sizes of a row that a causal mask leaves defined: the keys that a query does not see add nothing."""


BackToVectors = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray | None]]
"""∂L/∂logits -> ∂L/∂q, ∂L/∂k, and ∂L/∂gain or None."""


@dataclass(frozen=True)
class Rule:
    """How scores become logits in a model that learns.

    factor: the constant that multiplies q·k, or the cosine of q and k where `cosine` holds, for a gain of 1.
    size: name of the size of a row that divides its scores, or None. start: initial gain, None where none is trained.
    after: what multiplies the attention weights.
    """

    factor: float = 1.0
    cosine: bool = False
    size: str | None = None
    start: float | None = None
    after: float = 1.0

    def logits(
        self, q: np.ndarray, k: np.ndarray, gain: np.ndarray | None = None, seen: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, BackToVectors]:
        """Return logits, scores q·k and the way back: a function from ∂L/∂logits to (∂L/∂q, ∂L/∂k, ∂L/∂gain or None).

        Args:
            q: (..., H, m, d_k). k: (..., H, n, d_k), H heads.
            gain: (..., H), for a rule with a start. Leading axes have a batch axis that the gain's have not.
            seen: (m, n) truth values, the keys that each query attends to; None for all.
        """
        scores = q @ k.swapaxes(-1, -2)
        if self.size is not None:
            z, back_to_scores = _divide(scores, getattr(sizes, self.size), seen)
            return z, scores, lambda g: (*_to_vectors(back_to_scores(g), q, k), None)
        factor = self.factor if gain is None else self.factor * gain[..., None, :, None, None]
        if not self.cosine:
            z = factor * scores
            return z, scores, lambda g: (*_to_vectors(factor * g, q, k), self._to_gain(g, scores, gain))
        (q_unit, q_norm), (k_unit, k_norm) = _unit(q), _unit(k)
        cosines = q_unit @ k_unit.swapaxes(-1, -2)

        def back(g: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
            g_q, g_k = _to_vectors(factor * g, q_unit, k_unit)
            return _from_unit(g_q, q_unit, q_norm), _from_unit(g_k, k_unit, k_norm), self._to_gain(g, cosines, gain)

        return factor * cosines, scores, back

    def _to_gain(self, g: np.ndarray, values: np.ndarray, gain: np.ndarray | None) -> np.ndarray | None:
        return None if gain is None else self.factor * np.einsum("...bhmn,...bhmn->...h", g, values)


def _to_vectors(g: np.ndarray, q: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return g @ k, g.swapaxes(-1, -2) @ q


def _unit(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    norm = np.sqrt(np.vecdot(x, x))[..., None]
    return x / norm, norm


def _from_unit(g: np.ndarray, unit: np.ndarray, norm: np.ndarray) -> np.ndarray:
    return (g - unit * np.vecdot(g, unit)[..., None]) / norm


def _divide(
    scores: np.ndarray, size: sizes.Size, seen: np.ndarray | None
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Return scores over their row's size, and the way back; with z = S/h, ∂L/∂S = (g − (g·z) ∇h)/h."""
    n = scores.shape[-1]
    rows = scores if seen is None else np.where(seen, scores, 0.0)
    # A mean over all keys counts those that are not seen too; a maximum does not.
    share = 1.0 if seen is None or size is not sizes.MEAN_ABS else n / seen.sum(axis=-1)[:, None]
    whole = size.value(rows)
    h = whole * share
    z = rows / h

    def back(g: np.ndarray) -> np.ndarray:
        return (g - np.vecdot(g, z)[..., None] * share * size.gradient(rows, whole)) / h

    return z, back


@functools.cache
def names() -> tuple[str, ...]:
    """Return the rules that a model can be trained with, as the configuration spells them."""
    usable = [name for name, rule in SCALINGS.items() if rule.size is None or (rule.size in SIZES and not rule.rows)]
    return (*usable, *WRONG_WIDTH, POST_SOFTMAX, *(joined(base, *chosen) for base in HALVED for chosen in CHOICES[1:]))


def joined(base: str, *halves: str) -> str:
    """Return the name of a rule with one half of a repair, or both."""
    return " + ".join((base, *halves))


def taken_apart(name: str) -> tuple[str, frozenset[str]]:
    """Return the scale rule of a name, and the halves that are added to it."""
    base, *halves = name.split(" + ")
    return base, frozenset(halves)


def rates(entry: Mapping[str, Any], scaling: str) -> list[float]:
    """Return the learning rates of a rule in an experiment: its `rates`, or nine `around` the one known to suit it.

    These go in steps of 1.5 to a factor 3 on either side, and then to a factor 10. Of what is given neither, RATES.
    """
    if "rates" in entry or "around" not in entry:
        return list(entry.get("rates", RATES))
    known = entry["around"][list(entry["scalings"]).index(scaling)]
    middle = round(len(SERIES) * math.log10(known))
    steps = (divmod(middle + offset, len(SERIES)) for offset in AROUND)
    return [float(f"{SERIES[place]}e{decade}") for decade, place in steps]


def slug(name: str) -> str:
    """Return the name of a rule as a file may be called."""
    return re.sub("[^a-z0-9]+", "_", name.lower()).strip("_")


def build(name: str, d_k: int, n_keys: int) -> Rule:
    """Return the rule of this name, without halves, for heads of width d_k that see at most n_keys keys."""
    if name == POST_SOFTMAX:
        return Rule(after=1 / math.sqrt(d_k))
    variant = notation.parse(name)
    scaling, values = variant.scaling, dict(variant.values)
    if scaling.size is not None:
        if scaling.size not in SIZES or scaling.rows:
            raise ValueError(f"no model is trained with the scale rule {name!r}; there are {', '.join(names())}")
        return Rule(size=scaling.size)
    of = scaling.factor or scaling.cosine
    assert of is not None  # a scale rule has one of them, or a size
    start = values.get(GAIN)
    if start is not None:
        values[GAIN] = 1.0
    return Rule(float(of(d_k, n_keys, **values)), cosine=scaling.cosine is not None, start=start)
