"""Claims on the mean, the variance and the tails of q·k."""

from sqrtdk.claims.core import PART, WHOLE, Measured, Outcome, Test, at_least, claim, every, near, under
from sqrtdk.claims.lookup import Results
from sqrtdk.claims.texts import Text
from sqrtdk.claims.thresholds import ALIGNED, ALMOST_ALL, CLOSE, EXPONENT, GROWING, HUNDREDS, MOMENT

SIZE = 64
HEAD = (0.8, 1.25)
"""Where a variance, or a product of mean squares, of a trained head counts as 1."""


def _variance(results: Results, *roles: str, d_k: int = SIZE) -> Measured:
    """Return Var(q·k)/d_k of an ensemble."""
    row = results.row("moments", ensemble=results.ensemble(*roles), d_k=d_k)
    return row.estimate("variance", "variance_se").scaled(1 / row.number("d_k"))


def _exponent(results: Results, role: str) -> Measured:
    ensemble = results.ensemble(role)
    return results.row("variance_laws", ensemble=ensemble, law="power", parameter="exponent").estimate()


@claim(
    "C1",
    source="A",
    kind="real",
    says=Text(
        en="The larger q·k is, the better the two vectors point in the same direction.",
        zh="点积越大，两个向量在方向上的对齐程度越高。",
    ),
    measures=Text(
        en="correlation of q·k with the cosine of the angle between q and k, of random vectors and, under the "
        "condition, of trained heads too; the one nearer to the threshold is shown",
        zh="q·k 与 q、k 夹角余弦的相关系数：随机向量，在该条件下还包括已训练的头；此处列出更接近界限的一个",
    ),
    holds_if=Text(
        en="the keys have nearly the same length, as random ones do, or the lengths of the trained model",
        zh="各个键的长度大致相同（如随机键），或取所用的已训练的模型中的长度",
    ),
    not_if=Text(en="their lengths vary as much as their mean", zh="键长度的标准差与均值相当"),
    evidence="tab-claim-checks",
    reads=("claim_checks",),
)
def alignment(results: Results) -> Outcome:
    cases = ("equal_lengths", "trained_heads", "unequal_lengths")
    equal, trained, unequal = (results.check("alignment", case=case).estimate() for case in cases)
    return under(every(at_least(equal, ALIGNED), at_least(trained, ALIGNED)), at_least(unequal, ALIGNED))


@claim(
    "C2",
    source="A",
    kind="simulated",
    says=Text(
        en="For independent components from N(0, 1) the variance of q·k grows linearly with d_k.",
        zh="当各分量独立地服从 N(0, 1) 时，q·k 的方差随 d_k 线性增长。",
    ),
    measures=Text(
        en="exponent of d_k in the variance, fitted over all widths", zh="在全部宽度上拟合得到的方差关于 d_k 的指数"
    ),
    theorem="variance of q·k",
    evidence="fig-exponents",
    reads=("variance_laws",),
)
def linear_growth(results: Results) -> Test:
    return near(_exponent(results, "standard"), 1.0, EXPONENT)


@claim(
    "C5",
    source="A",
    kind="simulated",
    says=Text(
        en="For independent components of mean 0 the mean of q·k is 0.",
        zh="当各分量独立且均值为 0 时，q·k 的均值为 0。",
    ),
    measures=Text(en="mean of q·k in units of its standard deviation", zh="以标准差为单位的 q·k 均值"),
    theorem="variance of q·k",
    evidence="tab-ensembles",
    reads=("moments",),
)
def mean_zero(results: Results) -> Test:
    row = results.row("moments", ensemble=results.ensemble("standard"), d_k=SIZE)
    return near(row.estimate("mean", "mean_se").scaled(row.number("variance") ** -0.5), 0.0, MOMENT)


@claim(
    "C6",
    source="A",
    kind="simulated",
    says=Text(
        en="The product of two independent components of mean 0 and variance 1 has variance 1.",
        zh="两个均值为 0、方差为 1 的独立分量，其乘积的方差为 1。",
    ),
    measures=Text(en="variance of q·k at the smallest width, over d_k", zh="最小宽度下 q·k 的方差除以 d_k"),
    theorem="variance of q·k",
    evidence="fig-variance-law",
    reads=("moments",),
)
def product(results: Results) -> Test:
    return near(_variance(results, "standard", d_k=1), 1.0, MOMENT)


@claim(
    "C7",
    source="A",
    kind="simulated",
    says=Text(
        en="Since all components are independent of each other, variances add up: Var(q·k) = d_k.",
        zh="由于各元素都相互独立，和的方差等于方差的和，因此 Var(q·k) = d_k。",
    ),
    measures=Text(
        en="Var(q·k)/d_k with independent components, and with those of q correlated; the one nearer to the threshold "
        "is shown",
        zh="分量相互独立，以及仅 q 的分量彼此相关时的 Var(q·k)/d_k；此处列出更接近界限的一个",
    ),
    remark=Text(
        en="Independence is more than is needed: one of the two sides is enough. Where both are correlated, see C70.",
        zh="独立性的要求偏强：只要有一方的分量互不相关即可。双方都相关的情形见 C70。",
    ),
    theorem="variance of q·k",
    evidence="fig-variance-law",
    reads=("moments",),
)
def independence(results: Results) -> Outcome:
    roles = ("standard", "correlated on one side")
    return every(*(near(_variance(results, role), 1.0, CLOSE) for role in roles))


@claim(
    "C8",
    source="A",
    kind="simulated",
    says=Text(
        en="At d_k = 64 the variance is 64; at 512 and more it is in the hundreds or even above a thousand.",
        zh="d_k = 64 时方差为 64；d_k 达到 512 甚至更大时，方差达到数百甚至上千。",
    ),
    measures=Text(
        en="variance of q·k at d_k = 64 over 64, and in hundreds at 512, where two are asked for, and at 1024, where "
        "ten are; the one nearest to the threshold is shown",
        zh="d_k = 64 处的方差除以 64，以及以百计的方差：512 处至少为 2，1024 处至少为 10；此处列出最接近界限的一个",
    ),
    theorem="variance of q·k",
    evidence="fig-variance-law",
    reads=("moments",),
)
def sizes(results: Results) -> Outcome:
    hundreds, thousand = (_variance(results, "standard", d_k=d_k).scaled(d_k / 100) for d_k in (512, 1024))
    return every(
        near(_variance(results, "standard"), 1.0, MOMENT),
        at_least(hundreds, HUNDREDS),
        at_least(thousand, HUNDREDS.times(5)),
    )


@claim(
    "C15",
    source="A",
    kind="simulated",
    says=Text(
        en="For a variance of 1 the factor 1/√d_k follows necessarily from the formula of the variance.",
        zh="要使缩放后点积的方差稳定在 1，由方差公式反推，1/√d_k 是必然结果。",
    ),
    measures=Text(
        en="power a of d_k for which the factor 1/d_k^a comes nearest to a constant variance, over the run's widths",
        zh="在本次运行的各个宽度上，使缩放因子 1/d_k^a 最接近让方差保持不变的幂次 a",
    ),
    remark=Text(
        en="For independent q and k, as the article assumes. That the variance should be 1 is C59.",
        zh="前提是 q 与 k 独立，如文中所设。方差是否应当为 1，见 C59。",
    ),
    theorem="variance of q·k",
    evidence="fig-exponents",
    reads=("variance_laws",),
)
def necessary(results: Results) -> Test:
    return near(_exponent(results, "standard").scaled(0.5), 0.5, EXPONENT.times(0.5))


@claim(
    "C16",
    source="A",
    kind="simulated",
    says=Text(
        en="After division by √d_k the variance is 1 at d_k = 64, 512 and 1024 alike.",
        zh="除以 √d_k 之后，无论 d_k 是 64、512 还是 1024，方差都是 1。",
    ),
    measures=Text(
        en="variance of the scaled scores at three widths; the one nearest to the threshold is shown",
        zh="三个宽度下缩放后得分的方差；此处列出最接近界限的一个",
    ),
    theorem="variance of q·k",
    evidence="fig-variance-law",
    reads=("moments",),
)
def unit_variance(results: Results) -> Outcome:
    return every(*(near(_variance(results, "standard", d_k=d_k), 1.0, MOMENT) for d_k in (64, 512, 1024)))


@claim(
    "C17",
    source="A",
    kind="simulated",
    says=Text(
        en="The range of softmax's inputs is stable: scaled scores stay within a reasonable one, and a large d_k "
        "brings no extreme values.",
        zh="输入 softmax 的值域稳定了：缩放后的点积值被限制在合理的范围内，不会因为 d_k 很大而出现极端值。",
    ),
    measures=Text(
        en="mean largest scaled score of a row of 64 keys, at d_k = 1024 over that at d_k = 64",
        zh="64 个键的一行中最大缩放得分的均值：d_k = 1024 与 d_k = 64 之比",
    ),
    remark=Text(
        en="Reasonable is read as the article explains it: no larger at a large d_k.",
        zh="此处按文中的解释理解“合理”：不会因为 d_k 很大而变大。",
    ),
    evidence="tab-claim-checks",
    reads=("claim_checks",),
)
def no_extremes(results: Results) -> Test:
    wide, usual = (results.check("largest_score", d_k=d_k).estimate() for d_k in (1024, SIZE))
    return near(wide.over(usual), 1.0, CLOSE)


@claim(
    "C41",
    source="B",
    kind="simulated",
    says=Text(
        en="For independent components of one distribution, of mean 0 and variance 1, Var(q·k) = d_k Var(q_i) "
        "Var(k_i) = d_k.",
        zh="各分量独立同分布、均值为 0、方差为 1 时，Var(q·k) = d_k Var(q_i) Var(k_i) = d_k。",
    ),
    measures=Text(
        en="Var(q·k) over d_k Var(q_i) Var(k_i), for independent Gaussian components of mean 0",
        zh="均值为 0 的独立高斯分量下 Var(q·k) 与 d_k Var(q_i) Var(k_i) 之比",
    ),
    remark=Text(
        en="The first equation needs no variance of 1. With means in both q and k the variance is larger. That the "
        "premise is met at the start, which the article says too, is C75.",
        zh="第一个等式并不要求方差为 1。若 q 与 k 的均值都不为 0，方差会更大。文中还说初始化满足这一前提，见 C75。",
    ),
    theorem="variance of q·k",
    evidence="fig-variance-law",
    reads=("moments",),
)
def formula(results: Results) -> Test:
    roles = ("centred", "standard")
    return near(_variance(results, *roles).scaled(1 / results.unit_variance(*roles)), 1.0, CLOSE)


@claim(
    "C43",
    source="B",
    kind="simulated",
    says=Text(
        en="The absolute value of q·k of random vectors grows and grows with the dimension, which makes the range that "
        "softmax gets extremely unstable.",
        zh="随着维度增加，随机向量点积的绝对值越来越大，这使得 softmax 的输入值域变得极不稳定。",
    ),
    measures=Text(
        en="exponent of the mean of |q·k| between d_k = 16 and d_k = 1024; the law is 1/2",
        zh="d_k 从 16 到 1024 之间 |q·k| 均值的指数（按定律为 1/2）",
    ),
    untested=PART,
    remark=Text(
        en="The growth was measured, and holds; what an extremely unstable range would be was not.",
        zh="所测量的是增长，它成立；“极不稳定”的值域没有检验。",
    ),
    evidence="tab-claim-checks",
    reads=("claim_checks",),
)
def size_grows(results: Results) -> Test:
    small, large = (results.check("mean_size", d_k=d_k).estimate() for d_k in (16, 1024))
    # The table holds the mean size over √d_k.
    growth = large.over(small).log2().scaled(1 / 6)
    return at_least(growth.shifted(0.5), GROWING)


@claim(
    "C50",
    source="B",
    kind="simulated",
    says=Text(
        en="The number that q·k has to be divided by for variance 1 is √d_k exactly, and no other value.",
        zh="要使方差为 1，q·k 应除以的数恰好是 √d_k，而不是其他任意值。",
    ),
    measures=Text(
        en="standard deviation of q·k over √d_k at four widths; the one nearest to the threshold is shown",
        zh="四个宽度下 q·k 的标准差除以 √d_k；此处列出最接近界限的一个",
    ),
    remark=Text(en="Why the paper uses it is C67.", zh="论文为何使用它，见 C67。"),
    theorem="variance of q·k",
    evidence="fig-variance-law",
    reads=("moments",),
)
def root(results: Results) -> Outcome:
    widths = (16, 64, 256, 1024)
    return every(*(near(_variance(results, "standard", d_k=d_k).power(0.5), 1.0, MOMENT) for d_k in widths))


@claim(
    "C53",
    source="B",
    kind="simulated",
    opinion=True,
    says=Text(
        en="Advice: assert the mean and the variance of the scores in the forward pass; watch the largest weights and "
        "the norm of the gradient.",
        zh="建议：在前向传播中断言注意力得分的均值和方差，监控最大注意力权重，并检查梯度范数。",
    ),
    measures=Text(
        en="what such an assertion does not see: variance of q·k within a row, which softmax sees, over that of all "
        "scores, of tokens with a common part",
        zh="这种断言看不到的一面：词元含有公共成分时，softmax 所见的行内方差与全部得分方差之比",
    ),
    evidence="tab-ensembles",
    reads=("moments",),
)
def pooled_variance(results: Results) -> Test:
    row = results.row("moments", ensemble=results.ensemble("shared tokens"), d_k=SIZE)
    within = row.estimate("within_row_variance", "within_row_variance_se")
    return near(within.over(row.estimate("variance", "variance_se")), 1.0, CLOSE)


@claim(
    "C70",
    source="A",
    kind="real",
    says=Text(
        en="Where the assumptions do not strictly hold, as in real networks, the factor is surprisingly robust and "
        "universal.",
        zh="在真实的神经网络中假设并不严格成立，但该因子展现出惊人的鲁棒性和普适性。",
    ),
    measures=Text(
        en="variance of the scaled scores with components correlated on one side, and on both; and mean over trained "
        "models of the share of heads in which that within a row is within 0.8 and 1.25; the one that decides is shown",
        zh="仅一方以及双方的分量彼此相关时缩放后得分的方差；各已训练的模型中缩放后得分的行内方差落在 0.8 与 1.25 之间的"
        "头所占比例（按模型平均）；此处列出起决定作用的一个",
    ),
    remark=Text(
        en="That models work with the factor is not in doubt; how robust that is was not measured. What was is whether "
        "the variance stays about 1: where one side alone is correlated, but neither with both nor in most trained "
        "heads.",
        zh="模型使用该因子能正常工作，这一点并无疑问；究竟有多鲁棒，没有测量。所测量的是方差是否仍约为 1：仅一方相关时"
        "如此，双方都相关时以及在大多数已训练的头中则不然。",
    ),
    untested=WHOLE,
    evidence="fig-real-heads",
    reads=("moments", "real_heads"),
)
def robust(results: Results) -> Outcome:
    one_side, both = (_variance(results, role) for role in ("correlated on one side", "correlated"))
    heads = results.frame("real_heads")
    unit = results.share_of_heads((heads["within_row_logit_std"] ** 2).between(*HEAD), heads["dump"])
    return every(near(one_side, 1.0, CLOSE), near(both, 1.0, CLOSE), at_least(unit, ALMOST_ALL))
