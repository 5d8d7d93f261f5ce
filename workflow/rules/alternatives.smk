# Needs: the variants, widths and numbers of keys of the configuration.
# Makes: results/alternatives.csv, from one job for each width.

VARIANTS = variants.all_names(CONFIG["alternatives"])


rule simulate_alternatives:
    input:
        script=script("simulate_alternatives"),
    output:
        table="results/cells/alternatives/{d_k}.csv",
    params:
        n_keys=as_json(CONFIG["alternatives_n_keys"]),
        variants=as_json(VARIANTS),
        seed=CONFIG["seed"],
        versions=versions("numpy", "scipy"),
    log:
        "results/logs/simulate_alternatives/{d_k}.log",
    conda:
        "../../environment.yml"
    message:
        "measure every variant of attention at d_k = {wildcards.d_k}"
    shell:
        "python {input.script[0]:q} --d-k {wildcards.d_k} --n-keys {params.n_keys:q} --variants {params.variants:q}"
        " --seed {params.seed} --output {output.table:q} > {log:q} 2>&1"


rule collect_alternatives:
    input:
        script=script("collect_alternatives"),
        cells=expand("results/cells/alternatives/{d_k}.csv", d_k=CONFIG["alternatives_d_k"]),
        theory=expand("results/cells/softmax_theory/{n_keys}.csv", n_keys=CONFIG["alternatives_n_keys"]),
    output:
        table=citable_table("alternatives"),
    params:
        columns=described("collect_alternatives"),
        versions=versions("numpy", "scipy"),
    log:
        "results/logs/collect_alternatives.log",
    conda:
        "../../environment.yml"
    message:
        "collect the variants of attention"
    shell:
        "python {input.script[0]:q} --cells {input.cells:q} --theory {input.theory:q} --output {output.table:q}"
        " > {log:q} 2>&1"
