"""What the scripts share: a command line made from a function's signature, and files that are whole or absent."""

import argparse
import builtins
import contextlib
import csv
import gc
import importlib
import inspect
import io
import json
import math
import os
import time
from pathlib import Path

CPU_LINE = "CPU seconds: {} in the program, {} with its start and imports"
"""What each program says last, into its log."""
KEPT_MEMORY = 2**24
"""Bytes: arrays of up to half as much come and go without asking the system. Nothing is written there."""
_READ = {dict: json.loads, list: json.loads}


def run(main) -> None:
    """Call `main` with arguments read from the command line, one `--name value` for each parameter.

    Annotations say how a value is read: int, float, str, Path, `list[Path]` (several values), dict and list (JSON).
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


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file under a temporary name and rename it, so that a killed job leaves no half file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    temporary.write_bytes(content)
    temporary.replace(path)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text with LF line ends, whole or not at all."""
    write_bytes(path, text.encode())


def cell_text(value) -> str:
    """Spell one CSV value: full precision, lower-case truth values, and nothing for what does not exist."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return str(bool(value)).lower()
    if isinstance(value, float):
        return repr(float(value))
    return str(value)


def read_rows(path: Path) -> list[dict[str, str]]:
    """Read a CSV file as one dictionary of texts for each row."""
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, rows: list[dict], columns: tuple[str, ...] | None = None) -> None:
    """Write rows of equal keys as CSV with one header row; `columns` sets their order and allows no rows at all."""
    columns = columns or tuple(rows[0])
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        if row.keys() != set(columns):
            raise ValueError(f"a row of {path} differs in its columns: {sorted(row.keys() ^ set(columns))}")
        writer.writerow([cell_text(row[column]) for column in columns])
    write_text(path, text.getvalue())


def _is_fraction(value) -> bool:
    return isinstance(value, float) and not value.is_integer()


def write_frame(path: Path, frame, digits: int | None = None) -> None:
    """Write a data frame in the same spelling as `write_rows`; `digits` rounds reals to so many significant digits."""

    def spelled(value) -> str:
        if value is None or value != value:
            return ""
        return cell_text(float(f"{value:.{digits}g}") if digits and _is_fraction(value) else value)

    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(frame.columns)
    for row in frame.itertuples(index=False):
        writer.writerow([spelled(value) for value in row])
    write_text(path, text.getvalue())
