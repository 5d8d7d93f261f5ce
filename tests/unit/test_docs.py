"""Generated documents are those of the sources; what a release needs a run for is told, and no test asks for it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import check_release
import write_docs

ROOT = Path(__file__).resolve().parents[2]


# The plans are computed, which takes some seconds.
SLOW = {"docs/scaling.md": pytest.mark.slow}
EACH = [pytest.param(name, marks=SLOW.get(name, ())) for name in write_docs.DOCUMENTS]


@pytest.mark.parametrize("name", EACH)
def test_generated_documents_are_up_to_date(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert write_docs.DOCUMENTS[name](text) == text, "run make docs"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Let documents lie in a folder where two of three are out of date."""
    made = {"a.md": lambda text: "new", "below/b.md": lambda text: "new", "c.md": lambda text: text}
    monkeypatch.setattr(write_docs, "DOCUMENTS", made)
    monkeypatch.setattr(write_docs, "ROOT", tmp_path)
    for name in ("a.md", "c.md"):
        (tmp_path / name).write_text("old")
    return tmp_path


def test_a_check_names_what_is_out_of_date_and_writes_nothing(tree, capsys):
    assert write_docs.main(["--check"]) == 1
    assert capsys.readouterr().out.count("is out of date: run make docs") == 2
    assert [path.name for path in sorted(tree.rglob("*")) if path.is_file()] == ["a.md", "c.md"]
    assert (tree / "a.md").read_text() == "old"


def test_documents_are_written_and_then_up_to_date(tree):
    assert write_docs.main([]) == 0
    assert (tree / "a.md").read_text() == (tree / "below/b.md").read_text() == "new"
    assert write_docs.main(["--check"]) == 0


@pytest.mark.slow
def test_what_a_release_needs_is_said_for_each_kind(tmp_path, monkeypatch):
    for name in ("docs", "resources", "report/words", "config", "workflow/schemas"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "requirements.txt", tmp_path)
    monkeypatch.setattr(check_release, "ROOT", tmp_path)
    monkeypatch.setattr(check_release.plan_run, "TABLE", tmp_path / "resources/costs.yaml")
    headline, training = tmp_path / "docs/headline.json", tmp_path / "resources/training/provenance.json"
    for path, change in ((headline, {"configuration_sha256": "0", "version": "0"}), (training, {"seed": -1})):
        path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change), encoding="utf-8")
    costs = tmp_path / "resources/costs.yaml"
    costs.write_text(costs.read_text(encoding="utf-8").replace("  jobs: ", "  jobs: 9"), encoding="utf-8")
    page = tmp_path / "docs/benchmarks.md"
    page.write_text(page.read_text(encoding="utf-8").replace("- numpy: ", "- numpy: 0."), encoding="utf-8")
    monkeypatch.setattr(check_release, "registered", lambda: {"a new family"})
    found = "\n".join(check_release.stale())
    for said in (
        "of another configuration: make readme",
        "of version 0, this is ",
        "jobs, the run that its prices were fitted to 9",
        "docs/benchmarks.md was measured with numpy 0.",
        "the training that ships is of another configuration",
        "words/zh/phrases.yaml has no counterpart of: a new family",
    ):
        assert said in found
    assert "words/en" not in found


@pytest.mark.slow
def test_the_programs_run_by_themselves():
    for name, code in (("write_docs.py", "--check"), ("check_release.py", "")):
        command = [sys.executable, str(ROOT / "scripts" / name), *filter(None, [code])]
        assert subprocess.run(command, capture_output=True, text=True).stderr == ""
