"""What tests make once for all workers of a session: the first that needs it makes it, the others wait and read it."""

import contextlib
import fcntl
import functools
import hashlib
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

folder: Path | None = None
"""Where the workers of this session share files."""


@contextlib.contextmanager
def turn(name: str) -> Iterator[Path]:
    """Give the path of something shared to one worker at a time."""
    with (folder / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield folder / name


def shared(make: Callable) -> Callable:
    """Make what a function returns for these arguments once in a session."""

    @functools.wraps(make)
    def found(*arguments, **named):
        key = hashlib.sha256(repr((arguments, sorted(named.items()))).encode()).hexdigest()[:16]
        with turn(f"{make.__module__}.{make.__qualname__}-{key}") as path:
            if not path.exists():
                path.write_bytes(pickle.dumps(make(*arguments, **named)))
            return pickle.loads(path.read_bytes())

    return found
