"""Monte Carlo of one cell: how saturated its attention rows are and how large their gradients, for every scale rule.

Rows of a block share their keys, so every standard error comes from between blocks.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sqrtdk.rows import gradients, softmax, streaming
from sqrtdk.rows import plan as row_plan
from sqrtdk.rows.plan import N_LOGITS, RowPlan
from sqrtdk.sampling import streams
from sqrtdk.sampling.ensembles.base import Ensemble
from sqrtdk.statistics import distribution, estimates, quantiles
from sqrtdk.variants.notation import Variant, parse

GRADIENTS = ("grad_logits", "grad_query", "grad_key")
"""Row gradient norms with an upstream ∂L/∂p of i.i.d. N(0, 1)."""
DISTRIBUTED = ("jacobian_frobenius", *GRADIENTS)
"""Row norms of which more than the mean is told. ‖J‖_F is the root of E‖g_z‖² over upstream gradients of N(0, 1)."""
VALUES = "_values"
"""Suffix of the same with the upstream gradient through values, ∂L/∂p_j = V_j·u."""
TRUSTED_SKEWNESS = 0.2
"""Largest skewness of a mean over blocks at which its error is trusted: a 95 % interval then misses to one side in less
than 5 % (first Edgeworth term of Student's t, (2z² + 1)/6 · φ(z) times the skewness, beside 2.5 %)."""


def upstream_normals(
    rng: np.random.Generator, n_blocks: int, n_queries: int, n_keys: int, d_k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw both upstream gradients ∂L/∂p of a block's rows, each (n_blocks, n_queries, n_keys) with unit variances.

    Returns:
        i.i.d. N(0, 1); and V_j·u_i with V (n_keys, d_k) i.i.d. N(0, 1) shared by the rows of a block and
        u_i ~ N(0, I/d_k) for each row. The second is drawn in the basis of the u's: U = LQ with Bartlett's L
        (n_queries, r), r = min(n_queries, d_k), and V Qᵀ is again i.i.d. normal: the cost does not grow with d_k.
    """
    normals = streams.standard_normal(rng, (n_blocks, n_queries, n_keys)).astype(np.float64)
    return _both_upstream(normals, _value_mixing(rng, n_blocks, n_queries, d_k))


def _value_mixing(rng: np.random.Generator, n_blocks: int, n_queries: int, d_k: int) -> np.ndarray:
    """Draw Bartlett's L over √d_k, (n_blocks, n_queries, min(n_queries, d_k))."""
    r = min(n_queries, d_k)
    lower = np.tril(rng.standard_normal((n_blocks, n_queries, r)), -1)
    diagonal = np.arange(r)
    lower[:, diagonal, diagonal] = np.sqrt(rng.chisquare(d_k - diagonal, size=(n_blocks, r)))
    lower /= math.sqrt(d_k)
    return lower


def _both_upstream(normals: np.ndarray, mixing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # The first normals serve for both: the two upstream gradients are never compared within a row.
    return normals, mixing @ normals[:, : mixing.shape[-1]]


def treatment(text: str, d_k: int, n_keys: int) -> float | Variant:
    """Return what is done to the scores under a scale rule: its factor, or the variant where that is no constant."""
    variant = parse(text)
    factor = variant.factor(d_k, n_keys)
    return variant if factor is None else factor


def _row_values(
    ensemble: Ensemble, d_k: int, plan: RowPlan, rng: np.random.Generator, rng_upstream: np.random.Generator
) -> Iterator[tuple[float | Variant, dict[str, Any]]]:
    """Yield (treatment, measure name -> (batch, rows) array), batch by batch, of the blocks that the treatment gets."""
    if plan.piece:
        yield from _streamed_row_values(ensemble, d_k, plan, rng, rng_upstream)
        return
    n_graded = max(share.graded for share in plan.shares.values())
    for first in range(0, max(share.softened for share in plan.shares.values()), plan.batch):
        n = min(plan.batch, plan.most - first)
        q, k = ensemble.draw(rng, n, plan.n_queries, plan.n_keys, d_k)
        scores = q @ k.swapaxes(-1, -2)
        ranked = softmax.rank(scores)
        if first < n_graded:
            query_norm = np.sqrt(np.vecdot(q, q).astype(np.float64))
            upstream = upstream_normals(rng_upstream, n, plan.n_queries, plan.n_keys, d_k)
            differences = [gradients.from_top(ranked.top, v) for v in upstream]
        for treated, share in plan.shares.items():
            if first >= share.softened:
                continue
            used = slice(share.n_queries)
            if isinstance(treated, Variant):
                scaled = treated.scale(scores.astype(np.float64), q, k)
                row = softmax.rows(treated.transform(scaled)[:, used])
            else:
                row = ranked[:, used].soften(treated)
            values = {}
            for name, measure in softmax.MEASURES.items():
                if plan.n_keys >= measure.least_keys and not (measure.costly and first >= share.graded):
                    values[name] = measure.of(row[:, : plan.n_spectral] if measure.costly else row)
            if first < share.graded:
                arrived = [difference[:, used] for difference in differences]
                if isinstance(treated, Variant):
                    norms = [_variant_norms(treated, row, v, scores, scaled, q, k, plan.n_pulled) for v in arrived]
                else:
                    norms = gradients.norms(row, arrived, query_norm[:, used], k, treated, plan.n_pulled)
                values |= _by_name(norms)
            yield treated, values


def _variant_norms(
    variant: Variant,
    row: softmax.Rows,
    upstream: np.ndarray,
    scores: np.ndarray,
    scaled: np.ndarray,
    q: np.ndarray,
    k: np.ndarray,
    n_pulled: int,
) -> tuple[Any, ...]:
    """Return what gradients.norms does, for the first rows of each block, as many as `upstream` has.

    Of a rule over a whole head the loss is that of these rows.
    """
    gradient = np.zeros_like(scaled)
    used = slice(upstream.shape[1])
    gradient[:, used] = variant.slope(scaled)[:, used] * gradients.softmax_backward(row, upstream)
    pulled = variant.query_gradient(scores, q, k, gradient, min(n_pulled, upstream.shape[1]))
    keys = variant.key_norms(scores, q, k, gradient)[:, used]
    norm = np.sqrt(np.vecdot(gradient[:, used], gradient[:, used]))
    return norm, np.sqrt(np.vecdot(pulled, pulled)), keys


def _streamed_row_values(
    ensemble: Ensemble, d_k: int, plan: RowPlan, rng: np.random.Generator, rng_upstream: np.random.Generator
) -> Iterator[tuple[float, dict[str, Any]]]:
    """Do the same for rows that are never held whole, without the measures that need them whole."""
    shape, factors = (plan.batch, plan.n_queries), list(plan.shares)
    for _ in range(0, plan.most, plan.batch):
        assert plan.piece is not None
        q, pieces = ensemble.draw_in_pieces(rng, *shape, plan.n_keys, d_k, plan.piece)
        mixing = _value_mixing(rng_upstream, *shape, d_k)

        def summarised(k: np.ndarray, q: np.ndarray = q, mixing: np.ndarray = mixing) -> streaming.StreamedRows:
            normals = streams.standard_normal(rng_upstream, (*shape, k.shape[1])).astype(np.float64)
            upstream = _both_upstream(normals, mixing)
            return streaming.summarise(factors, q @ k.swapaxes(-1, -2), upstream, k, n_pulled=plan.n_pulled)

        summary = streaming.merge_all(map(summarised, pieces))
        query_norm = np.sqrt(np.vecdot(q, q).astype(np.float64))
        for i, factor in enumerate(factors):
            row = summary.rows(i)
            values = {name: measure.of(row) for name, measure in softmax.MEASURES.items() if not measure.whole_row}
            yield factor, values | _by_name(summary.norms(i, query_norm))


def _by_name(norms: list[tuple[Any, ...]]) -> dict[str, np.ndarray]:
    return {
        name + suffix: norm
        for suffix, triple in zip(("", VALUES), norms, strict=True)
        for name, norm in zip(GRADIENTS, triple, strict=True)
    }


def _simulate(
    ensemble: Ensemble, d_k: int, plan: RowPlan, seed: int, *identity: str | int
) -> dict[float | Variant, dict[str, np.ndarray]]:
    """Return treatment -> measure name -> values (blocks, rows), from the streams of this identity."""
    rng, rng_upstream = (streams.generator(seed, "softmax", *identity, part) for part in ("qk", "upstream"))
    batches: dict[float | Variant, list[dict[str, Any]]] = {factor: [] for factor in plan.shares}
    for factor, values in _row_values(ensemble, d_k, plan, rng, rng_upstream):
        batches[factor].append(values)
    return {
        factor: {name: np.concatenate([part[name] for part in parts if name in part]) for name in parts[0]}
        for factor, parts in batches.items()
    }


def simulate_cell(
    ensemble: Ensemble,
    d_k: int,
    n_keys: Sequence[int],
    scalings: Sequence[str],
    seed: int,
    name: str,
    n_logits: int = N_LOGITS,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Simulate the attention rows of one ensemble at one d_k; return rows on saturation, gradients and their spread.

    All scale rules see the same q, k and upstream gradients. Each number of keys has its own streams, so that adding
    one, or a scale rule, leaves every other number as it is.

    Args:
        ensemble: has `draw(rng, n_blocks, n_queries, n_keys, d_k)`, `matched` and `independent_keys`.
        n_keys: keys per row, each at least 1. scalings: names of scale rules.
        seed, name: root seed of the run and name of the ensemble, the identity of the streams.
        n_logits: most logits for each number of keys and scale rule.

    Returns:
        Rows ensemble, d_k, n_keys, scaling, measure, estimate, se, theory, n_rows, n_blocks, trusted, precise, and for
        gradients median and median_se. Norms are root mean squares over rows, all other estimates means. The estimate
        is None where a measure is undefined (normalised by what is zero for a single key) or needs a whole row, where
        keys are drawn in pieces. The third list has statistic, estimate, se, low, high for each gradient norm.
    """
    saturation_rows, gradient_rows, distribution_rows = [], [], []
    for n in n_keys:
        factors = {scaling: treatment(scaling, d_k, n) for scaling in scalings}
        distinct = list(dict.fromkeys(factors.values()))

        def pilot(plan: RowPlan, n: int = n) -> dict[float | Variant, dict[str, np.ndarray]]:
            return _simulate(ensemble, d_k, plan, seed, name, d_k, n, "pilot")

        constant = not any(isinstance(factor, Variant) for factor in distinct)
        streamed = constant and row_plan.in_pieces(ensemble, d_k, n)
        chosen = row_plan.plan(d_k, n, n_logits, ensemble.matched, distinct, pilot, streamed)
        found = _simulate(ensemble, d_k, chosen, seed, name, d_k, n)
        for scaling, factor in factors.items():
            key = {"ensemble": name, "d_k": d_k, "n_keys": n, "scaling": scaling}
            values = found[factor]
            for measure, how in softmax.MEASURES.items():
                saturation_rows.append(key | _saturation_row(measure, how.summary, values.get(measure)))
            for suffix in ("", VALUES):
                for measure in GRADIENTS:
                    gradient_rows.append(key | _gradient_row(measure + suffix, values[measure + suffix]))
            for measure in DISTRIBUTED:
                distribution_rows += [key | row for row in _distribution_rows(measure, values[measure], n)]
    return saturation_rows, gradient_rows, distribution_rows


def _summary(measure: str, values: np.ndarray | None, how: str) -> dict[str, Any]:
    """Return estimate and error, whether the error can be trusted, and whether it meets its goal."""
    if values is None:
        return dict(estimate=None, se=None, trusted=None, precise=None)
    blocks = np.mean(values**2 if how == "rms" else values, axis=1)
    estimate, se = (estimates.rms if how == "rms" else estimates.mean)(blocks)
    trusted = is_nearly_normal(blocks)
    precise = row_plan.precise(measure, estimate, se)
    return dict(estimate=estimate, se=se, trusted=trusted, precise=None if precise is None else precise and trusted)


def is_nearly_normal(block_means: np.ndarray) -> bool:
    """Say whether the mean over blocks has a skewness of at most TRUSTED_SKEWNESS, as estimated from them."""
    deviations = block_means - block_means.mean()
    # Relative to the largest, so that no cube is lost below the smallest number.
    deviations = deviations / max(np.abs(deviations).max(), np.finfo(float).tiny)
    spread = np.mean(deviations**2)
    if not spread:
        return True
    return bool(abs(np.mean(deviations**3)) / spread**1.5 <= TRUSTED_SKEWNESS * math.sqrt(len(block_means)))


def _saturation_row(measure: str, how: str, values: np.ndarray | None) -> dict[str, Any]:
    size = (0, 0) if values is None else (values.size, len(values))
    # An exact value, and a law, is joined when the cells are collected.
    return _in_order(measure, _summary(measure, values, how), {}, *size) | {"law": None}


def _gradient_row(measure: str, values: np.ndarray) -> dict[str, Any]:
    centre, centre_se = quantiles.median(values)
    middle = dict(median=centre, median_se=centre_se)
    return _in_order(measure, _summary(measure, values, "rms"), middle, values.size, len(values))


def _in_order(
    measure: str, summary: dict[str, Any], middle: dict[str, Any], n_rows: int, n_blocks: int
) -> dict[str, Any]:
    """Return a row of a table with its columns in their order."""
    estimate, judged = (
        {name: summary[name] for name in names} for names in (("estimate", "se"), ("trusted", "precise"))
    )
    return {"measure": measure, **estimate, **middle, "theory": None, "n_rows": n_rows, "n_blocks": n_blocks, **judged}


def _distribution_rows(measure: str, values: np.ndarray, n_keys: int) -> list[dict[str, Any]]:
    # Of a row of equal weights only ‖J‖_F and so ‖g_z‖ have a size that is known whatever q and k are.
    known = measure in ("jacobian_frobenius", "grad_logits") and n_keys > 1
    uniform = math.sqrt(n_keys - 1) / n_keys if known else None
    size = dict(n_rows=values.size, n_blocks=len(values))
    return [{"measure": measure} | row | size for row in distribution.statistics(values, uniform)]
