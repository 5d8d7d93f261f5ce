"""The ways to draw q and k. A new family is one class in one module of this folder, with @register."""

import importlib
import re
import sys
from pathlib import Path
from typing import Any

from sqrtdk.sampling.ensembles.base import REGISTRY, Ensemble, Exact, SpecError, SpecProblem
from sqrtdk.sampling.parameters import Parameter, listed, nearest_name

__all__ = ["Ensemble", "Exact", "Parameter", "SpecProblem", "SpecError", "build", "families"]

# scipy_families is loaded only for a name that is not ours: SciPy's statistics take longer to import than a cell runs.
_OTHERS = ("base", "scipy_families")


def families() -> dict[str, type[Ensemble]]:
    """Return the built-in families by name."""
    for path in _modules():
        importlib.import_module(f"{__name__}.{path.stem}")
    return dict(sorted(REGISTRY.items(), key=lambda item: item[1].__module__))


def _modules() -> list[Path]:
    """Return whatever modules lie in this folder, but for those that hold no family of ours."""
    return [path for path in sorted(Path(__file__).parent.glob("*.py")) if path.stem not in ("__init__", *_OTHERS)]


def _find(name: str) -> type[Ensemble] | None:
    """Return the family of a name, None where there is no such one of ours.

    Modules whose text has the name in quotes are loaded first: all of them take as long as a small cell. One that says
    its name in another way is found after all, since none is left out.
    """
    said = re.compile(rf"""\bfamily\b.*["']{re.escape(name)}["']""")
    if name not in REGISTRY:
        unread = [path for path in _modules() if f"{__name__}.{path.stem}" not in sys.modules]
        for path in sorted(unread, key=lambda path: said.search(path.read_text(encoding="utf-8")) is None):
            importlib.import_module(f"{__name__}.{path.stem}")
            if name in REGISTRY:
                break
    return REGISTRY.get(name)


def build(spec: object) -> Ensemble:
    """Make the ensemble that a specification such as `{"family": "student_t", "df": 6}` describes.

    A family that is not built in may be any continuous distribution of scipy.stats, named with its shape parameters.
    Raises SpecError holding every mistake of the specification.
    """
    if not isinstance(spec, dict) or not isinstance(spec.get("family"), str):
        given = spec.get("family") if isinstance(spec, dict) else spec
        raise SpecError(
            [SpecProblem("family", given, f"the name of a family: {listed(families())}, or one of scipy.stats")]
        )
    name = spec["family"]
    if family := _find(name):
        return family(**_read(family.parameters(), spec))
    from sqrtdk.sampling.ensembles import iid, scipy_families

    known = [*families(), *scipy_families.distributions()]
    if name not in known:
        allowed = f"a built-in family ({listed(families())}) or a continuous distribution of scipy.stats"
        raise SpecError([SpecProblem("family", name, allowed, nearest_name(name, known))])
    shapes = scipy_families.shape_parameters(name)
    values = _read((*shapes, *iid.Iid.parameters()), spec)
    own = {shape.name: values.pop(shape.name) for shape in shapes}
    return scipy_families.build(name, own, values)


def _read(parameters: tuple[Parameter, ...], spec: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters' values, or raise SpecError with all that is unknown, missing or outside its domain."""
    by_name = {parameter.name: parameter for parameter in parameters}
    problems, values = [], {}
    for key, value in spec.items():
        if key == "family":
            continue
        if key not in by_name:
            allowed = f"a parameter of {spec['family']}: {', '.join(by_name) or 'it has none'}"
            problems.append(SpecProblem(str(key), value, allowed, nearest_name(key, by_name)))
            continue
        values[key] = by_name[key].read(value)
        if values[key] is None:
            problems.append(SpecProblem(key, value, by_name[key].domain))
    for key, parameter in by_name.items():
        if key not in spec:
            if parameter.default is None:
                problems.append(SpecProblem(key, None, f"required by {spec['family']}: {parameter.domain}"))
            else:
                values[key] = parameter.default
    if problems:
        raise SpecError(problems)
    return values
