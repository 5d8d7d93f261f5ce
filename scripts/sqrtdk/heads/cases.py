"""A head with what was declared of it, what is known of it and of its neighbours."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqrtdk.heads.conventions import Convention
from sqrtdk.heads.findings import Finding
from sqrtdk.heads.regression import TRUSTED

STAGES = ("init", "trained", "unknown")
SAME = 2e-3
"""Two factors that differ by less are one: scales are written with three digits."""
ERRORS = 5.0
"""How many standard errors a measured number has to be off."""
UNEXPLAINED = 2.0
"""How many times the unexplained part of given scores a measured factor may be off."""
TEMPERED = 2.0
"""How many times beyond the factors of single queries the scale may be, where a temperature makes them differ."""
CONSTANT_NORM = 0.01
"""Norms that vary less than this belong to normalised vectors."""


@dataclass(frozen=True)
class Options:
    """What was declared: a scale is (d_k, n_keys) -> number, or None; sizes are numbers or None."""

    convention: Convention
    scale: Callable[[int, int], float] | None = None
    stage: str = "unknown"
    d_model: int | None = None
    num_heads: int | None = None
    d_v: int | None = None


@dataclass
class Case:
    """A head with what is known of it and of its neighbours.

    heads: of the model. peers: the other heads of its layer. before: the same head in earlier dumps. others: (d_k,
    factor) of all heads, where they have several d_k. layers: (layer, times the right factor) of its dump, where they
    differ. usual_spread: median within-row standard deviation of q·k over its dump. shape: heads, queries and keys as
    the file has them. key_heads: heads of k. layer: its number. found: what reading its arrays has shown.
    """

    facts: dict[str, Any]
    options: Options
    heads: int
    peers: list[dict[str, Any]] = field(default_factory=list)
    before: list[dict[str, Any]] = field(default_factory=list)
    others: list[tuple[int, float]] = field(default_factory=list)
    layers: list[tuple[int, float]] = field(default_factory=list)
    usual_spread: float = math.inf
    shape: tuple[int, int, int] = (1, 0, 0)
    key_heads: int | None = None
    layer: int = 0
    found: tuple[Finding, ...] = ()

    @property
    def d_k(self) -> int | None:
        """Width without the coordinates that are padding."""
        return self.facts["effective_d_k"] or self.facts["d_k"]

    @property
    def width(self) -> int:
        """d_k, of a head whose queries and keys are known."""
        assert self.d_k is not None
        return self.d_k

    @property
    def n_keys(self) -> int:
        """How many keys a query sees, as a geometric mean."""
        return round(math.exp(self.facts["uniform_entropy"]))

    @property
    def normalised(self) -> bool:
        """Whether all queries have one length and all keys too, or had before learned weights of the components."""
        sides = ((self.facts[f"{side}_norm_cv"], self.facts[f"{side}_on_ellipsoid"]) for side in "qk")
        constant = (fitted or (cv is not None and cv < CONSTANT_NORM) for cv, fitted in sides)
        return self.d_k is not None and self.d_k > 1 and all(constant)

    @property
    def measured(self) -> float | None:
        """The factor that the scores show, where q·k explains them."""
        trusted = self.facts["measured_r2"] is not None and self.facts["measured_r2"] >= TRUSTED
        return self.facts["measured_factor"] if trusted else None

    @property
    def declared(self) -> float | None:
        """The factor of the declared scale, None where none was declared or d_k is not known."""
        scale = self.options.scale
        return None if scale is None or self.d_k is None else scale(self.d_k, self.n_keys)

    @property
    def seen(self) -> float | None:
        """The factor that was seen at work, in the given scores or by a capture."""
        return self.measured if self.measured is not None else self.facts.get("captured_factor")

    @property
    def actual(self) -> float | None:
        """The factor at work, as it was seen or as declared; None where neither is known."""
        return self.seen if self.seen is not None else self.declared

    @property
    def source(self) -> str:
        """Words for where the factor at work is known from, before its number."""
        if self.measured is not None:
            return "the scores, regressed on q·k, show"
        if self.seen is not None:
            return f"at work ({self.facts['captured_from']}) is"
        return "declared is"

    @property
    def right(self) -> tuple[float, ...]:
        """The right factors, the usual one first; empty where any is."""
        rights = self.options.convention.right(self.width, self.n_keys)
        if self.options.convention.assumed and self.normalised:
            # Where norms are fixed, a learned multiplier may stand for the scale; unit vectors need one.
            return () if self.unit_norms else (*rights, 1.0)
        return rights

    def is_right(self, factor: float) -> bool:
        """Say whether a factor is one of the convention's, or whether any is."""
        rights = self.right
        return not rights or any(
            self.same(factor, right) for right in (*rights, *self.options.convention.also(self.width))
        )

    @property
    def at_scale(self) -> str:
        """Words for the scale behind a number that depends on it."""
        source = {"assumed": " (assumed)", "measured": " (measured)", "captured": " (captured)"}.get(
            self.facts["scale_source"], ""
        )
        return "" if self.facts["scale_source"] == "scores" else f" at scale {self.facts['factor']:.4g}{source}"

    @property
    def unit_norms(self) -> bool:
        """Whether all queries and keys have length 1."""
        return self.normalised and all(abs(self.facts[f"{side}_norm"] - 1) < 0.02 for side in "qk")

    def at_work(self, factor: float) -> bool:
        """Say whether a factor is the one at work."""
        return self.actual is not None and self.same(self.actual, factor)

    def same(self, one: float, other: float) -> bool:
        """Say whether two factors are one, up to their spelling or the error of a measured one."""
        slack = SAME * abs(other)
        if self.measured is not None:
            # What a soft cap takes from the slope is of the size of what it leaves unexplained.
            unexplained = math.sqrt(max(1 - self.facts["measured_r2"], 0.0))
            error = self.facts["measured_factor_se"] or 0.0
            slack = max(slack, ERRORS * error, UNEXPLAINED * unexplained * abs(other))
            if self.facts.get("reach") is not None and one == self.measured:
                ends = [end * times for end in self.facts["reach"] for times in (1 / TEMPERED, TEMPERED)]
                return min(ends) <= other <= max(ends)
        return abs(one - other) <= slack
