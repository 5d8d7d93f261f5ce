"""Claims on training, decided by small models trained from scratch with the scale and without."""

from sqrtdk.claims.core import PART, WHOLE, Outcome, Test, at_least, at_most, claim, either, every, under
from sqrtdk.claims.lookup import Results
from sqrtdk.claims.runs import Runs
from sqrtdk.claims.texts import Text
from sqrtdk.claims.thresholds import ALMOST_ALL, CHANGED, NATS, NOISE, NOT_LEARNED, RIGHT, VANISHING

SIZE, WIDE = 64, 256
SMALL_MODELS = Text(
    en="Small models and some hundred steps; nothing here reaches large ones, or the article's own model.",
    zh="只涉及训练数百步的小模型，不能说明大模型或文中自己的模型。",
)
HIGH_RATE = Text(
    en="the learning rate is the largest of both at which training with the scale still gets half of the way",
    zh="学习率取双方共有、且加缩放时训练仍能完成一半的最大值",
)
OWN_RATE = Text(en="it is the best one without the scale", zh="学习率取不缩放时的最佳值")
VERDICTS = ("training_verdicts", "training_summary", "shipped_training_verdicts", "shipped_training_summary")


def _not_learned(results: Results) -> Outcome:
    """Ask whether a wide head without the scale learns nothing, at a rate that suits the scale and at its own."""
    runs = Runs(results, "recall", WIDE)
    high, own = runs.final_loss(runs.plain, runs.top_rates()[0]), runs.best_loss(runs.plain)
    return under(at_least(high, NOT_LEARNED), at_least(own, NOT_LEARNED))


@claim(
    "C14",
    source="A",
    kind="trained",
    says=Text(
        en="The root of the trouble: the variance of unscaled scores grows linearly with d_k, so that softmax's inputs "
        "have too wide a range, and by that gradients vanish. What it does to the stability of training is C57.",
        zh="问题的本质：不缩放时点积的方差随 d_k 线性增长，softmax 输入值的动态范围过大，进而引发梯度消失（对训练稳"
        "定性的影响见 C57）。",
    ),
    measures=Text(
        en="norm of the gradient of W_q and W_k before the first step, without the scale over with it, d_k = 64",
        zh="d_k = 64 时，第一步之前 W_q 与 W_k 的梯度范数：不缩放与缩放之比",
    ),
    remark=Text(
        en="A factor 8 of the ratio is √d_k itself, by definition; without it about 0.5 is left, which is not gone "
        "either.",
        zh="按定义，比值中有 √d_k = 8 倍来自缩放因子本身；除去它约剩 0.5，也并未消失。",
    ),
    evidence="fig-training-telemetry",
    reads=("training",),
    widespread=True,
)
def first_gradient(results: Results) -> Test:
    return at_most(Runs(results, "recall", SIZE).first_gradient(), VANISHING)


@claim(
    "C20",
    source="A",
    kind="trained",
    says=Text(
        en="Without the scale the loss of a Transformer did not go down at all; with it the curve became smooth and "
        "normal at once. The other half, on noise, is C69.",
        zh="忽略缩放因子时，Transformer 的损失完全不下降，加上之后训练曲线立刻变得平滑正常（“几乎全是噪声”见 C69）。",
    ),
    measures=Text(
        en="final loss of a wide head, d_k = 256, without the scale, over that of guessing",
        zh="d_k = 256 的宽头不缩放时的最终损失与随机猜测的损失之比",
    ),
    holds_if=HIGH_RATE,
    not_if=OWN_RATE,
    untested=PART,
    remark=Text(
        en="An anecdote of another model. The first half was tested, in small ones; that the curve is smooth and "
        "normal at once was not.",
        zh="这是关于另一模型的轶事。前一半在小模型上做了检验；曲线是否“立刻变得平滑正常”没有检验。",
    ),
    evidence="fig-training-curves",
    reads=("training",),
    widespread=True,
)
def no_progress(results: Results) -> Outcome:
    return _not_learned(results)


@claim(
    "C27",
    source="A",
    kind="trained",
    says=Text(
        en="Without the scale the norm of the gradient usually drops sharply or becomes unstable.",
        zh="不缩放时，梯度范数通常会急剧减小，或变得不稳定。",
    ),
    measures=Text(
        en="over all learning rates that both were trained at: norm of the gradient of W_q and W_k without the scale "
        "in the last third of training, over that before the first step; and its mean jump between logged steps (as a "
        "logarithm), without the scale over with it; the one nearer to its threshold is shown",
        zh="在双方共有的全部学习率上：不缩放时训练最后三分之一中 W_q 与 W_k 的梯度范数与第一步之前之比；以及相邻记录步"
        "之间其对数的平均跳动，不缩放与缩放之比；此处列出更接近界限的一个",
    ),
    remark=Text(
        en="Sharply is read as: to a tenth. It falls to about 0.4 of what it was, and jumps less than with the scale. "
        "With the scale it falls further, because the task is learned.",
        zh="此处把急剧理解为降到十分之一。它约降到原来的 0.4，跳动也小于缩放时。缩放时它降得更多，是因为任务已经学会。",
    ),
    evidence="fig-training-telemetry",
    reads=("training",),
)
def drop_or_jumps(results: Results) -> Outcome:
    runs = Runs(results, "recall", SIZE)
    return either(at_most(runs.gradient_left(), VANISHING), at_least(runs.gradient_jumps(), CHANGED))


@claim(
    "C37",
    source="A",
    kind="trained",
    says=Text(
        en="Clipping and other softmax variants are for very large models; in a standard model the right scale is "
        "enough.",
        zh="钳位、更稳定的 softmax 变体等只用于超大模型；在标准模型中，正确的缩放已经足够。",
    ),
    measures=Text(
        en="share of the runs with the scale alone, at their fastest rate, that reach the loss at which the task "
        "counts as learned, on recall and on induction, d_k = 64; the one nearer to the threshold is shown",
        zh="d_k = 64、仅用缩放、取最快的学习率时，联想回忆与归纳头任务中达到“已学会”损失的训练所占比例；此处列出更接"
        "近界限的一个",
    ),
    untested=PART,
    remark=Text(
        en="Enough is read as: nearly all runs. Very large models, and what they need, were not tested.",
        zh="此处把“足够”理解为几乎所有训练都能学会。超大模型及其需要没有检验。",
    ),
    evidence="fig-training-curves",
    reads=("training_summary", "shipped_training_summary"),
)
def scale_is_enough(results: Results) -> Outcome:
    shares = (results.reached("1/sqrt(d_k)", SIZE, task) for task in ("recall", "induction"))
    return every(*(at_least(share, ALMOST_ALL) for share in shares))


@claim(
    "C49",
    source="B",
    kind="trained",
    says=Text(
        en="In actual training without the scale learning comes to a complete standstill. The cause that is given for "
        "it is C76.",
        zh="在实际训练中，不缩放时模型的学习过程会完全停滞（所给的原因见 C76）。",
    ),
    measures=Text(
        en="final loss of a wide head, d_k = 256, without the scale, over that of guessing",
        zh="d_k = 256 的宽头不缩放时的最终损失与随机猜测的损失之比",
    ),
    holds_if=Text(
        en="the head is wide, d_k = 256, and the learning rate the largest of both at which training with the scale "
        "still gets half of the way",
        zh="头很宽（d_k = 256），且学习率取双方共有、加缩放时训练仍能完成一半的最大值",
    ),
    not_if=Text(en="the head is as wide, at the best rate without the scale", zh="头同样宽，学习率取不缩放时的最佳值"),
    remark=Text(
        en="Small models and some hundred steps. Why it stands still was not tested; the gradient does not vanish "
        "(C14).",
        zh="模型较小，只有几百步。停滞的原因没有检验；梯度并未消失（C14）。",
    ),
    evidence="fig-training-curves",
    reads=("training",),
    widespread=True,
)
def standstill(results: Results) -> Outcome:
    return _not_learned(results)


@claim(
    "C57",
    source="A",
    kind="trained",
    says=Text(
        en="The growing variance of unscaled scores makes training unstable.",
        zh="不缩放的得分的方差不断增大，导致训练不稳定。",
    ),
    measures=Text(
        en="how far training gets, as the part of the loss of guessing that is gone, without the scale over with it, "
        "at d_k = 64; under the condition also at 256, and the one nearer to the threshold is shown",
        zh="训练的进展（随机猜测的损失中已消除的部分），不缩放与缩放之比，d_k = 64；在该条件下还包括 256，并列出更接近"
        "界限的一个",
    ),
    holds_if=HIGH_RATE,
    not_if=Text(en="each has its own best rate", zh="各取最佳学习率"),
    untested=PART,
    remark=Text(
        en="That a rate which suits the scaled model fails without the scale was measured, in small models; whether "
        "for want of stability was not: the loss rises between logged steps no more than with the scale.",
        zh="所测量的是（在小模型上）适合缩放的学习率在不缩放时会失败；失败是否出于不稳定，没有检验：损失在相邻记录步之"
        "间的回升并不比缩放时多。",
    ),
    evidence="fig-training-curves",
    reads=("training",),
)
def unstable(results: Results) -> Outcome:
    usual, wide = (Runs(results, "recall", d_k) for d_k in (SIZE, WIDE))
    high = (at_most(runs.progress(runs.top_rates()), CHANGED.inverse()) for runs in (usual, wide))
    best = usual.best_rates(usual.plain), usual.best_rates(usual.scaled)
    return under(every(*high), at_most(usual.progress(best), CHANGED.inverse()))


@claim(
    "C58",
    source="A",
    kind="trained",
    says=Text(
        en="The scale is one of the keys to a Transformer's capturing dependencies over a long range.",
        zh="缩放是 Transformer 成功捕获长距离依赖关系的关键保障之一。",
    ),
    measures=Text(
        en="share of right answers on induction without the scale minus that with it, each at its best rate, d_k = 64",
        zh="d_k = 64、各取最佳学习率时，归纳头任务上不缩放与缩放的正确率之差",
    ),
    untested=WHOLE,
    remark=Text(
        en="Answers are at most 31 tokens away, which is no long range; longer ones were not tried.",
        zh="答案最远在 31 个词元之外，算不上长距离；没有试验更长的距离。",
    ),
    evidence="fig-training-curves",
    reads=VERDICTS,
)
def long_range(results: Results) -> Test:
    return at_most(results.against_reference("none", "accuracy", SIZE, task="induction"), RIGHT.times(-1))


@claim(
    "C63",
    source="A",
    kind="trained",
    says=Text(
        en="Without the scale the range or standard deviation of the scores is very large, and may fluctuate strongly "
        "while training.",
        zh="不缩放时，点积值的范围或标准差会非常大，且可能随着训练剧烈波动。",
    ),
    measures=Text(
        en="standard deviation of the scores, before they are scaled, after training, and its mean change between "
        "logged steps, without the scale over with it, each at its best rate, d_k = 64; the one nearer to the "
        "threshold is shown",
        zh="d_k = 64、各取最佳学习率时，训练结束时缩放前得分的标准差，以及它在相邻记录步之间的平均变化：不缩放与缩放之"
        "比；此处列出更接近界限的一个",
    ),
    remark=Text(
        en="Compared is what the article monitors, scores before they are scaled (C28). What softmax gets is 8 times "
        "as large without the scale by definition (C44).",
        zh="比较的是文章所监控的缩放前的得分（C28）。按定义，不缩放时 softmax 得到的输入是 8 倍大（C44）。",
    ),
    evidence="fig-training-telemetry",
    reads=("training",),
)
def fluctuations(results: Results) -> Outcome:
    runs = Runs(results, "recall", SIZE)
    raw = (ratio.scaled(SIZE**-0.5) for ratio in (runs.final_spread(), runs.spread_changes()))
    return every(*(at_least(ratio, CHANGED) for ratio in raw))


@claim(
    "C65",
    source="B",
    kind="trained",
    says=Text(
        en="Without the scale gradients vanished in training, and the model could not converge at all.",
        zh="不缩放时，训练过程中梯度消失，模型完全无法收敛。",
    ),
    measures=Text(
        en="share of the runs without the scale, at their fastest rate, that do not reach the loss at which the task "
        "counts as learned, d_k = 64",
        zh="d_k = 64、取最快的学习率时，不缩放的训练中未达到“已学会”损失的比例",
    ),
    holds_if=Text(
        en="two layers have to work together (induction), within some hundred steps",
        zh="任务需要两层协同（归纳头任务），且只训练数百步",
    ),
    not_if=Text(en="one layer looks the answer up (recall)", zh="任务只需一层查找（联想回忆）"),
    untested=WHOLE,
    remark=Text(
        en="An anecdote of another model, whose task and length are not known: some hundred steps of small models do "
        "not decide it. Gradients are C11 and C14.",
        zh="这是关于另一模型的轶事，其任务与训练长度未知：小模型的数百步训练不足以判定。梯度见 C11 与 C14。",
    ),
    evidence="fig-training-curves",
    reads=("training_summary", "shipped_training_summary"),
    widespread=True,
)
def no_convergence(results: Results) -> Outcome:
    together, alone = (results.reached("none", SIZE, task).scaled(-1).shifted(1) for task in ("induction", "recall"))
    return under(at_least(together, ALMOST_ALL), at_least(alone, ALMOST_ALL))


@claim(
    "C66",
    source="B",
    kind="trained",
    opinion=True,
    says=Text(
        en="Advice: take the factor out of the code for a while, and watch how the training curve and the norm of the "
        "gradient change.",
        zh="建议做训练实验：在代码中暂时移除缩放因子，观察训练曲线和梯度范数的变化。",
    ),
    measures=Text(
        en="steps to the target at the best rate, and norm of the gradient of W_q and W_k before the first step, "
        "without the scale over with it, d_k = 64; the one nearer to the threshold is shown",
        zh="d_k = 64 时，取最佳学习率达到目标所需的步数，以及第一步之前 W_q 与 W_k 的梯度范数，均为不缩放与缩放之比"
        "；此处列出更接近界限的一个",
    ),
    remark=Text(
        en="This is advice; what it would show is measured. The gradient is larger without the factor, not smaller; by "
        "definition it is so by a factor 8, without which about 0.5 is left.",
        zh="这是建议；所测量的是照此试验会看到什么。移除之后梯度变大，而不是变小；按定义其中有 8 倍来自因子本身，除去它"
        "约剩 0.5。",
    ),
    evidence="fig-training-telemetry",
    reads=("training", *VERDICTS),
)
def removal(results: Results) -> Outcome:
    slower = results.against_reference("none", "speed", SIZE)
    return every(at_least(slower, CHANGED), at_least(Runs(results, "recall", SIZE).first_gradient(), CHANGED))


@claim(
    "C68",
    source="A",
    kind="trained",
    says=Text(
        en="Without the scale the loss usually falls slowly or oscillates.", zh="不缩放时，损失通常下降缓慢或震荡。"
    ),
    measures=Text(
        en="steps to the target, without the scale over with it, and nats by which the loss rises between logged "
        "steps, without the scale minus with it, each at its best rate, d_k = 64; the one that decides is shown",
        zh="d_k = 64、各取最佳学习率时，达到目标所需的步数（不缩放与缩放之比），以及损失在相邻记录步之间回升的总量（"
        "不缩放与缩放之差，nat）；此处列出起决定作用的一个",
    ),
    remark=SMALL_MODELS,
    evidence="fig-training-curves",
    reads=("training", *VERDICTS),
)
def slow_or_oscillating(results: Results) -> Outcome:
    slower = results.against_reference("none", "speed", SIZE)
    return either(at_least(slower, CHANGED), at_least(Runs(results, "recall", SIZE).rises(), NATS))


@claim(
    "C69",
    source="A",
    kind="trained",
    says=Text(
        en="Without the scale the attention maps were almost nothing but noise.",
        zh="忽略缩放因子时，注意力图几乎全是噪声。",
    ),
    measures=Text(
        en="mean cosine of the queries with the keys that they should find, of a wide head, d_k = 256, without the "
        "scale over that with it, at the same rate or each at its best",
        zh="d_k = 256 的宽头中，查询与目标键的余弦均值：不缩放与缩放之比（学习率相同，或各取最佳）",
    ),
    holds_if=HIGH_RATE,
    not_if=OWN_RATE,
    remark=SMALL_MODELS,
    evidence="fig-training-telemetry",
    reads=("training",),
)
def noise(results: Results) -> Outcome:
    runs = Runs(results, "recall", WIDE)
    best = runs.best_rates(runs.plain), runs.best_rates(runs.scaled)
    high, own = (runs.alignment(choices) for choices in (runs.top_rates(), best))
    return under(at_most(high, NOISE), at_most(own, NOISE))


@claim(
    "C74",
    source="A",
    kind="trained",
    says=Text(
        en="Gradients that flat (C3) make training extremely hard or even stall it, and where rows are nearly one-hot "
        "(C13) that directly hinders effective learning by gradient descent.",
        zh="如此平缓的梯度（C3）导致模型训练变得异常困难甚至停滞；输出接近 one-hot 时（C13），这直接阻碍了模型通过梯度"
        "下降进行有效学习。",
    ),
    measures=Text(
        en="steps to the target without the scale, over those with it, each at its best rate, d_k = 64",
        zh="d_k = 64、各取最佳学习率时，达到目标所需的步数：不缩放与缩放之比",
    ),
    untested=PART,
    remark=Text(
        en="That training is harder without the scale was measured; whether flat gradients are the cause was not: "
        "those of W_q and W_k do not vanish (C14).",
        zh="所测量的是不缩放时训练更困难；原因是否在于梯度平缓，没有检验：W_q 与 W_k 的梯度并未消失（C14）。",
    ),
    evidence="fig-training-curves",
    reads=VERDICTS,
    widespread=True,
)
def flat_and_hard(results: Results) -> Test:
    return at_least(results.against_reference("none", "speed", SIZE), CHANGED)
