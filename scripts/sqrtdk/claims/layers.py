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


@claim(
    "C4",
    source="A",
    kind="simulated",
    says=Text(
        en="After initialisation such as Xavier's or Kaiming's and LayerNorm the components of q and k are usually "
        "about independent of each other, of mean 0 and variance 1.",
        zh="经过 Xavier 或 Kaiming 等初始化以及 LayerNorm 之后，q 与 k 的分量通常近似满足独立同分布、均值为 0、方差为 "
        "1。",
    ),
    measures=Text(
        en="mean square of the components of q for normalised inputs; under the condition also the variance of the "
        "scaled logits, and the one nearer to the threshold is shown",
        zh="输入已归一化时 q 分量的均方值；在该条件下还包括缩放后 logit 的方差，并列出更接近界限的一个",
    ),
    holds_if=Text(
        en="the weights are Xavier's, of a square matrix",
        zh="采用方阵的 Xavier 初始化",
    ),
    not_if=Text(
        en="they are Kaiming's",
        zh="采用 Kaiming 初始化",
    ),
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
    xavier, kaiming = (_layer(results, scheme, "query_variance") for scheme in ("xavier_uniform", "kaiming_normal"))
    logits = _layer(results, "xavier_uniform", "logit_variance")
    return under(every(near(xavier, 1.0, CLOSE), near(logits, 1.0, LOGITS)), near(kaiming, 1.0, CLOSE))


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
        "best rate, d_k = 64",
        zh="d_k = 64、各取最佳学习率时，带 LayerNorm 的小模型不缩放与缩放的正确率之差",
    ),
    holds_if=Text(
        en="two layers have to work together (induction), within some hundred steps",
        zh="任务需要两层协同（归纳任务），且只训练数百步",
    ),
    not_if=Text(
        en="one layer looks the answer up (recall)",
        zh="任务只需一层查找（回忆任务）",
    ),
    remark=Text(
        en="T5 has no factor: its queries start smaller instead. RMSNorm was not trained.",
        zh="T5 没有缩放因子，而是让查询的权重初始值更小。没有训练采用 RMSNorm 的模型。",
    ),
    evidence="fig-training-curves",
    reads=VERDICTS,
)
def norms_and_scale(results: Results) -> Outcome:
    together, alone = (results.against_reference("none", "accuracy", 64, task=task) for task in ("induction", "recall"))
    return under(at_most(together, RIGHT.times(-1)), at_most(alone, RIGHT.times(-1)))


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
