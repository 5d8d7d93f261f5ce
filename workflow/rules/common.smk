# Needs: the merged configuration. Makes: CONFIG (understood exactly), and the few helpers that all rules share.

import importlib.metadata
import json
import os
import platform
import sys
import time
from pathlib import Path

import snakemake.persistence

STARTED = time.time()
# Relative, so that a folder that was moved or cloned is not taken for another workflow, nor one reached through a link.
SOURCE = Path(os.path.relpath(Path(str(workflow.current_basedir)).resolve().parent.parent))
SCRIPTS = SOURCE / "scripts"
sys.path.insert(0, str(SCRIPTS.resolve()))

import warm_start
import workflow_graph
import workflow_support
from sqrtdk.claims import catalogue as claims
from sqrtdk.config import validation as configuration
from sqrtdk.figures import catalogue as figures
from sqrtdk.results import dictionary
from sqrtdk.sampling import cells, ensembles
from sqrtdk.training import rules as trained
from sqrtdk.variants import notation as variants

if reason := workflow_support.unusable(SOURCE):
    sys.exit(reason)

workflow_support.use_this_python()

# Snakemake looks for tables of pandas among parameters; to load it for that takes a sixth of each start. There are none.
if "pandas" not in sys.modules and hasattr(snakemake.persistence, "PersistenceBase"):
    snakemake.persistence.PersistenceBase._serialize_param = property(lambda self: self._serialize_param_builtin)

try:
    CONFIG = configuration.validate(
        config,
        configuration.load_schema(SOURCE / "workflow/schemas/config.schema.yaml"),
        files=workflow.configfiles,
        arguments=workflow.config_settings.config_args,
        folders=[Path("."), SOURCE],
    )
except configuration.ConfigError as error:
    sys.exit(str(error))

# What only words the report differently is no part of what the numbers were made from.
SETTINGS = configuration.settings(CONFIG)

if workflow.is_main_process and (reason := workflow_support.unrecorded(Path("."), SETTINGS)):
    sys.exit(reason)

# The cells: each ensemble at the widths of the run at which it is defined.
ENSEMBLES = {name: ensembles.build(configuration.specification(entry)) for name, entry in CONFIG["ensembles"].items()}
WIDTHS = {
    name: widths
    for name, ensemble in ENSEMBLES.items()
    if (widths := [d_k for d_k in CONFIG["d_k"] if not ensemble.undefined_at(d_k)])
}

# The cells of training: each rule at each width of an experiment.
TRAINED = {
    name: {
        "task": entry["task"],
        "optimiser": entry["optimiser"],
        "cells": [[trained.slug(rule), rule, d_k] for rule in entry["scalings"] for d_k in entry["d_k"]],
    }
    for name, entry in CONFIG["training"].items()
}

# Stages that rest on the factor itself leave out rules whose factor depends on the data.
CONSTANT_SCALINGS = [text for text in CONFIG["scalings"] if variants.parse(text).factor(64, 64) is not None]

# Numbers belong to the libraries that made them: with another version they are made again.
ENVIRONMENT = {"python": platform.python_version()} | {
    name: importlib.metadata.version(name) for name in ("numpy", "scipy", "pandas", "matplotlib", "seaborn", "jinja2", "ml_dtypes", "pypdf")
}

# The longer training, of more tasks, optimisers and rules, that was run once and ships with the project.
SHIPPED_TRAINING = [
    str(SOURCE / f"resources/training/{name}.csv")
    for name in ("training_verdicts", "training_summary", "training_growth", "start_rate")
]


def script(name, *modules):
    """The files that a rule's script depends on, itself first."""
    first = f"{name}.py"
    files = workflow_support.source_files(first, *modules)
    return [str(SCRIPTS / file) for file in [first, *(f for f in files if f != first)]]


def code(name):
    """One hash of all that, for the parameters of a rule of hundreds of jobs or files, which has its script as an input.

    Snakemake looks up, weighs and records every input of every job, at each pass of its scheduler, and for each output
    once more.
    """
    return workflow_support.source_hash(f"{name}.py")


def described(rule):
    """One hash of the columns and types of the tables that a rule reads and writes, for its parameters.

    The program finds them at run time, so that an edit of what a column means starts no job again. A name is given, since
    Snakemake takes a parameter that is made from `input` or `output` for no reason to run again.
    """

    def columns(wildcards):
        made = getattr(rules, rule)
        return workflow_support.columns_hash(file for file in (*made.input, *made.output) if isinstance(file, str))

    return columns


def figure_script(wildcards):
    return script("draw_figure", f"sqrtdk/figures/{wildcards.figure.replace('-', '_')}.py")


def figure_tables(wildcards):
    tables = figures.load(wildcards.figure).INPUTS
    return [str(SOURCE / figures.source(name)) if name in figures.SHIPPED else figures.source(name) for name in tables]


def figure_words(wildcards):
    """The words that a figure is drawn with, in English and in the language of the report."""
    files = (f"figure_{wildcards.figure.replace('-', '_')}", "figures_shared", "lists", "phrases", "drawn")
    folders = (SOURCE / "report/words" / language for language in dict.fromkeys(("en", CONFIG["language"])))
    return [str(path) for folder in folders for path in (folder / f"{name}.yaml" for name in files) if path.is_file()]


def citable(path, category, caption, **labels):
    """A result that `snakemake --report` shows, with its caption: a file in workflow/report/, or one that is made."""
    return report(path, caption=str(Path(caption).resolve()), category=category, labels=labels)


def citable_table(name):
    return citable(f"results/{name}.csv", "Tables", SOURCE / "workflow/report/table.rst", table=name)


def softmax_cells(kind):
    return [f"results/cells/softmax/{name}/{d_k}.{kind}.csv" for name in SOFTMAX_WIDTHS for d_k in SOFTMAX_WIDTHS[name]]


def training_cells(kind):
    return [
        f"results/cells/training/{name}/{slug}/{d_k}.{kind}.csv"
        for name, entry in TRAINED.items()
        for slug, _, d_k in entry["cells"]
    ]


def scaling_of(wildcards):
    return next(rule for slug, rule, _ in TRAINED[wildcards.experiment]["cells"] if slug == wildcards.rule)


def training_settings(wildcards):
    entry = CONFIG["training"][wildcards.experiment]
    kept = {key: entry[key] for key in entry if key not in ("scalings", "d_k", "around")}
    return as_json(kept | {"rates": trained.rates(entry, scaling_of(wildcards))})


def default_configuration():
    schema = configuration.load_schema(SOURCE / "workflow/schemas/config.schema.yaml")
    return configuration.validate({}, schema, folders=[SOURCE])


def effort(ensemble, key):
    """What an ensemble's own entry says of precision or cost, else what the configuration says of all."""
    return CONFIG["ensembles"][ensemble].get(key, CONFIG[key])


def described_dumps(*keys):
    """The entries of the dumps with some of their keys."""
    return {name: {key: dump[key] for key in keys if key in dump} for name, dump in CONFIG["dumps"].items()}


def versions(*names):
    return {name: ENVIRONMENT[name] for name in ("python", *names)}


def as_json(value):
    """JSON in which no free text can end a script or begin a tag: `snakemake --report` puts parameters into HTML as is."""
    return json.dumps(value, ensure_ascii=False).replace("<", r"\u003c")


def start():
    """Say little while jobs run; where nothing is submitted, start jobs warm, and lift the limit on submissions.

    Each scheduling pass under the limit starts a timer that never stops, so that passes, and with them the time of a
    run, grow with the square of the number of jobs: with 240 jobs they took longer than the jobs.
    """
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None
        # One job begins before there is anything to be warm from.
        if workflow.is_main_process and len([*workflow.dag.needrun_jobs()]) > 2:
            warm_start.start()
    if workflow.is_main_process and not workflow.output_settings.verbose:
        import snakemake.logging
        import show_progress

        show_progress.show(snakemake.logging.logger)


def finish():
    """Print the summary of a run that did something."""
    import finish_run

    warm_start.stop()
    # On a cluster it is not said how many there are, and asking the workflow for them would be an error.
    cores = workflow.resource_settings.cores if workflow.local_exec else None
    # What a job of a cell writes, another rule collects.
    collected = {str(file) for rule in workflow.rules for file in rule.input}
    print()
    print(finish_run.finish_run(STARTED, cores, Path("results"), collected))


def fail():
    """Say which jobs failed and why, in the last lines of the run: Snakemake itself writes some more until its end."""
    import atexit

    import explain_failures

    warm_start.stop()
    if said := explain_failures.explain(workflow.scheduler.failed, STARTED):
        atexit.register(print, f"\n{said}", file=sys.stderr, flush=True)


wildcard_constraints:
    experiment="[a-z][a-z0-9_]*",
    rule="[a-z0-9_]+",
    ensemble="[a-z][a-z0-9_]*",
    part="all|[0-9]+",
    dump="[a-z][a-z0-9_]*",
    figure="[a-z][a-z0-9-]*",
    d_k="[0-9]+",
    n_keys="[0-9]+",
