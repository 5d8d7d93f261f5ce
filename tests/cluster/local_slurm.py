"""A Slurm cluster of two nodes on this machine, of its own: controller, node daemons and authentication in one folder.

Debian's packages are installed where they are missing, which needs root. Nothing of an existing Slurm or munge is
touched: sockets, ports, state and logs are the folder's, and only the processes started here are stopped.
"""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

PACKAGES = ("slurm-wlm", "munge")
NODES = ("n1", "n2")
# No accounting. The machine's cores are given to both nodes, since a test of scheduling need not wait for a core.
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
ReturnToService=2
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/completed.txt
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs={cpus} RealMemory={memory}
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs={cpus} RealMemory={memory}
PartitionName=test Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP
"""


def install() -> None:
    """Install Slurm and munge with apt where they are missing."""
    if all(shutil.which(program, path=_path()) for program in ("slurmctld", "slurmd", "munged", "sbatch")):
        return
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "-q", "update"], check=True)
    command = ["apt-get", "-q", "install", "-y", "--no-install-recommends", *PACKAGES]
    subprocess.run(command, check=True, env=environment)


class Cluster:
    """Start the daemons on entry and stop them on exit; `environment` lets commands find this cluster."""

    def __init__(self, folder: Path):
        self.folder = folder
        path = os.pathsep.join([str(folder / "bin"), _path()])
        self.environment = os.environ | {"PATH": path, "SLURM_CONF": str(folder / "slurm.conf")}
        self._daemons: list[subprocess.Popen] = []

    def __enter__(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        # munged refuses a folder that others may write to, and clients need to reach its socket.
        self.folder.chmod(0o755)
        (self.folder / "state").mkdir()
        self._configure()
        try:
            self._start_all()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._cancel_all()
        for daemon in reversed(self._daemons):
            daemon.terminate()
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def _cancel_all(self) -> None:
        """End what still runs after a failure, which would outlive the daemons."""
        if any(daemon.poll() is None for daemon in self._daemons[1:2]):
            subprocess.run(["scancel", "--partition=test"], env=self.environment, timeout=60, check=False)
            _wait(lambda: not self.run("squeue", "--noheader"), "an end of all jobs", 60)

    def run(self, *command: str) -> str:
        """Return what a Slurm command prints."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def completed(self) -> list[dict[str, str]]:
        """Return what the controller recorded of every job that ended: JobId, JobState, NodeList and more."""
        record = self.folder / "completed.txt"
        lines = record.read_text(encoding="utf-8").splitlines() if record.exists() else []
        return [dict(part.split("=", 1) for part in line.split() if "=" in part) for line in lines]

    def processes(self, job: str) -> list[int]:
        """Return the processes of a job's steps, without those of the batch script around them."""
        wanted = {f"SLURM_CONF={self.folder}/slurm.conf", f"SLURM_JOB_ID={job}"}
        found = {int(folder.name): _environment(folder) for folder in Path("/proc").glob("[0-9]*")}
        return [
            process
            for process, variables in found.items()
            if wanted <= variables and any(one.startswith("SLURM_STEP_ID=") for one in variables)
        ]

    def _configure(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        memory = int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20 * 0.45)
        settings = dict(folder=self.folder, host=_hostname(), ports=_free_ports(3), cpus=os.cpu_count(), memory=memory)
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(**settings))

        # Jobs start their steps without the variable that says where the configuration is: it is in /etc elsewhere.
        srun = self.folder / "bin/srun"
        srun.parent.mkdir()
        srun.write_text(f'#!/bin/sh\nSLURM_CONF={self.folder}/slurm.conf exec {shutil.which("srun")} "$@"\n')
        srun.chmod(0o755)

    def _start_all(self) -> None:
        own = {name: self.folder / f"munged.{name}" for name in ("log", "pid", "seed")}
        options = [f"--{name}-file={path}" for name, path in own.items()]
        socket_, key = self.folder / "munge.socket", self.folder / "munge.key"
        self._start("munged", "--foreground", "--force", f"--socket={socket_}", f"--key-file={key}", *options)
        _wait(socket_.exists, "munged")
        self._start("slurmctld", "-D")
        for node in NODES:
            (self.folder / f"spool-{node}").mkdir()
            self._start("slurmd", "-D", "-N", node)
        _wait(self._idle, "the nodes", 60)

    def _start(self, program: str, *arguments: str) -> None:
        with (self.folder / f"{program}.out").open("ab") as log:
            command = [program, *arguments]
            self._daemons.append(subprocess.Popen(command, env=self.environment, stdout=log, stderr=log))

    def _idle(self) -> bool:
        done = subprocess.run(
            ["sinfo", "--noheader", "--Node", "--format=%N %T"], env=self.environment, capture_output=True, text=True
        )
        return done.returncode == 0 and sorted(done.stdout.split("\n")[:-1]) == [f"{node} idle" for node in NODES]


def _path() -> str:
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def _environment(process: Path) -> set[str]:
    try:
        return set((process / "environ").read_text(errors="replace").split("\0"))
    except OSError:  # it has ended meanwhile
        return set()


def _hostname() -> str:
    return socket.gethostname().partition(".")[0]


def _free_ports(n: int) -> list[int]:
    sockets = [socket.socket() for _ in range(n)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _wait(ready, what: str, seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > until:
            raise TimeoutError(f"{what} did not come in {seconds:.0f} s: see the logs of the daemons")
        time.sleep(0.2)
