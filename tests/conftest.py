"""LaTeX for the tests that typeset: what the system has. Where there is none, the run says so loudly."""

import functools
import os
import shutil
import subprocess

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


def pytest_configure(config):
    config.addinivalue_line("markers", "latex: typesets a document with the system's LaTeX")


def pytest_collection_modifyitems(config, items):
    if not missing() or os.environ.get("CI"):
        return  # in CI they fail
    out = [item for item in items if item.get_closest_marker("latex")]
    if out:
        items[:] = [item for item in items if item not in out]
        config.hook.pytest_deselected(items=out)


def pytest_terminal_summary(terminalreporter):
    # Not by what was deselected: with pytest-xdist that happens in another process.
    if missing() and not os.environ.get("CI"):
        terminalreporter.section("NO DOCUMENT WAS TYPESET", sep="!", red=True, bold=True)
        terminalreporter.line(
            f"Its tests were left out because this machine lacks {missing()} (LaTeX: see .ci/run).", red=True
        )
