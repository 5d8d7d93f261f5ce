"""What the workflow asks about itself: which source files a script depends on, which commit it is."""

import functools
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from sqrtdk.results import dictionary

SCRIPTS = Path(__file__).resolve().parent
LIBRARY = "sqrtdk"
LOADS_ITS_FOLDER = ("sqrtdk/sampling/ensembles/__init__.py",)
"""Packages that import whatever modules lie beside them, which no import statement shows."""
CHANGES_PROGRAMS = (
    *("PYTHONDONTWRITEBYTECODE", "PYTHONINSPECT", "PYTHONIOENCODING", "PYTHONOPTIMIZE", "PYTHONSAFEPATH"),
    *("PYTHONWARNINGS", "BASH_ENV"),
)
"""Variables under which a program finds no modules, stops at a warning, waits at its end, or is another one."""

_IMPORT = re.compile(
    r"^[ \t]*(?:import[ \t]+([\w., \t]+)|from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^\n#]*))", re.MULTILINE
)
"""An import statement. Parsing the files takes fifteen times as long, half a second at each start of Snakemake."""


def source_files(*starts: str) -> list[str]:
    """Return the files that these files import from this folder, directly or not, themselves included.

    Paths are relative to this folder and sorted. Imports are read and not run; one inside a function counts.
    A package stands for all of its modules only where it imports them by name.
    Snakemake tracks no import, and Python's modulefinder follows those that are for type checkers alone.
    """
    found, todo = set(), [*starts]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += _imports(name)
    return sorted(found)


def source_hash(*starts: str) -> str:
    """Return one hash of the names and contents of `source_files`."""
    return contents_hash({name: SCRIPTS / name for name in source_files(*starts)})


def contents_hash(files: Mapping[str, Path]) -> str:
    """Return one hash of the names and contents of files."""
    digest = hashlib.sha256()
    for name, path in files.items():
        content = path.read_bytes()
        digest.update(f"{name} {len(content)} ".encode() + content)
    return digest.hexdigest()


def columns_hash(files: Iterable[str]) -> str:
    """Return one hash of the columns, their order and types, of the described tables among some files."""
    tables = {name: dictionary.FILES[name].columns for file in files if (name := Path(file).name) in dictionary.FILES}
    types = [(name, column, field.type) for name in sorted(tables) for column, field in tables[name].items()]
    return hashlib.sha256(repr(types).encode()).hexdigest()


@functools.cache
def _imports(name: str) -> tuple[str, ...]:
    path = SCRIPTS / name
    package = list(Path(name).parent.parts)
    modules = []
    for plain, dots, base, names in _IMPORT.findall(path.read_text(encoding="utf-8")):
        if plain:
            modules += [_parts(text) for text in plain.split(",")]
            continue
        start = package[: len(package) - len(dots) + 1] if dots else []
        start = start + (base.split(".") if base else [])
        listed = re.sub(r"#.*", "", names).strip("()\n ")
        modules += [start, *([*start, *_parts(text)] for text in listed.split(",") if text.strip())]
    files = {file for parts in modules if parts for file in _files(tuple(parts))}
    if name in LOADS_ITS_FOLDER:
        files |= {str(module.relative_to(SCRIPTS)) for module in path.parent.glob("*.py")}
    return tuple(sorted(files))


def _parts(text: str) -> list[str]:
    """Return the parts of a dotted name, which may have another in the file."""
    return text.split(" as ")[0].strip().split(".")


@functools.cache
def _files(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Files that importing a dotted name runs: each package on the way and the module itself.

    The faces of the library and of its rooms hold names and no numbers: what they name is followed, they are not.
    """
    files = []
    for end in range(1 if parts[0] != LIBRARY else 3, len(parts) + 1):
        folder = SCRIPTS.joinpath(*parts[:end])
        for file in (folder / "__init__.py", folder.with_suffix(".py")):
            if file.is_file():
                files.append(str(file.relative_to(SCRIPTS)))
    return tuple(files)


def use_this_python() -> None:
    """Let jobs find the Python that runs Snakemake, also when its environment was not activated, and run undisturbed.

    Hundreds of them load the same modules: what the first one compiles is kept, as Python does unless told otherwise.
    """
    for name in CHANGES_PROGRAMS:
        os.environ.pop(name, None)
    os.environ["PYTHONUTF8"] = "1"
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


def unusable(source: Path) -> str | None:
    """Say why nothing can run from a source folder, or under what this Python inherited, or return None."""
    if set("{}") & set(str(source.resolve())):
        return (
            "The path of the source has braces in it, which Snakemake would read as its own; nothing was run.\n"
            f"  {source.resolve()}\n      rename the folder, or move the source to another one"
        )
    if (encoding := sys.getfilesystemencoding()) != "utf-8":
        return (
            f"Python was told to write text as {encoding}, which lacks signs of the report; nothing was run.\n"
            "      set PYTHONUTF8=1, or choose a locale of UTF-8, such as LC_ALL=C.UTF-8"
        )
    return None


def commit() -> str:
    """Return the commit of the source and whether it was changed since; `unknown` where it is no repository itself.

    A repository around the source, or one that the environment names, is another one's. Who owns the files does not
    matter: git asks for that before it obeys a repository's settings, but here the repository's own code runs already.
    """
    root = SCRIPTS.parent
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}

    def git(*arguments: str) -> str:
        # Naming both folders keeps git from looking for them; without locks, reading writes nothing.
        command = ["git", "--no-optional-locks", f"--git-dir={root / '.git'}", f"--work-tree={root}", *arguments]
        done = subprocess.run(command, capture_output=True, check=True, cwd=root, env=environment)
        return os.fsdecode(done.stdout).strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no") or set(code_files()) - set(
            git("ls-files", "-z").split("\0")
        )
        return git("rev-parse", "HEAD") + (" with uncommitted changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def unrecorded(folder: Path, settings: Mapping) -> str | None:
    """Say why a run cannot go on from the results that lie in a folder, or return None.

    Snakemake keeps in .snakemake what each file was made from. Without that, as in a folder into which results were
    copied, it takes any file that exists for one of this run, whatever the seed.
    """
    results, kept = folder / "results", folder / ".snakemake"
    recorded = any(path.is_file() for part in ("metadata", "incomplete") for path in (kept / part).rglob("*"))
    if recorded or not any(path.is_file() for path in (results / "cells").rglob("*")):
        return None
    try:
        made = json.loads((results / "provenance.json").read_text(encoding="utf-8"))["configuration"]
        other = [key for key, value in json.loads(json.dumps(settings)).items() if made.get(key) != value]
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        other = ["results/provenance.json is missing"]
    if not other:
        return None
    return (
        "There are results here that may belong to another run; nothing was run.\n"
        f"  {results.resolve()}\n      has no record in {kept.resolve()} of what it was made from, and its "
        f"configuration is not the one given now ({', '.join(other)})\n      move it away, or bring its .snakemake back"
    )


def code_files() -> list[str]:
    """Return the files that the results are made from, relative to the scripts' folder's parent and sorted."""
    root = SCRIPTS.parent
    patterns = ("Snakefile", "workflow/**/*.smk", "workflow/**/*.yaml", "scripts/**/*.py", "report/**/*")
    found = {path.relative_to(root) for pattern in patterns for path in root.glob(pattern) if path.is_file()}
    return sorted(str(path) for path in found if "__pycache__" not in path.parts)
