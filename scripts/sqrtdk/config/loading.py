"""Files of the configuration read, or refused with the reason, where YAML alone ends in a traceback or not at all."""

from pathlib import Path
from typing import Any

import yaml

from sqrtdk.config.messages import ConfigError, Problem, show

DEEPEST = 20
"""Brackets and mappings inside each other: a configuration has four."""
MOST = 100_000
"""Values of a file, those that an alias repeats counted each time."""
MERGE = "tag:yaml.org,2002:merge"
"""The tag of `<<`, a key without a value of its own."""
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
NO_VALUE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, yaml.YAMLError)
"""What YAML's constructors raise for a text that is none of their type, as `!!timestamp "x"` or 2024-13-45."""


def load_file(path: Path) -> dict[str, Any]:
    """Return the mapping that a file holds. Raises ConfigError with the one reason why there is none."""
    try:
        text = path.read_text(encoding="utf-8")
        value = _load(text)
    except OSError as error:
        raise _refusal(path, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise _refusal(path, f"is no text in UTF-8: byte {error.start} ({error.object[error.start]:#04x})") from None
    except yaml.MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise _refusal(path, f"is no YAML: {where}{error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise _refusal(path, f"is no YAML: {' '.join(str(error).split())}") from None
    if not isinstance(value, dict | None):
        raise _refusal(path, f"holds {show(value)}; allowed: a mapping of keys to values")
    return value or {}


def _refusal(path: Path, reason: str) -> ConfigError:
    return ConfigError([Problem(("configfile",), str(path), f"{path} {reason}")])


def _load(text: str) -> object:
    """Read YAML step by step, so that each is safe when the next begins; YAMLError, or ValueError with the line."""
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise ValueError(f"{_line(event)}: more than {DEEPEST} brackets inside each other")
    root = yaml.compose(text, Loader=LOADER)
    if root is None:
        return None
    if _size(root, {}) > MOST:
        raise ValueError(f"more than {MOST} values")
    _check_scalars(root, set())
    return yaml.load(text, Loader=LOADER)


def _line(place: Any) -> str:
    return f"line {place.start_mark.line + 1}"


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [child for pair in node.value for child in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """Return how many values a node has with its aliases written out; ValueError for one that contains itself."""
    if id(node) not in known:
        known[id(node)] = -1
        known[id(node)] = 1 + sum(_size(child, known) for child in _children(node))
    if known[id(node)] < 0:
        raise ValueError(f"{_line(node)}: an anchor that contains itself")
    return known[id(node)]


def _check_scalars(node: yaml.Node, seen: set[int]) -> None:
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode) and node.tag != MERGE:
        try:
            yaml.SafeLoader("").construct_document(node)
        except NO_VALUE:
            kind = node.tag.rpartition(":")[2]
            raise ValueError(f"{_line(node)}: {show(node.value)} is no {kind}") from None
    for child in _children(node):
        _check_scalars(child, seen)
