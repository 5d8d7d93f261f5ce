# Needs: the tables of gradient norms and of their distribution, and the seed of the configuration.
# Makes: results/gradient_crossovers.csv, gradient_decomposition.csv, gradient_by_keys.csv and key_crossovers.csv.

# Where a row's logits are those of standard normal q and k, for which there is a formula of a crossover.
STANDARD_ROWS = [
    name
    for name, widths in SOFTMAX_WIDTHS.items()
    if all(query * key == 1 for d_k in widths for query, key, _ in ENSEMBLES[name].row_spectrum(d_k) or [(0, 0, 1)])
]


rule compare_gradients:
    input:
        script=script("compare_gradients"),
        magnitude="results/gradient_magnitude.csv",
        distribution="results/gradient_distribution.csv",
    output:
        crossings=citable_table("gradient_crossovers"),
        decomposition="results/gradient_decomposition.csv",
    params:
        standard=as_json(STANDARD_ROWS),
        columns=described("compare_gradients"),
        versions=versions("numpy", "scipy"),
    log:
        "results/logs/compare_gradients.log",
    conda:
        "../../environment.yml"
    message:
        "compare the gradients with and without the scale"
    shell:
        "python {input.script[0]:q} --magnitude {input.magnitude:q} --distribution {input.distribution:q}"
        " --standard {params.standard:q} --crossings {output.crossings:q} --decomposition {output.decomposition:q}"
        " > {log:q} 2>&1"


rule compare_gradients_by_keys:
    input:
        script=script("compare_gradients_by_keys"),
    output:
        ratios=citable_table("gradient_by_keys"),
        crossings="results/key_crossovers.csv",
    params:
        seed=CONFIG["seed"],
        columns=described("compare_gradients_by_keys"),
        versions=versions("numpy", "scipy"),
    log:
        "results/logs/compare_gradients_by_keys.log",
    conda:
        "../../environment.yml"
    message:
        "compare the gradients with and without the scale by the number of keys"
    shell:
        "python {input.script[0]:q} --seed {params.seed} --ratios {output.ratios:q} --crossings {output.crossings:q}"
        " > {log:q} 2>&1"
