"""What "vanishing gradient" means and when it is true, in sentences that the numbers choose."""

from typing import Any

import pandas as pd

from sqrtdk.report.comparing import compare, ratio
from sqrtdk.report.setting import Setting
from sqrtdk.report.tables.cells import missing
from sqrtdk.results.picking import pick
from sqrtdk.statistics.distribution import THRESHOLDS
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Sentence

_THRESHOLD = "1e-3"
VERDICTS = ("larger", "level", "smaller")
SENTENCES = {
    "verdict": tuple(f"{rms}_{median}" for rms in VERDICTS for median in VERDICTS),
    "rows": VERDICTS,
    "energy": VERDICTS,
    "crossover": ("above", "below", "near", "never", "always"),
    "total": ("beyond", "never", "always"),
}
"""Families of sentences about vanishing gradients, and what chooses one of each."""


def sentences(frames: dict[str, pd.DataFrame], setting: Setting) -> list[Sentence]:
    """Return the statement for the headline's ensemble and keys; none without both an unscaled and a scaled rule."""
    if setting.plain is None or setting.scaled is None:
        return []
    spread, crossings = frames["gradient_distribution"], frames["gradient_crossovers"]
    found = [_verdict(frames["gradient_magnitude"], setting), *_rows(spread, setting)]
    # The crossovers are those with 1/√d_k, whichever rule the headline is about.
    if setting.scaled == "1/sqrt(d_k)" and not crossings.empty:
        found += [_crossover(crossings, setting), _total(crossings, frames["gradient_magnitude"], setting)]
    return found


def _verdict(gradients: pd.DataFrame, setting: Setting) -> Sentence:
    """Say what becomes of the query's gradient in the widest head of the run, in total and in the typical row."""
    here = gradients[(gradients["ensemble"] == setting.ensemble) & (gradients["n_keys"] == setting.n_keys)]
    d_k = int(here["d_k"].max())
    plain, scaled = (
        pick(here, "gradient_magnitude.csv", d_k=d_k, scaling=rule, measure="grad_query")
        for rule in (setting.plain, setting.scaled)
    )
    values, verdicts = {"d_k": str(d_k), "n_keys": str(setting.n_keys), "rule": setting.scaled}, []
    for kind, value, se in (("rms", "estimate", "se"), ("median", "median", "median_se")):
        verdicts.append(compare(plain[value], plain[se], scaled[value], scaled[se]))
        values |= {
            f"{kind}_ratio": ratio(plain[value], scaled[value]),
            f"{kind}_plain": numbers.with_error(plain[value], plain[se]),
            f"{kind}_scaled": numbers.with_error(scaled[value], scaled[se]),
        }
    return Sentence(f"answer.vanishing.verdict.{'_'.join(verdicts)}", values)


def _rows(spread: pd.DataFrame, setting: Setting) -> list[Sentence]:
    """Say how many rows have next to no gradient, and how much the tenth with the largest holds."""
    where = {"ensemble": setting.ensemble, "d_k": setting.d_k, "n_keys": setting.n_keys, "measure": "grad_logits"}
    values: dict[str, Any] = {"d_k": str(setting.d_k), "n_keys": str(setting.n_keys), "rule": setting.scaled}
    values |= {"threshold": f"{THRESHOLDS[_THRESHOLD]:g}"}
    found = []
    for family, statistic in (("rows", f"below_{_THRESHOLD}"), ("energy", "top_tenth_energy")):
        plain, scaled = (
            pick(spread, "gradient_distribution.csv", scaling=rule, statistic=statistic, **where)
            for rule in (setting.plain, setting.scaled)
        )
        if missing(plain["estimate"]) or missing(scaled["estimate"]):
            continue
        verdict = compare(plain["estimate"], _error(plain), scaled["estimate"], _error(scaled))
        both = {"plain": share(plain), "scaled": share(scaled)}
        found.append(Sentence(f"answer.vanishing.{family}.{verdict}", values | both))
    return found


def _error(row: Any) -> float:
    """Return the standard error of a share; of one without, what its one-sided bound allows at 95 %."""
    if not missing(row["se"]):
        return row["se"]
    return max(row["high"] - row["estimate"], row["estimate"] - row["low"]) / 1.645


def share(row: Any) -> str:
    """Spell a share of rows, or of their energy, as a percentage with its error; a bound where it is none or all."""
    if not missing(row["se"]):
        return f"{numbers.with_error(100 * row['estimate'], 100 * row['se'])} %"
    if row["estimate"] == 0:
        return f"< {numbers.significant(100 * row['high'], 2)} %"
    return f"> {numbers.percent(row['low'])}"


def _crossing(crossings: pd.DataFrame, setting: Setting, measure: str, quantity: str) -> dict[str, Any]:
    where = {"ensemble": setting.ensemble, "n_keys": setting.n_keys, "measure": measure, "quantity": quantity}
    return pick(crossings, "gradient_crossovers.csv", **where)


def _star(row: Any) -> dict[str, str]:
    return {
        "star": numbers.significant(row["d_k_star"], 2),
        "interval": numbers.interval(row["ci_low"], row["ci_high"]),
    }


def _nowhere(row: Any) -> str:
    return "always" if str(row["reason"]).startswith("below") else "never"


def _crossover(crossings: pd.DataFrame, setting: Setting) -> Sentence:
    """Say from which width on the typical row sends back less to its logits, and on which side the asked width lies."""
    row = _crossing(crossings, setting, "grad_logits", "median")
    values = {"d_k": str(setting.d_k), "n_keys": str(setting.n_keys), "rule": setting.scaled} | _star(row)
    if missing(row["d_k_star"]):
        return Sentence(f"answer.vanishing.crossover.{_nowhere(row)}", values)
    side = "above" if setting.d_k > row["ci_high"] else "below" if setting.d_k < row["ci_low"] else "near"
    return Sentence(f"answer.vanishing.crossover.{side}", values)


def _total(crossings: pd.DataFrame, gradients: pd.DataFrame, setting: Setting) -> Sentence:
    """Say whether the mean square of the query's gradient falls below the scaled one at all."""
    row = _crossing(crossings, setting, "grad_query", "rms")
    widest = gradients.loc[gradients["ensemble"] == setting.ensemble, "d_k"].max()
    values = {"widest": str(int(widest)), "n_keys": str(setting.n_keys), "rule": setting.scaled} | _star(row)
    if not missing(row["d_k_star"]):
        return Sentence("answer.vanishing.total.beyond", values)
    return Sentence(f"answer.vanishing.total.{_nowhere(row)}", values)
