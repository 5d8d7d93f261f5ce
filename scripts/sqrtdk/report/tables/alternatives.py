"""Tables of the alternatives: every scale rule with its spread, and what each mistake about the scale leaves behind."""

import pandas as pd

from sqrtdk.report.tables.cells import NONE, Cell, Table, code, estimate, exact, missing
from sqrtdk.results.grid import nearest
from sqrtdk.results.picking import pick
from sqrtdk.variants import notation
from sqrtdk.variants.scalings import MISTAKE
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Phrase

WANTED = 64


def scale_rules(frame: pd.DataFrame) -> Table:
    """Return every scale rule that is no mistake: its factor, and what it makes of the logits at one width."""
    here, d_k, n_keys = _here(frame)
    rows = []
    for text in dict.fromkeys(here.loc[here["kind"].isin(["rule", "model"]), "variant"]):
        rule = notation.parse(text).scaling
        cells = [_measured(here, text, measure) for measure in ("logit_std", "effective_keys")]
        gradient = pick(here, "alternatives.csv", variant=text, measure="grad_query")
        rows.append(
            (
                Cell(code(text), note=Phrase(rule.source), note_word="tables.reason"),
                Cell(formula=rule.formula),
                *cells,
                estimate(gradient["median"], gradient["median_se"]),
                Cell(Phrase(rule.remark)) if rule.remark else NONE,
            )
        )
    columns = ("rule", "formula", "logit_std", "effective_keys", "gradient", "remark")
    return Table("scale_rules", columns, tuple(rows), {"d_k": str(d_k), "n_keys": str(n_keys)})


def mistakes(frame: pd.DataFrame) -> Table:
    """Return every mistake: the factor it leaves in the logits, exact and measured, at the least and the most d_k."""
    here, d_k, n_keys = _here(frame)
    widths = (min(frame["d_k"]), d_k, max(frame["d_k"]))
    rows = []
    for text in dict.fromkeys(here.loc[here["kind"] == MISTAKE, "variant"]):
        rule, cells = notation.parse(text).scaling, []
        for width in dict.fromkeys(widths):
            found = frame[(frame["d_k"] == width) & (frame["n_keys"] == n_keys)]
            row = pick(found, "alternatives.csv", variant=text, measure="logit_std")
            # 1/√d_k gives logits of spread 1, so that a spread is the factor that is left.
            cells.append(estimate(row["estimate"], row["se"], exact(row["exact"], 4), "tables.exact"))
        rows.append(
            (
                Cell(code(text), note=Phrase(rule.source), note_word="tables.reason"),
                Cell(formula=rule.formula),
                *cells,
                _measured(here, text, "effective_keys"),
                Cell(Phrase(rule.remark)),
            )
        )
    columns = ("mistake", "formula", *(f"width:{width}" for width in dict.fromkeys(widths)), "effective_keys", "remark")
    return Table("mistakes", columns, tuple(rows), {"d_k": str(d_k), "n_keys": str(n_keys)})


def _here(frame: pd.DataFrame) -> tuple[pd.DataFrame, int, int]:
    d_k, n_keys = nearest(frame["d_k"], WANTED), nearest(frame["n_keys"], WANTED)
    return frame[(frame["d_k"] == d_k) & (frame["n_keys"] == n_keys)], d_k, n_keys


def _measured(here: pd.DataFrame, text: str, measure: str) -> Cell:
    row = pick(here, "alternatives.csv", variant=text, measure=measure)
    known = row["exact"] if not missing(row["exact"]) else row["limit"]
    word = "tables.exact" if not missing(row["exact"]) else "tables.limit"
    note = "" if missing(known) else exact(known, 4)
    # A spread that its definition fixes has the error of rounding alone.
    se = row["se"] if row["se"] > 1e-12 else 0.0
    return estimate(row["estimate"], se, note, word)


def counts(frame: pd.DataFrame) -> dict[str, str]:
    """Return how many spreads have an exact value, and the farthest in standard errors, as text."""
    rows = frame[(frame["measure"] == "logit_std") & frame["exact"].notna() & (frame["se"] > 1e-12)]
    worst = ((rows["estimate"] - rows["exact"]) / rows["se"]).abs().max()
    return {"count": str(len(rows)), "worst": numbers.significant(worst, 2)}
