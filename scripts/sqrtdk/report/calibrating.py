"""Whether the standard errors of a run can be trusted: its estimates held against exact values."""

import pandas as pd

from sqrtdk.report.comparing import DISTINCT
from sqrtdk.report.tables.moments import z_score
from sqrtdk.results.picking import simulated, truth
from sqrtdk.statistics import shares
from sqrtdk.statistics.intervals import NORMAL
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Sentence

FARTHEST = 5.0
"""A normal deviate that chance does not reach."""


def scores(frame: pd.DataFrame) -> list[float]:
    """Return the distance of each trusted estimate of the moments from its exact value, in standard errors."""
    found = []
    for row in simulated(frame).to_dict("records"):
        for quantity in ("mean", "variance", "within_row_variance", "excess_kurtosis"):
            if quantity == "excess_kurtosis" and not row["kurtosis_trusted"]:
                continue
            z = z_score(row[quantity], row[f"{quantity}_se"], row[f"exact_{quantity}"])
            found += [] if z is None else [abs(z)]
    return found


def moments(frame: pd.DataFrame) -> list[Sentence]:
    """Say whether the standard errors can be trusted: the share of exact values within 1.96 of them, and the worst."""
    found = scores(frame)
    if not found:
        return [Sentence("calibration.none")]
    share = sum(z <= NORMAL for z in found) / len(found)
    # One cell's quantities share their draws, so the binomial error counts cells.
    nominal = shares.is_nominal(share, len(simulated(frame)), DISTINCT)
    values = {
        "count": numbers.count(len(found)),
        "share": numbers.percent(share),
        "worst": numbers.significant(max(found), 2),
        "covered": numbers.significant(NORMAL),
    }
    verdict = "poor" if not nominal else "far" if max(found) > FARTHEST else "good"
    return [Sentence(f"calibration.{verdict}", values)]


def theory_scores(saturation: pd.DataFrame, gradients: pd.DataFrame) -> tuple[pd.Series, int]:
    """Return the same of averages over rows, and how many are left out because their error is not trusted."""
    rows = pd.concat([saturation, gradients], ignore_index=True)
    rows = rows[rows["theory"].notna() & (rows["se"] > 0)]
    trusted = rows[truth(rows["trusted"])]
    return ((trusted["estimate"] - trusted["theory"]) / trusted["se"]).abs(), len(rows) - len(trusted)
