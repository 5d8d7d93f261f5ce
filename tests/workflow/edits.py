"""What an edit of the small configuration starts again: the jobs of each stage and of each key."""

from pipeline import ENSEMBLES, ROOT, WIDTHS

CELLS = len(ENSEMBLES) * len(WIDTHS)
REPORT = {"render_report": 1}
WORDED = {"write_provenance": 1, "write_latex": 1, **REPORT}
RECORD = {"publish_figures": 1, **WORDED}
N_FIGURES = len([path for path in (ROOT / "scripts/sqrtdk/figures").glob("*.py") if "\nPLACE = " in path.read_text()])
FIGURES = {"draw_figure": N_FIGURES, **RECORD}
DICTIONARY, DESCRIBED = "scripts/sqrtdk/results/dictionary", {"describe_results": 1, **WORDED}


# Of each stage the jobs that the small configuration has, and the tables that figures are drawn from.
LAWS = ("variance_laws", "mean_laws", "spread_laws", "local_exponents")
STAGES = {
    "moments": ({"simulate_moments": len(ENSEMBLES)}, ("moments", "score_histograms")),
    "heads": ({"describe_heads": 1}, ("real_heads",)),
    "collected": ({"collect_moments": 1}, ("moments", "score_histograms", "real_heads")),
    "laws": ({"fit_variance_laws": 1}, LAWS),
    "softmax": (
        {"simulate_softmax": CELLS, "collect_softmax": 1, "compare_gradients": 1},
        (
            *("softmax_saturation", "gradient_magnitude", "gradient_distribution"),
            *("gradient_crossovers", "gradient_decomposition"),
        ),
    ),
    "keys": ({"compare_gradients_by_keys": 1}, ("gradient_by_keys",)),
    "energy": (
        {"simulate_random_energy": 2, "collect_random_energy": 1},
        ("random_energy", "random_energy_curves", "asymptotic_ranges"),
    ),
    "phases": ({"map_phases": 1}, ("phase_map",)),
    "maps": ({"sample_attention_maps": 1, "sample_one_query": 1}, ("attention_maps", "one_query")),
    "planted": ({"simulate_planted_key": 1}, ("planted_key",)),
    "typical": ({"sample_typical_rows": 1}, ("typical_rows",)),
    "examples": ({"simulate_worked_example": 1, "count_tiny_gradients": 1}, ()),
    "alternatives": ({"simulate_alternatives": 2, "collect_alternatives": 1}, ("alternatives",)),
    "normalisers": ({"simulate_normalisers": 1}, ()),
    "layers": ({"simulate_initialisation": 1, "simulate_depth": 1}, ("initialisation", "depth")),
    "rounding": ({"simulate_rounding": 1}, ("rounding",)),
    "audit": ({"audit_heads": 1}, ()),
    "checks": ({"check_claims": 1}, ()),
    # Two widths, three rules.
    "training": (
        {"train_models": 6, "collect_training": 1, "summarise_training": 1},
        ("training", "training_curves"),
    ),
}
MOMENTS = ("moments", "collected", "laws")
UNCLAIMED = {"energy", "phases", "maps"}
"""Stages whose tables no claim reads."""
LATER = [stage for stage in STAGES if stage not in ("moments", "heads", "collected", "laws", "phases", "audit")]


def starts(*stages, **numbers):
    """Return the jobs of some stages, with the figures drawn from their tables and what follows; `numbers` differ."""
    from sqrtdk.figures import catalogue

    jobs = {rule: number for stage in stages for rule, number in STAGES[stage][0].items()}
    tables = {table for stage in stages for table in STAGES[stage][1]}
    n_figures = sum(bool(set(catalogue.load(name).INPUTS) & tables) for name in catalogue.names())
    jobs |= {**FIGURES, "draw_figure": n_figures} if n_figures else RECORD
    jobs |= {} if set(stages) <= UNCLAIMED else {"decide_claims": 1}
    return {rule: number for rule, number in (jobs | numbers).items() if number}


EDITS = {
    "title=Another": REPORT,
    "seed=7": starts(*MOMENTS, *LATER),
    "precision=0.04": starts(*MOMENTS),
    "max_scalars=2e5": starts(*MOMENTS),
    "softmax_logits=3000": starts("softmax", "normalisers", "rounding"),
    "weight_draws=12": starts("layers"),
    "n_keys=[4,16,32]": starts("softmax", "typical", tabulate_softmax_theory=1),
    "scalings=[none]": starts("softmax", "typical", "planted", "phases"),
    "alternatives=[]": starts("alternatives"),
    "alternatives_d_k=[4,16,32]": starts("alternatives", simulate_alternatives=1),
    "alternatives_n_keys=[4]": starts("alternatives"),
    "planted_cosine=[0.7]": starts("planted"),
    "example_rows=3000": starts("planted", "typical", "examples"),
    "logit_std=[0.5,4,8]": starts("energy"),
    "logit_draws=3e4": starts("energy"),
    "logit_n_keys=[4,16,64]": starts("energy", simulate_random_energy=1),
    "tail_d_k=4": starts("laws"),
    "d_k=[1,2,4,8,64]": starts(*MOMENTS, "softmax", "typical", "rounding", simulate_softmax=len(ENSEMBLES)),
    "d_k=[1,2,64]": starts(*MOMENTS, "softmax", "typical", "rounding", simulate_softmax=0),
    "ensembles={mine: {family: logistic}}": starts(
        *MOMENTS, "softmax", simulate_moments=1, simulate_softmax=len(WIDTHS)
    ),
    "ensembles={aligned: {rho: 0.6}}": starts(*MOMENTS, "softmax", simulate_moments=1, simulate_softmax=len(WIDTHS)),
    "dumps={minilm_l6: {scaling: none}}": starts("heads", "collected", "laws", "audit", "checks"),
    "dumps={minilm_l6: {convention: learned}}": starts("audit"),
    "dumps={minilm_l6: {stage: init}}": starts("audit"),
    "training={recall: {d_k: 8, rates: [0.01]}}": starts("training", train_models=3),
    "language=zh": {"draw_figure": N_FIGURES, "publish_figures": 1, "write_latex": 1, **REPORT},
    "figure_target=slides": FIGURES,
}
