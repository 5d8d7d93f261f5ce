# Needs: the tables in results/. Makes: each figure as SVG, PDF, PNG, CSV, BibTeX and JSON, and their manifest.

FIGURES = figures.names()
FIGURE_FILES = [f"results/figures/fig-{name}.{kind}" for name in FIGURES for kind in ("svg", "pdf", "png", "csv", "bib", "json")]


rule draw_figure:
    input:
        script=figure_script,
        data=figure_tables,
    output:
        svg="results/figures/fig-{figure}.svg",
        pdf="results/figures/fig-{figure}.pdf",
        png="results/figures/fig-{figure}.png",
        csv="results/figures/fig-{figure}.csv",
        bib="results/figures/fig-{figure}.bib",
        json="results/figures/fig-{figure}.json",
    params:
        versions=versions("numpy", "scipy", "pandas", "matplotlib", "seaborn"),
    log:
        "results/logs/draw_figure/{figure}.log",
    benchmark:
        "results/benchmarks/draw_figure/{figure}.tsv"
    conda:
        "../../environment.yml"
    message:
        "draw figure {wildcards.figure}"
    shell:
        "python {input.script[0]:q} --figure {wildcards.figure} --data {input.data:q} --svg {output.svg:q}"
        " --pdf {output.pdf:q} --png {output.png:q} --csv {output.csv:q} --bib {output.bib:q} --json {output.json:q}"
        " > {log:q} 2>&1"


rule write_manifest:
    input:
        script=script("write_manifest"),
        figures=FIGURE_FILES,
    output:
        manifest="results/figures/manifest.json",
    log:
        "results/logs/write_manifest.log",
    benchmark:
        "results/benchmarks/write_manifest.tsv"
    conda:
        "../../environment.yml"
    message:
        "list the figures with their hashes"
    shell:
        "python {input.script[0]:q} --files {input.figures:q} --rule draw_figure --parameters '{{}}'"
        " --output {output.manifest:q} > {log:q} 2>&1"
