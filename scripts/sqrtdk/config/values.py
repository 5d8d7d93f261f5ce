"""Values of the configuration understood exactly, however they were written, or not at all."""

import re
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import yaml

from sqrtdk.config.messages import PLAIN_KEY

NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,39}|(?=\.[0-9]))(?:\.[0-9]{0,40})?(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
EXACT_FLOAT = 2**53 - 1
INFINITY = float("inf")


class NotUnderstood:
    """Takes the place of a value that is not of the expected type; of no JSON type itself."""

    def __init__(self, value: object) -> None:
        self.value = value


def plain_step(step: object) -> object:
    """Return a key as it was given."""
    return step.value if isinstance(step, NotUnderstood) else step


def read_integer(value: object) -> int | None:
    """Return the whole number that the value exactly is (`8`, `8.0`, `"8"`, `"1e5"`), or None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return int(value) if value.bit_length() <= 128 else None
    if isinstance(value, float):
        # From 2^53 on, a float may be the rounding of another integer that was written.
        return int(value) if value.is_integer() and abs(value) <= EXACT_FLOAT else None
    if isinstance(value, str) and NUMBER.fullmatch(value):
        number = Decimal(value)
        # The exponent is limited before the integer is made, which would have as many digits.
        whole = number.adjusted() < 40 and number == number.to_integral_value()
        return int(number) if whole else None
    return None


def read_number(value: object) -> float | None:
    """Return the finite number that the value is (`0.001`, `1`, `"1e-3"`), or None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and NUMBER.fullmatch(value):
        number = float(value)
        # Neither 1e999 nor 1e-999 is the number that was written.
        return number if abs(number) < INFINITY and (number != 0 or Decimal(value) == 0) else None
    if isinstance(value, int):
        return float(value) if value.bit_length() <= 1000 else None
    # The comparison is false for NaN too; the sum makes 0.0 of -0.0.
    return float(value) + 0.0 if isinstance(value, float) and abs(value) < INFINITY else None


def read_boolean(value: object) -> bool | None:
    """Return the truth value; `--config flag=false` gives text, which by itself would count as true."""
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower())
    return value if isinstance(value, bool) else None


def read_text(value: object) -> str | None:
    """Return text without control characters, line separators and lone surrogates, which break files, or None."""
    if not isinstance(value, str) or any(unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") for sign in value):
        return None
    return str(value)


def read_list(value: object) -> list[Any] | None:
    """Return a list: itself, a list written as text (`"[4, 8]"`), or a list of the one value given."""
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, str) and value.startswith("["):
        parsed = parse(value)
        return parsed if isinstance(parsed, list) else None
    return None if value is None or isinstance(value, Mapping) else [value]


def read_mapping(value: object) -> Mapping[str, Any] | None:
    """Return a mapping: itself, or one written as text (`"{mine: {family: gaussian}}"`)."""
    if isinstance(value, str) and value.startswith("{"):
        value = parse(value)
    return value if isinstance(value, Mapping) else None


def parse(text: str) -> object:
    """Read YAML text with every scalar left as text, as Snakemake does for `--config`; None if it is no YAML."""
    try:
        return yaml.load(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError):
        return None


SCALARS = {"integer": read_integer, "number": read_number, "boolean": read_boolean, "string": read_text}


def understand(value: object, schema: Mapping[str, Any]) -> object:
    """Return the value with the exact types that the schema asks for; NotUnderstood in the place of what is not one.

    Keys that the schema does not name keep their value. Null removes an entry of a mapping of named entries, and all
    of them in the place of the mapping.
    """
    kind = schema.get("type")
    if kind == "array":
        items = read_list(value)
        return NotUnderstood(value) if items is None else [understand(item, schema["items"]) for item in items]
    if kind == "object":
        named = isinstance(schema.get("additionalProperties"), Mapping)
        mapping = {} if named and is_removed("entries", value) else read_mapping(value)
        return NotUnderstood(value) if mapping is None else _understand_mapping(mapping, schema)
    if kind in SCALARS:
        read = SCALARS[kind](value)
        return NotUnderstood(value) if read is None else read
    return NotUnderstood(value)


def _understand_mapping(mapping: Mapping[Any, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    result: dict[Any, Any] = {}
    for key, part in known.items():
        if key in mapping:
            result[key] = understand(mapping[key], part)
        elif "default" in part:
            result[key] = understand(part["default"], part)
    for key, value in mapping.items():
        if isinstance(key, str) and key in known:
            continue
        # Only text can be a key of the schema; the wrapper keeps what was given for the message.
        name = key if isinstance(key, str) else NotUnderstood(key)
        if not isinstance(others, Mapping):
            result[name] = NotUnderstood(value)
        elif not is_removed(key, value):
            result[name] = understand(without_removed(value), others)
    return result


def without_removed(entry: object) -> object:
    """Return a named entry without the keys that null takes out; anything but a mapping as it is."""
    mapping = read_mapping(entry)
    return entry if mapping is None else {key: value for key, value in mapping.items() if not is_removed(key, value)}


def is_removed(key: object, value: object) -> bool:
    """Say what takes an entry out: YAML's null, and the text that `--config 'ensembles={aligned: null}'` gives.

    `{rho:1}`, with no space after the colon, is a key without a value too: only a plain name can be taken out.
    """
    nothing = value is None or (isinstance(value, str) and value in ("", "~", "null"))
    return nothing and isinstance(key, str) and PLAIN_KEY.fullmatch(key) is not None
