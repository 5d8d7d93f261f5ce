"""What reading YAML files and `--config` loses before the values arrive: repeated keys, spellings, text, order."""

import math
import re
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from sqrtdk.config.messages import Problem, show
from sqrtdk.config.values import NUMBER, is_removed

QUOTED = re.compile(r"""(["'])((?:(?!\1).)*)\1""", re.DOTALL)
CACHED = "snakemake-runtime-cache"


def file_problems(path: Path | str) -> list[Problem]:
    """List what YAML resolves silently in a configuration file: repeated keys, and numbers read as other numbers.

    YAML keeps the last of two equal keys, and reads 010 as 8, 0x10 as 16, 1_000 as 1000 and 1:30 as 90.
    """
    return _node_problems(_compose_file(path), _file_name(path))


def file_names(path: Path | str) -> dict[str, list[str]]:
    """Return the names of the entries under each top-level key of a configuration file, in the order of the file."""
    return {
        key.value: [name.value for name, entry in _pairs(value) if not is_removed(name.value, entry.value)]
        for key, value in _pairs(_compose_file(path))
        if key.id == "scalar"
    }


def argument_problems(arguments: Iterable[str], texts: Container[str] = ()) -> list[Problem]:
    """List what Snakemake resolves silently in `--config key=value ...`.

    These are keys given twice, at any depth, and numbers read from spellings such as 1_000, but for keys of `texts`.
    """
    problems: list[Problem] = []
    seen: dict[str, Any] = {}
    for key, text in map(_split, arguments):
        unquoted = text.strip("'\"")
        if key not in texts and _is_odd_number(text):
            problems.append(Problem((key,), text, "read as another spelling of a number; write it in plain digits"))
        if key in seen and not (unquoted.startswith("{") and seen[key].startswith("{")):
            problems.append(Problem((key,), text, f"given twice on the command line, before as {show(seen[key])}"))
        seen[key] = unquoted
        if unquoted.startswith(("{", "[")):
            problems += _node_problems(_compose(unquoted), "", (key,))
    return problems


def empty_problems(
    files: Iterable[Path | str], arguments: Iterable[str], schema: Mapping[str, Any], given: Mapping[str, Any]
) -> list[Problem]:
    """List the keys that an overlay or `--config` gives an empty mapping, which merging drops without a word.

    `files` are those that were merged into the workflow's own, and `given` is what came out.
    """
    nodes = [(key.value, value) for path in files for key, value in _pairs(_compose_file(path))]
    nodes += [(key, _compose(text.strip("'\""))) for key, text in map(_split, arguments)]
    problems = []
    for key, node in nodes:
        part = schema["properties"].get(key) if isinstance(key, str) else None
        if part and node is not None and node.id == "mapping" and not node.value and given.get(key) != {}:
            named = isinstance(part.get("additionalProperties"), Mapping)
            words = "changes nothing, since entries are merged; null takes out " + (
                "an entry by its name" if part.get("minProperties") else "all of them, or one by its name"
            )
            problems.append(Problem((key,), {}, words if named else "changes nothing; leave it out, or give a value"))
    return problems


def literal_texts(arguments: Iterable[str], schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of `--config` whose key holds text exactly as given, without one pair of quotes around all.

    Snakemake reads `title=007` and `title="007"` as 7, and `title=Attention #1` as `Attention`.
    """
    keys = {key for key, part in schema["properties"].items() if part.get("type") == "string"}
    texts = {key: text for key, text in map(_split, arguments) if key in keys}
    return {key: quoted[2] if (quoted := QUOTED.fullmatch(text)) else text for key, text in texts.items()}


def _is_odd_number(text: str) -> bool:
    try:
        return math.isfinite(float(text)) and not NUMBER.fullmatch(text)
    except ValueError:
        return False


def _split(argument: str) -> tuple[str, str]:
    key, _, text = argument.partition("=")
    return key, text


def _file_name(path: Path | str) -> str:
    """Name a file for people: Snakemake hands on a copy of the workflow's own file in its cache."""
    path = Path(path)
    if CACHED in path.parts:
        return "/".join(path.parts[-2:])
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _compose_file(path: Path | str) -> Any:
    try:
        return _compose(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _compose(text: str) -> Any:
    """Parse YAML (or JSON) to nodes that still hold every key and spelling; None where it is none."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.compose(text, Loader=loader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _pairs(node: Any) -> list[Any]:
    return node.value if node is not None and node.id == "mapping" else []


def _node_problems(node: Any, file: str, path: tuple[Any, ...] = ()) -> list[Problem]:
    """List the problems of a file or, with no name of one, of a value on the command line."""
    found, todo, visited = [], [(path, node)], set()
    while todo:
        path, node = todo.pop()
        # An anchor lets a node contain itself.
        if node is None or id(node) in visited:
            continue
        visited.add(id(node))
        if node.id == "sequence":
            todo += [((*path, position), item) for position, item in enumerate(node.value)]
        elif node.id == "scalar" and file and _is_respelled(node):
            allowed = (
                f"YAML reads another number from this spelling ({file}, line {_line(node)}); write it in plain digits"
            )
            found.append((_line(node), Problem(path, node.value, allowed)))
        elif node.id == "mapping":
            first: dict[str, Any] = {}
            for key, value in node.value:
                step = key.value if key.id == "scalar" else "?"
                if step in first and step not in ("?", "<<"):
                    lines = f"in {file}, line {_line(key)}, and before in line {_line(first[step])}"
                    words = f"given twice {lines if file else 'on the command line'}"
                    found.append((_line(key), Problem((*path, step), _outline(value), words)))
                first.setdefault(step, key)
                todo.append(((*path, step), value))
    return [problem for _, problem in sorted(found, key=lambda pair: (pair[0], pair[1].key))]


def _is_respelled(node: Any) -> bool:
    # Infinity and NaN are refused with the values.
    number = node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
    return number and not NUMBER.fullmatch(node.value) and not node.value.lower().lstrip("+-").startswith((".i", ".n"))


def _outline(node: Any) -> object:
    """Return what a node says, for a message only: scalars as text, dots for what YAML cannot make of it."""
    try:
        return yaml.BaseLoader("").construct_document(node)
    except yaml.YAMLError:
        return "..."


def _line(node: Any) -> int:
    return node.start_mark.line + 1
