"""Claims on other factors than 1/√d_k, each trained and held against it."""

from sqrtdk.claims.core import PART, WHOLE, Outcome, Test, at_least, claim, every, near
from sqrtdk.claims.lookup import Results
from sqrtdk.claims.texts import Text
from sqrtdk.claims.thresholds import CHANGED, MOMENT, NATS
from sqrtdk.claims.training import VERDICTS

SIZE = 64
WIDTHS = (16, 64, 256)
SMALLER = "1/sqrt(d_k) + start"
"""The rule with which q·k starts smaller by a further 1/√d_k."""
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
    says=Text(en="A factor that the model learns brings next to no gain.", zh="让模型自行学习缩放因子，收益微乎其微。"),
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
        en="Dividing by the mean size of the scores, or by an order statistic, has in practice not proved better than "
        "1/√d_k.",
        zh="用得分绝对值的均值或某种顺序统计量来缩放，在实践中并未表现出优于 1/√d_k 的效果。",
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
    untested=PART,
    says=Text(en="In nearly all cases there is no need to touch 1/√d_k.", zh="绝大多数情况下都不需要改动 1/√d_k。"),
    measures=Text(
        en="steps to the target with 1/d_k, over those with 1/√d_k, each at its own best rate",
        zh="各取最佳学习率时，1/d_k 达到目标所需的步数与 1/√d_k 之比",
    ),
    remark=Text(
        en="One small task cannot stand for nearly all cases. With 1/√d_k nearly all of its answers are right in the "
        "end, so that final losses could show no gain; speed can.",
        zh="一个小任务代表不了绝大多数情况。用 1/√d_k 训练到最后几乎全部答对，最终损失显示不出改进，速度则可以。",
    ),
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
        "later attention degenerated and lost what it had of varied relations, and with the right factor it was "
        "better at once.",
        zh="误把值的宽度 d_v 当作 d_k 使缩放因子变小；模型初期尚能学习，中后期注意力逐渐退化，失去捕捉多样关系的能力；"
        "修正因子后性能立刻提升。",
    ),
    measures=Text(
        en="final loss of the longest runs minus that with the right width in nats, for values 2 and 4 times as wide; "
        "the one nearer to the threshold is shown",
        zh="值的宽度为 2 倍和 4 倍时，最长训练的最终损失与使用正确宽度时之差（nat）；此处列出更接近界限的一个",
    ),
    untested=WHOLE,
    remark=Text(
        en="An anecdote of another model, not met with here; attention was not measured. The factor is smaller only "
        "where values are wider than keys.",
        zh="这是关于另一模型的轶事，这里没有重现，也没有测量其注意力。只有值比键更宽时，因子才会变小。",
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
        en="steps to the target where the logits start with a smaller variance, over those with 1, each at its own "
        "best rate: 1/2 and 1/4 at d_k = 64, and 1/d_k at three widths, as in C60; the one that decides is shown",
        zh="logit 的初始方差更小时，达到目标所需的步数与方差为 1 时之比，各取最佳学习率：d_k = 64 时取 1/2 和 1/4，三"
        "个宽度上取 1/d_k（同 C60）；此处列出起决定作用的一个",
    ),
    untested=WHOLE,
    remark=Text(
        en="What later layers can do best with was not tested. In small models that look an answer up, smaller "
        "variances at the start are learned from faster at some widths.",
        zh="后续层最便于处理什么，没有检验。在查找答案的小模型中，某些宽度上初始方差更小时学得更快。",
    ),
    evidence="tab-training-shipped",
    reads=VERDICTS,
)
def unit_is_best(results: Results) -> Outcome:
    cases = [(f"d_v_for_d_k(ratio={ratio})", SIZE) for ratio in (2, 4)] + [(SMALLER, d_k) for d_k in WIDTHS]
    speeds = (results.against_reference(rule, "speed", d_k) for rule, d_k in cases)
    return every(*(at_least(speed, CHANGED.inverse()) for speed in speeds))


@claim(
    "C60",
    source="A",
    kind="trained",
    says=Text(
        en="For a factor that is learned 1/√d_k is the start that theory makes optimal, where variances are 1.",
        zh="在方差为 1 的假设下，1/√d_k 已经是理论推导出的最优初始值。",
    ),
    measures=Text(
        en="steps to the target where q·k starts smaller by a further 1/√d_k and rates stay as they are, over those "
        "with 1/√d_k, at three widths; the one nearest to the threshold is shown",
        zh="让 q·k 的初始值再小 1/√d_k 倍而学习率不变时，达到目标所需的步数与 1/√d_k 之比（三个宽度；此处列出最接近"
        "界限的一个）",
    ),
    untested=WHOLE,
    remark=Text(
        en="No learned factor was started elsewhere: this is a fixed one with a smaller start of q·k.",
        zh="没有让可学习的缩放因子从别处开始训练：这里的缩放因子是固定的，只是 q·k 的初始值更小。",
    ),
    evidence="tab-training-shipped",
    reads=VERDICTS,
)
def optimal_start(results: Results) -> Outcome:
    speeds = (results.against_reference(SMALLER, "speed", d_k) for d_k in WIDTHS)
    return every(*(at_least(speed, CHANGED.inverse()) for speed in speeds))


@claim(
    "C61",
    source="A",
    kind="trained",
    says=Text(en="A factor that is learned adds instability.", zh="让模型学习缩放因子反而增加了不稳定性。"),
    measures=Text(
        en="final loss with a learned factor minus that with 1/√d_k in nats, both at the best rate of 1/√d_k",
        zh="都取 1/√d_k 的最佳学习率时，可学习因子与 1/√d_k 的最终损失之差（nat）",
    ),
    untested=WHOLE,
    remark=Text(
        en="A final loss is not instability; whether a learned factor narrows the rates that work (C57) the runs "
        "cannot tell.",
        zh="最终损失并不等于不稳定；可学习因子是否使可用的学习率变少（C57），这些训练无法说明。",
    ),
    evidence="tab-training-shipped",
    reads=VERDICTS,
)
def learned_is_unstable(results: Results) -> Test:
    return at_least(results.against_reference("learnable", "same_rate", SIZE), NATS)


@claim(
    "C67",
    source="B",
    kind="simulated",
    says=Text(
        en="That variance 1 needs √d_k is why the paper divides by exactly this and by no other value.",
        zh="方差为 1 要求除以 √d_k，这就是论文精确地使用它而不是其他任意值的原因。",
    ),
    measures=Text(en="standard deviation of q·k over √d_k, at d_k = 64", zh="d_k = 64 时 q·k 的标准差除以 √d_k"),
    untested=WHOLE,
    remark=Text(
        en="What made the authors choose it is a matter of record, not of measuring: they suspect that large scores "
        "have small gradients, and a footnote gives the variance.",
        zh="作者为何如此选择是史实问题，无法测量：论文写道“我们怀疑”大的得分会使梯度变小，并在脚注中给出了方差。",
    ),
    evidence="fig-variance-law",
    reads=("moments",),
)
def why_the_paper(results: Results) -> Test:
    row = results.row("moments", ensemble=results.ensemble("standard"), d_k=SIZE)
    return near(row.estimate("variance", "variance_se").scaled(1 / row.number("d_k")).power(0.5), 1.0, MOMENT)
