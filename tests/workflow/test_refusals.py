"""What stops a run before it starts."""

import shutil
import subprocess
import sys

import pytest
import yaml
from pipeline import ROOT, forked, planned, small, snakemake


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ("d_k=[0]", ["d_k", "0"]),
        ("d_k=[-4]", ["d_k", "-4"]),
        ("d_k=[8,8]", ["d_k", "8"]),
        ("precision=nan", ["precision", "nan"]),
        ("precison=0.1", ["precison", "precision"]),
        ("seed=false", ["seed", "false"]),
        ("scalings=[1/sqrt(dk)]", ["1/sqrt(dk)", "1/sqrt(d_k)"]),
        ("ensembles={mine: {family: gausian}}", ["ensembles.mine.family", "gausian", "gaussian"]),
        ("ensembles={mine: {family: equicorrelated, query_rho: -0.5, key_rho: 0.1}}", ["query_rho", "-0.5"]),
        ("ensembles={mine: {family: gaussian, sd: 2}}", ["ensembles.mine.sd", "query_sd"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_in_the_configuration_starts_no_job(tmp_path, change, parts):
    code, said = forked(tmp_path, *small(tmp_path), "--config", change)
    assert code != 0
    assert not (tmp_path / "results").exists()
    for part in parts:
        assert part in said
    assert "Traceback" not in said
    assert "jsonschema" not in said


def test_braces_in_a_title_are_text(tmp_path):
    assert planned(tmp_path, *small(tmp_path), "--config", "title=Scores {test} {{x}}")["render_report"] == 1


@pytest.mark.parametrize(("name", "refused"), [("{heads}", True), ("<heads>", True), ("{%$x$'\"#} < h >*", False)])
def test_the_path_of_a_dump_is_text_or_refused(tmp_path, name, refused):
    dump = tmp_path / f"{name}.npz"
    dump.symlink_to(ROOT / "resources/minilm-l6-qk.npz")
    options = small(tmp_path)
    overlay = tmp_path / "dump.yaml"
    overlay.write_text(yaml.safe_dump({"dumps": {"mine": {"file": str(dump)}}}), encoding="utf-8")
    code, said = forked(tmp_path, "--dry-run", *options, str(overlay))
    assert ("dumps.mine.file" in said and "rename" in said) == refused
    assert (code != 0) == refused, said


def test_all_mistakes_come_at_once(tmp_path):
    changes = ["precision=-1", "seed=x", "tail_d_k=0"]
    done = snakemake(tmp_path, "--cores", "1", "--config", *changes, check=False)
    assert done.returncode != 0
    for key in ("precision", "seed", "tail_d_k"):
        assert key in done.stderr
    assert "Traceback" not in done.stderr


def test_without_cores_the_default_profile_is_used(tmp_path):
    command = [sys.executable, "-m", "snakemake", "--dry-run", "-d", str(tmp_path), *small(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=100)
    assert done.returncode == 0
    assert "simulate_moments" in done.stdout


def test_results_that_were_copied_here_are_not_taken_for_those_of_another_seed(tmp_path):
    options = ["--cores", "1", *small(tmp_path)]
    cell = "results/cells/moments/gaussian/all.npz"
    snakemake(tmp_path, cell, "results/provenance.json", *options)
    shutil.rmtree(tmp_path / ".snakemake")
    done = snakemake(tmp_path, cell, *options, "--config", "seed=5", check=False)
    assert done.returncode != 0
    assert "(seed)" in done.stderr
    assert "Nothing to be done" in snakemake(tmp_path, cell, *options).stderr
