"""The data dictionary of results/: what each file is, and of each table every column with its type and meaning.

results/README.md is made of it; tables are written in its order and read with its types. Only `describe_results` names
it in an import. What else needs columns finds them through `sqrtdk.results.described`, so that a better word for a
meaning starts no job again: rules hold a hash of columns and types.
"""

from sqrtdk.results.columns import File
from sqrtdk.results.dictionary import claims, examples, heads, rows, scores, training, variants

INTRODUCTION = """
Everything here is generated; delete it and run the workflow again. Tables are CSV in UTF-8 with one header
row, a row for each observation and full precision. `x_se` is the Monte-Carlo standard error of `x` and
`exact_x` its closed form. An empty cell means that there is no such number, and `reason`, where there is
one, says why. Results are byte-identical within one environment and machine; across environments they agree
within a few standard errors.
"""
FILES: dict[str, File] = {
    "report.html": File("The report, one offline file."),
    **scores.FILES,
    **rows.FILES,
    **examples.FILES,
    **variants.FILES,
    **heads.FILES,
    **training.FILES,
    **claims.FILES,
    "provenance.json": File("""
        What the results were made from, that is configuration, versions, commit, hashes of the source files and the
        rules of the workflow: of each, in `rules`, what it needs, makes and reads of the configuration.
        """),
    "figures/": File("""
        Each figure as `fig-<id>` in SVG, PDF and PNG, with its data (CSV), its words (JSON), its citation (BibTeX)
        and the LaTeX that includes it, and `manifest.json`, which lists all of them with their SHA-256. `captions/`
        holds the captions in reStructuredText, for Snakemake's own report.
        """),
    "latex/": File("""
        The key numbers as LaTeX macros (`numbers.tex`), each table of the report as `tab-<name>.tex`, and how to
        use them (`README.md`).
        """),
    "numbers.json": File("""
        The key numbers of the run by name: value, standard error or 95 % interval, rounded text, unit,
        observations, macro, the file, row and columns that it comes from, and what it is.
        """),
    "summary.json": File("""
        The run in one file for programs: version, hashes, seed, headline numbers, verdicts of training, audit and
        claims, figures with the SHA-256 of their files. `summary.schema.json` is its JSON schema.
        """),
    "drawn/": File("Each figure as it was drawn, before words and metadata; `figures/` is made from it."),
    "run.json": File("""
        When the last run ended and what it cost. Differs from run to run, so it is no part of any hash.
        """),
    "cells/": File("The result of each cell, from which the tables are collected."),
    "logs/": File("What each job said, and its memory and CPU time."),
}
