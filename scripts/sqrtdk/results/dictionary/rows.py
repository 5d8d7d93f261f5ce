"""Tables on rows of softmax: saturation, gradients, and rows of Gaussian logits beside exact averages."""

from sqrtdk.results.columns import number, table, text, truth, whole
from sqrtdk.results.dictionary.common import (
    BLOCK_SE,
    D_K,
    ENSEMBLE,
    MEASURE,
    N_BLOCKS,
    N_KEYS,
    N_ROWS,
    SCALING,
    THEORY,
    with_se,
)

D_K_FORMULA = number(
    "for the median of the Jacobian of standard normal rows of 16 keys or more, a_n²(1 + ½ log2(n/e))² with "
    "a_n = n φ(b_n), where n(1 − Φ(b_n)) = 1"
)

FILES = {
    "softmax_saturation.csv": table(
        """
        How saturated a row of softmax is, averaged over rows. How many rows each scale rule gets was fixed by a
        pilot that is not part of them.
        """,
        ensemble=ENSEMBLE,
        d_k=D_K,
        n_keys=N_KEYS,
        scaling=SCALING,
        measure=MEASURE,
        estimate=number(
            "mean over rows (root mean square of a norm); empty for jacobian_spectral where keys are drawn in "
            "pieces (more than 16384 of them, or 16777216 numbers in those of one block), which needs whole rows"
        ),
        se=BLOCK_SE,
        theory=THEORY,
        law=number(
            "for a share of rows, the law of the frozen phase, PD(m, 0) with m = a_n/s, in the mean over queries: 0 "
            "for s below a_n; off by what n is too small, some 5 % for saturated_share and up to 30 % for "
            "vanishing_share"
        ),
        n_rows=N_ROWS,
        n_blocks=N_BLOCKS,
        trusted=truth(
            "whether the mean over blocks is nearly normal (skewness at most 0.2), so that its error can be trusted"
        ),
        precise=truth(
            "whether a trusted estimate has the relative standard error aimed at, 1 % (entropy, "
            "participation_ratio) or 2 % (jacobian_frobenius); empty for the others"
        ),
    ),
    "gradient_magnitude.csv": table(
        """
        Norms of the gradient with respect to the logits, the query and the keys of a row, for an upstream gradient
        ∂L/∂p of independent N(0, 1) entries, or one that comes through Gaussian values (`_values`).
        """,
        ensemble=ENSEMBLE,
        d_k=D_K,
        n_keys=N_KEYS,
        scaling=SCALING,
        measure=MEASURE,
        estimate=number("root mean square over rows"),
        se=BLOCK_SE,
        **with_se(median="median over rows"),
        theory=number("exact value of the root mean square where there is one"),
        n_rows=N_ROWS,
        n_blocks=N_BLOCKS,
        trusted=truth(
            "whether the mean square over blocks is nearly normal (skewness at most 0.2), so that its error can "
            "be trusted"
        ),
        precise=truth("whether a trusted root mean square has a relative standard error of at most 2 %"),
    ),
    "gradient_distribution.csv": table(
        """
        How the norms of the gradients, and of the Jacobian J of softmax, are distributed over rows. Intervals have
        Student's t with n_blocks − 1 degrees of freedom.
        """,
        ensemble=ENSEMBLE,
        d_k=D_K,
        n_keys=N_KEYS,
        scaling=SCALING,
        measure=text("name of the measure, for independent N(0, 1) upstream gradients"),
        statistic=text(
            "`quantile_p`, the norm below which a share p of the rows lies; `below_x`, the share of rows with a "
            "norm below x, or below 1 % of the norm of a row of equal weights (`1pct_uniform`); "
            "`top_tenth_energy`, the share of the sum of squared norms in the tenth of the rows with the largest"
        ),
        estimate=number("its estimate"),
        se=number(
            "its standard error, from between independent blocks (a quantile's is that of its logarithm, times "
            "the quantile); empty for a share of 0 or 1"
        ),
        low=number(
            "lower end of its 95 % interval, by Woodruff for quantiles and by Wilson with the effective number of "
            "rows for shares; of a share of 1 the one-sided bound"
        ),
        high=number(
            "upper end; of a share of 0 the one-sided bound, for rows that repeat each other as much as about "
            "their lowest hundredth"
        ),
        n_rows=N_ROWS,
        n_blocks=N_BLOCKS,
    ),
    "gradient_crossovers.csv": table(
        """
        The width d_k* above which a row's gradient is smaller without the scale than with 1/√d_k, interpolated
        between the simulated widths by a cubic in ln d_k. For rows of standard normal q and k key_crossovers.csv has it
        for more numbers of keys, without interpolation.
        """,
        ensemble=ENSEMBLE,
        n_keys=N_KEYS,
        measure=text("name of the measure, or the Frobenius norm of the Jacobian of softmax"),
        quantity=text("what of its distribution over rows is compared, `median` or `rms`"),
        d_k_star=number("width at which the two are equal, falling for good"),
        ci_low=number(
            "lower end of its 95 % interval, from the errors of both sizes, taken as independent, and what is not "
            "known of the curve between the widths"
        ),
        ci_high=number("upper end"),
        d_k_formula=D_K_FORMULA,
        reason=text("why there is no such width"),
    ),
    "gradient_by_keys.csv": table(
        """
        The gradient that a row sends back without the scale over that with 1/√d_k, for standard normal q and k and an
        upstream gradient of independent N(0, 1) entries. Root mean squares are exact; medians are over rows whose keys
        all widths share.
        """,
        n_keys=N_KEYS,
        measure=text("name of the measure, or the Frobenius norm of the Jacobian of softmax"),
        d_k=D_K,
        quantity=text(
            "what of its distribution over rows is compared, `median` or `rms` (that of the Jacobian is that of the "
            "logits)"
        ),
        ratio=number("unscaled over scaled"),
        low=number("lower end of its 95 % interval, from between independent blocks; empty where it is exact"),
        high=number("upper end"),
        n_rows=whole("rows behind the unscaled median"),
    ),
    "key_crossovers.csv": table(
        """
        The width d_k* at which a ratio of gradient_by_keys.csv falls below 1 for good: with fewer keys than at that
        width the gradient is smaller without the scale.
        """,
        n_keys=N_KEYS,
        measure=text("name of the measure"),
        quantity=text("`median` or `rms`"),
        d_k_star=number("width at which the two are equal, a real number"),
        ci_low=number("lower end of its 95 % interval; of an exact ratio that width itself"),
        ci_high=number("upper end"),
        d_k_formula=D_K_FORMULA,
        reason=text("why there is no such width from 2 to 4096"),
    ),
    "gradient_decomposition.csv": table(
        """
        The root mean square gradient of the query as a multiple of that with 1/√d_k, in factors: total = scale_part
        · softmax_part · rest. The draws are shared; errors are those of independent sizes, and too large.
        """,
        ensemble=ENSEMBLE,
        d_k=D_K,
        n_keys=N_KEYS,
        scaling=SCALING,
        measure=MEASURE,
        **with_se(total="ratio of the root mean squares"),
        scale_part=number("ratio of the scale factors"),
        **with_se(
            softmax_part="ratio of the root mean square gradients of the logits",
            rest="total over the two, the part of the gradient along the query and the dependence of weights and keys",
        ),
        exact_total=number("exact value of total where there is one"),
        exact_softmax_part=number("exact value of softmax_part"),
        exact_rest=number("exact value of rest"),
    ),
    "random_energy.csv": table(
        """
        Softmax over n_keys independent Gaussian logits, simulated for every number of keys and every standard
        deviation, beside exact averages and asymptotic laws. All standard deviations of one n_keys share their
        draws.
        """,
        n_keys=N_KEYS,
        logit_std=number("standard deviation s of the logits"),
        measure=text(
            "name of the measure: `cube` is Σp³, `log_partition` ln Z, and `identity` H − ln Z + s²(1 − Σp²), "
            "whose mean is 0"
        ),
        estimate=number(
            "mean over rows; root mean square for jacobian_frobenius and jacobian_spectral, median for jacobian_median"
        ),
        se=number("its standard error, from between independent rows"),
        n_rows=whole("independent rows behind it"),
        exact=number("exact value where there is one, by numerical integration"),
        hot=number("law of the hot phase as n → ∞; empty outside of it and where there is none"),
        frozen=number("law of the frozen phase as n → ∞, for s above √(2 ln n)"),
        hazard=number("the same with √(2 ln n) replaced by a_n = n φ(b_n), where n(1 − Φ(b_n)) = 1"),
        trusted=truth("whether the error can be trusted: the mean over rows has a skewness of at most 0.1 in size"),
        precise=truth(
            "whether a trusted estimate has the relative standard error aimed at, 1 % (entropy, "
            "participation_ratio) or 2 % (jacobian_frobenius, jacobian_spectral); empty for the others"
        ),
    ),
    "random_energy_curves.csv": table(
        "The exact averages and the asymptotic laws of random_energy.csv on a finer grid.",
        n_keys=N_KEYS,
        logit_std=number("standard deviation s of the logits"),
        measure=MEASURE,
        exact=number("exact value where there is one, interpolated between integrals"),
        hot=number("law of the hot phase"),
        frozen=number("law of the frozen phase"),
        hazard=number("law of the frozen phase with a_n"),
    ),
    "asymptotic_ranges.csv": table(
        """
        Where the asymptotic laws are good: the longest range, in ratio, of standard deviations from 0.05 to 64 over
        which a law is within a tolerance of the exact average. A short range may be where the two curves cross.
        """,
        n_keys=N_KEYS,
        measure=MEASURE,
        approximation=text("`hot`, `frozen` or `hazard`"),
        tolerance=number("relative error allowed"),
        critical_logit_std=number("√(2 ln n_keys)"),
        from_logit_std=number("lower end of the range, 0.05 if it goes on; empty where there is none"),
        to_logit_std=number("upper end of the range, 64 if it goes on"),
        worst=number("largest relative error within the phase of the law"),
        worst_logit_std=number("standard deviation at which it is"),
    ),
}
