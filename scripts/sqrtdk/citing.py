"""How to cite a figure: a BibTeX entry that names the figure, the version, and the data by their hash."""

import re

AUTHOR = "{The sqrtdk developers}"
YEAR = 2026
_TEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "$": r"\$",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "√": r"$\surd$",
    "·": r"$\cdot$",
    "−": "$-$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "\u202f": r"\,",
}
_SYMBOLS = {"√d_k": r"$\sqrt{d_k}$", "d_k": "$d_k$", "q·k": r"$q \cdot k$"}
_SPECIAL = re.compile("|".join(map(re.escape, [*_SYMBOLS, *_TEX])))


def tex(text: str) -> str:
    """Spell plain text so that TeX prints it: special signs escaped, d_k, √d_k and q·k as formulas."""
    return _SPECIAL.sub(lambda match: _SYMBOLS.get(match[0]) or _TEX[match[0]], text)


def figure_inclusion(name: str, title: str, caption: str) -> str:
    """Return the LaTeX that includes a figure's PDF with its caption, label and citation (graphicx)."""
    return (
        "\\begin{figure}\n"
        "  \\centering\n"
        f"  \\includegraphics{{fig-{name}.pdf}}\n"
        f"  \\caption[{tex(title)}]{{{tex(title)}. {tex(caption)} From~\\cite{{sqrtdk-{name}}}.}}\n"
        f"  \\label{{fig:sqrtdk-{name}}}\n"
        "\\end{figure}\n"
    )


def figure_entry(name: str, number: int, title: str, version: str, data_sha256: str) -> str:
    """Return the BibTeX entry of a figure.

    name: the figure's id, which becomes the key `sqrtdk-<name>`. data_sha256: hash of its CSV file, which says exactly
    which numbers are shown. No date enters, so that the entry of unchanged data never changes.
    """
    fields = {
        "title": "{" + tex(title) + "}",
        "author": AUTHOR,
        "year": str(YEAR),
        "howpublished": tex(f"sqrtdk {version}, figure {number} ({name})"),
        "note": tex(f"Figure and data: CC BY 4.0. Data SHA-256 {data_sha256}"),
    }
    lines = [f"  {key:<12} = {{{value}}}" for key, value in fields.items()]
    return f"@misc{{sqrtdk-{name},\n" + ",\n".join(lines) + "\n}\n"
