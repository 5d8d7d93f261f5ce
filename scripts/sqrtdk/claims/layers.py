"""Claims on what initial weights and normalisations give, layer after layer."""

from typing import Any

from sqrtdk.claims.core import Measured, Outcome, Test, at_least, at_most, claim, every, near, under
from sqrtdk.claims.lookup import Results
from sqrtdk.claims.runs import Runs
from sqrtdk.claims.texts import Text
from sqrtdk.claims.thresholds import ALMOST_ALL, CHANGED, CLOSE, CONCENTRATED, LOGITS

HEAD = (0.8, 1.25)
"""Where the product of the mean squares of q and k of a trained head counts as 1."""


def _deep(results: Results, norm: str, scaling: str, measure: str = "normalised_entropy") -> Measured:
    """Return a measure of the last layer of a random stack with residual connections."""
    setting: dict[str, Any] = dict(norm=norm, residual=True, scaling=scaling, measure=measure)
    last = results.select("depth", **setting)["layer"].max()
    return results.row("depth", layer=last, **setting).estimate()


def _layer(results: Results, scheme: str, quantity: str, **setting: Any) -> Measured:
    return results.row("initialisation", scheme=scheme, quantity=quantity, **setting).estimate()


@claim(
    "C3",
    source="A",
    kind="simulated",
    says=Text(
        en="After several layers of a deep network the large unscaled scores may push softmax into its flat region.",
        zh="经过若干层前向传播后，这些巨大的值可能会把 softmax 推入梯度极其平缓的区域。",
    ),
    measures=Text(
        en="entropy of the attention rows in the last layer of a random stack with LayerNorm before attention, as a "
        "share of that of equal weights: without the scale, where it should be small, and with it, where it should "
        "not; the one nearer to the threshold is shown",
        zh="注意力前有 LayerNorm 的随机网络堆叠中，最后一层注意力行的熵与等权重时之比：不缩放时应当很小，缩放时则不"
        "应；此处列出更接近界限的一个",
    ),
    remark=Text(
        en="The layers add nothing to it: the spread of the unscaled logits is as large in the first one.",
        zh="层数并没有使之加剧：第一层的未缩放 logit 已经同样分散。",
    ),
    evidence="fig-depth",
    reads=("depth",),
)
def depth(results: Results) -> Outcome:
    plain, scaled = (_deep(results, "pre_layernorm", scaling) for scaling in ("none", "1/sqrt(d_k)"))
    return every(at_most(plain, CONCENTRATED), at_least(scaled, CONCENTRATED))


@claim(
    "C4",
    source="A",
    kind="simulated",
    says=Text(
        en="After initialisation such as Xavier's or Kaiming's and LayerNorm the components of q and k usually have "
        "about mean 0 and variance 1.",
        zh="经过 Xavier 或 Kaiming 等初始化以及 LayerNorm 之后，q 与 k 的分量通常近似满足均值为 0、方差为 1。",
    ),
    measures=Text(
        en="mean square of the components of q for normalised inputs",
        zh="输入已归一化时 q 分量的均方值",
    ),
    holds_if=Text(
        en="the weights are Xavier's, of a square matrix",
        zh="采用方阵的 Xavier 初始化",
    ),
    not_if=Text(
        en="they are Kaiming's",
        zh="采用 Kaiming 初始化",
    ),
    theorem="start of q and k",
    evidence="tab-initialisation",
    reads=("initialisation",),
    widespread=True,
)
def standard_components(results: Results) -> Outcome:
    xavier, kaiming = (_layer(results, scheme, "query_variance") for scheme in ("xavier_uniform", "kaiming_normal"))
    return under(near(xavier, 1.0, CLOSE), near(kaiming, 1.0, CLOSE))


@claim(
    "C21",
    source="A",
    kind="simulated",
    says=Text(
        en="Initialisation such as Xavier's or He's keeps the variance stable, which to a degree keeps up the "
        "assumption.",
        zh="Xavier 或 He 初始化会让网络层输出的方差保持稳定，这在一定程度上维护了假设。",
    ),
    measures=Text(
        en="variance within a row of the scaled logits",
        zh="缩放后 logit 的行内方差",
    ),
    holds_if=Text(
        en="it is Xavier's for a square matrix",
        zh="采用方阵的 Xavier 初始化",
    ),
    not_if=Text(
        en="it is He's",
        zh="采用 He 初始化",
    ),
    theorem="start of q and k",
    evidence="tab-initialisation",
    reads=("initialisation",),
)
def xavier_and_he(results: Results) -> Outcome:
    xavier, he = (_layer(results, scheme, "logit_variance") for scheme in ("xavier_uniform", "kaiming_normal"))
    return under(near(xavier, 1.0, LOGITS), near(he, 1.0, LOGITS))


@claim(
    "C22",
    source="A",
    kind="real",
    says=Text(
        en="LayerNorm strongly guarantees that the components of q and k have about variance 1 and mean 0, even after "
        "many layers.",
        zh="LayerNorm 强力地保证 Query 和 Key 每个分量的方差大致为 1、均值大致为 0，即使经过了很多层。",
    ),
    measures=Text(
        en="share of the heads of a trained model whose mean squares of q and k have a product within 0.8 and 1.25",
        zh="训练好的模型中，q 与 k 的均方值之积落在 0.8 与 1.25 之间的头所占比例",
    ),
    evidence="fig-real-heads",
    reads=("real_heads",),
    widespread=True,
)
def guarantee(results: Results) -> Test:
    heads = results.frame("real_heads")
    product = heads["independence_variance"] / heads["d_k"]
    return at_least(results.share(product.between(*HEAD)), ALMOST_ALL)


@claim(
    "C33",
    source="A",
    kind="simulated",
    says=Text(
        en="If LayerNorm fails, q and k lose the distribution that the scale assumes, and the scale does less.",
        zh="如果 LayerNorm 失效，Q、K 的分布假设就不成立，缩放因子的效果也会打折扣。",
    ),
    measures=Text(
        en="spread of the scaled logits in the last layer of a random stack without a normalisation; it should be 1",
        zh="没有归一化的随机网络堆叠中，最后一层缩放后 logit 的标准差（应当为 1）",
    ),
    evidence="fig-depth",
    reads=("depth",),
)
def without_norm(results: Results) -> Test:
    return at_least(_deep(results, "none", "1/sqrt(d_k)", "logit_std"), CHANGED)


@claim(
    "C34",
    source="A",
    kind="trained",
    says=Text(
        en="Initial weights that are too large break the assumption, and may need a smaller learning rate.",
        zh="过大的初始化权重会破坏输入分布的假设，可能需要配合更小的学习率。",
    ),
    measures=Text(
        en="largest learning rate at which a small model still gets a quarter of the way, with W_q and W_k twice as "
        "large over that with usual ones",
        zh="W_q、W_k 为通常的两倍时，小模型仍能完成四分之一训练的最大学习率，与通常初始化时之比",
    ),
    holds_if=Text(
        en="the optimiser is Adam",
        zh="采用 Adam 优化器",
    ),
    not_if=Text(
        en="it is plain gradient descent",
        zh="采用普通梯度下降",
    ),
    remark=Text(
        en="That they break the assumption needs no test: the variance of the logits grows with the fourth power.",
        zh="破坏假设这一半无需检验：logit 的方差随倍数的四次方增长。",
    ),
    evidence="tab-claim-checks",
    reads=("claim_checks",),
)
def large_weights(results: Results) -> Outcome:
    adam, plain = (results.check("rate_of_large_weights", case=name).geometric() for name in ("adam", "sgd"))
    return under(at_most(adam, CHANGED.inverse()), at_most(plain, CHANGED.inverse()))


@claim(
    "C44",
    source="B",
    kind="trained",
    says=Text(
        en="In practice too unscaled scores become abnormally large, even with layer normalisation.",
        zh="在实际训练中，即使使用了层归一化等技术，不缩放仍会观察到注意力分数异常增大。",
    ),
    measures=Text(
        en="spread of the logits of models with LayerNorm, without the scale over with it, d_k = 64: at the start, "
        "and after training, each at its best rate; the one nearer to the threshold is shown",
        zh="带 LayerNorm 的模型在 d_k = 64 时 logit 的标准差：不缩放与缩放之比（初始时，以及各取最佳学习率训练之后）"
        "；此处列出更接近界限的一个",
    ),
    evidence="fig-training-telemetry",
    reads=("initialisation", "training"),
)
def normalised_and_unscaled(results: Results) -> Outcome:
    plain, scaled = (_layer(results, scheme, "logit_std", d_k=64) for scheme in ("plain_unscaled", "plain"))
    trained = Runs(results, "recall", 64).final_spread()
    return every(at_least(plain.over(scaled), CHANGED), at_least(trained, CHANGED))


@claim(
    "C52",
    source="B",
    kind="simulated",
    says=Text(
        en="Check that the queries and keys have variance 1 at initialisation, as theory assumes.",
        zh="初始化检查：验证 query 和 key 的初始化方差确实为 1，确保理论假设成立。",
    ),
    measures=Text(
        en="mean square of the components of q for normalised inputs",
        zh="输入已归一化时 q 分量的均方值",
    ),
    holds_if=Text(
        en="it is Xavier's for a square matrix",
        zh="采用方阵的 Xavier 初始化",
    ),
    not_if=Text(
        en="it is the default of PyTorch's linear layer",
        zh="采用 PyTorch 线性层的默认初始化",
    ),
    evidence="tab-initialisation",
    reads=("initialisation",),
)
def initial_check(results: Results) -> Outcome:
    xavier, linear = (_layer(results, scheme, "query_variance") for scheme in ("xavier_uniform", "linear_default"))
    return under(near(xavier, 1.0, CLOSE), near(linear, 1.0, CLOSE))


@claim(
    "C54",
    source="B",
    kind="simulated",
    says=Text(
        en="In spite of LayerNorm and RMSNorm the division by √d_k stays indispensable.",
        zh="虽然有 LayerNorm、RMSNorm 等技术，√d_k 缩放仍然不可或缺。",
    ),
    measures=Text(
        en="standard deviation of the unscaled logits at d_k = 64 for inputs after LayerNorm; under the condition "
        "also of queries and keys after RMSNorm, and the one nearer to the threshold is shown",
        zh="d_k = 64 时，LayerNorm 之后的输入给出的未缩放 logit 的标准差；在该条件下还包括对查询与键做 RMSNorm 的情"
        "形，并列出更接近界限的一个",
    ),
    holds_if=Text(
        en="the weights start with variance 1/d_model",
        zh="权重的初始方差为 1/d_model",
    ),
    not_if=Text(
        en="those of the queries start smaller, as in T5, which has no factor",
        zh="查询的权重初始值更小，如没有缩放因子的 T5",
    ),
    evidence="tab-initialisation",
    reads=("initialisation",),
)
def norms_and_scale(results: Results) -> Outcome:
    usual = (_layer(results, scheme, "logit_std", d_k=64) for scheme in ("plain_unscaled", "rmsnorm_unscaled"))
    small = _layer(results, "t5", "logit_std", d_k=64)
    return under(every(*(at_least(spread, CHANGED) for spread in usual)), at_least(small, CHANGED))


@claim(
    "C64",
    source="A",
    kind="simulated",
    says=Text(
        en="The scale and LayerNorm complement each other: both together make training stable.",
        zh="缩放因子与 LayerNorm 相辅相成，共同构成训练稳定的基石。",
    ),
    measures=Text(
        en="entropy of the attention rows in the last layer of a random stack, as a share of that of equal weights: "
        "with both, with the scale alone and with LayerNorm alone; the one nearest to the threshold is shown",
        zh="随机网络堆叠最后一层注意力行的熵与等权重时之比：两者都有、只有缩放、只有 LayerNorm；此处列出最接近界限的"
        "一个",
    ),
    remark=Text(
        en="B says the same. At the start only; training them apart was not tried.",
        zh="文章 B 也有此说。这里只看初始状态，没有分别训练。",
    ),
    evidence="fig-depth",
    reads=("depth",),
)
def complement(results: Results) -> Outcome:
    both, scale, norm = (
        _deep(results, norm, scaling)
        for norm, scaling in (("pre_layernorm", "1/sqrt(d_k)"), ("none", "1/sqrt(d_k)"), ("pre_layernorm", "none"))
    )
    return every(at_least(both, CONCENTRATED), at_most(scale, CONCENTRATED), at_most(norm, CONCENTRATED))
