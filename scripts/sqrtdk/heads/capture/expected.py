"""The scale that a model's own configuration asks for, where it is another than 1/√d_k."""

import math

EXPECTED = {
    # Gemma 2 and 3 and their kin.
    "query_pre_attn_scalar": lambda value: value**-0.5,
    # Granite, by muP.
    "attention_multiplier": lambda value: value,
}
"""Names in configurations, and value -> what multiplies q·k."""
WIDTHS = ("embed_dim", "hidden_size", "d_model", "n_embd", "dim")
CLOSE = 1e-2


def expected_scale(module, d_k: int, gains, rotations: set[float]) -> tuple[float, str] | None:
    """Return the scale that a module's configuration names and that name, or None.

    gains: what q and k were multiplied by. rotations: what rotary embeddings of the model multiply them by.
    """
    config = getattr(module, "config", None)
    for name, rule in EXPECTED.items():
        if value := _positive(getattr(config, name, None)):
            return rule(value), f"{name} = {value:g}"
    for factor in rotations:
        if all(gain is not None and abs(gain / factor - 1) < CLOSE for gain in gains):
            return factor**2 / math.sqrt(d_k), f"attention_scaling = {factor:.4g} of the rotary embedding (YaRN)"
    rope = getattr(config, "rope_parameters", None) or {}
    factor, all_dim = (_positive(rope.get(name)) for name in ("factor", "mscale_all_dim"))
    if factor and factor > 1 and all_dim:
        # DeepSeek's YaRN multiplies the scale itself.
        mscale = 0.1 * all_dim * math.log(factor) + 1
        return mscale**2 / math.sqrt(d_k), f"mscale_all_dim = {all_dim:g} at factor {factor:g} (YaRN)"
    return None


def _positive(value) -> float | None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    return float(value) if number else None


def width_of_model(module) -> int | None:
    """Return the width of the model that a module or its configuration names, or None."""
    for owner in (module, getattr(module, "config", None)):
        for name in WIDTHS:
            value = getattr(owner, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None
