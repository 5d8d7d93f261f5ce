# Needs: results/moments.csv. Makes: results/variance_laws.csv and results/mean_laws.csv.


rule fit_variance_laws:
    input:
        script=script("fit_variance_laws"),
        moments="results/moments.csv",
    output:
        variance_laws="results/variance_laws.csv",
        mean_laws="results/mean_laws.csv",
    params:
        tail_d_k=CONFIG["tail_d_k"],
        versions=versions("numpy", "scipy", "pandas"),
    log:
        "results/logs/fit_variance_laws.log",
    benchmark:
        "results/benchmarks/fit_variance_laws.tsv"
    conda:
        "../../environment.yml"
    message:
        "fit the laws of the variance and of the mean against d_k"
    shell:
        "python {input.script[0]:q} --moments {input.moments:q} --tail-d-k {params.tail_d_k}"
        " --variance-laws {output.variance_laws:q} --mean-laws {output.mean_laws:q} > {log:q} 2>&1"
