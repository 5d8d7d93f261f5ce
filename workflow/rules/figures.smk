# Needs: the tables in results/ and the words of the report. Makes: each figure drawn (results/drawn/), and with
# metadata and citation as SVG, PDF, PNG, CSV, BibTeX, LaTeX and JSON (results/figures/), and their manifest.

from sqrtdk.report import provenance

FIGURES = figures.names()
FIGURE_FILES = [
    f"results/figures/fig-{name}.{kind}"
    for name in FIGURES
    for kind in ("svg", "pdf", "png", "csv", "bib", "tex", "json")
]
CAPTIONS = {name: f"results/figures/captions/fig-{name}.rst" for name in FIGURES}
PUBLISHED = {path: path for path in FIGURE_FILES} | {
    f"results/figures/fig-{name}.svg": citable(
        f"results/figures/fig-{name}.svg", "Figures", caption, figure=figures.places()[name].number.zfill(2), id=name
    )
    for name, caption in CAPTIONS.items()
}
# What figures are described with, and which configuration they are of: no other word and no code names them anew.
FIGURE_WORDS = [
    str(path)
    for name in ("figure_*", "figures_shared", "lists", "phrases")
    for path in sorted((SOURCE / "report/words" / CONFIG["language"]).glob(f"{name}.yaml"))
]
WORDS = sorted(str(path) for path in (SOURCE / "report/words" / CONFIG["language"]).glob("*.yaml"))


rule draw_figure:
    # Others wait for simulations and tables; for figures only the end of a run does.
    priority: -1
    input:
        script=figure_script,
        data=figure_tables,
        words=figure_words,
    output:
        svg="results/drawn/fig-{figure}.svg",
        pdf="results/drawn/fig-{figure}.pdf",
        png="results/drawn/fig-{figure}.png",
        csv="results/drawn/fig-{figure}.csv",
        json="results/drawn/fig-{figure}.json",
    params:
        target=CONFIG["figure_target"],
        language=CONFIG["language"],
        columns=lambda wildcards: workflow_support.columns_hash(figure_tables(wildcards)),
        labels=lambda wildcards: as_json(configuration.labels(CONFIG)),
        versions=versions("numpy", "scipy", "pandas", "matplotlib", "seaborn", "pypdf"),
    log:
        "results/logs/draw_figure/{figure}.log",
    conda:
        "../../environment.yml"
    message:
        "draw figure {wildcards.figure}"
    shell:
        "python {input.script[0]:q} --figure {wildcards.figure} --data {input.data:q} --target {params.target:q}"
        " --labels {params.labels:q} --words {input.words:q} --language {params.language:q} --svg {output.svg:q}"
        " --pdf {output.pdf:q} --png {output.png:q} --csv {output.csv:q} --json {output.json:q} > {log:q} 2>&1"


rule publish_figures:
    input:
        script=script("publish_figures")[:1],
        # Each has the hashes of the other files of its figure.
        drawn=[f"results/drawn/fig-{name}.json" for name in FIGURES],
        citation=SOURCE / "CITATION.cff",
    output:
        PUBLISHED.values(),
        captions=CAPTIONS.values(),
        manifest="results/figures/manifest.json",
    params:
        language=CONFIG["language"],
        words=FIGURE_WORDS,
        configuration=provenance.text_hash(provenance.canonical(SETTINGS)),
        made_from=[
            code("publish_figures"),
            workflow_support.contents_hash({Path(file).name: Path(file) for file in FIGURE_WORDS}),
        ],
        versions=versions("pypdf"),
    log:
        "results/logs/publish_figures.log",
    conda:
        "../../environment.yml"
    message:
        "give the figures their words and metadata"
    shell:
        "python {input.script[0]:q} --drawn {input.drawn:q} --words {params.words:q} --language {params.language:q}"
        " --configuration-sha256 {params.configuration} --citation {input.citation:q} --output {output.manifest:q} > {log:q} 2>&1"
