"""LaTeX for the tests that typeset: what the system has. Where there is none, the run says so loudly."""

import functools
import shutil
import subprocess

from needs import Need

PROGRAMS = ("pdflatex", "bibtex", "kpsewhich")
FILES = (
    "booktabs.sty",
    "pdflscape.sty",
    "siunitx.sty",
    "translations.sty",
    "hyperref.sty",
    "CJKutf8.sty",
    "c70gbsn.fd",
)


@functools.lru_cache
def missing() -> str:
    """Say what the tests that typeset lack on this machine; nothing if they can run."""
    programs = [name for name in PROGRAMS if shutil.which(name) is None]
    return ", ".join(
        programs
        or [name for name in FILES if subprocess.run(["kpsewhich", name], stdout=subprocess.DEVNULL).returncode]
    )


LATEX = Need("latex", "typesets a document with the system's LaTeX", missing, "NO DOCUMENT WAS TYPESET")


def pytest_configure(config):
    LATEX.register(config)


def pytest_collection_modifyitems(config, items):
    LATEX.leave_out(config, items)


def pytest_terminal_summary(terminalreporter):
    LATEX.say(terminalreporter)
