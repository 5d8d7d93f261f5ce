"""A run does not depend on how its folder was reached, nor on what its shell inherited; where it would, it says so."""

import json
import os
import shutil
import subprocess

import pipeline
import pytest
from pipeline import ROOT, planned, snakemake

CELL = "results/cells/softmax_theory/4.csv"
OPTIONS = ["--cores", "1", CELL, "results/provenance.json"]


def git(folder, *arguments):
    return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run a few jobs under all that would change how their programs run, and return the folder."""
    folder = tmp_path_factory.mktemp("it's a run")
    (folder / "python").write_text("#!/bin/sh\necho no Python of this run; exit 1\n")
    (folder / "python").chmod(0o755)
    (folder / "start").write_text(f'PATH="{folder}:$PATH"\n')
    git(folder, "init", "--quiet", "other")
    inherited = {
        **{"PYTHONSAFEPATH": "1", "PYTHONOPTIMIZE": "2", "PYTHONNOUSERSITE": "1", "PYTHONSTARTUP": f"{folder}/start"},
        **{"PYTHONWARNINGS": "error::UserWarning", "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PWD": str(ROOT)},
        **{"BASH_ENV": f"{folder}/start", "ENV": f"{folder}/start", "CDPATH": f"{folder}", "VIRTUAL_ENV": f"{folder}"},
        **{"GIT_DIR": f"{folder}/other/.git", "GIT_WORK_TREE": f"{folder}/other", "MAKEFLAGS": "n"},
    }
    snakemake(folder, *OPTIONS, environment=inherited)
    return folder


def test_jobs_run_whatever_is_inherited(run):
    assert (run / CELL).exists()
    recorded = json.loads((run / "results/provenance.json").read_text(encoding="utf-8"))["commit"]
    assert recorded.split()[0] == git(ROOT, "rev-parse", "HEAD").strip()


def test_a_source_or_a_folder_reached_through_a_link_starts_nothing(run, tmp_path):
    (tmp_path / "source").symlink_to(ROOT)
    (tmp_path / "run").symlink_to(run)
    for folder, source in ((run, tmp_path / "source"), (tmp_path / "run", ROOT)):
        assert planned(folder, *OPTIONS[2:], source=source) == {}


def test_an_encoding_without_the_signs_of_the_report_is_refused_and_set_right_by_make(tmp_path):
    environment = {"LC_ALL": "C", "PYTHONUTF8": "0"}
    refused = snakemake(tmp_path, *OPTIONS, environment=environment, check=False)
    assert refused.returncode != 0
    assert "ascii" in refused.stderr
    assert "PYTHONUTF8=1" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (tmp_path / "results").exists()
    source = pipeline.copy_source(tmp_path / "a clone")
    pipeline.lend_environment(source)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "report", f"ARGS={CELL} --config 'title=√'"]
    done = subprocess.run(command, cwd=source, env=inherited | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_braces_in_the_path_of_the_source_are_refused(tmp_path):
    source = tmp_path / "the {source}"
    for name in ("Snakefile", "config", "scripts", "workflow", "report", "resources"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        source.mkdir(exist_ok=True)
        copy(ROOT / name, source / name)
    for folder in (source, tmp_path):
        refused = snakemake(folder, *OPTIONS, source=source, check=False)
        assert refused.returncode != 0
        assert "rename the folder" in refused.stderr
        assert str(source) in refused.stderr
        assert "Traceback" not in refused.stderr
        assert not (folder / "results").exists()
