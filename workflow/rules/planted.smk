# Needs: the scale rules, the cosines of the planted key and the seed of the configuration.
# Makes: results/planted_key.csv, planted_capacity.csv and planted_gradient.csv.


rule simulate_planted_key:
    input:
        script=script("simulate_planted_key"),
    output:
        weights="results/planted_key.csv",
        capacity="results/planted_capacity.csv",
        gradient="results/planted_gradient.csv",
    params:
        cosines=as_json(CONFIG["planted_cosine"]),
        scalings=as_json(CONSTANT_SCALINGS),
        n_others=CONFIG["example_rows"],
        seed=CONFIG["seed"],
        columns=described("simulate_planted_key"),
        versions=versions("numpy", "scipy"),
    log:
        "results/logs/simulate_planted_key.log",
    conda:
        "../../environment.yml"
    message:
        "measure the weight of one key that is aligned with the query, and the gradient that would find it"
    shell:
        "python {input.script[0]:q} --cosines {params.cosines:q} --scalings {params.scalings:q}"
        " --n-others {params.n_others} --seed {params.seed} --weights {output.weights:q} --capacity {output.capacity:q}"
        " --gradient {output.gradient:q} > {log:q} 2>&1"
