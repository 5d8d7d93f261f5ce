"""Normalisations of vectors, as they stand before a projection or between it and attention, without gain and ε."""

import numpy as np


def rms_normalise(x: np.ndarray) -> np.ndarray:
    """Divide vectors (..., width) by the root mean square of their components: RMSNorm."""
    return x * np.sqrt(x.shape[-1] / np.vecdot(x, x))[..., None]


def layer_normalise(x: np.ndarray) -> np.ndarray:
    """Take the mean of the components from vectors (..., width), then divide by their root mean square: LayerNorm."""
    return rms_normalise(x - x.mean(axis=-1, keepdims=True))


def l2_normalise(x: np.ndarray) -> np.ndarray:
    """Divide vectors (..., width) by their length."""
    return x / np.sqrt(np.vecdot(x, x))[..., None]
