# Needs: the numbers of keys and the standard deviations of the logits in the configuration, and exact averages.
# Makes: softmax over independent Gaussian logits, simulated, exact and asymptotic, and where the asymptotic laws hold.


rule simulate_random_energy:
    input:
        script=script("simulate_random_energy"),
    output:
        table="results/cells/random_energy/{n_keys}.csv",
    params:
        logit_std=as_json(CONFIG["logit_std"]),
        seed=CONFIG["seed"],
        n_draws=CONFIG["logit_draws"],
        versions=versions("numpy", "scipy"),
    log:
        "results/logs/simulate_random_energy/{n_keys}.log",
    conda:
        "../../environment.yml"
    message:
        "simulate softmax over {wildcards.n_keys} Gaussian logits"
    shell:
        "python {input.script[0]:q} --n-keys {wildcards.n_keys} --logit-std {params.logit_std:q} --seed {params.seed}"
        " --n-draws {params.n_draws} --output {output.table:q} > {log:q} 2>&1"


rule collect_random_energy:
    input:
        script=script("collect_random_energy"),
        cells=expand("results/cells/random_energy/{n_keys}.csv", n_keys=CONFIG["logit_n_keys"]),
        theory=expand("results/cells/softmax_theory/{n_keys}.csv", n_keys=CONFIG["logit_n_keys"]),
    output:
        energy="results/random_energy.csv",
        curves="results/random_energy_curves.csv",
        ranges="results/asymptotic_ranges.csv",
    params:
        columns=described("collect_random_energy"),
        versions=versions("numpy", "scipy"),
    log:
        "results/logs/collect_random_energy.log",
    conda:
        "../../environment.yml"
    message:
        "set simulated softmax over Gaussian logits beside exact and asymptotic values"
    shell:
        "python {input.script[0]:q} --cells {input.cells:q} --theory {input.theory:q} --energy {output.energy:q}"
        " --curves {output.curves:q} --ranges {output.ranges:q} > {log:q} 2>&1"
