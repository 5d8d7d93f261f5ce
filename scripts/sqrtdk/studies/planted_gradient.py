"""How many rows a batch needs until its mean gradient points anywhere, in the task of finding a planted key.

A token x ~ N(0, I) of width D gives the query q = W x and, with another projection T, the part t = T x of the key that
is to be found: k* = ρ q + √(1 − ρ²) t, among n − 1 keys that are independent N(0, I); the rows of W and T are
orthonormal. The loss is −ln p*. With g_j = p_j − [j = *] its gradient by W is g_q xᵀ, g_q = c Σ g_j k_j. It is expected
to be G = aW + bT, for nothing else has a direction, and one row misses that with the variance v = E‖g_q xᵀ‖² − ‖G‖².
The mean of B rows has a cosine of 1/√(1 + v/(B‖G‖²)) with G: v/‖G‖² rows give 1/√2 (the simple noise scale of
McCandlish et al. 2018).

Given ‖q‖ = r and τ = t·q/r all that is needed is E A, E A², E(1 − p*), E(1 − p*)² and E Σ p², where A = Σ g_j z_j and
the sums run over the other keys: integrals over u as in `random_energy`, in which the planted key is a factor
exp(−e^{z* − u}). Nothing is simulated.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sqrtdk.theory import gaussian_rows, random_energy

N_KEYS = (3, 16, 64, 256, 1024, 4096)
HEADS = 8
"""Width of a token over that of a head. The numbers of rows grow with it, their ratio hardly."""
START = 0.0
"""Cosine of the query with the key to be found when nothing is learned yet."""
NORM_STEP, STEP = 0.3, 0.5
"""Trapezoidal steps of r and of u."""
REACH = 6.0
"""Standard deviations of τ that are integrated over."""
PLAIN, SCALED = "none", "1/sqrt(d_k)"
WIDTHS = (16, 64, 256)


def table(cosines: Sequence[float]) -> list[dict[str, Any]]:
    """Return the rows of planted_gradient.csv."""
    rows = []
    for d_k in WIDTHS:
        for rho in dict.fromkeys(map(float, (*cosines, START))):
            found = {rule: signal_and_noise(d_k, N_KEYS, rho, c) for rule, c in ((PLAIN, 1.0), (SCALED, d_k**-0.5))}
            for rule, columns in found.items():
                ratio = columns["rows"] / found[SCALED]["rows"]
                for i, n in enumerate(N_KEYS):
                    key = {"d_k": d_k, "rho": rho, "n_keys": n, "scaling": rule}
                    rows.append(
                        key | {name: float(column[i]) for name, column in columns.items()} | {"ratio": ratio[i]}
                    )
    return rows


def signal_and_noise(d_k: int, n_keys: Sequence[int], rho: float, factor: float) -> dict[str, np.ndarray]:
    """Return, for each number of keys, ‖G‖, the root √v of the variance of one row, the rows v/‖G‖², and E(1 − p*)."""
    turn, across, rest = math.sqrt(1 - rho**2), d_k - 1, (HEADS - 2) * d_k
    along_w, along_t, energy, left = np.zeros((4, len(n_keys)))
    for r, share in zip(*gaussian_rows.norm_nodes(d_k, NORM_STEP), strict=True):
        spread = factor * r
        step = min(0.5, 2 / (1 + spread * turn))
        tau = np.arange(-REACH, REACH + step / 2, step) if turn else np.zeros(1)
        weight = np.exp(-(tau**2) / 2)
        weight *= share / weight.sum()
        pull, pull_square, missed, missed_square, others = _sums(n_keys, spread, spread * rho * r, spread * turn * tau)
        token = r**2 + tau**2 + across + rest
        left += missed @ weight
        along_w += pull @ weight
        along_t += (pull * tau / r - factor * turn * across * missed) @ weight
        energy += pull_square / r**2 @ (weight * token)
        energy += factor**2 * across * (others @ (weight * token) + turn**2 * (missed_square @ (weight * (token + 2))))
    signal = (along_w**2 + along_t**2) / d_k
    noise = energy - signal
    return {"signal": np.sqrt(signal), "noise": np.sqrt(noise), "rows": noise / signal, "missed": left}


def _sums(n_keys: Sequence[int], spread: float, centre: float, planted: np.ndarray) -> np.ndarray:
    """Return E A, E A², E(1 − p*), E(1 − p*)² and E Σp², each (n_keys, planted).

    spread: of the other keys' logits. planted: those of the planted key, less `centre`.
    """
    u = np.arange(
        centre + planted.min() - 4, max(9.5 * spread + math.log(max(n_keys)), centre + planted.max()) + 25, STEP
    )
    log_phi, _, ((m1, m2, _), (x1, x2), xx2) = random_energy.inner(u, spread)
    # The moments of a and z = u + ln a, from the centre on; each column a function of u.
    w = u - centre
    z1, z2, zz2 = x1 + w * m1, x2 + w * m2, xx2 + 2 * w * x2 + w**2 * m2
    columns = []
    for n in n_keys:
        one = (n - 1) * np.exp((n - 2) * log_phi)
        two = (n - 1) * (n - 2) * np.exp((n - 3) * log_phi) if n > 2 else np.zeros(len(u))
        columns.append(
            [one * m1, one * z1, one * m2 + two * m1**2, one * z2 + two * m1 * z1, one * zz2 + two * z1**2, one * m2]
        )
    with np.errstate(under="ignore", over="ignore"):
        alone = np.exp(-np.exp(np.minimum(planted[:, None] - w, 50.0))) * STEP
        first, mixed, second, crossed, square, others = np.moveaxis(np.array(columns) @ alone.T, 1, 0)
    return np.stack(
        [mixed - planted * first, square - 2 * planted * crossed + planted**2 * second, first, second, others]
    )
