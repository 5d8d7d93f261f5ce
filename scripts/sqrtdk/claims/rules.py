"""Claims on other factors, other normalisers, and practice."""

from typing import Any

from sqrtdk.claims.core import Measured, Outcome, Test, Text, at_least, at_most, claim, near, under
from sqrtdk.claims.lookup import REFERENCE, Results

SIZE, N_KEYS = 64, 64
BETTER = -0.05
"""A rule is better than 1/√d_k where its loss is lower by so many nats: near 0, ratios of losses mean nothing."""
MOVED = 0.01
"""Rounding that moves less of the weight of a row than this is no reason to change the logits."""
CHANGED = 1.25
"""What a scale changes, it changes by this factor at least."""


@claim(
    "C24",
    source="A",
    kind="trained",
    says=Text(
        en="Dividing by the mean size of the scores, or by an order statistic, is no better than 1/√d_k.",
        zh="按得分绝对值的平均大小或最大值之类来缩放，并不优于 1/√d_k。",
    ),
    measures=Text(
        en="final loss minus that with 1/√d_k in nats, each at its own best learning rate",
        zh="各取最佳学习率时，最终损失与 1/√d_k 的最终损失之差（nat）",
    ),
    holds_if=Text(
        en="it is the largest score of the row",
        zh="采用行内最大的得分",
    ),
    not_if=Text(
        en="it is the mean of |q·k| of the row",
        zh="采用行内 |q·k| 的均值",
    ),
    evidence="tab-training-shipped",
    reads=("training_verdicts", "training_summary", "shipped_training_verdicts", "shipped_training_summary"),
)
def other_sizes(results: Results) -> Outcome:
    largest, mean = (results.against_reference(f"row_{name}_abs", "loss", SIZE) for name in ("max", "mean"))
    return under(at_least(largest, BETTER), at_least(mean, BETTER))


@claim(
    "C25",
    source="A",
    kind="arithmetic",
    says=Text(
        en="A factor after softmax changes the distribution: the weights no longer sum to 1.",
        zh="在 softmax 之后再乘因子会改变分布：权重之和不再为 1。",
    ),
    measures=Text(
        en="sum of the weights after a factor of 2",
        zh="乘以 2 之后的权重之和",
    ),
    evidence="tab-normalisers",
    reads=("normalisers",),
)
def after_softmax(results: Results) -> Test:
    row = results.row("normalisers", normaliser="post_scale(a=2)", measure="row_sum", logit_std=1, n_keys=N_KEYS)
    return at_least(row.exact(), 1.05)


@claim(
    "C26",
    source="A",
    kind="trained",
    opinion=True,
    says=Text(
        en="In nearly all cases there is no need to touch 1/√d_k.",
        zh="绝大多数情况下都不需要改动 1/√d_k。",
    ),
    measures=Text(
        en="final loss with 1/d_k minus that with 1/√d_k in nats, each at its own best learning rate",
        zh="各取最佳学习率时，1/d_k 与 1/√d_k 的最终损失之差（nat）",
    ),
    evidence="fig-training-curves",
    reads=("training_verdicts", "training_summary", "shipped_training_verdicts", "shipped_training_summary"),
)
def no_need(results: Results) -> Test:
    return near(results.against_reference("1/d_k", "loss", SIZE), 0.0, -BETTER)


@claim(
    "C29",
    source="A",
    kind="simulated",
    opinion=True,
    says=Text(
        en="Smoother attention maps let a model learn richer relations of context.",
        zh="注意力图越平滑，模型学到的上下文信息就越丰富。",
    ),
    measures=Text(
        en="effective number of keys of a row, with the scale over without, d_k = 64, n = 64",
        zh="d_k = 64、n = 64 时一行的有效键数：缩放与不缩放之比",
    ),
    evidence="fig-attention-maps",
    reads=("softmax_saturation",),
)
def richer_context(results: Results) -> Test:
    setting: dict[str, Any] = dict(ensemble=results.ensemble("standard"), measure="effective_keys")
    scaled, plain = (
        results.row("softmax_saturation", d_k=SIZE, n_keys=N_KEYS, scaling=scaling, **setting).estimate()
        for scaling in (REFERENCE, "none")
    )
    return at_least(scaled.over(plain), CHANGED)


@claim(
    "C31",
    source="A",
    kind="simulated",
    says=Text(
        en="The d_k of the scale is the width of one head; with the model's in its place the logits are too small.",
        zh="缩放中的 d_k 是单个头的宽度；若误用模型宽度，logit 就会过小。",
    ),
    measures=Text(
        en="standard deviation of the logits if the width of the model, 8 heads, stands in for d_k",
        zh="以模型宽度（8 个头）代替 d_k 时 logit 的标准差",
    ),
    evidence="tab-mistakes",
    reads=("alternatives",),
)
def width_of_a_head(results: Results) -> Test:
    row = results.row("alternatives", variant="d_model_for_d_k", measure="logit_std", d_k=SIZE, n_keys=N_KEYS)
    return at_most(row.estimate(), 1 / CHANGED)


@claim(
    "C32",
    source="A",
    kind="real",
    says=Text(
        en="Healthy heads are usually not extremely sparse.",
        zh="健康的注意力头大多不会过于稀疏。",
    ),
    measures=Text(
        en="share of the heads of a trained model in which most rows have a weight above 0.99",
        zh="训练好的模型中，多数行的最大权重超过 0.99 的头所占比例",
    ),
    evidence="tab-audit",
    reads=("audit",),
)
def sparse_heads(results: Results) -> Test:
    return at_most(results.share(results.frame("audit")["saturated_share"] > 0.5), 0.1)


@claim(
    "C35",
    source="A",
    kind="simulated",
    says=Text(
        en="The few bits of a format such as bfloat16 are a reason to clip the logits of very large models.",
        zh="bfloat16 等格式精度有限，是超大模型需要对 logit 进行截断的理由之一。",
    ),
    measures=Text(
        en="share of the weight that moves when the logits of wide unscaled heads are rounded to the format",
        zh="把不缩放的宽头的 logit 舍入为该格式时移动的权重比例",
    ),
    holds_if=Text(
        en="the format has 8 bits, as e4m3",
        zh="格式只有 8 位，如 e4m3",
    ),
    not_if=Text(
        en="it is bfloat16 itself",
        zh="格式就是 bfloat16",
    ),
    evidence="fig-rounding",
    reads=("rounding",),
)
def few_bits(results: Results) -> Outcome:
    setting: dict[str, Any] = dict(rounded="logits", scaling="none", measure="total_variation")
    eight, sixteen = (
        results.row("rounding", d_k=1024, format=name, **setting).estimate() for name in ("float8_e4m3fn", "bfloat16")
    )
    return under(at_least(eight, MOVED), at_least(sixteen, MOVED))


@claim(
    "C55",
    source="B",
    kind="simulated",
    says=Text(
        en="The scale keeps its effect in variants such as sparse and linear attention.",
        zh="在稀疏注意力、线性注意力等变体中，缩放依然有效。",
    ),
    measures=Text(
        en="effective number of keys of a row, with the scale over without, d_k = 64, n = 64",
        zh="d_k = 64、n = 64 时一行的有效键数：缩放与不缩放之比",
    ),
    holds_if=Text(
        en="attention is sparse, by sparsemax",
        zh="采用稀疏注意力 sparsemax",
    ),
    not_if=Text(
        en="attention is linear, with ReLU features",
        zh="采用 ReLU 特征的线性注意力",
    ),
    evidence="tab-linear-attention",
    reads=("alternatives", "linear_attention"),
    widespread=True,
)
def variants(results: Results) -> Outcome:
    def effect(table: str, **names: str) -> Measured:
        scaled, plain = (
            results.row(table, d_k=SIZE, n_keys=N_KEYS, measure="effective_keys", **setting).estimate()
            for setting in ({key: name.format(rule) for key, name in names.items()} for rule in (REFERENCE, "none"))
        )
        return scaled.over(plain)

    sparse = effect("alternatives", variant="{} | sparsemax")
    linear = effect("linear_attention", attention="relu", scaling="{}")
    return under(at_least(sparse, CHANGED), at_least(linear, CHANGED))
