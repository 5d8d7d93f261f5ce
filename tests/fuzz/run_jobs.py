"""Run the jobs that Snakemake plans in this one process, which saves starting hundreds: run_jobs.py FOLDER OPTIONS...

What a job prints goes to its log, as in a run; the first one that fails ends all with its log.
"""

import contextlib
import gc
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMAND = re.compile(r"^Shell command: python (.*\.py .*) > (\S+|'[^']*') 2>&1$", re.MULTILINE)


def planned(folder: Path, *options: str) -> list[str]:
    """Return the commands of a run in an order in which each has its inputs."""
    command = [sys.executable, "-m", "snakemake", "-n", "-p", "--cores", "1", "--workflow-profile", "none"]
    done = subprocess.run(
        [*command, "-s", str(ROOT / "Snakefile"), "-d", str(folder), *options],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return COMMAND.findall(done.stdout)


def run(arguments: list[str], log: Path) -> None:
    """Run one program with its arguments."""
    for name in [*arguments, str(log)]:
        if name.startswith("results/"):
            Path(name).parent.mkdir(parents=True, exist_ok=True)
    sys.argv = arguments
    with log.open("w", encoding="utf-8") as file, contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
        runpy.run_path(arguments[0], run_name="__main__")
    gc.unfreeze()
    gc.collect()


def main(folder: Path, *options: str) -> None:
    os.chdir(folder)
    sys.path.insert(0, str(ROOT / "scripts"))
    for command, log in planned(folder, *options):
        try:
            run(shlex.split(command), Path(*shlex.split(log)))
        except (Exception, SystemExit) as error:
            error.add_note(f"in: python {command[:300]}")
            raise


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
