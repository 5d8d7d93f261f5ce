"""Tables of what logits start from, initial weights and normalisations, and of what few bits do to attention."""

from typing import Any

import pandas as pd

from sqrtdk.report.tables.cells import NONE, Cell, Table, estimate, exact, plain
from sqrtdk.results.grid import nearest
from sqrtdk.results.picking import pick
from sqrtdk.studies.initialisation import INITIALISATIONS, LAYERS
from sqrtdk.studies.rounding import FORMATS, RULES
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Phrase

WANTED_D_K = 64


def initialisation(frame: pd.DataFrame) -> Table:
    """Return each initialisation of initialisation.csv with the variances that it gives, exact values below."""
    rows = []
    for layer in (layer for layer in LAYERS if layer.group == "weights"):
        one = INITIALISATIONS[layer.name]
        for shape in layer.shapes:
            here = frame[(frame["scheme"] == layer.name) & (frame["d_model"] == shape.d_model)]
            cells = [_measured(here, quantity) for quantity in ("query_variance", "key_variance", "logit_variance")]
            label = Cell(Phrase(layer.label), note=Phrase(layer.source), note_word="tables.reason")
            rows.append((label, Cell(formula=one.formula), plain(shape.d_model), plain(shape.d_k), *cells))
    columns = ("scheme", "formula", "d_model", "d_k", "query_variance", "key_variance", "logit_variance")
    return Table("initialisation", columns, tuple(rows))


def _measured(frame: pd.DataFrame, quantity: str) -> Cell:
    row = pick(frame, "initialisation.csv", quantity=quantity)
    return estimate(row["estimate"], row["se"], exact(row["exact"], 4), "tables.exact")


def normalisation(frame: pd.DataFrame) -> Table:
    """Return the standard deviation of the logits that each normalisation leaves, a column for each width."""
    layers = [layer for layer in LAYERS if layer.group != "weights"]
    widths = sorted({shape.d_k for layer in layers for shape in layer.shapes})
    rows = []
    for layer in layers:
        here = frame[(frame["group"] == layer.group) & (frame["scheme"] == layer.name)]
        cells = [
            _measured(here[here["d_k"] == width], "logit_std") if (here["d_k"] == width).any() else NONE
            for width in widths
        ]
        label = Cell(Phrase(layer.label), note=Phrase(layer.source), note_word="tables.reason")
        rows.append((Cell(word=f"tables.normalisation.groups.{layer.group}"), label, *cells))
    return Table("normalisation", ("group", "scheme", *(f"d_k_{width}" for width in widths)), tuple(rows))


def rounding(frame: pd.DataFrame) -> Table:
    """Return each format of rounding.csv at one width: its error and its overflow, with the scale and without."""
    d_k = nearest(frame["d_k"], WANTED_D_K)
    here = frame[frame["d_k"] == d_k]
    rows = []
    for name in (name for name in FORMATS if name in set(here["format"])):
        cells = [
            Cell(name),
            plain(FORMATS[name].bits + 1),
            Cell(numbers.significant(FORMATS[name].largest), number=True),
        ]
        for place, measure in (
            ("logits", "total_variation"),
            ("naive_exp", "overflow_share"),
            ("naive_exp", "undefined_rows"),
        ):
            for rule in RULES:
                where = dict(format=name, rounded=place, measure=measure, scaling=rule)
                found = here[(here[list(where)] == pd.Series(where)).all(axis=1)].to_dict("records")
                cells.append(_with_exact(found[0]) if found else NONE)
        rows.append(tuple(cells))
    kinds = [f"{kind}_{rule}" for kind in ("error", "overflow", "nan") for rule in ("unscaled", "scaled")]
    values = {"d_k": str(d_k), "n_keys": str(here["n_keys"].iloc[0])}
    return Table("rounding", ("format", "digits", "largest", *kinds), tuple(rows), values)


def _with_exact(row: dict[str, Any]) -> Cell:
    known = row["exact"] == row["exact"] and row["exact"] is not None
    return estimate(row["estimate"], row["se"], exact(row["exact"], 3) if known else "", "tables.exact")
