"""Tables of rows of attention: how saturated they are and their gradients, by scale rule."""

import pandas as pd

from sqrtdk.figures.style import ensemble_label
from sqrtdk.report.tables.cells import Cell, Table, estimate, exact, missing
from sqrtdk.report.tables.moments import logit_std
from sqrtdk.results.picking import pick

SATURATION_MEASURES = (
    "max_weight",
    "effective_keys",
    "normalised_entropy",
    "participation_ratio",
    "saturated_share",
    "jacobian_frobenius",
    "vanishing_share",
)
GRADIENT_MEASURES = ("grad_logits", "grad_query", "grad_key")


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
