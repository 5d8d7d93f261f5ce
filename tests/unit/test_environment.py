"""The environment is made, kept and healed in the project's own folder, and CI runs there, whatever is inherited."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = ("requirements.txt", "requirements-dev.txt", "requirements-cluster.txt")


@pytest.fixture
def project(tmp_path):
    """Copy the set-up into a folder with a space in its name, with lock files that need no network."""
    folder = tmp_path / "a clone"
    (folder / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "setup_environment.sh", folder / "scripts")
    shutil.copy(ROOT / "Makefile", folder)
    for lock in LOCKS:
        (folder / lock).write_text("# nothing\n")
    return folder


def make(folder: Path, target: str, **environment: str) -> subprocess.CompletedProcess:
    """Run a target of the Makefile with this Python."""
    outer = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "--no-print-directory", target]
    variables = outer | {"PYTHON": sys.executable} | environment
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_environment_is_made_once_also_through_a_link_and_anew_when_the_lock_changes(project):
    assert "Installing" in make(project, "runtime").stdout
    stamp, foreign = project / ".venv" / "requirements.txt", project / ".venv" / "foreign"
    before = stamp.stat().st_mtime_ns
    foreign.touch()
    again = make(project, "runtime")
    assert (again.returncode, again.stdout, again.stderr, stamp.stat().st_mtime_ns) == (0, "", "", before)
    link = project.parent / "link"
    link.symlink_to(project)
    linked = set_up(link, "scripts/setup_environment.sh", "requirements.txt", {"PWD": str(link)})
    assert (linked.returncode, linked.stdout, linked.stderr, stamp.stat().st_mtime_ns) == (0, "", "", before)
    (project / "requirements.txt").write_text("# something else\n")
    assert make(project, "runtime").returncode == 0
    assert not foreign.exists()
    assert make(project, "runtime").stdout == ""


@pytest.mark.slow
def test_environment_left_by_a_killed_run_heals(project):
    broken = project / ".venv" / "bin" / "python"
    broken.parent.mkdir(parents=True)
    broken.write_text("half a program")
    assert make(project, "dev").returncode == 0
    subprocess.run([broken, "-m", "pip", "--version"], check=True, capture_output=True)
    # What adds the test packages and fails leaves no stamp behind, so the next run starts from nothing.
    (project / "requirements-dev.txt").write_text("./missing-1.0-py3-none-any.whl\n")
    failed = make(project, "dev")
    assert failed.returncode != 0
    assert "missing" in failed.stderr
    assert not any((project / ".venv" / lock).exists() for lock in LOCKS)


def test_environment_without_a_supported_python_says_what_to_do(project):
    refused = make(project, "runtime", PYTHON="no-such-python")
    assert refused.returncode != 0
    assert "Python 3.11, 3.12 or 3.13 is needed" in refused.stderr
    assert not (project / ".venv").exists()


@pytest.fixture
def neighbour(tmp_path):
    """Lay another project down, with an environment of its own, and everything that a shell may inherit to go there."""
    other = tmp_path / "other"
    for folder in (other, other / "a clone"):
        for name in ("scripts", ".venv/bin", "results"):
            (folder / name).mkdir(parents=True)
        for name in (".venv/kept", ".venv/requirements.txt", "results/kept"):
            (folder / name).write_text("kept")
        shutil.copy(ROOT / "scripts/setup_environment.sh", folder / "scripts")
        (folder / "requirements.txt").write_text("# nothing\n")
    (other / "start").write_text(f"cd {other}\n")
    (other / "sitecustomize.py").write_text("raise SystemExit('imported from elsewhere')\n")
    inherited = {
        "CDPATH": f"{other}:{tmp_path}",
        **{
            "ENV": f"{other}/start",
            "BASH_ENV": f"{other}/start",
            "OLDPWD": f"{other}",
            "VIRTUAL_ENV": f"{other}/.venv",
        },
        **{"GIT_DIR": f"{other}/.git", "GIT_WORK_TREE": f"{other}", "MAKEFLAGS": "j4", "LC_ALL": "C"},
        **{"PYTHONPATH": f"{other}", "PYTHONHOME": f"{other}", "PYTHONSTARTUP": f"{other}/start"},
        **{"PYTHONSAFEPATH": "1", "PYTHONOPTIMIZE": "2", "PYTHONWARNINGS": "error", "PYTHONUTF8": "0"},
        **{"PYTHONNOUSERSITE": "1", "PYTHONUSERBASE": f"{other}", "PYTHONIOENCODING": "ascii"},
        **{"PIP_TARGET": f"{other}/target", "PIP_PYTHON": sys.executable, "PIP_DRY_RUN": "1", "PIP_USER": "1"},
        **{"PIP_REQUIREMENT": f"{other}/missing.txt", "PIP_REQUIRE_HASHES": "1", "PIP_CONSTRAINT": f"{other}/start"},
        **{"PIP_LOG": f"{other}/log", "PIP_REQUIRE_VIRTUALENV": "1"},
    }
    return other, inherited


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def packed(folder: Path) -> str:
    """Make a wheel of one module in a folder, and return what a lock file says to install it."""
    about = "tiny-1.0.dist-info"
    with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", f"tiny.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n")
    return "./tiny-1.0-py3-none-any.whl\n"


def set_up(folder: Path, script: str, lock: str, inherited: dict[str, str]) -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHON": sys.executable} | inherited
    command = ["sh", script, lock]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_environment_is_made_in_its_own_folder_whatever_is_inherited(project, neighbour):
    other, inherited = neighbour
    (project / "requirements.txt").write_text(packed(project))
    before = contents(other)
    # Named as a person would from outside, which is where CDPATH leads elsewhere.
    done = set_up(project.parent, f"{project.name}/scripts/setup_environment.sh", "requirements.txt", inherited)
    assert done.returncode == 0, done.stdout + done.stderr
    subprocess.run([project / ".venv/bin/python", "-c", "import tiny"], check=True)
    again = make(project, "runtime", **inherited)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert contents(other) == before


@pytest.mark.slow
def test_environment_of_another_folder_is_not_removed_through_a_link(project, neighbour):
    other = neighbour[0]
    (project / ".venv").symlink_to(other / ".venv")
    before = contents(other)
    assert make(project, "runtime").returncode == 0
    assert contents(other) == before


def test_environment_is_not_made_where_the_folder_or_the_lock_is_not_sure(project, neighbour):
    other = neighbour[0]
    before = contents(other)
    (other / "setup").symlink_to(project / "scripts/setup_environment.sh")
    (other / "a clone/scripts/run").symlink_to(project / "scripts/setup_environment.sh")
    for script in ("setup", "a clone/scripts/run"):
        refused = set_up(other, script, "requirements.txt", {})
        assert refused.returncode == 1
        assert "nothing was changed" in refused.stderr
    for lock in ("", "requirements-none.txt", "../other/start"):
        refused = set_up(project, "scripts/setup_environment.sh", lock, {})
        assert refused.returncode == 1
        assert str(project) in refused.stderr
    assert not (project / ".venv").exists()
    (other / "setup").unlink()
    (other / "a clone/scripts/run").unlink()
    assert contents(other) == before


def test_make_from_elsewhere_removes_nothing(project, neighbour):
    other = neighbour[0]
    command = ["make", "-f", str(project / "Makefile"), "clean"]
    refused = subprocess.run(command, cwd=other, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "make -C" in refused.stderr
    assert (other / "results/kept").exists()


def continuous_integration(
    folder: Path, code: int, cwd: Path, linted: int = 0, **inherited: str
) -> subprocess.CompletedProcess:
    """Run .ci/run in a folder where what it needs is there, and checks and tests end with their exit codes."""
    (folder / ".ci").mkdir(parents=True)
    (folder / "bin").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    browser = folder / "bin" / "chromium"
    browser.write_text("#!/bin/sh\n")
    browser.chmod(0o755)
    recipes = f"lint:\n\t@exit {linted}\ntest:\n\t@echo '== summary =='; exit {code}\n"
    (folder / "Makefile").write_text(recipes)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    environment["PATH"] = f"{browser.parent}{os.pathsep}{environment['PATH']}"
    command = ["bash", str((folder / ".ci" / "run").relative_to(cwd))]
    return subprocess.run(command, cwd=cwd, env=environment | inherited, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("code", "linted", "ends"), [(0, 0, 0), (1, 0, 1), (5, 0, 5), (5, 1, 5), (0, 1, 2)])
def test_continuous_integration_ends_with_the_summary_and_the_exit_code_of_pytest(tmp_path, code, linted, ends):
    finished = continuous_integration(tmp_path, code, tmp_path, linted)
    assert finished.returncode == ends
    assert finished.stdout.splitlines()[-1] == "== summary =="


@pytest.mark.parametrize(
    "inherited", [{"CDPATH": "elsewhere"}, {"MAKEFLAGS": "n"}, {"MAKEFLAGS": "w"}, {"MAKELEVEL": "1"}], ids=str
)
def test_continuous_integration_runs_its_own_tests_whatever_is_inherited(tmp_path, inherited):
    decoy = tmp_path / "elsewhere/clone"
    (decoy / ".ci").mkdir(parents=True)
    (decoy / "Makefile").write_text("test:\n\t@echo '== elsewhere =='\n")
    finished = continuous_integration(tmp_path / "clone", 5, tmp_path, **inherited)
    assert finished.returncode == 5
    assert finished.stdout.splitlines()[-1] == "== summary =="
