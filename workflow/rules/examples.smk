# Needs: the effort, the seed and the grid of the configuration.
# Makes: results/typical_rows.csv, results/one_query.csv, results/worked_example.csv and results/tiny_gradients.csv.


rule sample_typical_rows:
    input:
        script=script("sample_typical_rows"),
    output:
        table="results/typical_rows.csv",
    params:
        d_k=as_json(CONFIG["d_k"]),
        n_keys=as_json(CONFIG["n_keys"]),
        scalings=as_json(CONSTANT_SCALINGS),
        n_logits=CONFIG["example_rows"],
        seed=CONFIG["seed"],
        columns=described("sample_typical_rows"),
        versions=versions("numpy"),
    log:
        "results/logs/sample_typical_rows.log",
    conda:
        "../../environment.yml"
    message:
        "draw typical rows of attention and sort their weights"
    shell:
        "python {input.script[0]:q} --d-k {params.d_k:q} --n-keys {params.n_keys:q} --scalings {params.scalings:q}"
        " --n-logits {params.n_logits} --seed {params.seed} --output {output.table:q} > {log:q} 2>&1"


rule sample_one_query:
    input:
        script=script("sample_one_query"),
    output:
        table="results/one_query.csv",
    params:
        seed=CONFIG["seed"],
        columns=described("sample_one_query"),
        versions=versions("numpy", "scipy"),
    log:
        "results/logs/sample_one_query.log",
    conda:
        "../../environment.yml"
    message:
        "weigh the keys of one query in heads of several widths"
    shell:
        "python {input.script[0]:q} --seed {params.seed} --output {output.table:q} > {log:q} 2>&1"


rule simulate_worked_example:
    input:
        script=script("simulate_worked_example"),
    output:
        table="results/worked_example.csv",
    params:
        n_rows=CONFIG["example_rows"],
        seed=CONFIG["seed"],
        columns=described("simulate_worked_example"),
        versions=versions("numpy", "scipy"),
    log:
        "results/logs/simulate_worked_example.log",
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
        columns=described("count_tiny_gradients"),
        versions=versions("numpy", "scipy"),
    log:
        "results/logs/count_tiny_gradients.log",
    conda:
        "../../environment.yml"
    message:
        "count softmax gradients below 1e-10"
    shell:
        "python {input.script[0]:q} --n-rows {params.n_rows} --seed {params.seed} --output {output.table:q}"
        " > {log:q} 2>&1"
