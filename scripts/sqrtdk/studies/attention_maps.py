"""The attention matrix of one block of queries and keys, in narrow and wide heads, with and without the usual scale."""

from typing import Any

from sqrtdk.rows import softmax
from sqrtdk.sampling import streams
from sqrtdk.variants.notation import parse

N = 16
"""Queries, and keys, of the block."""
D_K = (4, 16, 64, 256, 1024)
RULES = ("none", "1/sqrt(d_k)")
WEIGHTS = tuple(f"weight_{j + 1}" for j in range(N))


def attention_maps(seed: int) -> list[dict[str, Any]]:
    """Draw standard normal queries and keys once and return a row for each width, scale rule and query.

    A narrow head takes the first components of the widest one's q and k, so that all matrices are of the same block.

    Returns:
        Rows seed, d_k, scaling, query (from 1), the weights, their largest and effective_keys 1/Σp².
    """
    rng = streams.generator(seed, "attention_maps")
    q, k = rng.standard_normal((2, N, max(D_K)))
    rows = []
    for d_k in D_K:
        ranked = softmax.rank(q[:, :d_k] @ k[:, :d_k].T)
        for rule in RULES:
            row = ranked.soften(parse(rule).constant(d_k, N))
            found = zip(softmax.weights(row).tolist(), softmax.effective_keys(row).tolist(), strict=True)
            for query, (weights, effective) in enumerate(found, start=1):
                identity = {"seed": seed, "d_k": d_k, "scaling": rule, "query": query}
                named = dict(zip(WEIGHTS, weights, strict=True))
                rows.append({**identity, **named, "largest_weight": max(weights), "effective_keys": effective})
    return rows
