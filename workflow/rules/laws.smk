# Needs: results/moments.csv.
# Makes: results/variance_laws.csv, results/mean_laws.csv, results/spread_laws.csv, results/local_exponents.csv.


rule fit_variance_laws:
    input:
        script=script("fit_variance_laws"),
        moments="results/moments.csv",
    output:
        variance_laws=citable_table("variance_laws"),
        mean_laws="results/mean_laws.csv",
        spread_laws="results/spread_laws.csv",
        local_exponents="results/local_exponents.csv",
    params:
        tail_d_k=CONFIG["tail_d_k"],
        columns=described("fit_variance_laws"),
        versions=versions("numpy", "scipy", "pandas"),
    log:
        "results/logs/fit_variance_laws.log",
    conda:
        "../../environment.yml"
    message:
        "fit the laws of variance, mean and quartiles against d_k"
    shell:
        "python {input.script[0]:q} --moments {input.moments:q} --tail-d-k {params.tail_d_k}"
        " --variance-laws {output.variance_laws:q} --mean-laws {output.mean_laws:q}"
        " --spread-laws {output.spread_laws:q} --local-exponents {output.local_exponents:q} > {log:q} 2>&1"
