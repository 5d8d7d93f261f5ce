"""Tables of real heads: their moments, what a specialist would point at in the audit, and the audit of all."""

import os
from typing import Any

import pandas as pd

from sqrtdk.report.tables.cells import NONE, Cell, Table, estimate, missing, plain
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Phrase

MEASURES = ("row_logit_std", "logit_max", "relative_entropy", "iid", "max_weight", "saturated_share", "sink")
COLUMNS = ("head", "verdict", *MEASURES)


def read_by(frame: pd.DataFrame) -> dict[str, str]:
    """Return what each dump is called: its model, and what tells it from others of that model."""
    names: dict[str, str] = {}
    for model, dumps in [] if frame.empty else frame.groupby("model", sort=False)["dump"].unique().items():
        common = len(os.path.commonprefix(list(dumps)))
        names |= {dump: str(model) if len(dumps) == 1 else f"{model} ({dump[common:]})" for dump in dumps}
    return names


def real_heads(frame: pd.DataFrame) -> Table:
    """Return every real head: its moments, its logits, and the variance over what independence would give."""
    spreads = ("logit_std", "within_row_logit_std", "sinkless_row_logit_std")
    pairs = ("mean", "variance", "independence_ratio", *spreads, "entropy")
    columns = ("head", "d_k", *pairs, "max_weight", "unscaled_entropy", "excess_kurtosis")
    names = read_by(frame)
    rows = [
        (
            Cell(f"{names[row['dump']]} {row['layer']}.{row['head']}"),
            plain(row["d_k"]),
            *(estimate(row[name], row[f"{name}_se"]) for name in pairs),
            plain(row["max_weight"], 3),
            plain(row["unscaled_entropy"], 3),
            estimate(row["excess_kurtosis"], row["excess_kurtosis_se"]),
        )
        for row in frame.to_dict("records")
    ]
    return Table("real_heads", columns, tuple(rows))


def audit(frame: pd.DataFrame, real_heads: pd.DataFrame) -> list[Table]:
    """Return both tables, none where no head was audited; `real_heads` has the models."""
    if frame.empty:
        return []
    names = read_by(real_heads)
    rows = [row | {"dump": names.get(row["dump"], row["dump"])} for row in frame.to_dict("records")]
    told = pointed_at(frame)
    levels = frame["verdict"].value_counts()
    values = {
        "count": str(len(rows)),
        "bugs": str(levels.get("bug", 0)),
        "notes": str(levels.get("note", 0)),
        "dumps": ", ".join(dict.fromkeys(str(row["dump"]) for row in rows)),
    }
    short = tuple(_row(rows[place], why) for place, why in told.items())
    return [
        Table("audit", COLUMNS, short, values),
        Table("audit_all", COLUMNS, tuple(_row(row, short=True) for row in rows), values),
    ]


def pointed_at(frame: pd.DataFrame) -> dict[int, str]:
    """Return the places of heads with findings, and in each dump those at the ends: widest, flattest, strongest sink.

    The values say why: the words at `tables.audit.why.<value>`.
    """
    frame = frame.reset_index(drop=True)
    found = dict.fromkeys(frame.index[frame["verdict"] != "healthy"], "")
    for _, heads in frame.groupby("dump", sort=False):
        for column, why in (("row_logit_std", "widest"), ("relative_entropy", "flattest"), ("sink_share", "sink")):
            values = heads[column].dropna()
            if len(values):
                found.setdefault(values.idxmax(), why)
    return dict(sorted(found.items()))


def _row(row: dict[str, Any], why: str = "", short: bool = False) -> tuple[Cell, ...]:
    findings = "" if missing(row["findings"]) else row["findings"]
    verdict = Cell(word=f"tables.audit.levels.{row['verdict']}", note=Phrase(findings), note_word="tables.literal")
    if why:
        verdict = Cell(word=f"tables.audit.why.{why}")
    iid = NONE if missing(row["iid_entropy"]) else plain(row["iid_entropy"] / row["uniform_entropy"], 3)
    at_key = "" if missing(row["sink_key"]) else str(int(row["sink_key"]))
    return (
        Cell(f"{row['dump']} {row['layer']}.{row['head']}"),
        verdict,
        _plain(row["row_logit_std"]) if short else _with_interval(row, "row_logit_std"),
        _plain(row["logit_max"]),
        _plain(row["relative_entropy"]) if short else _with_interval(row, "relative_entropy"),
        iid,
        _plain(row["max_weight"]),
        NONE if missing(row["saturated_share"]) else Cell(numbers.percent(row["saturated_share"]), number=True),
        Cell(numbers.percent(row["sink_share"]), note=at_key, note_word="tables.audit.at_key", number=True),
    )


def _plain(value: Any) -> Cell:
    return NONE if missing(value) else plain(value, 3)


def _with_interval(row: dict[str, Any], name: str) -> Cell:
    """Return a number with its 95 % interval below it."""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if missing(row[name]) or missing(low):
        return _plain(row[name])
    return Cell(
        numbers.significant(row[name], 3), note=numbers.interval(low, high), note_word="tables.literal", number=True
    )
