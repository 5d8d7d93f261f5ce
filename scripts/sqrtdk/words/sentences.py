"""What the results say, before a language puts it into words."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Sentence:
    """A sentence of the report: the key of its words, and the values of its placeholders.

    A value is plain text or a number, a Sentence, a Phrase, a Quantity, or a Listing.
    """

    key: str
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Listing:
    """Several values joined as the language joins them: `and` (a, b and c), `comma` or `semicolon`."""

    items: tuple[Any, ...]
    kind: str = "and"


@dataclass(frozen=True)
class Phrase:
    """Words that the library or a results file holds in English: a reason, an origin, a description.

    Other languages have its counterpart in the catalogue `phrases` of their words. An empty one is false.
    """

    text: str

    def __bool__(self) -> bool:
        return bool(self.text)


@dataclass(frozen=True)
class Quantity:
    """A number of the results as a text quotes it: rounded for reading, with its name and its full spelling."""

    text: str
    name: str
    full: str


def encode(value: object) -> object:
    """Return a value of a sentence as plain data for JSON: text and numbers as they are, the rest as mappings."""
    if isinstance(value, Sentence):
        return {"key": value.key, "values": {name: encode(one) for name, one in value.values.items()}}
    if isinstance(value, Phrase):
        return {"phrase": value.text}
    if isinstance(value, Listing):
        return {"items": [encode(one) for one in value.items], "kind": value.kind}
    return value


def decode(value: object) -> object:
    """Return what `encode` was given."""
    if isinstance(value, dict) and "key" in value:
        return Sentence(value["key"], {name: decode(one) for name, one in value["values"].items()})
    if isinstance(value, dict) and "phrase" in value:
        return Phrase(value["phrase"])
    if isinstance(value, dict):
        return Listing(tuple(decode(one) for one in value["items"]), value["kind"])
    return value


def with_keys(value: object, change: Callable[[str], str]) -> object:
    """Return a value with the key of every sentence in it changed."""
    if isinstance(value, Sentence):
        return Sentence(change(value.key), {name: with_keys(one, change) for name, one in value.values.items()})
    if isinstance(value, Listing):
        return Listing(tuple(with_keys(one, change) for one in value.items), value.kind)
    return value
