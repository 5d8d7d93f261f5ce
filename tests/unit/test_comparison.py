"""docs/comparison.md: what it says of this report is tested, and what it says of others has a source."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/comparison.md").read_text(encoding="utf-8")
TABLE = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in TEXT.splitlines() if line.startswith("| ")]
TESTS = dict(re.findall(r"^(\d+)\. (.*)$", TEXT, re.MULTILINE))
SOURCES = dict(re.findall(r"^- ([MSQW]\d): .*<(https://[^>]+)>$", TEXT, re.MULTILINE))
OWN_WORDS = ("no", "not documented", "does not arise", "whatever", "if ", "it is a PDF", "the article")
"""How a cell begins that needs no source: what is lacking, what an author decides, what follows from being a PDF."""


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def marks(cell: str) -> list[str]:
    return [mark for marks in re.findall(r"\[([^\]]+)\]", cell) for mark in marks.split(", ")]


def test_every_named_test_exists():
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)
    assert len(named) > 20
    for path, name in named:
        assert name in functions(ROOT / path), f"{path} has no test {name}"


def test_what_is_said_of_this_report_names_a_test_unless_it_is_what_it_lacks():
    used = [mark for row in TABLE[1:] for cell in row[1:] for mark in marks(cell) if mark.isdigit()]
    assert {*used, *(mark for mark in marks(TEXT.partition("## Tests")[0]) if mark.isdigit())} == TESTS.keys()
    for reader, own, *_ in TABLE[1:]:
        assert any(mark in TESTS for mark in marks(own)) or own.startswith("no"), reader


def test_every_source_is_used_and_every_mark_has_one():
    used = {mark for row in TABLE[1:] for cell in row[2:] for mark in marks(cell)}
    assert used - TESTS.keys() == SOURCES.keys()


def test_the_table_is_whole_and_what_a_tool_can_do_has_a_source():
    assert {len(row) for row in TABLE} == {6}
    assert len(TABLE) > 20
    for reader, _, *others in TABLE[1:]:
        for cell in others:
            assert marks(cell) or cell.startswith(OWN_WORDS), (reader, cell)
