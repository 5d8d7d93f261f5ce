"""What the guide to adding things says, done in a copy: these edits are all that there is to do, and tests see them.

In the copy the documents are generated anew, and the tests of each kind run for its new entry.
"""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from sqrtdk.claims.catalogue import CLAIMS

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs/adding-things.md").read_text(encoding="utf-8")
COPIED = ("config", "docs", "report", "resources", "scripts", "tests", "workflow")
BLOCK = re.compile(
    r"^```\w+\n# ([\w./-]+)(?:, (at the end|under|before|instead of)(?: `([^`\n]+)`)?)?\n(.*?)^```", re.M | re.S
)
KINDS = {
    # heading: (files that are edited, tests that see the new entry, which of them)
    "An ensemble": (
        2,
        ("every_ensemble", "config_schema", "pieces"),
        "triangular or definitive",
    ),
    "A scale rule": (1, ("scalings", "variants", "style"), "cube_root or no_name or look"),
    "A claim": (1, ("claims", "claims_page"), "{claim} or Register or rows_are or lines_say or counts"),
    "A figure": (3, ("figures", "figure_words", "figure_data"), "quartiles or numbered_as_they_stand"),
    "A configuration key": (3, ("config_schema",), ""),
}


@dataclass(frozen=True)
class Edit:
    """A block of the guide: a file, where in it the text goes, and the text; a file without a place is a new one."""

    path: str
    way: str
    line: str
    text: str

    def make(self, root: Path) -> None:
        path = root / self.path
        assert path.exists() == bool(self.way), f"{self.path} is new where it is said to be there, or the other way"
        if not self.way:
            path.write_text(self.text, encoding="utf-8")
            return
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        if self.way == "at the end":
            lines += ["\n\n", self.text]
        else:
            (at,) = (number for number, line in enumerate(lines) if line.strip().startswith(self.line))
            spaces = re.match(r" *", lines[at + (self.way == "under")])[0]
            # An entry of a tuple or of a call's arguments stands in the guide without its comma.
            text = textwrap.indent(re.sub(r"^\)\n\Z", "),\n", self.text, flags=re.M), spaces)
            lines[at] = {"under": lines[at] + text, "before": text + lines[at], "instead of": text}[self.way]
        path.write_text("".join(lines), encoding="utf-8")


def edits(heading: str) -> list[Edit]:
    """Return the blocks of a section of the guide, the next id filled in."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", GUIDE, re.M | re.S)
    return [Edit(*block) for block in BLOCK.findall(section.replace("C{next}", claim()))]


def claim() -> str:
    return f"C{len(CLAIMS) + 1}"


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run Python in a copy."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "scripts")}
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """Return a copy of the project with every edit of the guide, its documents generated anew."""
    folder = tmp_path_factory.mktemp("edits")
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "test_edits.py"))
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    for heading in KINDS:
        for edit in edits(heading):
            edit.make(folder)
    done = python(folder, "scripts/write_docs.py")
    assert done.returncode == 0, done.stderr
    return folder


def test_the_table_of_the_guide_counts_what_is_edited():
    counted = {heading: len({edit.path for edit in edits(heading)}) for heading in KINDS}
    assert counted == {heading: files for heading, (files, _, _) in KINDS.items()}


@pytest.fixture(scope="module")
def tested(copy) -> str:
    """Run the tests that see the new entries, of all kinds in one process, and return what it said."""
    names = {f"tests/unit/test_{name}.py" for _, files, _ in KINDS.values() for name in files}
    which = " or ".join(f"test_{name} and ({which.format(claim=claim())})" if which else f"test_{name}"
                        for _, files, which in KINDS.values() for name in files)  # fmt: skip
    return python(copy, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", *sorted(names), "-k", which).stdout


@pytest.mark.parametrize("heading", KINDS)
def test_an_edit_of_the_guide_is_all_that_there_is_to_do(tested, heading):
    for name in KINDS[heading][1]:
        ends = re.findall(rf"^(\w+) tests/unit/test_{name}\.py", tested, re.MULTILINE)
        assert set(ends) == {"PASSED"}, tested[-4000:]


def test_generated_documents_name_what_was_added(copy):
    guide = (copy / "config/README.md").read_text(encoding="utf-8")
    assert "### triangular" in guide
    assert "| `cube_root` |" in guide
    assert "### `claims_seed`" in guide
    assert python(copy, "scripts/write_docs.py", "--check").returncode == 0
    told = python(copy, "scripts/check_release.py").stdout
    assert "make readme" in told
    assert "independent components with a symmetric triangular density" in told


def test_the_workflow_knows_what_was_added(copy, tmp_path):
    done = python(
        copy,
        *("-m", "snakemake", "--dry-run", "--cores", "1", "-d", str(tmp_path), "-s", str(copy / "Snakefile")),
        *("--configfile", str(copy / "config/quick.yaml"), "--printshellcmds"),
    )
    assert done.returncode == 0, done.stderr
    assert "--seed 20170612" in done.stdout + done.stderr
    for said in ("draw figure quartiles", '"heavy": "Student t (6 df)"', "cube_root"):
        assert said in done.stdout + done.stderr
