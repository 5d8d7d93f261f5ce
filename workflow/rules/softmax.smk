# Needs: the ensembles, numbers of keys and scale rules of the configuration.
# Makes: results/softmax_saturation.csv, gradient_magnitude.csv and gradient_distribution.csv, from one job for each cell.

SOFTMAX_WIDTHS = {name: widths for name, widths in WIDTHS.items() if CONFIG["ensembles"][name].get("softmax", True)}

# Where a row of scores is independent Gaussian given its query, there is an exact theory at any number of keys.
EXACT_ROWS = {
    name: configuration.specification(CONFIG["ensembles"][name])
    for name, widths in SOFTMAX_WIDTHS.items()
    if any(ENSEMBLES[name].row_spectrum(d_k) for d_k in widths)
}


rule simulate_softmax:
    input:
        script=script("simulate_softmax")[:1],
    output:
        saturation="results/cells/softmax/{ensemble}/{d_k}.saturation.csv",
        gradients="results/cells/softmax/{ensemble}/{d_k}.gradients.csv",
        distribution="results/cells/softmax/{ensemble}/{d_k}.distribution.csv",
    params:
        code=code("simulate_softmax"),
        spec=lambda wildcards: as_json(configuration.specification(CONFIG["ensembles"][wildcards.ensemble])),
        n_keys=as_json(CONFIG["n_keys"]),
        scalings=as_json(CONFIG["scalings"]),
        seed=CONFIG["seed"],
        n_logits=lambda wildcards: effort(wildcards.ensemble, "softmax_logits"),
        versions=versions("numpy"),
    log:
        "results/logs/simulate_softmax/{ensemble}/{d_k}.log",
    conda:
        "../../environment.yml"
    message:
        "measure softmax and its gradients for {wildcards.ensemble} at d_k = {wildcards.d_k}"
    shell:
        "python {input.script[0]:q} --ensemble {wildcards.ensemble} --spec {params.spec:q} --d-k {wildcards.d_k}"
        " --n-keys {params.n_keys:q} --scalings {params.scalings:q} --seed {params.seed}"
        " --n-logits {params.n_logits} --saturation {output.saturation:q} --gradients {output.gradients:q}"
        " --distribution {output.distribution:q} > {log:q} 2>&1"


rule tabulate_softmax_theory:
    input:
        script=script("tabulate_softmax_theory"),
    output:
        table="results/cells/softmax_theory/{n_keys}.csv",
    params:
        versions=versions("numpy", "scipy"),
    log:
        "results/logs/tabulate_softmax_theory/{n_keys}.log",
    conda:
        "../../environment.yml"
    message:
        "integrate the exact averages of softmax over {wildcards.n_keys} Gaussian logits"
    shell:
        "python {input.script[0]:q} --n-keys {wildcards.n_keys} --output {output.table:q} > {log:q} 2>&1"


rule collect_softmax:
    input:
        script=script("collect_softmax"),
        saturation=softmax_cells("saturation"),
        gradients=softmax_cells("gradients"),
        distribution=softmax_cells("distribution"),
        theory=expand("results/cells/softmax_theory/{n_keys}.csv", n_keys=CONFIG["n_keys"]),
    output:
        saturation=citable_table("softmax_saturation"),
        gradients=citable_table("gradient_magnitude"),
        distribution="results/gradient_distribution.csv",
    params:
        cells=as_json(SOFTMAX_WIDTHS),
        exact=lambda wildcards: as_json(EXACT_ROWS),
        columns=described("collect_softmax"),
        versions=versions("numpy", "scipy"),
    log:
        "results/logs/collect_softmax.log",
    conda:
        "../../environment.yml"
    message:
        "collect the softmax measures of all cells"
    shell:
        "python {input.script[0]:q} --folder results/cells/softmax --cells {params.cells:q}"
        " --exact {params.exact:q} --theory {input.theory:q} --saturation {output.saturation:q} --gradients {output.gradients:q}"
        " --distribution {output.distribution:q} > {log:q} 2>&1"
