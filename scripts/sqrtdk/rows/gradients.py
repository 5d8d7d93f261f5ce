"""Exact backward pass of softmax attention, and the gradient norms of a row with respect to logits, query and keys.

For logits z = c·q·k_j, weights p and an upstream gradient v = ∂L/∂p:
g_z = J v with J = diag(p) − p pᵀ, g_q = c Kᵀ g_z and g_{k_j} = c g_{z_j} q.
"""

from collections.abc import Sequence

import numpy as np

from sqrtdk.rows import softmax
from sqrtdk.rows.softmax import Rows

SINGLE_OFFSET = 1e-25
"""Added before rounding to float32: invisible beside the entries near 1, it keeps subnormal numbers, on which a matrix
product runs several times slower, out of the array."""


def from_top(top: np.ndarray, upstream: np.ndarray) -> np.ndarray:
    """Return v_j − v_top, which has the same J v as v, since J 1 = 0. Shapes (...) and (..., n_keys)."""
    return upstream - np.take_along_axis(upstream, top[..., None], axis=-1)


def relative_logit_gradient(row: Rows, difference: np.ndarray) -> np.ndarray:
    """Return J v in units of the second largest weight, of order 1 however saturated the row is.

    With w_j = v_j − v_top and δ = Σ p_j w_j over the other keys, g_j = p_j (w_j − δ) and g_top = −p_top δ: nothing
    cancels as 1 − p_top does in p (v − Σ p v).

    Args:
        difference: w, as `from_top` returns it, (..., n_keys).
    """
    assert row.tail is not None  # rows that were held whole
    mean = np.vecdot(row.tail, difference)
    gradient = difference - (row.second * mean)[..., None]
    gradient *= row.tail
    np.put_along_axis(gradient, row.top[..., None], -(row.largest * mean)[..., None], axis=-1)
    return gradient


def softmax_backward(row: Rows, upstream: np.ndarray) -> np.ndarray:
    """Return ∂L/∂z = J v from v = ∂L/∂p, both (..., n_keys)."""
    return row.second[..., None] * relative_logit_gradient(row, from_top(row.top, upstream))


def attention_forward(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, mask: np.ndarray | None = None
) -> np.ndarray:
    """Return softmax(scale·q kᵀ) v for q (..., m, d_k), k (..., n, d_k), v (..., n, d_v) and mask (..., m, n)."""
    return softmax.softmax(scale * (q @ k.swapaxes(-1, -2)), mask) @ v


def attention_backward(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, upstream: np.ndarray, scale: float, mask: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (∂L/∂q, ∂L/∂k, ∂L/∂v) of softmax(scale·q kᵀ) v.

    Args:
        q: (..., m, d_k). k: (..., n, d_k). v: (..., n, d_v).
        upstream: ∂L/∂output, (..., m, d_v).
        scale: the positive scale factor c.
        mask: (..., m, n), as in `softmax.rank`; what is masked has no gradient.
    """
    row = softmax.rows(scale * (q @ k.swapaxes(-1, -2)), mask)
    g_z = scale * softmax_backward(row, upstream @ v.swapaxes(-1, -2))
    return g_z @ k, g_z.swapaxes(-1, -2) @ q, softmax.weights(row).swapaxes(-1, -2) @ upstream


def norms(
    row: Rows,
    differences: Sequence[np.ndarray],
    query_norm: np.ndarray,
    k: np.ndarray,
    scale: float,
    n_queries: int | None = None,
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return, for each upstream gradient, the rows' ‖g_z‖, ‖g_q‖ and (Σ_j ‖g_{k_j}‖²)^½ = c ‖q‖ ‖g_z‖.

    Args:
        row: softmax of the scaled scores, leading axes (..., m).
        differences: upstream gradients minus their value at the top key, each (..., m, n_keys).
        query_norm: ‖q‖, (..., m). k: (..., n_keys, d_k), shared by the m rows of a block.
        n_queries: ‖g_q‖ is evaluated for the first so many rows of a block; None for all.
    """
    all_gradients = [relative_logit_gradient(row, difference) for difference in differences]
    heads = [gradient[..., :n_queries, :] for gradient in all_gradients]
    if k.dtype == np.float32:
        heads = [np.add(head, SINGLE_OFFSET, dtype=np.float32, casting="same_kind") for head in heads]
    # One product for all of them, so that the keys pass through the cache once.
    pulled = np.concatenate(heads, axis=-2) @ k
    # Squared in the precision of k, whose error is far below the Monte-Carlo one.
    lengths = np.sqrt(np.vecdot(pulled, pulled).astype(np.float64))
    unit = scale * row.second[..., :n_queries]
    results = []
    for gradient, length in zip(all_gradients, np.split(lengths, len(differences), axis=-1), strict=True):
        logits = row.second * np.sqrt(np.vecdot(gradient, gradient))
        results.append((logits, unit * length, scale * query_norm * logits))
    return results
