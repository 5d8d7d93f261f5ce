"""Measured laws of the attention score q·k: ensembles, exact theory, saturation, gradients, figures.

Rooms are packages, in the order in which data flows; pyproject.toml holds which may know which. What a room shows to
others than itself are the names of its face, each loaded when it is first used.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqrtdk.heads.capture.entry import capture as capture
    from sqrtdk.heads.errors import InputError as InputError
    from sqrtdk.heads.judgement import audit as audit
    from sqrtdk.heads.monitor import AttentionMonitor as AttentionMonitor
    from sqrtdk.heads.scores import ScoreError as ScoreError
    from sqrtdk.heads.scores import check_scores as check_scores

__version__ = "1.0.0"
_MODULES = {
    **{"AttentionMonitor": "heads.monitor", "ScoreError": "heads.scores", "check_scores": "heads.scores"},
    **{"InputError": "heads.errors", "audit": "heads.judgement", "capture": "heads.capture.entry"},
}
__all__ = sorted(_MODULES)


def public(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a face, which takes each public name from a module when first asked."""

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)

    def listed() -> list[str]:
        return sorted([*vars(importlib.import_module(package)), *modules])

    return load, listed


__getattr__, __dir__ = public(__name__, _MODULES)
