"""The schema of the configuration, and its violations in plain words."""

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from sqrtdk.config.messages import MISSING, Problem, show
from sqrtdk.config.values import EXACT_FLOAT, plain_step, read_list, read_mapping
from sqrtdk.figures.targets import TARGETS
from sqrtdk.sampling.parameters import nearest_name
from sqrtdk.training import optimisers, rules, tasks
from sqrtdk.variants import notation

DEFAULTS = "config.default.yaml"
"""What config.yaml says as it comes with the project, whatever a user makes of it: `make docs` copies it."""
REGISTRIES: dict[str, Callable[[], Iterable[str]]] = {
    "targets": lambda: list(TARGETS),
    "tasks": tasks.names,
    "optimisers": optimisers.names,
    "trained_scalings": rules.names,
}
COUNTS = ("minItems", "maxItems", "minProperties", "maxProperties")


def load_schema(path: Path | str) -> dict[str, Any]:
    """Read a schema from its YAML file, and the default of each key from DEFAULTS beside it."""
    schema, defaults = (_read(file) for file in (Path(path), Path(path).with_name(DEFAULTS)))
    if odd := sorted(schema["properties"].keys() ^ defaults.keys()):
        raise ValueError(f"{path} and {DEFAULTS} differ in {', '.join(odd)}: run make docs")
    for key, part in schema["properties"].items():
        part["default"] = defaults[key]
    return schema


def _read(path: Path) -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)


def with_registries(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy in which a registry of names, such as `registry: tasks`, has become an enum of them.

    Variants of attention are too many to list, and are read one by one.
    """
    whole: dict[str, Any] = copy.deepcopy(dict(schema))
    todo: list[dict[str, Any]] = [whole]
    while todo:
        part = todo.pop()
        if part.get("registry") in REGISTRIES:
            part["enum"] = list(REGISTRIES[part["registry"]]())
        todo += [part[key] for key in ("items", "additionalProperties") if isinstance(part.get(key), dict)]
        todo += part.get("properties", {}).values()
    return whole


def allowed(schema: Mapping[str, Any]) -> str:
    """Say in words what a part of the schema allows, such as `a whole number from 1 to 1048576`."""
    kind = schema["type"]
    if schema.get("registry") == "variants":
        return notation.allowed()
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}" if len(schema["enum"]) > 1 else f"only {schema['enum'][0]}"
    if kind in ("integer", "number"):
        noun = "a whole number" if kind == "integer" else "a number"
        return f"{noun} from {schema['minimum']} to {schema['maximum']}".replace("e-0", "e-")
    if kind == "boolean":
        return "true or false"
    if kind == "string":
        length = f" of {schema['minLength']} to {schema['maxLength']} characters" if "maxLength" in schema else ""
        return f"text{length}, in quotes where YAML would read it as something else; no control characters"
    if kind == "array":
        count = f"{schema.get('minItems', 0)} to {schema.get('maxItems', len(schema['items'].get('enum', ())))}"
        return f"a list of {count} values, each {allowed(schema['items'])}"
    entry = schema.get("additionalProperties")
    if not isinstance(entry, Mapping):
        return f"a mapping such as {schema['examples'][0]}"
    return f"{schema['minProperties']} to {schema['maxProperties']} named entries, such as {schema['examples'][0]}"


def schema_problems(config: Mapping[str, Any], schema: Mapping[str, Any], given: Mapping[str, Any]) -> list[Problem]:
    """List the violations of a schema by an understood configuration, each shown as it was `given`."""
    from jsonschema import Draft202012Validator

    errors = Draft202012Validator(schema).iter_errors(config)
    return [problem for error in errors for problem in _translate(error, given)]


def _translate(error: Any, given: Mapping[str, Any]) -> Iterator[Problem]:
    path = tuple(plain_step(step) for step in error.absolute_path)
    value, schema = error.instance, error.schema
    if "propertyNames" in error.absolute_schema_path:
        yield _name_problem(path, plain_step(value), schema, given)
    elif error.validator == "additionalProperties":
        known = list(schema["properties"])
        for key in map(plain_step, value):
            if key not in known:
                words = f"no such key; the keys are {', '.join(known)}"
                yield Problem((*path, key), look_up(given, (*path, key)), words, nearest_name(key, known))
    elif error.validator == "required":
        for key in error.validator_value:
            if key not in value:
                words = f"required, such as {key}: {schema['properties'][key]['examples'][0]}"
                yield Problem((*path, key), MISSING, words + colon_hint(read_mapping(look_up(given, path)) or ()))
    elif error.validator == "uniqueItems":
        for position, item in enumerate(value):
            if item in value[:position]:
                words = f"repeats {path[-1]}[{value.index(item)}]; each value once"
                yield Problem((*path, position), look_up(given, (*path, position)), words)
    else:
        yield _value_problem(path, schema, given, error.validator in COUNTS)


def _value_problem(path: tuple[Any, ...], schema: Mapping[str, Any], given: Mapping[str, Any], whole: bool) -> Problem:
    words = f"allowed: {allowed(schema)}"
    if not whole and path and isinstance(path[-1], int) and _is_single(look_up(given, path[:-1])):
        # One value where a list may stand: the position says nothing to who wrote `d_k: 8.5` or `d_k: "4,8"`.
        path, words = path[:-1], f"{words}; several as in [a, b]"
        value = look_up(given, path)
    else:
        value = look_up(given, path)
    if schema["type"] == "integer" and isinstance(value, float) and value.is_integer() and abs(value) > EXACT_FLOAT:
        words += "; a number this large has to be written in digits"
    return Problem(path, value, words, nearest_name(value, schema["enum"]) if "enum" in schema else None)


def _is_single(value: object) -> bool:
    return not isinstance(value, list | tuple) and not (isinstance(value, str) and value.startswith("["))


def _name_problem(path: tuple[Any, ...], name: object, schema: Mapping[str, Any], given: Mapping[str, Any]) -> Problem:
    words = f"the name has to be at most {schema['maxLength']} lower-case letters, digits and _, starting with a letter"
    if isinstance(name, bool):
        words += "; YAML reads the words yes, no, on and off as truth values, so put the name in quotes"
    words += colon_hint([name])
    slug = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") if isinstance(name, str) and ":" not in name else ""
    slug = slug[: schema["maxLength"]]
    others = look_up(given, path)
    if isinstance(others, Mapping) and slug in others and str(name) != slug:
        words += f"; there is an entry {slug} already, and a file system may not tell the two apart"
        slug = ""
    suggestion = slug if re.fullmatch(r"[a-z][a-z0-9_]*", slug) else None
    return Problem((*path, name), look_up(given, (*path, name)), words, suggestion)


def look_up(given: object, path: tuple[Any, ...]) -> object:
    """Return the value at a path of the configuration as it was given, lists and mappings written as text included."""
    for step in path:
        listed = isinstance(step, int) and not isinstance(given, Mapping)
        inside: Any = read_list(given) if listed else read_mapping(given)
        try:
            given = inside[step]
        except (IndexError, KeyError, TypeError):
            return MISSING
    return given


def colon_hint(keys: Iterable[Any]) -> str:
    """Say what is wrong with `{family:gaussian}`, which YAML takes for one key without a value."""
    glued = next((key for key in keys if isinstance(key, str) and ":" in key), None)
    return "" if glued is None else f"; {show(glued)} needs a space after its colon"
