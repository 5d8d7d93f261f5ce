"""Tables of the report about two widely copied examples: three logits, and the count of gradients below 1e-10."""

from typing import Any

import pandas as pd

from sqrtdk.report.tables.cells import NONE, Cell, Table, estimate, exact, missing, plain
from sqrtdk.results.picking import pick
from sqrtdk.studies import worked_example
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing

TRIPLE_MEASURES = ("range", "participation_ratio", "entropy", "jacobian_frobenius", "jacobian_largest")
ROW_MEASURES = (
    "score_spread",
    "max_weight",
    "participation_ratio",
    "entropy",
    "jacobian_frobenius",
    "jacobian_frobenius_median",
    "grad_query",
    "grad_query_median",
)
PROBABILITIES = ("all_high", "narrow", "sharp")
COUNTS = (
    ("float32", "float32", "share_of_entries"),
    ("exact", "exact", "share_of_entries"),
    ("small_weights", "exact", "share_of_small_weights"),
    ("zero_entries", "float32", "share_of_zero_entries"),
    ("rows", "exact", "share_of_rows"),
)
"""Columns of the count: name, arithmetic and statistic."""


def three_numbers(frame: pd.DataFrame) -> Table:
    """Return the given triples of logits: weights, what texts print for them, and how saturated they are."""
    triples = frame[frame["part"] == "triples"]
    rows, norms = [], {}
    for case, part in triples.groupby("case", sort=False):
        values = part.set_index("measure")["estimate"]
        logits, weights, printed = (_series(values, name) for name in ("logit", "weight", "printed_weight"))
        factor = {"small_times_10": "10", "large_over_8": "8"}.get(case, "")
        cells = [
            Cell(
                ", ".join(map(exact, logits)), note=factor, note_word=f"tables.three_numbers.{case}" if factor else ""
            ),
            Cell(", ".join(f"{weight:.4f}" for weight in weights)),
            _printed(printed, weights),
        ]
        rows.append((*cells, *(plain(values[name], 3) for name in TRIPLE_MEASURES)))
        norms[case] = values["jacobian_frobenius"]
    random = frame[(frame["part"] == "probabilities") & (frame["n_keys"] == 3)].set_index("measure")
    told: dict[str, Any] = {name: numbers.with_error(*random.loc[name, ["estimate", "se"]]) for name in PROBABILITIES}
    told["range"] = _spelled_range(frame)
    told |= {"high": worked_example.HIGH, "near": worked_example.NARROW, "weight": worked_example.SHARP}
    told |= {"d_k": worked_example.D_K, "ratio": numbers.significant(norms["small"] / norms["large"], 2)}
    values = {name: value if isinstance(value, str) else exact(value) for name, value in told.items()}
    return Table("three_numbers", ("logits", "weights", "printed", *TRIPLE_MEASURES), tuple(rows), values)


def _spelled_range(frame: pd.DataFrame) -> str:
    row = pick(frame, "worked_example.csv", part="rows", n_keys=3, scaling="none", measure="range")
    return numbers.with_error(row["estimate"], row["se"])


def _series(values: pd.Series, name: str) -> list[float]:
    return [float(values[f"{name}_{i}"]) for i in (1, 2, 3) if f"{name}_{i}" in values]


def _printed(printed: list[float], weights: list[float]) -> Cell:
    """Return the printed weights and whether they are the true ones, rounded to their decimals."""
    if not printed:
        return NONE
    decimals = max(len(repr(value).split(".")[1]) for value in printed)
    right = all(round(weight, decimals) == value for value, weight in zip(printed, weights, strict=True))
    text = ", ".join(f"{value:.{decimals}f}" for value in printed)
    return Cell(text, note=text, note_word=f"tables.three_numbers.{'agrees' if right else 'differs'}")


def before_after(frame: pd.DataFrame) -> Table:
    """Return what random rows look like at the example's d_k, without and with the scale."""
    random = frame[frame["part"] == "rows"]
    rows = []
    for n_keys, scaling in dict.fromkeys(zip(random["n_keys"], random["scaling"], strict=True)):
        cells = [Cell(str(n_keys), number=True), Cell(scaling, word="scaling")]
        for measure in ROW_MEASURES:
            row = pick(random, "worked_example.csv", n_keys=n_keys, scaling=scaling, measure=measure)
            theory = "" if missing(row["theory"]) else exact(row["theory"])
            cells.append(estimate(row["estimate"], row["se"], theory, "tables.theory"))
        rows.append(tuple(cells))
    values: dict[str, Any] = {"d_k": str(worked_example.D_K)}
    values["rms_larger"] = _where_larger(random, "jacobian_frobenius")
    values["median_larger"] = _where_larger(random, "jacobian_frobenius_median")
    return Table("before_after", ("n_keys", "scaling", *ROW_MEASURES), tuple(rows), values)


def _where_larger(random: pd.DataFrame, measure: str) -> Listing:
    """List the numbers of keys at which a measure is larger without the scale, by three combined standard errors."""
    found = []
    for n_keys in dict.fromkeys(random["n_keys"]):
        without, with_scale = (
            pick(random, "worked_example.csv", n_keys=n_keys, scaling=rule, measure=measure)
            for rule in worked_example.RULES
        )
        noise = 3 * (without["se"] ** 2 + with_scale["se"] ** 2) ** 0.5
        if without["estimate"] - with_scale["estimate"] > noise:
            found.append(str(n_keys))
    return Listing(tuple(found))


def tiny_gradients(frame: pd.DataFrame) -> Table:
    """Return the count of softmax gradients below 1e-10 as printed, as made again, and what it is a count of."""
    rows = []
    for d_k, scaling in dict.fromkeys(zip(frame["d_k"], frame["scaling"], strict=True)):
        here = frame[(frame["d_k"] == d_k) & (frame["scaling"] == scaling)]
        found = {
            name: pick(here, "tiny_gradients.csv", arithmetic=arithmetic, statistic=statistic)
            for name, arithmetic, statistic in COUNTS
        }
        published = found["float32"]["published"]
        cells = [Cell(str(d_k), number=True), Cell(scaling, word="scaling")]
        cells.append(NONE if missing(published) else Cell(f"{100 * published:.2f}", number=True))
        for row in found.values():
            theory = "" if missing(row["theory"]) else exact(100 * row["theory"], 4)
            cells.append(estimate(100 * row["estimate"], 100 * row["se"], theory, "tables.theory"))
        rows.append(tuple(cells))
    columns = ("d_k", "scaling", "published", *(name for name, _, _ in COUNTS))
    widest = frame[
        (frame["d_k"] == frame["d_k"].max()) & (frame["scaling"] == "none") & (frame["arithmetic"] == "exact")
    ]
    share = widest.set_index("statistic")["estimate"]
    values = {"n_keys": str(frame["n_keys"].iloc[0]), "d_k": str(frame["d_k"].max())}
    values["small"] = numbers.percent(share["share_of_small_weights"] / share["share_of_entries"], 0)
    values["rows"] = numbers.percent(share["share_of_rows"], 0)
    return Table("tiny_gradients", columns, tuple(rows), values)


def report_tables(frames: dict[str, pd.DataFrame]) -> tuple[Table, ...]:
    """Return the tables of this module in their order."""
    example = frames["worked_example"]
    return three_numbers(example), before_after(example), tiny_gradients(frames["tiny_gradients"])
