"""What `transformers` hands to its attention functions, whichever is in force: eager, sdpa, flash or flex."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqrtdk.heads.capture.watching import Watch


@contextmanager
def watch_interface(watch: "Watch") -> Iterator[None]:
    """Let every attention function that a model takes from `AttentionInterface` tell `watch` what it is given.

    The function is found and called as ever, under its own name, so that masks are made for it as before.
    """
    utils = sys.modules.get("transformers.modeling_utils")
    interface = getattr(utils, "AttentionInterface", None)
    if interface is None:
        yield
        return
    # Older versions index the interface, and call the module's own eager function by name.
    name = "get_interface" if hasattr(interface, "get_interface") else "__getitem__"
    own = name in vars(interface)
    original = getattr(interface, name)
    wrapped: dict[Callable[..., Any], Callable[..., Any]] = {}

    def found(self: Any, *arguments: Any, **options: Any) -> Callable[..., Any]:
        function = original(self, *arguments, **options)
        return wrapped.setdefault(function, _telling(watch, function))

    setattr(interface, name, found)
    try:
        yield
    finally:
        if own:
            setattr(interface, name, original)
        else:
            delattr(interface, name)


def _telling(watch: "Watch", function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def attention(
        module: Any, query: Any, key: Any, value: Any, attention_mask: Any = None, *rest: Any, **options: Any
    ) -> Any:
        with watch.inside(module, query, key, attention_mask, options):
            return function(module, query, key, value, attention_mask, *rest, **options)

    return attention
