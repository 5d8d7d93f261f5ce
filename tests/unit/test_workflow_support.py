"""Jobs run with this Python; results without a record of what they were made from are not taken for another run's."""

import json
import os
import sys
from pathlib import Path

import pytest

import workflow_support


def test_jobs_find_this_python_and_keep_what_they_compile(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    workflow_support.use_this_python()
    assert os.environ["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), "/nowhere"]
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ


SETTINGS = {"seed": 1, "d_k": [4, 8], "precision": 0.1}


def lay(folder, *files, made=None):
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    if made is not None:
        (folder / "results/provenance.json").write_text(json.dumps({"configuration": made}))


CELL = "results/cells/moments/gaussian/4.json"


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
