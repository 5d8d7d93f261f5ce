"""Queries and keys of real attention heads: every token pair enumerated, errors from leaving out runs of tokens."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sqrtdk.heads.errors import InputError
from sqrtdk.heads.limits import ABSURD
from sqrtdk.heads.reading import tensors
from sqrtdk.results.picking import ENUMERATED
from sqrtdk.statistics.estimates import jackknife_error

REASON = "all token pairs of a real head; no exact law, errors from leaving out runs of tokens"
MIN_TOKENS = 3
"""Of a dump: the first and the last stay in every replicate, and one between them is left out."""
RUNS = 21
"""Runs of consecutive tokens that are left out in turn: neighbours are alike, so single tokens tell too little."""


@dataclass(frozen=True)
class Activations:
    """Queries and keys of a model: q and k of shape (layer, head, token, d_k), float64, before any scale."""

    q: np.ndarray
    k: np.ndarray


def read_dump(path: Path) -> Activations:
    """Read the arrays `q` and `k` of an npz file; nothing in the file is executed.

    Raises InputError naming the file and the array that is missing, of the wrong shape, not finite or absurdly large.
    """
    path = Path(path)
    if path.suffix.lower() != ".npz":
        raise InputError(f"{path}: not a .npz file")
    found = tensors(path, ("q", "k").__contains__)
    for name in ("q", "k"):
        if name not in found:
            raise InputError(f"{path}: has no array '{name}'")
        shape = found[name].shape
        if found[name].boolean:
            raise InputError(f"{found[name].where} holds truth values, not real numbers")
        if len(shape) != 4 or 0 in shape or shape[2] < MIN_TOKENS:
            raise InputError(f"{found[name].where} has shape {shape}, not (layer, head, token >= {MIN_TOKENS}, d_k)")
    if found["q"].shape != found["k"].shape:
        raise InputError(f"{path}: q has shape {found['q'].shape} and k has {found['k'].shape}")
    arrays = {name: found[name].finite() for name in ("q", "k")}
    for name, array in arrays.items():
        if float(np.abs(array).max()) > ABSURD:
            raise InputError(f"{found[name].where} holds values beyond {ABSURD:g}, which no activation is")
    return Activations(**arrays)


def describe_head(q: np.ndarray, k: np.ndarray, factor: float) -> dict[str, Any]:
    """Moments of one head's scores over all token pairs, and what theory makes of its queries and keys.

    The variance splits exactly into tr(Σ_q Σ_k) + μ_qᵀΣ_kμ_q + μ_kᵀΣ_qμ_k with the moments over tokens. Beside it
    stands the formula for independent centred components of equal variance, d_k E[q_i²] E[k_i²]. Standard errors are
    those of a jackknife over runs of tokens (Künsch 1989), as queries and as keys. The first and the last token, where
    models have their special ones, stay in every replicate: they belong to every text.

    Args:
        q: queries (token, d_k) before any scale. k: keys (token, d_k). factor: what the model multiplies q·k by.
    """
    n, d_k = q.shape
    scores = q @ k.T
    sizes = (q**2).sum(axis=1), (k**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        estimates = _statistics(scores, *sizes, d_k, factor)
        runs = np.array_split(np.arange(1, n - 1), min(RUNS, n - 2))
        left_out = []
        for run in runs:
            rest = np.delete(np.arange(n), run)
            left_out.append(_statistics(scores[np.ix_(rest, rest)], sizes[0][rest], sizes[1][rest], d_k, factor))
    row = {"d_k": d_k, "n_tokens": n, "n_scores": n * n, "factor": factor}
    for name, value in estimates.items():
        without = np.array([replicate[name] for replicate in left_out])
        row |= {name: value, f"{name}_se": jackknife_error(without)}
    mu_q, mu_k = q.mean(axis=0), k.mean(axis=0)
    cov_q, cov_k = np.cov(q.T, ddof=0).reshape(d_k, d_k), np.cov(k.T, ddof=0).reshape(d_k, d_k)
    product = cov_q @ cov_k
    with np.errstate(divide="ignore", invalid="ignore"):
        # Over how many directions the variance is spread: the participation ratio of the spectrum of Σ_q Σ_k.
        effective_dimension = np.trace(product) ** 2 / np.trace(product @ product)
    row |= {
        "trace_term": np.trace(product),
        "effective_dimension": effective_dimension,
        "query_mean_term": mu_q @ cov_k @ mu_q,
        "key_mean_term": mu_k @ cov_q @ mu_k,
        "independence_variance": sizes[0].mean() * sizes[1].mean() / d_k,
    }
    row |= dict(zip(("quartile_1", "median", "quartile_3"), np.quantile(scores, [0.25, 0.5, 0.75]), strict=True))
    # A head without any spread has no kurtosis and no ratio.
    return {name: _number(value) for name, value in row.items()}


def _number(value: Any) -> float | int | None:
    if isinstance(value, int):
        return value
    return float(value) if np.isfinite(value) else None


def _statistics(
    scores: np.ndarray, q_size: np.ndarray, k_size: np.ndarray, d_k: int, factor: float
) -> dict[str, float]:
    """Return the estimates of `_ESTIMATES` for a square of scores, given the squared norms of its queries and keys."""
    square = (scores - scores.mean()) ** 2
    variance = square.mean()
    within_row = variance - scores.mean(axis=1).var()
    entropy, max_weight = _softness(scores * factor)
    return {
        "mean": scores.mean(),
        "variance": variance,
        "within_row_variance": within_row,
        "excess_kurtosis": np.mean(square * square) / variance**2 - 3,
        "independence_ratio": variance / (q_size.mean() * k_size.mean() / d_k),
        "logit_std": variance**0.5 * factor,
        "within_row_logit_std": within_row**0.5 * factor,
        "entropy": entropy,
        "max_weight": max_weight,
        "unscaled_entropy": _softness(scores)[0],
    }


def _softness(logits: np.ndarray) -> tuple[float, float]:
    """Return the mean entropy and the mean largest weight of the rows; both are sums of terms of one sign."""
    below = logits.max(axis=1, keepdims=True) - logits
    weight = np.exp(-below)
    total = weight.sum(axis=1)
    return np.mean(np.log(total) + np.einsum("ij,ij->i", weight, below) / total), np.mean(1 / total)


def describe_dump(dump: Activations, name: str, scaling: str, factor: float) -> list[dict[str, Any]]:
    """Describe every head of a dump, layer by layer."""
    return [
        {"dump": name, "layer": layer, "head": head, "scaling": scaling} | describe_head(q, k, factor)
        for layer, (layer_q, layer_k) in enumerate(zip(dump.q, dump.k, strict=True))
        for head, (q, k) in enumerate(zip(layer_q, layer_k, strict=True))
    ]


def row_of_moments(head: Mapping[str, Any], columns: Iterable[str]) -> dict[str, Any]:
    """Put a head, as `describe_head` gives it, in the columns of moments.csv; what is not known of heads is None."""
    name = f"{head['dump']}_l{head['layer']}_h{head['head']:02d}"
    return {column: head.get(column) for column in columns} | {
        "ensemble": name,
        "stopped_by": ENUMERATED,
        "kurtosis_trusted": False,
        "reason": REASON,
        "interquartile_range": head["quartile_3"] - head["quartile_1"],
        # Of three tokens, one replicate of the jackknife is left, and no error.
        "relative_se": head["variance_se"] / head["variance"] if head["variance"] and head["variance_se"] else None,
    }
