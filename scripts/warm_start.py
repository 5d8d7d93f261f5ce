"""Start the programs of a local run warm: as copies of one process that has imported the libraries already.

Importing NumPy, pandas, SciPy and Matplotlib takes a program 0.1 to 1.1 CPU seconds: a tenth of a default run with its
200 programs, and most of the time after an edit. So one process imports them, while the first programs run, and forks
for each program, which takes milliseconds. It knows libraries only, never a file of this project: those a copy reads
when it starts, as any program does.

A folder that comes first in PATH holds a `python` that hands its arguments, environment, folder and streams over
(`warm_client.py`). Where that cannot be, a program starts cold, without a word: in another environment than that of
the process (another number of threads, conda), on a cluster or another system, or after the process has died.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import marshal
import os
import runpy
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

LIBRARIES = (
    *("numpy", "numpy.random", "scipy.special", "yaml", "jinja2", "pandas", "scipy.optimize", "scipy.stats"),
    *("matplotlib.figure", "matplotlib.style", "matplotlib.backends.backend_svg", "matplotlib.backends.backend_pdf"),
    *("PIL.BmpImagePlugin", "PIL.GifImagePlugin", "PIL.JpegImagePlugin", "PIL.PpmImagePlugin", "pypdf", "ml_dtypes"),
)
"""What programs import, in about the order of a run. Between two of them, programs that wait are started."""
THREADS = (
    *("OMP_NUM_THREADS", "GOTO_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"),
)
"""Where Snakemake puts a job's number of threads; a job of more than one starts cold."""
TEMPORARY = ("TMPDIR", "TMP", "TEMPDIR", "TEMP")
SHELLS = ("_", "OLDPWD", "PWD", "SHLVL")
"""Variables that a shell sets anew."""
LIFELINE = 0
"""The standard input of the process, a pipe from Snakemake: it closes when Snakemake ends, in whatever way."""
DIE_WITH_PARENT = 1
"""Linux calls it PR_SET_PDEATHSIG."""

_process: subprocess.Popen | None = None


def start() -> None:
    """Start the process and let `python` mean a copy of it from now on, or leave all as it is."""
    global _process
    if not sys.platform.startswith("linux"):
        return
    folder, path = Path(tempfile.mkdtemp(prefix="sqrtdk-")), os.environ["PATH"]
    try:
        client = shlex.join([sys.executable, "-I", "-S", "-X", "utf8", str(Path(__file__).with_name("warm_client.py"))])
        program = folder / "python"
        program.write_text(f'#!/bin/sh\nexec {client} {folder}/socket "$@"\n', encoding="utf-8")
        program.chmod(0o700)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"{folder}/socket")
            listener.listen(128)
            os.environ["PATH"] = f"{folder}{os.pathsep}{path}"
            variables = dict.fromkeys(THREADS, "1") | dict.fromkeys(TEMPORARY, tempfile.gettempdir())
            _process = subprocess.Popen(
                [sys.executable, __file__, str(folder), str(listener.fileno())],
                pass_fds=[listener.fileno()],
                env=os.environ | variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
    except OSError:  # a folder whose name is too long for a socket, a full disk
        os.environ["PATH"] = path
        shutil.rmtree(folder, ignore_errors=True)


def stop() -> None:
    """End the process, if there is one; what it and its copies took is then counted as Snakemake's children's."""
    if _process is not None:
        _process.stdin.close()
        _process.wait()
        shutil.rmtree(_process.args[2], ignore_errors=True)  # had it been killed


class Copies:
    """The copies of this process that run now."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener, self.environment = listener, dict(os.environ)
        # Who interrupts a run means Snakemake and its programs.
        self.interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.running: dict[int, tuple[int, socket.socket]] = {}
        """A descriptor of each copy -> its number, and the connection to who waits for it."""
        self.poll = select.poll()
        self.poll.register(LIFELINE, select.POLLIN)
        self.poll.register(listener, select.POLLIN)

    def serve(self) -> list[str] | None:
        """Import the libraries and fork for each program until Snakemake ends: then return None.

        In each copy, return the arguments that it is to run with.
        """
        left, connected = list(LIBRARIES), True
        while connected or self.running:
            for descriptor, _ in self.poll.poll(0 if left and connected else None):
                if descriptor == LIFELINE:
                    connected = False
                    self.poll.unregister(LIFELINE)
                    for copy, _ in self.running.values():
                        os.kill(copy, signal.SIGKILL)
                elif descriptor in self.running:
                    self._report(descriptor)
                elif descriptor == self.listener.fileno():
                    connection, _ = self.listener.accept()
                    if not connected:
                        connection.send(_spelled(-signal.SIGKILL))
                    elif self._fork(connection) == 0:
                        return self._become(connection)
                else:
                    self._abandon(descriptor)
            if left and connected:
                with contextlib.suppress(ImportError):  # the program that needs it will say so
                    importlib.import_module(left.pop(0))
        return None

    def _fork(self, connection: socket.socket) -> int | None:
        """Return what fork does, or None where a copy would lack threads that hold locks, or cannot be."""
        gc.freeze()  # what is shared stays so: no collection writes to it
        try:
            copy = os.fork() if len(os.listdir("/proc/self/task")) == 1 else None
        except OSError:
            copy = None
        if copy:
            descriptor = os.pidfd_open(copy)
            self.running[descriptor] = copy, connection
            self.poll.register(descriptor, select.POLLIN)
            self.poll.register(connection, 0)  # that is: only its end is of interest
        return copy

    def _report(self, descriptor: int) -> None:
        copy, connection = self.running.pop(descriptor)
        code = os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
        self.poll.unregister(descriptor)
        self.poll.unregister(connection)
        os.close(descriptor)
        with connection, contextlib.suppress(OSError):
            connection.send(_spelled(code))

    def _abandon(self, connection: int) -> None:
        """Kill the copy that nobody waits for any more."""
        for copy, asked in self.running.values():
            if asked.fileno() == connection:
                os.kill(copy, signal.SIGKILL)

    def _become(self, connection: socket.socket) -> list[str]:
        """Take over the streams, the folder and the environment of who asked; return the arguments."""
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
        signal.signal(signal.SIGINT, self.interrupt)
        atexit.unregister(shutil.rmtree)  # what Matplotlib made for want of a home is not this copy's to remove
        for descriptor in self.running:  # sockets close by themselves, with this object
            os.close(descriptor)
        size, streams, *_ = socket.recv_fds(connection, 8, 3)
        with connection, connection.makefile("rb") as file:
            folder, environment, arguments = marshal.loads(file.read(int.from_bytes(size)))
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(folder)
        differ = dict(environment.items() ^ self.environment.items()).keys()
        if not differ <= set(SHELLS):
            os.execve(sys.executable, [sys.executable, *arguments], environment)
        os.environ.update(environment)
        sys.stdout.reconfigure(line_buffering=os.isatty(1))
        return arguments


def _spelled(code: int) -> bytes:
    return code.to_bytes(2, signed=True)


def run(arguments: list[str]) -> None:
    """Run a script as Python does that was started with it."""
    script = os.path.abspath(arguments[0])

    def explain(kind, error, trace) -> None:
        while trace and trace.tb_frame.f_code.co_filename != script:
            trace = trace.tb_next
        sys.__excepthook__(kind, error.with_traceback(trace), trace)

    sys.argv, sys.excepthook = arguments, explain
    sys.path[0] = os.path.dirname(os.path.realpath(script))
    runpy.run_path(script, run_name="__main__")


def main(folder: str, listener: str) -> None:
    """Serve, and in a copy run what was asked for. Both end at once: freeing what was imported would take longer."""
    done = False

    def leave() -> None:
        if done:
            sys.stdout.flush()
            os._exit(0)

    atexit.register(leave)  # registered first, called last
    arguments = Copies(socket.socket(fileno=int(listener))).serve()
    if arguments is None:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        run(arguments)
    done = True


if __name__ == "__main__":
    main(*sys.argv[1:])
