"""Claims on the mean, the variance and the tails of q·k."""

from sqrtdk.claims.core import Measured, Outcome, Test, Text, at_least, claim, every, near, under
from sqrtdk.claims.lookup import Results

EXPONENT = 0.02
"""Margin of an exponent of d_k."""
MOMENT = 0.02
"""Relative margin of a variance or a standard deviation, and of a mean in standard deviations."""
CONDITION = 0.05
"""Relative margin where a condition separates a variance that follows d_k from one that does not."""
SIZE = 64


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
    kind="simulated",
    says=Text(
        en="The larger q·k is, the better the two vectors point in the same direction.",
        zh="q·k 越大，两个向量的方向就越一致。",
    ),
    measures=Text(
        en="correlation of q·k with the cosine of the angle between q and k",
        zh="q·k 与 q、k 夹角余弦的相关系数",
    ),
    holds_if=Text(
        en="the keys have nearly the same length",
        zh="各个键的长度大致相同",
    ),
    not_if=Text(
        en="their lengths vary as much as their mean",
        zh="键长度的标准差与均值相当",
    ),
    evidence="tab-claim-checks",
    reads=("claim_checks",),
)
def alignment(results: Results) -> Outcome:
    inside, outside = (results.check("alignment", case=f"{case}_lengths").estimate() for case in ("equal", "unequal"))
    return under(at_least(inside, 0.95), at_least(outside, 0.95))


@claim(
    "C2",
    source="A",
    kind="simulated",
    says=Text(
        en="For components from N(0, 1) the variance of q·k grows in proportion to d_k.",
        zh="当分量服从 N(0, 1) 时，q·k 的方差与 d_k 成正比。",
    ),
    measures=Text(
        en="exponent of d_k in the variance, fitted over all widths",
        zh="在全部宽度上拟合得到的方差关于 d_k 的指数",
    ),
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
    measures=Text(
        en="mean of q·k in units of its standard deviation",
        zh="以标准差为单位的 q·k 均值",
    ),
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
    measures=Text(
        en="variance of q·k at the smallest width, over d_k",
        zh="最小宽度下 q·k 的方差除以 d_k",
    ),
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
        en="Var(q·k) = d_k, because all components are independent of each other.",
        zh="Var(q·k) = d_k，原因在于所有分量相互独立。",
    ),
    measures=Text(
        en="Var(q·k)/d_k with correlated components of unit variance",
        zh="分量方差为 1 但彼此相关时的 Var(q·k)/d_k",
    ),
    holds_if=Text(
        en="at least one of q and k has uncorrelated components",
        zh="q 与 k 中至少有一方的分量互不相关",
    ),
    not_if=Text(
        en="both have correlated components",
        zh="双方的分量都彼此相关",
    ),
    evidence="fig-variance-law",
    reads=("moments",),
    widespread=True,
)
def independence(results: Results) -> Outcome:
    one_side, both = (_variance(results, role) for role in ("correlated on one side", "correlated"))
    return under(near(one_side, 1.0, CONDITION), near(both, 1.0, CONDITION))


@claim(
    "C8",
    source="A",
    kind="simulated",
    says=Text(
        en="At d_k = 64 the variance is 64; at 512 and more it is in the hundreds.",
        zh="d_k = 64 时方差为 64；d_k 达到 512 或更大时，方差为数百以上。",
    ),
    measures=Text(
        en="variance of q·k at d_k = 64 over 64, and at 512 in hundreds",
        zh="d_k = 64 处的方差除以 64，以及 512 处以百计的方差",
    ),
    evidence="fig-variance-law",
    reads=("moments",),
)
def sizes(results: Results) -> Outcome:
    wide = results.row("moments", ensemble=results.ensemble("standard"), d_k=512).estimate("variance", "variance_se")
    return every(near(_variance(results, "standard"), 1.0, MOMENT), at_least(wide.scaled(0.01), 2.0))


@claim(
    "C15",
    source="A",
    kind="simulated",
    says=Text(
        en="A variance that does not depend on d_k needs the factor 1/√d_k and no other power of d_k.",
        zh="要使方差与 d_k 无关，因子必须是 1/√d_k，而不能是 d_k 的其他幂次。",
    ),
    measures=Text(
        en="power a of d_k for which the factor 1/d_k^a comes nearest to a constant variance, over the run's widths",
        zh="在本次运行的各个宽度上，使因子 1/d_k^a 最接近让方差保持不变的幂次 a",
    ),
    holds_if=Text(
        en="q and k are independent and one of them has uncorrelated components",
        zh="q 与 k 独立，且其中一方的分量互不相关",
    ),
    not_if=Text(
        en="both have correlated components",
        zh="双方的分量都彼此相关",
    ),
    evidence="fig-exponents",
    reads=("variance_laws",),
)
def necessary(results: Results) -> Outcome:
    inside, outside = (_exponent(results, role).scaled(0.5) for role in ("standard", "correlated"))
    return under(near(inside, 0.5, EXPONENT / 2), near(outside, 0.5, EXPONENT / 2))


@claim(
    "C16",
    source="A",
    kind="simulated",
    says=Text(
        en="After division by √d_k the variance is 1 at d_k = 64, 512 and 1024 alike.",
        zh="除以 √d_k 之后，无论 d_k 是 64、512 还是 1024，方差都是 1。",
    ),
    measures=Text(
        en="variance of the scaled scores at three widths; the one farthest from certainty is shown",
        zh="三个宽度下缩放后得分的方差；此处列出其中最关键的一个",
    ),
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
        en="Scaled scores stay in one range: a wide head brings no extreme values.",
        zh="缩放后的得分保持在固定范围内：头再宽也不会出现极端值。",
    ),
    measures=Text(
        en="mean largest scaled score of a row of 64 keys, at d_k = 1024 over that at d_k = 64",
        zh="64 个键的一行中最大缩放得分的均值：d_k = 1024 与 d_k = 64 之比",
    ),
    evidence="tab-claim-checks",
    reads=("claim_checks",),
)
def no_extremes(results: Results) -> Test:
    wide, usual = (results.check("largest_score", d_k=d_k).estimate() for d_k in (1024, SIZE))
    return near(wide.over(usual), 1.0, CONDITION)


@claim(
    "C41",
    source="B",
    kind="simulated",
    says=Text(
        en="Var(q·k) = d_k Var(q_i) Var(k_i).",
        zh="Var(q·k) = d_k Var(q_i) Var(k_i)。",
    ),
    measures=Text(
        en="Var(q·k) over d_k Var(q_i) Var(k_i), for independent Gaussian components",
        zh="独立高斯分量下 Var(q·k) 与 d_k Var(q_i) Var(k_i) 之比",
    ),
    holds_if=Text(
        en="the components have mean 0",
        zh="各分量均值为 0",
    ),
    not_if=Text(
        en="both q and k have a mean",
        zh="q 与 k 的均值都不为 0",
    ),
    evidence="fig-variance-law",
    reads=("moments",),
)
def formula(results: Results) -> Outcome:
    def ratio(*roles: str) -> Measured:
        return _variance(results, *roles).scaled(1 / results.unit_variance(*roles))

    return under(near(ratio("centred", "standard"), 1.0, CONDITION), near(ratio("shifted"), 1.0, CONDITION))


@claim(
    "C43",
    source="B",
    kind="simulated",
    says=Text(
        en="The size of q·k of random vectors grows with d_k, as its square root.",
        zh="随机向量的 |q·k| 随 d_k 增大，按平方根增长。",
    ),
    measures=Text(
        en="exponent of the mean of |q·k| between d_k = 16 and d_k = 1024",
        zh="d_k 从 16 到 1024 之间 |q·k| 均值的指数",
    ),
    evidence="tab-claim-checks",
    reads=("claim_checks",),
)
def size_grows(results: Results) -> Test:
    small, large = (results.check("mean_size", d_k=d_k).estimate() for d_k in (16, 1024))
    # The table holds the mean size over √d_k.
    growth = large.over(small).log2().scaled(1 / 6)
    return near(growth.shifted(0.5), 0.5, EXPONENT)


@claim(
    "C50",
    source="B",
    kind="simulated",
    says=Text(
        en="The number that q·k has to be divided by for variance 1 is √d_k exactly.",
        zh="要使方差为 1，q·k 应除以的数恰好是 √d_k。",
    ),
    measures=Text(
        en="standard deviation of q·k over √d_k at four widths; the one farthest from certainty is shown",
        zh="四个宽度下 q·k 的标准差除以 √d_k；此处列出其中最关键的一个",
    ),
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
    says=Text(
        en="An assertion on the mean and variance of all scores in the forward pass guards what softmax gets.",
        zh="在前向传播中断言全部得分的均值和方差，就能守住 softmax 的输入。",
    ),
    measures=Text(
        en="variance of q·k within a row, which softmax sees, over the variance of all scores",
        zh="softmax 所见的行内方差与全部得分方差之比",
    ),
    holds_if=Text(
        en="the keys are independent of each other",
        zh="各个键相互独立",
    ),
    not_if=Text(
        en="tokens have a common part, which cancels in softmax",
        zh="词元含有公共成分，它在 softmax 中会被抵消",
    ),
    evidence="tab-ensembles",
    reads=("moments",),
)
def pooled_variance(results: Results) -> Outcome:
    def share(role: str) -> Measured:
        row = results.row("moments", ensemble=results.ensemble(role), d_k=SIZE)
        within = row.estimate("within_row_variance", "within_row_variance_se")
        return within.over(row.estimate("variance", "variance_se"))

    return under(near(share("standard"), 1.0, CONDITION), near(share("shared tokens"), 1.0, CONDITION))
