# Needs: the effort and the seed of the configuration. Makes: results/worked_example.csv and results/tiny_gradients.csv.


rule simulate_worked_example:
    input:
        script=script("simulate_worked_example"),
    output:
        table="results/worked_example.csv",
    params:
        n_rows=CONFIG["example_rows"],
        seed=CONFIG["seed"],
        versions=versions("numpy", "scipy"),
    log:
        "results/logs/simulate_worked_example.log",
    benchmark:
        "results/benchmarks/simulate_worked_example.tsv"
    conda:
        "../../environment.yml"
    message:
        "measure the example of three logits and rows like it"
    shell:
        "python {input.script[0]:q} --n-rows {params.n_rows} --seed {params.seed} --output {output.table:q}"
        " > {log:q} 2>&1"


rule count_tiny_gradients:
    input:
        script=script("count_tiny_gradients"),
    output:
        table="results/tiny_gradients.csv",
    params:
        n_rows=CONFIG["example_rows"],
        seed=CONFIG["seed"],
        versions=versions("numpy", "scipy"),
    log:
        "results/logs/count_tiny_gradients.log",
    benchmark:
        "results/benchmarks/count_tiny_gradients.tsv"
    conda:
        "../../environment.yml"
    message:
        "count softmax gradients below 1e-10"
    shell:
        "python {input.script[0]:q} --n-rows {params.n_rows} --seed {params.seed} --output {output.table:q}"
        " > {log:q} 2>&1"
