"""The command `sqrtdk cite`: how to cite a figure, a number or a claim of a finished run, from its results alone."""

import argparse
import csv
import difflib
import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sqrtdk.figures.catalogue import LICENCE
from sqrtdk.report import citing

EPILOG = """examples:
  sqrtdk cite hero                          # a figure by its name, or by its number as on the page: sqrtdk cite E3
  sqrtdk cite GaussianExponent              # a number by its key in numbers.json or its macro
  sqrtdk cite C11 --results run/results     # a claim of the ledger"""
_DRESS = re.compile(r"^[\\#]?(sqrtdk-?|fig(ure)?[-. ]*|claim-)?", re.IGNORECASE)
"""What may stand before a name: as a macro, an anchor of the page, a key of BibTeX, in a sentence."""
_URL = re.compile(r"^  url += \{(.*)\}", re.MULTILINE)


class CiteError(ValueError):
    """What is asked for cannot be cited; the message is meant to be printed."""


class Citation(NamedTuple):
    """One thing cited in four ways."""

    bibtex: str
    latex: str
    text: str
    short: str


def cite(asked: str, folder: Path) -> Citation:
    """Return the citation of what a name or number means in a folder of results.

    Raises CiteError for a folder that holds no finished run, and for a name that is none, with the nearest one.
    """
    try:
        manifest, record = (json.loads((folder / name).read_text("utf-8")) for name in _RECORDS)
        with (folder / "claims.csv").open(encoding="utf-8", newline="") as file:
            claims = {row["claim"]: row for row in csv.DictReader(file)}
    except FileNotFoundError as error:
        raise CiteError(f"no finished run: there is no {error.filename}; name its folder with --results") from None
    version, figures, numbers = manifest["version"], manifest["figures"], record["numbers"]
    url = _URL.search((folder / f"figures/fig-{next(iter(figures))}.bib").read_text("utf-8"))
    about = _About(
        version, f"Configuration SHA-256 {manifest['configuration_sha256'][: citing.DIGITS]}", url and url[1]
    )

    found: dict[str, Callable[[], Citation]] = {}
    for name, claim in claims.items():
        found[name] = partial(about.claim, name, claim)
    for name, number in numbers.items():
        found[name] = partial(about.number, name, number)
    for name, figure in figures.items():
        found[name] = partial(about.figure, folder / f"figures/fig-{name}", figure)
    also = {figure["number"]: name for name, figure in figures.items()} | {f"{name}CI": name for name in numbers}
    known = {name.casefold(): name for name in found} | {name.casefold(): found for name, found in also.items()}
    wanted = _DRESS.sub("", asked.strip(), count=1).casefold()
    if wanted not in known:
        near = difflib.get_close_matches(wanted, known, 1, 0)
        raise CiteError(f"no figure, number or claim is called {asked!r}; the nearest is {known[near[0]]}")
    return found[known[wanted]]()


_RECORDS = ("figures/manifest.json", "numbers.json")


class _About(NamedTuple):
    """What all citations of a run share."""

    version: str
    run: str
    url: str | None

    def figure(self, path: Path, figure: dict[str, str]) -> Citation:
        bibtex, latex = (path.with_suffix(kind).read_text("utf-8") for kind in (".bib", ".tex"))
        return Citation(bibtex, latex, *self._plain(figure["title"], f"figure {figure['number']}"))

    def number(self, name: str, number: dict[str, str]) -> Citation:
        place, what = f"number {name}", f"{number['description']}: {number['text']}"
        latex = f"\\input{{results/latex/numbers}} % once, in the preamble\n{number['macro']}~\\cite{{sqrtdk-{name}}}\n"
        return Citation(self._entry(name, what, place), latex, *self._plain(what, place))

    def claim(self, name: str, claim: dict[str, str]) -> Citation:
        place, what = f"claim {name}", f"{claim['statement'].rstrip('.')}: {claim['verdict'].replace('_', ' ')}"
        latex = f"{name}~\\cite{{sqrtdk-{name}}}\n"
        return Citation(self._entry(name, what, place), latex, *self._plain(what, place))

    def _entry(self, name: str, title: str, place: str) -> str:
        note = f"{LICENCE}. {self.run}"
        return citing.entry(f"sqrtdk-{name}", title, f"sqrtdk {self.version}, {place}", note, self.url or "")

    def _plain(self, title: str, place: str) -> tuple[str, str]:
        return citing.plain(title, self.version, place, self.url or ""), citing.in_line(self.version, place)


def main(arguments: list[str]) -> int:
    """Print how to cite what a command line names; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="sqrtdk cite",
        description="Say how to cite a figure, a number or a claim of a finished run.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("name", metavar="FIGURE|NUMBER|CLAIM")
    parser.add_argument("--results", type=Path, default=Path("results"), help="its folder; default: results")
    given = parser.parse_args(arguments)
    try:
        found = cite(given.name, given.results)
    except CiteError as error:
        print(f"sqrtdk cite: {error}", file=sys.stderr)
        return 2
    for head, body in zip(("BibTeX", "LaTeX", "Text", "In a sentence"), found, strict=True):
        print(f"{head}:\n{body.strip()}\n")
    return 0
