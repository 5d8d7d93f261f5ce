"""Which module is running: its path, and how often it attended."""

from contextlib import AbstractContextManager
from typing import Any

import torch


class Places(AbstractContextManager["Places"]):
    """Follow a model's modules by hooks, taken off on leaving.

    A module that attends more than once in one pass has places `path`, `path#2` and so on.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.names: dict[torch.nn.Module, str] = {}
        if isinstance(model, torch.nn.Module):
            for path, module in model.named_modules():
                # What torch.compile and data parallelism put around a model is no part of a path.
                pieces = [piece for piece in path.split(".") if piece not in ("_orig_mod", "module")]
                self.names.setdefault(module, ".".join(pieces))
        # What rotary embeddings multiply queries and keys by, as YaRN does.
        self.rotations = {
            float(scaling)
            for module in self.names
            if isinstance(scaling := getattr(module, "attention_scaling", None), (int, float)) and scaling != 1
        }
        self.running: list[torch.nn.Module] = []
        self.seen: dict[str, int] = {}
        self._handles: list[Any] = []

    def __enter__(self) -> "Places":
        for module in self.names:
            self._handles.append(module.register_forward_pre_hook(self._enter))
            self._handles.append(module.register_forward_hook(self._leave, always_call=True))
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self.running.clear()

    def _enter(self, module: torch.nn.Module, inputs: Any) -> None:
        if not self.running:
            self.seen.clear()
        self.running.append(module)

    def _leave(self, module: torch.nn.Module, inputs: Any, output: Any) -> None:
        # Where a module raised without its hook being called, those inside of it go too.
        while self.running and self.running.pop() is not module:
            pass

    @property
    def module(self) -> torch.nn.Module | None:
        """The innermost module that is running, None outside of all."""
        return self.running[-1] if self.running else None

    def path(self, module: torch.nn.Module | None) -> str:
        """Return the path of the next call of attention in a module."""
        name = self.names.get(module, "") or "attention"
        times = self.seen[name] = self.seen.get(name, 0) + 1
        return name if times == 1 else f"{name}#{times}"
