"""The tables that claims read, small, simulated where that is cheap and else made from exact values."""

import functools
import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import synthetic_audit
import synthetic_results
import synthetic_start
import synthetic_training

import sharing
from sqrtdk.heads import enumeration
from sqrtdk.results import reading
from sqrtdk.sampling import ensembles, laws
from sqrtdk.studies import alternatives, claim_checks, normalisation, saturation, worked_example

ROOT = Path(__file__).resolve().parents[2]
SPECS = {
    "normal": {"family": "gaussian"},
    "unequal": {"family": "gaussian", "query_sd": 2.0, "key_sd": 0.5},
    "both": {"family": "equicorrelated", "query_rho": 0.3, "key_rho": 0.3},
    "one": {"family": "equicorrelated", "query_rho": 0.5, "key_rho": 0.0},
    "shared": {"family": "shared_tokens", "cosine": 0.5},
}
"""No name is that of the default configuration: claims go by what an ensemble is."""
WIDTHS = (1, 4, 16, 64, 256, 512, 1024)
SHIPPED = tuple(ROOT / f"resources/training/training_{name}.csv" for name in ("verdicts", "summary"))
VARIANTS = ("d_model_for_d_k",)
SCALINGS = ("none", "1/sqrt(d_k)")


def moments(seed: int = 1) -> pd.DataFrame:
    rng, rows = np.random.default_rng(seed), []
    for (name, spec), d_k in itertools.product(SPECS.items(), WIDTHS):
        exact = ensembles.build(spec).exact(d_k)
        row = dict(ensemble=name, d_k=d_k, n_blocks=100, stopped_by="precision", reason=np.nan)
        values = dict(variance=exact.variance, within_row_variance=exact.within_row_variance)
        for quantity, value in values.items():
            row |= {quantity: value * (1 + 0.002 * rng.normal()), f"{quantity}_se": 0.002 * value}
            row[f"exact_{quantity}"] = value
        se = 0.002 * exact.variance**0.5
        rows.append(row | dict(mean=exact.mean + se * rng.normal(), mean_se=se, exact_mean=exact.mean))
    return pd.DataFrame(rows)


def _softmax() -> dict[str, pd.DataFrame]:
    parts = ([], [])
    for d_k, n_keys in ((64, (64,)), (1024, (16,))):
        # Enough rows for the narrower of the claims.
        cell = saturation.simulate_cell(
            ensembles.build(SPECS["normal"]), d_k, n_keys, SCALINGS, 1, "normal", n_logits=60_000
        )
        for part, rows in zip(parts, cell[:2], strict=True):
            part += rows
    return {
        name: pd.DataFrame(part) for name, part in zip(("softmax_saturation", "gradient_magnitude"), parts, strict=True)
    }


def _planted_gradient() -> pd.DataFrame:
    rows = []
    for n_keys, rho, ratio in ((3, 0.0, 1.5), (64, 0.0, 1.6), (3, 0.5, 90.0), (64, 0.5, 21.0)):
        for scaling, one in (("none", ratio), ("1/sqrt(d_k)", 1.0)):
            row = dict(d_k=64, rho=rho, n_keys=n_keys, scaling=scaling, signal=1.0, noise=(900 * one) ** 0.5)
            rows.append(row | dict(rows=900 * one, ratio=one, missed=1 - 1 / n_keys))
    return pd.DataFrame(rows)


def _gradient_by_keys() -> pd.DataFrame:
    place = dict(n_keys=64, measure="jacobian_frobenius", d_k=1024, quantity="median")
    return pd.DataFrame([place | dict(ratio=0.0015, low=0.0014, high=0.0016, n_rows=8192)])


@functools.cache
@sharing.shared
def rows_of_checks() -> list[dict]:
    """Return the rows of claim_checks.csv that need no trained heads, from seed 1."""
    return claim_checks.table(1)


def _checks() -> pd.DataFrame:
    dump = enumeration.read_dump(ROOT / "resources/minilm-l6-qk.npz")
    q, k = (array.reshape(-1, *array.shape[-2:])[::6] for array in (dump.q, dump.k))
    factor = dump.q.shape[-1] ** -0.5
    heads = [claim_checks.TrainedHead("MiniLM-L6", *pair, factor) for pair in zip(q, k, strict=True)]
    table = pd.DataFrame(rows_of_checks() + claim_checks.trained_heads(heads))
    return table.assign(case=table["case"].replace("", None)).astype({"se": float, "exact": float})


def _training() -> dict[str, pd.DataFrame]:
    """Return tables of training in which runs that fail differ from seed to seed too."""
    experiments = tuple((task, task, "adam") for task in ("recall", "induction"))
    tables, rng = synthetic_training.tables(experiments=experiments), np.random.default_rng(4)
    logged = tables["training"]
    # Queries find their keys as far as the loss has fallen.
    logged = logged.assign(alignment=0.02 + 0.9 * (1 - logged["loss"] / synthetic_training.GUESS).clip(lower=0))
    noise = {name: np.exp(0.01 * rng.normal(size=len(logged))) for name in ("loss", "logit_std", "alignment")}
    return tables | {"training": logged.assign(**{name: logged[name] * factor for name, factor in noise.items()})}


@functools.cache
@sharing.shared
def _frames() -> dict[str, pd.DataFrame]:
    table = moments()
    rows = [row for name in VARIANTS for row in alternatives.simulate(64, (64,), (name,), seed=1)]
    return {
        "moments": table,
        "variance_laws": laws.fit_variance_laws(table, 64),
        **_softmax(),
        "initialisation": synthetic_start.initialisation(),
        "depth": synthetic_start.depth(),
        "rounding": synthetic_start.rounding(d_k=(64, 1024)),
        "normalisers": pd.DataFrame(normalisation.simulate_normalisers(1, 4000)),
        "linear_attention": pd.DataFrame(normalisation.simulate_kernels(1, n_blocks=16)),
        "alternatives": pd.DataFrame(rows),
        "planted_gradient": _planted_gradient(),
        "gradient_by_keys": _gradient_by_keys(),
        "worked_example": pd.DataFrame(worked_example.table(4000, 1)).astype({"se": float, "theory": float}),
        "claim_checks": _checks(),
        "real_heads": synthetic_results.real_heads(),
        "audit": pd.concat([synthetic_audit.table()] * 8, ignore_index=True),
        **_training(),
        **{f"shipped_{name}": frame for name, frame in reading.tables(SHIPPED).items()},
    }


def frames() -> dict[str, pd.DataFrame]:
    """Return fresh copies of the tables by name."""
    return {name: table.copy() for name, table in _frames().items()}
