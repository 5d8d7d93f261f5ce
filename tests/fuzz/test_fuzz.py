"""Random configurations, runs and kills, each from a seed that is its number: make test-fuzz tries all of them."""

import html
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import configurations
import numpy as np
import pipeline
import pytest
import yaml
from configurations import ROOT, SCHEMA

from sqrtdk.config import costs, planning
from sqrtdk.config.loading import load_file
from sqrtdk.config.validation import ConfigError, validate

COSTS = yaml.safe_load((ROOT / "resources/costs.yaml").read_text(encoding="utf-8"))
DEFAULT = load_file(ROOT / "config/config.yaml")
STRAY = re.compile(
    r"\b(nan|None|undefined|inf)\b|\{\{|\}\}|\{%|"
    r"(?<![\d.,^−-])\b1 (cells|ensembles|experiments|heads|keys|models|rows|seeds|tokens|widths)\b"
)
"""What looks like a value that was not there, and one of something in the plural."""


def cases(few: int, many: int):
    """Say how many cases of a test there are beside the others, and in all."""

    def counted(test):
        test.cases = few, many
        return test

    return counted


def dumps(folder: Path, rng: np.random.Generator) -> list[str]:
    """Write files of heads at the edges of what is accepted, and return their names."""
    n, d_k = int(rng.integers(3, 6)), int(rng.integers(1, 5))
    q, k = rng.normal(size=(2, 2, 2, n, d_k))
    alive = q.copy()
    alive[0, 0] = 0
    kinds = {
        "three": (q[..., :3, :], k[..., :3, :]),
        "dead": (q * 0, k * 0),
        "half_dead": (alive, k),
        "tiny": (q * 1e-30, k * 1e-30),
        "large": (q * 1e4, k * 1e4),
        "constant": (np.ones_like(q), np.ones_like(k)),
        "one_head": (q[:1, :1], k[:1, :1]),
        "single": (q.astype(np.float32), k.astype(np.float16)),
    }
    for name, (queries, keys) in kinds.items():
        np.savez(folder / f"{name}.npz", q=queries, k=keys)
    return [str(folder / f"{name}.npz") for name in kinds]


@cases(10, 500)
def test_a_valid_configuration_is_understood_as_itself_and_planned(tmp_path, case):
    rng = np.random.default_rng([1, case])
    given, understood = configurations.valid(rng, dumps(tmp_path, rng))
    assert validate(understood, SCHEMA, folders=[ROOT]) == understood
    assert json.loads(json.dumps(understood, allow_nan=False)) == understood
    for key, value in given.items():
        if SCHEMA["properties"][key]["type"] in ("integer", "number", "string"):
            assert understood[key] == value
    forecast = costs.forecast(understood, COSTS)
    assert math.isfinite(forecast.cpu_seconds)
    assert forecast.cpu_seconds > 0
    assert {rule.rule for rule in forecast.rules} <= planning.jobs(understood).keys()


@cases(10, 2000)
def test_a_configuration_with_mistakes_is_refused_on_a_page(case):
    rng = np.random.default_rng([2, case])
    given, wrong = configurations.mistakes(rng, configurations.draft(rng, ["none.npz"], False))
    with pytest.raises(ConfigError) as caught:
        validate(given, SCHEMA, folders=[ROOT])
    text = str(caught.value)
    assert wrong <= {problem.path[0] for problem in caught.value.problems}
    assert len(text) < 10_000
    assert text.count("\n") < 50
    assert all(line.isprintable() for line in text.split("\n"))


@pytest.mark.slow
@cases(0, 30)
def test_the_smallest_pipeline_of_a_valid_configuration_ends_in_a_page(tmp_path, case):
    rng = np.random.default_rng([3, case])
    given, understood = configurations.valid(rng, dumps(tmp_path, rng), small=True)
    others = {
        key: dict.fromkeys(DEFAULT[key].keys() - given[key].keys()) | given[key]
        for key in ("ensembles", "training", "dumps")
        if key in given
    }
    overlay = tmp_path / "small.yaml"
    overlay.write_text(yaml.safe_dump(given | others, allow_unicode=True), encoding="utf-8")
    command = [sys.executable, str(Path(__file__).with_name("run_jobs.py")), str(tmp_path)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([*command, "--configfile", str(overlay)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, overlay.read_text(encoding="utf-8") + done.stderr[-3000:]
    assert stray(tmp_path / "results/report.html", understood) == []
    json.loads((tmp_path / "results/summary.json").read_text(encoding="utf-8"))


def stray(page: Path, understood: dict) -> list[str]:
    """Return what in the words of a page is no word; the names of a user may be."""
    text = re.sub(
        r"<(style|script|svg|code|pre|annotation)\b.*?</\1>|<[^>]*>", " ", page.read_text(encoding="utf-8"), flags=re.S
    )
    labels = [entry["label"] for entry in understood["ensembles"].values() if entry.get("label")]
    for name in (*understood["ensembles"], *understood["training"], *understood["dumps"], understood["title"], *labels):
        text = re.sub(rf"(?<!\w){re.escape(html.escape(name))}(?!\w)", "", text, flags=re.ASCII)
    return [text[max(0, found.start() - 60) : found.end() + 60] for found in STRAY.finditer(text)]


@pytest.mark.slow
@cases(1, 20)
def test_a_killed_run_resumes_to_the_same_bytes(tmp_path, whole, case):
    folder = tmp_path / "killed"
    folder.mkdir()
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "-d", str(folder), "--cores", "2"]
    process = subprocess.Popen(
        [*command, pipeline.TARGET, *pipeline.small(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        start_new_session=True,
    )
    deadline, wait = time.monotonic() + 200, np.random.default_rng([4, case]).uniform(0, 1.5)
    while not list(folder.glob("results/cells/moments/*/*.npz")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(wait * (case > 0))
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    pipeline.snakemake(folder, "--unlock", *pipeline.small(folder))
    pipeline.snakemake(folder, "--cores", "2", pipeline.TARGET, *pipeline.small(folder))
    assert pipeline.digests(folder) == whole


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> dict[str, str]:
    """The bytes of a run that nothing killed."""
    folder = tmp_path_factory.mktemp("whole")
    pipeline.snakemake(folder, "--cores", "2", pipeline.TARGET, *pipeline.small(folder))
    return pipeline.digests(folder)
