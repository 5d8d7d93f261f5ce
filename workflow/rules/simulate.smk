# Needs: the ensembles and dumps of the configuration.
# Makes: results/moments.csv, results/score_histograms.csv, results/real_heads.csv, from one job for each ensemble and dump.

# The jobs of each ensemble, and the widths that each of them has.
PARTS = {name: cells.parts(WIDTHS[name], effort(name, "max_scalars")) for name in WIDTHS}


rule simulate_moments:
    input:
        script=script("simulate_moments")[:1],
    output:
        # What it has of the same code, seed and specification is kept: a new width, or more precision, adds to it.
        cells=update("results/cells/moments/{ensemble}/{part}.npz"),
    params:
        spec=lambda wildcards: as_json(configuration.specification(CONFIG["ensembles"][wildcards.ensemble])),
        widths=lambda wildcards: as_json(PARTS[wildcards.ensemble][wildcards.part]),
        seed=CONFIG["seed"],
        precision=lambda wildcards: effort(wildcards.ensemble, "precision"),
        max_scalars=lambda wildcards: effort(wildcards.ensemble, "max_scalars"),
        made_from=as_json({"code": code("simulate_moments"), **versions("numpy")}),
    log:
        "results/logs/simulate_moments/{ensemble}/{part}.log",
    conda:
        "../../environment.yml"
    message:
        "simulate q·k of {wildcards.ensemble}, d_k: {wildcards.part}"
    shell:
        "python {input.script[0]:q} --ensemble {wildcards.ensemble} --spec {params.spec:q} --widths {params.widths:q}"
        " --seed {params.seed} --precision {params.precision} --max-scalars {params.max_scalars}"
        " --made-from {params.made_from:q} --output {output.cells:q} > {log:q} 2>&1"


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
        cells=[f"results/cells/moments/{name}/{part}.npz" for name in PARTS for part in PARTS[name]],
        heads=expand("results/cells/heads/{dump}.json", dump=CONFIG["dumps"]),
    output:
        moments=citable_table("moments"),
        score_histograms="results/score_histograms.csv",
        real_heads=citable_table("real_heads"),
    params:
        columns=described("collect_moments"),
        cells=as_json(PARTS),
        dumps=as_json(list(CONFIG["dumps"])),
    log:
        "results/logs/collect_moments.log",
    conda:
        "../../environment.yml"
    message:
        "collect the moments of all cells"
    shell:
        "python {input.script[0]:q} --folder results/cells/moments --cells {params.cells:q}"
        " --heads results/cells/heads --dumps {params.dumps:q} --moments {output.moments:q}"
        " --score-histograms {output.score_histograms:q} --real-heads {output.real_heads:q} > {log:q} 2>&1"
