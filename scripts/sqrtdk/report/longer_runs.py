"""What the longer training runs say of a rule in every task and with every optimiser: it may be the opposite."""

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from sqrtdk.report.tables.cells import NONE, Cell, Table
from sqrtdk.report.trained import TEXT, WORDS, optimiser, task
from sqrtdk.results.picking import at, find
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence

MIRRORED = "_mirrored"
"""End of the name of an experiment that holds the models of another, rounded otherwise."""
LONG = "_long"
"""End of the name of an experiment that trains the models of another for longer, in larger batches."""
IN_TIME = {"hurts": "slows", "helps": "speeds"}
"""What verdicts are called where it is the steps that decide, and not what they lead to."""
OTHERS = ("none", "1/d_k")
"""Rules that are held against 1/√d_k."""


def table(*runs: tuple[pd.DataFrame, pd.DataFrame]) -> Table:
    """Return what becomes of each task with each optimiser without the factor and with 1/d_k, against 1/√d_k.

    runs: training_verdicts.csv and training_summary.csv of each.
    """
    rows = []
    for verdicts, summary in runs:
        verdicts = verdicts[verdicts["scaling"].isin(OTHERS) & verdicts["estimate"].notna()]
        names = [one["experiment"].iloc[0] for one in _each(verdicts)]
        names += verdicts.loc[verdicts["experiment"].str.endswith(LONG), "experiment"].unique().tolist()
        for name in names:
            here = at(verdicts, experiment=name).sort_values("d_k")
            steps = [Cell(numbers.count(steps), number=True) for steps in at(summary, experiment=name)["steps"][:1]]
            named = _named(here)
            cells = (_cell(at(here, scaling=rule), summary) for rule in OTHERS)
            rows.append(
                (
                    Cell(sentences=(Sentence(f"longer.{'batches' if name.endswith(LONG) else 'named'}", named),)),
                    *(steps or [NONE]),
                    Cell(Listing(tuple(map(str, sorted(set(here["d_k"])))), "comma"), number=True),
                    *cells,
                )
            )
    return Table("other_factors", ("task", "steps", "d_k", "none", "linear"), tuple(rows))


def _cell(rows: pd.DataFrame, summary: pd.DataFrame) -> Cell:
    """Spell the measure of a rule that tells most, width by width, and below it the verdicts."""
    if rows.empty:
        return NONE
    longer = rows["experiment"].iloc[0].endswith(LONG)
    measure = "speed" if longer else _measure(rows)
    here = at(rows, comparison=measure)
    seen = dict.fromkeys(here["verdict"]) if here["verdict"].nunique() == 1 else here["verdict"]
    words = [Sentence(f"verdicts.{WORDS[one]}") for one in seen]
    words += [Sentence(f"longer.ends.{_end(rows)}")] if longer else []
    told = Sentence(f"longer.cell.{measure}", _measured(here, measure, summary))
    return Cell(sentences=(told,), note=Listing(tuple(words), "comma"), note_word="tables.literal")


def verdicts(rows: pd.DataFrame, key: str, scaling: str) -> Sentence | None:
    """Say which tasks and optimisers a rule hurts, helps or leaves alone against 1/√d_k; None where it did not run.

    rows: training_verdicts.csv. key: of the words, which have `turns` for a sign that changes, and `verdicts`.
    """
    groups = _by_verdict(rows, scaling)
    parts = [Sentence(f"longer.verdict.{word}", {"tasks": Listing(tuple(one))}) for word, one in groups.items()]
    parts += _ends(rows, scaling)
    word = "turns" if _turns(groups) else "verdicts"
    return Sentence(f"{key}.{word}", {"parts": Listing(tuple(parts), "semicolon")}) if parts else None


def brief(rows: pd.DataFrame, key: str, scaling: str) -> tuple[Sentence, ...]:
    """Say in a sentence or two whether a rule hurts every task and optimiser, and which end alike all the same.

    rows: training_verdicts.csv. key: of the words, which have `turns` for a sign that changes, `hurts` and `other`.
    """
    groups = _by_verdict(rows, scaling)
    hurts = groups.keys() <= {"hurts", IN_TIME["hurts"]}
    told = Sentence(f"{key}.{'turns' if _turns(groups) else 'hurts' if hurts else 'other'}")
    ends = tuple(Sentence(f"article.tasks.{task}") for task in sorted(alike(rows, scaling))) if hurts else ()
    return (told, *([Sentence("longer.alike", {"tasks": Listing(ends)})] if ends else [])) if groups else ()


def _by_verdict(rows: pd.DataFrame, scaling: str) -> dict[str, list[Sentence]]:
    """Return the tasks and optimisers by what a rule does to them."""
    groups: dict[str, list[Sentence]] = {}
    for experiment in _each(rows[(rows["scaling"] == scaling) & rows["estimate"].notna()]):
        measure = _measure(experiment)
        word = _word(experiment.loc[experiment["comparison"] == measure, "verdict"])
        word = IN_TIME.get(word, word) if measure == "speed" else word
        groups.setdefault(word, []).append(Sentence("longer.named", _named(experiment)))
    return groups


def _turns(groups: dict[str, list[Sentence]]) -> bool:
    return "turns" in groups or all(groups.keys() & {word, in_time} for word, in_time in IN_TIME.items())


def alike(rows: pd.DataFrame, scaling: str) -> set[str]:
    """Return the tasks that end with a rule as with 1/√d_k when they are trained longer.

    rows: training_verdicts.csv.
    """
    return {str(here["task"].iloc[0]) for here in _longer(rows, scaling) if _end(here) == "same"}


def halves(start_rate: pd.DataFrame, scaling: str) -> tuple[Sentence, ...]:
    """Say which half of a repair helps alone, and where both help more than the start alone; nothing without any.

    start_rate: start_rate.csv. One half does it where it alone helps at every width of every task, and the other not.
    """
    rows = start_rate[start_rate["scaling"] == scaling]
    helps: dict[str, list[bool]] = {"start": [], "rate": []}
    more = []
    for experiment in _each(rows):
        right = at(experiment, measure="accuracy", start=True, rate=True)
        measure = "accuracy" if (right["verdict_neither"] == "helps").any() else "speed"
        here = at(experiment, measure=measure)
        for half, seen in helps.items():
            alone = at(here, start=half == "start", rate=half == "rate")
            seen.append(bool((alone["verdict_neither"] == "helps").all()))
        steps = at(experiment, measure="speed", start=True).pivot(index="d_k", columns="rate", values=["low", "high"])
        if (steps["high", True] < steps["low", False]).any():
            more.append(Sentence("longer.named", _named(here)))
    if not helps["start"]:
        return ()
    does = {half for half, seen in helps.items() if all(seen)}
    alone = len(does) == 1 and not any(any(seen) for half, seen in helps.items() if half not in does)
    word = does.pop() if alone else "depends"
    together = (Sentence("longer.together", {"tasks": Listing(tuple(more))}),) if more and word == "start" else ()
    return Sentence(f"longer.half.{word}"), *together


def rounding(summary: pd.DataFrame) -> Sentence | None:
    """Say where the same models, rounded otherwise, end; None where none were trained so.

    summary: training_summary.csv.
    """
    for name in summary.loc[summary["experiment"].str.endswith(MIRRORED), "experiment"]:
        values: dict[str, object] = {}
        for word, scaling in (("plain", "none"), ("scaled", "1/sqrt(d_k)"), ("linear", "1/d_k")):
            mirrored = find(summary, experiment=name, scaling=scaling)
            if mirrored is None:
                return None
            usual = find(summary, experiment=name.removesuffix(MIRRORED), scaling=scaling, d_k=mirrored["d_k"])
            if usual is None:
                return None
            spelled = dict(zip(("usual", "mirrored"), numbers.apart([usual["loss"], mirrored["loss"]]), strict=True))
            kind = "same" if usual["loss"] == mirrored["loss"] else "moved"
            values |= {"task": task(usual), "d_k": str(usual["d_k"]), word: Sentence(f"longer.rounded.{kind}", spelled)}
        return Sentence("longer.rounding", values)
    return None


def _longer(rows: pd.DataFrame, scaling: str) -> Iterator[pd.DataFrame]:
    """Yield the comparisons of a rule in each experiment that trains longer, narrowest first."""
    here = rows[(rows["scaling"] == scaling) & rows["estimate"].notna() & rows["experiment"].str.endswith(LONG)]
    for name in dict.fromkeys(here["experiment"]):
        yield here[here["experiment"] == name].sort_values("d_k")


def _end(rows: pd.DataFrame) -> str:
    return _word(rows.loc[rows["comparison"].isin(("loss", "accuracy")), "verdict"])


def _ends(rows: pd.DataFrame, scaling: str) -> list[Sentence]:
    """Say how each experiment that trains longer ends, and what is left of it in time."""
    told = []
    for here in _longer(rows, scaling):
        speed = here[here["comparison"] == "speed"]
        end = Sentence(f"longer.ends.{_end(here)}")
        told.append(Sentence("longer.end", _named(speed) | _measured(speed, "speed") | {"end": end}))
    return told


def _word(verdicts: Iterable[str]) -> str:
    """Return one word for the verdicts of several widths or measures."""
    found = set(verdicts)
    words = [word for word in ("hurts", "helps") if word in found]
    return "turns" if len(words) == 2 else words[0] if words else "undecided" if "undecided" in found else "same"


def _each(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the rows of the first experiment of each task with each optimiser that does not train longer."""
    rows = rows[~rows["experiment"].str.endswith(LONG)]
    firsts = rows.drop_duplicates(["task", "optimiser"])["experiment"]
    for name in dict.fromkeys(firsts):
        yield rows[rows["experiment"] == name]


def _named(rows: pd.DataFrame) -> dict[str, object]:
    first = rows.iloc[0]
    widths = Listing(tuple(str(width) for width in dict.fromkeys(rows["d_k"])))
    named: dict[str, object] = {name: of(first.to_dict()) for name, of in (("task", task), ("optimiser", optimiser))}
    return named | {"widths": widths}


def _measure(rows: pd.DataFrame) -> str:
    """Return what tells most: losses of text; right answers where they decide; else steps."""
    if (rows["task"] == TEXT).all():
        return "loss"
    right = rows.loc[rows["comparison"] == "accuracy", "verdict"]
    return "accuracy" if right.isin(("hurts", "helps")).any() else "speed"


def _measured(rows: pd.DataFrame, measure: str, summary: pd.DataFrame | None = None) -> dict[str, object]:
    """Spell a measure at every width; of right answers those of 1/√d_k too, with the intervals of `summary`."""
    if measure != "accuracy":
        spelled = (numbers.significant(value, 2).replace("-", "−") for value in rows["estimate"])
        return {"values": Listing(tuple(spelled), "comma")}
    return {
        "values": Listing(tuple(_right(row, row["scaling"], summary) for row in rows.to_dict("records")), "comma"),
        "references": Listing(tuple(map(numbers.percent, rows["reference_value"])), "comma"),
    }


def _right(row: dict[str, Any], scaling: str, summary: pd.DataFrame | None) -> str:
    known = None if summary is None else find(summary, experiment=row["experiment"], scaling=scaling, d_k=row["d_k"])
    ends = "" if known is None else numbers.interval(100 * known["accuracy_low"], 100 * known["accuracy_high"])
    return f"{numbers.percent(row['value'])} {ends}".strip()
