# Needs: tables of exact averages, the scale rules and the seed of the configuration.
# Makes: the maps of where attention freezes, and one block's attention matrices.

PHASE_N_KEYS = [2, *(4**power for power in range(1, 11))]


rule map_phases:
    input:
        script=script("map_phases"),
        theory=expand("results/cells/softmax_theory/{n_keys}.csv", n_keys=PHASE_N_KEYS),
    output:
        phase_map="results/phase_map.csv",
        frontier="results/freezing_frontier.csv",
        entropy_scale="results/entropy_scale.csv",
    params:
        scalings=as_json(CONSTANT_SCALINGS),
        columns=described("map_phases"),
        versions=versions("numpy", "scipy"),
    log:
        "results/logs/map_phases.log",
    conda:
        "../../environment.yml"
    message:
        "map where attention freezes over width and number of keys"
    shell:
        "python {input.script[0]:q} --theory {input.theory:q} --scalings {params.scalings:q}"
        " --phase-map {output.phase_map:q} --frontier {output.frontier:q} --entropy-scale {output.entropy_scale:q}"
        " > {log:q} 2>&1"


rule sample_attention_maps:
    input:
        script=script("sample_attention_maps"),
    output:
        maps="results/attention_maps.csv",
    params:
        seed=CONFIG["seed"],
        columns=described("sample_attention_maps"),
        versions=versions("numpy"),
    log:
        "results/logs/sample_attention_maps.log",
    conda:
        "../../environment.yml"
    message:
        "draw one block's attention matrices for heads of several widths"
    shell:
        "python {input.script[0]:q} --seed {params.seed} --output {output.maps:q} > {log:q} 2>&1"
