"""Claims on other normalisers, and on practice."""

from typing import Any

from sqrtdk.claims.core import PART, WHOLE, Outcome, Test, at_least, at_most, claim, every, near, under
from sqrtdk.claims.lookup import REFERENCE, Results
from sqrtdk.claims.texts import Text
from sqrtdk.claims.thresholds import CHANGED, DIGIT, MOST, RIGHT
from sqrtdk.claims.training import VERDICTS

SIZE, N_KEYS = 64, 64


@claim(
    "C25",
    source="A",
    kind="arithmetic",
    identity=True,
    says=Text(
        en="Scaling after softmax changes that the weights are a distribution, with the sum 1.",
        zh="在 softmax 之后进行缩放，会改变注意力权重的概率分布特性（和为 1）。",
    ),
    measures=Text(en="sum of the weights after a factor of 2", zh="乘以 2 之后的权重之和"),
    remark=Text(
        en="That few do so, and that it takes very careful design, was not tested.",
        zh="只有极少数工作这样做、需要非常谨慎的设计，这两点没有检验。",
    ),
    evidence="tab-normalisers",
    reads=("normalisers",),
)
def after_softmax(results: Results) -> Test:
    row = results.row("normalisers", normaliser="post_scale(a=2)", measure="row_sum", logit_std=1, n_keys=N_KEYS)
    return at_least(row.exact(), CHANGED)


@claim(
    "C29",
    source="A",
    kind="trained",
    says=Text(
        en="Softer weights usually bring a richer and more robust representation of the context.",
        zh="更柔和的注意力分布通常能带来更丰富、更鲁棒的上下文表示。",
    ),
    measures=Text(
        en="share of right answers on induction without the scale minus that with it, each at its best rate, d_k = 64",
        zh="d_k = 64、各取最佳学习率时，归纳头任务上不缩放与缩放的正确率之差",
    ),
    untested=WHOLE,
    remark=Text(
        en="How rich a representation is was not measured; that weights are softer is C19.",
        zh="表示是否更丰富无法直接测量；分布更柔和见 C19。",
    ),
    evidence="fig-training-curves",
    reads=VERDICTS,
)
def richer_context(results: Results) -> Test:
    return at_most(results.against_reference("none", "accuracy", SIZE, task="induction"), RIGHT.times(-1))


@claim(
    "C31",
    source="A",
    kind="simulated",
    says=Text(
        en="The d_k of the scale has to be the width that queries and keys are projected to; with several heads this "
        "is usually d_model/h.",
        zh="缩放中的 d_k 必须是 Query 和 Key 投影后的维度；在多头注意力中它通常等于 d_model / h。",
    ),
    measures=Text(
        en="standard deviation of the logits if d_model, of 8 heads, stands in for d_k; and share of 16 published "
        "models whose d_k is d_model/h; the one nearer to the threshold is shown",
        zh="以 d_model（8 个头）代替 d_k 时 logit 的标准差，以及 16 个公开模型中 d_k 等于 d_model / h 的比例；此处列"
        "出更接近界限的一个",
    ),
    untested=PART,
    remark=Text(
        en="That another width makes the logits smaller by √h cannot fail. Whether it has to be this one is open: "
        "small models did not do worse with a smaller factor (C26, C30). The models are a list of ours and no sample; "
        "T5 3B and the Gemmas have other widths.",
        zh="换用其他宽度必然使 logit 缩小为 1/√h。但是否“必须”是它，尚无定论：小模型采用更小的因子并没有变差（C26、C30"
        "）。模型是我们列出的，并非抽样；T5 3B 与各 Gemma 就不是如此。",
    ),
    evidence="tab-claim-checks",
    reads=("alternatives", "claim_checks"),
)
def width_of_a_head(results: Results) -> Outcome:
    row = results.row("alternatives", variant="d_model_for_d_k", measure="logit_std", d_k=SIZE, n_keys=N_KEYS)
    usual = results.check("heads_of_usual_width").exact()
    return every(at_most(row.estimate(), CHANGED.inverse()), at_least(usual, MOST))


@claim(
    "C32",
    source="A",
    kind="real",
    says=Text(
        en="The weights of a healthy attention head are usually not extremely sparse.",
        zh="一个健康的注意力头，其权重分布通常不会极端稀疏。",
    ),
    measures=Text(
        en="mean over trained models of the share of heads in which at most half of the rows have a weight above 0.99",
        zh="各已训练的模型中，最大权重超过 0.99 的行不到一半的头所占比例（按模型平均）",
    ),
    untested=PART,
    remark=Text(
        en="Which heads are healthy was not judged: these are all heads of a few small models, and models are the "
        "unit. That one should watch the scores, the weights and the gradient is advice, as C53.",
        zh="哪些头“健康”没有判定：这里是几个小模型的全部的头，以模型为单位。应当监控点积、权重和梯度，是同 C53 一样"
        "的建议。",
    ),
    evidence="tab-audit",
    reads=("audit", "real_heads"),
)
def sparse_heads(results: Results) -> Test:
    audit = results.frame("audit")
    return at_least(results.share_of_heads(audit["saturated_share"] <= 0.5, audit["dump"]), MOST)


@claim(
    "C35",
    source="A",
    kind="simulated",
    says=Text(
        en="In models of some hundred billion parameters a format such as bfloat16 and extreme depth are reasons to "
        "clip the scores now and then.",
        zh="在千亿参数级的模型中，由于 bfloat16 等数值精度和极端深度带来的挑战，有时会对注意力得分进行额外的钳位。",
    ),
    measures=Text(
        en="share of the weight that moves when scaled logits are rounded to bfloat16, over that when the weights "
        "themselves are, which nobody minds; d_k = 1024",
        zh="d_k = 1024 时，把缩放后的 logit 舍入为 bfloat16 所移动的权重比例，与把权重本身舍入（人人都接受）时之比",
    ),
    untested=WHOLE,
    remark=Text(
        en="Neither clipping nor depth nor a large model was tested. Without the scale rounding moves far more.",
        zh="既没有检验钳位，也没有检验深度或大模型。不缩放时，舍入所移动的权重要多得多。",
    ),
    evidence="fig-rounding",
    reads=("rounding",),
)
def few_bits(results: Results) -> Test:
    setting: dict[str, Any] = dict(format="bfloat16", measure="total_variation", scaling=REFERENCE)
    logits, accepted = (
        results.row("rounding", d_k=1024, rounded=rounded, **setting).estimate()
        for rounded in ("logits", "probabilities")
    )
    return at_least(logits.over(accepted), CHANGED)


@claim(
    "C36",
    source="A",
    kind="arithmetic",
    says=Text(
        en="Softmax1 is softmax with exp(x − 1) in place of exp(x).",
        zh="Softmax1 就是把 exp(x) 换成 exp(x − 1) 的 softmax。",
    ),
    measures=Text(
        en="largest difference of weights between softmax of x − 1 and softmax1, for x = (1, 0.5, 0.8)",
        zh="x = (1, 0.5, 0.8) 时，x − 1 的 softmax 与 softmax1 权重的最大差异",
    ),
    evidence="tab-claim-checks",
    reads=("claim_checks",),
    widespread=True,
)
def softmax1(results: Results) -> Test:
    return near(results.check("shifted_from_softmax1").exact(), 0.0, DIGIT.times(0.01))


@claim(
    "C55",
    source="B",
    kind="simulated",
    says=Text(
        en="The scale stays effective in variants such as sparse and linear attention.",
        zh="在稀疏注意力、线性注意力等变体架构中，缩放仍然保持有效。",
    ),
    measures=Text(
        en="effective number of keys of a row, with the scale over without, d_k = 64, n = 64; of sparse attention the "
        "one nearer to the threshold is shown",
        zh="d_k = 64、n = 64 时一行的有效键数：缩放与不缩放之比；稀疏注意力列出更接近界限的一个",
    ),
    holds_if=Text(
        en="attention is sparse, over a window of 16 keys or the 8 largest logits",
        zh="采用稀疏注意力：16 个键的窗口，或最大的 8 个 logit",
    ),
    not_if=Text(en="attention is linear, with ReLU features", zh="采用 ReLU 特征的线性注意力"),
    remark=Text(
        en="With random features of the exponential (Performer) the scale matters in linear attention too.",
        zh="若线性注意力采用指数核的随机特征（Performer），缩放同样重要。",
    ),
    evidence="tab-claim-checks",
    reads=("claim_checks", "linear_attention"),
    widespread=True,
)
def variants(results: Results) -> Outcome:
    linear, plain = (
        results.row(
            "linear_attention", d_k=SIZE, n_keys=N_KEYS, measure="effective_keys", attention="relu", scaling=scaling
        ).estimate()
        for scaling in (REFERENCE, "none")
    )
    sparse = (results.check("sparse_effect", case=name).estimate() for name in ("window", "top_k"))
    return under(every(*(at_least(one, CHANGED) for one in sparse)), at_least(linear.over(plain), CHANGED))
