"""What the page and the LaTeX files share: the tables of the report in their order, and what its words may name."""

from typing import Any

import pandas as pd

from sqrtdk.config.rules import specification
from sqrtdk.figures.catalogue import TOPICS
from sqrtdk.report import key_numbers, ledger, longer_runs
from sqrtdk.report.article import practice
from sqrtdk.report.comparing import DISTINCT
from sqrtdk.report.facts import Facts
from sqrtdk.report.setting import Setting, choose
from sqrtdk.report.tables import alternatives, examples, heads, moments, normalisers, rows, start, training
from sqrtdk.report.tables.cells import Table
from sqrtdk.rows import plan, softmax
from sqrtdk.sampling import blocks, ensembles, laws
from sqrtdk.theory import energy_grid
from sqrtdk.words import numbers

ARTICLE: dict[str, tuple[str, ...]] = {
    "scores": ("widths",),
    "gradients": ("vanishing",),
}
"""Tables of each chapter of the article, in their order."""
ATLAS: dict[str, tuple[str, ...]] = {
    "scores": ("families", "ensembles", "variance_laws", "spread_laws", "mean_laws"),
    "attention": ("contrast", "saturation", "three_numbers", "before_after"),
    "gradients": ("gradients", "tiny_gradients"),
    "factor": ("scale_rules", "normalisers", "linear_attention", "rounding"),
    "training": ("other_factors", "training", "start_rate", "training_growth", "training_shipped"),
    "start": ("initialisation", "normalisation"),
    "heads": ("audit", "real_heads", "audit_all"),
}
"""Tables of each topic of the atlas, in their order."""
ORDER = (
    *(key for keys in ARTICLE.values() for key in keys),
    *("practice", "mistakes"),
    *(key for keys in ATLAS.values() for key in keys),
    *("claims", "claim_checks"),
)
"""All tables in the order in which they stand on the page."""


def specifications(configuration: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the family and the parameters of each ensemble of a configuration."""
    return {name: specification(entry) for name, entry in configuration["ensembles"].items()}


def setting(frames: dict[str, pd.DataFrame], configuration: dict[str, Any]) -> Setting:
    """Return what the headline numbers of a run are taken at."""
    return choose(frames["moments"], frames["softmax_saturation"], specifications(configuration))


def facts(frames: dict[str, pd.DataFrame], longer: dict[str, pd.DataFrame], configuration: dict[str, Any]) -> Facts:
    """Return the numbers that texts quote, of a run and of the longer training run that comes with the project."""
    return Facts(key_numbers.of_run(frames, setting(frames, configuration), longer.get("start_rate")))


def report_tables(
    frames: dict[str, pd.DataFrame],
    longer: dict[str, pd.DataFrame],
    configuration: dict[str, Any],
    language: str,
    quoted: Facts,
) -> dict[str, Table | ledger.Ledger]:
    """Return the tables of the report by key, in the order of their numbers, which is that of the page.

    `longer` are the tables of the longer training run that comes with the project, `quoted` the numbers of the run.
    """
    specs, at = specifications(configuration), setting(frames, configuration)
    trained = ((run["training_verdicts"], run["training_summary"]) for run in (frames, longer) if run)
    found: tuple[Table | ledger.Ledger, ...] = (
        practice.practice(longer, at, quoted),
        ledger.ledger(frames["claims"], language),
        ledger.checks(frames["claim_checks"]),
        *result_tables(frames, specs, at),
        longer_runs.table(*trained),
        *training.report_tables(frames, longer),
    )
    return {table.key: table for table in sorted(found, key=lambda table: ORDER.index(table.key)) if table.rows}


def result_tables(frames: dict[str, pd.DataFrame], specs: dict[str, dict[str, Any]], at: Setting) -> tuple[Table, ...]:
    """Return the tables of what was simulated, and of the heads."""
    members = {name: ensembles.build(spec) for name, spec in specs.items()}
    ranges, power = moments.refused(frames), ("power", "exponent")
    return (
        moments.widths(frames["moments"], at.ensemble, at.n_keys),
        rows.vanishing(frames["gradient_by_keys"]),
        rows.contrast(frames, at.ensemble, at.d_k, at.n_keys),
        moments.families(frames["moments"], specs, members, at.d_k),
        moments.ensembles(frames["moments"], at.d_k),
        moments.laws(frames["variance_laws"], "variance_laws", power, ("affine_tail", "slope")),
        *([] if ranges.empty else [moments.laws(ranges, "spread_laws", power, ("power_tail", "exponent"))]),
        moments.laws(frames["mean_laws"], "mean_laws", ("linear", "slope")),
        rows.by_rule(frames["softmax_saturation"], "saturation", at.ensemble, at.d_k),
        rows.by_rule(frames["gradient_magnitude"], "gradients", at.ensemble, at.d_k),
        *examples.report_tables(frames),
        alternatives.scale_rules(frames["alternatives"]),
        alternatives.mistakes(frames["alternatives"]),
        normalisers.normalisers(frames["normalisers"]),
        normalisers.linear_attention(frames["linear_attention"]),
        start.initialisation(frames["initialisation"]),
        start.normalisation(frames["initialisation"]),
        start.rounding(frames["rounding"]),
        heads.real_heads(frames["real_heads"]),
        *heads.audit(frames["audit"], frames["real_heads"]),
    )


def atlas(figures: list[dict[str, Any]], tables: dict[str, Any]) -> dict[str, dict[str, list[Any]]]:
    """Return the topics of the atlas with their figures and tables, in their order."""
    return {
        topic: {
            "figures": [one for one in figures if (one["part"], one["topic"]) == ("atlas", topic)],
            "tables": [tables[key] for key in ATLAS.get(topic, ()) if key in tables],
        }
        for topic in TOPICS
        if topic != "answer"
    }


def constants(configuration: dict[str, Any]) -> dict[str, str]:
    """Return the values that all words of the report may name."""
    return {
        "distinct": f"{DISTINCT:g}",
        "saturated": f"{softmax.SATURATED_WEIGHT:g}",
        "vanishing": f"{softmax.VANISHING_NORM:g}",
        "most_plain": numbers.count(energy_grid.MOST_PLAIN),
        "top": numbers.count(energy_grid.TOP),
        "cell": f"1/{1 / energy_grid.CELL:.0f}",
        "skewness": f"{energy_grid.TRUSTED_SKEWNESS:g}",
        "goal_mean": numbers.percent(plan.GOALS["entropy"], 0),
        "goal_rms": numbers.percent(plan.GOALS["grad_query"], 0),
        "min_blocks": str(blocks.MIN_BLOCKS),
        "selection_margin": f"{laws.SELECTION_MARGIN:g}",
        "precision": f"{configuration['precision']:g}",
        "max_scalars": numbers.count(configuration["max_scalars"]),
        "tail": str(configuration["tail_d_k"]),
    }
