"""The tables of the report as LaTeX with booktabs: what each cell says is decided where the page's table is made."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sqrtdk.report.latex import text as latex
from sqrtdk.report.latex.text import Tex, TexWords
from sqrtdk.report.tables.cells import Cell, Table
from sqrtdk.variants import scalings

PACKAGES = ("array", "booktabs", "longtable", "pdflscape")
LONGEST_FLOAT = 25
"""A table of more rows is set over several pages ..."""
TALLEST_FLOAT = 42
"""... and one of more lines, beside which heading, caption and note still have room on a page of a standard class."""
_SIZES = (
    ("footnotesize", "scriptsize", 80, False),
    ("scriptsize", "tiny", 85, False),
    ("footnotesize", "scriptsize", 127, True),
    ("scriptsize", "tiny", 136, True),
)
"""Type size of the table and of notes, characters in a line of the standard classes, whether the page is turned."""
MOST_LINES = 3
"""A row that would take more lines gets smaller type, or a turned page."""
_BETWEEN = 2.4
"""Characters that the space between two columns takes."""
_BREAK = r"\allowbreak{}"
_WIDEST = 44
"""Characters beyond which a column is not made wider; its text is broken."""


def label(key: str) -> str:
    """Return the label of a table in TeX, which is also the name of its file."""
    return f"tab-{key.replace('_', '-')}"


def tex(table: Table, say: TexWords, number: int, origin: str) -> str:
    r"""Return a table as a float, or over several pages where it is long or wide, with caption, label and note.

    number: its place in the report. origin: what its numbers come from, for the comment above.
    The columns fill \linewidth whatever it is.
    """
    heads = [heading(table, name, say) for name in table.columns]
    rows = [
        [(_breakable(cell_text(cell, say)), _breakable(cell_note(cell, say))) for cell in row] for row in table.rows
    ]
    size, small, turned, widths, height = _layout(heads, rows)
    columns = "".join(_column(width, flush) for width, flush in zip(widths, table.numeric, strict=True))
    caption = rf"\caption{{{say(f'{table.words}.caption', **table.values)}}}\label{{{label(table.key)}}}"
    note = say(f"{table.words}.note", **table.values)
    head = " & ".join(heads) + r" \\"
    body = [" & ".join(_cell(main, second, small) for main, second in row) + r" \\" for row in rows]
    lines = [
        f"% Table {number} of the report, #{label(table.key)}. {origin}",
        f"% Needs \\usepackage{{{','.join(PACKAGES)}}}; refer to it by \\ref{{{label(table.key)}}}.",
    ]
    if turned or len(rows) > LONGEST_FLOAT or height > TALLEST_FLOAT:
        lines += _long(columns, caption, head, body, note, size, turned)
    else:
        lines += _float(columns, caption, head, body, note, size)
    return "\n".join(lines) + "\n"


def _float(columns: str, caption: str, head: str, body: list[str], note: str, size: str) -> list[str]:
    return [
        r"\begin{table}[tbp]",
        r"\centering",
        caption,
        rf"\{size}\setlength{{\tabcolsep}}{{4pt}}",
        rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
        *(r"\toprule", head, r"\midrule", *body, r"\bottomrule"),
        r"\end{tabular}",
        rf"\par\smallskip\raggedright {note}\par",
        r"\end{table}",
    ]


def _long(columns: str, caption: str, head: str, body: list[str], note: str, size: str, turned: bool) -> list[str]:
    lines = [
        r"\begingroup",
        rf"\{size}\setlength{{\tabcolsep}}{{4pt}}",
        rf"\begin{{longtable}}{{@{{}}{columns}@{{}}}}",
        caption + r" \\",
        *(r"\toprule", head, r"\midrule", r"\endfirsthead"),
        *(r"\toprule", head, r"\midrule", r"\endhead"),
        *(r"\bottomrule", r"\endfoot"),
        *body,
        r"\end{longtable}",
        rf"\noindent {note}\par",
        r"\endgroup",
    ]
    return [r"\begin{landscape}", *lines, r"\end{landscape}"] if turned else lines


def heading(table: Table, name: str, say: TexWords) -> Tex:
    """Return the heading of a column."""
    if name.startswith("scaling:"):
        return say("scaling", rule=rule(name.removeprefix("scaling:")))
    if name.startswith("width:"):
        return say("width", d_k=name.removeprefix("width:"))
    return say(f"{table.words}.columns.{name}")


def rule(name: str) -> Tex:
    """Return the factor of a scale rule as a formula where it is one of d_k alone, else the name as it is spelled."""
    short = scalings.inline_formula(name)
    return Tex.escape(name) if short is None else Tex(latex.formula(short))


def cell_text(cell: Cell, say: TexWords) -> Tex:
    """Return what a cell says."""
    if cell.formula:
        found = Tex(latex.formula(cell.formula))
    elif cell.word:
        found = rule(str(cell.text)) if cell.word == "scaling" else say(cell.word)
    else:
        # A number and its percent sign stay on one line, and so does an interval.
        spelled = str(say.put(cell.text)).replace(r" \%", r"~\%")
        found = Tex(re.sub(r"\[[^\[\] ]+, [^\[\] ]+\]", lambda ends: ends[0].replace(" ", "~"), spelled))
    said = say.text("lists.between_sentences").join(say(one.key, **_with_rule(one.values)) for one in cell.sentences)
    shown = ", ".join(rf"\texttt{{{anchor}}}" for anchor in cell.evidence)
    return Tex(f"{found}{said}{shown}")


def _with_rule(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a sentence with its scale rule as a formula, as the page has it."""
    return {**values, "rule": rule(values["rule"])} if "rule" in values else dict(values)


def cell_note(cell: Cell, say: TexWords) -> Tex:
    """Return the second line of a cell, nothing where it has none."""
    if not cell.note:
        return Tex("")
    return say(cell.note_word, text=cell.note)


def _breakable(tex: str) -> str:
    """Let a long name be broken after an underscore."""
    return str(tex).replace(r"\_", r"\_" + _BREAK)  # a plain text: what is put into Tex is escaped


def _cell(main: str, note: str, small: str) -> str:
    return main if not note else rf"{main}\newline{{\{small} {note}}}"


def _column(width: float, flush_right: bool) -> str:
    side = r"\raggedleft" if flush_right else r"\raggedright"
    return rf">{{{side}\arraybackslash}}p{{\dimexpr {width:.4f}\linewidth-2\tabcolsep\relax}}"


def _layout(heads: Sequence[str], rows: list[list[tuple[str, str]]]) -> tuple[str, str, bool, list[float], int]:
    """Choose the type size of the table and of notes, whether the page is turned, each column's share.

    The last is how many lines all rows take then. No package of TeX serves: tabulary breaks no table over pages, and
    tabularray, which does, took 93 s for all tables in place of 3 s, with 32 lines that stand out.
    """
    least, lengths = np.zeros(len(heads)), np.zeros((len(heads), len(rows), 2))
    for place, head in enumerate(heads):
        main, notes = ([row[place][part] for row in rows] for part in (0, 1))
        least[place] = max([*map(_longest, [head, *main]), *(0.95 * _longest(note) for note in notes)]) + _BETWEEN
        lengths[place, :, 0] = [_length(text) for text in main]
        lengths[place, :, 1] = [0.95 * _length(note) for note in notes]
    wanted = np.minimum(lengths.max(axis=(1, 2), initial=0), _WIDEST) + _BETWEEN
    # What columns do not need goes to those with the longest texts.
    more = np.maximum(lengths.sum(axis=2).max(axis=1, initial=0) - least, 0)
    for kind in _SIZES:
        size, small, room, turned = kind
        widths = least + max(room - least.sum(), 0) * more / max(more.sum(), 1)
        lines = np.ceil(lengths / (widths - _BETWEEN)[:, None, None]).sum(axis=2)
        height = int(lines.max(axis=0, initial=1).sum())
        fits = least.sum() <= room and wanted.sum() <= MOST_LINES * room
        if kind == _SIZES[-1] or (fits and height <= 2 * MOST_LINES * len(rows)):
            return size, small, turned, list(widths / max(widths.sum(), room)), height
    raise AssertionError("the last kind is always taken")


def _length(tex: str) -> float:
    """Return about how many digits wide TeX is when it is printed."""
    tex = tex.replace(_BREAK, "")
    formulas = re.findall(r"\$[^$]*\$", tex)
    words = re.sub(r"\$[^$]*\$", "", tex)
    words = re.sub(r"\\text[a-z]+\{\}|\\.", "x", re.sub(r"\\(?:text(?:tt|bf)|emph)\{", "", words))
    words = words.replace("{", "").replace("}", "")
    wide = sum(sign.isupper() or sign in "mw" for sign in words) + 2 * sum(map(_square, words))
    return len(words) + 0.5 * wide + sum(map(_formula_length, formulas))


def _formula_length(tex: str) -> float:
    """Return the same for a formula: commands print one sign or none, operators have space around them."""
    signs = tex.replace(r"\sqrt", "xx").replace(r"\times", "+")
    signs = re.sub(r"\\(?:mathrm|mbox|left|right|bar|tilde|hat|,|;)", "", signs)
    signs = re.sub(r"\\[a-zA-Z]+ ?|\\[^a-zA-Z]", "x", signs)
    return 1.1 * len(re.sub(r"[{}$^_ ]", "", signs)) + sum(map(signs.count, "+=<>-"))


def _square(sign: str) -> bool:
    """Say whether a sign is as wide as two digits: those of Chinese."""
    return unicodedata.east_asian_width(sign) in "WF"


def _longest(tex: str) -> float:
    """Return the width of the longest piece that is not broken between lines; a formula is one.

    A line may end between two Chinese signs but not beside a punctuation mark, so that two of them count as one piece.
    The space after one is not printed, so that a word that follows it stays with it.
    """
    whole = re.sub(r"\$[^$]*\$", lambda match: match[0].replace(" ", ""), tex)
    pieces, last = [""], ""
    for sign in whole.replace(_BREAK, " "):
        if sign == " " and _chinese(last):
            continue
        if sign == " " or (_chinese(sign) and _chinese(last)):
            pieces.append("")
        pieces[-1] += sign.strip()
        last = sign
    two = 2 * max((_length(sign) for sign in whole if _chinese(sign)), default=0)
    return max(two, *map(_length, pieces))


def _chinese(sign: str) -> bool:
    return sign.isalpha() and _square(sign)
