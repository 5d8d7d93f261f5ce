"""Jobs run with this Python; results without a record of what they were made from are not taken for another run's."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import workflow_support


def test_jobs_find_this_python_and_keep_what_they_compile(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    monkeypatch.setenv("PYTHONUTF8", "0")
    workflow_support.use_this_python()
    assert os.environ["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), "/nowhere"]
    assert not {"PYTHONDONTWRITEBYTECODE", "PYTHONSAFEPATH"} & os.environ.keys()
    assert os.environ["PYTHONUTF8"] == "1"


def git(folder: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.example", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def repository(folder: Path) -> str:
    """Lay a small source folder down, in a repository of its own, and return its commit."""
    lay(folder, "Snakefile", "README.md", "scripts/a.py")
    (folder / ".gitignore").write_text("ignored*\n")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", str(folder))
    return git(folder, "rev-parse", "HEAD")


CHANGED = " with uncommitted changes"


class TestCommit:
    @pytest.fixture
    def source(self, tmp_path, monkeypatch):
        folder = tmp_path / "the: source"
        monkeypatch.setattr(workflow_support, "SCRIPTS", folder / "scripts")
        return folder

    def test_it_is_that_of_the_source(self, source):
        head = repository(source)
        assert workflow_support.commit() == head
        (source / "README.md").write_text("other")
        assert workflow_support.commit() == head + CHANGED

    @pytest.mark.parametrize("name", ["scripts/sqrtdk/ensembles/mine.py", "scripts/ignored.py", "report/mine.yaml"])
    def test_a_source_file_that_git_does_not_have_is_a_change(self, source, name):
        head = repository(source)
        lay(source, "notes.txt", "results/moments.csv")
        assert workflow_support.commit() == head
        lay(source, name)
        assert workflow_support.commit() == head + CHANGED

    def test_a_repository_of_the_environment_is_not_recorded(self, source, tmp_path, monkeypatch):
        head = repository(source)
        assert repository(tmp_path / "other") != head
        monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
        monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
        monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "none"))
        assert workflow_support.commit() == head

    def test_a_repository_around_the_source_is_not_recorded(self, source):
        repository(source.parent)
        lay(source, "Snakefile", "scripts/a.py")
        assert workflow_support.commit() == "unknown"

    def test_a_worktree_has_its_own_commit(self, source, tmp_path):
        head = repository(tmp_path / "main")
        git(tmp_path / "main", "worktree", "add", "--quiet", "--detach", str(source))
        lay(tmp_path / "main", "scripts/b.py")
        assert workflow_support.commit() == head

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
    def test_the_source_of_another_user_has_its_commit(self, source):
        head = repository(source)
        for path in (source, *source.rglob("*")):
            os.chown(path, 12345, 12345)
        assert workflow_support.commit() == head

    def test_asking_writes_nothing(self, source):
        repository(source)
        os.utime(source / "README.md", (1000, 1000))  # which git would note down, to compare no contents again
        before = (source / ".git/index").read_bytes()
        workflow_support.commit()
        assert (source / ".git/index").read_bytes() == before


SETTINGS = {"seed": 1, "d_k": [4, 8], "precision": 0.1}


def lay(folder, *files, made=None):
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    if made is not None:
        (folder / "results/provenance.json").write_text(json.dumps({"configuration": made}))


CELL = "results/cells/moments/gaussian/all.npz"


@pytest.mark.parametrize(
    ("files", "made"),
    [
        ((), None),
        (("results/logs/a.log",), None),
        ((CELL, ".snakemake/metadata/abc"), None),
        ((CELL, ".snakemake/metadata/@abc/def"), SETTINGS | {"seed": 2}),
        ((CELL, ".snakemake/incomplete/abc"), None),  # killed before the first job was recorded
        ((CELL,), SETTINGS),
    ],
)
def test_a_run_goes_on_from_what_is_recorded_or_its_own(tmp_path, files, made):
    lay(tmp_path, *files, made=made)
    assert workflow_support.unrecorded(tmp_path, SETTINGS) is None


@pytest.mark.parametrize(
    ("made", "words"),
    [(None, "provenance.json is missing"), (SETTINGS | {"seed": 2, "d_k": [4]}, "(seed, d_k)"), ([], "is missing")],
)
def test_results_of_another_run_without_a_record_are_named(tmp_path, made, words):
    lay(tmp_path, CELL, ".snakemake/log/a.log", made=made)
    said = workflow_support.unrecorded(tmp_path, SETTINGS)
    assert words in said
    assert str(tmp_path / "results") in said


def parsed(path):
    """Return the dotted names that a file imports, as Python's own parser finds them."""
    package = path.relative_to(workflow_support.SCRIPTS).parts[:-1]
    names = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = list(package[: len(package) - node.level + 1]) if node.level else []
            base = [*start, *(node.module.split(".") if node.module else [])]
            names |= {".".join(base), *(".".join([*base, alias.name]) for alias in node.names)}
    return names


def test_imports_are_read_as_the_parser_reads_them():
    checked = 0
    for path in workflow_support.SCRIPTS.rglob("*.py"):
        name = str(path.relative_to(workflow_support.SCRIPTS))
        expected = {file for dotted in parsed(path) for file in workflow_support._files(tuple(dotted.split(".")))}
        if name in workflow_support.LOADS_ITS_FOLDER:
            expected |= {str(file.relative_to(workflow_support.SCRIPTS)) for file in path.parent.glob("*.py")}
        assert set(workflow_support._imports(name)) == expected, name
        checked += bool(expected)
    assert checked > 100


def test_an_import_is_found_in_any_spelling(tmp_path, monkeypatch):
    monkeypatch.setattr(workflow_support, "SCRIPTS", tmp_path)
    for cached in ("_imports", "_files"):
        monkeypatch.setattr(workflow_support, cached, getattr(workflow_support, cached).__wrapped__)
    lay(tmp_path, *(f"{name}.py" for name in "abcdefg"), "sub/a.py", "sub/__init__.py", "sub/other.py")
    (tmp_path / "start.py").write_text(
        "import a, b as x\nif 1:\n    from c import (\n        y,  # told\n        z,\n    )\ndef f():\n    import d\n"
        "text = 'import e'\n# import f\nfrom sub import (other)\n",
        encoding="utf-8",
    )
    (tmp_path / "sub/other.py").write_text("from . import a\nfrom .. import g\n", encoding="utf-8")
    found = workflow_support.source_files("start.py")
    assert found == ["a.py", "b.py", "c.py", "d.py", "g.py", "start.py", "sub/__init__.py", "sub/a.py", "sub/other.py"]
