"""Whether vectors lie on one ellipsoid, as after a normalisation with learned weights."""

import numpy as np

from sqrtdk.heads.cases import CONSTANT_NORM

ENOUGH = 2
"""Vectors in each dimension: fewer distinct ones lie on an ellipsoid by themselves, or nearly."""
MOST = 16
"""Vectors in each dimension that are looked at."""
DISTINCT = 2e-4
"""Norms that differ by less are those of one token, which rotation by its place leaves alone."""


def on_ellipsoid(vectors: np.ndarray) -> bool:
    """Say whether Σ w_i x_i² = 1 for some weights w, of vectors x (n, d_k).

    Repeated tokens count once, at whatever place they stand, since as many tokens as dimensions always fit. The squares
    of distinct tokens that fit no ellipsoid have, with a column of ones, a rank above d_k.
    """
    squares = vectors**2
    squares = squares[:, squares.any(axis=0)]
    n, width = squares.shape
    if width < 2 or n < ENOUGH * width:
        return False
    if n > MOST * width:
        squares = squares[np.linspace(0, n - 1, MOST * width).astype(int)]
    norms = np.sqrt(squares.sum(axis=1))
    order = np.argsort(norms)
    apart = np.diff(norms[order], prepend=-np.inf) > DISTINCT * norms[order]
    squares = squares[order[apart]]
    if len(squares) < ENOUGH * width:
        return False
    weights = np.linalg.lstsq(squares, np.ones(len(squares)))[0]
    return bool((squares @ weights).std() < 2 * CONSTANT_NORM)
