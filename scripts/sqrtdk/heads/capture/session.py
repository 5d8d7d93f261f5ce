"""`sqrtdk.capture`: one call, or a context around one's own loop."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

try:
    import torch
except ImportError as error:
    raise ImportError(
        "sqrtdk.capture needs PyTorch, which is not installed; what other frameworks compute is saved as "
        "docs/file-format.md says"
    ) from error

from sqrtdk.heads.calls import Capture
from sqrtdk.heads.capture.keeping import DTYPES, Keeper, Wanted
from sqrtdk.heads.capture.places import Places
from sqrtdk.heads.capture.transformers import watch_interface
from sqrtdk.heads.capture.watching import Watch
from sqrtdk.heads.errors import InputError

TOKENS = 512


class Session(AbstractContextManager):
    """The context of `with sqrtdk.capture(model) as cap`: everything is put back on leaving, whatever happened."""

    def __init__(self, model, wanted: Wanted):
        self.model, self.wanted = model, wanted
        self.capture = Capture()
        self._stack = ExitStack()

    def __enter__(self) -> Capture:
        places = Places(self.model)
        watch = Watch(places, Keeper(self.capture, self.wanted, places))
        with ExitStack() as stack:
            # What is compiled runs as it is written, or nothing would be seen.
            stack.enter_context(torch.compiler.set_stance("force_eager"))
            stack.enter_context(places)
            stack.enter_context(watch_interface(watch))
            stack.enter_context(watch)
            self._stack = stack.pop_all()
        return self.capture

    def __exit__(self, *error) -> None:
        self._stack.close()
        if error[0] is None and not self.capture:
            self.capture.notes.append(
                "no attention was seen: neither scaled_dot_product_attention, an interface of transformers, "
                "nn.MultiheadAttention, nor a product that enters a softmax"
            )


def capture(
    model,
    batch: Any = None,
    *,
    layers: str | int | Sequence[str | int] | None = None,
    heads: int | Sequence[int] | None = None,
    tokens: int | None = TOKENS,
    dtype: str = "float16",
    scores: bool = False,
    seed: int = 0,
):
    """Capture queries and keys as they enter attention, with the scale, mask and cap that are in force.

        cap = sqrtdk.capture(model, batch)          # one forward pass, without gradients, in evaluation mode
        with sqrtdk.capture(model) as cap: ...      # around a loop of one's own

    Args:
        model: a `torch.nn.Module`, or any function that calls attention.
        batch: what the model is called with: a mapping as keywords, a list or tuple as arguments, else one argument.
        layers: layer numbers, module paths, or patterns such as `decoder.*`; all by default.
        heads: indices, or how many to draw; all by default.
        tokens: queries kept of each sequence, drawn where there are more; all keys are kept. None for all.
        dtype: float16, where values that it cannot hold keep float32 and are counted, or float32.
        scores: keep the logits that enter softmax, too.
        seed: of the draws.

    Returns a `Capture`, a mapping from module path to `Call`; without a batch a context manager that gives it.

    Raises InputError for options that do not fit. What the model raises is passed on, after all is put back.
    """
    if dtype not in DTYPES:
        raise InputError(f"dtype {dtype!r}: not one of {', '.join(DTYPES)}")
    for name, number in (("tokens", tokens), ("heads", heads)):
        if isinstance(number, int) and number < 1:
            raise InputError(f"{name}={number}: has to be at least 1")
    if not callable(model):
        raise InputError(f"a {type(model).__name__} is no model: it cannot be called")
    session = Session(model, Wanted(_listed(layers), heads, tokens, dtype, scores, seed))
    if batch is None:
        return session
    with session as found, _evaluation(model), torch.no_grad():
        if isinstance(batch, Mapping):
            model(**batch)
        elif isinstance(batch, (list, tuple)):
            model(*batch)
        else:
            model(batch)
    return found


def _listed(layers) -> tuple[str | int, ...] | None:
    if layers is None or isinstance(layers, (str, int)):
        return None if layers is None else (layers,)
    return tuple(layers)


class _evaluation(AbstractContextManager):
    """Dropout off, and each module's mode as it was afterwards."""

    def __init__(self, model):
        self.modules = list(model.modules()) if isinstance(model, torch.nn.Module) else []

    def __enter__(self) -> None:
        self.were = [module.training for module in self.modules]
        for module in self.modules:
            module.training = False

    def __exit__(self, *error) -> None:
        for module, was in zip(self.modules, self.were, strict=True):
            module.training = was
