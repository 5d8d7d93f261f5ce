# Needs: the tables in results/ and those of the longer training that ships with the project.
# Makes: results/claim_checks.csv, what only claims measure, and results/claims.csv, the verdict on each claim.

CLAIM_TABLES = [f"results/{name}.csv" for name in claims.tables()]


rule check_claims:
    input:
        script=script("check_claims"),
        dumps=[configuration.find_file(dump["file"], [Path("."), SOURCE]) for dump in CONFIG["dumps"].values()],
    output:
        checks="results/claim_checks.csv",
    params:
        dumps=as_json(described_dumps("scaling", "model")),
        seed=CONFIG["seed"],
        columns=described("check_claims"),
        versions=versions("numpy", "scipy"),
    log:
        "results/logs/check_claims.log",
    conda:
        "../../environment.yml"
    message:
        "measure what claims say and no other table holds"
    shell:
        "python {input.script[0]:q} --seed {params.seed} --dumps {params.dumps:q} --files {input.dumps:q}"
        " --output {output.checks:q} > {log:q} 2>&1"


rule decide_claims:
    input:
        script=script("decide_claims"),
        text=str(SOURCE / "resources/genesis.txt"),
        tables=CLAIM_TABLES,
        shipped_training=SHIPPED_TRAINING,
    output:
        claims="results/claims.csv",
    params:
        ensembles=lambda wildcards: as_json(
            {name: configuration.specification(entry) for name, entry in CONFIG["ensembles"].items()}
        ),
        columns=described("decide_claims"),
        versions=versions("scipy", "pandas"),
    log:
        "results/logs/decide_claims.log",
    conda:
        "../../environment.yml"
    message:
        "decide the claims of two widely read articles"
    shell:
        "python {input.script[0]:q} --results {input.tables:q} --shipped-training {input.shipped_training:q}"
        " --ensembles {params.ensembles:q} --output {output.claims:q} > {log:q} 2>&1"
