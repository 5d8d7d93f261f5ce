# Needs: the tables of gradient norms and of their distribution.
# Makes: results/gradient_crossovers.csv and results/gradient_decomposition.csv.


rule compare_gradients:
    input:
        script=script("compare_gradients"),
        magnitude="results/gradient_magnitude.csv",
        distribution="results/gradient_distribution.csv",
    output:
        crossings=citable_table("gradient_crossovers"),
        decomposition="results/gradient_decomposition.csv",
    params:
        columns=described("compare_gradients"),
        versions=versions("numpy", "scipy"),
    log:
        "results/logs/compare_gradients.log",
    benchmark:
        "results/benchmarks/compare_gradients.tsv"
    conda:
        "../../environment.yml"
    message:
        "compare the gradients with and without the scale"
    shell:
        "python {input.script[0]:q} --magnitude {input.magnitude:q} --distribution {input.distribution:q}"
        " --crossings {output.crossings:q} --decomposition {output.decomposition:q} > {log:q} 2>&1"
