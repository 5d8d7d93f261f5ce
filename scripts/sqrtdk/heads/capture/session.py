"""The context in which a model is watched, and one pass of a batch through it."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import torch

from sqrtdk.heads.calls import Capture
from sqrtdk.heads.capture.keeping import Keeper
from sqrtdk.heads.capture.places import Places
from sqrtdk.heads.capture.transformers import watch_interface
from sqrtdk.heads.capture.wanted import Wanted
from sqrtdk.heads.capture.watching import Watch

SHOWN = 8
"""Paths that a message lists at most."""


class Session(AbstractContextManager[Capture]):
    """The context of `with sqrtdk.capture(model) as cap`: everything is put back on leaving, whatever happened."""

    def __init__(self, model: Any, wanted: Wanted) -> None:
        self.model, self.wanted = model, wanted
        self.capture = Capture()
        self._stack = ExitStack()

    def __enter__(self) -> Capture:
        places = Places(self.model)
        self.keeper = Keeper(self.capture, self.wanted, places)
        watch = Watch(places, self.keeper)
        with ExitStack() as stack:
            # What is compiled runs as it is written, or nothing would be seen.
            stack.enter_context(torch.compiler.set_stance("force_eager"))
            stack.enter_context(places)
            stack.enter_context(watch_interface(watch))
            stack.enter_context(watch)
            self._stack = stack.pop_all()
        return self.capture

    def __exit__(self, *error: object) -> None:
        self._stack.close()
        if error[0] is not None or self.capture:
            return
        if passed := self.keeper.passed:
            self.capture.notes.append(f"layers={self.wanted.layers!r} takes none of {', '.join(list(passed)[:SHOWN])}")
        else:
            self.capture.notes.append(
                "no attention was seen: neither scaled_dot_product_attention, flex_attention, an interface of "
                "transformers, nn.MultiheadAttention, nor a product that enters a softmax"
            )


def one_pass(session: Session, batch: Any) -> Capture:
    """Return what a batch makes a model do, without gradients and in evaluation mode."""
    with session as found, _Evaluation(session.model), torch.no_grad():
        if isinstance(batch, Mapping):
            session.model(**batch)
        elif isinstance(batch, (list, tuple)):
            session.model(*batch)
        else:
            session.model(batch)
    return found


class _Evaluation(AbstractContextManager[None]):
    """Dropout off, and each module's mode as it was afterwards."""

    def __init__(self, model: Any) -> None:
        self.modules = list(model.modules()) if isinstance(model, torch.nn.Module) else []

    def __enter__(self) -> None:
        self.were = [module.training for module in self.modules]
        for module in self.modules:
            module.training = False

    def __exit__(self, *error: object) -> None:
        for module, was in zip(self.modules, self.were, strict=True):
            module.training = was
