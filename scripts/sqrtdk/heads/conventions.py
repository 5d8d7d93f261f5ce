"""What a head's scale is judged against, and how a scale is written on the command line."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from sqrtdk.heads.errors import InputError

STANDARD = "1/sqrt(d_k)"
SMALLEST, LARGEST = 1e-30, 1e30
"""A scale beyond these is a slip, and its powers would leave float64."""
_NUMBER = r"[0-9.]+(?:[eE][+-]?[0-9]+)?"


@dataclass(frozen=True)
class Scale:
    """A scale as it was written, and the number (d_k, n_keys) -> c that multiplies q·k."""

    text: str
    of: Callable[[int, int], float]


@dataclass(frozen=True)
class Convention:
    """Which factors are right.

    right: (d_k, n_keys) -> the factors that are right, the usual one first; none where any positive factor is.
    unit: (d_k) -> the within-row standard deviation of q·k at initialisation if all is well; None where none is
    expected. normalised: q and k are normalised per head. carried: the arrays carry the scale already.
    """

    name: str
    words: str
    right: Callable[[int, int], tuple[float, ...]]
    unit: Callable[[int], float] | None = math.sqrt
    normalised: bool = False
    assumed: bool = False


_CONVENTIONS = (
    Convention("pre-scaled", "q carries the scale already", lambda d, n: (1.0,), lambda d: 1.0),
    Convention("split", "q and k carry one half of the scale each", lambda d, n: (1.0,), lambda d: 1.0),
    Convention("folded", "the weights of q carry the scale (T5)", lambda d, n: (1.0,), lambda d: 1.0),
    Convention("mup", "1/d_k, or 8/d_k", lambda d, n: (1 / d, 8 / d)),
    Convention("learned", "a learned multiplier", lambda d, n: (), None),
    Convention("normalised", "q and k normalised per head, with any multiplier", lambda d, n: (), None, True),
)
CONVENTIONS = {convention.name: convention for convention in _CONVENTIONS}
"""Conventions that are more than one scale; a new one is one entry."""


def scale(text: str, option: str = "--scale") -> Scale:
    """Read a scale: a number, 1/8, 1/sqrt(64), or a scale rule such as 1/sqrt(d_k), 1/d_k, none.

    Raises InputError for what is none of these, negative, not finite, or out of all proportion. `option`: what the
    message names as its source.
    """
    text = str(text).strip()
    value = _number(text)
    if value is not None:
        if not (math.isfinite(value) and value >= 0):
            raise InputError(f"{option} {text}: a scale is a finite number of at least 0")
        _check_size(value, option, text)
        return Scale(text, lambda d_k, n_keys: value)
    from sqrtdk.variants.notation import VariantError, parse

    try:
        variant = parse(text)
    except VariantError as error:
        close = f"; did you mean {error.nearest}?" if error.nearest else ""
        raise InputError(f"{option} {text}: neither a number nor a scale rule{close}") from error
    usual = variant.factor(64, 64)
    if usual is None:
        raise InputError(f"{option} {text}: depends on the data; give the number that multiplies q·k")
    _check_size(usual, option, text)
    return Scale(variant.text, variant.factor)


def _check_size(value: float, option: str, text: str) -> None:
    if value != 0 and not SMALLEST <= abs(value) <= LARGEST:
        raise InputError(f"{option} {text}: a scale is 0, or from {SMALLEST:g} to {LARGEST:g}")


def _number(text: str) -> float | None:
    root = re.fullmatch(rf"({_NUMBER})\s*/\s*sqrt\(\s*({_NUMBER})\s*\)", text)
    ratio = re.fullmatch(rf"({_NUMBER})\s*/\s*({_NUMBER})", text)
    try:
        if root:
            return float(root[1]) / math.sqrt(float(root[2]))
        return float(ratio[1]) / float(ratio[2]) if ratio else float(text)
    except ZeroDivisionError:
        return math.inf
    except ValueError:
        return None


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
