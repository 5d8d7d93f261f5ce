# Needs: the dumps of the configuration. Makes: results/audit.csv, in one job, since a head takes milliseconds.


rule audit_heads:
    input:
        script=script("audit_heads"),
        dumps=[configuration.find_file(dump["file"], [Path("."), SOURCE]) for dump in CONFIG["dumps"].values()],
    output:
        audit=citable_table("audit"),
    params:
        dumps=as_json(described_dumps("scaling", "convention", "stage")),
        columns=described("audit_heads"),
        versions=versions("numpy", "scipy"),
    log:
        "results/logs/audit_heads.log",
    conda:
        "../../environment.yml"
    message:
        "audit every head of the dumps"
    shell:
        "python {input.script[0]:q} --dumps {params.dumps:q} --files {input.dumps:q} --output {output.audit:q}"
        " > {log:q} 2>&1"
