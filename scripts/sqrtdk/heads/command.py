"""The command `sqrtdk audit`. Exit code 0: no bug, 1: a bug, 2: input that cannot be used."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from sqrtdk.heads.errors import InputError

EPILOG = """examples:
  sqrtdk audit heads.npz --scale "1/sqrt(d_k)"
  sqrtdk audit step0.safetensors step900.safetensors --scale 0.125 --mask causal --html verdict.html
  sqrtdk audit capture.npz                  # saved by sqrtdk.capture: scale and mask are in it
  sqrtdk audit q.npy k.npy scores.npy --layout BHSD --stage init

A file holds q and k (or query and key), scores (logits as they enter softmax), or all three, and may hold a mask; names
may carry a layer, as in layers.3.q. Exit code: 0 healthy, notes or warnings, 1 at least one bug,
2 unusable input."""


def parser() -> argparse.ArgumentParser:
    """Return the command line of the audit."""
    found = argparse.ArgumentParser(
        prog="sqrtdk audit",
        description="Judge attention heads from their queries and keys, or their scores.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = found.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help=".npz, .safetensors, .pt, or .npy named for what it holds")
    add(
        "--scale",
        help="what the model multiplies q·k by, where the file does not say: a number, code as d_k**-0.5 or "
        "1/math.sqrt(64), a rule as 1/sqrt(d_k) or none, or one for each layer as 0.125, 0.1",
    )
    add(
        "--convention",
        help="what is right: such a scale, or pre-scaled, split, folded, mup, learned, normalised; by default "
        "1/sqrt(d_k), assumed",
    )
    add("--stage", choices=("init", "trained", "unknown"), default="unknown", help="when q and k were captured")
    add("--mask", default="auto", metavar="causal|FILE|auto", help="auto: from the file or the scores, else none")
    add("--layout", default="auto", help="axes of q and k, in letters of batch, head, sequence, d_k, layer: BSHD, ...")
    add("--d-model", type=_count, metavar="N", help="width of the model, to explain a wrong scale")
    add("--num-heads", type=_count, metavar="N", help="heads of the model, where the file has only some")
    add("--d-v", type=_count, metavar="N", help="width of the values of one head")
    add("--json", action="store_true", help="print the verdict as JSON")
    add("--quiet", action="store_true", help="print the first line alone")
    add("--fail-on", choices=("bug", "warning"), default="bug", help="what gives exit code 1, beside a bug")
    add("--csv", type=Path, metavar="OUT", help="write all facts of all heads as CSV")
    add("--html", type=Path, metavar="OUT", help="write the verdict as an HTML page")
    return found


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("has to be at least 1")
    return value


def main(arguments: list[str] | None = None) -> int:
    """Audit the files of a command line and return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal of ASCII gets \u00b7 in place of an error.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    given = parser().parse_args(arguments)
    # Imported here, so that --help needs no NumPy.
    from sqrtdk.heads import page
    from sqrtdk.heads.judgement import audit

    names = ("scale", "convention", "stage", "mask", "layout", "d_model", "num_heads", "d_v")
    try:
        _check_outputs(given)
        found = audit(given.files, progress=_progress(), **{name: getattr(given, name) for name in names})
        if given.csv:
            _write(given.csv, page.table_text(found.heads))
        if given.html:
            _write(given.html, page.page(found.heads, found.assumed))
    except InputError as error:
        print(f"sqrtdk audit: {printable(str(error))}", file=sys.stderr)
        return 2
    text = page.terminal(found.heads, found.assumed, found.took, found.unchecked)
    if given.json:
        text = found.to_json()
    elif given.quiet:
        text = page.headline(found.heads)
    try:
        print(text if given.json else printable(text), flush=True)
    except BrokenPipeError:
        # The reader, such as head, has seen enough; the verdict stands.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(found.has("bug") or found.has(given.fail_on))


def _progress() -> Callable[[int, int, float], None] | None:
    """Return what tells a person how far it is and how long it will take; None where nobody looks."""
    if not sys.stderr.isatty():
        return None
    told = [0.0]

    def tell(done: int, count: int, seconds: float) -> None:
        if seconds > 5 and (seconds - told[0] > 1 or done == count):
            told[0] = seconds
            rest = seconds * (count - done) / done
            words = f"head {done} of {count}, about {rest:.0f} s left" if done < count else ""
            print(f"\r{words:50}" + ("" if words else "\r"), end="", file=sys.stderr, flush=True)

    return tell


def printable(text: str) -> str:
    """Return text whose control characters, which a file or an array may be named with, are spelled out."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def _check_outputs(given: argparse.Namespace) -> None:
    """Refuse to write over a file that is read, or over the other output."""
    taken = [(path, "is an input") for path in given.files]
    if given.mask not in ("auto", "causal"):
        taken.append((Path(given.mask), "is the mask"))
    for option in ("csv", "html"):
        path = getattr(given, option)
        if path is None:
            continue
        for other, words in taken:
            if _same_file(path, other):
                raise InputError(f"--{option} {path}: {words}, which would be overwritten")
        taken.append((path, f"is the file of --{option}"))


def _same_file(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except ValueError:
        return one == other
    except OSError:
        # One does not exist yet, which a link may still point at.
        return os.path.realpath(one) == os.path.realpath(other)


def _write(path: Path, text: str) -> None:
    try:
        # Names of files need not be UTF-8.
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
