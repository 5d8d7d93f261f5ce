"""The rooms of the library: who may know whom, what each shows, and where a costly library is loaded."""

import ast
import functools
import importlib
import inspect
import sys
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

from sqrtdk.sampling import ensembles
from sqrtdk.sampling.ensembles.scipy_families import ScipyIid
from sqrtdk.variants.normalisers import NORMALISERS

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
MODULES = {
    ".".join(path.relative_to(SCRIPTS).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((SCRIPTS / "sqrtdk").rglob("*.py"))
}
ROOMS = sorted(name for name, path in MODULES.items() if path.name == "__init__.py" and name.count(".") < 2)


def test_contracts_of_the_rooms_are_kept(capsys):
    broken = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True, no_logo=True)
    assert broken == 0, capsys.readouterr().out


def test_modules_live_in_rooms():
    beside = {path.name for path in (SCRIPTS / "sqrtdk").iterdir() if path.is_file()}
    assert beside <= {"__init__.py", "__main__.py", "py.typed"}


@pytest.mark.parametrize("room", ROOMS)
def test_faces_show_what_they_name(room):
    face = importlib.import_module(room)
    assert face.__doc__
    names = getattr(face, "__all__", [])
    assert sorted(names) == list(names)
    # What a type checker sees is what Python loads.
    seen = {name: module for statement in _typing(room) for module, name in _froms(statement)}
    assert set(seen) == set(names)
    for name, module in seen.items():
        assert getattr(face, name) is getattr(importlib.import_module(module), name)


def test_methods_of_families_and_normalisers_are_described_where_they_are_declared():
    methods = {
        f"{cls.__name__}.{name}": member
        for cls in (*ensembles.families().values(), ScipyIid, *NORMALISERS.values())
        for name, member in inspect.getmembers(cls, lambda member: callable(member) or isinstance(member, property))
        if not name.startswith("_")
    }
    assert [name for name, method in methods.items() if not inspect.getdoc(method)] == []


def test_no_two_public_classes_have_one_name():
    places: dict[str, list[str]] = {}
    for module in MODULES:
        for node in _tree(module).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(module)
    assert {name: several for name, several in places.items() if len(several) > 1} == {}


@pytest.mark.slow
def test_imports_inside_functions_keep_a_costly_library_out_of_a_start():
    needless = [
        f"{name}, line {statement.lineno}: {ast.unparse(statement)}"
        for name in MODULES
        for statement in _imports(name)[1]
        if not _others(_names(statement)) - _others([name])
    ]
    assert needless == []


def _typing(module: str) -> list[ast.stmt]:
    """Return the statements that only a type checker runs."""
    blocks = [node for node in _tree(module).body if _is_typing(node)]
    return [statement for block in blocks for statement in block.body]


def _froms(statement: ast.ImportFrom) -> list[tuple[str, str]]:
    return [(statement.module, alias.asname) for alias in statement.names]


@functools.cache
def _tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def _is_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


@functools.cache
def _imports(module: str) -> tuple[list, list]:
    """Return the imports that run when a module is loaded, and those inside its functions."""
    found = [], []

    def visit(node: ast.AST, inside: bool) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found[inside].append(node)
        for child in [] if _is_typing(node) else ast.iter_child_nodes(node):
            visit(child, inside or isinstance(node, ast.FunctionDef))

    visit(_tree(module), False)
    return found


def _names(statement: ast.Import | ast.ImportFrom) -> list[str]:
    """Return the dotted names of the modules that a statement loads."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    inner = [f"{statement.module}.{alias.name}" for alias in statement.names]
    return [statement.module, *(name for name in inner if name in MODULES or name.startswith("scipy."))]


def _others(modules: list[str]) -> set[str]:
    """Return what modules load of other projects; a package of SciPy or NumPy counts by itself."""
    found, todo = set(), [*modules]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += [other for statement in _imports(name)[0] for other in _names(statement)] if name in MODULES else []
    own = {"sqrtdk", *sys.stdlib_module_names}
    return {".".join(name.split(".")[:2]) for name in found if name.split(".")[0] not in own}
