"""Tables on the score q·k and the laws of its moments."""

from sqrtdk.results.columns import number, table, text, truth, whole
from sqrtdk.results.dictionary.common import D_K, ENSEMBLE, with_se

_LAWS = dict(
    ensemble=ENSEMBLE,
    law=text("name of the law"),
    parameter=text("name of the parameter; a row for each"),
    estimate=number("fitted value"),
    se=number("its standard error"),
    ci_low=number("lower end of the 95 % interval"),
    ci_high=number("upper end of the 95 % interval"),
    ci_dof=number("degrees of freedom of Student's t behind the interval"),
    exact=number("the same weighted fit applied to the exact values"),
    chi2=number("weighted sum of squared residuals"),
    dof=whole("degrees of freedom of chi2"),
    p_value=number("probability of a larger chi2 if the law holds"),
    aicc=number("corrected Akaike criterion"),
    selected=truth("whether this is the simplest law within 6 of the best AICc"),
    estimable=truth("whether the fit can be trusted"),
    reason=text("why not, or what was left out"),
    d_k_min=whole("smallest d_k of the fit"),
    n_points=whole("number of d_k in the fit"),
)
FILES = {
    "moments.csv": table(
        """
        Moments of the score q·k for each cell (ensemble, d_k), before any scale, then for each real head. Intervals
        use Student's t with n_blocks − 1 degrees of freedom.
        """,
        ensemble=text("name in the configuration; a real head is `<dump>_l<layer>_h<head>`"),
        d_k=D_K,
        n_blocks=whole("independent values behind each standard error"),
        n_scores=whole("scores q·k that were computed"),
        stopped_by=text(
            "what fixed the number of blocks beforehand: `precision` reached, the cap `max_scalars`, `degenerate` "
            "(no randomness left in the variance) or `enumerated` (real head, all token pairs)"
        ),
        **with_se(
            mean="mean of q·k",
            variance="variance of q·k",
            within_row_variance="E[Var(q·k | q)], the part of the variance that softmax sees",
            excess_kurtosis="fourth cumulant over squared variance, 0 for a Gaussian",
        ),
        kurtosis_trusted=truth("whether the standard error of the kurtosis can be trusted; if not, `reason`"),
        **with_se(
            quartile_1="lower quartile of q·k",
            median="median of q·k",
            quartile_3="upper quartile of q·k",
        ),
        interquartile_range=number("upper minus lower quartile"),
        interquartile_range_se=number("its standard error, which knows that the two quartiles are correlated"),
        exact_mean=number("exact mean"),
        exact_variance=number("exact variance"),
        exact_within_row_variance=number("exact within-row variance"),
        exact_excess_kurtosis=number("exact excess kurtosis"),
        relative_se=number("variance_se / variance"),
        reason=text("why a number is missing or not trusted"),
    ),
    "score_histograms.csv": table(
        """
        Histogram of q·k for the ensembles whose density has a closed form; bins without a score are left out.
        """,
        ensemble=ENSEMBLE,
        d_k=D_K,
        low=number("lower edge of the bin, -inf for the first"),
        high=number("upper edge of the bin, inf for the last"),
        count=whole("scores in the bin"),
        n_scores=whole("all scores of the cell"),
    ),
    "variance_laws.csv": table(
        """
        Laws of the variance against d_k, fitted by weighted least squares to ln(variance). Laws: linear a·d, power
        A·d^b, affine a + b·d, quadratic a·d + b·d², and affine_tail, the affine law on d_k of at least `tail_d_k`.
        """,
        **_LAWS,
    ),
    "mean_laws.csv": table(
        "Laws of the mean of q·k against d_k: zero, linear a·d and power A·d^b.",
        **_LAWS,
    ),
    "spread_laws.csv": table(
        """
        Laws of the interquartile range of q·k against d_k, fitted like the variance; it has an error however heavy
        the tails are. Laws: square_root a·√d, power A·d^b, and power_tail, the power law on d_k of at least
        `tail_d_k`.
        """,
        **_LAWS,
    ),
    "local_exponents.csv": table(
        """
        Exponent between neighbouring d_k: ln(V_high / V_low) / ln(d_k_high / d_k_low). Neighbouring exponents share
        a width, so their errors are correlated.
        """,
        ensemble=ENSEMBLE,
        quantity=text("V, either `variance` or `interquartile_range`"),
        d_k_low=whole("smaller width"),
        d_k_high=whole("larger width"),
        exponent=number("exponent between the two"),
        se=number("its standard error"),
        ci_low=number("lower end of the 95 % interval"),
        ci_high=number("upper end of the 95 % interval"),
        ci_dof=number("degrees of freedom of Student's t behind the interval"),
        exact=number("the same of the exact values"),
        weight=number("weight with which it enters the exponent of the power law over all d_k; the weights sum to 1"),
        reason=text("why there is no exponent"),
    ),
}
