"""What is said of a head: a finding with its level."""

from collections.abc import Iterable
from dataclasses import dataclass

BUG, WARNING, NOTE = "bug", "warning", "note"
LEVELS = (BUG, WARNING, NOTE)
"""The gravest first: a mistake, what should be explained before training goes on, and a fact worth a look."""
HEALTHY = "healthy"
COMPARED = ("entropy collapse", "very sharp", "precision at risk", "logit growth")
"""Findings whose factor compares with other heads, dumps or a limit, and is none that a scale should be divided by."""


@dataclass(frozen=True)
class Finding:
    """One finding on one head. factor: how many times the number is what it should be, None where there is no such.

    explanations: names of all that give the number. evidence: what was measured. advice: what to do.
    """

    kind: str
    level: str
    factor: float | None
    explanations: tuple[str, ...]
    evidence: str
    advice: str

    @property
    def shown_factor(self) -> float | None:
        """The factor, where it says how far off a scale or a size is; the evidence says what others are measured by."""
        return None if self.kind in COMPARED else self.factor


def worst(findings: Iterable[Finding]) -> str:
    """Return the gravest level of findings, `healthy` where there is none."""
    levels = {finding.level for finding in findings}
    return next((level for level in LEVELS if level in levels), HEALTHY)
