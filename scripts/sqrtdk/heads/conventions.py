"""What a head's scale is judged against, and how a scale is written on the command line."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sqrtdk.heads.errors import InputError
from sqrtdk.heads.formulas import FUNCTIONS, LAYER, NAMES, FormulaError, formula

STANDARD = "1/sqrt(d_k)"
SMALLEST, LARGEST = 1e-30, 1e30
"""A scale beyond these is a slip, and its powers would leave float64."""


@dataclass(frozen=True)
class Scale:
    """A scale as it was written, and the number (d_k, n_keys) -> c that multiplies q·k."""

    text: str
    of: Callable[..., float]

    def __call__(self, d_k: int, n_keys: int) -> float:
        """Return what multiplies q·k."""
        return self.of(d_k, n_keys)

    def at(self, layer: int) -> "Scale":
        """Return the scale of one layer."""
        return self


@dataclass(frozen=True)
class ByLayer(Scale):
    """A scale that is another number from layer to layer, of which `of` is one for all that are not in `layers`."""

    layers: Mapping[int, Scale] = field(default_factory=dict)
    formula: Callable[..., float] | None = None

    def at(self, layer: int) -> Scale:
        """Return the scale of one layer."""
        if self.formula is not None:
            formula = self.formula
            return Scale(self.text, lambda d_k, n_keys: formula(d_k, n_keys, layer))
        return self.layers[layer]

    def check(self, present: Iterable[int]) -> None:
        """Raise InputError for a layer that is not named, and for a name of none, such as 125 in 0,125."""
        if self.formula is not None:
            return
        for layer in sorted(set(present) ^ set(self.layers)):
            words = "there is no" if layer in self.layers else "says nothing of"
            raise InputError(f"--scale {self.text}: {words} layer {layer}")


@dataclass(frozen=True)
class Convention:
    """Which factors are right.

    right: (d_k, n_keys) -> the factors that are right, the usual one first; none where any positive factor is.
    unit: (d_k) -> the within-row standard deviation of q·k at initialisation if all is well; None where none is
    expected. normalised: q and k are normalised per head. also: (d_k) -> factors that are right too, if rarely meant.
    """

    name: str
    words: str
    right: Callable[[int, int], tuple[float, ...]]
    unit: Callable[[int], float] | None = math.sqrt
    normalised: bool = False
    assumed: bool = False
    also: Callable[[int], tuple[float, ...]] = lambda d_k: ()


def mup_factors(d_k: int) -> tuple[float, ...]:
    """Return √base/d_k of muP for every other width of a head that a base model may have had (Yang et al. 2021)."""
    return tuple(math.sqrt(base) / d_k for base in range(4, max(64, d_k) + 1, 4) if base != d_k)


_CONVENTIONS = (
    Convention("pre-scaled", "q carries the scale already", lambda d, n: (1.0,), lambda d: 1.0),
    Convention("split", "q and k carry one half of the scale each", lambda d, n: (1.0,), lambda d: 1.0),
    Convention("folded", "the weights of q carry the scale (T5)", lambda d, n: (1.0,), lambda d: 1.0),
    Convention("mup", "1/d_k, 8/d_k, or √base/d_k", lambda d, n: (1 / d, 8 / d), also=mup_factors),
    Convention("learned", "a learned multiplier", lambda d, n: (), None),
    Convention("normalised", "q and k normalised per head, with any multiplier", lambda d, n: (), None, True),
)
CONVENTIONS = {convention.name: convention for convention in _CONVENTIONS}
"""Conventions that are more than one scale; a new one is one entry."""


def scale(text: str, option: str = "--scale") -> Scale:
    """Read a scale: a number, code such as 1/math.sqrt(64) or d_k**-0.5, or a scale rule such as 1/sqrt(d_k), none.

    Raises InputError for what is none of these, negative, not finite, or out of all proportion. `option`: what the
    message names as its source.
    """
    text = str(text).strip()
    from sqrtdk.variants.notation import VariantError, parse

    try:
        variant = parse(text)
    except VariantError as error:
        try:
            value = formula(text)
        except FormulaError as problem:
            known = f"numbers, code of {', '.join((*NAMES, *FUNCTIONS))}, or a scale rule"
            close = f"; did you mean {error.nearest}?" if error.nearest else ""
            raise InputError(f"{option} {text}: {problem}; a scale is made of {known}{close}") from error
        usual = value(64, 64)
        if not (math.isfinite(usual) and usual >= 0):
            raise InputError(f"{option} {text}: a scale is a finite number of at least 0") from error
        _check_size(usual, option, text)
        return Scale(text, value)
    factor = variant.factor(64, 64)
    if factor is None:
        raise InputError(f"{option} {text}: depends on the data; give the number that multiplies q·k")
    _check_size(factor, option, text)
    return Scale(variant.text, variant.constant)


def declared_scale(text: str, option: str = "--scale") -> Scale:
    """Read a scale as `scale` does, or one for each layer: `0.125, 0.1, 0.09`, `3: 0.125, 7: 0.1`, or with `layer`.

    Raises InputError as `scale`, for a layer named twice, and where a layer is asked that the text does not name.
    """
    # A comma in brackets, as in pow(d_k, -0.5), parts no layers.
    pieces = [piece.strip() for piece in re.split(r",(?![^()]*\))", str(text))]
    if len(pieces) == 1 and ":" not in text:
        found = scale(text, option)
        if any(name in text for name in LAYER):
            return ByLayer(found.text, found.of, formula=formula(found.text))
        return found
    layers: dict[int, Scale] = {}
    for place, piece in enumerate(pieces):
        name, colon, rest = piece.rpartition(":")
        if colon and not name.strip().isdigit():
            raise InputError(f"{option} {text}: '{name.strip()}' is no number of a layer")
        layer = int(name) if colon else place
        if layer in layers:
            raise InputError(f"{option} {text}: layer {layer} has two scales")
        layers[layer] = scale(rest if colon else piece, option)
    return ByLayer(text, layers[min(layers)].of, layers)


def _check_size(value: float, option: str, text: str) -> None:
    if value != 0 and not SMALLEST <= abs(value) <= LARGEST:
        raise InputError(f"{option} {text}: a scale is 0, or from {SMALLEST:g} to {LARGEST:g}")


def convention(text: str | None, option: str = "--convention") -> Convention:
    """Read a convention: a name of CONVENTIONS or a scale; None is 1/√d_k, assumed. `option`: as in `scale`."""
    if text is None or text == "auto":
        return Convention(STANDARD, "1/sqrt(d_k)", lambda d, n: (1 / math.sqrt(d),), assumed=True)
    if text in CONVENTIONS:
        return CONVENTIONS[text]
    try:
        rule = scale(text, option)
    except InputError as error:
        raise InputError(f"{error}; named conventions are {', '.join(CONVENTIONS)}") from error
    if rule.of(64, 64) == 0:
        raise InputError(f"{option} {text}: no head is right with a scale of zero")
    # What is 1 whatever d_k leaves the size of the logits to the arrays.
    unit = (lambda d: 1.0) if rule.text in ("none", "1", "1.0") else math.sqrt
    return Convention(rule.text, rule.text, lambda d, n: (rule.of(d, n),), unit)
