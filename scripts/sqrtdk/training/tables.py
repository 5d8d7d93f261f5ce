"""The columns of the tables on training, in their order."""

CELL = ("experiment", "task", "optimiser", "scaling", "d_k")
CURVES = (
    *CELL,
    *("learning_rate", "n_seeds", "loss", "loss_low", "loss_high", "guess", "accuracy", "progress"),
    *("n_diverged", "n_guessing", "logit_std"),
)
SUMMARY = (
    *CELL,
    *("n_seeds", "n_rates", "steps", "best_rate", "loss", "loss_low", "loss_high", "accuracy", "bar"),
    *("window", "window_low", "window_high", "rate_floor", "rate_ceiling", "open_below", "open_above"),
    *("steps_to_target", "steps_low", "steps_high", "share_reached"),
    *("gradient", "gradient_low", "gradient_high", "share_diverged", "share_guessing", "late_rise"),
)
VERDICTS = (
    *CELL,
    *("reference", "comparison", "rate", "reference_rate", "n_seeds"),
    *("estimate", "low", "high", "margin", "verdict"),
)
TRANSFER = (
    *CELL[:4],
    *("d_k_low", "d_k_high", "n_seeds", "best_rate_low", "best_rate_high"),
    *("shift", "shift_low", "shift_high", "cost", "cost_low", "cost_high"),
)
