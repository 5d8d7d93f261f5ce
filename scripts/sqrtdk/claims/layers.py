"""Claims on what initial weights and normalisations give, layer after layer."""

from typing import Any

from sqrtdk.claims.core import PART, Measured, Outcome, Test, at_least, at_most, claim, every, near, under
from sqrtdk.claims.lookup import Results
from sqrtdk.claims.moments import HEAD
from sqrtdk.claims.runs import Runs
from sqrtdk.claims.texts import Text
from sqrtdk.claims.thresholds import ALMOST_ALL, CHANGED, CLOSE, CONCENTRATED, LOGITS, RIGHT
from sqrtdk.claims.training import VERDICTS


def _deep(results: Results, norm: str, scaling: str, measure: str = "normalised_entropy") -> Measured:
    """Return a measure of the last layer of a random stack with residual connections."""
    setting: dict[str, Any] = dict(norm=norm, residual=True, scaling=scaling, measure=measure)
    last = results.select("depth", **setting)["layer"].max()
    return results.row("depth", layer=last, **setting).estimate()


def _layer(results: Results, scheme: str, quantity: str, **setting: Any) -> Measured:
    return results.row("initialisation", scheme=scheme, quantity=quantity, **setting).estimate()


def _xavier(results: Results) -> Outcome:
    """Ask of Xavier's weights whether the components of q, and with them the scaled logits, have variance 1."""
    components, logits = (_layer(results, "xavier_uniform", f"{name}_variance") for name in ("query", "logit"))
    return every(near(components, 1.0, CLOSE), near(logits, 1.0, LOGITS))


@claim(
    "C4",
    source="A",
    kind="simulated",
    says=Text(
        en="The assumption of independent, identically distributed components of mean 0 and variance 1 is very "
        "reasonable, since after initialisation such as Xavier's or Kaiming's and LayerNorm they usually about meet "
        "it.",
        zh="各元素独立同分布、均值为 0、方差为 1 的假设非常合理，因为经过 Xavier 或 Kaiming 等初始化以及 LayerNorm 之"
        "后，元素的分布通常会近似满足它。",
    ),
    measures=Text(
        en="mean square of the components of q for normalised inputs; under the condition also the variance of the "
        "scaled logits, and the one nearer to the threshold is shown",
        zh="输入已归一化时 q 分量的均方值；在该条件下还包括缩放后 logit 的方差，并列出更接近界限的一个",
    ),
    holds_if=Text(en="the weights are Xavier's, of a square matrix", zh="采用方阵的 Xavier 初始化"),
    not_if=Text(en="they are Kaiming's", zh="采用 Kaiming 初始化"),
    remark=Text(
        en="A mean square does not test independence; the variance of the logits tests what the article needs of it, "
        "that variances add up. The means are 0 by the symmetry of the weights.",
        zh="均方值检验不了独立性；logit 的方差检验的是文中用到独立性之处，即方差可以相加。由权重的对称性，均值为 0。",
    ),
    theorem="start of q and k",
    evidence="tab-initialisation",
    reads=("initialisation",),
    widespread=True,
)
def standard_components(results: Results) -> Outcome:
    return under(_xavier(results), near(_layer(results, "kaiming_normal", "query_variance"), 1.0, CLOSE))


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
        en="variance of the outputs of the layer that makes q, over that of its inputs; under the condition also that "
        "of the scaled logits within a row, and the one nearer to the threshold is shown",
        zh="得到 q 的那一层，其输出与输入的方差之比；在该条件下还包括缩放后 logit 的行内方差，并列出更接近界限的一个",
    ),
    holds_if=Text(en="it is Xavier's for a square matrix", zh="采用方阵的 Xavier 初始化"),
    not_if=Text(en="it is He's", zh="采用 He 初始化"),
    remark=Text(
        en="He's keeps the variance in front of a ReLU, which q and k do not have. To a degree is read as: within the "
        "margin; with He's the scaled logits have a variance of 4.",
        zh="He 初始化针对的是后接 ReLU 的层，而 q 与 k 没有 ReLU。此处把“一定程度”理解为在允许的偏差之内；采用 He 初始"
        "化时，缩放后 logit 的方差为 4。",
    ),
    theorem="start of q and k",
    evidence="tab-initialisation",
    reads=("initialisation",),
)
def xavier_and_he(results: Results) -> Outcome:
    return under(_xavier(results), near(_layer(results, "kaiming_normal", "query_variance"), 1.0, CLOSE))


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
        en="mean over trained models of the share of heads whose mean squares of q and k have a product within 0.8 and "
        "1.25",
        zh="各已训练的模型中，q 与 k 的均方值之积落在 0.8 与 1.25 之间的头所占比例（按模型平均）",
    ),
    evidence="fig-real-heads",
    reads=("real_heads",),
    widespread=True,
)
def guarantee(results: Results) -> Test:
    heads = results.frame("real_heads")
    product = heads["independence_variance"] / heads["d_k"]
    return at_least(results.share_of_heads(product.between(*HEAD), heads["dump"]), ALMOST_ALL)


@claim(
    "C33",
    source="A",
    kind="simulated",
    says=Text(
        en="If LayerNorm fails, such as by a variance that is computed wrongly, the distribution that is assumed of q "
        "and k does not hold, and the scale does less.",
        zh="如果 LayerNorm 失效（例如方差计算错误），输入 Q、K 的分布假设就不成立，缩放因子的效果也会打折扣。",
    ),
    measures=Text(
        en="in the last layer of a random stack with the scale and without a normalisation: spread of the scaled "
        "logits, which should be 1, and entropy of the rows as a share of that of equal weights; the one nearer to "
        "the threshold is shown",
        zh="有缩放而没有归一化的随机网络堆叠中，最后一层缩放后 logit 的标准差（应当为 1），以及注意力行的熵与等权重时之"
        "比；此处列出更接近界限的一个",
    ),
    remark=Text(
        en="At the start of training, with residual connections; a failure is here that LayerNorm is not there at all.",
        zh="这是训练之初、带残差连接的情形；此处的失效是指完全没有 LayerNorm。",
    ),
    evidence="fig-depth",
    reads=("depth",),
)
def without_norm(results: Results) -> Outcome:
    spread, entropy = (_deep(results, "none", "1/sqrt(d_k)", name) for name in ("logit_std", "normalised_entropy"))
    return every(at_least(spread, CHANGED), at_most(entropy, CONCENTRATED))


@claim(
    "C34",
    source="A",
    kind="trained",
    says=Text(
        en="Initial weights that are too large break the assumption, and may need a smaller learning rate.",
        zh="过大的初始化权重会破坏输入分布的假设，可能需要配合更小的学习率。",
    ),
    measures=Text(
        en="largest learning rate of Adam at which a small model still gets a quarter of the way, with W_q and W_k "
        "twice as large over that with usual ones",
        zh="W_q、W_k 为通常的两倍时，用 Adam 训练的小模型仍能完成四分之一训练的最大学习率，与通常初始化时之比",
    ),
    remark=Text(
        en="It may, and need not: by plain gradient descent the rate hardly changes. That they break the assumption "
        "needs no test: the variance of the logits grows with the fourth power.",
        zh="可能如此，但并非必然：采用普通梯度下降时学习率几乎不变。破坏假设这一半无需检验：logit 的方差随倍数的四次方"
        "增长。",
    ),
    evidence="tab-claim-checks",
    reads=("claim_checks",),
)
def large_weights(results: Results) -> Test:
    return at_most(results.check("rate_of_large_weights", case="adam").geometric(), CHANGED.inverse())


@claim(
    "C44",
    source="B",
    kind="trained",
    says=Text(
        en="In actual training too, and even with techniques such as layer normalisation, unscaled scores are seen to "
        "become abnormally large.",
        zh="在实际训练中，即使使用了层归一化等技术，不缩放仍会观察到注意力得分异常增大的情况。",
    ),
    measures=Text(
        en="spread of the logits of models with LayerNorm after training, without the scale over with it, each at its "
        "best rate, d_k = 64",
        zh="带 LayerNorm 的模型在 d_k = 64、各取最佳学习率训练之后 logit 的标准差：不缩放与缩放之比",
    ),
    remark=Text(
        en="Abnormally is read as: compared with the scale. At the start the ratio is √d_k = 8 by definition; training "
        "adds to it.",
        zh="此处把“异常”理解为与缩放时相比。初始时按定义该比值为 √d_k = 8；训练使它进一步增大。",
    ),
    evidence="fig-training-telemetry",
    reads=("training",),
)
def normalised_and_unscaled(results: Results) -> Test:
    return at_least(Runs(results, "recall", 64).final_spread(), CHANGED)


@claim(
    "C52",
    source="B",
    kind="simulated",
    opinion=True,
    says=Text(
        en="Advice: check that the queries and keys have variance 1 at initialisation, as theory assumes.",
        zh="建议做初始化检查：验证 query 和 key 的初始化方差确实为 1，确保理论假设成立。",
    ),
    measures=Text(
        en="mean square of the components of q for normalised inputs and PyTorch's default linear layer",
        zh="输入已归一化、采用 PyTorch 线性层的默认初始化时 q 分量的均方值",
    ),
    remark=Text(
        en="This is advice; what it would find is measured. Xavier's for a square matrix has variance 1 (C4).",
        zh="这是建议；所测量的是照此检查会看到什么。方阵的 Xavier 初始化方差为 1（C4）。",
    ),
    theorem="start of q and k",
    evidence="tab-initialisation",
    reads=("initialisation",),
)
def initial_check(results: Results) -> Test:
    return near(_layer(results, "linear_default", "query_variance"), 1.0, CLOSE)


@claim(
    "C54",
    source="B",
    kind="trained",
    says=Text(
        en="In spite of LayerNorm and RMSNorm the division by √d_k stays indispensable.",
        zh="虽然有 LayerNorm、RMSNorm 等技术，√d_k 缩放仍然不可或缺。",
    ),
    measures=Text(
        en="share of right answers of small models with LayerNorm, without the scale minus that with it, each at its "
        "best rate, d_k = 64, on recall and on induction; the one that decides is shown",
        zh="d_k = 64、各取最佳学习率时，带 LayerNorm 的小模型在联想回忆与归纳头任务上不缩放与缩放的正确率之差；此处列出"
        "起决定作用的一个",
    ),
    remark=Text(
        en="Indispensable is read as: nothing trains without it. Recall does, and so does T5, whose queries start "
        "smaller instead. Induction, in some hundred steps, does not: the scale matters there. RMSNorm was not "
        "trained.",
        zh="此处把“不可或缺”理解为：没有它就什么也学不会。联想回忆学得会，T5 也是如此（其查询的权重初始值更小）。归纳"
        "任务在数百步内学不会，缩放在那里确实重要。没有训练采用 RMSNorm 的模型。",
    ),
    evidence="fig-training-curves",
    reads=VERDICTS,
)
def norms_and_scale(results: Results) -> Outcome:
    tasks = ("recall", "induction")
    lost = (results.against_reference("none", "accuracy", 64, task=task) for task in tasks)
    return every(*(at_most(one, RIGHT.times(-1)) for one in lost))


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
    untested=PART,
    remark=Text(
        en="B says the same. It holds at the start; whether training is stable with one alone was not tried.",
        zh="文章 B 也有此说。在初始状态它成立；只用其一时训练是否稳定，没有试验。",
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


@claim(
    "C75",
    source="B",
    kind="simulated",
    says=Text(
        en="Under a Transformer's standard initialisation all q_i and k_i are independent and identically distributed, "
        "with mean 0 and variance 1.",
        zh="在 Transformer 的标准初始化下，每个 q_i 和 k_i 都是独立同分布的随机变量，均值为 0，方差为 1。",
    ),
    measures=Text(en="those of C4; the one nearer to the threshold is shown", zh="同 C4；此处列出更接近界限的一个"),
    holds_if=Text(en="standard is Xavier's, for a square matrix", zh="“标准”是指方阵的 Xavier 初始化"),
    not_if=Text(en="it is what PyTorch's linear layer does by default", zh="“标准”是指 PyTorch 线性层的默认初始化"),
    remark=Text(
        en="As in C4 independence is tested by what is needed of it alone, that variances add up.",
        zh="同 C4，独立性只检验了所需的一点：方差可以相加。",
    ),
    theorem="start of q and k",
    evidence="tab-initialisation",
    reads=("initialisation",),
)
def standard_start(results: Results) -> Outcome:
    return under(_xavier(results), near(_layer(results, "linear_default", "query_variance"), 1.0, CLOSE))
