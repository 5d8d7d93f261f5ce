"""The ledger as the report shows it: claims.csv by question, in the words of one language."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
from markupsafe import Markup

from sqrtdk.claims.catalogue import CLAIMS
from sqrtdk.claims.core import (
    AT_LEAST,
    AT_MOST,
    FAILS,
    HOLDS,
    HOLDS_IF,
    INTERVAL,
    MISSING,
    NEAR,
    OPINION,
    UNDECIDED,
    UNTESTED,
)
from sqrtdk.claims.lookup import GRID
from sqrtdk.claims.thresholds import ALL
from sqrtdk.report.tables.cells import NONE, Cell, Table, estimate, exact, missing, plain, text
from sqrtdk.words import numbers
from sqrtdk.words.mathml import prose
from sqrtdk.words.sentences import Sentence

ORDER = (FAILS, HOLDS_IF, UNDECIDED, HOLDS, OPINION)
"""Verdicts in the order of a group: what a reader would not expect comes first."""
SUBJECTS = {
    "scores": ("moments",),
    "attention": ("softmax",),
    "gradients": ("gradients",),
    "factor": ("factors", "rules"),
    "training": ("training",),
    "start": ("layers",),
}
"""The question that claims are on, a chapter of the article, and the modules of claims/ in which they stand."""
LARGE = 0.25
"""An error that is a larger share of its number says less than the interval."""
CHECKS = "claims.claim_checks"
ROLE = "ensembles: "
"""What stands before the kind of ensemble that a run lacks."""
SIGNS = {AT_LEAST: "≥", AT_MOST: "≤"}

INDEX = re.compile(r"(?<![\w-])([A-Za-zδ])_(\w+)")


@dataclass(frozen=True)
class Line:
    """One claim on the page: its texts with symbols set as formulas, and spelled numbers."""

    id: str
    source: str
    verdict: str
    says: Markup
    measures: Markup
    holds_if: Markup
    not_if: Markup
    expected: str
    measured: str
    otherwise: str
    place: Markup
    instead_of: Markup
    why: Sentence | None
    kind: str
    shipped: str
    evidence: str
    distance: tuple[Sentence, ...]
    identity: bool
    remark: Markup


@dataclass(frozen=True)
class Ledger:
    """The table of claims: groups of lines by question, and the sentences that sum it up.

    thresholds: what each is, its value, another one, and the reason, in words of one language.
    surprises: the lines that many other texts repeat and that do not simply hold.
    """

    groups: dict[str, tuple[Line, ...]]
    surprises: tuple[Line, ...]
    summary: tuple[Sentence, ...]
    thresholds: tuple[tuple[Markup, str, str, Markup], ...]
    key: str = "claims"

    @property
    def rows(self) -> tuple[Line, ...]:
        return tuple(line for lines in self.groups.values() for line in lines)

    def counts(self, question: str = "") -> list[tuple[str, int, str]]:
        """Return each verdict on the claims of a question, or on all, its count, and the first claim to get it."""
        lines = self.groups[question] if question else self.rows
        found = {verdict: [line.id for line in lines if line.verdict == verdict] for verdict in ORDER}
        return [(verdict, len(ids), ids[0]) for verdict, ids in found.items() if ids]


def ledger(frame: pd.DataFrame, language: str) -> Ledger:
    """Return the ledger of the report from claims.csv, with the claims in one language."""
    rows = sorted(frame.to_dict("records"), key=lambda row: ORDER.index(row["verdict"]))
    lines = {row["claim"]: _line(row, language) for row in rows}
    rooms = {name: CLAIMS[name].test.__module__.rpartition(".")[2] for name in lines}
    groups = {
        question: tuple(line for name, line in lines.items() if rooms[name] in modules)
        for question, modules in SUBJECTS.items()
    }
    surprises = tuple(lines[row["claim"]] for row in rows if row["surprise"])
    return Ledger(
        {name: found for name, found in groups.items() if found}, surprises, tuple(summary(frame)), thresholds(language)
    )


def thresholds(language: str) -> tuple[tuple[Markup, str, str, Markup], ...]:
    """Return all thresholds as lines of a table."""
    return tuple(
        (typeset(one.means.language(language)), f"{one.value:g}", f"{one.other:g}", typeset(one.why.language(language)))
        for one in ALL
    )


def _line(row: dict[str, Any], language: str) -> Line:
    claim = CLAIMS[row["claim"]]
    # What only bears on a claim has no value to be expected.
    decided = row["verdict"] != OPINION and row["reason"] != UNTESTED
    holds_if, not_if = (
        typeset(side.language(language)) if side else Markup() for side in (claim.holds_if, claim.not_if)
    )
    return Line(
        claim.id,
        claim.source,
        row["verdict"],
        typeset(claim.says.language(language)),
        typeset(claim.measures.language(language)),
        holds_if,
        not_if,
        _expected(row) if decided and row["reason"] != MISSING else "",
        _number(row),
        _number(row, "not_if_"),
        typeset(place(row)),
        typeset(text(row["instead_of"])),
        _why(row),
        claim.kind,
        "longer" if row["longer"] else "shipped" if row["shipped"] else "",
        claim.evidence,
        tuple(_distance(row)) if decided and not missing(row["distance"]) else (),
        claim.identity,
        typeset(claim.remark.language(language)) if claim.remark else Markup(),
    )


def _why(row: dict[str, Any]) -> Sentence | None:
    """Say why a claim is undecided: the bound that its interval crosses, or what the run lacks, in words."""
    reason, lacking = text(row["reason"]), text(row["missing"])
    if role := lacking.removeprefix(ROLE) if lacking.startswith(ROLE) else "":
        return Sentence(f"claims.lacking.{role.replace(' ', '_')}")
    values = {"what": lacking}
    if reason == INTERVAL:
        edges = {row["expected"] - row["margin"], row["expected"] + row["margin"]}
        sides = ((row[f"{side}low"], row[f"{side}high"]) for side in ("", "not_if_"))
        (low, high), edge = next(((low, high), edge) for low, high in sides for edge in edges if low <= edge <= high)
        values = {"interval": numbers.interval(low, high), "bound": exact(edge, 4)}
    return Sentence(f"claims.reasons.{reason}", values) if reason else None


def _distance(row: dict[str, Any]) -> Iterator[Sentence]:
    """Say how far from its threshold a value is, and what another threshold or a claim that says the same means."""
    sides = [row[f"{side}relative_distance"] for side in ("", "not_if_")]
    for name, side in zip(("distance", "distance_otherwise"), sides, strict=True):
        if not missing(side):
            yield Sentence(f"claims.{name}", {"distance": _signed(side)})
    turned = "turned" if row["other_verdict"] != row["verdict"] else "stays"
    verdict = {"other": f"{row['other_threshold']:.4g}", "verdict": Sentence(f"claims.verdicts.{row['other_verdict']}")}
    yield Sentence(f"claims.other.{turned}", verdict)
    if text(row["theorem"]):
        same = [claim.id for claim in CLAIMS.values() if claim.theorem == row["theorem"] and claim.id != row["claim"]]
        yield Sentence("claims.counts_once", {"claims": ", ".join(same)})


def _signed(distance: float) -> str:
    """Spell a distance in percent of its threshold, or as a multiple of it where it is large."""
    sign = "+" if distance >= 0 else "−"
    size = abs(distance)
    return f"{sign}{100 * size:.3g} %" if size < 10 else f"{sign}{numbers.significant(size, 2)} ×"


def _expected(row: dict[str, Any]) -> str:
    value = exact(row["expected"], 4)
    if row["relation"] != NEAR:
        return f"{SIGNS[row['relation']]} {value}"
    return f"{value} ± {exact(row['margin'], 2)}"


def _number(row: dict[str, Any], side: str = "") -> str:
    """Spell a measured number with its error, or with its interval where the error is large."""
    names = [f"{side}{name}" for name in ("measured", "se", "low", "high")]
    value, se, low, high = (row[name] for name in names)
    if missing(value):
        return ""
    if missing(se) or se == 0:
        return exact(value, 4)
    if se > LARGE * abs(value) and low > 0:
        return f"{numbers.significant(value, 2)} {numbers.rough_interval(low, high)}"
    return numbers.with_error(value, se)


def place(row: dict[str, Any]) -> str:
    """Return where a claim was measured: d_k = 64, n = 64."""
    named = (("d_k", row["d_k"]), ("n", row["n_keys"]))
    return ", ".join(f"{name} = {numbers.count(value)}" for name, value in named if not missing(value))


def typeset(plain: str) -> Markup:
    """Return plain text as HTML, with its symbols set as formulas and its indices below the line."""
    return Markup(INDEX.sub(r"<var>\1</var><sub>\2</sub>", str(prose(plain))))


def summary(frame: pd.DataFrame) -> list[Sentence]:
    """Return the sentences that the counts of verdicts choose."""
    count = Counter(frame["verdict"])
    decided = count[HOLDS] + count[HOLDS_IF] + count[FAILS]
    data = int(((frame["kind"] != "arithmetic") & frame["verdict"].isin([HOLDS, HOLDS_IF, FAILS])).sum())
    values = {name: str(count[name]) for name in (HOLDS, HOLDS_IF, FAILS, UNDECIDED, OPINION)}
    values |= {"count": str(len(frame)), "decided": str(decided), "data": str(data)}
    if not decided:
        return [Sentence("claims.summary.none", values)]
    share = "most" if 2 * count[HOLDS] > decided else "half" if 2 * count[HOLDS] == decided else "few"
    found = [Sentence("claims.summary.counts", values), Sentence(f"claims.summary.{share}", values)]
    found += _caveats(frame)
    lacking = int((frame["reason"] == MISSING).sum())
    if lacking:
        found.append(Sentence("claims.summary.lacking", {"lacking": str(lacking)}))
    return found


def _caveats(frame: pd.DataFrame) -> Iterator[Sentence]:
    """Say how many claims are one theorem, could not fail, or would get another verdict by another threshold."""
    names = frame["theorem"].fillna("")
    repeated = int((names != "").sum() - names[names != ""].nunique())
    turned = int((frame["verdict"] != frame["other_verdict"]).sum())
    counts = {"repeated": repeated, "distinct": len(frame) - repeated, "identities": int(frame["identity"].sum())}
    counts |= {"turned": turned}
    yield Sentence("claims.summary.caveats", {name: str(count) for name, count in counts.items()})


def checks(frame: pd.DataFrame) -> Table:
    """Return claim_checks.csv as a table of the report."""
    rows = []
    for row in frame.to_dict("records"):
        case = text(row["case"])
        name = Cell(
            word=f"{CHECKS}.names.{row['check']}", note=case, note_word=f"{CHECKS}.cases.{case}" if case else ""
        )
        places = (plain(row[grid]) if row[grid] > 0 else NONE for grid in GRID)
        known = NONE if missing(row["exact"]) else plain(row["exact"])
        found = estimate(row["estimate"], row["se"]) if row["se"] > 0 else plain(row["estimate"])
        rows.append((name, *places, found, known))
    return Table("claim_checks", ("check", *GRID, "estimate", "exact"), tuple(rows), room="claims")
