"""Queries and keys of real attention heads: every token pair enumerated, errors from leaving out tokens."""

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_ESTIMATES = (
    *("mean", "variance", "within_row_variance", "excess_kurtosis", "independence_ratio", "logit_std"),
    *("within_row_logit_std", "entropy", "max_weight", "unscaled_entropy"),
)
COLUMNS = (
    *("dump", "layer", "head", "scaling", "d_k", "n_tokens", "n_scores", "factor"),
    *(column for name in _ESTIMATES for column in (name, f"{name}_se")),
    *("trace_term", "query_mean_term", "key_mean_term", "independence_variance", "quartile_1", "median", "quartile_3"),
)
"""Columns of real_heads.csv."""


class DumpError(ValueError):
    """A file of queries and keys that cannot be used, and why."""


@dataclass(frozen=True)
class Dump:
    """Queries and keys of a model: q and k of shape (layer, head, token, d_k), float64, before any scale."""

    q: np.ndarray
    k: np.ndarray


def read_dump(path: Path) -> Dump:
    """Read the arrays `q` and `k` of an npz file; nothing in the file is executed.

    Raises DumpError naming the file and the array that is missing, of the wrong shape or not finite.
    """
    try:
        # Opened here, since NumPy leaves a file that is no archive open.
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: np.asarray(archive[name], np.float64) for name in ("q", "k") if name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DumpError(f"{path}: not a readable npz file of numbers ({error})") from error
    for name in ("q", "k"):
        if name not in arrays:
            raise DumpError(f"{path}: has no array '{name}'")
        if arrays[name].ndim != 4 or 0 in arrays[name].shape or arrays[name].shape[2] < 3:
            raise DumpError(f"{path}: '{name}' has shape {arrays[name].shape}, not (layer, head, token >= 3, d_k)")
        if not np.isfinite(arrays[name]).all():
            raise DumpError(f"{path}: '{name}' holds values that are not finite")
    if arrays["q"].shape != arrays["k"].shape:
        raise DumpError(f"{path}: q has shape {arrays['q'].shape} and k has {arrays['k'].shape}")
    return Dump(**arrays)


def _jackknife_se(left_out: np.ndarray) -> float:
    n = len(left_out)
    return float(np.sqrt((n - 1) * np.mean((left_out - left_out.mean()) ** 2)))


def _power_means(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean of S^r, r = 1..4, over all pairs (4,), and without each token's row and column (token, 4)."""
    n = len(scores)
    full, left_out = [], []
    for power in (scores, scores**2, scores**3, scores**4):
        total = power.sum()
        full.append(total / n**2)
        left_out.append((total - power.sum(axis=0) - power.sum(axis=1) + np.diag(power)) / (n - 1) ** 2)
    return np.array(full), np.stack(left_out, axis=-1)


def _row_variance(scores: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean variance within a row, and the same without each token as query and key."""
    n = len(scores)
    sums, squares = scores.sum(axis=1, keepdims=True), (scores**2).sum(axis=1, keepdims=True)
    full = float(np.mean(squares / n - (sums / n) ** 2))
    # Column t holds every row's variance without key t.
    rows = (squares - scores**2) / (n - 1) - ((sums - scores) / (n - 1)) ** 2
    return full, (rows.sum(axis=0) - np.diag(rows)) / (n - 1)


def _entropy_and_weight(logits: np.ndarray) -> dict[str, tuple[float, np.ndarray]]:
    """Mean entropy and mean largest weight of the rows, and both without each token as query and key."""
    n = len(logits)
    each = np.arange(n)
    top = logits.argmax(axis=1)
    runner_up_logits = logits.copy()
    runner_up_logits[each, top] = -np.inf

    def parts(z):
        z = z - z.max(axis=1, keepdims=True)
        weight = np.exp(z)
        return weight, weight * np.where(weight > 0, z, 0.0)

    weight, product = parts(logits)
    z_sum, u_sum = weight.sum(axis=1, keepdims=True), product.sum(axis=1, keepdims=True)
    # Without a key that is not the largest at least half of the sum remains; without the largest it is taken anew.
    rest, rest_u = z_sum - weight, u_sum - product
    second, second_product = parts(runner_up_logits)
    largest = np.ones_like(weight)
    rest[each, top], rest_u[each, top] = second.sum(axis=1), second_product.sum(axis=1)

    def over_tokens(rows, full):
        return float(np.mean(full)), (rows.sum(axis=0) - np.diag(rows)) / (n - 1)

    return {
        "entropy": over_tokens(np.log(rest) - rest_u / rest, np.log(z_sum) - u_sum / z_sum),
        "max_weight": over_tokens(largest / rest, 1 / z_sum),
    }


def describe_head(q: np.ndarray, k: np.ndarray, factor: float) -> dict:
    """Moments of one head's scores over all token pairs, and what theory makes of its queries and keys.

    The variance splits exactly into tr(Σ_q Σ_k) + μ_qᵀΣ_kμ_q + μ_kᵀΣ_qμ_k with the moments over tokens. Beside it
    stands the formula for independent centred components, d_k E[q_i²] E[k_i²]. Standard errors are those of a
    jackknife over tokens, for the head's scores on text like this; they take tokens as exchangeable.

    Args:
        q: queries (token, d_k) before any scale. k: keys (token, d_k). factor: what the model multiplies q·k by.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        row = _describe(q, k, factor)
    # A head without any spread has no kurtosis and no ratio.
    return {name: value if np.isfinite(value) else None for name, value in row.items()}


def _describe(q: np.ndarray, k: np.ndarray, factor: float) -> dict:
    n, d_k = q.shape
    scores = q @ k.T
    centre = scores.mean()
    full, left_out = _power_means(scores - centre)

    def both(statistic):
        return float(statistic(full)), statistic(left_out)

    mean = full[0] + centre, left_out[:, 0] + centre
    variance = both(lambda p: p[..., 1] - p[..., 0] ** 2)
    kurtosis = both(
        lambda p: (
            (p[..., 3] - 4 * p[..., 0] * p[..., 2] + 6 * p[..., 0] ** 2 * p[..., 1] - 3 * p[..., 0] ** 4)
            / (p[..., 1] - p[..., 0] ** 2) ** 2
            - 3
        )
    )
    within_row = _row_variance(scores)

    def sizes(x):
        square = (x**2).sum(axis=1)
        return square.sum() / n, (square.sum() - square) / (n - 1)

    (q_size, q_left), (k_size, k_left) = sizes(q), sizes(k)
    independence = q_size * k_size / d_k
    ratio = variance[0] / independence, variance[1] / (q_left * k_left / d_k)
    mu_q, mu_k = q.mean(axis=0), k.mean(axis=0)
    cov_q, cov_k = np.cov(q.T, ddof=0).reshape(d_k, d_k), np.cov(k.T, ddof=0).reshape(d_k, d_k)
    softness = _entropy_and_weight(scores * factor)
    estimates = {
        "mean": mean,
        "variance": variance,
        "within_row_variance": within_row,
        "excess_kurtosis": kurtosis,
        "independence_ratio": ratio,
        "logit_std": (variance[0] ** 0.5 * factor, variance[1] ** 0.5 * factor),
        "within_row_logit_std": (within_row[0] ** 0.5 * factor, within_row[1] ** 0.5 * factor),
        "entropy": softness["entropy"],
        "max_weight": softness["max_weight"],
        "unscaled_entropy": _entropy_and_weight(scores)["entropy"],
    }
    row = {"d_k": d_k, "n_tokens": n, "n_scores": n * n, "factor": factor}
    for name in _ESTIMATES:
        value, without = estimates[name]
        row |= {name: float(value), f"{name}_se": _jackknife_se(without)}
    row |= {
        "trace_term": float(np.sum(cov_q * cov_k)),
        "query_mean_term": float(mu_q @ cov_k @ mu_q),
        "key_mean_term": float(mu_k @ cov_q @ mu_k),
        "independence_variance": float(independence),
    }
    for label, share in (("quartile_1", 0.25), ("median", 0.5), ("quartile_3", 0.75)):
        row[label] = float(np.quantile(scores, share))
    return row


def describe_dump(dump: Dump, name: str, scaling: str, factor: float) -> list[dict]:
    """Describe every head of a dump, layer by layer."""
    return [
        {"dump": name, "layer": layer, "head": head, "scaling": scaling} | describe_head(q, k, factor)
        for layer, (layer_q, layer_k) in enumerate(zip(dump.q, dump.k, strict=True))
        for head, (q, k) in enumerate(zip(layer_q, layer_k, strict=True))
    ]
