"""Where the workflow is found and moved: by its second name, as a module of another, from a git address, by lint."""

import subprocess
import sys

import pytest
from pipeline import ROOT, planned, small, snakemake

MODULE = """
configfile: {configuration!r}

module sqrtdk:
    snakefile: "{address}"
    config: config

use rule * from sqrtdk
"""
IN_MODULES = ("Snakefile", "workflow/Snakefile")


@pytest.fixture
def outer(tmp_path):
    """A workflow that uses this one as a module from an address: outer(address)."""

    def written(address):
        folder = tmp_path / "outer"
        folder.mkdir()
        text = MODULE.format(address=address, configuration=str(ROOT / "config/config.yaml"))
        (folder / "Snakefile").write_text(text, encoding="utf-8")
        return folder

    return written


def test_the_second_snakefile_plans_what_the_first_one_does(tmp_path):
    first = planned(tmp_path, *small(tmp_path))
    second = planned(tmp_path, *small(tmp_path), source=ROOT / "workflow")
    assert second.pop("everything") == 1
    assert first == second != {}


def test_a_clone_serves_as_a_module(outer):
    folder = outer(ROOT / "Snakefile")
    snakemake(folder, "--cores", "1", "results/normalisers.csv", *small(folder), source=folder)
    assert (folder / "results/normalisers.csv").is_file()


@pytest.mark.parametrize("snakefile", IN_MODULES)
def test_a_module_from_a_git_address_is_told_to_clone(outer, tmp_path, snakefile):
    repository = tmp_path / "repository"
    for name in IN_MODULES:
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_bytes((ROOT / name).read_bytes())
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b"]
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *arguments], check=True)
    folder = outer(f"git+file://{repository}/{snakefile}@main")
    done = snakemake(folder, "--cores", "1", "--dry-run", source=folder, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("sqrtdk runs programs that lie beside its Snakefile")
    assert "Clone the repository" in done.stderr


def test_lint_in_the_clone_itself_finds_nothing():
    command = [sys.executable, "-m", "snakemake", "--lint"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
