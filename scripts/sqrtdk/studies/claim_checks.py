"""What claims say that no other stage measures: small simulations and calculations, each beside its exact value."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from sqrtdk.rows import softmax
from sqrtdk.sampling import densities, streams
from sqrtdk.statistics import estimates, shares
from sqrtdk.training import model, runs, tasks, windows
from sqrtdk.training.optimisers import Optimiser
from sqrtdk.training.rules import Rule
from sqrtdk.variants.normalisers import NORMALISERS

N_QUERIES, N_KEYS, D_K = 16, 64, 64
WIDTHS = (4, 16, 64, 256, 1024)
ROW_KEYS = (16, 64, 1024)
SCALED_KEYS = (3, 64, 512, 4096)
LIMITS = (3.0, 10.0)
"""Sizes of logits of which the share beyond is counted."""
SCALARS = 4_000_000
"""Random numbers for each width and number of keys."""
MIN_BLOCKS, MAX_BLOCKS = 64, 1024
ONE_HOT = 0.99  # ASSUME a row whose largest weight is above this has one key
FAR = 10.0
"""Distance of one logit above all others."""
MANY_KEYS = (64, 2**20)
SPREAD_OF_LENGTHS = 1.0  # ASSUME
"""Standard deviation of the lengths of keys over their mean, where lengths differ."""
EXAMPLE = (14.0, 10.0, 12.0)
SMALL_EXAMPLE = (1.0, 0.5, 0.8)
TARGET = 1
"""The key, of the example's three, that a loss asks for."""
STEPS, RATE, TRAINED_D_K = 30, 0.03, 16
LARGE = 2.0
"""How many times as large W_q and W_k start, where large initial weights are trained."""
TRIED: dict[str, tuple[int, int, dict[float, tuple[float, ...]]]] = {
    "adam": (80, 8, {1.0: (0.024, 0.034, 0.048), LARGE: (0.017, 0.024, 0.034)}),
    "sgd": (60, 4, {1.0: (1.13, 1.6), LARGE: (1.13, 1.6)}),
}
"""Steps, seeds, and by how large weights are the learning rates, a factor √2 apart, around the largest that works."""
WORKS = 0.25
"""A rate works where the progress, 1 − loss/guess, is at least this; half of the way takes large weights longer."""
WIDTHS_OF_HEADS = {
    "Transformer base": (512, 8, 64),
    "Transformer big": (1024, 16, 64),
    "BERT base": (768, 12, 64),
    "BERT large": (1024, 16, 64),
    "GPT-2": (768, 12, 64),
    "GPT-2 XL": (1600, 25, 64),
    "GPT-3 175B": (12288, 96, 128),
    "T5 base": (768, 12, 64),
    "T5 3B": (1024, 32, 128),
    "Llama 3.1 8B": (4096, 32, 128),
    "Mistral 7B": (4096, 32, 128),
    "Qwen2.5 14B": (5120, 40, 128),
    "Gemma 7B": (3072, 16, 256),
    "Gemma 2 9B": (3584, 16, 256),
    "Gemma 2 27B": (4608, 32, 128),
    "Gemma 3 27B": (5376, 32, 128),
}
"""d_model, heads and d_k of published models, by their configurations: a list and no sample."""


class TrainedHead(NamedTuple):
    """A head of a trained model: queries (query, d_k), keys (key, d_k), what q·k is multiplied by, the mask or None."""

    model: str
    q: np.ndarray
    k: np.ndarray
    factor: float
    allowed: np.ndarray | None = None


def table(seed: int, heads: Iterable[TrainedHead] = ()) -> list[dict[str, Any]]:
    """Return the rows of claim_checks.csv."""
    rows = [row for d_k in WIDTHS for row in scores(d_k, seed)]
    for n_keys in ROW_KEYS:
        rows += row_weights(n_keys, seed)
    for case, spread in (("equal_lengths", 0.0), ("unequal_lengths", SPREAD_OF_LENGTHS)):
        rows.append(alignment(case, spread, seed))
    rows += [scaled_jacobian(n_keys, seed) for n_keys in SCALED_KEYS]
    rows += [sparse_effect("window", seed), sparse_effect("top_k", seed)]
    rows += [*calculations(seed), reparametrised(seed)]
    return [*rows, *(rate_of_large_weights(name, seed) for name in TRIED), *trained_heads(heads)]


def _row(
    check: str,
    estimate: float,
    se: float | None,
    exact: float | None = None,
    case: str = "",
    d_k: int = 0,
    n_keys: int = 0,
    n_blocks: int = 0,
) -> dict[str, Any]:
    """Return a row of claim_checks.csv; a width or a number of keys of 0 has no part in the check."""
    place = {"check": check, "case": case, "d_k": d_k, "n_keys": n_keys}
    return place | {"estimate": float(estimate), "se": se, "exact": exact, "n_blocks": n_blocks}


def _n_blocks(d_k: int, n_keys: int) -> int:
    return min(MAX_BLOCKS, max(MIN_BLOCKS, SCALARS // ((N_QUERIES + n_keys) * d_k)))


def _blocks(seed: int, what: str, d_k: int, n_keys: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield standard normal queries (blocks, N_QUERIES, d_k) and keys (blocks, n_keys, d_k), some blocks at a time."""
    rng = streams.generator(seed, "claims", what, d_k, n_keys)
    left, at_once = _n_blocks(d_k, n_keys), max(1, 2**19 // ((N_QUERIES + n_keys) * d_k))
    while left > 0:
        size = min(left, at_once)
        left -= size
        yield (
            streams.standard_normal(rng, (size, N_QUERIES, d_k)),
            streams.standard_normal(rng, (size, n_keys, d_k)),
        )


def _scores(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    return (q @ k.swapaxes(-1, -2)).astype(np.float64)


def scores(d_k: int, seed: int) -> list[dict[str, Any]]:
    """Return the size of scores S of standard normal vectors, over √d_k: mean, largest of a row, shares beyond a limit.

    The shares are of scaled scores and, at the width of the example, of unscaled ones.
    """
    parts: dict[tuple[str, str], list[Any]] = {}
    for q, k in _blocks(seed, "scores", d_k, N_KEYS):
        size = np.abs(_scores(q, k)) / math.sqrt(d_k)
        found = {("mean_size", ""): size.mean(axis=(1, 2)), ("largest_score", ""): size.max(axis=2).mean(axis=1)}
        limits = {f"limit_{limit:g}": limit for limit in LIMITS}
        limits[f"limit_{LIMITS[-1]:g}_unscaled"] = LIMITS[-1] / math.sqrt(d_k)
        found |= {("share_within", case): (size <= limit).mean(axis=(1, 2)) for case, limit in limits.items()}
        for key, values in found.items():
            parts.setdefault(key, []).append(values)
    exact = exact_scores(d_k, N_KEYS)
    rows = []
    for (check, case), values in parts.items():
        estimate, se = estimates.mean(np.concatenate(values))
        known, n = exact[check, case], sum(map(len, values))
        # The largest score is one of a row, all others are of single pairs.
        n_keys = N_KEYS if check == "largest_score" else 0
        rows.append(_row(check, estimate, se or shares.smoothed(estimate, n)[1], known, case, d_k, n_keys, n))
    return rows


def mean_length(d_k: int) -> float:
    """Return E‖q‖ of a standard normal vector, the mean of the chi law."""
    return math.sqrt(2) * math.exp(special.gammaln((d_k + 1) / 2) - special.gammaln(d_k / 2))


def exact_scores(d_k: int, n_keys: int) -> dict[tuple[str, str], float]:
    """Return the exact values of `scores`: E|S| = E‖q‖ √(2/π), the largest of n as E‖q‖ E max|z|, Bessel's tails."""
    x = np.arange(0.0, 12.0, 0.01)
    within = special.erf(x / math.sqrt(2)) ** n_keys
    largest = 0.01 * (np.sum(1 - within) - 0.5)
    length = mean_length(d_k) / math.sqrt(d_k)
    law = densities.score_gaussian(d_k)
    exact = {("mean_size", ""): length * math.sqrt(2 / math.pi), ("largest_score", ""): length * largest}
    for limit in LIMITS:
        exact["share_within", f"limit_{limit:g}"] = 1 - 2 * float(law.sf(limit * math.sqrt(d_k)))
    return exact | {("share_within", f"limit_{LIMITS[-1]:g}_unscaled"): 1 - 2 * float(law.sf(LIMITS[-1]))}


def row_weights(n_keys: int, seed: int) -> list[dict[str, Any]]:
    """Return what unscaled rows at d_k = D_K look like: the weight of the two largest, and of rows that are one-hot.

    Of rows whose largest weight is above ONE_HOT: the mean norm of the Jacobian's row of the runner-up, and of the
    largest weight itself.
    """
    top, hot = [], []
    for q, k in _blocks(seed, "weights", D_K, n_keys):
        row = softmax.rows(_scores(q, k))
        top.append((row.largest + row.second).mean(axis=1))
        sharp = row.largest > ONE_HOT
        # A component's row of the Jacobian is p_i (δ_ij − p_j), its norm p_i √((1 − p_i)² + Σ_{j≠i} p_j²).
        square = softmax.participation_ratio(row)
        norms = [
            p * np.sqrt(rest**2 + np.maximum(square - p**2, 0.0))
            for p, rest in ((row.second, 1 - row.second), (row.largest, row.others))
        ]
        hot.append(np.stack([(sharp * norm).mean(axis=1) for norm in norms] + [sharp.mean(axis=1)], axis=-1))
    weights, parts = np.concatenate(top), np.concatenate(hot)
    place: dict[str, Any] = dict(d_k=D_K, n_keys=n_keys, n_blocks=len(weights))
    rows = [_row("top_two_weight", *estimates.mean(weights), **place)]
    for column, case in enumerate(("runner_up", "largest")):
        pair = parts[:, [column, 2]]
        ratio = estimates.bias_corrected(lambda means: means[..., 0] / means[..., 1], pair)
        rows.append(_row("one_hot_gradient", ratio.value, ratio.se, None, case, **place))
    return rows


def scaled_jacobian(n_keys: int, seed: int) -> dict[str, Any]:
    """Return the mean norm of softmax's Jacobian in rows that are scaled, at d_k = D_K, each with a query of its own.

    Of a query the scores are independent and normal with its length as standard deviation.
    """
    rng, shape = streams.generator(seed, "claims", "scaled", n_keys), (MIN_BLOCKS, N_QUERIES)
    lengths = np.sqrt(rng.chisquare(D_K, (*shape, 1)) / D_K)
    row = softmax.rows(lengths * streams.standard_normal(rng, (*shape, n_keys)))
    blocks = softmax.jacobian_frobenius(row).mean(axis=1)
    return _row("scaled_jacobian", *estimates.mean(blocks), d_k=D_K, n_keys=n_keys, n_blocks=len(blocks))


def sparse_effect(normaliser: str, seed: int) -> dict[str, Any]:
    """Return the effective number of keys of sparse attention with the scale over that without it."""
    weights, parts = NORMALISERS[normaliser]().weights, []
    for q, k in _blocks(seed, "sparse", D_K, N_KEYS):
        s = _scores(q, k)
        keys = (1 / np.square(weights(factor * s)).sum(axis=-1) for factor in (D_K**-0.5, 1.0))
        parts.append(np.stack([found.mean(axis=-1) for found in keys], axis=-1))
    blocks = np.concatenate(parts)
    ratio = estimates.bias_corrected(lambda means: means[..., 0] / means[..., 1], blocks)
    return _row("sparse_effect", ratio.value, ratio.se, None, normaliser, D_K, N_KEYS, len(blocks))


def alignment(case: str, spread: float, seed: int) -> dict[str, Any]:
    """Return the correlation of q·k and the cosine of q and k, for keys whose lengths have a coefficient of variation.

    Lengths are multiplied by a log-normal number r; the correlation is E r/√(E r²) · (E‖q‖)²/d_k.
    """
    sigma = math.sqrt(math.log1p(spread**2))
    rng = streams.generator(seed, "claims", "lengths", case)
    sums = []
    for q, k in _blocks(seed, "alignment", D_K, N_KEYS):
        k = k * np.exp(sigma * rng.standard_normal((*k.shape[:-1], 1)))
        s = _scores(q, k)
        cosine = s / np.sqrt(np.vecdot(q, q)[..., None] * np.vecdot(k, k)[:, None])
        sums.append(np.stack([(x * y).mean(axis=(1, 2)) for x, y in ((s, cosine), (s, s), (cosine, cosine))], axis=-1))
    blocks = np.concatenate(sums)
    found = estimates.bias_corrected(lambda means: means[..., 0] / np.sqrt(means[..., 1] * means[..., 2]), blocks)
    exact = mean_length(D_K) ** 2 / D_K * math.exp(-(sigma**2) / 2)
    return _row("alignment", found.value, found.se, exact, case, D_K, N_KEYS, len(blocks))


def calculations(seed: int) -> list[dict[str, Any]]:
    """Return what needs no simulation: one far logit, derivatives by complex steps, and softmax with a phantom key."""
    rows = []
    for n_keys in MANY_KEYS:
        weight = 1 / (1 + (n_keys - 1) * math.exp(-FAR))
        rows.append(_row("far_logit_weight", weight, 0.0, weight, n_keys=n_keys))
        weight = 1 / (1 + (n_keys - 1) / n_keys * math.exp(-FAR))
        rows.append(_row("far_logit_weight", weight, 0.0, weight, case="beyond_ln_n", n_keys=n_keys))
    z = streams.generator(seed, "claims", "derivatives").normal(size=(64, 8))
    p = softmax.softmax(z)
    formula = p[:, :, None] * (np.eye(8) - p[:, None, :])
    worst = np.abs(_complex_steps(lambda x: np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True), z) - formula).max()
    rows.append(_row("jacobian_formula_error", worst, 0.0, 0.0, n_keys=8))
    # The loss that asks for one key, −ln p of it.
    z = np.array([EXAMPLE])
    loss = _complex_steps(lambda x: np.log(np.exp(x).sum(axis=-1, keepdims=True)) - x[..., TARGET, None], z)[0, 0]
    p = softmax.softmax(z)[0]
    true = p - (np.arange(3) == TARGET)
    rows.append(_row("loss_formula_error", np.abs(loss - p * (1 - p)).max(), 0.0, np.abs(true - p * (1 - p)).max()))
    rows[-1] |= dict(n_keys=3)
    z = np.array(SMALL_EXAMPLE)
    shifted, phantom = softmax.softmax(z - 1), NORMALISERS["softmax1"]().weights(z)
    exact = float(shifted.max() / (1 + np.exp(z).sum()))
    rows.append(_row("shifted_from_softmax1", np.abs(shifted - phantom).max(), 0.0, exact, n_keys=3))
    rows.append(_row("shifted_from_softmax", np.abs(shifted - softmax.softmax(z)).max(), 0.0, 0.0, n_keys=3))
    usual = [d_k * heads == d_model for d_model, heads, d_k in WIDTHS_OF_HEADS.values()]
    rows.append(_row("heads_of_usual_width", float(np.mean(usual)), 0.0))
    return rows


def _complex_steps(function: Callable[[np.ndarray], np.ndarray], z: np.ndarray, step: float = 1e-30) -> np.ndarray:
    """Return ∂f_i/∂z_j, (..., i, j), of an analytic function without the cancellation of differences."""
    moved = z[..., None, :] + 1j * step * np.eye(z.shape[-1])
    return np.swapaxes(function(moved).imag / step, -1, -2)


def reparametrised(seed: int) -> dict[str, Any]:
    """Return how far apart the losses are of W_q and W_k that start twice as large, and of a scale 4 times as large.

    With the larger scale they learn, by plain gradient descent, at a quarter of the rate. The largest relative
    difference over STEPS steps.
    """
    c = TRAINED_D_K**-0.5
    larger_weights, larger_scale = _losses(seed, c, 2.0, 1.0), _losses(seed, 4 * c, 1.0, 0.25)
    worst = float(np.max(np.abs(larger_scale / larger_weights - 1)))
    return _row("twice_the_weights", worst, 0.0, 0.0, d_k=TRAINED_D_K)


def _losses(seed: int, factor: float, weights: float, rate: float) -> np.ndarray:
    """Return the losses of a small model that learns to recall, with a scale, larger weights and a changed rate."""
    shape, rule = tasks.TASKS["recall"].shape(TRAINED_D_K), Rule(factor)
    p = runs.initial(shape, rule, "recall", seed, range(1))
    names = [name for name in p if name.endswith((".w_q", ".w_k", ".b_q", ".b_k"))]
    for name in names:
        p[name] = weights * p[name]
    move, losses = Optimiser("sgd", [RATE], factors=dict.fromkeys(names, rate)), []
    for _, (inputs, targets) in zip(range(STEPS), runs.batches("recall", seed, range(1)), strict=False):
        loss, _, gradients, _ = model.loss_and_gradients(shape, rule, p, inputs, targets)
        move.step(p, gradients)
        losses.append(loss[0])
    return np.array(losses)


def rate_of_large_weights(optimiser: str, seed: int) -> dict[str, Any]:
    """Return the largest rate that works with W_q and W_k LARGE times as large, over that with usual ones.

    Of the mean progress of some models on recall; the error is the jackknife's over seeds, which both share.
    """
    _, n_seeds, tried = TRIED[optimiser]
    progress = [_progress(optimiser, seed, weights).T for weights in tried]

    def ends(means: np.ndarray, rates: tuple[float, ...]) -> np.ndarray:
        return np.apply_along_axis(lambda one: windows.window(np.array(rates), one, WORKS)[1], -1, means)

    def ratio(means: np.ndarray) -> np.ndarray:
        usual, large = map(ends, np.split(means, [len(tried[1.0])], axis=-1), tried.values())
        return math.log(10) * (large - usual)

    log = estimates.bias_corrected(ratio, np.hstack(progress))
    centre = math.exp(log.value)
    return _row("rate_of_large_weights", centre, centre * log.se, None, optimiser, TRAINED_D_K, 0, n_seeds)


def _progress(optimiser: str, seed: int, weights: float) -> np.ndarray:
    """Return 1 − loss/guess after training with 1/√d_k and larger W_q and W_k, (rates, seeds)."""
    task, (steps, n_seeds, tried) = tasks.TASKS["recall"], TRIED[optimiser]
    shape, rule, seeds = task.shape(TRAINED_D_K), Rule(TRAINED_D_K**-0.5), range(n_seeds)
    first = runs.initial(shape, rule, "recall", seed, seeds)
    for name in first:
        first[name] = (first[name] * (weights if name.endswith(runs.SCORES) else 1.0)).astype(runs.TRAINED_IN)
    moves = [Optimiser(optimiser, np.full(n_seeds, rate)) for rate in tried[weights]]
    models = [{name: value.copy() for name, value in first.items()} for _ in moves]
    # A diverging run leaves the range of numbers, and counts as guessing.
    with np.errstate(all="ignore"):
        for _, drawn in zip(range(steps), runs.batches("recall", seed, seeds), strict=False):
            for p, move in zip(models, moves, strict=True):
                move.step(p, model.loss_and_gradients(shape, rule, p, *drawn)[2])
        held_out = runs.held_out("recall", seed, seeds)
        loss = np.array([model.loss_and_gradients(shape, rule, p, *held_out)[0] for p in models])
    guess = task.guess()
    return 1 - np.clip(np.nan_to_num(loss, nan=guess), 0, guess) / guess


def trained_heads(heads: Iterable[TrainedHead]) -> list[dict[str, Any]]:
    """Return means over trained models: the share of their logits within ±10, and how aligned large scores are.

    A model is one observation, the mean over its heads; of a single model, each head is.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    widths = set()
    for head in heads:
        q, k = head.q, head.k
        s = q @ k.T
        cosine = s / np.sqrt(np.outer(np.vecdot(q, q), np.vecdot(k, k)))
        s, cosine = (x.ravel() if head.allowed is None else x[head.allowed] for x in (s, cosine))
        share, correlation = np.mean(np.abs(head.factor * s) <= LIMITS[-1]), np.corrcoef(s, cosine)[0, 1]
        found.setdefault(head.model, []).append((share, correlation))
        widths.add(q.shape[-1])
    units = [np.mean(values, axis=0) for values in found.values()] if len(found) > 1 else sum(found.values(), [])
    if len(units) < 2:
        return []
    shares, correlations = np.array(units).T
    d_k = widths.pop() if len(widths) == 1 else 0
    place: dict[str, Any] = dict(case="trained_heads", d_k=d_k, n_blocks=len(units))
    return [
        _row("share_within", *estimates.mean(shares), **place),
        _row("alignment", *estimates.mean(correlations), **place),
    ]
