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
VERDICTS = ("training_verdicts", "training_summary", "shipped_training_verdicts", "shipped_training_summary")


@claim(
    "C14",
    source="A",
    kind="trained",
    says=Text(
        en="The root of the trouble is the growing variance of unscaled scores, which makes gradients vanish; what it "
        "does to the stability of training is C57.",
        zh="问题的本质在于未缩放得分的方差不断增大，由此引发梯度消失（对训练稳定性的影响见 C57）。",
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
    holds_if=Text(
        en="the learning rate is the largest of both at which training with the scale still gets half of the way",
        zh="学习率取双方共有、且加缩放时训练仍能完成一半的最大值",
    ),
    not_if=Text(
        en="it is the best one without the scale",
        zh="学习率取不缩放时的最佳值",
    ),
    untested=PART,
    remark=Text(
        en="The first half was tested, in small models; that the curve is smooth and normal at once was not.",
        zh="前一半在小模型上做了检验；曲线是否“立刻变得平滑正常”没有检验。",
    ),
    evidence="fig-training-curves",
    reads=("training",),
    widespread=True,
)
def no_progress(results: Results) -> Outcome:
    runs = Runs(results, "recall", WIDE)
    high = runs.final_loss(runs.plain, runs.top_rates()[0])
    return under(at_least(high, NOT_LEARNED), at_least(runs.best_loss(runs.plain), NOT_LEARNED))


@claim(
    "C27",
    source="A",
    kind="trained",
    says=Text(
        en="Without the scale the norm of the gradient usually drops sharply or becomes unstable.",
        zh="不缩放时，梯度范数通常会急剧减小，或变得不稳定。",
    ),
    measures=Text(
        en="over all learning rates that both were trained at: norm of the gradient of W_q and W_k in the last third "
        "of training, and its mean jump between logged steps (as a logarithm), without the scale over with it; the "
        "one nearer to its threshold is shown",
        zh="在双方共有的全部学习率上：训练最后三分之一中 W_q 与 W_k 的梯度范数，以及相邻记录步之间其对数的平均跳动，"
        "均为不缩放与缩放之比；此处列出更接近界限的一个",
    ),
    remark=Text(
        en="It is larger than with the scale from the start, and stays so; with the scale it becomes small because "
        "the task is learned.",
        zh="它从一开始就比缩放时大，并一直如此；缩放时梯度变小，是因为任务已经学会。",
    ),
    evidence="fig-training-telemetry",
    reads=("training",),
)
def late_gradient(results: Results) -> Outcome:
    runs = Runs(results, "recall", SIZE)
    return either(at_most(runs.late_gradient(), VANISHING), at_least(runs.gradient_jumps(), CHANGED))


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
        zh="d_k = 64、仅用缩放、取最快的学习率时，回忆任务与归纳任务中达到“已学会”损失的训练所占比例；此处列出更接"
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
        en="Without the scale hardly any gradient gets back, and learning comes to a complete standstill.",
        zh="不缩放时，反向传播几乎没有有效的梯度信号，学习过程会完全停滞。",
    ),
    measures=Text(
        en="final loss of a wide head, d_k = 256, without the scale at its best rate, over that of guessing",
        zh="d_k = 256 的宽头在不缩放、取最佳学习率时的最终损失与随机猜测的损失之比",
    ),
    remark=SMALL_MODELS,
    evidence="fig-training-curves",
    reads=("training",),
    widespread=True,
)
def standstill(results: Results) -> Test:
    runs = Runs(results, "recall", WIDE)
    return at_least(runs.best_loss(runs.plain), NOT_LEARNED)


@claim(
    "C57",
    source="A",
    kind="trained",
    says=Text(
        en="The growing variance of unscaled scores makes training unstable.",
        zh="未缩放得分的方差不断增大，导致训练不稳定。",
    ),
    measures=Text(
        en="how far training gets, as the part of the loss of guessing that is gone, without the scale over with it, "
        "at d_k = 64; under the condition also at 256, and the one nearer to the threshold is shown",
        zh="训练的进展（随机猜测的损失中已消除的部分），不缩放与缩放之比，d_k = 64；在该条件下还包括 256，并列出更接近"
        "界限的一个",
    ),
    holds_if=Text(
        en="the learning rate is the largest of both at which training with the scale still gets half of the way",
        zh="学习率取双方共有、且加缩放时训练仍能完成一半的最大值",
    ),
    not_if=Text(
        en="each has its own best rate",
        zh="各取最佳学习率",
    ),
    remark=SMALL_MODELS,
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
        zh="d_k = 64、各取最佳学习率时，归纳任务上不缩放与缩放的正确率之差",
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
        en="Without the scale the scores have a very large range and may fluctuate strongly while training.",
        zh="不缩放时，得分的范围或标准差会非常大，且可能随着训练剧烈波动。",
    ),
    measures=Text(
        en="mean change of the spread of the logits between logged steps, without the scale over with it, each at its "
        "best rate, d_k = 64; under the condition also that spread after training, and the one nearer to the "
        "threshold is shown",
        zh="d_k = 64、各取最佳学习率时，logit 的标准差在相邻记录步之间的平均变化：不缩放与缩放之比；在该条件下还包括训"
        "练结束时的标准差，并列出更接近界限的一个",
    ),
    holds_if=Text(
        en="changes are in units of the logits",
        zh="变化以 logit 本身为单位",
    ),
    not_if=Text(
        en="they are changes of the logarithm, and so shares of the spread itself",
        zh="取对数的变化，即以标准差自身的大小为单位",
    ),
    evidence="fig-training-telemetry",
    reads=("training",),
)
def fluctuations(results: Results) -> Outcome:
    runs = Runs(results, "recall", SIZE)
    changes, relative = runs.spread_changes(), runs.spread_changes(relative=True)
    return under(every(at_least(runs.final_spread(), CHANGED), at_least(changes, CHANGED)), at_least(relative, CHANGED))


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
        zh="任务需要两层协同（归纳任务），且只训练数百步",
    ),
    not_if=Text(
        en="one layer looks the answer up (recall)",
        zh="任务只需一层查找（回忆任务）",
    ),
    untested=PART,
    remark=Text(
        en="An anecdote of another model. Beyond some hundred steps no such run was tried; gradients are C11 and C14.",
        zh="这是关于另一模型的轶事。超过数百步的这类训练没有试验；梯度见 C11 与 C14。",
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
    says=Text(
        en="Take the factor out for a while: the training curve and the norm of the gradient show it.",
        zh="暂时移除缩放因子，训练曲线和梯度范数都会随之变化。",
    ),
    measures=Text(
        en="steps to the target at the best rate, and norm of the gradient of W_q and W_k before the first step, "
        "without the scale over with it, d_k = 64; the one nearer to the threshold is shown",
        zh="d_k = 64 时，取最佳学习率达到目标所需的步数，以及第一步之前 W_q 与 W_k 的梯度范数，均为不缩放与缩放之比"
        "；此处列出更接近界限的一个",
    ),
    remark=Text(
        en="The gradient is larger without the factor, not smaller; by definition it is so by a factor 8, without "
        "which about 0.5 is left.",
        zh="移除之后梯度变大，而不是变小；按定义其中有 8 倍来自因子本身，除去它约剩 0.5。",
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
        en="Without the scale the loss usually falls slowly or oscillates.",
        zh="不缩放时，损失通常下降缓慢或震荡。",
    ),
    measures=Text(
        en="steps to the target, without the scale over with it, and nats by which the loss rises between logged "
        "steps, without the scale minus with it, each at its best rate, d_k = 64; the one that decides is shown",
        zh="d_k = 64、各取最佳学习率时，达到目标所需的步数（不缩放与缩放之比），以及损失在相邻记录步之间回升的总量（"
        "不缩放与缩放之差，nat）；此处列出起决定作用的一个",
    ),
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
    holds_if=Text(
        en="the learning rate is the largest of both at which training with the scale still gets half of the way",
        zh="学习率取双方共有、且加缩放时训练仍能完成一半的最大值",
    ),
    not_if=Text(
        en="it is the best one without the scale",
        zh="学习率取不缩放时的最佳值",
    ),
    remark=SMALL_MODELS,
    evidence="fig-training-telemetry",
    reads=("training",),
)
def noise(results: Results) -> Outcome:
    runs = Runs(results, "recall", WIDE)
    best = runs.best_rates(runs.plain), runs.best_rates(runs.scaled)
    high, own = (runs.alignment(choices) for choices in (runs.top_rates(), best))
    return under(at_most(high, NOISE), at_most(own, NOISE))
