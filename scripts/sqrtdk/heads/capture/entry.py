"""`sqrtdk.capture`, which loads PyTorch when it is called."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqrtdk.heads.capture.wanted import Wanted
from sqrtdk.heads.errors import InputError

if TYPE_CHECKING:
    from sqrtdk.heads.calls import Capture
    from sqrtdk.heads.capture.session import Session

TOKENS = 512


def capture(
    model: Any,
    batch: Any = None,
    *,
    layers: str | int | Sequence[str | int] | None = None,
    heads: int | Sequence[int] | None = None,
    tokens: int | None = TOKENS,
    dtype: str = "float16",
    scores: bool = False,
    seed: int = 0,
) -> "Capture | Session":
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
        scores: keep the logits that enter softmax, too, where they can be seen.
        seed: of the draws.

    Returns a `Capture`, a mapping from module path to `Call`; without a batch a context manager that gives it.

    Raises InputError for options that do not fit, ImportError where PyTorch is not installed. What the model raises is
    passed on, after all is put back.
    """
    wanted = Wanted(layers, heads, tokens, dtype, scores, seed)
    if not callable(model):
        raise InputError(f"a {type(model).__name__} is no model: it cannot be called")
    try:
        from sqrtdk.heads.capture.session import Session, one_pass
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            "sqrtdk.capture needs PyTorch, which is not installed; what other frameworks compute is saved as "
            "docs/file-format.md says"
        ) from error
    session = Session(model, wanted)
    return session if batch is None else one_pass(session, batch)
