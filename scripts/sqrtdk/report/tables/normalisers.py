"""Tables of normalisers, and of attention without a row of logits: saturation and gradient, narrow and wide logits."""

from dataclasses import replace

import pandas as pd

from sqrtdk.report.tables.cells import NONE, Cell, Table, code, estimate, exact, missing
from sqrtdk.results.picking import pick
from sqrtdk.studies.normalisation import BETWEEN, N_FEATURES, RULES
from sqrtdk.variants.kernels import RandomFeatures
from sqrtdk.variants.normalisers import NORMALISERS
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Phrase

N_KEYS = 64
NARROW, WIDE = 1, 8
"""Standard deviations of the logits: scaled, and unscaled at d_k = 64."""
D_K = 64
_MEASURES = {
    "row_sum": ("row_sum", "estimate", "se"),
    "effective_keys": ("effective_keys", "estimate", "se"),
    "zero_gradient": ("zero_gradient_mass", "estimate", "se"),
    "jacobian_rms": ("jacobian_frobenius", "estimate", "se"),
    "jacobian_median": ("jacobian_frobenius", "median", "median_se"),
}


def normalisers(frame: pd.DataFrame) -> Table:
    """Return each normaliser of normalisers.csv at 64 keys: its measures of scaled logits, and of unscaled below."""
    rows = []
    for spelling in dict.fromkeys(frame["normaliser"]):
        kind = NORMALISERS[spelling.partition("(")[0]]
        cells = []
        for measure, value, se in _MEASURES.values():
            narrow, wide = (
                pick(frame, "normalisers.csv", normaliser=spelling, logit_std=s, n_keys=N_KEYS, measure=measure)
                for s in (NARROW, WIDE)
            )
            below = numbers.with_error(wide[value], wide[se])
            cells.append(estimate(narrow[value], narrow[se], below, "tables.normalisers.wide"))
        rows.append(
            (
                Cell(code(spelling), note=Phrase(kind.source), note_word="tables.reason"),
                Cell(formula=kind.formula),
                *cells,
            )
        )
    values = {"n_keys": str(N_KEYS), "narrow": str(NARROW), "wide": str(WIDE)}
    return Table("normalisers", ("normaliser", "formula", *_MEASURES), tuple(rows), values)


def linear_attention(frame: pd.DataFrame) -> Table:
    """Return each kind of attention of linear_attention.csv at d_k = 64: what the scale changes."""
    here = frame[frame["d_k"] == D_K]

    def cell(attention: str, scaling: str, measure: str) -> Cell:
        found = here[(here["attention"] == attention) & (here["scaling"] == scaling) & (here["measure"] == measure)]
        if found.empty:
            return NONE
        row = pick(found, "linear_attention.csv")
        note = "" if missing(row["exact"]) else exact(row["exact"])
        return estimate(row["estimate"], row["se"], note, "tables.exact")

    rows = []
    for name in dict.fromkeys(here["attention"]):
        effective = (cell(name, rule, "effective_keys") for rule in RULES)
        error = (cell(name, rule, "total_variation_from_softmax") for rule in RULES)
        change = cell(name, BETWEEN, "total_variation_between_scales")
        head = Cell(name, word=f"tables.linear_attention.names.{name}")
        if name == RandomFeatures.name:
            head = replace(head, note=str(N_FEATURES), note_word="tables.linear_attention.features")
        rows.append((head, change, *effective, *error))
    columns = ("attention", "change", "effective_unscaled", "effective_scaled", "error_unscaled", "error_scaled")
    keys = str(here["n_keys"].iloc[0]) if len(here) else str(N_KEYS)
    return Table("linear_attention", columns, tuple(rows), {"d_k": str(D_K), "n_keys": keys})
