"""Tables of rows of attention: how saturated they are and their gradients, by scale rule."""

from typing import Any

import pandas as pd

from sqrtdk.figures.style import ensemble_label
from sqrtdk.report.tables.cells import Cell, Table, estimate, exact, missing
from sqrtdk.report.tables.moments import logit_std
from sqrtdk.results.picking import pick
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Sentence

SATURATION_MEASURES = (
    "max_weight",
    "effective_keys",
    "normalised_entropy",
    "participation_ratio",
    "saturated_share",
    "jacobian_frobenius",
    "vanishing_share",
)
FEW_AND_MANY, VANISHING_WIDTHS = (3, 16, 64, 1024), (16, 64, 256, 1024)
"""Keys and widths of the table on what becomes of gradients."""
GRADIENT_MEASURES = ("grad_logits", "grad_query", "grad_key")


def vanishing(frame: pd.DataFrame) -> Table:
    """Return whether gradients of the logits are smaller without the scale, by number of keys and width.

    Each cell: for the median query, the root mean square, both or neither; below it their ratios without over with.
    """
    frame = frame[(frame["measure"] == "grad_logits") & frame["n_keys"].isin(FEW_AND_MANY)]
    widths = [d_k for d_k in VANISHING_WIDTHS if d_k in set(frame["d_k"])]
    rows = []
    for n_keys, here in frame.groupby("n_keys") if widths else ():
        found = (pick(here, "gradient_by_keys.csv", d_k=d_k, quantity=name) for d_k in widths for name in QUANTITIES)
        rows.append((Cell(str(n_keys), number=True), *map(_smaller, found, found)))
    return Table("vanishing", ("n_keys", *(f"width:{d_k}" for d_k in widths)), tuple(rows))


def _smaller(median: dict[str, Any], rms: dict[str, Any]) -> Cell:
    # The root mean square is exact.
    word = _SMALLER[median["high"] < 1, rms["ratio"] < 1]
    ratios = {name: numbers.significant(row["ratio"], 2) for name, row in (("median", median), ("rms", rms))}
    return Cell(
        word=f"tables.vanishing.{word}", note=Sentence("tables.vanishing.ratios", ratios), note_word="tables.literal"
    )


QUANTITIES = ("median", "rms")
_SMALLER = {(True, True): "both", (True, False): "median", (False, True): "rms", (False, False): "neither"}


def contrast(frames: dict[str, pd.DataFrame], ensemble: str, d_k: int, n_keys: int) -> Table:
    """Return the measures of one ensemble at one d_k and n_keys, one column for each scale rule."""
    saturation, where = frames["softmax_saturation"], {"ensemble": ensemble, "d_k": d_k}
    row = pick(frames["moments"], "moments.csv", **where)
    here = saturation[
        (saturation["ensemble"] == ensemble) & (saturation["d_k"] == d_k) & (saturation["n_keys"] == n_keys)
    ]
    rules = list(dict.fromkeys(here["scaling"]))
    rows = [(Cell(word="measures.logit_std"), *(estimate(*logit_std(row, rule, n_keys)) for rule in rules))]
    lines = [("softmax_saturation", name, "estimate", "se", name) for name in SATURATION_MEASURES]
    for name in GRADIENT_MEASURES:
        lines.append(("gradient_magnitude", name, "estimate", "se", f"{name}_rms"))
        lines.append(("gradient_magnitude", name, "median", "median_se", f"{name}_median"))
    where["n_keys"] = n_keys
    for table, measure, value, se, word in lines:
        found = [pick(frames[table], f"{table}.csv", **where, measure=measure, scaling=rule) for rule in rules]
        rows.append((Cell(word=f"measures.{word}"), *(estimate(one[value], one[se]) for one in found)))
    values = {"ensemble": ensemble_label(ensemble), "d_k": str(d_k), "n_keys": str(n_keys)}
    return Table("contrast", ("measure", *(f"scaling:{rule}" for rule in rules)), tuple(rows), values)


def by_rule(frame: pd.DataFrame, key: str, ensemble: str, d_k: int) -> Table:
    """Return measures at one d_k for every n_keys and scale rule: `saturation`, or `gradients` with their medians."""
    medians = key == "gradients"
    measures = GRADIENT_MEASURES if medians else SATURATION_MEASURES
    here = frame[(frame["ensemble"] == ensemble) & (frame["d_k"] == d_k)]
    rows = []
    for n_keys, scaling in dict.fromkeys(zip(here["n_keys"], here["scaling"], strict=True)):
        cells = [Cell(str(n_keys), number=True), Cell(scaling, word="scaling")]
        for measure in measures:
            row = pick(here, f"the table of {key}", n_keys=n_keys, scaling=scaling, measure=measure)
            theory = "" if missing(row["theory"]) else exact(row["theory"])
            cells.append(estimate(row["estimate"], row["se"], theory, "tables.theory"))
            if medians:
                cells.append(estimate(row["median"], row["median_se"]))
        rows.append(tuple(cells))
    named = [f"{measure}_{kind}" for measure in measures for kind in ("rms", "median")] if medians else measures
    return Table(
        key, ("n_keys", "scaling", *named), tuple(rows), {"ensemble": ensemble_label(ensemble), "d_k": str(d_k)}
    )
