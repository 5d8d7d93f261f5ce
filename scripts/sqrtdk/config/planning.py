"""What a run will do, read from its configuration alone: its jobs, and how much work each of them has.

Work is counted in what takes the time: random numbers, logits, multiplications, steps of training. What a unit costs is
measured (`costs.py`). Numbers of blocks that the programs fix from a pilot are taken from a typical one.
"""

import functools
import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from sqrtdk.config.validation import specification
from sqrtdk.figures import catalogue
from sqrtdk.rows import plan as row_plan
from sqrtdk.sampling import blocks, cells, ensembles
from sqrtdk.training import rules as trained
from sqrtdk.variants import notation

BATCH = 4
"""Sequences of the batch that a step of training is counted with."""
THEORY_N_KEYS = (2, *(4**power for power in range(1, 11)))
"""Numbers of keys that the maps of phases need exact averages for, whatever the configuration."""
TYPICAL_SPREAD = 1.0
"""Relative variance between independent rows of attention of what row_plan.GOALS are set for."""
TYPICAL_SHARE = 0.1
"""Relative variance of a product's estimate times its queries, where theory does not give it though it is finite."""
WIDEST = 4096
"""Relative variances of wider heads are taken to be those of this width: they hardly change, and some take long."""
FIXED = (
    *("collect_moments", "collect_softmax", "collect_alternatives", "collect_random_energy", "collect_training"),
    *("fit_variance_laws", "map_phases", "sample_attention_maps", "compare_gradients", "summarise_training"),
    "compare_gradients_by_keys",
    *("audit_heads", "check_claims", "decide_claims", "sample_typical_rows", "sample_one_query"),
    *("write_provenance", "publish_figures", "render_report", "write_latex", "describe_results"),
)
"""Rules of one job whose cost hardly depends on the configuration."""

Work = dict[str, float]


def jobs(configuration: Mapping[str, Any]) -> dict[str, dict[str, Work]]:
    """Return the jobs of each rule of a validated configuration: name (the log's, under the rule's) -> work.

    Work maps units to amounts; rules without any have an empty one.
    """
    found = {rule: dict(of_cells(configuration)) for rule, of_cells in CELLS.items()}
    found |= {rule: {"": work(configuration)} for rule, work in SINGLE.items()}
    return found | {rule: {"": {}} for rule in FIXED}


def _effort(configuration: Mapping[str, Any], name: str, key: str) -> float:
    return configuration["ensembles"][name].get(key, configuration[key])


def _grid(configuration: Mapping[str, Any]) -> Iterator[tuple[str, ensembles.Ensemble, int]]:
    for name, entry in configuration["ensembles"].items():
        ensemble = ensembles.build(specification(entry))
        for d_k in configuration["d_k"]:
            if not ensemble.undefined_at(d_k):
                yield name, ensemble, d_k


class _UpToWidest:
    """What `blocks.plan` asks of an ensemble, without what takes long at great widths."""

    def __init__(self, ensemble: ensembles.Ensemble) -> None:
        self.matched, self._of = ensemble.matched, ensemble.block_relative_variance

    def block_relative_variance(self, d_k: int, n_queries: int, n_keys: int) -> float | None:
        return self._of(min(d_k, WIDEST), n_queries, n_keys)


def _typical_spread(share: float, pilot: blocks.Plan) -> float:
    """Return a relative variance of one product's estimate as a pilot would find it."""
    return share / pilot.n_queries


def _moments(configuration: Mapping[str, Any]) -> Iterator[tuple[str, Work]]:
    grid: dict[str, dict[int, ensembles.Ensemble]] = {}
    for name, ensemble, d_k in _grid(configuration):
        grid.setdefault(name, {})[d_k] = ensemble
    for name, built in grid.items():
        precision, most = (_effort(configuration, name, key) for key in ("precision", "max_scalars"))
        for part, widths in cells.parts(list(built), most).items():
            works = [_moments_of(built[d_k], d_k, precision, most) for d_k in widths]
            yield f"{name}/{part}", {unit: sum(work[unit] for work in works) for unit in works[0]}


def _moments_of(ensemble: ensembles.Ensemble, d_k: int, precision: float, max_scalars: float) -> Work:
    share = TYPICAL_SHARE if ensemble.finite_moment > 4 else math.inf
    pilot = functools.partial(_typical_spread, share)
    plan = blocks.plan(_UpToWidest(ensemble), d_k, precision, max_scalars, pilot)
    scores = plan.n_queries * plan.n_keys * plan.n_products
    scalars = (plan.n_queries + plan.n_keys) * d_k * plan.n_products
    return {"cells": 1, "random numbers": scalars, "scores": scores}


def _typical_pilot(plan: row_plan.RowPlan) -> dict[str, Any]:
    sign = np.resize([1.0, -1.0], (max(2, next(iter(plan.shares.values())).softened), plan.n_queries))
    # As wide as the spread that is assumed, of what the goals are set for: squares of norms, or means themselves.
    straight = 1 + np.sqrt(TYPICAL_SPREAD) * sign
    values = {name: np.sqrt(straight) if name in row_plan.SQUARED else straight for name in row_plan.GOALS}
    return dict.fromkeys(plan.shares, values)


def _softmax(configuration: Mapping[str, Any]) -> Iterator[tuple[str, Work]]:
    for name, ensemble, d_k in _grid(configuration):
        if configuration["ensembles"][name].get("softmax", True):
            n_logits = int(_effort(configuration, name, "softmax_logits"))
            parts = [_rows(ensemble, d_k, n, configuration["scalings"], n_logits) for n in configuration["n_keys"]]
            yield f"{name}/{d_k}", {"jobs": 1} | {unit: sum(part[unit] for part in parts) for unit in parts[0]}


def _rows(ensemble: ensembles.Ensemble, d_k: int, n_keys: int, scalings: list[str], n_logits: int) -> Work:
    rules = [notation.parse(text) for text in scalings]
    streamed = row_plan.in_pieces(ensemble, d_k, n_keys) and all(rule.factor(d_k, n_keys) for rule in rules)
    plan = row_plan.plan(d_k, n_keys, n_logits, ensemble.matched, scalings, _typical_pilot, streamed)
    shares = plan.shares.values()
    drawn = max(share.softened for share in shares)
    scores = drawn * plan.n_queries * n_keys
    pulled = sum(share.graded * plan.n_pulled for share in shares) * n_keys
    return {
        "random numbers": drawn * (plan.n_queries + n_keys) * d_k,
        "logits": scores + sum(share.softened * share.n_queries for share in shares) * n_keys,
        "gradients": sum(share.graded * share.n_queries for share in shares) * n_keys,
        "multiplications": (scores + pulled) * d_k,
    }


def _training(configuration: Mapping[str, Any]) -> Iterator[tuple[str, Work]]:
    for name, entry in configuration["training"].items():
        # A layer more, a longer sequence or a larger batch costs in proportion; the width of a head far less than that.
        batches = entry["seeds"] * entry["steps"] * entry["batch"] / BATCH
        for rule in entry["scalings"]:
            steps = len(trained.rates(entry, rule)) * batches
            for d_k in entry["d_k"]:
                work = {"steps": steps, "steps x width": steps * d_k}
                yield f"{name}/{trained.slug(rule)}/{d_k}", work


def _alternatives(configuration: Mapping[str, Any]) -> Iterator[tuple[str, Work]]:
    names = notation.all_names(configuration["alternatives"])
    measured = len(names) * len(configuration["alternatives_n_keys"])
    for d_k in configuration["alternatives_d_k"]:
        yield str(d_k), {"variants": measured, "variants x width": measured * d_k}


def _energy(configuration: Mapping[str, Any]) -> Iterator[tuple[str, Work]]:
    softened = configuration["logit_draws"] * len(configuration["logit_std"])
    for n_keys in configuration["logit_n_keys"]:
        yield str(n_keys), {"logits": softened}


def _theory(configuration: Mapping[str, Any]) -> Iterator[tuple[str, Work]]:
    keys = (configuration[key] for key in ("n_keys", "logit_n_keys", "alternatives_n_keys"))
    for n_keys in sorted({*THEORY_N_KEYS, *(n for numbers in keys for n in numbers)}):
        yield str(n_keys), {}


CELLS: dict[str, Callable[[Mapping[str, Any]], Iterator[tuple[str, Work]]]] = {
    "simulate_moments": _moments,
    "simulate_softmax": _softmax,
    "train_models": _training,
    "simulate_alternatives": _alternatives,
    "simulate_random_energy": _energy,
    "tabulate_softmax_theory": _theory,
    "describe_heads": lambda configuration: ((name, {}) for name in configuration["dumps"]),
    "draw_figure": lambda _: ((name, {}) for name in catalogue.names()),
}
"""Rules with a job for each cell."""

SINGLE: dict[str, Callable[[Mapping[str, Any]], Work]] = {
    "simulate_initialisation": lambda c: {"draws": c["weight_draws"]},
    "simulate_depth": lambda c: {"draws": c["weight_draws"]},
    "simulate_rounding": lambda c: {"random numbers": c["softmax_logits"] * len(c["d_k"])},
    "simulate_normalisers": lambda c: {"logits": c["softmax_logits"]},
    "simulate_planted_key": lambda c: {"rows": c["example_rows"] * len(c["planted_cosine"])},
    "simulate_worked_example": lambda c: {"rows": c["example_rows"]},
    "count_tiny_gradients": lambda c: {"rows": c["example_rows"]},
}
"""Rules of one job whose work is known."""


def merged(first: Mapping[str, Any], *overlays: Mapping[str, Any]) -> dict[str, Any]:
    """Lay configurations over each other as Snakemake does: mappings entry by entry, all else whole."""
    result = json.loads(json.dumps(first))
    for overlay in overlays:
        for key, value in overlay.items():
            both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
            result[key] = merged(result[key], value) if both else value
    return result
