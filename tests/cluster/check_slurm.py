"""Run the workflow on a Slurm cluster of this machine and compare every result with a local run, byte by byte.

    make test-cluster

The cluster has two nodes and no accounting. While the run goes on, one job is cancelled and another one's processes
are killed; both must be retried, and the run must end well. Needs root and Debian, for Slurm is installed with apt.

    python tests/cluster/check_slurm.py --configfile config/quick.yaml --folder elsewhere --local finished/run
"""

import argparse
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import local_slurm

ROOT = Path(__file__).resolve().parents[2]
PROFILE = ROOT / "profiles/slurm"
OF_ONE_RUN = ("run.json", "logs")
"""Times and memory, which no two runs share."""
VICTIMS = ("cancelled", "killed")


def main(configfile: Path, folder: Path, local: Path | None) -> None:
    """Raise SystemExit with the reason unless the cluster's results are those of a local run."""
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--configfile", str(configfile.resolve())]
    if local is None:
        local = folder / "local"
        say(f"running locally in {local}")
        run = _start(local, [*options, "--cores", str(os.cpu_count())], dict(os.environ))
        _demand(run.wait() == 0, f"the local run failed: see {local}.log")
    local_slurm.install()
    with local_slurm.Cluster(folder / "slurm") as cluster:
        say(cluster.run("sinfo", "--version") + ": " + cluster.run("sinfo", "--noheader"))
        distributed = folder / "cluster"
        run = _start(distributed, [*options, "--workflow-profile", str(PROFILE)], cluster.environment)
        try:
            hit = _disturb(cluster, run)
            _demand(run.wait() == 0, f"the run on the cluster failed: see {distributed}.log")
        finally:
            run.kill()  # where something else went wrong; one that has ended stays so
        jobs = {job["JobId"]: job for job in cluster.completed()}
    _report(jobs, hit, Path(f"{distributed}.log").read_text(encoding="utf-8"))
    _compare(digests(local / "results"), digests(distributed / "results"))
    say("the cluster's results are those of the local run")


def _start(folder: Path, options: list[str], environment: dict[str, str]) -> subprocess.Popen:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--directory", str(folder)]
    with Path(f"{folder}.log").open("wb") as log:
        return subprocess.Popen([*command, *options], env=environment, cwd=folder, stdout=log, stderr=log)


def _disturb(cluster: local_slurm.Cluster, run: subprocess.Popen) -> dict[str, str]:
    """Cancel the first job that is well under way and kill the processes of the next; return what was done to which."""
    hit: dict[str, str] = {}
    while run.poll() is None and len(hit) < len(VICTIMS):
        time.sleep(0.5)
        for job in cluster.run("squeue", "--noheader", "--states=RUNNING", "--format=%i").split():
            processes = cluster.processes(job)
            # Snakemake is among them from the start; with a program of the workflow the job is half-way.
            if job in hit.values() or len(processes) < 2 or len(hit) == len(VICTIMS):
                continue
            deed = VICTIMS[len(hit)]
            hit[deed] = job
            if deed == "cancelled":
                cluster.run("scancel", job)
            else:
                for process in processes:
                    os.kill(process, signal.SIGKILL)
            say(f"job {job}: {deed} with {len(processes)} processes running")
    return hit


def _report(jobs: dict[str, dict], hit: dict[str, str], log: str) -> None:
    """Say how the jobs ended, and demand that only those failed that were meant to, and that both were retried."""
    states = {job: record["JobState"] for job, record in jobs.items()}
    counts = {state: list(states.values()).count(state) for state in sorted(set(states.values()))}
    nodes = {record["NodeList"] for record in jobs.values()}
    say(f"{len(jobs)} jobs on {', '.join(sorted(nodes))}: {counts}")
    _demand(set(hit) == set(VICTIMS), f"the run was over before two jobs were disturbed: {hit}")
    _demand(nodes == set(local_slurm.NODES), "not every node was used")
    wanted = {hit["cancelled"]: "CANCELLED", hit["killed"]: "FAILED"}
    ended_badly = {job: state for job, state in states.items() if state != "COMPLETED"}
    _demand(ended_badly == wanted, f"jobs that ended badly: {ended_badly}, not {wanted}")
    restarts = log.count("Trying to restart job")
    say(f"{restarts} jobs were retried")
    _demand(restarts == len(hit), "a disturbed job was not retried")


def digests(results: Path) -> dict[str, str]:
    """Return the SHA-256 of every file that must not depend on where and when it was made."""
    return {
        str(path.relative_to(results)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(results.rglob("*"))
        if path.is_file() and path.relative_to(results).parts[0] not in OF_ONE_RUN
    }


def _compare(here: dict[str, str], there: dict[str, str]) -> None:
    only = sorted(here.keys() ^ there.keys())
    different = sorted(name for name in here.keys() & there.keys() if here[name] != there[name])
    say(f"{len(here)} files compared: {len(different)} differ, {len(only)} are on one side only")
    _demand(bool(here) and not only and not different, "\n".join([*only, *different]) or "nothing to compare")


def say(text: str) -> None:
    print(time.strftime("%H:%M:%S"), text, flush=True)


def _demand(condition: bool, otherwise: str) -> None:
    if not condition:
        sys.exit(f"FAILED: {otherwise}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--configfile", type=Path, default=ROOT / "config/quick.yaml")
    parser.add_argument("--folder", type=Path, default=None, help="where to run; a temporary folder if not given")
    parser.add_argument("--local", type=Path, default=None, help="folder of a finished local run to compare with")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    main(arguments.configfile, arguments.folder or Path(tempfile.mkdtemp(prefix="sqrtdk-cluster-")), arguments.local)
