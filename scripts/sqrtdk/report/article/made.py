"""How each figure was made: its tables, the rules that made them, and the keys of the configuration that reach it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqrtdk.figures.catalogue import SHIPPED
from sqrtdk.words.sentences import Listing, Sentence


@dataclass(frozen=True)
class Source:
    """What stands behind a figure: its tables, the rules that made them, in their order, and the keys these read."""

    figure: str
    tables: Listing
    rules: Listing
    keys: Listing


def before(rules: Mapping[str, Mapping[str, Any]], names: Iterable[str]) -> list[str]:
    """Return these rules and all that they need, in the order of the workflow."""
    found, todo = set(), [*names]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += rules[name]["after"]
    return [name for name in rules if name in found]


def table(file: str) -> str:
    """Return the name of a table of results/, empty for another file."""
    folder, _, name = file.partition("/")
    return name.removesuffix(".csv") if folder == "results" and "/" not in name and name.endswith(".csv") else ""


def sources(rules: Mapping[str, Mapping[str, Any]], figures: Iterable[Mapping[str, Any]]) -> list[Source]:
    """Return what stands behind each figure; nothing where the rules were not recorded."""
    makers = {table(file): name for name, rule in rules.items() for file in rule["makes"]}
    found = []
    for figure in figures if rules else ():
        names = before(rules, [makers[one] for one in figure["inputs"] if one not in SHIPPED])
        keys = dict.fromkeys(key for name in names for key in rules[name]["keys"])
        found.append(Source(figure["anchor"], *map(_literal, (figure["inputs"], names, sorted(keys)))))
    return found


def _literal(names: Iterable[str]) -> Listing:
    return Listing(tuple(Sentence("article.literal", {"text": name}) for name in names), "comma")
