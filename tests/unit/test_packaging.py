"""What the project says of itself in several places agrees."""

import ast
import hashlib
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import sqrtdk
from sqrtdk.report import citing

ROOT = Path(__file__).parents[2]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = DECLARED["project"]
CONDA_NAMES = {"matplotlib-base": "matplotlib", "seaborn-base": "seaborn", "snakemake-minimal": "snakemake"}
IMPORT_NAMES = {
    "importlinter": "import-linter",
    "yaml": "pyyaml",
    "xdist": "pytest-xdist",
    "PIL": "pillow",
    "mpl_toolkits": "matplotlib",
}
LOCKS = ("requirements.txt", "requirements-dev.txt", "requirements-cluster.txt")
SUPPORTED = ("3.11", "3.12", "3.13")


def ranges(lines: list[str]) -> dict[str, SpecifierSet]:
    """Return the version ranges of requirement lines by normalised name."""
    requirements = [Requirement(line) for line in lines]
    return {canonicalize_name(requirement.name): requirement.specifier for requirement in requirements}


def pins(lock: str) -> dict[str, Requirement]:
    """Return the requirements of a lock file by normalised name; a name on two lines is an error."""
    lines = [line for line in (ROOT / lock).read_text(encoding="utf-8").splitlines() if line and line.strip()[0] != "#"]
    found = [Requirement(line) for line in lines]
    names = [canonicalize_name(requirement.name) for requirement in found]
    assert len(set(names)) == len(names)
    return dict(zip(names, found, strict=True))


def version(requirement: Requirement) -> str:
    (pin,) = requirement.specifier
    assert pin.operator == "==", f"{requirement} is no pin"
    return pin.version


EXTRAS = PROJECT["optional-dependencies"]
RUNTIME = ranges(PROJECT["dependencies"] + EXTRAS["report"])
DEV = ranges(DECLARED["dependency-groups"]["dev"])
CLUSTER = ranges([line for line in EXTRAS["cluster"] if line != "sqrtdk[report]"])


def test_conda_environment_names_the_same_packages_in_the_same_ranges():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    conda = ranges(environment["dependencies"])
    assert conda.pop("python") == SpecifierSet(PROJECT["requires-python"])
    assert {CONDA_NAMES.get(name, name): wanted for name, wanted in conda.items()} == RUNTIME
    assert environment["name"] == PROJECT["name"]


def test_supported_pythons_are_said_once_in_the_same_words():
    classified = {line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if "Python ::" in line}
    allowed = SpecifierSet(PROJECT["requires-python"])
    assert classified == set(SUPPORTED)
    assert min(minor for minor in range(30) if f"3.{minor}" in allowed) == min(int(v.split(".")[1]) for v in SUPPORTED)
    assert {operator.operator for operator in allowed} == {">="}, "a cap on Python keeps others from solving for it"


@pytest.mark.parametrize(
    ("lock", "wanted"), [(LOCKS[0], RUNTIME), (LOCKS[1], RUNTIME | DEV), (LOCKS[2], RUNTIME | CLUSTER)]
)
def test_lock_pins_every_dependency_within_its_range(lock, wanted):
    locked = pins(lock)
    assert wanted.keys() <= locked.keys()
    assert [name for name, allowed in wanted.items() if version(locked[name]) not in allowed] == []


@pytest.mark.parametrize("lock", LOCKS[1:])
def test_a_larger_lock_adds_to_the_runtime_lock_and_changes_nothing_of_it(lock):
    runtime, larger = pins(LOCKS[0]), pins(lock)
    assert runtime.keys() < larger.keys()
    assert {name: version(larger[name]) for name in runtime} == {name: version(pin) for name, pin in runtime.items()}


@pytest.mark.parametrize("python", SUPPORTED)
def test_one_lock_serves_every_supported_python(python):
    here = default_environment() | {"python_version": python, "python_full_version": f"{python}.0"}
    locked = pins("requirements.txt")
    assert [name for name in RUNTIME if locked[name].marker and not locked[name].marker.evaluate(here)] == []


def imported(folder: Path) -> set[str]:
    """Return the distributions that the code under a folder imports, by normalised name."""
    names = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names.add(node.module.partition(".")[0])
    own = {
        path.stem
        for folder in ("scripts", "tests", "benchmarks")
        for path in (ROOT / folder).rglob("*")
        if path.suffix != ".pyc"
    }
    own |= {"outer_module", "no_such_module"}  # made up by tests
    return {canonicalize_name(IMPORT_NAMES.get(name, name)) for name in names - own - sys.stdlib_module_names}


@pytest.mark.slow
def test_everything_imported_is_declared():
    # Captures are made in the PyTorch and of the models that a user has; nothing else needs them.
    of_users = {"torch", "transformers"}
    assert imported(ROOT / "scripts") <= RUNTIME.keys() | of_users
    assert imported(ROOT / "tests") <= RUNTIME.keys() | DEV.keys() | of_users
    elsewhere = [folder for folder in (ROOT / "scripts/sqrtdk").iterdir() if folder.is_dir() and folder.name != "heads"]
    assert [folder for folder in elsewhere if imported(folder) & of_users] == []


def test_every_room_of_the_library_is_a_package_that_would_be_installed():
    folders = {path.parent for path in (ROOT / "scripts" / "sqrtdk").rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_workflow_demands_the_snakemake_that_the_project_declares():
    snakefile = (ROOT / "Snakefile").read_text(encoding="utf-8")
    (wanted,) = re.findall(r'^min_version\("([\d.]+)"\)', snakefile, re.MULTILINE)
    (lowest,) = (bound.version for bound in RUNTIME["snakemake"] if bound.operator == ">=")
    assert wanted == lowest


def test_citation_names_this_version_and_invents_nothing():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert str(citation["version"]) == sqrtdk.__version__
    assert citation["license"] == PROJECT["license"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in PROJECT["authors"]]
    assert citing.AUTHOR.strip("{}") == PROJECT["authors"][0]["name"]
    assert not {"doi", "identifiers"} & citation.keys()


def test_the_changelog_has_a_section_for_this_version_below_what_is_not_released():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", changelog, re.MULTILINE)[:2] == ["Unreleased", sqrtdk.__version__]


def test_shipped_activations_are_those_that_their_description_names():
    path = ROOT / "resources" / "minilm-l6-qk.npz"
    assert hashlib.sha256(path.read_bytes()).hexdigest() in (path.parent / "README.md").read_text(encoding="utf-8")
    with np.load(path) as arrays:
        assert set(arrays) == {"q", "k"}
        assert {(arrays[name].shape, arrays[name].dtype.name) for name in arrays} == {((6, 12, 252, 32), "float16")}
