"""What all tests share: a folder, labels, and LaTeX as the system has it; without it the run says so loudly."""

import functools
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

import sharing
from needs import Need
from sqrtdk.figures import style

ROOT = Path(__file__).resolve().parents[1]

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


@pytest.fixture(scope="session", autouse=True)
def _shared(request, tmp_path_factory):
    """Share a folder between the workers of pytest-xdist, which have their own ones in it."""
    own = tmp_path_factory.getbasetemp()
    sharing.folder = own.parent if hasattr(request.config, "workerinput") else own


@pytest.fixture(scope="session", autouse=True)
def _labels():
    """Call ensembles as the default configuration does, as a run would."""
    entries = yaml.safe_load((ROOT / "config/config.yaml").read_text(encoding="utf-8"))["ensembles"]
    with style.labelled({name: entry["label"] for name, entry in entries.items() if "label" in entry}):
        yield


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


def pytest_terminal_summary(terminalreporter, config):
    LATEX.say(terminalreporter)
    if config.args_source is config.ArgsSource.TESTPATHS:
        # Of the whole suite: what no test can mend is said, and fails nothing.
        import check_release

        if lines := check_release.stale():
            terminalreporter.section("BEFORE A RELEASE", sep="-", yellow=True)
            terminalreporter.line("\n".join(lines))
