"""How to cite a figure: a BibTeX entry that names the figure, the version, and the data by their hash."""

import re
from collections.abc import Mapping

import yaml

from sqrtdk.figures.catalogue import LICENCE
from sqrtdk.report.latex.text import prose as tex

_MARKUP = re.compile(r"[\\*`|_<>]")
AUTHOR = "{The sqrtdk developers}"
YEAR = 2026
DIGITS = 12
"""Digits of a hash: enough to tell two apart, and short enough for a narrow column."""


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


def entry(key: str, title: str, what: str, note: str, url: str = "") -> str:
    """Return a BibTeX entry of the project; the address, where there is one, is that of the repository."""
    fields = {
        "title": "{" + tex(title) + "}",
        "author": AUTHOR,
        "year": str(YEAR),
        "howpublished": tex(what),
        "note": tex(note),
    }
    if url:
        # An address is no text: neither BibTeX styles nor biber want it escaped.
        fields["url"] = url
    lines = [f"  {name:<12} = {{{value}}}" for name, value in fields.items()]
    return f"@misc{{{key},\n" + ",\n".join(lines) + "\n}\n"


def figure_entry(name: str, number: str, title: str, version: str, data_sha256: str, url: str = "") -> str:
    """Return the BibTeX entry of a figure.

    name: the figure's id, which becomes the key `sqrtdk-<name>`. data_sha256: hash of its CSV file, whose first digits
    say which numbers are shown. No date enters, so that the entry of unchanged data never changes.
    """
    note = f"Figure and data: {LICENCE}. Data SHA-256 {data_sha256[:DIGITS]}"
    return entry(f"sqrtdk-{name}", title, f"sqrtdk {version}, figure {number} ({name})", note, url)


def plain(title: str, version: str, place: str = "", url: str = "") -> str:
    """Return a citation in plain text, of a place such as `figure 3`, or of the whole."""
    what = f"sqrtdk {version}" + (f", {place}" if place else "")
    return f"{AUTHOR.strip('{}')} ({YEAR}). {title}. {what}." + (f" {url}" if url else "")


def in_line(version: str, place: str = "") -> str:
    """Return a citation short enough to stand in a sentence or below a picture."""
    return f"(sqrtdk {version}{f', {place}' if place else ''})".replace(", figure ", ", Fig. ")


def repository(citation: str) -> str:
    """Return the address of the repository from the text of CITATION.cff, empty where it names none."""
    return yaml.safe_load(citation).get("repository-code", "")
