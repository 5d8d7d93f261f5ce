"""The measured case for dividing attention scores by the square root of d_k, from simulation to report."""

import os
import sys

from snakemake.utils import min_version

min_version("9.0")

if not os.path.isdir(str(workflow.current_basedir)):
    sys.exit("sqrtdk runs programs that lie beside its Snakefile, which a module from a git address does not bring.\n"
             "  Clone the repository and name the file in the clone:  snakefile: \"sqrtdk/Snakefile\"")


configfile: workflow.source_path("config/config.yaml")


report: "workflow/report/workflow.rst"


# Validation comes first: no job starts with a configuration that is not understood exactly.
include: "workflow/rules/common.smk"
include: "workflow/rules/simulate.smk"
include: "workflow/rules/softmax.smk"
include: "workflow/rules/alternatives.smk"
include: "workflow/rules/start.smk"
include: "workflow/rules/normalisers.smk"
include: "workflow/rules/vanishing.smk"
include: "workflow/rules/random_energy.smk"
include: "workflow/rules/phases.smk"
include: "workflow/rules/planted.smk"
include: "workflow/rules/examples.smk"
include: "workflow/rules/laws.smk"
include: "workflow/rules/audit.smk"
include: "workflow/rules/training.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/citing.smk"


# Too light for a cluster's queue: they copy or sort what other jobs made, in a second or less.
localrules:
    all,
    collect_moments,
    collect_alternatives,
    collect_training,
    compare_gradients,
    write_provenance,
    describe_results,


rule all:
    default_target: True
    input:
        # Everything that results/README.md promises: what was deleted by hand comes back.
        [f"results/{name}" for name in dictionary.FILES if name.endswith((".html", ".csv", ".json")) and name != "run.json"],
        "results/README.md",
        "results/summary.schema.json",
        "results/latex",
        "results/figures/manifest.json",
        FIGURE_FILES,
        CAPTIONS.values(),


onstart:
    start()


onsuccess:
    finish()


onerror:
    fail()
