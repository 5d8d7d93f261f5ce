"""A widely used example of three logits, and what rows of random queries and keys at its d_k really look like."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from sqrtdk.rows import gradients, softmax
from sqrtdk.sampling import densities, streams
from sqrtdk.statistics import estimates, quantiles
from sqrtdk.theory import gaussian_rows, random_energy
from sqrtdk.variants.notation import parse

D_K = 64
N_KEYS = (3, 10, 64, 512)
RULES = ("none", "1/sqrt(d_k)")
SMALL, LARGE = (1.0, 0.5, 0.8), (14.0, 10.0, 12.0)
TRIPLES = {
    "small": SMALL,
    "large": LARGE,
    "small_times_10": tuple(10 * z for z in SMALL),
    "large_over_8": tuple(z / math.sqrt(D_K) for z in LARGE),
}
PRINTED = {"small": (0.41, 0.20, 0.39), "large": (0.867, 0.016, 0.117)}
"""Weights printed beside these logits where the example is told."""
HIGH, NARROW, SHARP, WIDE = 10.0, 4.0, 0.87, 16.0
"""What the example says of typical scores: all of them at least HIGH, within NARROW of each other, a largest weight of
SHARP; and scores beyond ±WIDE."""
N_QUERIES = 16
MIN_BLOCKS = 32
MAX_ROWS = 2**18
LOGITS_PER_ROW = 40
BATCH_LOGITS = 2**17
STEP = 0.25


def table(n_rows: int, seed: int) -> list[dict[str, Any]]:
    """Return the rows of worked_example.csv.

    n_rows: each number of keys gets LOGITS_PER_ROW times as many logits, but no more than MAX_ROWS rows.
    """
    rows = [_row("triples", case, 3, "none", name, value) for case in TRIPLES for name, value in triple(case).items()]
    for n_keys in N_KEYS:
        rows += random_rows(n_keys, LOGITS_PER_ROW * n_rows, seed)
    return rows


def _row(
    part: str,
    case: str,
    n_keys: int,
    scaling: str,
    measure: str,
    estimate: float,
    se: float | None = None,
    theory: float | None = None,
    n_rows: int | None = None,
) -> dict[str, Any]:
    key = dict(part=part, case=case, n_keys=n_keys, scaling=scaling, measure=measure)
    return key | dict(estimate=estimate, se=se, theory=theory, n_rows=n_rows)


def triple(case: str) -> dict[str, float]:
    """Return three given logits, their weights, the measures of their row, and the weights that were printed."""
    row = softmax.rows(np.array(TRIPLES[case]))
    named = {f"logit_{i}": z for i, z in enumerate(TRIPLES[case], start=1)}
    named |= {f"weight_{i}": float(p) for i, p in enumerate(softmax.weights(row), start=1)}
    named |= {name: float(softmax.MEASURES[name].of(row)) for name in ("participation_ratio", "entropy")}
    named |= {"jacobian_frobenius": float(softmax.jacobian_frobenius(row)), "range": float(np.ptp(TRIPLES[case]))}
    named["jacobian_largest"] = float(row.largest * row.others)
    return named | {f"printed_weight_{i}": p for i, p in enumerate(PRINTED.get(case, ()), start=1)}


def random_rows(n_keys: int, n_logits: int, seed: int) -> list[dict[str, Any]]:
    """Simulate rows of standard normal queries and keys at d_k = D_K and return their lines of the table.

    The N_QUERIES rows of a block share their keys, so that every error comes from between blocks.
    """
    n_rows = min(MAX_ROWS, max(MIN_BLOCKS * N_QUERIES, n_logits // n_keys))
    n_blocks = n_rows // N_QUERIES
    rng = streams.generator(seed, "worked_example", n_keys)
    batch = max(1, BATCH_LOGITS // (N_QUERIES * n_keys))
    parts: dict[tuple[Any, ...], list[Any]] = {}
    for first in range(0, n_blocks, batch):
        size = min(batch, n_blocks - first)
        q = streams.standard_normal(rng, (size, N_QUERIES, D_K))
        k = streams.standard_normal(rng, (size, n_keys, D_K))
        upstream = rng.standard_normal((size, N_QUERIES, n_keys))
        for key, values in _measured(q, k, upstream).items():
            parts.setdefault(key, []).append(values)
    lines = []
    exact = {scaling: theory(n_keys, scaling) for scaling in RULES} | {None: probabilities(n_keys)}
    for (scaling, measure), pieces in parts.items():
        estimate, se = _SUMMARIES.get(measure, _mean)(np.concatenate(pieces))
        part = ("rows", scaling) if scaling else ("probabilities", "none")
        where = (part[0], "random", n_keys, part[1], measure)
        lines.append(_row(*where, estimate, se, exact[scaling].get(measure), n_blocks * N_QUERIES))
    return lines


def _mean(values: np.ndarray) -> tuple[float, float]:
    return estimates.mean(values.mean(axis=1))


def _rms(values: np.ndarray) -> tuple[float, float]:
    return estimates.rms(np.mean(values**2, axis=1))


_SUMMARIES: dict[str, Callable[[np.ndarray], tuple[float, float]]] = {
    "score_spread": _rms,
    "jacobian_frobenius": _rms,
    "jacobian_frobenius_median": quantiles.median,
    "grad_query": _rms,
    "grad_query_median": quantiles.median,
}
"""How rows are summarised, where not by their mean."""


def _measured(q: np.ndarray, k: np.ndarray, upstream: np.ndarray) -> dict[tuple[Any, ...], np.ndarray]:
    """Return measures of rows, (blocks, queries), by (scale rule, measure), with no rule for what is said of scores."""
    scores = (q @ k.swapaxes(-1, -2)).astype(np.float64)
    ranked = softmax.rank(scores)
    difference = gradients.from_top(ranked.top, upstream)
    norm = np.sqrt(np.vecdot(q, q).astype(np.float64))
    spread, extent = scores.std(axis=-1, ddof=1), np.ptp(scores, axis=-1)
    found: dict[tuple[Any, ...], np.ndarray] = {}
    for scaling in RULES:
        factor = parse(scaling).constant(D_K, scores.shape[-1])
        row = ranked.soften(factor)
        values = {"score_spread": factor * spread, "range": factor * extent}
        values |= {name: softmax.MEASURES[name].of(row) for name in ("max_weight", "participation_ratio", "entropy")}
        jacobian = softmax.jacobian_frobenius(row)
        query = gradients.norms(row, [difference], norm, k, factor)[0][1]
        values |= {"jacobian_frobenius": jacobian, "jacobian_frobenius_median": jacobian}
        values |= {"grad_query": query, "grad_query_median": query}
        found |= {(scaling, name): value for name, value in values.items()}
    shares = {}
    if scores.shape[-1] == 3:
        sharp = ranked.soften(1.0).largest > SHARP
        shares = {"all_high": scores.min(axis=-1) >= HIGH, "narrow": extent <= NARROW, "sharp": sharp}
    if scores.shape[-1] == 64:
        wide = np.abs(scores) > WIDE
        shares = {"any_wide": wide.any(axis=-1), "wide": wide.mean(axis=-1)}
    return found | {(None, name): share.astype(np.float64) for name, share in shares.items()}


class _Direct:
    """Averages of rows of `n_keys` logits, integrated at each spread that is asked for."""

    def __init__(self, n_keys: int) -> None:
        self.n_keys = n_keys
        self.known: dict[float, random_energy.Averages] = {}

    def __call__(self, name: str, spread: np.ndarray) -> np.ndarray:
        for s in set(spread.tolist()) - self.known.keys():
            self.known[s] = random_energy.averages(self.n_keys, s)
        return np.array([getattr(self.known[s], name) for s in spread.tolist()])


def theory(n_keys: int, scaling: str) -> dict[str, float]:
    """Return the exact measures of a row of standard normal queries and keys at d_k = D_K, as far as they are known.

    The spread is the root of the mean variance within a row, and the range E‖q‖ times that of `n_keys` normal numbers.
    """
    factor = parse(scaling).constant(D_K, n_keys)
    x = np.arange(-9.0, 9.0, 0.05)
    extent = 0.05 * np.sum(1 - special.ndtr(x) ** n_keys - special.ndtr(-x) ** n_keys)
    length = math.sqrt(2) * math.exp(special.gammaln((D_K + 1) / 2) - special.gammaln(D_K / 2))
    exact = gaussian_rows.measures(gaussian_rows.standard_normal(D_K), n_keys, factor, _Direct(n_keys))
    return exact | {"score_spread": factor * math.sqrt(D_K), "range": factor * length * float(extent)}


def probabilities(n_keys: int) -> dict[str, float]:
    """Return the exact probabilities of what is said of unscaled scores, mixed over ‖q‖ ~ χ(D_K).

    all_high: all scores at least HIGH. narrow: their range at most NARROW. any_wide: one beyond ±WIDE.
    sharp: the largest weight above SHARP, for three keys. wide: one score beyond ±WIDE (Bessel law).
    """
    square, share = gaussian_rows.chi_square(D_K)
    norm = np.sqrt(square)
    x = np.arange(-9.0, 9.0, 0.05)
    density = 0.05 * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    within = special.ndtr(x + NARROW / norm[:, None]) - special.ndtr(x)
    exact = {
        "all_high": float(share @ special.ndtr(-HIGH / norm) ** n_keys),
        "narrow": float(share @ (within ** (n_keys - 1) @ density)) * n_keys,
        "any_wide": float(share @ -np.expm1(n_keys * np.log1p(-2 * special.ndtr(-WIDE / norm)))),
        "wide": 2 * float(densities.score_gaussian(D_K).sf(WIDE)),
    }
    if n_keys == 3:
        exact["sharp"] = float(share @ [_sharp(s) for s in norm])
    return exact


def _sharp(spread: float) -> float:
    """Return the probability that the largest of three weights exceeds SHARP, for normal logits.

    p₁ > SHARP where e^{z₂−z₁} + e^{z₃−z₁} < τ. With e^{z₂−z₁} = τ/(1 + e^w) the third has the rest, τ/(1 + e^{−w}).
    """
    z = np.arange(-9.0, 9.0, 0.1)[:, None] * spread
    w = np.arange(-40.0, 20 * spread + 40, STEP)
    log_tau = math.log(1 / SHARP - 1)
    second = z + log_tau - np.logaddexp(0, w)
    third = special.ndtr((z + log_tau - np.logaddexp(0, -w)) / spread)
    with np.errstate(under="ignore"):
        density = np.exp(-(second**2 + z**2) / (2 * spread**2)) / (2 * math.pi * spread**2)
    return 3 * float(np.sum(density * third * special.expit(w))) * STEP * 0.1 * spread
