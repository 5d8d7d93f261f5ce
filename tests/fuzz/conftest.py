"""How many random cases of each kind are tried: a few beside the other tests, all of them in `make test-fuzz`."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "workflow")]


def pytest_addoption(parser):
    parser.addoption("--many", action="store_true", help="try every random case, for an hour")


def pytest_generate_tests(metafunc):
    """Give a test that asks for a `case` its numbers, from 0."""
    if "case" in metafunc.fixturenames:
        few, many = metafunc.function.cases
        metafunc.parametrize("case", range(many if metafunc.config.getoption("many", False) else few))


def pytest_collection_modifyitems(config, items):
    """Leave out a test that has no case beside the other tests, which pytest would call skipped."""
    many = config.getoption("many", False)
    items[:] = [item for item in items if many or getattr(getattr(item, "function", None), "cases", (1, 1))[0]]
