"""Whether the standard errors of a run can be trusted: its estimates held against exact values."""

import pandas as pd

from sqrtdk.results import distances
from sqrtdk.statistics import calibration
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Sentence

FARTHEST = 5.0
"""A normal deviate that chance does not reach."""


def moments(frame: pd.DataFrame) -> list[Sentence]:
    """Say whether the standard errors of means and variances can be trusted, and of kurtoses by themselves.

    A kurtosis rests on the rare largest scores, so that its error is too small in runs of few blocks.
    """
    table = distances.moments(frame)
    kurtosis = table["quantity"] == "excess_kurtosis"
    found = _said("moments", table[~kurtosis]) or [Sentence("calibration.none")]
    return [*found, *_said("kurtosis", table[kurtosis])]


def theory(saturation: pd.DataFrame, gradients: pd.DataFrame) -> list[Sentence]:
    """Say the same of softmax measures and gradients, which are held against exact theory."""
    return _said("rows", distances.rows(saturation, gradients))


def _said(name: str, table: pd.DataFrame) -> list[Sentence]:
    """Return how many are covered, by how much the errors are off, the worst, and what is flagged as not trusted."""
    if table.empty:
        return []
    found = calibration.calibrate(table["score"].to_numpy(), table["unit"].to_numpy())
    trusted, flagged = (table.loc[table["trusted"] == yes, "z"].abs() for yes in (True, False))
    worst = trusted.max() if len(trusted) else 0.0
    values = {
        "count": numbers.count(found.n),
        "share": numbers.percent(found.share),
        "interval": numbers.interval(100 * found.share_low, 100 * found.share_high),
        "ratio": numbers.significant(found.ratio, 3),
        "ratio_interval": numbers.interval(found.ratio_low, found.ratio_high),
        "worst": numbers.significant(worst, 2),
    }
    verdict = "few" if not found.enough else "poor" if not found.right else "far" if worst > FARTHEST else "good"
    sentences = [Sentence(f"calibration.{name}.{verdict}", values)]
    if len(flagged):
        said = {"flagged": numbers.count(len(flagged)), "extreme": numbers.significant(flagged.max(), 2)}
        sentences.append(Sentence(f"calibration.flagged.{name}", said))
    return sentences
