"""The ledger of claims as a table for LaTeX, with the lines of the page in the same order."""

import pandas as pd

from sqrtdk.claims.catalogue import CLAIMS
from sqrtdk.claims.core import Claim
from sqrtdk.report.latex.text import Tex, prose
from sqrtdk.report.ledger import INDEX, Ledger, Line, place
from sqrtdk.report.tables.cells import NONE, Cell, Table
from sqrtdk.words.sentences import Sentence

COLUMNS = ("claim", "says", "measures", "expected", "measured", "verdict")


def table(ledger: Ledger, frame: pd.DataFrame, language: str) -> Table:
    """Return the ledger of the report, made from claims.csv, as a table whose texts are TeX."""
    places = {row["claim"]: place(row) for row in frame.to_dict("records")}
    rows = tuple(_row(line, places[line.id], language) for line in ledger.rows)
    return Table("claims", COLUMNS, rows, room="")


def typeset(plain: str) -> Tex:
    """Return plain text as TeX, with its symbols set as formulas and its indices below the line."""
    pieces, end = [], 0
    for match in INDEX.finditer(plain):
        if match[0] != "d_k":
            pieces += [prose(plain[end : match.start()]), f"${prose(match[1]).strip('$')}_{{{match[2]}}}$"]
            end = match.end()
    return Tex("".join([*pieces, prose(plain[end:])]))


def _row(line: Line, measured_at: str, language: str) -> tuple[Cell, ...]:
    claim = CLAIMS[line.id]
    condition = "" if not line.otherwise else _condition(line, claim, language)
    otherwise = Sentence("claims.otherwise", {"value": line.otherwise}) if line.otherwise else ""
    evidence = Tex(rf"\texttt{{{line.evidence}}}")
    reason = line.why or evidence
    return (
        Cell(f"{line.id} ({line.source})"),
        Cell(typeset(claim.says.language(language)), note=condition, note_word="tables.literal"),
        Cell(typeset(claim.measures.language(language)), note=typeset(measured_at), note_word="tables.literal"),
        Cell(line.expected, number=True) if line.expected else NONE,
        Cell(line.measured, note=otherwise, note_word="tables.literal", number=True) if line.measured else NONE,
        Cell(word=f"claims.verdicts.{line.verdict}", note=reason, note_word="tables.literal"),
    )


def _condition(line: Line, claim: Claim, language: str) -> Sentence:
    sides = {name: typeset(getattr(claim, name).language(language)) for name in ("holds_if", "not_if")}
    return Sentence(f"claims.conditions.{line.verdict}", sides)
