"""Tables on other rules, normalisers and kinds of attention, on layers before training, and on rounding."""

from sqrtdk.results.columns import number, table, text, truth, whole
from sqrtdk.results.dictionary.common import BLOCK_SE, D_K, N_BLOCKS, N_KEYS, N_ROWS, SCALING, with_se

FILES = {
    "alternatives.csv": table(
        """
        Every scale rule and every configured variant of attention on the same standard normal queries and keys.
        """,
        variant=text("variant in canonical spelling, SCALE | TRANSFORM | NORMALISER"),
        kind=text(
            "`rule`, `model` (what a published model does) or `mistake` for a scale rule alone, else `transform` "
            "or `normaliser`"
        ),
        d_k=D_K,
        n_keys=N_KEYS,
        measure=text(
            "`logit_std` (root of the mean within-row variance of what enters the normaliser), `entropy`, "
            "`effective_keys` and `max_weight` of the weights made to sum to 1, `row_sum` (their sum before), "
            "`grad_logits` and `grad_query` (norm of the gradient with respect to the scaled scores, before any "
            "transform, and to the query), `dead_share` (rows whose gradient is exactly zero), `clipped_mass` "
            "(weight on keys whose own logit passes no gradient on)"
        ),
        estimate=number("mean over rows; root mean square of a gradient"),
        se=BLOCK_SE,
        **with_se(median="median over rows, of a gradient alone"),
        exact=number("exact value of the estimate where there is one"),
        limit=number(
            "value that is approached as queries and keys grow in number, for scale rules that divide by a size "
            "of the scores"
        ),
        n_rows=N_ROWS,
        n_blocks=N_BLOCKS,
    ),
    "normalisers.csv": table(
        """
        What normalisers other than softmax make of rows of independent N(0, s²) logits, the same for all of them.
        Participation ratio and effective keys are of the weights relative to their sum, which need not be 1.
        """,
        normaliser=text("normaliser with its parameters"),
        logit_std=whole("standard deviation s of the logits"),
        n_keys=N_KEYS,
        measure=text(
            "`row_sum`, `max_weight`, `participation_ratio`, `effective_keys`, `support` (keys with a weight "
            "above 0), `one_hot_share` (rows with one such key), `null_mass` (weight that goes to no key), "
            "`jacobian_frobenius`, `zero_gradient_mass` (share of the weight on keys whose logit has exactly no "
            "gradient)"
        ),
        estimate=number("mean over rows, of jacobian_frobenius the root mean square"),
        se=number(
            "its standard error; rows are independent. None where a few rows hold most of the null mass, which "
            "makes its mean and that of the row sum depend on rare rows"
        ),
        **with_se(median="median over rows, of jacobian_frobenius alone"),
        exact=number("exact value of the estimate where there is one"),
        n_rows=N_ROWS,
    ),
    "linear_attention.csv": table(
        """
        Attention that is no function of one row of q·k, beside softmax, for standard normal queries and keys:
        linear attention with the features relu and elu+1, positive random features (favor+, 256 of them) and
        additive attention.
        """,
        attention=text("kind of attention"),
        d_k=D_K,
        n_keys=N_KEYS,
        scaling=text("scale rule, or the two that are compared"),
        measure=text(
            "`total_variation_between_scales` (half the sum of |p_j − p'_j|), `effective_keys`, "
            "`total_variation_from_softmax`, `log_relative_second_moment` (logarithm of 1 + the relative variance "
            "of e^{c q·k} as estimated by one random feature), `score_variance` and `within_row_variance` of vᵀ "
            "tanh(q + k) with ‖v‖ = 1"
        ),
        estimate=number("mean over rows"),
        se=BLOCK_SE,
        exact=number("exact value where there is one"),
        n_rows=N_ROWS,
        n_blocks=N_BLOCKS,
    ),
    "initialisation.csv": table(
        """
        Logits of layers before training: by initial weights, by what is done to the inputs x, and by what is done
        to queries and keys; the latter two with LeCun weights. Errors come from between independent draws of the
        weights.
        """,
        group=text("what varies, `weights`, `inputs` or `heads`"),
        scheme=text("name of the initial weights or of the normalisation"),
        d_model=whole("width of the model"),
        d_k=D_K,
        n_heads=whole("heads, d_model / d_k"),
        quantity=text(
            "`query_variance` (mean of q_i²), `key_variance`, `logit_variance` (within a row, under the scheme's "
            "scale) and `logit_std` (its root)"
        ),
        estimate=number("mean over draws of weights and tokens"),
        se=number("its standard error, from between draws"),
        exact=number("exact value"),
        n_blocks=whole("independent draws"),
    ),
    "depth.csv": table(
        """
        Stacks of random attention layers without feed-forward parts, each row a layer of one kind of stack. All
        kinds see the same weights. Of logits that have collapsed into rounding errors there is no estimate.
        """,
        norm=text("normalisation: `pre_layernorm`, `post_layernorm`, `pre_rmsnorm` or `none`"),
        residual=truth("whether a layer adds to its input"),
        scaling=SCALING,
        layer=whole("layer, from 1"),
        measure=text(
            "`query_std` (root mean square of q_i), `logit_std` (within a row), `logit_variance_ratio` (variance "
            "within a row over its mean given the layer's inputs), `normalised_entropy` of the attention rows, "
            "`token_cosine` (mean over pairs of tokens)"
        ),
        estimate=number("mean over stacks, or root of a mean of squares"),
        se=number("its standard error, from between stacks"),
        exact=number("exact value; of `query_std` and `logit_std` given the inputs that the stacks reached"),
        n_stacks=whole("independent stacks"),
    ),
    "rounding.csv": table(
        """
        Attention rows of standard normal queries and keys in floating-point formats of few bits, against double
        precision. Rounding is to the nearest without saturation; the softmax in between is in double precision.
        """,
        format=text("floating-point format"),
        rounded=text(
            "what is rounded: `inputs` (q and k), `logits`, `probabilities` or `naive_exp` (exponentials of the "
            "logits, without their maximum subtracted)"
        ),
        scaling=SCALING,
        d_k=D_K,
        n_keys=N_KEYS,
        measure=text(
            "`total_variation` (half the sum of |rounded − exact| weights), `top_weight_error` (relative, of the "
            "largest weight), `logit_error` (root mean square), `overflow_share` (of logits or exponentials), "
            "`undefined_rows` (share of rows with a weight that is not a number)"
        ),
        estimate=number("mean over rows, of logit_error the root mean square"),
        se=BLOCK_SE,
        exact=number(
            "exact value where there is one; of logit_error to second order in the spacing of the format's numbers"
        ),
        n_rows=N_ROWS,
        n_blocks=N_BLOCKS,
    ),
}
