"""Claims on gradients before training: how much of them is left, and for which rows."""

from typing import Any

from sqrtdk.claims.core import PART, Measured, Outcome, Test, at_least, at_most, claim, either, every, near, under
from sqrtdk.claims.lookup import REFERENCE, Results
from sqrtdk.claims.runs import Runs
from sqrtdk.claims.texts import Text
from sqrtdk.claims.thresholds import CHANGED, CLOSE, NOT_LEARNED, VANISHING

SIZE, N_KEYS = 64, 64
FEW = 3
"""Keys of the article's own example."""
WIDE = 1024
LARGEST = 0.5
"""The most that the norm of the Jacobian can be, at two weights of one half."""


def _without_over_with(results: Results, measure: str, n_keys: int) -> Measured:
    """Return a measure of random rows at d_k = 64 without the scale over that with it."""
    setting: dict[str, Any] = dict(part="rows", n_keys=n_keys, measure=measure)
    plain, scaled = (
        results.row("worked_example", scaling=scaling, **setting).estimate() for scaling in ("none", REFERENCE)
    )
    return plain.over(scaled)


@claim(
    "C3",
    source="A",
    kind="simulated",
    says=Text(
        en="Where d_k is large, the large unscaled scores may, after several layers of a deep network, push softmax "
        "into a region where its gradient is extremely flat, that of vanishing gradients. What that does to training "
        "is C74.",
        zh="当 d_k 很大时，经过若干层前向传播后，这些巨大的值可能会把 softmax 推入梯度极其平缓的区域，即“梯度消失”区"
        "（对训练的影响见 C74）。",
    ),
    measures=Text(
        en="median over rows of the norm of softmax's Jacobian, without the scale over with it: at d_k = 64 with 3 "
        "keys, and at d_k = 1024 with 64; the one nearer to the threshold is shown",
        zh="各行 softmax 雅可比矩阵范数的中位数，不缩放与缩放之比：d_k = 64、3 个键，以及 d_k = 1024、64 个键；此处列"
        "出更接近界限的一个",
    ),
    remark=Text(
        en="It may, and need not: at d_k = 64 with 64 keys the typical gradient is no smaller than with the scale. It "
        "takes no several layers: this is one, and the spread of unscaled logits is as large in the first layer of a "
        "stack as in the last.",
        zh="可能如此，但并非必然：d_k = 64、64 个键时，典型的梯度并不比缩放时小。这也与层数无关：这里只有一层；在多层堆"
        "叠中，第一层的不缩放的 logit 与最后一层同样分散。",
    ),
    evidence="tab-before-after",
    reads=("worked_example", "gradient_by_keys"),
)
def flat_region(results: Results) -> Outcome:
    few = _without_over_with(results, "jacobian_frobenius_median", FEW)
    setting: dict[str, Any] = dict(measure="jacobian_frobenius", quantity="median")
    wide = results.row("gradient_by_keys", d_k=WIDE, n_keys=N_KEYS, **setting).between("ratio", "low", "high")
    return every(at_most(few, VANISHING), at_most(wide, VANISHING))


@claim(
    "C11",
    source="A",
    kind="trained",
    says=Text(
        en="In actual training, above all at initialisation or without the scale, one easily sees where gradients are "
        "monitored that attention is almost one-hot, and that gradients vanish by that.",
        zh="在实际训练中，尤其在初始化阶段或不缩放时，很容易在梯度监控中看到注意力矩阵几乎变成 one-hot，导致梯度消失。",
    ),
    measures=Text(
        en="norm of the gradient of W_q and W_k before the first step, and in the last third of training at all common "
        "rates, without the scale over with it, d_k = 64; the one nearer to the threshold is shown",
        zh="d_k = 64 时，W_q 与 W_k 的梯度范数（第一步之前，以及在双方共有的全部学习率上训练的最后三分之一）：不缩放与"
        "缩放之比；此处列出更接近界限的一个",
    ),
    remark=Text(
        en="A factor 8 of the ratio is √d_k itself, by definition; without it about 0.5 is left at the start. The "
        "typical row at few keys does lose its gradient (C3).",
        zh="按定义，比值中有 √d_k = 8 倍来自缩放因子本身；除去它，开始时约剩 0.5。键很少时，典型一行的梯度确实消失（"
        "C3）。",
    ),
    evidence="fig-training-telemetry",
    reads=("training",),
    widespread=True,
)
def monitored_gradient(results: Results) -> Outcome:
    runs = Runs(results, "recall", SIZE)
    return either(at_most(runs.first_gradient(), VANISHING), at_most(runs.late_gradient(), VANISHING))


@claim(
    "C18",
    source="A",
    kind="simulated",
    says=Text(
        en="With the scale the inputs of softmax lie where its gradient is sensitive, and gradients do not vanish, "
        "which makes it possible to learn the weights.",
        zh="缩放后，softmax 的输入处于其梯度敏感的区域，避免了梯度消失，使得注意力权重的学习成为可能。",
    ),
    measures=Text(
        en="mean norm of softmax's Jacobian with the scale, over the largest possible one, d_k = 64; under the "
        "condition at 3, 64 and 512 keys, and the loss of a model trained with the scale, over that of guessing; the "
        "one nearest to the threshold is shown",
        zh="d_k = 64、缩放时，softmax 雅可比矩阵范数的均值与其可能的最大值之比；在该条件下取 3、64 与 512 个键，并包括"
        "用缩放训练的模型的损失与随机猜测的损失之比；此处列出最接近界限的一个",
    ),
    holds_if=Text(en="there are at most 512 keys", zh="至多 512 个键"),
    not_if=Text(en="there are 4096 keys", zh="有 4096 个键"),
    remark=Text(
        en="It becomes smaller with the number n of keys as 1/√n, as it does with equal weights too.",
        zh="它随键数 n 按 1/√n 减小，等权重时也是如此。",
    ),
    evidence="tab-claim-checks",
    reads=("claim_checks", "training"),
    widespread=True,
)
def sensitive_zone(results: Results) -> Outcome:
    *norms, many = (
        at_least(results.check("scaled_jacobian", n_keys=n).estimate().scaled(1 / LARGEST), VANISHING)
        for n in (FEW, N_KEYS, 512, 4096)
    )
    runs = Runs(results, "recall", SIZE)
    return under(every(*norms, at_most(runs.best_loss(runs.scaled), NOT_LEARNED)), many)


@claim(
    "C40",
    source="B",
    kind="arithmetic",
    says=Text(
        en="At the scores (14, 10, 12) the gradient is almost zero, so that the model cannot learn an effective "
        "pattern of attention at all.",
        zh="得分为 (14, 10, 12) 时梯度几乎为零，模型根本无法学习到有效的注意力模式。",
    ),
    measures=Text(
        en="norm of the Jacobian over that of the article's other example, (1.0, 0.5, 0.8)",
        zh="雅可比矩阵的范数与文中另一例子 (1.0, 0.5, 0.8) 的范数之比",
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
        en="At d_k = 64 the scale makes the weights more even, and that keeps gradients flowing effectively.",
        zh="d_k = 64 时，缩放使权重更均衡，从而保证梯度的有效流动。",
    ),
    measures=Text(
        en="entropy of the weights at 3 keys and at 64, with the scale over without; and rows that a batch needs, as "
        "in C71, without the scale over with it; the one nearest to the threshold is shown",
        zh="3 个键与 64 个键时权重的熵，缩放与不缩放之比；以及所需的行数（同 C71），不缩放与缩放之比；此处列出最接近界"
        "限的一个",
    ),
    remark=Text(
        en="Effectively is read as in C71: more so than without the scale. In size the gradient of q is smaller with "
        "it; without the factor 1/8 that is the scale itself it is larger at 3 keys, and smaller at 64.",
        zh="此处对“有效”的理解同 C71：比不缩放时更有效。就大小而言，缩放后 q 的梯度更小；除去缩放本身的 1/8 倍，3 个键"
        "时更大，64 个键时更小。",
    ),
    evidence="tab-before-after",
    reads=("worked_example", "planted_gradient"),
)
def even_weights(results: Results) -> Outcome:
    def ratio(measure: str, n_keys: int) -> Measured:
        return _without_over_with(results, measure, n_keys).power(-1)

    even = (at_least(ratio("entropy", n), CHANGED) for n in (FEW, N_KEYS))
    return every(*even, *signal.test(results).tests)


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
        en="A factor 8 of the ratio is √d_k itself, by definition; without it about 0.45 is left at 3 keys, and 1.5 "
        "at 64. The typical row does lose its gradient at few keys (C3); the few rows that keep theirs outweigh it.",
        zh="按定义，比值中有 √d_k = 8 倍来自缩放因子本身；除去它，3 个键时约剩 0.45，64 个键时约为 1.5。键很少时，典型"
        "一行的梯度确实消失（C3）；但少数保有梯度的行在总和中占了上风。",
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
    says=Text(en="A stable variance brings an effective signal to learn from.", zh="稳定的方差带来有效的学习信号。"),
    measures=Text(
        en="rows that a batch needs until its mean gradient of W_q points as well, where a planted key is to be found, "
        "without the scale over with it, d_k = 64: at 3 keys and at 64, where nothing is learned yet and where q and "
        "the key have a cosine of 0.5; the one nearest to the threshold is shown",
        zh="任务为找到植入的键时，使一批样本的平均 W_q 梯度达到同样方向精度所需的行数：不缩放与缩放之比（d_k = 64，3 个"
        "键与 64 个键；尚未学到任何东西时，以及 q 与该键的余弦为 0.5 时；此处列出最接近界限的一个）",
    ),
    remark=Text(
        en="Effective is read as: more so than without the scale. Where nothing is learned yet the signal without it "
        "is somewhat poorer, not gone; at a cosine of 0.5 it needs more than ten times the rows, but has less to "
        "learn.",
        zh="此处把有效理解为比不缩放时更有效。尚未学到任何东西时，不缩放的信号略差，但并未消失；余弦为 0.5 时需要十倍以"
        "上的行数，但所剩可学的也较少。",
    ),
    evidence="fig-gradients",
    reads=("planted_gradient",),
)
def signal(results: Results) -> Outcome:
    rows = (_rows_needed(results, n_keys, rho) for n_keys in (FEW, N_KEYS) for rho in (0.0, 0.5))
    return every(*(at_least(one, CHANGED) for one in rows))


def _rows_needed(results: Results, n_keys: int, rho: float) -> Measured:
    """Return how many times the rows a batch needs without the scale; rho: cosine of q and the key to be found."""
    return results.row("planted_gradient", d_k=SIZE, n_keys=n_keys, rho=rho, scaling="none").exact("ratio")


@claim(
    "C72",
    source="A",
    kind="simulated",
    says=Text(
        en="When the inputs of softmax are large, its gradient becomes very small.",
        zh="当 softmax 的输入值很大时，其梯度会变得非常小。",
    ),
    measures=Text(
        en="norm of the Jacobian with large inputs over that with small ones: for the condition the median over random "
        "rows, without the scale over with it, d_k = 64",
        zh="输入很大与输入较小时雅可比矩阵范数之比：在该条件下取随机各行的中位数，不缩放与缩放之比，d_k = 64",
    ),
    holds_if=Text(en="their differences are large too, and there are 3 keys", zh="其差距也很大，且只有 3 个键"),
    not_if=Text(
        en="all of them are larger by the same amount: softmax does not see it",
        zh="全部输入同时增大相同的量：softmax 看不到这种变化",
    ),
    remark=Text(
        en="At 64 keys large differences do not make the typical gradient smaller (C3).",
        zh="有 64 个键时，即使差距很大，典型的梯度也不变小（C3）。",
    ),
    evidence="tab-before-after",
    reads=("worked_example", "claim_checks"),
    widespread=True,
)
def large_inputs(results: Results) -> Outcome:
    apart = _without_over_with(results, "jacobian_frobenius_median", FEW)
    # The Jacobian depends on the weights alone: where they do not differ, the ratio is 1.
    together = results.check("shifted_from_softmax").exact().shifted(1)
    return under(at_most(apart, VANISHING), at_most(together, VANISHING))


@claim(
    "C76",
    source="B",
    kind="arithmetic",
    says=Text(
        en="In actual training hardly any effective gradient gets back to update the parameters without the scale.",
        zh="在实际训练中，不缩放时，反向传播几乎没有有效的梯度信号可以更新参数。",
    ),
    measures=Text(
        en="how effective a row's gradient is: rows that a batch needs as in C71, with the scale over without it; at 3 "
        "keys and at 64, and the one nearer to the threshold is shown",
        zh="一行梯度的有效程度：达到同样方向精度所需的行数（同 C71），缩放与不缩放之比；取 3 个键与 64 个键，此处列出更"
        "接近界限的一个",
    ),
    holds_if=Text(en="q and the key to be found have a cosine of 0.5", zh="q 与待找的键的余弦为 0.5"),
    not_if=Text(en="nothing is learned yet, at 64 keys", zh="尚未学到任何东西，有 64 个键"),
    untested=PART,
    remark=Text(
        en="How effective gradients are in actual training was not tested: this is one planted key, and at a cosine of "
        "0.5 it has nearly all the weight without the scale, so that little is left to learn. In size gradients do not "
        "vanish (C14, C56).",
        zh="实际训练中梯度是否有效没有检验：此处只是一个植入的键；余弦为 0.5 时，不缩放的情形下它已占几乎全部权重，所剩"
        "可学的不多。就大小而言梯度并未消失（C14、C56）。",
    ),
    evidence="fig-gradients",
    reads=("planted_gradient",),
)
def little_gets_back(results: Results) -> Outcome:
    halfway = (_rows_needed(results, n_keys, 0.5).power(-1) for n_keys in (FEW, N_KEYS))
    start = _rows_needed(results, N_KEYS, 0.0).power(-1)
    return under(every(*(at_most(one, VANISHING) for one in halfway)), at_most(start, VANISHING))
