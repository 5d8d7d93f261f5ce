"""A document typeset by the system's LaTeX, and what its log complains about."""

import re
import subprocess
from pathlib import Path

import pypdf

SEEN = 2.0
"""Points that a line may stand out before anybody sees it."""


def document(preamble: str, body: str) -> str:
    return f"\\documentclass{{article}}\n{preamble}\n\\begin{{document}}\n{body}\n\\end{{document}}\n"


def typeset(folder: Path, name: str, text: str, bibliography: bool = False) -> tuple[str, list[str]]:
    """Typeset a document twice, with its bibliography if it has one, and return its text and what went wrong."""
    (folder / f"{name}.tex").write_text(text, encoding="utf-8")
    latex = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", name]
    commands = [latex, ["bibtex", name], latex, latex] if bibliography else [latex, latex]
    for command in commands:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=200)
        assert done.returncode == 0, done.stdout[-4000:]
    log = re.sub(r"(?<=.{79})\n", "", (folder / f"{name}.log").read_text(encoding="utf-8", errors="replace"))
    complaints = re.findall(
        r"^(?:!.*|LaTeX Warning: .*(?:undefined|multiply|too large for page).*|Missing character.*)$", log, re.MULTILINE
    )
    complaints += [
        line for line, by in re.findall(r"^(Overfull \\hbox \(([\d.]+)pt.*)$", log, re.M) if float(by) > SEEN
    ]
    pages = pypdf.PdfReader(folder / f"{name}.pdf").pages
    return "\n".join(page.extract_text() for page in pages), complaints
