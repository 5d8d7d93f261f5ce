"""Have the process of `warm_start.py` run a job's program, or start it cold: warm_client.py SOCKET SCRIPT ARGUMENT...

Each job starts it, so that it loads nothing that it can do without: `socket` alone would double its time.
"""

import _socket
import marshal
import os
import sys


def run(socket: str, arguments: list[str]) -> int:
    """Return the exit code of a warm program, or minus the signal that ended it; OSError if none ran to its end."""
    connection = _socket.socket(_socket.AF_UNIX)
    connection.connect(socket)
    asked = marshal.dumps((os.getcwd(), dict(os.environ), arguments))
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    connection.sendmsg([len(asked).to_bytes(8)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    connection.sendall(asked)
    while True:
        try:
            answer = connection.recv(2)
            break
        except KeyboardInterrupt:
            pass  # the program is interrupted as well, and will say how it ended
    if not answer:
        raise ConnectionError
    return int.from_bytes(answer, signed=True)


if __name__ == "__main__":
    _, socket, *arguments = sys.argv
    try:
        if not arguments or not arguments[0].endswith(".py"):
            raise OSError("no script")
        code = run(socket, arguments)
    except OSError:
        os.execv(sys.executable, [sys.executable, *arguments])
    if code < 0:
        # To whoever waits, this process is the program.
        import signal

        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)
