"""Queries and keys of real attention heads: every token pair enumerated, errors from leaving out runs of tokens."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sqrtdk.heads.dumps import read_dumps
from sqrtdk.heads.errors import InputError
from sqrtdk.heads.limits import ABSURD, SINK_SHARE, SINK_TIMES
from sqrtdk.heads.reading import tensors, words_of
from sqrtdk.results.picking import ENUMERATED
from sqrtdk.statistics.estimates import jackknife_error

REASON = "all token pairs of a real head; no exact law, errors from leaving out runs of tokens"
MIN_TOKENS = 3
"""Of a dump: the first and the last stay in every replicate, and one between them is left out."""
RUNS = 21
"""Runs of consecutive tokens that are left out in turn: neighbours are alike, so single tokens tell too little."""


@dataclass(frozen=True)
class Activations:
    """Queries and keys of a model that read one text, float64, before any scale.

    q: (layer, head, query, d_k). k: (layer, head, key, d_k). layers: the numbers of the layers. heads: the numbers of
    the heads. allowed: which keys each query may look at, (query, key); None for all. places: of the queries among the
    keys.
    """

    q: np.ndarray
    k: np.ndarray
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    allowed: np.ndarray | None
    places: np.ndarray

    def each(self) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
        """Yield the number of the layer, that of the head, its queries and its keys."""
        for layer, layer_q, layer_k in zip(self.layers, self.q, self.k, strict=True):
            for head, q, k in zip(self.heads, layer_q, layer_k, strict=True):
                yield layer, head, q, k


def read_dump(path: Path) -> Activations:
    """Read a capture, or the arrays `q` and `k` of an npz file; nothing in the file is executed.

    Raises InputError naming the file and the array that is missing, of the wrong shape, not finite or absurdly large.
    """
    path = Path(path)
    if path.suffix.lower() != ".npz":
        raise InputError(f"{path}: not a .npz file")
    found = tensors(path, ("q", "k").__contains__)
    if not found and words_of(path) is not None:
        return _captured(path)
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
    n_layers, n_heads, n_tokens, _ = arrays["q"].shape
    return Activations(
        **arrays, layers=(*range(n_layers),), heads=(*range(n_heads),), allowed=None, places=np.arange(n_tokens)
    )


def _captured(path: Path) -> Activations:
    """Return what `sqrtdk.capture` saved of one sequence, all of whose layers look alike."""
    (dump,) = read_dumps([path])
    blocks = []
    for head in dump.heads:
        (block, *more), where = head.blocks(), f"{path}: layer {head.layer}, head {head.head}"
        if more or block.scores is not None or block.bias is not None or block.softcap or block.sink is not None:
            raise InputError(f"{where}: has several sequences, or more in its logits than q·k; the audit reads those")
        if block.findings or block.left_out:
            raise InputError(f"{where}: holds padding, or numbers that are not finite")
        blocks.append(block)
    layers, heads = (
        tuple(dict.fromkeys(numbers)) for numbers in zip(*((one.layer, one.head) for one in dump.heads), strict=True)
    )
    first, (n, m) = blocks[0], blocks[0].shape
    if len(blocks) != len(layers) * len(heads) or any(block.shape != (n, m) for block in blocks):
        raise InputError(f"{path}: layers differ in their numbers of heads or tokens; the audit reads those")
    if m < MIN_TOKENS:
        raise InputError(f"{path}: has {m} tokens, fewer than {MIN_TOKENS}")
    places = np.arange(n) + (m - n) if first.positions is None else first.positions
    q, k = (
        np.stack([getattr(block, side) for block in blocks]).reshape(len(layers), len(heads), size, -1)
        for side, size in (("q", n), ("k", m))
    )
    return Activations(q, k, layers, heads, first.allowed, places)


def describe_head(
    q: np.ndarray, k: np.ndarray, factor: float, allowed: np.ndarray | None = None, places: np.ndarray | None = None
) -> dict[str, Any]:
    """Moments of one head's scores over all token pairs, and what theory makes of its queries and keys.

    Without a mask the variance splits exactly into tr(Σ_q Σ_k) + μ_qᵀΣ_kμ_q + μ_kᵀΣ_qμ_k with the moments over tokens.
    Beside it stands the formula for independent centred components of equal variance, d_k E[q_i²] E[k_i²]. Standard
    errors are those of a jackknife over runs of tokens (Künsch 1989), as queries and as keys. The first and the last
    token, where models have their special ones, stay in every replicate: they belong to every text.

    Args:
        q: queries (query, d_k) before any scale. k: keys (key, d_k). factor: what the model multiplies q·k by.
        allowed: which keys each query may look at, (query, key). places: of the queries among the keys.
    """
    (n, d_k), m = q.shape, len(k)
    scores, places = q @ k.T, np.arange(n) if places is None else places
    sizes = (q**2).sum(axis=1), (k**2).sum(axis=1)
    sinks = _sinks(scores * factor, allowed)

    def statistics(rows: np.ndarray, keys: np.ndarray) -> dict[str, float]:
        part = np.ix_(rows, keys)
        seen = None if allowed is None else allowed[part]
        return _statistics(scores[part], sizes[0][rows], sizes[1][keys], d_k, factor, seen, sinks[keys])

    with np.errstate(divide="ignore", invalid="ignore"):
        estimates = statistics(np.arange(n), np.arange(m))
        runs = np.array_split(np.arange(1, m - 1), min(RUNS, m - 2))
        left_out = [statistics(np.flatnonzero(~np.isin(places, run)), np.delete(np.arange(m), run)) for run in runs]
    counts = np.full(n, m) if allowed is None else allowed.sum(axis=1)
    row = {"d_k": d_k, "n_tokens": m, "n_scores": int(counts.sum()), "factor": factor}
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
    pairs = scores if allowed is None else scores[allowed]
    row |= dict(zip(("quartile_1", "median", "quartile_3"), np.quantile(pairs, [0.25, 0.5, 0.75]), strict=True))
    row |= {"n_queries": n, "uniform_entropy": np.log(counts).mean(), "sinks": int(sinks.sum())}
    # A head without any spread has no kurtosis and no ratio.
    return {name: _number(value) for name, value in row.items()}


def _number(value: Any) -> float | int | None:
    if isinstance(value, int):
        return value
    return float(value) if np.isfinite(value) else None


def _sinks(logits: np.ndarray, allowed: np.ndarray | None) -> np.ndarray:
    """Return which keys are sinks, (key,): given a large share of attention by those that may look at them."""
    weight, total, _ = _weights(logits, allowed)
    weight = np.divide(weight, total[:, None], where=total[:, None] > 0, out=weight)
    seen = np.full(len(weight[0]), len(weight)) if allowed is None else allowed.sum(axis=0)
    with np.errstate(invalid="ignore"):
        share = np.where(seen >= 0.1 * len(weight), weight.sum(axis=0) / seen, 0.0)
    return share > max(SINK_TIMES * len(weight) / seen.sum(), SINK_SHARE)


def _statistics(
    scores: np.ndarray,
    q_size: np.ndarray,
    k_size: np.ndarray,
    d_k: int,
    factor: float,
    allowed: np.ndarray | None,
    sinks: np.ndarray,
) -> dict[str, float]:
    """Return the estimates of a rectangle of scores, given the squared norms of its queries and keys, and its sinks."""
    where: Any = True if allowed is None else allowed
    square = (scores - scores.mean(where=where)) ** 2
    variance = square.mean(where=where)
    within_row = variance - _between_rows(scores, allowed)
    entropy, max_weight = _softness(scores * factor, allowed)
    sinkless = within_row
    if sinks.any():
        rest, seen = scores[:, ~sinks], None if allowed is None else allowed[:, ~sinks]
        whole: Any = True if seen is None else seen
        sinkless = rest.var(where=whole) - _between_rows(rest, seen)
    return {
        "mean": scores.mean(where=where),
        "variance": variance,
        "within_row_variance": within_row,
        "excess_kurtosis": np.mean(square * square, where=where) / variance**2 - 3,
        "independence_ratio": variance / (q_size.mean() * k_size.mean() / d_k),
        "logit_std": variance**0.5 * factor,
        "within_row_logit_std": within_row**0.5 * factor,
        "entropy": entropy,
        "max_weight": max_weight,
        "unscaled_entropy": _softness(scores, allowed)[0],
        "sinkless_row_logit_std": sinkless**0.5 * factor,
    }


def _between_rows(scores: np.ndarray, allowed: np.ndarray | None) -> float:
    """Return the variance of the means of rows, each with the weight of its number of scores."""
    if allowed is None:
        return float(scores.mean(axis=1).var())
    counts = allowed.sum(axis=1)
    rows = counts > 0
    means = scores[rows].sum(axis=1, where=allowed[rows]) / counts[rows]
    return float(np.average((means - scores.mean(where=allowed)) ** 2, weights=counts[rows]))


def _weights(logits: np.ndarray, allowed: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights before their division by the sum of the row, those sums, and how far each logit is below the top.

    A key that a query may not look at has a weight of 0.
    """
    where: Any = True if allowed is None else allowed
    below = logits.max(axis=1, keepdims=True, where=where, initial=-np.inf) - logits
    if allowed is not None:
        below = np.where(allowed, below, 0.0)
    weight = np.exp(-below)
    if allowed is not None:
        weight = np.where(allowed, weight, 0.0)
    return weight, weight.sum(axis=1), below


def _softness(logits: np.ndarray, allowed: np.ndarray | None) -> tuple[float, float]:
    """Return the mean entropy and the mean largest weight of the rows; both are sums of terms of one sign."""
    weight, total, below = _weights(logits, allowed)
    if allowed is not None:
        rows = total > 0
        weight, total, below = weight[rows], total[rows], below[rows]
    entropy = np.log(total) + np.einsum("ij,ij->i", weight, below) / total
    return float(np.mean(entropy)), float(np.mean(1 / total))


def describe_dump(dump: Activations, name: str, scaling: str, factor: float) -> list[dict[str, Any]]:
    """Describe every head of a dump, layer by layer."""
    return [
        {"dump": name, "layer": layer, "head": head, "scaling": scaling}
        | describe_head(q, k, factor, dump.allowed, dump.places)
        for layer, head, q, k in dump.each()
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
