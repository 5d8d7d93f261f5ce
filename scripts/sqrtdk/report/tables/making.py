"""Frames to tables for people: headings, units, numbers with their errors. What a cell says is decided here."""

import json
import math
import re
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from sqrtdk.variants import notation
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Phrase, Sentence

ENUMERATED = "enumerated"
SMALLEST_P = 0.0001
"""A smaller p-value is only said to be smaller: its digits would rest on the far tail of the chi-squared law."""
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


@dataclass(frozen=True)
class Cell:
    """What one cell says: `text`, the words at `word`, or the TeX `formula`; `note` is a second, smaller line.

    Text and note are the same in every language, or a value that the words of a language spell. `sentences` follow the
    text, then links to the anchors of `evidence`.
    """

    text: str | Phrase | Listing = ""
    word: str = ""
    formula: str = ""
    note: str | Sentence | Phrase | Listing = ""
    note_word: str = ""
    number: bool = False
    sentences: tuple[Sentence, ...] = ()
    evidence: tuple[str, ...] = ()


NONE = Cell(word="tables.none")


@dataclass(frozen=True)
class Table:
    """A table: its words stand at `<room>.<key>`: caption, note and columns; `values` are what the caption names."""

    key: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    values: dict[str, str] = field(default_factory=dict)
    room: str = "tables"

    @property
    def words(self) -> str:
        """The key of its words."""
        return f"{self.room}.{self.key}".removeprefix(".")

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Say of each column whether it holds numbers, which are set flush right."""
        return tuple(any(row[place].number for row in self.rows) for place in range(len(self.columns)))


def estimate(value, se, note: str = "", note_word: str = "") -> Cell:
    """Return a number with its standard error, rounded by it; where there is no number, a dash."""
    if missing(value):
        return NONE
    return Cell(numbers.with_error(value, se), note=note, note_word=note_word if note else "", number=True)


def plain(value, digits: int = 4) -> Cell:
    """Return a number without an error."""
    return Cell(exact(value, digits), number=True)


def missing(value) -> bool:
    """Say whether there is no number (an empty cell of the CSV file)."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def z_score(value, se, exact) -> float | None:
    """Return (value − exact)/se, or None where one of the three does not exist or the error is zero."""
    return None if missing(value) or missing(exact) or missing(se) or se <= 0 else (value - exact) / se


def signed(value, places: int = 1) -> str:
    """Spell a deviation with its sign, of which zero has none."""
    return (
        "" if missing(value) else f"{round(value, places) or 0.0:+.{places}f}".replace("-", "−").replace("+0.0", "0.0")
    )


def exact(value, digits: int = 5) -> str:
    """Spell a number that has no error, without the zeros that would look like known digits."""
    text = numbers.significant(value, digits)
    return re.sub(r"\.?0+(?=$| ×)", "", text) if "." in text else text


def simulated(moments: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of simulated ensembles, without the real heads."""
    return moments[moments["stopped_by"] != ENUMERATED]


def specification(spec: dict) -> str:
    """Spell an ensemble's family and parameters as they stand in the configuration."""
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in spec.items()}
    return ", ".join(f"{key}: {text}" for key, text in texts.items())


def ensembles(moments: pd.DataFrame, specs: dict[str, dict], d_k: int) -> Table:
    """Return each simulated ensemble at one d_k: its moments with errors, and the exact values below them."""
    columns = (
        "ensemble",
        "mean",
        "z_mean",
        "variance",
        "z_variance",
        "within_row_variance",
        "excess_kurtosis",
        "reached",
    )
    rows = simulated(moments)
    rows = rows[rows["d_k"] == d_k].to_dict("records")
    table = tuple(_ensemble(row, specs.get(row["ensemble"], {})) for row in rows)
    return Table("ensembles", columns, table, {"d_k": str(d_k)})


def _ensemble(row: dict, spec: dict) -> tuple[Cell, ...]:
    cells = [Cell(row["ensemble"], note=specification(spec), note_word="tables.literal")]
    for quantity in ("mean", "variance", "within_row_variance", "excess_kurtosis"):
        value, se, truth = (row[name] for name in (quantity, f"{quantity}_se", f"exact_{quantity}"))
        cells.append(estimate(value, se, "" if missing(truth) else exact(truth), "tables.exact"))
        if quantity in ("mean", "variance"):
            z = signed(z_score(value, se, truth))
            cells.append(Cell(z, number=True) if z else NONE)
    reached = row["relative_se"]
    reached = {"word": "tables.none"} if missing(reached) else {"text": numbers.significant(reached, 2)}
    return (
        *cells,
        Cell(**reached, note=Sentence(f"stopped.{row['stopped_by']}"), note_word="tables.literal", number=True),
    )


def families(moments: pd.DataFrame, specs: dict[str, dict], members: dict, d_k: int) -> Table:
    """Return the law of every simulated ensemble: what it is, its formula, and the variance at one d_k against it.

    `members` are the ensembles of the configuration by name, as `sqrtdk.ensembles.build` makes them.
    """
    rows = simulated(moments)
    here = {row["ensemble"]: row for row in rows[rows["d_k"] == d_k].to_dict("records")}
    table = []
    for name in dict.fromkeys(rows["ensemble"]):
        member, row = members[name], here.get(name, {})
        value, se, truth = (row.get(column) for column in ("variance", "variance_se", "exact_variance"))
        z, limit = signed(z_score(value, se, truth)), member.limiting_exponent()
        table.append(
            (
                Cell(name, note=specification(specs.get(name, {})), note_word="tables.literal"),
                Cell(Phrase(member.summary), note=Phrase(member.source), note_word="tables.reason"),
                Cell(formula=member.variance_formula) if limit is not None else NONE,
                plain(limit, 3) if limit is not None else NONE,
                NONE if missing(truth) else plain(truth, 5),
                estimate(value, se),
                Cell(z, number=True) if z else NONE,
            )
        )
    columns = ("ensemble", "distribution", "formula", "limit", "exact", "measured", "z")
    return Table("families", columns, tuple(table), {"d_k": str(d_k)})


def laws(frame: pd.DataFrame, key: str, lead: tuple[str, str], tail: tuple[str, str] | None = None) -> Table:
    """Return one row for each ensemble: a leading parameter (law, parameter), the selected law, a parameter of a tail.

    `key` is `variance_laws`, `mean_laws` or `spread_laws`. What is not estimable says why.
    """
    rows = []
    for name, fits in frame.groupby("ensemble", sort=False):
        row = pick(fits, f"{key}.csv", ensemble=name, law=lead[0], parameter=lead[1])
        interval = Cell(numbers.interval(row["ci_low"], row["ci_high"]), number=True) if row["estimable"] else NONE
        cells = [Cell(name), _fitted(row), interval, *_selected(fits)]
        if tail:
            cells.append(_fitted(pick(fits, f"{key}.csv", ensemble=name, law=tail[0], parameter=tail[1])))
        rows.append(tuple(cells))
    columns = (
        "ensemble",
        "leading",
        "interval",
        "selected",
        "parameters",
        "chi2",
        "p_value",
        *(["tail"] if tail else []),
    )
    return Table(key, columns, tuple(rows))


def _fitted(row: dict) -> Cell:
    """Return a fitted parameter with what the same fit makes of the exact values, or the reason why there is none."""
    if not row["estimable"]:
        return Cell(word="tables.not_estimable", note=Phrase(text(row["reason"])), note_word="tables.reason")
    return estimate(row["estimate"], row["se"], "" if missing(row["exact"]) else exact(row["exact"]), "tables.exact")


def _selected(fits: pd.DataFrame) -> list[Cell]:
    chosen = fits[fits["selected"]].to_dict("records")
    if not chosen:
        reasons = Listing(tuple(Phrase(one) for one in dict.fromkeys(map(text, fits["reason"])) if one), "semicolon")
        return [Cell(word="tables.no_law", note=reasons, note_word="tables.reason"), NONE, NONE, NONE]
    first = chosen[0]
    parameters = tuple(
        Sentence(f"parameters.{row['parameter']}", {"value": numbers.with_error(row["estimate"], row["se"])})
        for row in chosen
        if text(row["parameter"])
    )
    remark = Phrase(text(first["reason"]))
    return [
        Cell(word=f"laws.{first['law']}", note=remark, note_word="tables.reason" if remark else ""),
        Cell(Listing(parameters, "semicolon")) if parameters else NONE,
        Cell(f"{numbers.significant(first['chi2'], 3)} / {int(first['dof'])}", number=True),
        plain(first["p_value"], 2) if first["p_value"] >= SMALLEST_P else Cell(f"< {SMALLEST_P:g}", number=True),
    ]


def text(value) -> str:
    """Return a text cell of a frame; an empty one is read as NaN."""
    return value if isinstance(value, str) else ""


def pick(frame: pd.DataFrame, what: str, **where) -> dict:
    """Return the one row at these keys; raises ValueError that names them where there is none or more than one."""
    # By places: the report asks for hundreds of rows, and a frame for each step takes three times as long.
    places = np.arange(len(frame))
    for column, value in where.items():
        places = places[np.asarray(frame[column].array[places] == value, dtype=bool)]
    if len(places) != 1:
        raise ValueError(f"{what} has {len(places)} rows for {where}, one is needed")
    found = ((column, frame[column].array[places[0]]) for column in frame.columns)
    return {column: value.item() if isinstance(value, np.generic) else value for column, value in found}


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
    values = {"ensemble": ensemble, "d_k": str(d_k), "n_keys": str(n_keys)}
    return Table("contrast", ("measure", *(f"scaling:{rule}" for rule in rules)), tuple(rows), values)


def logit_std(row: dict, scaling: str, n_keys: int) -> tuple[float, float]:
    """Return the standard deviation of the logits under a scale rule, with its error, from a line of the moments.

    It is missing where the rule is no constant factor.
    """
    factor = notation.parse(scaling).factor(row["d_k"], n_keys)
    if factor is None or missing(row["variance"]) or row["variance"] < 0:
        return math.nan, math.nan
    std = math.sqrt(row["variance"])
    unknown = missing(row["variance_se"]) or std == 0
    return factor * std, math.nan if unknown else factor * row["variance_se"] / (2 * std)


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
    return Table(key, ("n_keys", "scaling", *named), tuple(rows), {"ensemble": ensemble, "d_k": str(d_k)})


def real_heads(frame: pd.DataFrame) -> Table:
    """Return every real head: its moments, its logits, and the variance over what independence would give."""
    pairs = ("mean", "variance", "independence_ratio", "logit_std", "within_row_logit_std", "entropy")
    columns = ("head", "d_k", *pairs, "max_weight", "unscaled_entropy", "excess_kurtosis")
    rows = [
        (
            Cell(f"{row['dump']} {row['layer']}.{row['head']}"),
            plain(row["d_k"]),
            *(estimate(row[name], row[f"{name}_se"]) for name in pairs),
            plain(row["max_weight"], 3),
            plain(row["unscaled_entropy"], 3),
            estimate(row["excess_kurtosis"], row["excess_kurtosis_se"]),
        )
        for row in frame.to_dict("records")
    ]
    return Table("real_heads", columns, tuple(rows))


def refused(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the laws of the interquartile range of the ensembles whose variance has no error at any width."""
    fits, ranges = frames["variance_laws"], frames["spread_laws"]
    told = fits[(fits["law"] == "power") & (fits["n_points"] > 0)]
    return ranges[~ranges["ensemble"].isin(told["ensemble"])]


def report_tables(
    frames: dict[str, pd.DataFrame], specs: dict, members: dict, ensemble: str, d_k: int, n_keys: int
) -> dict[str, Table]:
    """Return the tables of the report by key, in their order."""
    # Whose tables are made of the cells of this module.
    from sqrtdk.report.tables import alternatives, audit, examples, normalisers, start

    ranges = refused(frames)
    found = (
        contrast(frames, ensemble, d_k, n_keys),
        families(frames["moments"], specs, members, d_k),
        ensembles(frames["moments"], specs, d_k),
        laws(frames["variance_laws"], "variance_laws", ("power", "exponent"), ("affine_tail", "slope")),
        *([] if ranges.empty else [laws(ranges, "spread_laws", ("power", "exponent"), ("power_tail", "exponent"))]),
        laws(frames["mean_laws"], "mean_laws", ("linear", "slope")),
        by_rule(frames["softmax_saturation"], "saturation", ensemble, d_k),
        by_rule(frames["gradient_magnitude"], "gradients", ensemble, d_k),
        *examples.report_tables(frames),
        alternatives.scale_rules(frames["alternatives"]),
        alternatives.mistakes(frames["alternatives"]),
        normalisers.normalisers(frames["normalisers"]),
        normalisers.linear_attention(frames["linear_attention"]),
        start.initialisation(frames["initialisation"]),
        start.normalisation(frames["initialisation"]),
        start.rounding(frames["rounding"]),
        real_heads(frames["real_heads"]),
        *audit.audit(frames["audit"]),
    )
    return {table.key: table for table in found}
