"""The workflow behind the page: a drawing of its rules, and what stands behind each figure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from sqrtdk.figures import catalogue
from sqrtdk.words.sentences import Listing, Sentence

ROW, HEIGHT, GAP, LETTER, PADDING = 26, 19, 34, 6.1, 6
"""Distance of rows, height of a box, distance of columns, width of a letter and space beside the name, in pixels."""
SHOWN = {"worked_example": "tab-before-after"}
"""Anchors of tables of results/ that the page shows under another name."""


@dataclass(frozen=True)
class Node:
    """A rule in the drawing: its box, the anchor on the page that shows what it makes, and its direct needs."""

    rule: str
    x: float
    y: float
    width: float
    anchor: str
    after: Listing
    makes: Listing


@dataclass(frozen=True)
class Drawing:
    """Boxes from left to right, each after all that it needs, and the curves between them as SVG paths."""

    nodes: tuple[Node, ...]
    paths: tuple[str, ...]
    width: float
    height: float


@dataclass(frozen=True)
class Source:
    """What stands behind a figure: its tables, the rules that made them, in their order, and the keys these read."""

    figure: str
    tables: tuple[str, ...]
    rules: tuple[str, ...]
    keys: tuple[str, ...]


def before(rules: Mapping[str, Mapping[str, Any]], names: Iterable[str]) -> list[str]:
    """Return these rules and all that they need, in the order of the workflow."""
    found, todo = set(), [*names]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += rules[name]["after"]
    return [name for name in rules if name in found]


def reduced(rules: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return what each rule needs directly, without what it needs by way of another."""
    found = {}
    for name, rule in rules.items():
        by_way = {other for one in rule["after"] for other in before(rules, rules[one]["after"])}
        found[name] = [one for one in rule["after"] if one not in by_way]
    return found


def columns(after: Mapping[str, list[str]]) -> list[list[str]]:
    """Return the rules by column: each as far to the right as what needs it allows, near to what it needs.

    One pass from left to right leaves 23 crossing lines, more passes back and forth 29. Graphviz, which would do
    better, is a program to install.
    """
    users = {name: [other for other in after if name in after[other]] for name in after}

    def depth(name: str) -> int:
        return max((depth(user) + 1 for user in users[name]), default=0)

    depths = {name: depth(name) for name in after}
    heights: dict[str, float] = {}
    found: list[Any] = []
    for place in range(max(depths.values()), -1, -1):
        column = [name for name in after if depths[name] == place]
        own = {name: (row + 0.5) / len(column) for row, name in enumerate(column)}
        column.sort(key=lambda name: fmean([heights[one] for one in after[name]] or [own[name]]))
        heights |= {name: (row + 0.5) / len(column) for row, name in enumerate(column)}
        found.append(column)
    return found


def drawing(rules: Mapping[str, Mapping[str, Any]], anchors: Mapping[str, str]) -> Drawing:
    """Draw the rules. `anchors` are anchors on the page by the name of the table in results/ that they show."""
    after = reduced(rules)
    found = columns(after)
    height = ROW * max(len(column) for column in found)
    nodes, x = {}, 1.0
    for column in found:
        width = max(len(name) for name in column) * LETTER + 2 * PADDING
        for row, name in enumerate(column):
            makes = rules[name]["makes"]
            anchor = next((anchors[one] for one in map(table, makes) if one in anchors), "")
            y = (row + 0.5) * height / len(column) - HEIGHT / 2
            needs, files = _literal(rules[name]["after"]), _literal(dict.fromkeys(map(_place, makes)))
            nodes[name] = Node(name, round(x, 1), round(y, 1), round(width, 1), anchor, needs, files)
        x += width + GAP
    paths = tuple(_path(nodes[one], nodes[name]) for name in nodes for one in after[name])
    return Drawing(tuple(nodes[name] for name in rules), paths, round(x - GAP + 1, 1), height)


def _place(file: str) -> str:
    """Return a file of results/ by its name, and one of a folder therein by the folder."""
    return file if table(file) or file.count("/") < 2 else f"{file.rpartition('/')[0]}/"


def _literal(names: Iterable[str]) -> Listing:
    return Listing(tuple(Sentence("article.literal", {"text": name}) for name in names))


def _path(start: Node, end: Node) -> str:
    (x1, y1), (x2, y2) = (start.x + start.width, start.y + HEIGHT / 2), (end.x, end.y + HEIGHT / 2)
    bend = GAP / 2
    return f"M{x1:.0f} {y1:.0f}C{x1 + bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"


def table(file: str) -> str:
    """Return the name of a table of results/, empty for another file."""
    folder, _, name = file.partition("/")
    return name.removesuffix(".csv") if folder == "results" and "/" not in name and name.endswith(".csv") else ""


def anchors(figures: Iterable[Mapping[str, Any]], tables: Iterable[str]) -> dict[str, str]:
    """Return where the page shows each table of results/: the first figure of it, else the table of this name."""
    found = {key: f"tab-{key.replace('_', '-')}" for key in tables} | SHOWN
    for figure in sorted(figures, key=lambda figure: catalogue.order(figure["number"]), reverse=True):
        found |= dict.fromkeys(figure["inputs"], figure["anchor"])
    return found


def sources(rules: Mapping[str, Mapping[str, Any]], figures: Iterable[Mapping[str, Any]]) -> list[Source]:
    """Return what stands behind each figure."""
    makers = {table(file): name for name, rule in rules.items() for file in rule["makes"]}
    found = []
    for figure in figures:
        names = before(rules, [makers[one] for one in figure["inputs"]])
        keys = dict.fromkeys(key for name in names for key in rules[name]["keys"])
        found.append(Source(figure["anchor"], tuple(figure["inputs"]), tuple(names), tuple(sorted(keys))))
    return found
