"""Wrong scales, put into a model where it has its own."""

from contextlib import contextmanager

import torch.nn.functional as F

FAULTS = ("no scale", "applied twice", "width of the model", "another width")
NAMES = ("scaling", "scale", "inv_norm_factor")
"""What modules call the number that multiplies q·k, or q before it."""


@contextmanager
def scaled(model, paths, factor: float):
    """Let attention in some modules multiply q·k by another factor than the model's."""
    modules = dict(model.named_modules())
    found = [modules[path.split("#")[0]] for path in paths]
    names = {name for module in found for name in NAMES if isinstance(getattr(module, name, None), float)}
    for module in found:
        for name in names:
            setattr(module, name, factor)
    if names & {"scaling", "scale"}:
        yield
    elif hasattr(found[0], "q_proj"):
        # GPT-Neo has no scale; one on the projection is as good.
        handles = [module.q_proj.register_forward_hook(lambda module, x, y: factor * y) for module in found]
        yield
        for handle in handles:
            handle.remove()
    else:
        original = F.scaled_dot_product_attention
        F.scaled_dot_product_attention = lambda *args, **options: original(*args, **(options | {"scale": factor}))
        try:
            yield
        finally:
            F.scaled_dot_product_attention = original
