"""Tables on single examples and maps: a planted key, the worked example, phases, typical rows."""

from sqrtdk.results.columns import number, table, text, whole
from sqrtdk.results.dictionary.common import BLOCK_SE, D_K, N_BLOCKS, N_KEYS, N_ROWS, SCALING, THEORY

FILES = {
    "planted_key.csv": table(
        """
        One key k* = ρ q + √(1 − ρ²) g among n_keys − 1 other keys, all standard normal. The exact values reach
        further than the simulation; where nothing was simulated the estimate is empty.
        """,
        d_k=D_K,
        rho=number("correlation ρ of the components of k* with those of the query"),
        n_keys=whole("keys in a row, k* included"),
        scaling=text("scale rule; empty for `retrieved`, which no scale changes"),
        measure=text(
            "`weight`, the mean softmax weight of k*, or `retrieved`, the share of rows in which it is the largest"
        ),
        estimate=number("mean over rows"),
        se=BLOCK_SE,
        n_rows=whole("rows measured, 0 where nothing was simulated"),
        n_blocks=N_BLOCKS,
        theory=number("exact value"),
        approximation=number(
            "1/(1 + exp(ln Z − c ρ d_k)) with ln Z = ln n + c² d_k/2, or c √(2 d_k ln n) where that many keys no "
            "longer share the weight; empty for `retrieved`"
        ),
    ),
    "planted_capacity.csv": table(
        "Number of keys at which the exact mean of planted_key.csv is one half.",
        d_k=D_K,
        rho=number("correlation ρ of the components of k* with those of the query"),
        scaling=text("scale rule; empty for `retrieved`"),
        measure=text("`weight` or `retrieved`"),
        capacity=number("number of keys, not rounded; empty where it depends on a factor that depends on it"),
        formula=number(
            "where the approximation is one half: exp(d_k (c ρ − c²/2)), with ρ in place of c where c > ρ; empty "
            "for `retrieved`"
        ),
    ),
    "planted_gradient.csv": table(
        """
        The gradient by W_q of the loss −ln p* of finding a planted key, by exact integration: its expectation, by how
        much one row misses it, and how many rows a batch needs. A token x ~ N(0, I) of 8 d_k components gives the query
        and, with another projection t = T x, the key k* = ρ q + √(1 − ρ²) t.
        """,
        d_k=D_K,
        rho=number("cosine of the query with the key to be found, on average; 0 where nothing is learned yet"),
        n_keys=N_KEYS,
        scaling=SCALING,
        signal=number("Frobenius norm of the expected gradient"),
        noise=number("root of the sum over its entries of the variance of one row's gradient"),
        rows=number("rows whose mean gradient has a cosine of 1/√2 with the expected one: noise² over signal²"),
        ratio=number("rows over those needed with 1/√d_k"),
        missed=number("mean weight that the planted key does not get: what is left to learn"),
    ),
    "worked_example.csv": table(
        """
        The example of three logits that many texts use, and what random rows at its d_k = 64 really look like. Of
        given logits the numbers are exact and have no error.
        """,
        part=text(
            "`triples` (given logits), `rows` (random queries and keys) or `probabilities` (what is said of "
            "random unscaled scores)"
        ),
        case=text("`small` (1, 0.5, 0.8), `large` (14, 10, 12), `small_times_10`, `large_over_8`, or `random`"),
        n_keys=N_KEYS,
        scaling=SCALING,
        measure=text(
            "name of the measure. `printed_weight_` is as printed in the texts, `jacobian_largest` is p(1 − p) of "
            "the largest weight, `score_spread` the standard deviation of the logits within a row. Probabilities: "
            "`all_high` all scores at least 10, `narrow` a range of at most 4, `sharp` a largest weight above "
            "0.87, `wide` a score beyond ±16, `any_wide` one in the row"
        ),
        estimate=number(
            "mean over rows; root mean square for score_spread, jacobian_frobenius and grad_query; median where "
            "so named"
        ),
        se=BLOCK_SE,
        theory=THEORY,
        n_rows=N_ROWS,
    ),
    "tiny_gradients.csv": table(
        """
        The much-copied count of softmax gradients y(1 − y) of at most 1e-10 over five keys, made again. Each block
        has five queries and five keys with standard normal components.
        """,
        d_k=D_K,
        n_keys=N_KEYS,
        scaling=SCALING,
        arithmetic=text(
            "`float32` (y(1 − y) in single precision, as in the copied code) or `exact` (1 − y as the sum of the "
            "other weights, in double precision)"
        ),
        statistic=text(
            "`share_of_entries` with y(1 − y) <= 1e-10; `share_of_small_weights` those of them with y < 1/2; "
            "`share_of_zero_entries` with y(1 − y) = 0; `share_of_rows` with a Frobenius norm of the Jacobian of "
            "at most 1e-10"
        ),
        estimate=number("share"),
        se=BLOCK_SE,
        theory=THEORY,
        published=number("what the copied code prints"),
        n_rows=N_ROWS,
    ),
    "phase_map.csv": table(
        """
        Exact averages over attention rows of standard normal queries and keys, on a grid of widths and numbers of
        keys that no configuration changes. Averages are over ‖q‖ too.
        """,
        d_k=D_K,
        n_keys=N_KEYS,
        scaling=SCALING,
        logit_std=number(
            "c √d_k, root of the mean variance of the logits within a row, c being what the rule multiplies q·k by"
        ),
        participation=number("E Σp²"),
        effective_keys=number("1/E Σp²"),
        effective_share=number("effective_keys / n_keys"),
        normalised_entropy=number("mean entropy of a row over ln n_keys"),
        phase=text("`frozen` where the participation is at least ½, else `hot`; two keys never have less than ½"),
    ),
    "freezing_frontier.csv": table(
        """
        Where attention rows are half-frozen, E Σp² = ½: exact, for each number of keys. Empty for two keys, whose
        Σp² is never below ½.
        """,
        n_keys=N_KEYS,
        critical_std=number("√(2 ln n), the standard deviation of the logits at which infinitely many keys freeze"),
        half_std=number("standard deviation of independent Gaussian logits at which E Σp² = ½"),
        half_d_k_fixed_norm=number(
            "its square, the width of half-frozen unscaled heads if every query had the norm √d_k"
        ),
        least_d_k_fixed_norm=whole("least whole width of at least that"),
        half_d_k=number(
            "width, as a real number, at which unscaled heads with standard normal queries and keys are half-frozen"
        ),
        least_d_k=whole("least whole width of at least that"),
    ),
    "entropy_scale.csv": table(
        """
        The scale c*(n_keys, d_k) that gives rows of standard normal queries and keys a chosen mean entropy, exact.
        """,
        n_keys=N_KEYS,
        d_k=D_K,
        normalised_entropy=number("mean entropy over ln n_keys that is asked for"),
        scale=number("what q·k has to be multiplied by"),
        scale_times_sqrt_d_k=number("scale · √d_k, the spread of the logits"),
        achieved=number("mean entropy over ln n_keys at that scale"),
    ),
    "typical_rows.csv": table(
        """
        Attention weights of standard normal queries over standard normal keys, in order of size: the 16 largest one
        by one, and the others added up. Rows are independent.
        """,
        d_k=D_K,
        n_keys=N_KEYS,
        scaling=SCALING,
        first_rank=whole("rank of the weight, 1 for the largest"),
        last_rank=whole("the same; where it is larger, the weights between the two are added up"),
        estimate=number("mean over the rows"),
        se=number("its standard error"),
        q10=number("10 % quantile over the rows"),
        median=number("median over the rows"),
        q90=number("90 % quantile over the rows"),
        n_rows=whole("rows drawn"),
    ),
    "one_query.csv": table(
        """
        The hero, and what its slider shows: weights of one query over its keys, in heads of growing width. Its scores
        are the normal quantiles in a random order, with standard deviation √d_k over the row: one row for all widths,
        so that the logits with 1/√d_k do not depend on d_k. Exact, and no average over queries.
        """,
        n_keys=N_KEYS,
        d_k=D_K,
        scaling=SCALING,
        key=whole("number of the key, from 1"),
        logit=number("what enters softmax: the score times the factor"),
        weight=number("attention weight of the key"),
        logit_std=number("standard deviation of the logits over the row"),
        largest_weight=number("largest weight of the row"),
        effective_keys=number("1/Σp² of the row, the number of keys that share it"),
    ),
    "attention_maps.csv": table(
        """
        Attention matrices of one block of 16 standard normal queries and keys, a row for each query. The head of
        width d_k takes the first d_k components.
        """,
        seed=whole("root seed of the draw"),
        d_k=D_K,
        scaling=SCALING,
        query=whole("number of the query, from 1"),
        **{f"weight_{key}": number(f"attention weight of key {key}") for key in range(1, 17)},
        largest_weight=number("largest of them"),
        effective_keys=number("1/Σp²"),
    ),
}
