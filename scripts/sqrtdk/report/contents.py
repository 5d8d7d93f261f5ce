"""What the page and the LaTeX files share: the tables of the report in their order, and what its words may name."""

import pandas as pd

from sqrtdk.config.rules import specification
from sqrtdk.report import answers, ledger, training_answers
from sqrtdk.report.article import practice
from sqrtdk.report.tables import making
from sqrtdk.rows import plan, softmax
from sqrtdk.sampling import blocks, ensembles, laws
from sqrtdk.theory import energy_grid
from sqrtdk.words import numbers

FOLDED = ("real_heads", "audit_all", "training_shipped")
"""Tables that the page shows on demand, in this order."""


def specifications(configuration: dict) -> dict[str, dict]:
    """Return the family and the parameters of each ensemble of a configuration."""
    return {name: specification(entry) for name, entry in configuration["ensembles"].items()}


def setting(frames: dict[str, pd.DataFrame], configuration: dict) -> answers.Setting:
    """Return what the headline numbers of a run are taken at."""
    return answers.setting(frames["moments"], frames["softmax_saturation"], specifications(configuration))


def report_tables(
    frames: dict[str, pd.DataFrame], longer: dict[str, pd.DataFrame], configuration: dict, language: str
) -> dict[str, making.Table]:
    """Return the tables of the report by key, in the order of their numbers.

    `longer` are the tables of the longer training run that comes with the project. The claims follow the table of the
    answer; what the page folds away comes last.
    """
    specs, at = specifications(configuration), setting(frames, configuration)
    members = {name: ensembles.build(spec) for name, spec in specs.items()}
    found = making.report_tables(frames, specs, members, at.ensemble, at.d_k, at.n_keys)
    found |= training_answers.report_tables(frames, longer)
    found = {"contrast": found["contrast"], "practice": practice.practice(frames, longer)} | found
    found = dict(sorted(found.items(), key=lambda item: item[0] in FOLDED))
    claims = ledger.ledger(frames["claims"], language), ledger.checks(frames["claim_checks"])
    return {"contrast": found["contrast"], **{table.key: table for table in claims}, **found}


def constants(configuration: dict) -> dict[str, str]:
    """Return the values that all words of the report may name."""
    return {
        "distinct": f"{answers.DISTINCT:g}",
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
