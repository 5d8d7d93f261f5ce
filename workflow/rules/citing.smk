# Needs: the tables of the report, their words, and the manifest of the figures.
# Makes: results/latex/ (numbers and tables for LaTeX), results/numbers.json, results/summary.json and its schema.


rule write_latex:
    input:
        script=script("write_latex"),
        words=WORDS,
        references=str(SOURCE / "report/references.bib"),
        schema=str(SOURCE / "workflow/schemas/summary.schema.json"),
        shipped_training=SHIPPED_TRAINING,
        provenance="results/provenance.json",
        manifest="results/figures/manifest.json",
        tables=TABLES,
    output:
        # Which tables there are depends on the results: without real heads there is none of them.
        folder=directory("results/latex"),
        numbers=citable("results/numbers.json", "Report", SOURCE / "workflow/report/numbers.rst", file="numbers.json"),
        summary="results/summary.json",
        schema="results/summary.schema.json",
    params:
        language=CONFIG["language"],
        labels=lambda wildcards: as_json(configuration.labels(CONFIG)),
        columns=described("write_latex"),
        versions=versions("pandas"),
    log:
        "results/logs/write_latex.log",
    conda:
        "../../environment.yml"
    message:
        "write numbers and tables for LaTeX, and the summary"
    shell:
        "python {input.script[0]:q} --results {input.tables:q} --shipped-training {input.shipped_training:q}"
        " --provenance {input.provenance:q} --manifest {input.manifest:q} --language {params.language:q} --labels {params.labels:q}"
        " --word-files {input.words:q} --references {input.references:q} --schema {input.schema:q}"
        " --folder {output.folder:q} --numbers {output.numbers:q} --summary-file {output.summary:q} --summary-schema {output.schema:q}"
        " > {log:q} 2>&1"
