# Needs: the tables, the figures and the sources of the report.
# Makes: results/report.html, results/provenance.json and results/README.md.

REPORT_SOURCES = sorted(str(path) for path in (SOURCE / "report").rglob("*") if path.is_file())
CODE = [str(SOURCE / file) for file in workflow_support.code_files()]
TABLES = [
    f"results/{name}.csv"
    for name in (
        *("moments", "variance_laws", "mean_laws", "spread_laws"),
        *("softmax_saturation", "gradient_magnitude", "gradient_distribution", "gradient_crossovers"),
        *("gradient_by_keys", "key_crossovers"),
        *("worked_example", "tiny_gradients", "real_heads", "audit"),
        *("alternatives", "normalisers", "linear_attention", "initialisation", "rounding"),
        *("planted_capacity", "freezing_frontier"),
        *("typical_rows", "one_query"),
        *("training_verdicts", "training_summary", "training_transfer", "training_start"),
        *("claims", "claim_checks"),
    )
]
# A function's value is not searched for wildcards, so text from the configuration may hold braces.
SNAKEFILES = sorted((SOURCE / "workflow/rules").glob("*.smk"))
# What inputs that are functions depend on.
GIVEN = {"figure": FIGURES, "dump": list(CONFIG["dumps"])}


rule write_provenance:
    input:
        script=script("write_provenance"),
        code=CODE,
    output:
        provenance="results/provenance.json",
    params:
        configuration=lambda wildcards: as_json(SETTINGS),
        default=as_json(configuration.settings(default_configuration())),
        commit=workflow_support.commit(),
        rules=lambda wildcards: as_json(workflow_graph.graph(workflow.rules, SNAKEFILES, GIVEN)),
        versions=ENVIRONMENT,
    log:
        "results/logs/write_provenance.log",
    conda:
        "../../environment.yml"
    message:
        "record what the results are made from"
    shell:
        "python {input.script[0]:q} --configuration {params.configuration:q} --default {params.default:q}"
        " --commit {params.commit:q} --rules {params.rules:q} --sources {input.code:q}"
        " --output {output.provenance:q} > {log:q} 2>&1"


rule render_report:
    input:
        script=script("render_report"),
        sources=REPORT_SOURCES,
        figures=FIGURE_FILES,
        shipped_training=SHIPPED_TRAINING,
        provenance="results/provenance.json",
        citation=SOURCE / "CITATION.cff",
        tables=TABLES,
    output:
        report=citable("results/report.html", "Report", SOURCE / "workflow/report/report.rst", file="report.html"),
    params:
        title=lambda wildcards: as_json(CONFIG["title"]),
        language=CONFIG["language"],
        labels=lambda wildcards: as_json(configuration.labels(CONFIG)),
        columns=described("render_report"),
        versions=versions("pandas", "jinja2"),
    log:
        "results/logs/render_report.log",
    conda:
        "../../environment.yml"
    message:
        "render the report"
    shell:
        "python {input.script[0]:q} --figures {input.figures:q} --results {input.tables:q}"
        " --shipped-training {input.shipped_training:q}"
        " --provenance {input.provenance:q} --citation {input.citation:q} --title {params.title:q}"
        " --language {params.language:q} --labels {params.labels:q} --sources {input.sources:q}"
        " --output {output.report:q} > {log:q} 2>&1"


rule describe_results:
    input:
        script=script("describe_results"),
    output:
        readme="results/README.md",
    log:
        "results/logs/describe_results.log",
    conda:
        "../../environment.yml"
    message:
        "say what each file in results/ is"
    shell:
        "python {input.script[0]:q} --readme {output.readme:q} > {log:q} 2>&1"
