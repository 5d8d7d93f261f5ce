"""Claims on other factors than 1/√d_k, each trained and held against it."""

from sqrtdk.claims.core import Outcome, Test, at_least, claim, every
from sqrtdk.claims.lookup import Results
from sqrtdk.claims.texts import Text
from sqrtdk.claims.thresholds import CHANGED, NATS, NO_LESS
from sqrtdk.claims.training import VERDICTS

SIZE = 64
WIDTHS = (16, 64, 256)
SPEED = Text(
    en="steps to the target, over those with 1/√d_k, each at its own best rate",
    zh="各取最佳学习率时，达到目标所需的步数与 1/√d_k 之比",
)
NO_LOSS = Text(
    en="With 1/√d_k nearly all answers are right in the end, so that final losses could show no gain; speed can.",
    zh="用 1/√d_k 训练到最后几乎全部答对，最终损失显示不出改进，速度则可以。",
)


@claim(
    "C23",
    source="A",
    kind="trained",
    says=Text(
        en="A factor that the model learns brings next to no gain.",
        zh="让模型自行学习缩放因子，收益微乎其微。",
    ),
    measures=SPEED,
    remark=NO_LOSS,
    evidence="tab-training-shipped",
    reads=VERDICTS,
)
def learned_factor(results: Results) -> Test:
    return at_least(results.against_reference("learnable", "speed", SIZE), CHANGED.inverse())


@claim(
    "C24",
    source="A",
    kind="trained",
    says=Text(
        en="Dividing by the mean size of the scores, or by an order statistic, has not proved better than 1/√d_k.",
        zh="用得分绝对值的均值或某种顺序统计量来缩放，并未表现出优于 1/√d_k 的效果。",
    ),
    measures=Text(
        en="steps to the target with the mean of |q·k| and with the largest |q·k| of the row, over those with 1/√d_k, "
        "each at its own best rate; the one nearer to the threshold is shown",
        zh="用行内 |q·k| 的均值和最大值时，达到目标所需的步数与 1/√d_k 之比，各取最佳学习率；此处列出更接近界限的一个",
    ),
    remark=NO_LOSS,
    evidence="tab-training-shipped",
    reads=VERDICTS,
)
def other_sizes(results: Results) -> Outcome:
    rules = (f"row_{name}_abs" for name in ("mean", "max"))
    return every(*(at_least(results.against_reference(rule, "speed", SIZE), CHANGED.inverse()) for rule in rules))


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
        en="steps to the target with 1/d_k, over those with 1/√d_k, each at its own best rate",
        zh="各取最佳学习率时，1/d_k 达到目标所需的步数与 1/√d_k 之比",
    ),
    remark=NO_LOSS,
    evidence="fig-training-curves",
    reads=VERDICTS,
)
def no_need(results: Results) -> Test:
    return at_least(results.against_reference("1/d_k", "speed", SIZE), CHANGED.inverse())


@claim(
    "C30",
    source="A",
    kind="trained",
    says=Text(
        en="Taking the width of the values for d_k made the factor smaller; the model still learned at first, but "
        "attention degenerated later.",
        zh="误把值的宽度 d_v 当作 d_k 使缩放因子变小；模型初期尚能学习，中后期注意力逐渐退化。",
    ),
    measures=Text(
        en="final loss of the longest runs minus that with the right width in nats, for values 2 and 4 times as wide; "
        "the one nearer to the threshold is shown",
        zh="值的宽度为 2 倍和 4 倍时，最长训练的最终损失与使用正确宽度时之差（nat）；此处列出更接近界限的一个",
    ),
    remark=Text(
        en="An anecdote of another model, not met with here. The factor is smaller only where values are wider than "
        "keys.",
        zh="这是关于另一模型的轶事，这里没有重现。只有值比键更宽时，因子才会变小。",
    ),
    evidence="tab-training-shipped",
    reads=VERDICTS,
)
def width_of_values(results: Results) -> Outcome:
    rules = (f"d_v_for_d_k(ratio={ratio})" for ratio in (2, 4))
    return every(*(at_least(results.against_reference(rule, "loss", SIZE), NATS) for rule in rules))


@claim(
    "C59",
    source="A",
    kind="trained",
    says=Text(
        en="A variance of 1 is the ideal one, the most convenient for what comes after.",
        zh="方差理想情况下是 1，这样最便于网络后续层的处理。",
    ),
    measures=Text(
        en="steps to the target where the logits start with a variance of 1/2 and of 1/4, over those with 1, each at "
        "its own best rate; the one nearer to the threshold is shown",
        zh="logit 的初始方差为 1/2 和 1/4 时，达到目标所需的步数与方差为 1 时之比，各取最佳学习率；此处列出更接近界"
        "限的一个",
    ),
    evidence="tab-training-shipped",
    reads=VERDICTS,
)
def unit_is_best(results: Results) -> Outcome:
    rules = (f"d_v_for_d_k(ratio={ratio})" for ratio in (2, 4))
    return every(*(at_least(results.against_reference(rule, "speed", SIZE), NO_LESS) for rule in rules))


@claim(
    "C60",
    source="A",
    kind="trained",
    says=Text(
        en="For a factor that is learned 1/√d_k is the start that theory makes optimal, where variances are 1.",
        zh="在方差为 1 的假设下，1/√d_k 已经是理论推导出的最优起点。",
    ),
    measures=Text(
        en="steps to the target where q·k starts smaller by a further 1/√d_k and rates stay as they are, over those "
        "with 1/√d_k, at three widths; the one nearest to the threshold is shown",
        zh="让 q·k 的起点再小 1/√d_k 倍而学习率不变时，达到目标所需的步数与 1/√d_k 之比（三个宽度；此处列出最接近"
        "界限的一个）",
    ),
    evidence="tab-training-shipped",
    reads=VERDICTS,
)
def optimal_start(results: Results) -> Outcome:
    rule = "1/sqrt(d_k) + start"
    return every(*(at_least(results.against_reference(rule, "speed", d_k), NO_LESS) for d_k in WIDTHS))


@claim(
    "C61",
    source="A",
    kind="trained",
    says=Text(
        en="A factor that is learned adds instability.",
        zh="让模型学习缩放因子反而增加了不稳定性。",
    ),
    measures=Text(
        en="final loss with a learned factor minus that with 1/√d_k in nats, both at the best rate of 1/√d_k",
        zh="都取 1/√d_k 的最佳学习率时，可学习因子与 1/√d_k 的最终损失之差（nat）",
    ),
    evidence="tab-training-shipped",
    reads=VERDICTS,
)
def learned_is_unstable(results: Results) -> Test:
    return at_least(results.against_reference("learnable", "same_rate", SIZE), NATS)


@claim(
    "C67",
    source="B",
    kind="trained",
    opinion=True,
    says=Text(
        en="That variance 1 needs √d_k is why the paper divides by exactly this and by no other value.",
        zh="方差为 1 要求除以 √d_k，这就是论文精确地使用它而不是其他任意值的原因。",
    ),
    measures=Text(
        en="steps to the target where q·k is divided by twice √d_k, over those with √d_k, each at its own best rate",
        zh="各取最佳学习率时，q·k 除以 2√d_k 与除以 √d_k 达到目标所需步数之比",
    ),
    remark=Text(
        en="What made the authors choose it is not measured; they write that they suspect small gradients.",
        zh="作者为何如此选择无法测量；论文的措辞是“我们怀疑”梯度会变小。",
    ),
    evidence="tab-training-shipped",
    reads=VERDICTS,
)
def why_the_paper(results: Results) -> Test:
    return at_least(results.against_reference("d_v_for_d_k(ratio=4)", "speed", SIZE), NO_LESS)
