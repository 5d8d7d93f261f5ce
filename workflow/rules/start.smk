# Needs: the configuration. Makes: results/initialisation.csv, results/depth.csv and results/rounding.csv.

# A stack costs as much as several layers, and tells as much.
N_STACKS = max(2, CONFIG["weight_draws"] // 4)


rule simulate_initialisation:
    input:
        script=script("simulate_initialisation"),
    output:
        table="results/initialisation.csv",
    params:
        n_draws=CONFIG["weight_draws"],
        seed=CONFIG["seed"],
        columns=described("simulate_initialisation"),
        versions=versions("numpy", "scipy"),
    log:
        "results/logs/simulate_initialisation.log",
    conda:
        "../../environment.yml"
    message:
        "measure the logits that initial weights and normalisations give"
    shell:
        "python {input.script[0]:q} --n-draws {params.n_draws} --seed {params.seed}"
        " --output {output.table:q} > {log:q} 2>&1"


rule simulate_depth:
    input:
        script=script("simulate_depth"),
    output:
        table="results/depth.csv",
    params:
        n_stacks=N_STACKS,
        seed=CONFIG["seed"],
        columns=described("simulate_depth"),
        versions=versions("numpy"),
    log:
        "results/logs/simulate_depth.log",
    conda:
        "../../environment.yml"
    message:
        "measure logits and tokens against depth in stacks of random layers"
    shell:
        "python {input.script[0]:q} --n-stacks {params.n_stacks} --seed {params.seed}"
        " --output {output.table:q} > {log:q} 2>&1"


rule simulate_rounding:
    input:
        script=script("simulate_rounding"),
    output:
        table="results/rounding.csv",
    params:
        d_k=as_json(CONFIG["d_k"]),
        # Every logit is rounded many times over.
        n_logits=CONFIG["softmax_logits"] // 2,
        seed=CONFIG["seed"],
        columns=described("simulate_rounding"),
        versions=versions("numpy", "scipy", "ml_dtypes"),
    log:
        "results/logs/simulate_rounding.log",
    conda:
        "../../environment.yml"
    message:
        "measure attention in floating-point formats of few bits"
    shell:
        "python {input.script[0]:q} --d-k {params.d_k:q} --n-logits {params.n_logits} --seed {params.seed}"
        " --output {output.table:q} > {log:q} 2>&1"
