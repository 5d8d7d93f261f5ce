"""What the scripts share: a command line made from a function's signature."""

import argparse
import builtins
import contextlib
import gc
import importlib
import inspect
import json
import resource
import time
from pathlib import Path
from typing import NewType

MEMORY_LINE = "Memory: {} MB at most"
CPU_LINE = "CPU seconds: {} in the program, {} with its start and imports"
"""What each program says last, into its log."""
KEPT_MEMORY = 2**24
"""Bytes: arrays of up to half as much come and go without asking the system. Nothing is written there."""
Text = NewType("Text", str)
"""Words of anybody, which may hold what is code elsewhere: they come as JSON."""
_READ = {dict: json.loads, list: json.loads, Text: json.loads}


def run(main) -> None:
    """Call `main` with arguments read from the command line, one `--name value` for each parameter.

    Annotations say how a value is read: int, float, str, Path, `list[Path]` (several values), dict, list, Text (JSON).
    """
    parser = argparse.ArgumentParser(description=inspect.getdoc(main), allow_abbrev=False)
    for name, parameter in inspect.signature(main).parameters.items():
        kind = parameter.annotation
        several = kind == list[Path]
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=Path if several else _READ.get(kind, kind),
            nargs="*" if several else None,
            required=parameter.default is inspect.Parameter.empty,
            default=None if parameter.default is inspect.Parameter.empty else parameter.default,
        )
    arguments = vars(parser.parse_args())
    # Once as much was given back, glibc keeps what arrays give back for the next ones, whose pages need not be zeroed.
    bytes(KEPT_MEMORY)
    before = time.process_time()
    with importing() as imports:
        main(**arguments)
    after = time.process_time()
    print(MEMORY_LINE.format(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024))
    print(CPU_LINE.format(f"{after - before - sum(imports):.3f}", f"{after:.3f}"))
    gc.freeze()  # the end of a process gives all memory back: no need to look through it for what could be freed


@contextlib.contextmanager
def importing():
    """Give a list that is added the CPU seconds of each import inside, of nested ones the outermost.

    Python tells nobody else what an import takes. In a quick run those inside functions are 8 s where the work is 29 s:
    counted as work, they would make the share of kernels and the price of small jobs in a plan wrong.
    """
    found, inside = [], False

    def timed(load):
        def timed_load(*arguments, **named):
            nonlocal inside
            if inside:
                return load(*arguments, **named)
            inside, before = True, time.process_time()
            try:
                return load(*arguments, **named)
            finally:
                found.append(time.process_time() - before)
                inside = False

        return timed_load

    originals = builtins.__import__, importlib.import_module
    builtins.__import__, importlib.import_module = map(timed, originals)
    try:
        yield found
    finally:
        builtins.__import__, importlib.import_module = originals
