"""Result tables made from closed forms and seeded noise, for tests of what reads them. Not a simulation of blocks."""

import functools

import numpy as np
import pandas as pd
import synthetic_alternatives
import synthetic_audit
import synthetic_energy
import synthetic_maps
import synthetic_planted
import synthetic_start
import synthetic_training
import synthetic_vanishing

import sharing
from sqrtdk.results.described import columns
from sqrtdk.results.writing import write_table
from sqrtdk.sampling import laws, local_laws
from sqrtdk.sampling.ensembles import iid

D_K = (1, 2, 4, 8, 16, 64, 256, 1024)
N_KEYS = (16, 64, 256)
SCALINGS = ("none", "1/sqrt(d_k)", "1/d_k")
PRECISE = ("gaussian", "uniform", "rademacher")


def _equicorrelated(d, rho=0.09):
    eigen_top = (1 + (d - 1) * 0.3) ** 2
    return d + d * (d - 1) * rho, 6 * (eigen_top**2 + (d - 1) * 0.7**4) / (eigen_top + (d - 1) * 0.7**2) ** 2


ENSEMBLES = {  # name: d -> (mean, variance, excess kurtosis)
    "gaussian": lambda d: (0.0, d, 6 / d),
    "uniform": lambda d: (0.0, d, 0.24 / d),
    "rademacher": lambda d: (0.0, d, -2 / d),
    "laplace": lambda d: (0.0, d, 33 / d),
    "student_t": lambda d: (0.0, d, 13 / d),
    "shifted": lambda d: (-0.125 * d, 1.74 * d, 4.5 / d),
    "equicorrelated": lambda d: (0.0, *_equicorrelated(d)),
    "ar1": lambda d: (0.0, d * 1.4 / 0.6 - 0.8 * (1 - 0.4**d) / 0.36, 14 / d),
    "aligned": lambda d: (0.5 * d, 1.25 * d, 6 * (1 + 1.5 + 0.0625) / (d * 1.5625)),
}
HEAVY = ("student_t_3", "multivariate_t")
"""Ensembles whose variance has no error."""
CATALOGUE = ENSEMBLES | {
    **{f"proportional_{i}": lambda d, i=i: (0.0, float(d), i / d) for i in range(10)},
    **{f"factor_{i}": lambda d, i=i: (0.0, 0.3 * i * d, 6 / d) for i in range(1, 4)},
    "low_rank_shared": lambda d: (0.0, d**2 / 8, 0.75),
    "low_rank_gaussian": lambda d: (0.0, d * (d + 9) / 8, 0.75),
    "power_law_spectrum": lambda d: (0.0, d**1.46, 1.0),
    "outliers_aligned": lambda d: (0.0, d - 1 + 1e4, 6.0),
    "l2norm": lambda d: (0.0, 1 / d, -6 / (d + 2)),
    "student_t_3": lambda d: (0.0, float(d), np.nan),
    "multivariate_t": lambda d: (0.0, float(d), np.nan),
    "hidden": lambda d: (0.0, float(d), 0.1 / d),
}
"""Thirty ensembles, as a large configuration has them: most alike, some that grow faster or slower, two heavy."""


def moments(ensembles=tuple(ENSEMBLES), d_k=D_K, seed=1, heads=2) -> pd.DataFrame:
    rng, quartiles = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    rows = []
    for name in ensembles:
        for d in d_k:
            mean, variance, kurtosis = CATALOGUE.get(name, CATALOGUE["gaussian"])(d)
            relative = 0.001 if name in PRECISE else 0.008
            n_blocks = 64 + 10 * d
            mean_se, variance_se = relative * variance**0.5, relative * variance
            kurtosis_se = 0.02 * (1 + abs(kurtosis))
            degenerate = name == "rademacher" and d == 1
            estimate = np.array([mean, variance, kurtosis]) + rng.normal(0, [mean_se, variance_se, kurtosis_se])
            if degenerate:
                estimate[1:], variance_se, kurtosis_se = [variance, kurtosis], 0.0, 0.0
            root = estimate[1] ** 0.5
            rows.append(
                dict(ensemble=name, d_k=d, n_blocks=n_blocks, n_scores=n_blocks * 4096)
                | dict(stopped_by="degenerate" if degenerate else "precision" if name in PRECISE else "max_scalars")
                | dict(mean=estimate[0], mean_se=mean_se, variance=estimate[1], variance_se=variance_se)
                | dict(within_row_variance=estimate[1], within_row_variance_se=variance_se)
                | dict(excess_kurtosis=estimate[2], excess_kurtosis_se=kurtosis_se)
                | dict(kurtosis_trusted=not degenerate and name != "equicorrelated")
                | dict(quartile_1=-0.67 * root, quartile_1_se=mean_se, median=0.0, median_se=mean_se)
                | dict(quartile_3=0.67 * root, quartile_3_se=mean_se, exact_mean=mean, exact_variance=float(variance))
                | dict(exact_within_row_variance=float(variance), exact_excess_kurtosis=kurtosis)
                | dict(interquartile_range=1.35 * root * (1 + relative * quartiles.normal()))
                | dict(interquartile_range_se=1.35 * root * relative)
                | dict(relative_se=variance_se / variance, reason=np.nan)
            )
            if name in HEAVY:
                gone = ("variance_se", "within_row_variance_se", "excess_kurtosis", "excess_kurtosis_se", "relative_se")
                rows[-1] |= dict.fromkeys(gone, np.nan) | {
                    "kurtosis_trusted": False,
                    "reason": iid.HEAVY_FOURTH,
                }
    for head in range(heads):
        rows.append({**rows[0], "ensemble": f"minilm_l6_l0_h{head:02d}", "d_k": 32, "stopped_by": "enumerated"})
        rows[-1] |= {column: np.nan for column in rows[0] if column.startswith("exact_")}
    return pd.DataFrame(rows)


def variance_laws(table: pd.DataFrame) -> pd.DataFrame:
    """Fit the power law to a table of moments; the other laws get one row each with round numbers."""
    rows = []
    table = table[table["stopped_by"] != "enumerated"]
    for name, cells in table.groupby("ensemble", sort=False):
        cells = cells[cells["variance_se"] > 0]
        base = dict(ensemble=name, chi2=9.0, dof=len(cells) - 2, p_value=0.4, aicc=12.0, selected=False)
        base |= dict(d_k_min=cells["d_k"].min(), n_points=len(cells))
        if len(cells) < 3:
            reason = iid.HEAVY_FOURTH if name in HEAVY else "the power law needs at least 3 d_k, usable: 2"
            missing = dict.fromkeys(["estimate", "se", "ci_low", "ci_high", "ci_dof", "exact"], np.nan)
            rows.append(
                {**base, "law": "power", "parameter": "exponent", **missing, "estimable": False, "reason": reason}
            )
            continue
        x, weight = np.log(cells["d_k"]), (cells["variance"] / cells["variance_se"]) ** 2
        centred = x - np.average(x, weights=weight)
        total = (weight * centred**2).sum()
        se = total**-0.5

        def slope(values, weight=weight, centred=centred, total=total):
            return (weight * centred * np.log(values)).sum() / total

        estimate = slope(cells["variance"])
        fit = dict(estimate=estimate, se=se, ci_low=estimate - 1.96 * se, ci_high=estimate + 1.96 * se, ci_dof=np.nan)
        fit |= dict(exact=slope(cells["exact_variance"]), estimable=True, reason=np.nan)
        rows.append({**base, "law": "linear", "parameter": "slope", **fit, "estimate": 1.0, "exact": 1.0})
        rows.append({**base, "law": "power", "parameter": "exponent", **fit})
    return pd.DataFrame(rows)


def histograms(d_k=(1, 2, 8, 64), n_scores=400_000, seed=2) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frames = []
    for d in d_k:
        gamma = rng.gamma(d / 2, 1.0, (2, n_scores))
        inner = np.linspace(-8, 8, 65) * d**0.5
        edges = np.concatenate([[-np.inf], inner, [np.inf]])
        count, _ = np.histogram(gamma[0] - gamma[1], bins=edges)
        table = dict(ensemble="gaussian", d_k=d, low=edges[:-1], high=edges[1:], count=count, n_scores=n_scores)
        frames.append(pd.DataFrame(table))
    return pd.concat(frames, ignore_index=True)


@functools.lru_cache
def _rows_of_softmax(d: int, n: int, scaling: str, seed: int, n_rows: int):
    rng = np.random.default_rng([seed, d, n])
    factor = {"none": 1.0, "1/sqrt(d_k)": d**-0.5, "1/d_k": 1 / d}[scaling]
    norm = np.sqrt(rng.chisquare(d, (n_rows, 1)))
    logits = factor * norm * rng.normal(size=(n_rows, n))
    weights = np.exp(logits - logits.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    upstream = rng.normal(size=(n_rows, n))
    gradient = np.sqrt(((weights * (upstream - (weights * upstream).sum(1, keepdims=True))) ** 2).sum(1))
    concentration = (weights**2).sum(1)
    entropy = -(weights * np.log(np.maximum(weights, 1e-300))).sum(1)
    saturation = dict(entropy=entropy, normalised_entropy=entropy / np.log(n), max_weight=weights.max(1))
    saturation |= dict(participation_ratio=concentration, effective_keys=1 / concentration)
    saturation |= dict(saturated_share=(weights.max(1) > 0.99) * 1.0)
    gradients = dict(
        grad_logits=gradient, grad_query=factor * d**0.5 * gradient, grad_key=factor * norm[:, 0] * gradient
    )
    return saturation, gradients


def _softmax_table(ensembles, d_k, n_keys, scalings, seed, n_rows, gradients: bool) -> pd.DataFrame:
    rows = []
    for name in ensembles:
        for d in d_k:
            for n in n_keys:
                for scaling in scalings:
                    number = seed + ENSEMBLES_ORDER.get(name, 99)
                    measures = _rows_of_softmax(d, n, scaling, number, n_rows)[int(gradients)]
                    base = dict(ensemble=name, d_k=d, n_keys=n, scaling=scaling)
                    for measure, values in measures.items():
                        end = dict(theory=np.nan, n_rows=n_rows, n_blocks=64, trusted=True, precise=np.nan)
                        if gradients:
                            square = values**2
                            rms = square.mean() ** 0.5
                            spread = square.std() / n_rows**0.5 / (2 * rms)
                            middle = dict(
                                estimate=rms, se=spread, median=np.median(values), median_se=values.std() / n_rows**0.5
                            )
                        else:
                            theory = values.mean() * 1.001 if measure == "entropy" and name == "gaussian" else np.nan
                            middle = dict(estimate=values.mean(), se=values.std() / n_rows**0.5)
                            end["theory"] = theory
                        rows.append({**base, "measure": measure, **middle, **end})
    return pd.DataFrame(rows)


ENSEMBLES_ORDER = {name: position for position, name in enumerate(ENSEMBLES)}


def write(folder, frames: dict[str, pd.DataFrame]) -> None:
    """Write tables as a run has them into a folder."""
    for name, frame in frames.items():
        # A column that is new in the description, and that nothing invented here needs, is empty.
        unknown = [column for column in columns(name) if column not in frame.columns]
        write_table(folder / f"{name}.csv", frame.assign(**dict.fromkeys(unknown)).to_dict("records"))


def softmax_saturation(
    ensembles=("gaussian", "laplace"), d_k=D_K, n_keys=N_KEYS, scalings=SCALINGS, seed=3, n_rows=300
):
    return _softmax_table(ensembles, d_k, n_keys, scalings, seed, n_rows, gradients=False)


def gradient_magnitude(
    ensembles=("gaussian", "laplace"), d_k=D_K, n_keys=N_KEYS, scalings=SCALINGS, seed=3, n_rows=300
):
    return _softmax_table(ensembles, d_k, n_keys, scalings, seed, n_rows, gradients=True)


def real_heads(layers=6, heads=12, dumps=("minilm_l6",), seed=4) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = []
    for dump in dumps:
        for layer in range(layers):
            for head in range(heads):
                logit_std = float(np.exp(rng.normal(0.4, 0.4))) * (10.0 if (layer, head) == (0, 2) else 1.0)
                ratio = float(np.exp(rng.normal(0.3, 0.25)))
                variance = 32 * logit_std**2
                row = dict(
                    dump=dump, layer=layer, head=head, d_k=32, n_tokens=252, n_scores=252**2, scaling="1/sqrt(d_k)"
                )
                row |= dict(mean=0.5, mean_se=0.1, variance=variance, variance_se=0.06 * variance)
                row |= dict(within_row_variance=0.8 * variance, within_row_variance_se=0.05 * variance)
                row |= dict(excess_kurtosis=0.4, excess_kurtosis_se=0.1, trace_term=0.7 * variance)
                row |= dict(query_mean_term=0.1 * variance, key_mean_term=0.2 * variance)
                row |= dict(independence_variance=variance / ratio, independence_ratio=ratio)
                row |= dict(independence_ratio_se=0.05 * ratio, logit_std=logit_std, logit_std_se=0.03 * logit_std)
                row |= dict(within_row_logit_std=0.9 * logit_std, within_row_logit_std_se=0.03 * logit_std)
                row |= dict(entropy=4.0, entropy_se=0.05, max_weight=0.1, max_weight_se=0.01)
                row |= dict(unscaled_entropy=1.2, unscaled_entropy_se=0.03, factor=32**-0.5, effective_dimension=12.0)
                row |= dict(quartile_1=-5.0, median=0.4, quartile_3=6.0, n_queries=252, uniform_entropy=np.log(252))
                row |= dict(sinks=int(head == 1), sinkless_row_logit_std=(0.8 if head == 1 else 0.9) * logit_std)
                row |= dict(sinkless_row_logit_std_se=0.03 * logit_std, model=dump, input="")
                rows.append(row)
    return pd.DataFrame(rows)


@functools.lru_cache(maxsize=1)
@sharing.shared
def _crowd() -> dict[str, pd.DataFrame]:
    table = moments(tuple(CATALOGUE), tuple(2**p for p in range(13)))
    return {
        "moments": table,
        "variance_laws": variance_laws(table),
        "spread_laws": laws.fit_spread_laws(table, 64),
        "local_exponents": local_laws.local_exponents(table),
        "softmax_saturation": softmax_saturation(),
        "gradient_magnitude": gradient_magnitude(),
    }


def crowd() -> dict[str, pd.DataFrame]:
    """Return the tables of thirty ensembles at thirteen widths, as fresh copies."""
    return {name: table.copy() for name, table in _crowd().items()}


@functools.lru_cache(maxsize=1)
@sharing.shared
def _everything() -> dict[str, pd.DataFrame]:
    table = moments()
    return {
        "moments": table,
        "variance_laws": variance_laws(table),
        "spread_laws": laws.fit_spread_laws(table, 64),
        "local_exponents": local_laws.local_exponents(table),
        "score_histograms": histograms(),
        "softmax_saturation": softmax_saturation(),
        "gradient_magnitude": gradient_magnitude(),
        "real_heads": real_heads(),
        "audit": synthetic_audit.table(),
        **synthetic_training.tables(),
        **synthetic_start.frames(),
        "alternatives": synthetic_alternatives.table(),
        **synthetic_energy.tables(),
        **synthetic_maps.tables(),
        **synthetic_planted.tables(),
        **synthetic_vanishing.tables(("gaussian", "laplace"), D_K, N_KEYS, SCALINGS),
    }


def frames() -> dict[str, pd.DataFrame]:
    """Return every result table that a figure reads, as fresh copies."""
    return {name: table.copy() for name, table in _everything().items()}
