"""A program that starts warm does what it does cold, to the byte, and nothing stays behind, whoever is killed."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pipeline
import pytest
from pipeline import ROOT

import warm_start

STATE = """
import json, locale, os, signal, sys, threading
import beside
print(json.dumps({
    "argv": sys.argv[1:], "name": __name__, "file": __file__, "path": sys.path, "folder": os.getcwd(),
    "environment": {name: value for name, value in os.environ.items() if name not in ("_", "SHLVL")},
    "said": beside.SAID, "read": sys.stdin.read(), "flags": repr(sys.flags), "executable": sys.executable,
    "streams": [(s.encoding, s.errors, s.line_buffering, s.fileno()) for s in (sys.stdin, sys.stdout, sys.stderr)],
    "locale": locale.setlocale(locale.LC_ALL), "interrupt": str(signal.getsignal(signal.SIGINT)),
    "main": sys.modules["__main__"].__dict__ is globals(), "threads": threading.active_count(),
    "open": [name for name in sorted(os.listdir("/proc/self/fd")) if os.path.exists(f"/proc/self/fd/{name}")],
}), flush=True)
print("√ to the other stream", file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""
CELL = "results/cells/softmax_theory/4.csv"
WARM = 'import sys; print(sys.orig_argv[1].endswith("warm_start.py"))'
SLEEPS = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"


def wait_for(condition):
    """Return once a condition holds, which takes seconds, and longer where much else runs."""
    until = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def is_gone(number: int) -> bool:
    """Return whether a process has ended, also where nobody has asked how."""
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    return True


class Folder:
    """Scripts in a folder, and their environment as Snakemake gives it to a job."""

    def __init__(self, path):
        self.path = path
        self.cold = dict(os.environ) | dict.fromkeys(warm_start.THREADS, "1")
        self.cold |= dict.fromkeys(warm_start.TEMPORARY, warm_start.tempfile.gettempdir())
        self.cold["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])

    def command(self, script, *arguments):
        (self.path / "it's.py").write_text(script, encoding="utf-8")
        return ["bash", "-c", 'set -euo pipefail; python "$0" "$@"', "it's.py", *arguments]

    def popen(self, script, *arguments, environment):
        command = self.command(script, *arguments)
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.path, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True, process_group=0
        )

    def both(self, script, *arguments):
        """Return what a script does cold, and what it does warm."""
        for environment in (self.cold, self.cold | {"PATH": os.environ["PATH"]}):
            process = self.popen(script, *arguments, environment=environment)
            said = process.communicate("some input\n", timeout=60)
            yield process.returncode, *said


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with programs, while a process runs that they may start from."""
    monkeypatch.setattr(warm_start, "_process", None)
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # under which no output waits to be written
    folder = Folder(tmp_path)
    monkeypatch.setenv("PATH", folder.cold["PATH"])
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets its background ignore it
    warm_start.start()
    folder.warm = folder.cold | {"PATH": os.environ["PATH"]}
    yield folder
    warm_start.stop()
    signal.signal(signal.SIGINT, before)
    assert not os.path.exists(folder.warm["PATH"].split(os.pathsep)[0])


def test_a_program_finds_all_as_it_does_cold(folder):
    (folder.path / "beside.py").write_text("SAID = 1", encoding="utf-8")
    other = folder.popen(SLEEPS, environment=folder.warm)
    assert other.stdout.readline()
    cold, warm = folder.both(STATE, "3", "a b", "'√\"", "")
    states = [json.loads(done[1]) for done in (cold, warm)]
    for state in states:
        del state["environment"]["PATH"]
    assert states[0] == states[1]
    assert (warm[0], warm[2]) == (cold[0], cold[2]) == (3, "√ to the other stream\n")
    assert [done[1] for done in folder.both(WARM)] == ["False\n", "True\n"]
    warm_start.stop()
    other.communicate(timeout=20)
    assert other.returncode == -signal.SIGKILL


def test_own_code_is_read_anew_and_only_libraries_are_there(folder):
    files = "[getattr(module, '__file__', '') for name, module in sys.modules.items() if name != '__main__']"

    def loaded() -> str:
        return list(folder.both(f"import sys; print({files})"))[1][1]

    wait_for(lambda: "ml_dtypes" in loaded())
    assert f"{ROOT}/scripts" not in loaded()
    for number in (1, 22):
        (folder.path / "beside.py").write_text(f"SAID = {number}", encoding="utf-8")
        assert [done[1] for done in folder.both("import beside; print(beside.SAID)")] == [f"{number}\n"] * 2


@pytest.mark.parametrize(
    "script",
    [
        "import json; json.loads('{')",
        "def f():\n    raise ValueError('of √')\nf()",
        "this is no Python",
        "raise SystemExit('in words')",
        "raise SystemExit(257)",
        "import atexit; atexit.register(print, 'at the end'); print('first')",
        "import threading, time; threading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()",
        "import os; os.close(1)",
        *(f"import os; os.kill(os.getpid(), {number})" for number in ("9", "15", "6", "11", "2")),
    ],
)
def test_a_program_ends_as_it_does_cold(folder, script):
    cold, warm = ([re.sub(r"line 1: +\d+", "line 1: N", str(part)) for part in done] for done in folder.both(script))
    assert cold == warm


def test_on_a_terminal_lines_come_at_once(folder):
    command = folder.command("import sys; print(sys.stdout.isatty(), sys.stdout.line_buffering)")
    for environment in (folder.cold, folder.warm):
        terminal, end = pty.openpty()
        subprocess.run(command, cwd=folder.path, env=environment, stdout=end, check=True)
        assert os.read(terminal, 100).split() == [b"True", b"True"]
        os.close(end)
        os.close(terminal)


@pytest.fixture
def no_home(monkeypatch):
    """No place for what Matplotlib keeps of a user."""
    for name in ("MPLCONFIGDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/proc/none")


def test_what_a_library_made_for_the_process_stays_until_its_end(no_home, folder):
    def made() -> str:
        script = (
            "import sys; m = sys.modules; print(m['matplotlib'].get_configdir() if 'matplotlib.figure' in m else '')"
        )
        return list(folder.both(script))[1][1].strip()

    wait_for(made)
    found = Path(made())
    assert found.is_dir()
    warm_start.stop()
    assert not found.exists()


def test_another_number_of_threads_starts_cold(folder):
    folder.cold["OMP_NUM_THREADS"] = "2"
    said = [done[1] for done in folder.both(WARM + "; import os; print(os.environ['OMP_NUM_THREADS'])")]
    assert said == ["False\n2\n"] * 2


def test_on_other_systems_nothing_is_started(monkeypatch):
    before = os.environ["PATH"]
    monkeypatch.setattr(warm_start.sys, "platform", "darwin")
    warm_start.start()
    assert warm_start._process is None
    assert os.environ["PATH"] == before


def test_a_program_dies_with_who_asked_for_it(folder):
    process = folder.popen(SLEEPS, environment=folder.warm)
    copy = int(process.stdout.readline())
    process.kill()
    process.communicate(timeout=20)  # whose end the copy holds open
    wait_for(lambda: is_gone(copy))


def test_an_interrupt_reaches_the_program(folder):
    tidies = f"try:\n    {SLEEPS}\nfinally:\n    time.sleep(0.5)\n    print('tidy')"
    process = folder.popen(tidies, environment=folder.warm)
    copy = int(process.stdout.readline())
    os.killpg(process.pid, signal.SIGINT)
    os.kill(copy, signal.SIGINT)  # whose group is that of the process, which here is the one of this test
    said, errors = process.communicate(timeout=20)
    assert (said, process.returncode) == ("tidy\n", -signal.SIGINT)
    assert errors.endswith("KeyboardInterrupt\n")
    assert errors.count("Traceback") == 1
    assert next(iter(folder.both(WARM)))[0] == 0


def test_when_the_process_dies_programs_start_anew_and_cold(folder):
    sleeps = SLEEPS.replace("600", "600 * sys.orig_argv[1].endswith('warm_start.py')")
    process = folder.popen(f"import sys; {sleeps}", environment=folder.warm)
    copy = int(process.stdout.readline())
    warm_start._process.kill()
    again, errors = process.communicate(timeout=20)
    assert (errors, process.returncode) == ("", 0)
    assert int(again) != copy
    wait_for(lambda: is_gone(copy))
    assert [done[1] for done in folder.both(WARM)] == ["False\n"] * 2


def test_a_run_starts_warm_and_leaves_nothing_when_it_is_killed(tmp_path):
    source = pipeline.copy_source(tmp_path / "source")
    (source / "scripts/describe_results.py").write_text(f"{WARM}; {SLEEPS}", encoding="utf-8")
    log = tmp_path / "results/logs/describe_results.log"
    command = [sys.executable, "-m", "snakemake", "-s", str(source / "Snakefile"), "-d", str(tmp_path), "--cores", "3"]
    process = subprocess.Popen(
        [*command, "results/README.md", "results/provenance.json", CELL],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_for(lambda: log.exists() and log.read_text(encoding="utf-8").count("\n") == 2)
        warm, copy = log.read_text(encoding="utf-8").split()
        assert warm == "True"
        process.kill()
        process.wait()
        wait_for(lambda: is_gone(int(copy)))
        listed = ["ps", "-o", "pid=,args=", "-s", str(process.pid)]
        wait_for(lambda: not subprocess.run(listed, capture_output=True, text=True).stdout)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
