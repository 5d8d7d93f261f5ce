"""Runs of the pipeline for the tests: a small configuration, copies of the source, and what a run would do."""

import gc
import hashlib
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
ENSEMBLES = ("gaussian", "rademacher", "equicorrelated", "aligned")
WIDTHS = (1, 2, 4, 64)
DUMPS = ("minilm_l6", "mgm")
TARGET = "results/moments.csv"
"""A table of many small jobs."""
# A process that has imported Snakemake, but nothing of any source, and is copied for each plan and each refusal.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["snakemake.cli", "snakemake.api", "pandas"])
NOT_HASHED = ("run.json", "logs", ".gitkeep")


def snakemake(
    folder: Path, *arguments: str, source: Path = ROOT, check: bool = True, environment: dict | None = None
) -> subprocess.CompletedProcess:
    """Run the workflow of `source` in `folder` as a person would, and return its output as text."""
    command = [sys.executable, "-m", "snakemake", "-s", str(source / "Snakefile"), "-d", str(folder), *arguments]
    inherited = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    environment = inherited | (environment or {})
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, timeout=500)
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
    return done


def small(folder: Path) -> list[str]:
    """Return the options that select the small configuration, whose file is written into the folder."""
    default = yaml.safe_load((ROOT / "config/config.yaml").read_text(encoding="utf-8"))
    names = default["ensembles"]
    common = {"max_scalars": None, "softmax_logits": None}
    small = {
        "d_k": list(WIDTHS),
        "n_keys": [4, 16],
        "precision": 0.05,
        "max_scalars": 100_000,
        "softmax_logits": 2000,
        "training": {"recall": {"d_k": [4, 8], "rates": [0.01, 0.1], "seeds": 2, "steps": 12}, "induction": None},
        "weight_draws": 8,
        "alternatives": ["none | softmax1"],
        "alternatives_d_k": [4, 16],
        "alternatives_n_keys": [16],
        "logit_n_keys": [4, 16],
        "logit_std": [0.5, 4],
        "logit_draws": 20_000,
        "planted_cosine": [1],
        "example_rows": 2000,
        "ensembles": {name: common if name in ENSEMBLES else None for name in names},
        "dumps": {name: None for name in default["dumps"] if name not in DUMPS},
    }
    overlay = folder / "small.yaml"
    overlay.write_text(yaml.safe_dump(small), encoding="utf-8")
    return ["--configfile", str(overlay)]


def planned(folder: Path, *arguments: str, source: Path = ROOT) -> dict[str, int]:
    """Return how many jobs of each rule a run would start now."""
    code, output = forked(folder, "--dry-run", *arguments, source=source)
    assert code == 0, output
    table = re.search(r"^job +count\n-+ +-+\n(.*?)^total", output, re.MULTILINE | re.DOTALL)
    if table is None:
        assert "Nothing to be done" in output
        return {}
    counts = dict(line.split() for line in table[1].splitlines())
    return {rule: int(count) for rule, count in counts.items() if rule != "all"}


def forked(folder: Path, *arguments: str, source: Path = ROOT) -> tuple[int, str]:
    """Run Snakemake without the time that it takes to start; return its exit code and all that it said."""
    said = folder / "said.txt"
    command = ["-s", str(source / "Snakefile"), "-d", str(folder), "--cores", "1", *arguments]
    process = FORKS.Process(target=_run, args=(command, folder, said))
    process.start()
    process.join(100)
    output = said.read_text(encoding="utf-8")
    said.unlink()
    return process.exitcode, output


def _run(command: list[str], folder: Path, said: Path) -> None:
    """Run Snakemake in this process, its words in a file."""
    from snakemake import cli

    gc.disable()  # the process ends soon
    os.chdir(folder)
    with said.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    cli.main(command)


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every result that must not depend on when, where or how it was made."""
    results = folder / "results"
    return {
        str(path.relative_to(results)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(results.rglob("*"))
        if path.is_file() and path.relative_to(results).parts[0] not in NOT_HASHED
    }


def copy_source(folder: Path) -> Path:
    """Copy the source as it is now, with its history, so that a test can edit it."""
    # Files of git that are the clone's own: those of a work tree beside its repository are none.
    subprocess.run(["git", "clone", "--quiet", "--no-checkout", str(ROOT), str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "reset", "--quiet"], check=True)
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        source, target = ROOT / name, folder / name
        if source.is_symlink() or source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    return folder


def edit(path: Path, old: str, new: str) -> None:
    """Replace the only occurrence of a text in a file."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def lend_environment(clone: Path) -> None:
    """Give a clone a .venv that runs the Python of these tests, so that make finds nothing to install."""
    python = clone / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    # What scripts/setup_environment.sh leaves behind in a whole environment.
    lock = (clone / "requirements.txt").read_text(encoding="utf-8")
    (clone / ".venv/requirements.txt").write_text(f"{clone.resolve()}\n{lock}", encoding="utf-8")
