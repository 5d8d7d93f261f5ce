"""Tables on the models that are trained from scratch."""

from sqrtdk.results.columns import number, table, text, truth, whole
from sqrtdk.results.dictionary.common import D_K, SCALING

_EXPERIMENT = dict(
    experiment=text("name in the configuration"),
    task=text("what was learned"),
    optimiser=text("how the weights were moved"),
    scaling=SCALING,
)
FILES = {
    "training.csv": table(
        """
        What was logged of every training run, on held-out data, rounded to 6 digits. Scores are q·k, logits what
        enters softmax; all layers and heads count. A run whose loss is not finite has diverged; its rows stay, and
        are empty.
        """,
        **_EXPERIMENT,
        d_k=D_K,
        learning_rate=number("learning rate"),
        seed=whole("number of the run; runs of one number share data and, at one width, initial weights"),
        step=whole("batches seen so far"),
        loss=number("cross-entropy in nats"),
        accuracy=number("share of right answers"),
        grad_norm_qk=number("norm of the gradient with respect to W_q and W_k"),
        grad_norm_q=number("norm of the gradient with respect to W_q"),
        grad_norm_k=number("norm of the gradient with respect to W_k"),
        grad_norm_v=number("norm of the gradient with respect to W_v"),
        grad_norm_output=number("norm of the gradient with respect to the outputs of attention"),
        score_mean=number("mean of q·k"),
        score_min=number("smallest q·k"),
        score_max=number("largest q·k"),
        logit_std=number("root of the mean variance of the logits within a row"),
        largest_logit=number("largest absolute value of a logit"),
        alignment=number(
            "mean cosine of a query with the key that it has to find, in the last layer; empty where there is none"
        ),
        entropy=number("mean entropy of the attention rows, in nats"),
        max_weight=number("mean largest weight of the attention rows"),
        max_weight_p10=number("its lowest decile over rows"),
        max_weight_p90=number("its highest decile over rows"),
        saturated_share=number("share of rows with a weight above 0.99"),
        diverged=truth("whether the run has diverged"),
    ),
    "training_start.csv": table(
        """
        The size of queries, keys and logits before the first step, beside the prediction from the tokens of the
        layer.
        """,
        **_EXPERIMENT,
        d_k=D_K,
        layer=whole("layer, from 0"),
        quantity=text("mean square of the components of queries or keys, or variance of the logits within a row"),
        estimate=number("mean over seeds"),
        se=number("its standard error, from between the seeds"),
        prediction=number("what weights of variance 1/d_model make of the tokens that come into the layer"),
    ),
    "training_curves.csv": table(
        """
        Final loss against learning rate. A run that diverged, or ends worse than answers by frequency alone
        (`guess`), counts as guessing. Means and intervals of the loss are geometric, by Student's t over seeds.
        """,
        **_EXPERIMENT,
        d_k=D_K,
        learning_rate=number("learning rate"),
        n_seeds=whole("runs"),
        loss=number("geometric mean of the final losses, in nats"),
        loss_low=number("lower end of its 95 % interval"),
        loss_high=number("upper end of its 95 % interval"),
        floor=number("loss of the best answers that there are, in nats, where it is known"),
        guess=number("loss of answers by frequency alone"),
        accuracy=number("mean share of right answers"),
        progress=number("mean of 1 − loss/guess"),
        n_diverged=whole("runs that diverged"),
        n_guessing=whole("runs that ended no better than guessing, diverged ones included"),
        logit_std=number("median of the runs' final spread of the logits within a row"),
    ),
    "training_summary.csv": table(
        """
        Each rule at each width, at its best learning rate: for each half of the seeds the one with the lowest mean
        loss (or the fewest steps) of the other half, so that no run is chosen by its own luck. A rate is usable
        where the mean progress is at least 0.9 of the best of the experiment; between rates it is interpolated.
        Intervals are by Student's t over seeds (with the degrees of freedom of one half), geometric for steps and
        gradient; those of the window are a bootstrap of the seeds in which an end may lie anywhere between the last
        usable and the first unusable rate tried.
        """,
        **_EXPERIMENT,
        d_k=D_K,
        n_seeds=whole("runs at each rate"),
        n_rates=whole("learning rates"),
        steps=whole("batches of each run"),
        best_rate=number("learning rate with the lowest mean loss of all seeds"),
        interior=truth("whether no best rate of the seeds is the first or the last one tried"),
        loss=number("mean of the final losses there, in nats"),
        loss_low=number("lower end of its 95 % interval"),
        loss_high=number("upper end of its 95 % interval"),
        floor=number("loss of the best answers that there are, in nats, where it is known"),
        accuracy=number("mean share of right answers there"),
        accuracy_low=number("lower end of its 95 % interval"),
        accuracy_high=number("upper end of its 95 % interval"),
        bar=number("progress from which on a rate is usable"),
        window=number("width of the window of usable rates, in decades; 0 where none is"),
        window_low=number("lower end of its 95 % interval over seeds and gaps between rates"),
        window_high=number("upper end of its 95 % interval; inf where the window may go on beyond the rates tried"),
        rate_floor=number("smallest usable rate"),
        rate_ceiling=number("largest usable rate"),
        open_below=truth("whether the smallest rate tried was usable, so that the window may be wider"),
        open_above=truth("whether the largest rate tried was usable"),
        target=number("loss at which the task counts as learned, in nats, the same for all rules and widths"),
        fastest_rate=number("learning rate with the fewest steps to the target, a mean of all seeds"),
        steps_to_target=number(
            "geometric mean of the steps at which the loss passes the target, at the fastest rate, if every seed did"
        ),
        steps_low=number("lower end of its 95 % interval"),
        steps_high=number("upper end of its 95 % interval"),
        share_reached=number("share of the seeds that reached the target there"),
        gradient=number("geometric mean of the norm of the gradient with respect to W_q and W_k before the first step"),
        gradient_low=number("lower end of its 95 % interval"),
        gradient_high=number("upper end of its 95 % interval"),
        logit_std=number("mean of the final spread of the logits within a row, at the best rate"),
        alignment=number(
            "mean final cosine of a query with the key that it has to find, in the last layer, at the best rate"
        ),
        share_diverged=number("share of all runs, at all rates, that diverged"),
        share_guessing=number("share of all runs that ended no better than guessing"),
        late_rise=number("final loss over the lowest that was logged, at the best rate; 1 where it never rose again"),
    ),
    "training_verdicts.csv": table(
        """
        Each rule against 1/√d_k, each at the rate that is best for it, which each half of the seeds chooses for the
        other, with Student's t of the degrees of freedom of one half. `hurts` and `helps` where the whole 95 %
        interval is beyond the margin, `no difference` where it is within, else `undecided`, as where a best rate is
        the first or the last one tried. The interval of a window covers seeds and gaps between rates, and has no
        end (inf) where a window may go on beyond the rates tried.
        """,
        **_EXPERIMENT,
        d_k=D_K,
        reference=text("the rule it is held against"),
        comparison=text(
            "`loss`: final loss; `accuracy`: share of right answers; `speed`: steps to the target; `same_rate`: "
            "loss, both at the reference's best rate; `window`: width of the window of usable rates"
        ),
        unit=text("of the estimate: `nats`, `share` and `decades` are differences, `ratio` is one"),
        rate=number("rate of the rule that all seeds choose"),
        reference_rate=number("rate of the reference that all seeds choose"),
        interior=truth("whether no rate of either that a seed is given is the first or the last one tried"),
        n_seeds=whole("pairs of runs"),
        value=number("mean of the rule over seeds, of steps the geometric one; empty for windows"),
        reference_value=number("that of the reference"),
        reached=number("share of the rule's runs that reach the target, for `speed`"),
        estimate=number(
            "the rule minus the reference, or over it, paired by seed; for `window` the reference's decades "
            "minus the rule's"
        ),
        low=number("lower end of the 95 % interval"),
        high=number("upper end of the 95 % interval"),
        margin=number("difference, or ratio, that counts"),
        verdict=text("what the interval says"),
    ),
    "start_rate.csv": table(
        """
        What does the repair. A factor 1/√d_k in front of q·k is a start of W_q and W_k times d_k^(−1/4) together
        with a rate for them times d_k^(−1/4) (Adam, whose epsilon is divided by as much) or d_k^(−1/2) (gradient
        descent, momentum). The four combinations around no scale and around 1/√d_k, each at its own best rate,
        which each half of the seeds chooses for the other; both halves together are the next rule, bit for bit at
        widths of which d_k^(−1/4) is a power of two.
        """,
        experiment=_EXPERIMENT["experiment"],
        task=_EXPERIMENT["task"],
        optimiser=_EXPERIMENT["optimiser"],
        scaling=text("the rule around which halves are added"),
        d_k=D_K,
        start=truth("whether W_q and W_k start d_k^(−1/4) times as large"),
        rate=truth("whether they have the smaller rate"),
        trained_as=text("the rule under whose name it was trained"),
        n_seeds=whole("runs at each rate"),
        measure=text(
            "`loss` (nats, the floor of these tasks is 0), `accuracy` (share of right answers) or `speed` "
            "(steps to the target)"
        ),
        unit=text("of the estimate"),
        learning_rate=number("best rate of all seeds"),
        interior=truth("whether no rate that a seed is given is the first or the last one tried"),
        estimate=number("mean over seeds, of steps the geometric one"),
        low=number("lower end of its 95 % interval"),
        high=number("upper end of its 95 % interval"),
        against_neither=number("this minus neither half, or steps over those of neither, paired by seed"),
        neither_low=number("lower end of its 95 % interval"),
        neither_high=number("upper end of its 95 % interval"),
        verdict_neither=text("what the interval says at the margin"),
        against_both=number("this minus both halves, or steps over those of both, paired by seed"),
        both_low=number("lower end of its 95 % interval"),
        both_high=number("upper end of its 95 % interval"),
        verdict_both=text("what the interval says at the margin"),
        margin=number("difference, or ratio, that counts"),
    ),
    "training_growth.csv": table(
        """
        How the logits and the largest usable rate grow with the width of a head, as exponents of d_k, beside
        predictions. Intervals are by Student's t over the seeds' own slopes; those of rates a bootstrap of the
        seeds, widened by the gaps between the tried rates. An exponent is empty where a rate is not bounded by
        those tried.
        """,
        **_EXPERIMENT,
        quantity=text(
            "`spread_start`, `spread_end`: standard deviation of the logits within a row before the first step, "
            "and after the last at the best rate; `largest_rate`: largest usable rate; "
            "`rate_against_reference`: its ratio to that of 1/√d_k"
        ),
        d_k_low=whole("narrowest head"),
        d_k_high=whole("widest head"),
        n_widths=whole("widths that the exponent rests on"),
        n_seeds=whole("runs at each rate"),
        exponent=number("of d_k"),
        low=number("lower end of its 95 % interval"),
        high=number("upper end of its 95 % interval"),
        predicted=number("exponent predicted"),
        prediction=text(
            "by what: `independent` queries and keys (√d_k), queries and keys that training has `aligned` "
            "(d_k), or the `same training` with other rates (a scale c is a rate times c, for Adam √c)"
        ),
    ),
    "training_transfer.csv": table(
        "Whether a learning rate that suits the narrowest head suits the widest too.",
        **_EXPERIMENT,
        d_k_low=whole("narrowest head"),
        d_k_high=whole("widest head"),
        n_seeds=whole("runs at each rate"),
        best_rate_low=number("best rate of the narrowest head"),
        best_rate_high=number("best rate of the widest head"),
        shift=number("decimal logarithm of the ratio of their largest usable rates, where both were found"),
        shift_low=number("lower end of its 95 % interval over seeds and gaps between rates; -inf where it has none"),
        shift_high=number("upper end of its 95 % interval; inf where it has none"),
        cost=number("loss of the widest head at the narrowest's best rate over that at its own"),
        cost_low=number("lower end of its 95 % interval"),
        cost_high=number("upper end of its 95 % interval"),
    ),
}
