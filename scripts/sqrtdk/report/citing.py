"""How to cite a figure: a BibTeX entry that names the figure, the version, and the data by their hash."""

import re
from collections.abc import Mapping

from sqrtdk.report.latex.text import prose as tex

_MARKUP = re.compile(r"[\\*`|_<>]")
AUTHOR = "{The sqrtdk developers}"
YEAR = 2026


def figure_inclusion(name: str, title: str, caption: str, frame: Mapping[str, float]) -> str:
    """Return the LaTeX that includes a figure's PDF with its caption, label and citation (graphicx).

    frame: points above and below the figure that say what the caption says, and are cut off.
    """
    trim = f"[trim=0 {frame['bottom']:.1f}bp 0 {frame['top']:.1f}bp, clip]"
    return (
        "\\begin{figure}\n"
        "  \\centering\n"
        f"  \\includegraphics{trim}{{fig-{name}.pdf}}\n"
        f"  \\caption[{tex(title)}]{{{tex(title)}. {tex(caption)} From~\\cite{{sqrtdk-{name}}}.}}\n"
        f"  \\label{{fig:sqrtdk-{name}}}\n"
        "\\end{figure}\n"
    )


def figure_caption(title: str, caption: str) -> str:
    """Return title and caption as reStructuredText in a Jinja template, the form of captions in Snakemake's report."""
    title, caption = (_MARKUP.sub(r"\\\g<0>", text).replace("{", "{{ '{' }}") for text in (title, caption))
    return f"**{title}**\n\n{caption}\n"


def figure_entry(name: str, number: str, title: str, version: str, data_sha256: str) -> str:
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
