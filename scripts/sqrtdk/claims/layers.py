"""Claims on what initial weights and normalisations give, layer after layer."""

from typing import Any

from sqrtdk.claims.core import Measured, Outcome, Test, Text, at_least, claim, every, near, under
from sqrtdk.claims.lookup import Results

LAYER = 0.05
"""Relative margin of a mean square of components that should be 1."""
LOGITS = 0.1
"""The same of a variance of logits, in which two of them are multiplied."""
GROWN = 1.25
"""What has grown, or left 1, has done so at least by this factor."""
HEAD = (0.8, 1.25)
"""Where the product of the mean squares of q and k of a trained head counts as 1."""


def _layer(results: Results, scheme: str, quantity: str, **setting: Any) -> Measured:
    return results.row("initialisation", scheme=scheme, quantity=quantity, **setting).estimate()


@claim(
    "C3",
    source="A",
    kind="simulated",
    says=Text(
        en="Over several layers the large scores build up and push softmax into its flat region.",
        zh="经过若干层之后，很大的得分会不断累积，把 softmax 推入平坦区。",
    ),
    measures=Text(
        en="spread of the unscaled logits in the last layer of a random stack over that in the first",
        zh="随机网络堆叠中最后一层与第一层未缩放 logit 的标准差之比",
    ),
    holds_if=Text(
        en="the layers have no normalisation",
        zh="各层没有归一化",
    ),
    not_if=Text(
        en="a LayerNorm stands before attention",
        zh="注意力之前有 LayerNorm",
    ),
    evidence="fig-depth",
    reads=("depth",),
    widespread=True,
)
def depth(results: Results) -> Outcome:
    def growth(norm: str) -> Measured:
        setting: dict[str, Any] = dict(norm=norm, residual=True, scaling="none", measure="logit_std")
        layers = results.select("depth", **setting)["layer"]
        ends = layers.max(), layers.min()
        last, first = (results.row("depth", layer=layer, **setting).estimate() for layer in ends)
        return last.over(first)

    return under(at_least(growth("none"), GROWN), at_least(growth("pre_layernorm"), GROWN))


@claim(
    "C4",
    source="A",
    kind="simulated",
    says=Text(
        en="After usual initialisation and LayerNorm the components of q and k have mean 0 and variance 1.",
        zh="经过常用的初始化和 LayerNorm，q 与 k 的分量均值为 0、方差为 1。",
    ),
    measures=Text(
        en="mean square of the components of q for normalised inputs",
        zh="输入已归一化时 q 分量的均方值",
    ),
    holds_if=Text(
        en="the weights have variance 1/d_model, as LeCun's",
        zh="权重方差为 1/d_model，如 LeCun 初始化",
    ),
    not_if=Text(
        en="they are the default of PyTorch's attention layer",
        zh="采用 PyTorch 注意力层的默认初始化",
    ),
    evidence="tab-initialisation",
    reads=("initialisation",),
    widespread=True,
)
def standard_components(results: Results) -> Outcome:
    lecun, fused = (_layer(results, scheme, "query_variance") for scheme in ("lecun_normal", "xavier_fused"))
    return under(near(lecun, 1.0, LAYER), near(fused, 1.0, LAYER))


@claim(
    "C21",
    source="A",
    kind="simulated",
    says=Text(
        en="Xavier and He initialisation keep the variance, and with it the assumption behind the scale.",
        zh="Xavier 与 He 初始化能保持方差稳定，从而维持缩放因子所依赖的假设。",
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
        en="LayerNorm guarantees that components of q and k have about mean 0 and variance 1, in deep layers too.",
        zh="LayerNorm 保证 q 与 k 的分量均值约为 0、方差约为 1，在深层也是如此。",
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
    return at_least(results.share(product.between(*HEAD)), 0.9)


@claim(
    "C33",
    source="A",
    kind="simulated",
    says=Text(
        en="If LayerNorm fails, q and k no longer have the distribution that the scale assumes.",
        zh="一旦 LayerNorm 失效，q 与 k 就不再具有缩放所假设的分布。",
    ),
    measures=Text(
        en="standard deviation of the scaled logits without a normalisation",
        zh="没有归一化时缩放后 logit 的标准差",
    ),
    holds_if=Text(
        en="the inputs themselves have variance 4",
        zh="输入本身的方差为 4",
    ),
    not_if=Text(
        en="they have variance 1 anyway",
        zh="输入的方差本来就是 1",
    ),
    evidence="tab-normalisation",
    reads=("initialisation",),
)
def without_norm(results: Results) -> Outcome:
    large, unit = (_layer(results, scheme, "logit_std") for scheme in ("variance_4_x", "raw_x"))
    return under(at_least(large, GROWN), at_least(unit, GROWN))


@claim(
    "C34",
    source="A",
    kind="simulated",
    says=Text(
        en="Initial weights that are too large break the assumption, and may need another learning rate.",
        zh="初始权重过大会破坏该假设，并且可能需要调整学习率。",
    ),
    measures=Text(
        en="variance of the scaled logits with twice Xavier's weights; with plain gradient descent such weights are, "
        "step by step, a scale 4 times as large at a quarter of the rate",
        zh="权重为 Xavier 两倍时缩放后 logit 的方差；用普通梯度下降训练时，"
        "这样的权重逐步等价于 4 倍的缩放因子配合四分之一的学习率",
    ),
    evidence="tab-initialisation",
    reads=("initialisation", "claim_checks"),
)
def large_weights(results: Results) -> Outcome:
    twin = results.check("twice_the_weights").exact()
    return every(at_least(_layer(results, "xavier_gain_2", "logit_variance"), GROWN), near(twin, 0.0, 1e-9))


@claim(
    "C44",
    source="B",
    kind="simulated",
    says=Text(
        en="Even with layer normalisation unscaled scores grow with d_k.",
        zh="即使使用层归一化，未缩放的得分仍会随 d_k 增大。",
    ),
    measures=Text(
        en="exponent of d_k in the variance of unscaled logits, between d_k = 64 and 128",
        zh="d_k 从 64 到 128 之间未缩放 logit 方差的指数",
    ),
    holds_if=Text(
        en="the norm acts on the inputs of the layer",
        zh="归一化作用于层的输入",
    ),
    not_if=Text(
        en="q and k themselves are normalised to length 1",
        zh="q 与 k 本身被归一化为单位长度",
    ),
    evidence="tab-normalisation",
    reads=("initialisation",),
)
def normalised_and_unscaled(results: Results) -> Outcome:
    def exponent(scheme: str) -> Measured:
        # Scores of vectors of length 1 are not scaled either.
        wide, narrow = (_layer(results, scheme, "logit_variance", d_k=d_k) for d_k in (128, 64))
        return wide.over(narrow).log2()

    return under(near(exponent("plain_unscaled"), 1.0, LOGITS), near(exponent("l2_1"), 1.0, LOGITS))


@claim(
    "C52",
    source="B",
    kind="simulated",
    says=Text(
        en="A check of the initialisation finds queries and keys with variance 1.",
        zh="检查初始化会发现查询和键的方差确实为 1。",
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
    return under(near(xavier, 1.0, LAYER), near(linear, 1.0, LAYER))


@claim(
    "C54",
    source="B",
    kind="simulated",
    says=Text(
        en="LayerNorm and RMSNorm do not make the division by √d_k superfluous.",
        zh="LayerNorm 和 RMSNorm 不会使除以 √d_k 变得多余。",
    ),
    measures=Text(
        en="standard deviation of the unscaled logits at d_k = 64 of normalised queries and keys",
        zh="d_k = 64 时，归一化后的查询与键给出的未缩放 logit 的标准差",
    ),
    holds_if=Text(
        en="q and k keep a length of √d_k, as after RMSNorm",
        zh="q 与 k 的长度保持为 √d_k，如 RMSNorm 之后",
    ),
    not_if=Text(
        en="they are normalised to length 1",
        zh="q 与 k 被归一化为单位长度",
    ),
    evidence="tab-normalisation",
    reads=("initialisation",),
)
def norms_and_scale(results: Results) -> Outcome:
    norm, unit = (_layer(results, scheme, "logit_std", d_k=64) for scheme in ("rmsnorm_unscaled", "l2_1"))
    return under(at_least(norm, GROWN), at_least(unit, GROWN))
