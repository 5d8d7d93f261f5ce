"""A monitor on a PyTorch model: attention is seen as by a capture, on the steps that are measured, and on no others."""

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import torch

from sqrtdk.heads.capture.keeping import four_axes
from sqrtdk.heads.capture.places import Places
from sqrtdk.heads.capture.transformers import watch_interface
from sqrtdk.heads.capture.watching import Projection, Seen, Watch

if TYPE_CHECKING:
    from sqrtdk.heads.monitor import AttentionMonitor


class Attached:
    """What `AttentionMonitor.attach` put on a model. `start` and `stop` open and close a step."""

    def __init__(self, model: Any, monitor: "AttentionMonitor") -> None:
        self.monitor, self.places = monitor, Places(model)
        self._stack = ExitStack()

    def start(self, due: bool) -> None:
        """End the step before, if there is one, and watch the next one where it is due."""
        self.stop()
        if not due:
            return
        watch = Watch(self.places, self)
        with ExitStack() as stack:
            stack.enter_context(torch.compiler.set_stance("force_eager"))
            stack.enter_context(self.places)
            stack.enter_context(watch_interface(watch))
            stack.enter_context(watch)
            self._stack = stack.pop_all()

    def stop(self) -> None:
        """Take off all that was put on."""
        self._stack.close()

    def keep(self, seen: Seen, projections: list[Projection]) -> None:
        """Hand a call of attention to the monitor: its logits where they were seen, else its queries and keys."""
        name, options = self.places.path(seen.module), seen.options or {}
        with torch._C.DisableTorchFunction(), torch.no_grad():
            if seen.logits is not None:
                logits, m = seen.logits, seen.k.shape[-2]
                self.monitor.observe(name, logits[..., :m])
                if logits.requires_grad:
                    logits.register_hook(lambda gradient: self._gradient(name, gradient))
                return
            q, k = four_axes(seen.q, seen.k, seen.module, None)
            scale = q.shape[-1] ** -0.5 if seen.scale is None else float(seen.scale)
            cap = float(options.get("softcap") or 0.0)
            mask = seen.mask
            self.monitor.observe_qk(name, q, k, scale, mask, causal=seen.causal, softcap=cap)

    def _gradient(self, name: str, gradient: Any) -> None:
        with torch._C.DisableTorchFunction():
            self.monitor.observe_gradient(name, gradient)
