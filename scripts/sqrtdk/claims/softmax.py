"""Claims on what softmax makes of scores, and on examples of three numbers."""

from sqrtdk.claims.core import PART, Measured, Outcome, Test, at_least, at_most, claim, every, near, under
from sqrtdk.claims.lookup import REFERENCE, Results
from sqrtdk.claims.texts import Text
from sqrtdk.claims.thresholds import (
    ALMOST_ALL,
    CHANGED,
    DIGIT,
    EASILY,
    MOST,
    NEARLY_ONE,
    ROUNDING,
    SENSITIVE,
    SEVERAL,
    VANISHING,
)

SIZE, N_KEYS = 64, 64
LARGEST_ROW = 8**-0.5
"""The most that the norm of a row of the Jacobian can be, at two weights of one half."""
LAST_DIGIT = {"small": 0.01, "large": 0.001}
"""The last digit of the weights that are printed beside an example."""
THREE = (1, 2, 3)


def _example(results: Results, case: str, measure: str) -> Measured:
    return results.row("worked_example", part="triples", case=case, measure=measure).exact()


def _probability(results: Results, measure: str) -> Measured:
    return results.row("worked_example", part="probabilities", measure=measure).estimate()


def _farthest(results: Results, *examples: tuple[str, str]) -> Measured:
    """Return the largest difference of three numbers of two examples, each given by its case and measure."""
    first, second = ([_example(results, case, f"{measure}_{i}") for i in THREE] for case, measure in examples)
    gaps = [number.minus(other) for number, other in zip(first, second, strict=True)]
    return max((gap.scaled(-1) if gap.value < 0 else gap for gap in gaps), key=lambda gap: gap.value)


@claim(
    "C9",
    source="A",
    kind="arithmetic",
    identity=True,
    says=Text(
        en="If one score is far above all others, its weight comes as near to 1 as one likes and those of all others "
        "to 0.",
        zh="若某个得分远大于其余得分，其权重会无限接近 1，其余权重无限接近 0。",
    ),
    measures=Text(
        en="weight of a logit that is ln n + 10 above all others, at 64 and at 1 048 576 keys; the smaller one is "
        "shown",
        zh="比其余 logit 都高出 ln n + 10 的 logit 的权重（64 个键和 1 048 576 个键）；此处列出较小的一个",
    ),
    remark=Text(
        en="Far means far above ln n: 10 above the others gives 0.997 at 64 keys and 0.02 at 1 048 576.",
        zh="“远大于”须以 ln n 衡量：只高出 10 时，64 个键下的权重为 0.997，1 048 576 个键下仅为 0.02。",
    ),
    evidence="tab-claim-checks",
    reads=("claim_checks",),
)
def far_logit(results: Results) -> Outcome:
    weights = (results.check("far_logit_weight", case="beyond_ln_n", n_keys=n).exact() for n in (64, 2**20))
    return every(*(at_least(weight, NEARLY_ONE) for weight in weights))


@claim(
    "C10",
    source="A",
    kind="simulated",
    says=Text(
        en="Without the scale nearly all the weight falls on one or two keys that happen to have large scores.",
        zh="不缩放时，几乎全部权重都落在一两个碰巧得分很大的键上。",
    ),
    measures=Text(
        en="mean weight of the two largest keys of a row, unscaled, d_k = 64",
        zh="d_k = 64、不缩放时，一行中最大的两个权重之和的均值",
    ),
    holds_if=Text(en="there are 16 keys", zh="有 16 个键"),
    not_if=Text(en="there are 1024 keys", zh="有 1024 个键"),
    evidence="tab-claim-checks",
    reads=("claim_checks",),
    widespread=True,
)
def top_two(results: Results) -> Outcome:
    few, many = (results.check("top_two_weight", n_keys=n).estimate() for n in (16, 1024))
    return under(at_least(few, ALMOST_ALL), at_least(many, ALMOST_ALL))


@claim(
    "C12",
    source="A",
    kind="arithmetic",
    identity=True,
    says=Text(
        en="The derivative of softmax is ∂p_i/∂z_j = p_i (δ_ij − p_j).",
        zh="softmax 的导数为 ∂p_i/∂z_j = p_i (δ_ij − p_j)。",
    ),
    measures=Text(
        en="largest difference between the formula and derivatives by complex steps",
        zh="公式与复步长求导结果之间的最大差异",
    ),
    evidence="tab-claim-checks",
    reads=("claim_checks",),
)
def derivative(results: Results) -> Test:
    return near(results.check("jacobian_formula_error").exact(), 0.0, ROUNDING)


@claim(
    "C13",
    source="A",
    kind="simulated",
    identity=True,
    says=Text(
        en="In a nearly one-hot row the components other than the largest have almost no gradient. What that does to "
        "learning is C74.",
        zh="当输出接近 one-hot 时，非最大分量的梯度接近于 0（对学习的影响见 C74）。",
    ),
    measures=Text(
        en="norm of the Jacobian's row of the runner-up over the largest possible one, in rows with a weight above "
        "0.99",
        zh="最大权重超过 0.99 的行中，第二大分量对应的雅可比矩阵行的范数与其可能的最大值之比",
    ),
    remark=Text(
        en="A weight above 0.99 bounds it by 0.04 whatever the scores are; the largest component has no gradient "
        "either.",
        zh="只要最大权重超过 0.99，无论得分如何该值都不会超过 0.04；最大分量同样没有梯度。",
    ),
    evidence="tab-claim-checks",
    reads=("claim_checks",),
)
def one_hot(results: Results) -> Test:
    row = results.check("one_hot_gradient", case="runner_up", n_keys=N_KEYS)
    return at_most(row.estimate().scaled(1 / LARGEST_ROW), VANISHING)


@claim(
    "C19",
    source="A",
    kind="simulated",
    says=Text(
        en="With the scale attention is softer: softmax is no longer so sharp, which allows a model to attend to "
        "several relevant tokens at once.",
        zh="缩放后注意力分布更“柔和”：softmax 的输出不再那么尖锐，允许模型同时关注多个相关的词元。",
    ),
    measures=Text(
        en="effective number of keys 1/Σp² of a row, d_k = 64, n = 64: with the scale, and with it over without; the "
        "one nearer to the threshold is shown",
        zh="d_k = 64、n = 64 时一行的有效键数 1/Σp²：缩放时的值，以及缩放与不缩放之比；此处列出更接近界限的一个",
    ),
    remark=Text(
        en="The claim is that several can share the weight, and random keys do; whether those that do in a trained "
        "model are the relevant ones is another question.",
        zh="文中说的是允许权重分给多个键，随机键即是如此；已训练的模型中得到权重的是否为相关的键，是另一个问题。",
    ),
    evidence="fig-saturation",
    reads=("softmax_saturation",),
)
def several_keys(results: Results) -> Outcome:
    setting = dict(ensemble=results.ensemble("standard"), measure="effective_keys")
    scaled, plain = (
        results.row("softmax_saturation", d_k=SIZE, n_keys=N_KEYS, scaling=scaling, **setting).estimate()
        for scaling in (REFERENCE, "none")
    )
    return every(at_least(scaled.over(plain), CHANGED), at_least(scaled, SEVERAL))


@claim(
    "C28",
    source="A",
    kind="simulated",
    says=Text(
        en="With the right scale the scores that are monitored before they are scaled stay in a fairly stable range, "
        "such as most of them between −10 and 10.",
        zh="正确缩放时，所监控的缩放前的点积值被控制在相对稳定的范围内，例如大部分落在 [−10, 10]。",
    ),
    measures=Text(
        en="share of the scores of random vectors, before they are scaled, that are within ±10",
        zh="随机向量缩放前的点积落在 ±10 以内的比例",
    ),
    holds_if=Text(
        en="d_k = 64, at the start of training, when queries and keys are as random ones",
        zh="d_k = 64，且在训练之初，查询与键如同随机向量",
    ),
    not_if=Text(en="d_k = 256, at the start of training", zh="d_k = 256，同样在训练之初"),
    untested=PART,
    remark=Text(
        en="Whether they stay there while a model trains was not tested. At the start it is as told at d_k = 64, and "
        "not at 256, whatever the scale; in the trained model here it is about half of the scores, at d_k = 32.",
        zh="它们在训练过程中是否保持在该范围内没有检验。训练之初，d_k = 64 时如所列，256 时则不然，且与缩放无关；在"
        "这里已训练的模型中（d_k = 32），约有一半的点积如此。",
    ),
    evidence="tab-claim-checks",
    reads=("claim_checks",),
)
def within_ten(results: Results) -> Outcome:
    usual, wide = (results.check("share_within", case="limit_10_unscaled", d_k=d_k).estimate() for d_k in (SIZE, 256))
    return under(at_least(usual, MOST), at_least(wide, MOST))


@claim(
    "C38",
    source="B",
    kind="simulated",
    says=Text(
        en="With a standard start (mean 0, variance 1) unscaled scores at d_k = 64 easily reach the magnitude of (14, "
        "10, 12).",
        zh="采用标准随机初始化（均值 0，方差 1）时，d_k = 64 且不缩放的得分很容易达到 (14, 10, 12) 这样的量级。",
    ),
    measures=Text(
        en="share of scores beyond ±10, the least of the three", zh="超出 ±10（三个数中最小者）的得分所占比例"
    ),
    remark=Text(
        en="All three at once are at least 10 in one row of a thousand; what softmax sees of them, gaps of 4 and 2, "
        "is less than usual.",
        zh="三个得分同时不小于 10 的行约千分之一；而 softmax 所见的只是差距 4 与 2，比通常的还小。",
    ),
    evidence="tab-claim-checks",
    reads=("claim_checks",),
)
def typical_example(results: Results) -> Test:
    within = results.check("share_within", case="limit_10_unscaled", d_k=SIZE).estimate()
    return at_least(within.scaled(-1).shifted(1), EASILY)


@claim(
    "C39",
    source="B",
    kind="arithmetic",
    says=Text(
        en="Of the scores (14, 10, 12) the largest takes about 87 % of the weight.",
        zh="对得分 (14, 10, 12)，最大者约占 87 % 的权重。",
    ),
    measures=Text(en="its weight", zh="该权重"),
    theorem="weights of (14, 10, 12)",
    evidence="tab-three-numbers",
    reads=("worked_example",),
)
def eighty_seven(results: Results) -> Test:
    return near(_example(results, "large", "weight_1"), 0.87, DIGIT.times(0.01))


@claim(
    "C42",
    source="B",
    kind="simulated",
    says=Text(
        en="At d_k = 64 unscaled scores have a standard deviation of about 8 and easily reach ±16 and more.",
        zh="d_k = 64 时，不缩放的得分的标准差约为 8，很容易达到 ±16 甚至更大。",
    ),
    measures=Text(en="share of cases with a score beyond ±16", zh="出现超过 ±16 的得分的比例"),
    holds_if=Text(en="a case is a row of 64 keys", zh="以 64 个键的一行为单位"),
    not_if=Text(en="it is a single score, as in C38", zh="以单个得分为单位（同 C38）"),
    remark=Text(
        en="That the standard deviation is 8 is C16. Of single scores it is a near miss.",
        zh="标准差为 8 见 C16。以单个得分为单位时只差一点。",
    ),
    evidence="tab-before-after",
    reads=("worked_example",),
)
def sixteen(results: Results) -> Outcome:
    row, single = (_probability(results, measure) for measure in ("any_wide", "wide"))
    return under(at_least(row, EASILY), at_least(single, EASILY))


@claim(
    "C45",
    source="B",
    kind="arithmetic",
    says=Text(
        en="Softmax of (1.0, 0.5, 0.8) is (0.41, 0.20, 0.39).", zh="(1.0, 0.5, 0.8) 的 softmax 是 (0.41, 0.20, 0.39)。"
    ),
    measures=Text(en="largest error of the three printed weights", zh="三个印出的权重的最大误差"),
    evidence="tab-three-numbers",
    reads=("worked_example",),
    widespread=True,
)
def small_example(results: Results) -> Test:
    return near(
        _farthest(results, ("small", "printed_weight"), ("small", "weight")), 0.0, DIGIT.times(LAST_DIGIT["small"])
    )


@claim(
    "C46",
    source="B",
    kind="arithmetic",
    says=Text(
        en="Softmax of (14, 10, 12) is (0.867, 0.016, 0.117).", zh="(14, 10, 12) 的 softmax 是 (0.867, 0.016, 0.117)。"
    ),
    measures=Text(en="largest error of the three printed weights", zh="三个印出的权重的最大误差"),
    theorem="weights of (14, 10, 12)",
    evidence="tab-three-numbers",
    reads=("worked_example",),
)
def large_example(results: Results) -> Test:
    return near(
        _farthest(results, ("large", "printed_weight"), ("large", "weight")), 0.0, DIGIT.times(LAST_DIGIT["large"])
    )


@claim(
    "C47",
    source="B",
    kind="arithmetic",
    says=Text(
        en="The weights of (14, 10, 12) are those of (1.0, 0.5, 0.8) after its numbers grew tenfold.",
        zh="(14, 10, 12) 的权重就是把 (1.0, 0.5, 0.8) 放大十倍后的权重。",
    ),
    measures=Text(en="largest difference to the weights of (10, 5, 8)", zh="与 (10, 5, 8) 的权重的最大差异"),
    remark=Text(
        en="That the largest then takes almost all of the weight is C73.",
        zh="“最大的值几乎垄断了全部注意力权重”见 C73。",
    ),
    evidence="tab-three-numbers",
    reads=("worked_example",),
)
def tenfold(results: Results) -> Test:
    return near(
        _farthest(results, ("large", "weight"), ("small_times_10", "weight")), 0.0, DIGIT.times(LAST_DIGIT["large"])
    )


@claim(
    "C62",
    source="A",
    kind="arithmetic",
    says=Text(en="Softmax is very sensitive to the size of its inputs.", zh="softmax 对输入的大小非常敏感。"),
    measures=Text(en="change of the largest weight of (1.0, 0.5, 0.8)", zh="(1.0, 0.5, 0.8) 中最大权重的变化"),
    holds_if=Text(
        en="all inputs, and with them their differences, are multiplied by 10", zh="全部输入（连同其差距）都乘以 10"
    ),
    not_if=Text(
        en="all inputs are shifted by 1: softmax is blind to a common size",
        zh="全部输入同时平移 1：softmax 看不到公共的大小",
    ),
    evidence="tab-claim-checks",
    reads=("worked_example", "claim_checks"),
)
def sensitive(results: Results) -> Outcome:
    tenfold, once = (_example(results, case, "weight_1") for case in ("small_times_10", "small"))
    shifted = results.check("shifted_from_softmax").exact()
    return under(at_least(tenfold.minus(once), SENSITIVE), at_least(shifted, SENSITIVE))


@claim(
    "C73",
    source="B",
    kind="arithmetic",
    says=Text(
        en="At the scores (14, 10, 12) the largest takes almost all of the weight, and the others are almost "
        "completely ignored.",
        zh="得分为 (14, 10, 12) 时，最大的值几乎垄断了全部注意力权重，其他值几乎被完全忽略。",
    ),
    measures=Text(en="weight of the largest", zh="最大者的权重"),
    evidence="tab-three-numbers",
    reads=("worked_example",),
)
def winner_takes_all(results: Results) -> Test:
    return at_least(_example(results, "large", "weight_1"), ALMOST_ALL)
