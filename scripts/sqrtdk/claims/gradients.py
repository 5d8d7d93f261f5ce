"""Claims on gradients before training: how much of them is left, and for which rows."""

from typing import Any

from sqrtdk.claims.core import Measured, Outcome, Test, at_least, at_most, claim, every, near, under
from sqrtdk.claims.lookup import REFERENCE, Results
from sqrtdk.claims.texts import Text
from sqrtdk.claims.thresholds import CHANGED, CLOSE, NO_LESS, VANISHING, WIDTH

SIZE, N_KEYS = 64, 64
FEW = 3
"""Keys of the article's own example."""


def _without_over_with(results: Results, measure: str, n_keys: int) -> Measured:
    """Return a measure of random rows at d_k = 64 without the scale over that with it."""
    setting: dict[str, Any] = dict(part="rows", n_keys=n_keys, measure=measure)
    plain, scaled = (
        results.row("worked_example", scaling=scaling, **setting).estimate() for scaling in ("none", REFERENCE)
    )
    return plain.over(scaled)


@claim(
    "C11",
    source="A",
    kind="simulated",
    says=Text(
        en="Without the scale, above all at initialisation, attention weights are almost one-hot, and gradients "
        "vanish.",
        zh="不缩放时，尤其在初始化阶段，注意力权重几乎变成 one-hot，导致梯度消失。",
    ),
    measures=Text(
        en="median over rows of the norm of softmax's Jacobian, without the scale over with it, d_k = 64",
        zh="d_k = 64 时，各行 softmax 雅可比矩阵范数的中位数：不缩放与缩放之比",
    ),
    holds_if=Text(
        en="there are 3 keys",
        zh="只有 3 个键",
    ),
    not_if=Text(
        en="there are 64 keys",
        zh="有 64 个键",
    ),
    remark=Text(
        en="This is the typical row; the sum over rows, which moves the weights, is C56.",
        zh="这里说的是典型的一行；决定权重更新的各行之和见 C56。",
    ),
    evidence="tab-before-after",
    reads=("worked_example",),
    widespread=True,
)
def typical_row(results: Results) -> Outcome:
    few, many = (_without_over_with(results, "jacobian_frobenius_median", n) for n in (FEW, N_KEYS))
    return under(at_most(few, VANISHING), at_most(many, VANISHING))


@claim(
    "C18",
    source="A",
    kind="simulated",
    says=Text(
        en="With the scale the inputs of softmax lie where its gradient is sensitive, and gradients do not vanish.",
        zh="缩放后，softmax 的输入处于其梯度敏感的区域，避免了梯度消失。",
    ),
    measures=Text(
        en="width above which the Jacobian of the median row is larger with the scale than without; it should be at "
        "most 64",
        zh="中位行的雅可比矩阵在缩放后反而更大的临界宽度（应不超过 64）",
    ),
    holds_if=Text(
        en="there are 16 keys",
        zh="有 16 个键",
    ),
    not_if=Text(
        en="there are 1024 keys",
        zh="有 1024 个键",
    ),
    evidence="fig-gradients",
    reads=("gradient_crossovers",),
    widespread=True,
)
def sensitive_zone(results: Results) -> Outcome:
    def crossover(n_keys: int) -> Measured:
        ensemble, measure = results.ensemble("standard"), "jacobian_frobenius"
        row = results.row("gradient_crossovers", n_keys=n_keys, ensemble=ensemble, measure=measure, quantity="median")
        return row.between("d_k_star", "ci_low", "ci_high")

    return under(at_most(crossover(16), WIDTH), at_most(crossover(1024), WIDTH))


@claim(
    "C40",
    source="B",
    kind="arithmetic",
    says=Text(
        en="At the scores (14, 10, 12) the gradient is almost zero, so that nothing can be learned.",
        zh="得分为 (14, 10, 12) 时梯度几乎为零，因而什么也学不到。",
    ),
    measures=Text(
        en="norm of the Jacobian over that of the article's healthy example (1.0, 0.5, 0.8)",
        zh="雅可比矩阵的范数与文中健康例子 (1.0, 0.5, 0.8) 的范数之比",
    ),
    evidence="tab-three-numbers",
    reads=("worked_example",),
    widespread=True,
)
def example_gradient(results: Results) -> Test:
    norms = (
        results.row("worked_example", part="triples", case=case, measure="jacobian_frobenius").exact()
        for case in ("large", "small")
    )
    large, small = norms
    return at_most(large.over(small), VANISHING)


@claim(
    "C48",
    source="B",
    kind="arithmetic",
    says=Text(
        en="The gradient of the loss by a logit is y_i (1 − y_i), which is nearly 0 where y_i is near 0 or 1.",
        zh="损失对 logit 的梯度为 y_i (1 − y_i)，当 y_i 接近 0 或 1 时几乎为 0。",
    ),
    measures=Text(
        en="largest error of the formula, for the cross-entropy of the smallest of (14, 10, 12)",
        zh="以 (14, 10, 12) 中最小者为目标的交叉熵下，该公式的最大误差",
    ),
    evidence="tab-claim-checks",
    reads=("claim_checks",),
    widespread=True,
)
def loss_gradient(results: Results) -> Test:
    return near(results.check("loss_formula_error").exact(), 0.0, CLOSE)


@claim(
    "C51",
    source="B",
    kind="simulated",
    says=Text(
        en="At d_k = 64 the scale makes the weights more even, and that keeps gradients flowing.",
        zh="d_k = 64 时，缩放使权重更均衡，从而保证梯度顺畅流动。",
    ),
    measures=Text(
        en="root mean square of the norm of the Jacobian, with the scale over without",
        zh="雅可比矩阵范数的均方根：缩放与不缩放之比",
    ),
    holds_if=Text(
        en="there are 3 keys, as in the article's example",
        zh="只有 3 个键，如文中的例子",
    ),
    not_if=Text(
        en="there are 64 keys",
        zh="有 64 个键",
    ),
    evidence="tab-before-after",
    reads=("worked_example",),
)
def even_weights(results: Results) -> Outcome:
    def ratio(n_keys: int) -> Measured:
        setting: dict[str, Any] = dict(part="rows", measure="jacobian_frobenius", n_keys=n_keys)
        scaled, plain = (
            results.row("worked_example", scaling=scaling, **setting).estimate() for scaling in (REFERENCE, "none")
        )
        return scaled.over(plain)

    return under(at_least(ratio(FEW), NO_LESS), at_least(ratio(N_KEYS), NO_LESS))


@claim(
    "C56",
    source="B",
    kind="simulated",
    says=Text(
        en="The chain: variance grows, the inputs of softmax become large, it saturates, and by that gradients "
        "vanish; the scale makes the variance exactly 1. What that brings is C71.",
        zh="认知链条：方差随维度线性增长，使 softmax 的输入过大，softmax 饱和造成梯度消失，缩放将方差精确控制为 1（"
        "其后果见 C71）。",
    ),
    measures=Text(
        en="its weakest link: root mean square over rows of the norm of ∂L/∂q, which adds up to the gradient of the "
        "weights, without the scale over with it, d_k = 64, at 3 keys and at 64; the one nearer to the threshold "
        "is shown",
        zh="其中最薄弱的一环：d_k = 64 时各行 ∂L/∂q 范数的均方根（它累积成权重的梯度），不缩放与缩放之比（3 个键与"
        " 64 个键；此处列出更接近界限的一个）",
    ),
    remark=Text(
        en="The gradient of the typical row does vanish at few keys (C11); the few rows that keep theirs outweigh it.",
        zh="键很少时，典型一行的梯度确实消失（C11）；但少数保有梯度的行在总和中占了上风。",
    ),
    evidence="tab-before-after",
    reads=("worked_example",),
    widespread=True,
)
def chain(results: Results) -> Outcome:
    return every(*(at_most(_without_over_with(results, "grad_query", n), VANISHING) for n in (FEW, N_KEYS)))


@claim(
    "C71",
    source="B",
    kind="arithmetic",
    says=Text(
        en="A stable variance brings an effective signal to learn from.",
        zh="稳定的方差带来有效的学习信号。",
    ),
    measures=Text(
        en="rows that a batch needs until its mean gradient of W_q points as well, where a planted key is to be found "
        "and nothing is learned yet, without the scale over with it, d_k = 64, at 3 keys and at 64; the one nearer "
        "to the threshold is shown",
        zh="任务为找到植入的键、尚未学到任何东西时，使一批样本的平均 W_q 梯度达到同样方向精度所需的行数：不缩放与缩"
        "放之比（d_k = 64，3 个键与 64 个键；此处列出更接近界限的一个）",
    ),
    remark=Text(
        en="Without the scale the signal is poorer, not gone.",
        zh="不缩放时学习信号变差，但并未消失。",
    ),
    evidence="fig-gradients",
    reads=("planted_gradient",),
)
def signal(results: Results) -> Outcome:
    def rows(n_keys: int) -> Measured:
        setting: dict[str, Any] = dict(rho=0.0, scaling="none")
        return results.row("planted_gradient", d_k=SIZE, n_keys=n_keys, **setting).exact("ratio")

    return every(*(at_least(rows(n_keys), CHANGED) for n_keys in (FEW, N_KEYS)))
