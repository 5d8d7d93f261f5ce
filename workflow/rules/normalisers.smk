# Needs: seed and number of logits of the configuration.
# Makes: results/normalisers.csv and results/linear_attention.csv.


rule simulate_normalisers:
    input:
        script=script("simulate_normalisers"),
    output:
        normalisers="results/normalisers.csv",
        linear_attention="results/linear_attention.csv",
    params:
        seed=CONFIG["seed"],
        n_logits=CONFIG["softmax_logits"],
        columns=described("simulate_normalisers"),
        versions=versions("numpy", "scipy"),
    log:
        "results/logs/simulate_normalisers.log",
    conda:
        "../../environment.yml"
    message:
        "measure normalisers other than softmax"
    shell:
        "python {input.script[0]:q} --seed {params.seed} --n-logits {params.n_logits}"
        " --normalisers {output.normalisers:q} --linear-attention {output.linear_attention:q} > {log:q} 2>&1"
