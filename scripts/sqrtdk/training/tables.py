"""The columns of the tables on training, in their order."""

CELL = ("experiment", "task", "optimiser", "scaling", "d_k")
CURVES = (
    *CELL,
    *("learning_rate", "n_seeds", "loss", "loss_low", "loss_high", "floor", "guess", "accuracy", "progress"),
    *("n_diverged", "n_guessing", "logit_std"),
)
SUMMARY = (
    *CELL,
    *("n_seeds", "n_rates", "steps", "best_rate", "interior", "loss", "loss_low", "loss_high", "floor"),
    *("accuracy", "accuracy_low", "accuracy_high", "bar"),
    *("window", "window_low", "window_high", "rate_floor", "rate_ceiling", "open_below", "open_above"),
    *("target", "fastest_rate", "steps_to_target", "steps_low", "steps_high", "share_reached"),
    *("gradient", "gradient_low", "gradient_high", "logit_std", "alignment"),
    *("share_diverged", "share_guessing", "late_rise"),
)
VERDICTS = (
    *CELL,
    *("reference", "comparison", "unit", "rate", "reference_rate", "interior", "n_seeds"),
    *("value", "reference_value", "reached", "estimate", "low", "high", "margin", "verdict"),
)
TRANSFER = (
    *CELL[:4],
    *("d_k_low", "d_k_high", "n_seeds", "best_rate_low", "best_rate_high"),
    *("shift", "shift_low", "shift_high", "cost", "cost_low", "cost_high"),
)
START_RATE = (
    *("experiment", "task", "optimiser", "scaling", "d_k", "start", "rate", "trained_as", "n_seeds"),
    *("measure", "unit", "learning_rate", "interior", "estimate", "low", "high"),
    *("against_neither", "neither_low", "neither_high", "verdict_neither"),
    *("against_both", "both_low", "both_high", "verdict_both", "margin"),
)
GROWTH = (
    *CELL[:4],
    *("quantity", "d_k_low", "d_k_high", "n_widths", "n_seeds", "exponent", "low", "high", "predicted", "prediction"),
)
