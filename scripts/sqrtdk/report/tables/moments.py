"""Tables of the moments of simulated ensembles and of the laws fitted to them."""

import json
import math
from typing import Any

import pandas as pd

from sqrtdk.figures.style import ensemble_label
from sqrtdk.report.setting import WANTED_SCALING
from sqrtdk.report.tables.cells import NONE, Cell, Table, estimate, exact, missing, plain, signed, text
from sqrtdk.results.picking import pick, simulated
from sqrtdk.variants import notation
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Phrase, Sentence

USUAL_WIDTHS = (32, 64, 128, 256)
"""Widths that heads of published models have."""
SMALLEST_P = 0.0001
"""A smaller p-value is only said to be smaller: its digits would rest on the far tail of the chi-squared law."""


def z_score(value: Any, se: float, exact: Any) -> float | None:
    """Return (value − exact)/se, or None where one of the three does not exist or the error is zero."""
    return None if missing(value) or missing(exact) or missing(se) or se <= 0 else (value - exact) / se


def logit_std(row: dict[str, Any], scaling: str, n_keys: int) -> tuple[float, float]:
    """Return the standard deviation of the logits under a scale rule, with its error, from a line of the moments.

    It is missing where the rule is no constant factor.
    """
    factor = notation.parse(scaling).factor(row["d_k"], n_keys)
    if factor is None or missing(row["variance"]) or row["variance"] < 0:
        return math.nan, math.nan
    std = math.sqrt(row["variance"])
    unknown = missing(row["variance_se"]) or std == 0
    return factor * std, math.nan if unknown else factor * row["variance_se"] / (2 * std)


def widths(moments: pd.DataFrame, ensemble: str, n_keys: int) -> Table:
    """Return the standard deviation of the scores at the widths of usual heads, exact, and with the usual factor."""
    rows = []
    for row in moments[(moments["ensemble"] == ensemble) & moments["d_k"].isin(USUAL_WIDTHS)].to_dict("records"):
        known = NONE if missing(row["exact_variance"]) else plain(math.sqrt(row["exact_variance"]))
        measured = (estimate(*logit_std(row, rule, n_keys)) for rule in ("none", WANTED_SCALING))
        rows.append((Cell(str(row["d_k"]), number=True), known, *measured))
    return Table("widths", ("d_k", "exact", "scores", "scaled"), tuple(rows), {"ensemble": ensemble_label(ensemble)})


def specification(spec: dict[str, Any]) -> str:
    """Spell an ensemble's family and parameters as they stand in the configuration."""
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in spec.items()}
    return ", ".join(f"{key}: {text}" for key, text in texts.items())


def ensembles(moments: pd.DataFrame, d_k: int) -> Table:
    """Return each simulated ensemble at one d_k: its moments with errors, and the exact values below them."""
    columns = (
        "ensemble",
        "mean",
        "z_mean",
        "variance",
        "z_variance",
        "within_row_variance",
        "excess_kurtosis",
        "reached",
    )
    rows = simulated(moments)
    rows = rows[rows["d_k"] == d_k].to_dict("records")
    table = tuple(map(_ensemble, rows))
    return Table("ensembles", columns, table, {"d_k": str(d_k)})


def _ensemble(row: dict[str, Any]) -> tuple[Cell, ...]:
    cells = [Cell(ensemble_label(row["ensemble"]))]
    for quantity in ("mean", "variance", "within_row_variance", "excess_kurtosis"):
        value, se, truth = (row[name] for name in (quantity, f"{quantity}_se", f"exact_{quantity}"))
        cells.append(estimate(value, se, "" if missing(truth) else exact(truth), "tables.exact"))
        if quantity in ("mean", "variance"):
            z = signed(z_score(value, se, truth))
            cells.append(Cell(z, number=True) if z else NONE)
    reached = row["relative_se"]
    reached = {"word": "tables.none"} if missing(reached) else {"text": numbers.significant(reached, 2)}
    return (
        *cells,
        Cell(**reached, note=Sentence(f"stopped.{row['stopped_by']}"), note_word="tables.literal", number=True),
    )


def families(moments: pd.DataFrame, specs: dict[str, dict[str, Any]], members: dict[str, Any], d_k: int) -> Table:
    """Return the law of every simulated ensemble: what it is, its formula, and the variance at one d_k against it.

    `members` are the ensembles of the configuration by name, as `sqrtdk.ensembles.build` makes them.
    """
    rows = simulated(moments)
    here = {row["ensemble"]: row for row in rows[rows["d_k"] == d_k].to_dict("records")}
    table = []
    for name in dict.fromkeys(rows["ensemble"]):
        member, row = members[name], here.get(name, {})
        value, se, truth = (row.get(column) for column in ("variance", "variance_se", "exact_variance"))
        z, limit = signed(z_score(value, se, truth)), member.limiting_exponent()
        table.append(
            (
                Cell(ensemble_label(name), note=_glossary(name, specs.get(name, {})), note_word="article.literal"),
                Cell(Phrase(member.summary), note=Phrase(member.source), note_word="tables.reason"),
                Cell(formula=member.variance_formula) if limit is not None else NONE,
                plain(limit, 3) if limit is not None else NONE,
                NONE if missing(truth) else plain(truth, 5),
                estimate(value, se),
                Cell(z, number=True) if z else NONE,
            )
        )
    columns = ("ensemble", "distribution", "formula", "limit", "exact", "measured", "z")
    return Table("families", columns, tuple(table), {"d_k": str(d_k)})


def _glossary(name: str, spec: dict[str, Any]) -> str:
    """Return the parameters of an ensemble, and before them its name in files where it is called otherwise."""
    return "; ".join(filter(None, ("" if ensemble_label(name) == name else name, specification(spec))))


def laws(frame: pd.DataFrame, key: str, lead: tuple[str, str], tail: tuple[str, str] | None = None) -> Table:
    """Return one row for each ensemble: a leading parameter (law, parameter), the selected law, a parameter of a tail.

    `key` is `variance_laws`, `mean_laws` or `spread_laws`. What is not estimable says why.
    """
    rows = []
    for name, fits in frame.groupby("ensemble", sort=False):
        row = pick(fits, f"{key}.csv", ensemble=name, law=lead[0], parameter=lead[1])
        interval = Cell(numbers.interval(row["ci_low"], row["ci_high"]), number=True) if row["estimable"] else NONE
        cells = [Cell(ensemble_label(name)), _fitted(row), interval, *_selected(fits)]
        if tail:
            cells.append(_fitted(pick(fits, f"{key}.csv", ensemble=name, law=tail[0], parameter=tail[1])))
        rows.append(tuple(cells))
    columns = (
        "ensemble",
        "leading",
        "interval",
        "selected",
        "parameters",
        "chi2",
        "p_value",
        *(["tail"] if tail else []),
    )
    return Table(key, columns, tuple(rows))


def _fitted(row: dict[str, Any]) -> Cell:
    """Return a fitted parameter with what the same fit makes of the exact values, or the reason why there is none."""
    if not row["estimable"]:
        return Cell(word="tables.not_estimable", note=Phrase(text(row["reason"])), note_word="tables.reason")
    return estimate(row["estimate"], row["se"], "" if missing(row["exact"]) else exact(row["exact"]), "tables.exact")


def _selected(fits: pd.DataFrame) -> list[Cell]:
    chosen = fits[fits["selected"]].to_dict("records")
    if not chosen:
        reasons = Listing(tuple(Phrase(one) for one in dict.fromkeys(map(text, fits["reason"])) if one), "semicolon")
        return [Cell(word="tables.no_law", note=reasons, note_word="tables.reason"), NONE, NONE, NONE]
    first = chosen[0]
    parameters = tuple(
        Sentence(f"parameters.{row['parameter']}", {"value": numbers.with_error(row["estimate"], row["se"])})
        for row in chosen
        if text(row["parameter"])
    )
    remark = Phrase(text(first["reason"]))
    return [
        Cell(word=f"laws.{first['law']}", note=remark, note_word="tables.reason" if remark else ""),
        Cell(Listing(parameters, "semicolon")) if parameters else NONE,
        Cell(f"{numbers.significant(first['chi2'], 3)} / {int(first['dof'])}", number=True),
        plain(first["p_value"], 2) if first["p_value"] >= SMALLEST_P else Cell(f"< {SMALLEST_P:g}", number=True),
    ]


def refused(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the laws of the interquartile range of the ensembles whose variance has no error at any width."""
    fits, ranges = frames["variance_laws"], frames["spread_laws"]
    told = fits[(fits["law"] == "power") & (fits["n_points"] > 0)]
    return ranges[~ranges["ensemble"].isin(told["ensemble"])]
