"""Measured laws of the attention score q·k: ensembles, exact theory, saturation, gradients, figures."""

__version__ = "0.1.0"
_LAZY = {"check_scores": "monitor", "AttentionMonitor": "monitor", "ScoreError": "monitor"}
"""Public names and the module that each is taken from when it is first used."""


def __getattr__(name: str):
    if name not in _LAZY:
        raise AttributeError(f"module 'sqrtdk' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
