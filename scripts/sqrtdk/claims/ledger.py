"""The verdicts on all claims as the rows of claims.csv."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqrtdk.claims.catalogue import CLAIMS
from sqrtdk.claims.core import Decision, Test
from sqrtdk.claims.lookup import GRID, Results, Spec
from sqrtdk.statistics.intervals import LEVEL

if TYPE_CHECKING:
    import pandas as pd


def decide(frames: Mapping[str, "pd.DataFrame"], ensembles: Mapping[str, Spec]) -> list[Decision]:
    """Decide every claim on the tables of a run; `ensembles` are the specifications of its ensembles by name."""
    results = Results(frames, ensembles)
    return [claim.decide(results) for claim in CLAIMS.values()]


def row(decision: Decision) -> dict[str, Any]:
    """Return the row of a claim; numbers that do not exist are None."""
    claim, outcome = decision.claim, decision.outcome
    test = outcome.decisive() if outcome else None
    cells = {
        "claim": claim.id,
        "source": claim.source,
        "statement": claim.says.en,
        "verdict": decision.verdict,
        "evidence": claim.evidence,
        "statistic": claim.measures.en,
        "kind": claim.kind,
        "holds_if": claim.holds_if.en if claim.holds_if else None,
        "not_if": claim.not_if.en if claim.not_if else None,
        "surprise": decision.surprise,
        "reason": decision.reason,
        "missing": decision.missing,
    }
    cells |= _measured(test, outcome.level if outcome else None)
    other = _measured(outcome.otherwise if outcome else None)
    cells |= {f"not_if_{name}": other[name] for name in ("measured", "se", "low", "high", *GRID)}
    sides = [side for side in (test, outcome.otherwise if outcome else None) if side]
    places = dict.fromkeys(place for side in sides for place in side.estimate.at.items())
    cells["instead_of"] = "; ".join(f"{name} = {asked}" for name, (used, asked) in places if used != asked)
    cells["shipped"] = any(side.estimate.shipped for side in sides)
    cells["longer"] = any(side.estimate.longer for side in sides)
    return cells | _judged(decision, test)


def _judged(decision: Decision, test: Test | None) -> dict[str, Any]:
    """Return how the verdict came about: thresholds, distances from them, and what belongs beside it."""
    claim, other = decision.claim, decision.outcome.otherwise if decision.outcome else None
    return {
        "threshold": test.threshold.name if test else None,
        "reason_for_threshold": test.threshold.why.en if test else None,
        "distance": test.distance if test else None,
        "relative_distance": test.relative_distance if test else None,
        "not_if_distance": other.distance if other else None,
        "not_if_relative_distance": other.relative_distance if other else None,
        "other_threshold": test.threshold.other if test else None,
        "other_verdict": decision.other_verdict,
        "theorem": claim.theorem,
        "identity": claim.identity,
        "remark": claim.remark.en if claim.remark else None,
    }


def _measured(test: Test | None, level: float | None = None) -> dict[str, Any]:
    names = ("expected", "measured", "se", "margin", "relation", "low", "high", "level", *GRID)
    if test is None:
        return dict.fromkeys(names)
    estimate = test.estimate
    level = level or LEVEL
    low, high = estimate.interval(level) or (None, None)
    values = (test.expected, estimate.value, estimate.se, test.margin, test.relation, low, high, level)
    place = [estimate.at[name][0] if name in estimate.at else None for name in GRID]
    return dict(zip(names, (*values, *place), strict=True))
