"""What training says, in sentences chosen by its numbers, and the tables of the report on it."""

import math
from typing import Any

import pandas as pd

from sqrtdk.report import trained
from sqrtdk.report.tables.cells import NONE, Cell, Table, missing
from sqrtdk.statistics.intervals import t_quantile
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

PLAIN, MUP, REFERENCE = "none", "1/d_k", "1/sqrt(d_k)"
COMPARISONS = (*trained.MEASURES, "same_rate", "window")
STILL = 0.1
"""A largest usable rate that moves by less than this many decades from the narrowest to the widest head stays."""


def _names(row: dict[str, Any]) -> dict[str, object]:
    values = {"task": row["task"], "optimiser": trained.optimiser(row)}
    return values | {"d_k": str(row["d_k"]), "seeds": str(row["n_seeds"])}


def headline(frames: dict[str, pd.DataFrame]) -> list[Sentence]:
    """Say what leaving the scale out does, at the width nearest to 64, to training and to the window of rates.

    And what 1/d_k in place of 1/√d_k does there; in each experiment of this run.
    """
    verdicts, sentences = frames["training_verdicts"], []
    for experiment in dict.fromkeys(verdicts.loc[verdicts["scaling"] == PLAIN, "experiment"]):
        for family, scaling in (("best", PLAIN), ("mup", MUP)):
            rows = trained.held(verdicts, scaling, experiment=experiment)
            if rows:
                rates = {name: f"{rows['loss'][name]:g}" for name in ("rate", "reference_rate")}
                told = trained.values(rows) | rates
                sentences.append(Sentence(f"answer.training.{family}.{trained.verdict(rows)}", told))
            if rows and scaling == PLAIN:
                window = trained.held(verdicts, scaling, ("window",), experiment=experiment)
                sentences += [_verdict("window", row) for row in window.values()]
                sentences += [one for row in window.values() for one in _nowhere(frames["training_summary"], row)]
    return sentences or [Sentence("answer.training.none")]


def _verdict(family: str, row: dict[str, Any]) -> Sentence:
    """Return the sentence for a verdict, or the one on windows that the tried rates leave open at an end."""
    told = _names(row) | {
        "estimate": numbers.significant(row["estimate"], 2),
        "interval": numbers.rough_interval(row["low"], row["high"]),
        "margin": f"{row['margin']:g}",
    }
    unbounded = not (math.isfinite(row["low"]) and math.isfinite(row["high"]))
    word = "open" if unbounded and row["verdict"] == "undecided" else trained.WORDS[row["verdict"]]
    return Sentence(f"answer.training.{family}.{word}", told)


def _nowhere(summary: pd.DataFrame, row: dict[str, Any]) -> list[Sentence]:
    """Say which of the two rules worked at no rate that was tried."""
    rules = (("plain", row["scaling"]), ("scaled", row["reference"]))
    lost = [word for word, rule in rules if _ceiling(summary, row["experiment"], rule, row["d_k"]) == "nowhere"]
    if not lost:
        return []
    return [Sentence(f"answer.training.nowhere.{'both' if len(lost) > 1 else lost[0]}", _names(row))]


def _ceiling(summary: pd.DataFrame, experiment: str, scaling: str, d_k: int) -> str:
    """Say where a rule's largest usable rate is: among those tried (`found`), `beyond` them, or `nowhere`."""
    rows = summary[(summary["experiment"] == experiment) & (summary["scaling"] == scaling) & (summary["d_k"] == d_k)]
    if missing(rows["rate_ceiling"].iloc[0]):
        return "nowhere"
    return "beyond" if rows["open_above"].iloc[0] else "found"


def widths(frames: dict[str, pd.DataFrame]) -> list[Sentence]:
    """Say for each experiment at which widths leaving the scale out hurts, helps or does nothing at best rates."""
    verdicts, sentences = frames["training_verdicts"], []
    rows = verdicts[(verdicts["scaling"] == PLAIN) & (verdicts["comparison"] == "loss")]
    for _, cells in rows.groupby("experiment", sort=False):
        parts = tuple(Sentence("place.verdict", _at_width(row)) for row in _records(cells))
        values = _names(cells.iloc[0].to_dict()) | {"widths": Listing(parts, "semicolon")}
        sentences.append(Sentence("follows.training.widths", values))
    return sentences


def _at_width(row: dict[str, Any]) -> dict[str, object]:
    told = {name: numbers.significant(row[name], 2) for name in ("value", "reference_value")}
    return {"d_k": row["d_k"], "verdict": _judged(row)} | told


def _judged(row: dict[str, Any]) -> Sentence:
    return Sentence(f"verdicts.{trained.WORDS[row['verdict']]}")


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return frame.to_dict("records")


def transfers(frames: dict[str, pd.DataFrame]) -> list[Sentence]:
    """Say of each usual rule whether its largest usable rate moves from the narrowest head to the widest."""
    table, sentences = frames["training_transfer"], []
    if table.empty:
        return []
    for row in _records(table[table["experiment"] == table["experiment"].iloc[0]]):
        if row["scaling"] not in (PLAIN, REFERENCE, MUP):
            continue
        family = f"follows.training.transfer.{'plain' if row['scaling'] == PLAIN else 'scaled'}"
        values = {"rule": row["scaling"], "first": str(row["d_k_low"]), "last": str(row["d_k_high"])}
        values |= {"optimiser": trained.optimiser(row)}
        if missing(row["shift"]):
            found = {
                d_k: _ceiling(frames["training_summary"], row["experiment"], row["scaling"], d_k)
                for d_k in (row["d_k_low"], row["d_k_high"])
            }
            # Found with these seeds, and not with enough others: unsure.
            why = next((word for word in ("nowhere", "beyond") if word in found.values()), "unsure")
            where = Listing(tuple(d_k for d_k, word in found.items() if word == why or why == "unsure"))
            sentences.append(Sentence(f"{family}.{why}", values | {"where": where}))
            continue
        # A factor instead of decades.
        values |= {"factor": numbers.significant(10 ** row["shift"], 2)}
        values |= {"interval": numbers.rough_interval(*(10 ** row[name] for name in ("shift_low", "shift_high")))}
        if row["shift_low"] > -STILL and row["shift_high"] < STILL:
            verdict = "stays"
        else:
            verdict = "moves" if row["shift_high"] < -STILL or row["shift_low"] > STILL else "undecided"
        sentences.append(Sentence(f"{family}.{verdict}", values))
    return sentences


def gradients(frames: dict[str, pd.DataFrame]) -> list[Sentence]:
    """Say how the gradient of W_q and W_k before the first step compares without the scale and with it, by width."""
    table = frames["training_summary"]
    if table.empty:
        return []
    table = table[table["experiment"] == table["experiment"].iloc[0]]
    found = []
    for d_k, rows in table.groupby("d_k", sort=True):
        by_rule = {row["scaling"]: row for row in _records(rows)}
        if PLAIN in by_rule and REFERENCE in by_rule:
            found.append((d_k, by_rule[PLAIN], by_rule[REFERENCE]))
    if not found:
        return []
    larger = all(plain["gradient_low"] > scaled["gradient_high"] for _, plain, scaled in found)
    smaller = all(plain["gradient_high"] < scaled["gradient_low"] for _, plain, scaled in found)
    ratios = tuple(
        Sentence("place.ratio", {"ratio": numbers.significant(plain["gradient"] / scaled["gradient"], 2), "d_k": d_k})
        for d_k, plain, scaled in found
    )
    verdict = "larger" if larger else "smaller" if smaller else "mixed"
    return [Sentence(f"follows.training.gradient.{verdict}", {"ratios": Listing(ratios, "comma")})]


def start(frames: dict[str, pd.DataFrame]) -> list[Sentence]:
    """Say how many of the sizes before the first step agree with their prediction, under the scaled rule."""
    table, seeds = frames["training_start"], frames["training_summary"]
    rows = table[(table["scaling"] == REFERENCE) & table["se"].notna()]
    if rows.empty:
        return []
    n = int(seeds["n_seeds"].min())
    distance = ((rows["estimate"] - rows["prediction"]) / rows["se"]).abs()
    values = {"inside": str(int((distance < t_quantile(n - 1)).sum())), "count": str(len(rows))}
    return [Sentence("follows.training.start", values | {"worst": numbers.significant(float(distance.max()), 2)})]


def follows(frames: dict[str, pd.DataFrame]) -> dict[str, list[Sentence]]:
    """Return what follows from each figure on training, by figure id."""
    return {
        "training-curves": [*widths(frames), *transfers(frames)],
        "training-telemetry": [*gradients(frames), *start(frames)],
    }


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
                Cell(f"{first['task']}, {first['optimiser']}", note=first["experiment"], note_word="tables.literal"),
                Cell(first["scaling"]),
                Cell(str(first["d_k"]), number=True),
                Cell(rates, number=True),
                *(_comparison(by_name.get(name)) for name in COMPARISONS),
                Cell(numbers.significant(late[cell], 2), number=True) if cell in late else NONE,
            )
        )
    columns = ("experiment", "scaling", "d_k", "rates", *COMPARISONS, "late")
    return Table(key, columns, tuple(rows))


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
    for (experiment, scaling, d_k, measure), arms in frame.groupby(keys, sort=False):
        first = arms.iloc[0].to_dict()
        found = {(row["start"], row["rate"]): row for row in _records(arms)}
        rows.append(
            (
                Cell(f"{first['task']}, {first['optimiser']}", note=experiment, note_word="tables.literal"),
                Cell(scaling),
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
                Cell(f"{row['task']}, {row['optimiser']}", note=row["experiment"], note_word="tables.literal"),
                Cell(row["scaling"]),
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
