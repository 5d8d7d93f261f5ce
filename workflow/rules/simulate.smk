# Needs: the ensembles and dumps of the configuration.
# Makes: results/moments.csv, results/score_histograms.csv, results/real_heads.csv, from one job for each cell.


rule simulate_moments:
    input:
        script=script("simulate_moments")[:1],
    output:
        cell="results/cells/moments/{ensemble}/{d_k}.json",
    params:
        code=code("simulate_moments"),
        spec=lambda wildcards: as_json(configuration.specification(CONFIG["ensembles"][wildcards.ensemble])),
        seed=CONFIG["seed"],
        precision=lambda wildcards: effort(wildcards.ensemble, "precision"),
        max_scalars=lambda wildcards: effort(wildcards.ensemble, "max_scalars"),
        versions=versions("numpy"),
    log:
        "results/logs/simulate_moments/{ensemble}/{d_k}.log",
    benchmark:
        "results/benchmarks/simulate_moments/{ensemble}/{d_k}.tsv"
    conda:
        "../../environment.yml"
    message:
        "simulate q·k of {wildcards.ensemble} at d_k = {wildcards.d_k}"
    shell:
        "python {input.script[0]:q} --ensemble {wildcards.ensemble} --spec {params.spec:q} --d-k {wildcards.d_k}"
        " --seed {params.seed} --precision {params.precision} --max-scalars {params.max_scalars}"
        " --cell {output.cell:q} > {log:q} 2>&1"


rule describe_heads:
    input:
        script=script("describe_heads"),
        dump=lambda wildcards: configuration.find_file(CONFIG["dumps"][wildcards.dump]["file"], [Path("."), SOURCE]),
    output:
        heads="results/cells/heads/{dump}.json",
    params:
        entry=lambda wildcards: as_json(described_dumps("scaling", "model", "input")[wildcards.dump]),
        versions=versions("numpy"),
    log:
        "results/logs/describe_heads/{dump}.log",
    benchmark:
        "results/benchmarks/describe_heads/{dump}.tsv"
    conda:
        "../../environment.yml"
    message:
        "enumerate the token pairs of every head of {wildcards.dump}"
    shell:
        "python {input.script[0]:q} --dump {wildcards.dump} --entry {params.entry:q} --file {input.dump:q}"
        " --output {output.heads:q} > {log:q} 2>&1"


rule collect_moments:
    input:
        script=script("collect_moments"),
        cells=[f"results/cells/moments/{name}/{d_k}.json" for name in WIDTHS for d_k in WIDTHS[name]],
        heads=expand("results/cells/heads/{dump}.json", dump=CONFIG["dumps"]),
    output:
        moments=citable_table("moments"),
        score_histograms="results/score_histograms.csv",
        real_heads=citable_table("real_heads"),
    params:
        columns=described("collect_moments"),
        cells=as_json(WIDTHS),
        dumps=as_json(list(CONFIG["dumps"])),
    log:
        "results/logs/collect_moments.log",
    benchmark:
        "results/benchmarks/collect_moments.tsv"
    conda:
        "../../environment.yml"
    message:
        "collect the moments of all cells"
    shell:
        "python {input.script[0]:q} --folder results/cells/moments --cells {params.cells:q}"
        " --heads results/cells/heads --dumps {params.dumps:q} --moments {output.moments:q}"
        " --score-histograms {output.score_histograms:q} --real-heads {output.real_heads:q} > {log:q} 2>&1"
