"""One query over a few keys, in narrow and wide heads, with and without the usual scale: the row of the opening."""

from typing import Any

import numpy as np

from sqrtdk.rows import softmax
from sqrtdk.sampling import streams
from sqrtdk.variants.notation import parse

N_KEYS = (16, 64)
D_K = tuple(2**power for power in range(13))
RULES = ("none", "1/sqrt(d_k)")


def one_query(seed: int) -> list[dict[str, Any]]:
    """Return the weights of one query for each number of keys, width, scale rule and key.

    Its scores are those of a row that is as normal as it can be: the quantiles of the normal distribution, with mean 0
    and standard deviation √d_k over the row, in a random order. The same row is widened with the head, so that the
    logits with 1/√d_k stay as they are; real scores of heads of different widths would differ.

    Returns:
        Rows n_keys, d_k, scaling, key (from 1), logit, weight, and of the whole row logit_std, largest_weight and
        effective_keys 1/Σp².
    """
    from scipy.special import ndtri

    rows = []
    for n in N_KEYS:
        z = streams.generator(seed, "one_query", n).permutation(ndtri((np.arange(n) + 0.5) / n))
        z /= z.std()
        for d_k in D_K:
            for rule in RULES:
                logits = parse(rule).constant(d_k, n) * np.sqrt(d_k) * z
                row = softmax.rank(logits[None]).soften(1.0)
                weights = softmax.weights(row)[0].tolist()
                whole = {
                    "logit_std": float(logits.std()),
                    "largest_weight": max(weights),
                    "effective_keys": float(softmax.effective_keys(row)[0]),
                }
                for key, (logit, weight) in enumerate(zip(logits.tolist(), weights, strict=True), start=1):
                    identity = {"n_keys": n, "d_k": d_k, "scaling": rule, "key": key}
                    rows.append(identity | {"logit": logit, "weight": weight} | whole)
    return rows
