"""The HTML of the report: references, figures for the page, and a Jinja environment that refuses what is missing."""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jinja2
import yaml
from markupsafe import Markup, escape

from sqrtdk.figures import inline as drawings
from sqrtdk.variants import scalings
from sqrtdk.words import texts as language_words
from sqrtdk.words.mathml import MissingPart, inline, mathml, prose


def read_sources(paths: Iterable[Path]) -> dict[str, str]:
    """Return the report's sources by their path below report/, the folder of the page's template."""
    files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*.*")))]
    root = next((file.parent for file in files if file.name == "template.html.jinja"), None)
    if root is None:
        raise MissingPart("the report's sources have no template.html.jinja")
    return {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in files if file.is_file()}


def read_references(bibtex: str) -> dict[str, dict[str, str]]:
    """Return the entries of a BibTeX file in their order, key -> fields; a field is `name = {value}`, not nested."""
    entries = {}
    for block in re.split(r"^@", bibtex, flags=re.MULTILINE)[1:]:
        head = re.match(r"(\w+)\{([\w-]+),", block)
        fields = {name.lower(): value for name, value in re.findall(r"(\w+)\s*=\s*\{([^{}]*)\}", block)}
        if head is None or not {"author", "title", "year"} <= fields.keys() or head[2] in entries:
            raise MissingPart(f"a reference needs a key of its own, author, title and year: @{block.splitlines()[0]}")
        entries[head[2]] = {"type": head[1], **fields}
    return entries


def scale_rule(name: str) -> Markup:
    """Return the factor of a scale rule as a formula where it is one of d_k alone, else the name as it is spelled."""
    formula = scalings.inline_formula(name)
    return escape(name) if formula is None else inline(formula)


FIGURE_TEXTS = ("svg", "csv", "bib", "tex")
"""Kinds of a figure's files that the page takes up."""
PREVIEW = 5
"""Rows of a figure's data that the page shows."""


def figure(record: Mapping[str, Any], files: Mapping[str, str], folder: str) -> dict[str, Any]:
    """Return what the page shows of a figure.

    record: its words. files: the texts of its files of FIGURE_TEXTS. folder: where they are, relative to the page.
    The data are packed, with the first rows to read beside them.
    """
    names = ("id", "number", "part", "topic", "title", "caption", "alt", "reading", "caveat", "inputs")
    absent = [name for name in names if name not in record]
    if absent:
        raise MissingPart(f"the figure {record.get('id')} has no {', '.join(absent)}")
    anchor, rows = f"fig-{record['id']}", files["csv"].splitlines()
    page = drawings.svg_for_page(files["svg"], anchor, record["title"], f"f{record['number']}-")
    return {
        **{name: record[name] for name in names},
        "anchor": anchor,
        "path": f"{folder}/{anchor}",
        "suffixes": ("pdf", "svg", "png", "csv", "bib", "tex"),
        "svg": Markup(page),
        "csv": packed(files["csv"]),
        "preview": "\n".join(rows[: PREVIEW + 1]),
        "rows": max(len(rows) - 1, 0),
        "bibtex": files["bib"],
        "latex": files["tex"],
    }


def packed(text: str) -> str:
    """Return a text as a browser can unpack it: gzip, without a date, in base64."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def script_json(value: object) -> Markup:
    """Return a value as JSON that may stand inside a script element: no text in it can end the element."""
    return Markup(json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", r"\u003c"))


def policy_hash(text: str) -> Markup:
    """Return the hash by which a content-security policy allows one inline script or style sheet."""
    return Markup(f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'")


def environment(sources: Mapping[str, str]) -> jinja2.Environment:
    """Return a Jinja environment over named source texts: autoescape on, and an undefined name is an error."""
    jinja = jinja2.Environment(
        loader=jinja2.DictLoader(dict(sources)),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    jinja.filters |= {"prose": prose, "scale": scale_rule}
    jinja.globals |= {"rule": scale_rule, "formula": inline}
    jinja.globals |= {"json": lambda value: json.dumps(value, ensure_ascii=False)}
    jinja.globals |= {"script_json": script_json, "packed": packed, "policy_hash": policy_hash}
    return jinja


def render(
    sources: Mapping[str, str],
    language: str,
    context: Mapping[str, object],
    constants: Mapping[str, Any],
    page: str = "template.html.jinja",
) -> str:
    """Return the page made from the report's sources (name -> text) in one language.

    `page` is the template, `words/<language>/*.yaml` its words, `formulas.yaml` its displayed formulas, `code.yaml` its
    code, `references.bib` its references, `styles.css` its style, `script.js` its script. `constants` are values that
    all words may name. Raises MissingPart where one of them or a part of the page is absent.
    """
    needed = ("template.html.jinja", "formulas.yaml", "code.yaml", "references.bib", "styles.css", "script.js")
    absent = [name for name in needed if name not in sources]
    if absent:
        raise MissingPart(f"the report's sources have no {', '.join(absent)}")
    references = read_references(sources["references.bib"])
    formulas = yaml.safe_load(sources["formulas.yaml"])
    jinja = environment(sources)
    jinja.globals |= {
        "say": language_words.Words(language_words.tree(sources, language), references, constants),
        "formulas": {
            name: {"number": number, "math": mathml(text), "plain": inline(text)}
            for number, (name, text) in enumerate(formulas.items(), start=1)
        },
        "code": yaml.safe_load(sources["code.yaml"]),
        "references": references,
        "styles": Markup(sources["styles.css"]),
        "script": Markup(sources["script.js"]),
        "language": language,
    }
    try:
        return jinja.get_template(page).render(context)
    except (jinja2.UndefinedError, jinja2.TemplateNotFound) as error:
        raise MissingPart(f"the report lacks a part: {error}") from error
