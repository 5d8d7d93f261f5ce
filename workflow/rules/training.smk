# Needs: the training experiments of the configuration.
# Makes: results/training.csv and results/training_start.csv, from one job for each experiment, rule and width, and
# results/training_curves.csv, training_summary.csv, training_verdicts.csv, training_transfer.csv, training_growth.csv and
# start_rate.csv.

rule train_models:
    input:
        script=script("train_models"),
        text=str(SOURCE / "resources/genesis.txt"),
    output:
        log="results/cells/training/{experiment}/{rule}/{d_k}.log.csv",
        start="results/cells/training/{experiment}/{rule}/{d_k}.start.csv",
    params:
        scaling=scaling_of,
        settings=training_settings,
        seed=CONFIG["seed"],
        versions=versions("numpy"),
    log:
        "results/logs/train_models/{experiment}/{rule}/{d_k}.log",
    conda:
        "../../environment.yml"
    message:
        "train the models of {wildcards.experiment} with the rule {params.scaling} at d_k = {wildcards.d_k}"
    shell:
        "python {input.script[0]:q} --scaling {params.scaling:q} --d-k {wildcards.d_k} --settings {params.settings:q}"
        " --seed {params.seed} --output {output.log:q} --start {output.start:q} > {log:q} 2>&1"


rule collect_training:
    input:
        script=script("collect_training"),
        logs=training_cells("log"),
        starts=training_cells("start"),
    output:
        training="results/training.csv",
        start="results/training_start.csv",
    params:
        columns=described("collect_training"),
        trained=as_json(TRAINED),
    log:
        "results/logs/collect_training.log",
    conda:
        "../../environment.yml"
    message:
        "collect the training runs"
    shell:
        "python {input.script[0]:q} --folder results/cells/training --trained {params.trained:q}"
        " --training {output.training:q} --start {output.start:q} > {log:q} 2>&1"


rule summarise_training:
    input:
        script=script("summarise_training"),
        text=str(SOURCE / "resources/genesis.txt"),
        training="results/training.csv",
    output:
        curves="results/training_curves.csv",
        summary="results/training_summary.csv",
        verdicts=citable_table("training_verdicts"),
        transfer="results/training_transfer.csv",
        growth="results/training_growth.csv",
        start_rate=citable_table("start_rate"),
    params:
        seed=CONFIG["seed"],
        columns=described("summarise_training"),
        versions=versions("numpy", "scipy", "pandas"),
    log:
        "results/logs/summarise_training.log",
    conda:
        "../../environment.yml"
    message:
        "summarise the training runs"
    shell:
        "python {input.script[0]:q} --training {input.training:q} --seed {params.seed} --curves {output.curves:q}"
        " --summary {output.summary:q} --verdicts {output.verdicts:q} --transfer {output.transfer:q}"
        " --growth {output.growth:q} --start-rate {output.start_rate:q} > {log:q} 2>&1"
