"""What the scripts share: CPU seconds told apart."""

import importlib
import itertools
import resource
import sys

import pytest

import program


@pytest.fixture
def clock(monkeypatch):
    """A clock of CPU seconds that moves on by one whenever it is looked at."""
    ticks = itertools.count()
    monkeypatch.setattr(program.time, "process_time", lambda: float(next(ticks)))


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """A module that imports another."""
    (tmp_path / "outer_module.py").write_text("import inner_module\n", encoding="utf-8")
    (tmp_path / "inner_module.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in ("outer_module", "inner_module"):
        sys.modules.pop(name, None)


def test_of_nested_imports_the_outermost_counts(clock, modules):
    with program.importing() as found:
        import outer_module  # noqa: F401
    # Looked at once before and once after: the import inside looks at no clock.
    assert found == [1.0]


def test_imports_by_name_count_too_and_failed_ones(clock, modules):
    with program.importing() as found:
        importlib.import_module("outer_module")
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("no_such_module")
    assert found == [1.0, 1.0]


def test_the_ways_to_import_are_given_back(modules):
    originals = __import__, importlib.import_module
    with pytest.raises(ModuleNotFoundError), program.importing():
        import no_such_module  # noqa: F401
    assert (__import__, importlib.import_module) == originals


def test_a_program_says_what_it_took_without_its_imports(clock, modules, monkeypatch, capsys):
    def main(number: int):
        import outer_module  # noqa: F401

        assert number == 3

    monkeypatch.setattr(sys, "argv", ["main", "--number", "3"])
    program.run(main)
    # The clock shows 0 before, 1 and 2 around the import, and 3 after.
    memory, seconds = capsys.readouterr().out.splitlines()
    assert seconds == program.CPU_LINE.format("2.000", "3.000")
    least = int(memory.removeprefix("Memory: ").removesuffix(" MB at most"))
    assert 10 < least <= resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
