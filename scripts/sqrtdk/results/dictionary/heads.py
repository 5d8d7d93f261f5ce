"""Tables on the heads of trained models."""

from sqrtdk.results.columns import number, table, text, truth, whole
from sqrtdk.results.dictionary.common import with_interval, with_se

FILES = {
    "real_heads.csv": table(
        """
        Every attention head of the dumps over all token pairs that its mask allows. Standard errors are those of a
        jackknife that leaves out runs of neighbouring tokens (21 of them, 20 degrees of freedom), but never the first
        and the last token. trace_term + query_mean_term + key_mean_term, which are of all pairs, = variance where
        nothing is masked. A sink is a key with at least 10 times the uniform weight and at least 0.1.
        """,
        dump=text("name in the configuration"),
        layer=whole("layer, from 0"),
        head=whole("head, from 0"),
        scaling=text("scale rule that the model uses"),
        d_k=whole("width of the head"),
        n_tokens=whole("tokens, each a key and, but where queries were drawn, a query"),
        n_scores=whole("token pairs"),
        factor=number("what the rule multiplies q·k by"),
        **with_se(
            mean="mean of q·k before scaling",
            variance="variance of q·k before scaling",
            within_row_variance="mean variance of q·k within a row",
            excess_kurtosis="excess kurtosis of q·k",
            independence_ratio=(
                "variance over independence_variance; 1 for independent centred components of equal variance"
            ),
            logit_std="standard deviation of the scaled scores",
            within_row_logit_std="root of the mean within-row variance of the scaled scores",
            entropy="mean entropy of the attention rows, in nats",
            max_weight="mean largest weight of the attention rows",
            unscaled_entropy="mean entropy if the scores were not scaled",
        ),
        trace_term=number("tr(Σ_q Σ_k)"),
        query_mean_term=number("μ_qᵀ Σ_k μ_q"),
        key_mean_term=number("μ_kᵀ Σ_q μ_k, common to a row and so unseen by softmax"),
        effective_dimension=number("tr(Σ_q Σ_k)² / tr((Σ_q Σ_k)²), the directions over which the first term is spread"),
        independence_variance=number("d_k E[q_i²] E[k_i²]"),
        quartile_1=number("lower quartile of q·k"),
        median=number("median of q·k"),
        quartile_3=number("upper quartile of q·k"),
        n_queries=whole("queries"),
        uniform_entropy=number("mean ln(keys), the largest entropy possible"),
        sinks=whole("keys that are sinks"),
        **with_se(sinkless_row_logit_std="within_row_logit_std of the keys that are no sinks"),
        model=text("the model, by its name in the configuration; several dumps may be of one"),
        input=text("what it read"),
    ),
    "audit.csv": table(
        """
        The audit of every attention head of the dumps: facts, and what is wrong by the declared scale and
        convention. Intervals are 95 %, from a jackknife that leaves out tokens as queries and as keys, on the log
        scale for spreads; tokens are taken as exchangeable. Facts that depend on the scale use `scale`.
        """,
        dump=text("name in the configuration"),
        layer=whole("layer, from 0"),
        head=whole("head, from 0"),
        scale=number("what q·k is multiplied by in these facts"),
        scale_source=text(
            "where the scale is from: `declared`, `measured` from given scores, `scores` (in the scores) or `assumed`"
        ),
        convention=text("what the scale is held against"),
        stage=text("when q and k were captured: init, trained or unknown"),
        verdict=text("healthy, note or bug"),
        findings=text("the findings in words, with the factor and all explanations that give it"),
        d_k=whole("width of q and k"),
        effective_d_k=whole("width without coordinates that are all zero (padding)"),
        direction_count=number("tr(Σ_q Σ_k)² / tr((Σ_q Σ_k)²), the directions over which q·k varies"),
        n_queries=whole("queries"),
        n_keys=whole("keys"),
        n_scores=whole("pairs of query and key that the mask allows, in rows with a choice"),
        rows_left_out=whole("queries that see fewer than two keys"),
        factor=number("the same as scale"),
        trace_term=number("tr(Σ_q Σ_k) over all tokens"),
        query_mean_term=number("μ_qᵀ Σ_k μ_q"),
        key_mean_term=number("μ_kᵀ Σ_q μ_k, common to a row and so unseen by softmax"),
        score_min=number("smallest q·k"),
        score_max=number("largest q·k"),
        logit_min=number("smallest logit"),
        logit_max=number("largest logit"),
        max_weight_q10=number("10 % quantile over rows of the largest weight"),
        max_weight_q50=number("median of the same"),
        max_weight_q90=number("90 % quantile of the same"),
        iid_entropy=number(
            "mean entropy of independent Gaussian logits of the same within-row spread and numbers of keys, in nats"
        ),
        uniform_entropy=number("mean ln(keys), the largest entropy possible"),
        fp16_score_overflow=number("share of q·k beyond the range of float16"),
        fp16_exp_overflow=number("share of logits whose exp overflows in float16"),
        sink_key=whole("key that gets most attention of those that may look at it"),
        sink_share=number("its mean weight"),
        sink_count=whole("keys with at least 10 times the uniform weight and at least 0.1"),
        query_scale_mixing=number("coefficient of variation of the standard deviation of rows of q·k"),
        q_rms=number("root mean square of the components of q"),
        k_rms=number("the same of k"),
        q_norm_cv=number("coefficient of variation of the norm of q"),
        k_norm_cv=number("the same of k"),
        q_on_ellipsoid=truth(
            "whether queries are as after a norm with learned weights; asked only where it decides a finding"
        ),
        k_on_ellipsoid=truth("the same of keys"),
        measured_factor=number("slope of given scores against q·k within rows"),
        measured_factor_se=number("its standard error, over queries"),
        measured_r2=number("share of the variance of given scores within rows that q·k explains"),
        **with_interval(
            q_norm="mean norm of q",
            k_norm="mean norm of k",
            cosine="mean cosine of q and k over all pairs",
            score_mean="mean of q·k",
            score_std="standard deviation of q·k, all pairs",
            row_score_std="root of the mean variance of q·k within rows",
            logit_mean="mean logit",
            logit_std="standard deviation of the logits, all pairs",
            row_logit_std="root of the mean variance of the logits within rows",
            entropy="mean entropy of the rows, in nats",
            relative_entropy="the same over its maximum",
            max_weight="mean largest weight of a row",
            saturated_share="share of rows with a weight above 0.99",
            jacobian="‖diag(p) − p pᵀ‖_F, root mean square over rows",
            key_gradient=(
                "norm of what a row adds to the gradients of its keys, for an upstream gradient of independent "
                "N(0, 1) entries; root mean square over rows"
            ),
        ),
    ),
}
