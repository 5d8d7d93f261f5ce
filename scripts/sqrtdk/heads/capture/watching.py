"""Calls that are attention, seen as PyTorch's functions are called: fused ones, and products that enter a softmax."""

import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_mask
from torch.overrides import TorchFunctionMode, _pop_mode, _push_mode

from sqrtdk.heads.capture.places import Places

PROJECTIONS = 12
"""Outputs of linear maps that are kept until attention may ask for them: those of q, k, v and of low-rank ways."""
PRODUCTS = 3
"""Products of two activations that are kept, until one enters a softmax."""


@dataclass(frozen=True)
class Projection:
    """What a linear map gave, of how many inputs, and how often it had been changed in place by then."""

    output: torch.Tensor
    width: int
    version: int

    @classmethod
    def of(cls, output: torch.Tensor, width: int) -> "Projection":
        """Return what a map has just given."""
        return cls(output, width, _version(output))

    @property
    def changed(self) -> bool:
        """Whether the output has been written into since."""
        return _version(self.output) != self.version


def _version(x: torch.Tensor) -> int:
    """Return how often a tensor was changed in place; those of inference mode do not count that."""
    return 0 if x.is_inference() else x._version


@dataclass
class Seen:
    """What one call of attention was given.

    q, k: (..., query, d_k) and (..., key, d_k). scale: None where it was left to its default or is not known.
    logits: what entered softmax, (..., query, key) or with one more column. fused: whether the scale and the mask are
    those of a fused function.
    """

    module: Any
    q: torch.Tensor
    k: torch.Tensor
    scale: float | torch.Tensor | None = None
    mask: torch.Tensor | None = None
    causal: bool = False
    logits: torch.Tensor | None = None
    fused: bool = False
    options: dict[str, Any] | None = None


class Receiver(Protocol):
    """What is told of each call of attention."""

    def keep(self, seen: Seen, projections: list[Projection]) -> None:
        """Take a call of attention and the projections before it."""


Function = Callable[..., Any]
Arguments = tuple[Any, ...]
Keywords = dict[str, Any]


class Watch(TorchFunctionMode):  # type: ignore[misc]  # PyTorch is Any to the checker, which needs none
    """See attention in a forward pass and hand it to a keeper.

    PyTorch calls no such mode in a backward pass, so what checkpointing computes again there is not seen twice.
    """

    def __init__(self, places: Places, keeper: Receiver) -> None:
        super().__init__()
        self.places, self.keeper = places, keeper
        self.projections: deque[Projection] = deque(maxlen=PROJECTIONS)
        self.products: deque[tuple[torch.Tensor, torch.Tensor, torch.Size]] = deque(maxlen=PRODUCTS)
        self.within: list[list[Seen]] = []

    def __exit__(self, *error: object) -> None:
        self.projections.clear()
        self.products.clear()
        # A monitor ends its steps whenever they end, so what was entered later may still be there.
        later = []
        while (mode := _pop_mode()) is not self:
            later.append(mode)
        for mode in reversed(later):
            _push_mode(mode)

    def __torch_function__(
        self, func: Function, types: Any, args: Arguments = (), kwargs: Keywords | None = None
    ) -> Any:
        kwargs = kwargs or {}
        handle = HANDLERS.get(getattr(func, "__name__", ""))
        if handle is None:
            return func(*args, **kwargs)
        return handle(self, func, args, kwargs)

    def attended(self, seen: Seen) -> None:
        """Take a call of attention: gathered by the function it is inside of, else kept."""
        if self.within:
            self.within[-1].append(seen)
        else:
            self.keeper.keep(seen, list(self.projections))

    @contextmanager
    def inside(
        self, module: Any, query: torch.Tensor, key: torch.Tensor, mask: Any, options: Keywords
    ) -> Iterator[None]:
        """Gather what is seen inside of a function that was given all of it, and keep one call for both."""
        if self.within:
            yield
            return
        self.within.append([])
        try:
            yield
            told = self.within[-1]
        finally:
            self.within.pop()
        if hasattr(mask, "mask_mod"):
            mask = create_mask(mask.mask_mod, *mask.shape[:2], query.shape[-2], key.shape[-2], query.device)
        seen = Seen(module, query, key, options.get("scaling"), mask, options=options)
        bias = options.get("position_bias")
        fused = [one for one in told if one.fused]
        if fused:
            # What the kernel is given is what is at work; a soft cap and sinks are its caller's.
            seen.scale, seen.mask, seen.causal, seen.fused = fused[-1].scale, fused[-1].mask, fused[-1].causal, True
        else:
            if told:
                seen.logits = told[-1].logits
            elif mask is None and query.shape[-2] > 1:
                asked = options.get("is_causal")
                seen.causal = bool(getattr(module, "is_causal", False) if asked is None else asked)
            if bias is not None:
                seen.mask = _both(mask, bias)
        self.keeper.keep(seen, list(self.projections))


def _both(mask: torch.Tensor | None, bias: torch.Tensor) -> torch.Tensor:
    """Return a mask and a bias of the logits as one additive mask."""
    if mask is None:
        return bias
    return torch.where(mask, bias, -math.inf) if mask.dtype == torch.bool else bias + mask


# --- one handler for each function


def _fused(watch: Watch, func: Function, args: Arguments, kwargs: Keywords) -> Any:
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
    given = dict(zip(names, args, strict=False)) | kwargs
    output = func(*args, **kwargs)
    watch.attended(
        Seen(
            watch.places.module,
            given["query"],
            given["key"],
            given.get("scale"),
            given.get("attn_mask"),
            bool(given.get("is_causal", False)),
            fused=True,
        )
    )
    return output


def _flex(watch: Watch, func: Function, args: Arguments, kwargs: Keywords) -> Any:
    """See `flex_attention`, whose logits are what a function of the user's makes of scaled scores."""
    output = func(*args, **kwargs)
    if not watch.within:
        q, k, _, change, block, scale = args[:6]
        with torch.no_grad():
            z = scale * (q @ k.repeat_interleave(q.shape[1] // k.shape[1], dim=1).mT).float()
            shape = (*z.shape, z.device)
            logits = create_mask(lambda b, h, i, j: change(z[b, h, i, j], b, h, i, j), *shape)
            mask = create_mask(block[-1], *shape)
            logits = torch.where(mask, logits, -math.inf)
        watch.attended(Seen(watch.places.module, q, k, scale, mask, logits=logits))
    return output


def _multi_head(watch: Watch, func: Function, args: Arguments, kwargs: Keywords) -> Any:
    """Look inside of `nn.MultiheadAttention`, which calls the fused function where no weights are asked.

    Where weights are asked, a second pass without them is looked at; dropout is left out of it, so that the random
    numbers of the run stay what they were.
    """
    original = F.scaled_dot_product_attention

    def seen(*arguments: Any, **options: Any) -> Any:
        with watch:
            return original(*arguments, **options)

    F.scaled_dot_product_attention = seen
    try:
        if kwargs.get("need_weights", True):
            with torch.no_grad():
                func(*args, **(kwargs | {"need_weights": False, "training": False}))
        else:
            return func(*args, **kwargs)
    finally:
        F.scaled_dot_product_attention = original
    return func(*args, **kwargs)


def _linear(watch: Watch, func: Function, args: Arguments, kwargs: Keywords) -> Any:
    output = func(*args, **kwargs)
    given = args[0] if args else kwargs["input"]
    watch.projections.append(Projection.of(output, given.shape[-1]))
    return output


def _affine(watch: Watch, func: Function, args: Arguments, kwargs: Keywords) -> Any:
    output = func(*args, **kwargs)
    # GPT-2's projections are torch.addmm(bias, x, weight).
    if len(args) > 1:
        watch.projections.append(Projection.of(output, args[1].shape[-1]))
    return output


def _product(watch: Watch, func: Function, args: Arguments, kwargs: Keywords) -> Any:
    output = func(*args, **kwargs)
    operands = [x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor)][-2:]
    if len(operands) == 2 and isinstance(output, torch.Tensor):
        left, right = operands
        if right.ndim == 2 and left.ndim > 1:
            watch.projections.append(Projection.of(output, left.shape[-1]))
        if left.ndim > 2 and right.ndim > 2:
            watch.products.append((left, right.transpose(-1, -2), output.shape))
    return output


def _sum(watch: Watch, func: Function, args: Arguments, kwargs: Keywords) -> Any:
    output = func(*args, **kwargs)
    pair = _as_product(args) if len(args) in (2, 3) else None
    if pair is not None:
        watch.products.append((*pair, output.shape))
    return output


def _as_product(args: Arguments) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return the operands of `einsum` as q (..., query, d) and k (..., key, d), where it is such a product."""
    operands = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:]
    if not isinstance(args[0], str) or len(operands) != 2 or "->" not in args[0]:
        return None
    inputs, output = args[0].replace(" ", "").split("->")
    names = inputs.split(",")
    summed = (set(names[0]) & set(names[1])) - set(output)
    if "." in args[0] or len(summed) != 1 or len(output) < 3:
        return None
    lead, query, key, (inner,) = output[:-2], output[-2], output[-1], summed
    if query in names[1]:
        names, operands = names[::-1], operands[::-1]
    if query not in names[0] or key not in names[1] or query in names[1]:
        return None
    found = []
    for name, x, row in zip(names, operands, (query, key), strict=True):
        order = "".join(letter for letter in lead if letter in name) + row + inner
        if set(order) != set(name):
            return None
        x = x.permute(*(name.index(letter) for letter in order))
        for place, letter in enumerate(lead):
            x = x if letter in name else x.unsqueeze(place)
        found.append(x)
    return found[0], found[1]


def _softmax(watch: Watch, func: Function, args: Arguments, kwargs: Keywords) -> Any:
    logits = args[0] if args else kwargs["input"]
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    if dim in (-1, logits.ndim - 1):
        for q, k, shape in reversed(watch.products):
            n, m = shape[-2:]
            fits = logits.ndim > 2 and logits.shape[-2] == n and logits.shape[-1] in (m, m + 1)
            if fits and math.prod(logits.shape[:-2]) == math.prod(shape[:-2]):
                # Before softmax, which may write into it.
                watch.products.clear()
                watch.attended(Seen(watch.places.module, q, k, logits=logits))
                break
    return func(*args, **kwargs)


HANDLERS: dict[str, Callable[[Watch, Function, Arguments, Keywords], Any]] = {
    "scaled_dot_product_attention": _fused,
    "flex_attention": _flex,
    "multi_head_attention_forward": _multi_head,
    "linear": _linear,
    "addmm": _affine,
    **dict.fromkeys(("matmul", "__matmul__", "bmm", "baddbmm"), _product),
    "einsum": _sum,
    "softmax": _softmax,
}
