"""Tables of the report on training: every rule against 1/√d_k, the halves of the repair, how logits and rates grow."""

from typing import Any

import pandas as pd

from sqrtdk.report import trained
from sqrtdk.report.tables.cells import NONE, Cell, Table, missing
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

COMPARISONS = (*trained.MEASURES, "same_rate", "window")


def _judged(row: dict[str, Any]) -> Sentence:
    return Sentence(f"verdicts.{trained.WORDS[row['verdict']]}")


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return frame.to_dict("records")


def verdict_table(key: str, verdicts: pd.DataFrame, summary: pd.DataFrame) -> Table:
    """Return each rule against 1/√d_k at each width: four comparisons, each an estimate, an interval and a verdict."""
    late = {_key(row): row["late_rise"] for row in _records(summary)}
    rows = []
    for cell, cells in verdicts.groupby(["experiment", "scaling", "d_k"], sort=False):
        first = cells.iloc[0].to_dict()
        by_name = {row["comparison"]: row for row in _records(cells)}
        rates = f"{first['rate']:g}; {first['reference_rate']:g}"
        rows.append(
            (
                _experiment(first),
                Cell(first["scaling"], word="scaling"),
                Cell(str(first["d_k"]), number=True),
                Cell(rates, number=True),
                *(_comparison(by_name.get(name)) for name in COMPARISONS),
                Cell(numbers.significant(late[cell], 2), number=True) if cell in late else NONE,
            )
        )
    columns = ("experiment", "scaling", "d_k", "rates", *COMPARISONS, "late")
    return Table(key, columns, tuple(rows))


def _experiment(row: dict[str, Any]) -> Cell:
    """Return task and optimiser of an experiment, and its name in the configuration where that says more."""
    told = (Sentence(f"article.tasks.{row['task']}"), Sentence(f"optimisers.{row['optimiser']}"))
    if row["experiment"] == row["task"]:
        return Cell(Listing(told, "comma"))
    return Cell(Listing(told, "comma"), note=row["experiment"], note_word="article.literal")


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["experiment"], row["scaling"], row["d_k"]


def _comparison(row: dict[str, Any] | None) -> Cell:
    if row is None:
        return NONE
    text = f"{numbers.significant(row['estimate'], 2)} {numbers.rough_interval(row['low'], row['high'])}"
    return Cell(text, note=_judged(row), note_word="tables.literal", number=True)


def halves_table(frame: pd.DataFrame) -> Table:
    """Return what a start, a rate and both do around each rule, one row for each measure."""
    rows = []
    keys = ["experiment", "scaling", "d_k", "measure"]
    for (_, scaling, d_k, measure), arms in frame.groupby(keys, sort=False):
        first = arms.iloc[0].to_dict()
        found = {(row["start"], row["rate"]): row for row in _records(arms)}
        rows.append(
            (
                _experiment(first),
                Cell(scaling, word="scaling"),
                Cell(str(d_k), number=True),
                Cell(word=f"trained_measures.{measure}"),
                *(_arm(found[arm]) for arm in ((False, False), (True, False), (False, True), (True, True))),
            )
        )
    return Table(
        "start_rate", ("experiment", "scaling", "d_k", "measure", "neither", "start", "rate", "both"), tuple(rows)
    )


def _arm(row: dict[str, Any]) -> Cell:
    """Spell a combination's estimate and interval, with what it does against neither half below."""
    text = f"{numbers.significant(row['estimate'], 2)} {numbers.rough_interval(row['low'], row['high'])}"
    if not isinstance(row["verdict_neither"], str):
        return Cell(text, number=True)
    word = Sentence(f"verdicts.{trained.WORDS[row['verdict_neither']]}")
    return Cell(text, note=word, note_word="tables.literal", number=True)


def growth_table(frame: pd.DataFrame) -> Table:
    """Return the exponents in d_k of the logits' spread and of the largest usable rate, beside predictions."""
    rows = []
    for row in _records(frame[frame["exponent"].notna()]):
        text = f"{numbers.significant(row['exponent'], 2)} {numbers.rough_interval(row['low'], row['high'])}"
        rows.append(
            (
                _experiment(row),
                Cell(row["scaling"], word="scaling"),
                Cell(word=f"trained_quantities.{row['quantity']}"),
                Cell(f"{row['d_k_low']}; {row['d_k_high']}", number=True),
                Cell(text, number=True),
                NONE if missing(row["predicted"]) else Cell(f"{row['predicted']:g}".replace("-", "−"), number=True),
            )
        )
    columns = ("experiment", "scaling", "quantity", "widths", "exponent", "predicted")
    return Table("training_growth", columns, tuple(rows))


def report_tables(frames: dict[str, pd.DataFrame], shipped: dict[str, pd.DataFrame]) -> list[Table]:
    """Return the tables on training: of this run, and of the longer one that ships with the project."""
    found = [verdict_table("training", frames["training_verdicts"], frames["training_summary"])]
    if shipped:
        found.append(halves_table(shipped["start_rate"]))
        found.append(growth_table(shipped["training_growth"]))
        found.append(verdict_table("training_shipped", shipped["training_verdicts"], shipped["training_summary"]))
    return [table for table in found if table.rows]
