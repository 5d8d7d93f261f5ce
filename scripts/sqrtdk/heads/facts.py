"""Facts of one attention head from its queries, keys and mask, each with an interval from leaving tokens out.

Tokens are taken as exchangeable.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sqrtdk.heads.limits import SINK_SHARE, SINK_TIMES
from sqrtdk.heads.patterns import pattern_of
from sqrtdk.heads.regression import ScoreSlope, measure
from sqrtdk.heads.tally import Block, Sums, Tally, tally_of
from sqrtdk.statistics.estimates import jackknife_error, mean
from sqrtdk.statistics.intervals import interval, log_interval

ESTIMATES = (
    *("q_norm", "k_norm", "cosine", "score_mean", "score_std", "row_score_std", "logit_mean", "logit_std"),
    *("row_logit_std", "entropy", "relative_entropy", "max_weight", "saturated_share", "jacobian", "key_gradient"),
)
"""Facts with an interval, `<name>_low` and `<name>_high`; a `<name>_se` is kept beside them."""
PLAIN = (
    *("d_k", "effective_d_k", "direction_count", "n_queries", "n_keys", "n_scores", "rows_left_out", "factor"),
    *("trace_term", "query_mean_term", "key_mean_term", "score_min", "score_max", "logit_min", "logit_max"),
    *("max_weight_q10", "max_weight_q50", "max_weight_q90", "iid_entropy", "uniform_entropy"),
    *("fp16_score_overflow", "fp16_exp_overflow", "sink_key", "sink_share", "sink_count", "query_scale_mixing"),
    *(
        "q_rms",
        "k_rms",
        "q_norm_cv",
        "k_norm_cv",
        "q_on_ellipsoid",
        "k_on_ellipsoid",
        "measured_factor",
        "measured_factor_se",
        "measured_r2",
    ),
)
"""Facts without an interval."""
MORE = ("softcap", "learned_sink_share", "pattern", "pattern_at", "pattern_share")
"""Facts that came later, at the end of a table: the soft cap of the logits, the weight of a learned sink, and where the
largest weights stand (`patterns`)."""
_OF_VECTORS = (
    *(f"{name}{end}" for name in ("q_norm", "k_norm", "cosine") for end in ("", "_low", "_high", "_se")),
    *("d_k", "effective_d_k", "direction_count", "trace_term", "query_mean_term", "key_mean_term"),
    *("q_rms", "k_rms", "q_norm_cv", "k_norm_cv"),
)
NOTHING = "no query may see two keys, so there is nothing to measure"
EQUAL = 1e-9
"""Shares of attention that differ by less are the same."""


class Unmeasurable(ValueError):
    """A head without a query that may see two keys, or with scores beyond the range of float64."""


def describe(
    blocks: Iterable[Block], factor: float, measured: ScoreSlope | None = None, known: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the facts of one head.

    Args:
        blocks: sequences that the head read; all have q and k, or none has.
        factor: what q·k is multiplied by; 1 where only scores are given, since those are logits already.
        measured: what the scores say of the factor; None where that is still to be asked.
        known: what `vectors` says of the blocks; None where that is still to be asked.

    Where scores are given, logits, weights and gradients are theirs; else they follow from q·k, the factor, soft cap,
    bias and sink. Raises Unmeasurable where every row has fewer than two keys, or scores are beyond float64.
    """
    blocks = list(blocks)
    plain = all(block.plain for block in blocks)
    with np.errstate(over="ignore", invalid="ignore"):
        tallies = [tally_of(block, factor, plain) for block in blocks]
    if not any((tally.count > 1).any() for tally in tallies):
        raise Unmeasurable(NOTHING)
    sums = [one for tally in tallies for one in (tally.scores, tally.logits) if one is not None]
    if not all(
        math.isfinite(np.sum(x)) for x in [*(t.rows["entropy"] for t in tallies), *(s.rows["square"] for s in sums)]
    ):
        raise Unmeasurable("scores or logits are beyond the range of float64")
    facts = (vectors(blocks) if known is None else known) | _spreads(blocks, tallies, factor) | _counts(tallies)
    facts |= (measure(blocks) if measured is None else measured).facts()
    facts |= _weights(blocks, tallies) | pattern_of(blocks, tallies)
    facts["factor"] = factor
    return {name: _plain(value) for name, value in facts.items()}


def _plain(value: Any) -> float | int | str | None:
    if value is None or isinstance(value, int | str):
        return value
    value = float(value)
    return value if math.isfinite(value) else None


def _error(replicates: list[np.ndarray]) -> float:
    """Return the standard error from replicates without each token of one or two kinds (queries, keys)."""
    return jackknife_error(*(values[np.isfinite(values)] for values in replicates))


def _with_interval(name: str, value: float, se: float, degrees: float, log: bool = False) -> dict[str, Any]:
    """Return value, error and interval; with `log`, `se` is that of ln(value)."""
    if not (math.isfinite(se) and math.isfinite(value)) or degrees < 1:
        return {name: value, f"{name}_low": math.nan, f"{name}_high": math.nan, f"{name}_se": math.nan}
    low, high = (log_interval if log else interval)(value, se, degrees)
    return {name: value, f"{name}_low": low, f"{name}_high": high, f"{name}_se": value * se if log else se}


def _left_out(
    blocks: list[Block], rows: list[np.ndarray], columns: list[np.ndarray], diagonals: list[np.ndarray]
) -> list[np.ndarray]:
    """Return what each token takes with it: one array where queries and keys are the same tokens, else two.

    rows, columns, diagonals: arrays (sum, token) of each block: what its queries, its keys and both in common add.
    """
    if not all(block.shared for block in blocks):
        return [np.concatenate(rows, axis=-1), np.concatenate(columns, axis=-1)]
    both = []
    for block, *parts in zip(blocks, rows, columns, diagonals, strict=True):
        queries, keys = block.used()
        # A token of padding is none that could be left out.
        there = slice(None) if (queries | keys).all() else queries | keys
        both.append((parts[0] + parts[1] - parts[2])[:, there])
    return [np.concatenate(both, axis=-1)]


def _spreads(blocks: list[Block], tallies: list[Tally], factor: float) -> dict[str, Any]:
    """Return mean, spread and extremes of the scores and of the logits."""
    scores = [tally.scores for tally in tallies]
    facts = _spread("score", blocks, scores, 1.0)
    logits = [tally.logits for tally in tallies if tally.logits is not None]
    if not logits:
        return facts | _spread("logit", blocks, scores, factor)
    return facts | _spread("logit", blocks, logits, 1.0)


def _spread(prefix: str, blocks: list[Block], sums: list[Sums], scale: float) -> dict[str, Any]:
    """Return mean and spread of `scale` times what was summed, pooled and within rows, by exact leave-one-token-out."""
    references = np.array([one.reference for one in sums])
    base = float(references.mean())
    for one, shift in zip(sums, references - base, strict=True):
        # One reference for all blocks: sums of squares move with it.
        if shift:
            for part in (one.rows, one.columns, one.diagonal):
                part["square"] += 2 * shift * part["sum"] + shift**2 * part["count"]
                part["sum"] += shift * part["count"]
            one.reference = base
    names = ("count", "sum", "square")

    def pooled(count: Any, total: Any, square: Any) -> tuple[Any, Any]:
        with np.errstate(divide="ignore", invalid="ignore"):
            return total / count, np.maximum(square - total**2 / count, 0.0) / (count - 1)

    def within(square: Any, freedom: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.maximum(square, 0.0) / freedom

    def stacked(rows: list[np.ndarray], columns: Sequence[str]) -> list[np.ndarray]:
        """Return what each token takes with it, by names of sums over queries and over keys."""
        by_key = [[np.stack([part[name] for name in columns]) for part in (s.columns, s.diagonal)] for s in sums]
        return _left_out(blocks, rows, [one for one, _ in by_key], [other for _, other in by_key])

    totals = np.array([sum(one.rows[name].sum() for one in sums) for name in names])
    gone = stacked([np.stack([one.rows[name] for name in names]) for one in sums], names)
    centre, variance = pooled(*totals)
    rest = [pooled(*(totals[:, None] - part)) for part in gone]
    freedom = [np.maximum(one.rows["count"] - 1, 0) for one in sums]
    inner = np.array([sum(one.rows["within"].sum() for one in sums), sum(one.sum() for one in freedom)])
    gone_inner = stacked(
        [np.stack([one.rows["within"], free]) for one, free in zip(sums, freedom, strict=True)], ("loss", "count")
    )
    row_variance = float(within(*inner))
    rest_inner = [within(*(inner[:, None] - part)) for part in gone_inner]
    degrees = min(part.shape[-1] for part in gone) - 1

    def log_se(value: float, replicates: list[np.ndarray]) -> float:
        if not value > 0:
            return math.nan
        with np.errstate(divide="ignore", invalid="ignore"):
            return _error([np.log(values) for values in replicates]) / 2

    size, ends = abs(scale), sorted((scale * min(s.low for s in sums), scale * max(s.high for s in sums)))
    centre_se = _error([values[0] for values in rest])
    pooled_se, row_se = log_se(variance, [one[1] for one in rest]), log_se(row_variance, rest_inner)
    return {
        **_with_interval(f"{prefix}_mean", scale * (centre + base), size * centre_se, degrees),
        **_with_interval(f"{prefix}_std", size * math.sqrt(variance), pooled_se, degrees, log=True),
        **_with_interval(f"row_{prefix}_std", size * math.sqrt(row_variance), row_se, degrees, log=True),
        **{f"{prefix}_min": ends[0], f"{prefix}_max": ends[1]},
    }


def _counts(tallies: list[Tally]) -> dict[str, Any]:
    """Return how many scores there are, beyond what, and how rows differ."""
    counts = np.concatenate([tally.count for tally in tallies])
    overflow = sum(tally.overflow for tally in tallies) / max(counts.sum(), 1)
    row_std = np.sqrt(np.concatenate([t.scores.rows["within"] / np.maximum(t.count - 1, 1) for t in tallies]))
    row_std = row_std[counts > 1]
    return {
        "fp16_score_overflow": overflow[0],
        "fp16_exp_overflow": overflow[1],
        "n_scores": int(counts.sum()),
        "rows_left_out": int((counts < 2).sum()),
        "query_scale_mixing": row_std.std() / row_std.mean() if row_std.size and row_std.mean() > 0 else math.nan,
    }


_OF_WEIGHTS = {
    **{"entropy": "entropy", "max_weight": "max_weight", "saturated_share": "saturated"},
    **{"jacobian": "jacobian", "key_gradient": "gradient"},
}
"""Facts and the sums they are means, or root mean squares, of."""


def _weights(blocks: list[Block], tallies: list[Tally]) -> dict[str, Any]:
    """Return what softmax makes of the logits; a learned sink is one more outcome."""
    counts = np.concatenate([tally.count for tally in tallies])
    n_rows = int((counts > 1).sum())
    uniform = float(np.log(counts[counts > 1] + (blocks[0].sink is not None)).mean())

    facts: dict[str, Any] = {}
    for fact, name in _OF_WEIGHTS.items():
        sums = np.array([sum(tally.rows[name].sum() for tally in tallies), n_rows])
        gone = _left_out(
            blocks,
            [np.stack([t.rows[name], t.count > 1]) for t in tallies],
            [np.stack([-t.columns[name], np.zeros(t.attention.size)]) for t in tallies],
            [np.stack([-t.diagonal[name], np.zeros(t.diagonal[name].size)]) for t in tallies],
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            rest = [(sums[0] - part[0]) / (sums[1] - part[1]) for part in gone]
            degrees, value = min(part.shape[-1] for part in gone) - 1, sums[0] / sums[1]
            if fact in ("jacobian", "key_gradient"):
                se = _error([np.log(values) for values in rest]) / 2 if value > 0 else math.nan
                facts |= _with_interval(fact, math.sqrt(value) if value >= 0 else math.nan, se, degrees, log=True)
                continue
        se = _error(rest)
        facts |= _with_interval(fact, value, se, degrees)
        if fact == "entropy":
            facts |= _with_interval("relative_entropy", value / uniform, se / uniform, degrees)
            # A share; np.clip keeps the NaN of an interval that does not exist.
            for end in ("relative_entropy_low", "relative_entropy_high"):
                facts[end] = np.clip(facts[end], 0.0, 1.0)
    largest = np.concatenate([tally.rows["max_weight"] for tally in tallies])[counts > 1]
    quantiles = np.quantile(largest, (0.1, 0.5, 0.9))
    facts |= dict(zip(("max_weight_q10", "max_weight_q50", "max_weight_q90"), quantiles, strict=True))
    taken = sum(tally.sink for tally in tallies) / n_rows if blocks[0].sink is not None else None
    return facts | {"uniform_entropy": uniform, "learned_sink_share": taken} | _sinks(tallies)


def _sinks(tallies: list[Tally]) -> dict[str, Any]:
    """Return the key that takes most attention of those that may look at it, its share, and how many keys are sinks."""
    best: tuple[float, int | None] = (0.0, None)
    count = 0
    for tally in tallies:
        seen = tally.scores.columns["count"]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(seen > 0, tally.attention / seen, 0.0)
        rows = tally.count > 1
        uniform = 1 / max(tally.count[rows].mean(), 1.0) if rows.any() else 1.0
        # A key that few may look at is no sink, whatever they do.
        known = seen >= 0.1 * rows.sum()
        share = np.where(known, share, 0.0)
        count += int((share > max(SINK_TIMES * uniform, SINK_SHARE)).sum())
        # Of keys that take as much, as those of one token do, the first, whatever rounding makes of them.
        most = float(share.max())
        top = int((share >= most * (1 - EQUAL)).argmax())
        if best[1] is None or most > best[0] * (1 + EQUAL):
            best = (most, top)
    return {"sink_key": best[1], "sink_share": best[0], "sink_count": count}


def vectors(blocks: list[Block]) -> dict[str, Any]:
    """Return norms, cosine, width and the three terms of the variance from the vectors of tokens that take part.

    Each is None where there are scores alone. Raises Unmeasurable where no token takes part.
    """
    used = [block.used() for block in blocks]
    shape = {name: int(sum(one[side].sum() for one in used)) for side, name in enumerate(("n_queries", "n_keys"))}
    if blocks[0].q is None:
        return shape | dict.fromkeys(_OF_VECTORS)
    q = np.concatenate([block.pair[0][queries] for block, (queries, _) in zip(blocks, used, strict=True)])
    k = np.concatenate([block.pair[1][keys] for block, (_, keys) in zip(blocks, used, strict=True)])
    if not q.size or not k.size:
        raise Unmeasurable(NOTHING)
    d_k = q.shape[1]
    mu_q, mu_k = q.mean(axis=0), k.mean(axis=0)
    cq, ck = q - mu_q, k - mu_k
    cov_q, cov_k = cq.T @ cq / len(q), ck.T @ ck / len(k)
    product = cov_q @ cov_k
    squared = np.trace(product @ product)
    facts = shape | {
        "d_k": d_k,
        "effective_d_k": int((q.any(axis=0) | k.any(axis=0)).sum()),
        "direction_count": np.trace(product) ** 2 / squared if squared > 0 else math.nan,
        "trace_term": np.trace(product),
        "query_mean_term": mu_q @ cov_k @ mu_q,
        "key_mean_term": mu_k @ cov_q @ mu_k,
    }
    norms = {"q": np.sqrt(np.vecdot(q, q)), "k": np.sqrt(np.vecdot(k, k))}
    units = {}
    for name, norm in norms.items():
        average = mean(norm)
        facts |= _with_interval(f"{name}_norm", *average, len(norm) - 1)
        facts[f"{name}_norm_cv"] = norm.std() / average.value if average.value > 0 else math.nan
        facts[f"{name}_rms"] = math.sqrt(np.mean(norm**2) / max(facts["effective_d_k"], 1))
        side = q if name == "q" else k
        units[name] = side[norm > 0] / norm[norm > 0][:, None]
    if all(len(unit) > 1 for unit in units.values()):
        # The mean cosine of all pairs is a product of means, hence linear in either side.
        mean_q, mean_k = units["q"].mean(axis=0), units["k"].mean(axis=0)
        parts = [units["q"] @ mean_k, units["k"] @ mean_q]
        if all(block.shared for block in blocks) and len(parts[0]) == len(parts[1]):
            parts = [parts[0] + parts[1]]
        se = math.hypot(*(mean(part).se for part in parts))
        facts |= _with_interval("cosine", float(mean_q @ mean_k), se, min(map(len, parts)) - 1)
    else:
        facts |= _with_interval("cosine", math.nan, math.nan, 0)
    return {name: _plain(value) for name, value in facts.items()}
