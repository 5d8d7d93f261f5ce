"""The scale that a model's own configuration asks for, where it is another than 1/√d_k."""

import math
from collections.abc import Callable
from typing import Any

EXPECTED: dict[str, Callable[[float], float]] = {
    # Gemma 2 and 3 and their kin.
    "query_pre_attn_scalar": lambda value: value**-0.5,
    # Granite, by muP.
    "attention_multiplier": lambda value: value,
}
"""Names in configurations, and value -> what multiplies q·k."""
WIDTHS = ("embed_dim", "hidden_size", "d_model", "n_embd", "dim")


def expected_scale(module: Any, d_k: int) -> tuple[float, str] | None:
    """Return the scale that a module's configuration names and that name, or None."""
    config = getattr(module, "config", None)
    for name, rule in EXPECTED.items():
        if value := _positive(getattr(config, name, None)):
            return rule(value), f"{name} = {value:g}"
    rope = getattr(config, "rope_parameters", None) or {}
    factor, all_dim = (_positive(rope.get(name)) for name in ("factor", "mscale_all_dim"))
    if factor and factor > 1 and all_dim:
        # DeepSeek's YaRN multiplies the scale itself.
        mscale = 0.1 * all_dim * math.log(factor) + 1
        return mscale**2 / math.sqrt(d_k), f"mscale_all_dim = {all_dim:g} at factor {factor:g} (YaRN)"
    return None


def _positive(value: Any) -> float | None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    return float(value) if number else None


def width_of_model(module: Any, projected: int | None, least: int) -> int | None:
    """Return the width of the model: a module's, that of its projections' inputs, its configuration's, or None.

    projected: width of the input of a projection, which is that of a low rank where it is below `least`.
    """
    named = [[getattr(owner, name, None) for name in WIDTHS] for owner in (module, getattr(module, "config", None))]
    wide = [projected] if projected and projected >= least else []
    for value in (*named[0], *wide, *named[1]):
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None
