"""What `pip install .` brings is enough for the light rooms, and loading them loads nothing heavier.

Each test runs in a process of its own. Their last class shows that they can fail.
"""

import json
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS = DECLARED["tool"]["importlinter"]["contracts"]
(LIGHT,) = (contract for contract in CONTRACTS if contract["name"].startswith("The light library"))
BASE = {canonicalize_name(Requirement(line).name) for line in DECLARED["project"]["dependencies"]}
HEAVY = {*LIGHT["forbidden_modules"], "torch"}
NEED_TORCH = {
    f"sqrtdk.heads.capture.{path.stem}"
    for path in (ROOT / "scripts" / "sqrtdk" / "heads" / "capture").glob("*.py")
    if "import torch\n" in path.read_text(encoding="utf-8")
}
DUMP = ROOT / "resources" / "minilm-l6-qk.npz"

ALLOW_BASE_ONLY = f"""
import sys

class BaseOnly:
    allowed = {{*sys.stdlib_module_names, "sqrtdk", *{sorted(BASE)}}}

    def find_spec(name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in BaseOnly.allowed and not top.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(f"{{name}} does not come with the base dependencies", name=name)

sys.meta_path.insert(0, BaseOnly)
"""
IMPORT_ALL = f"""
import importlib, pkgutil

for room in map(importlib.import_module, {LIGHT["source_modules"]}):
    for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
        if module.name not in {NEED_TORCH}:
            importlib.import_module(module.name)
"""
IMPORT_FACES = """
import importlib, pkgutil
import sqrtdk
from sqrtdk import AttentionMonitor, ScoreError, audit, capture, check_scores

for room in pkgutil.iter_modules(sqrtdk.__path__, "sqrtdk."):
    dir(importlib.import_module(room.name))
"""
SAY_LOADED = """
import json, sys
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def run(*code: str, arguments: tuple = ()) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", "\n".join(code), *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT / "scripts", capture_output=True, text=True, check=False)


def loaded(*code: str) -> set[str]:
    """Return the top-level modules that a process has loaded after running code."""
    finished = run(*code, SAY_LOADED)
    assert finished.returncode == 0, finished.stderr
    return set(json.loads(finished.stdout))


def audit(*code: str) -> subprocess.CompletedProcess:
    code = (*code, "from sqrtdk.__main__ import main", "import sys", "sys.exit(main(sys.argv[1:]))")
    return run(*code, arguments=("audit", DUMP, "--scale", "1/sqrt(d_k)"))


def without_times(text: str) -> list[str]:
    return [line for line in text.splitlines() if "reading the arrays" not in line]


class TestEnough:
    @pytest.mark.slow
    def test_every_module_of_the_light_rooms_loads_with_the_base_dependencies(self):
        finished = run(ALLOW_BASE_ONLY, IMPORT_ALL)
        assert (finished.returncode, finished.stderr) == (0, "")

    @pytest.mark.slow
    def test_the_audit_says_the_same_with_the_base_dependencies_alone(self):
        light, full = audit(ALLOW_BASE_ONLY), audit()
        assert light.stderr == full.stderr == ""
        assert light.returncode == full.returncode
        assert without_times(light.stdout) == without_times(full.stdout) != []

    def test_the_monitor_works_with_the_base_dependencies_alone(self):
        check = """
import numpy as np
from sqrtdk import ScoreError, check_scores
rng = np.random.default_rng(1)
scores = rng.standard_normal((2, 4, 32, 32))
check_scores(scores)
try:
    check_scores(100 * scores)
except ScoreError as error:
    print("refused")
"""
        finished = run(ALLOW_BASE_ONLY, check)
        assert (finished.stdout, finished.stderr) == ("refused\n", "")


class TestLight:
    @pytest.mark.slow
    @pytest.mark.parametrize("code", [IMPORT_FACES, IMPORT_ALL], ids=["faces", "light rooms"])
    def test_loading_brings_nothing_heavy(self, code):
        assert loaded(code) & HEAVY == set()

    def test_importing_the_library_does_not_even_load_numpy(self):
        assert loaded("import sqrtdk") & {"numpy", "scipy"} == set()


class TestListsAreWhole:
    def test_the_contract_forbids_whatever_the_report_extra_brings(self):
        extra = DECLARED["project"]["optional-dependencies"]["report"]
        brought = {canonicalize_name(Requirement(line).name) for line in extra}
        named = packages_distributions()
        forbidden = {canonicalize_name(named[module][0]) for module in LIGHT["forbidden_modules"]}
        assert forbidden == brought


class TestTheseTestsCanFail:
    @pytest.mark.parametrize("module", sorted(HEAVY))
    def test_a_heavy_module_does_not_load_with_the_base_dependencies(self, module):
        finished = run(ALLOW_BASE_ONLY, f"import {module}")
        assert finished.returncode == 1
        assert f"{module} does not come with the base dependencies" in finished.stderr

    @pytest.mark.slow
    def test_a_heavy_module_that_was_loaded_is_found(self):
        assert "pandas" in loaded("import pandas", IMPORT_FACES) & HEAVY
