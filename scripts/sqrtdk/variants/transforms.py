"""Score transforms: what is done to logits between the scale and softmax. A new one is one entry in `_TRANSFORMS`."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sqrtdk.sampling.parameters import Parameter

LEAST, MOST = 1e-6, 1e6
"""Limits of caps and clips."""


@dataclass(frozen=True)
class Transform:
    """An elementwise function of the logits.

    of: (z, parameter) -> transformed logits. slope: (z, parameter) -> its derivative, a constant for the gradient
    where a whole block shares it. odd: whether the transform is an odd function of each logit alone.
    """

    name: str
    label: str
    formula: str
    source: str
    parameters: tuple[Parameter, ...]
    of: Callable[[np.ndarray, float], np.ndarray]
    slope: Callable[[np.ndarray, float], np.ndarray]
    odd: bool = True


def _clip_factor(z: np.ndarray, limit: float) -> np.ndarray:
    """min(1, limit/largest logit) of each block, whose rows and keys are the last two axes."""
    largest = z.max(axis=(-2, -1), keepdims=True)
    return np.minimum(1.0, limit / np.maximum(largest, np.finfo(float).tiny))


_TRANSFORMS = (
    Transform(
        "soft_cap",
        "soft cap {:g}",
        r"\tau \, \operatorname{tanh} ( z / \tau )",
        "Gemma Team 2024 (Gemma 2), cap 50",
        (Parameter("cap", "largest size τ of a logit", 50.0, low=LEAST, high=MOST, low_open=False, high_open=False),),
        lambda z, cap: cap * np.tanh(z / cap),
        lambda z, cap: 1 - np.tanh(z / cap) ** 2,
    ),
    Transform(
        "hard_clip",
        "clip ±{:g}",
        r"\max ( - L , \min ( L , z ) )",
        "clipping the logits",
        (Parameter("limit", "largest size L of a logit", 10.0, low=LEAST, high=MOST, low_open=False, high_open=False),),
        lambda z, limit: np.clip(z, -limit, limit),
        lambda z, limit: (np.abs(z) < limit).astype(float),
    ),
    Transform(
        "qk_clip",
        "QK-Clip {:g}",
        r"z \, \min ( 1 , \tau / \max z )",
        "Kimi Team 2025 (Kimi K2), τ = 100: W_q and W_k shrink until the head's largest logit is τ",
        (
            Parameter(
                "limit", "largest logit τ of a head", 100.0, low=LEAST, high=MOST, low_open=False, high_open=False
            ),
        ),
        lambda z, limit: z * _clip_factor(z, limit),
        # The weights are rescaled between steps, so that no gradient passes through the factor.
        lambda z, limit: np.broadcast_to(_clip_factor(z, limit), z.shape),
        odd=False,
    ),
)

TRANSFORMS: dict[str, Transform] = {transform.name: transform for transform in _TRANSFORMS}
