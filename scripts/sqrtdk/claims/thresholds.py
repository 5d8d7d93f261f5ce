"""Where claims are decided: every threshold once, with its reason and another that would be as reasonable.

They belong to kinds of claims and are set before any value is seen; a claim picks one by what it says.
"""

import dataclasses
from dataclasses import dataclass

from sqrtdk.claims.texts import Text


@dataclass(frozen=True)
class Threshold:
    """A bound, or a margin around an expected value, in the unit of the statistic.

    other: another one that a reader could ask for; whether it would turn a verdict is said beside each. why: the
    reason for this one, which stands in the report before the values.
    """

    name: str
    value: float
    other: float
    means: Text
    why: Text

    def times(self, factor: float) -> "Threshold":
        """Return the same threshold in another unit, or of a statistic with another sign."""
        return dataclasses.replace(self, value=factor * self.value, other=factor * self.other)

    def inverse(self) -> "Threshold":
        """Return the same threshold of a ratio that is taken the other way round."""
        return dataclasses.replace(self, value=1 / self.value, other=1 / self.other)

    @property
    def turned(self) -> "Threshold":
        """The other one in the place of this."""
        return dataclasses.replace(self, value=self.other, other=self.value)


def _threshold(name: str, value: float, other: float, means: tuple[str, str], why: tuple[str, str]) -> Threshold:
    return Threshold(name, value, other, *(Text(en=en, zh=zh) for en, zh in (means, why)))


# ASSUME all of them: no law says what `vanishes`, `nearly` or `usually` are.
EXPONENT = _threshold(
    "exponent",
    0.02,
    0.05,
    ("margin of an exponent of d_k", "d_k 的指数允许的偏差"),
    (
        "over a factor 64 in d_k it changes a variance by less than a tenth",
        "当 d_k 变化 64 倍时，它对方差的影响不到十分之一",
    ),
)
GROWING = _threshold(
    "growing",
    0.4,
    0.25,
    ("exponent of d_k of what grows and grows with it", "“越来越大”的量关于 d_k 的指数"),
    ("over a factor 64 in d_k it is then five times as large", "当 d_k 变化 64 倍时，它已变为五倍"),
)
MOMENT = _threshold(
    "moment",
    0.02,
    0.05,
    ("relative margin of a variance or a spread that a law gives", "由定律给出的方差或标准差的相对偏差"),
    ("it changes no weight of softmax by more than some percent", "它对 softmax 权重的影响不过百分之几"),
)
CLOSE = _threshold(
    "close",
    0.05,
    0.1,
    ("relative margin where a condition is asked for", "检验条件时的相对偏差"),
    (
        "what a condition changes is far more, so that a wider margin than that of a law does",
        "条件造成的差别远大于此，因此可以比定律的偏差放宽一些",
    ),
)
LOGITS = _threshold(
    "logits",
    0.1,
    0.25,
    ("relative margin of a variance of logits", "logit 方差的相对偏差"),
    ("two variances, each with the margin above, are multiplied in it", "其中相乘的两个方差各有上述偏差"),
)
CHANGED = _threshold(
    "changed",
    1.25,
    2.0,
    ("factor by which something is larger, smaller, faster or slower", "称为更大、更小、更快或更慢所需的倍数"),
    ("the margin that comparisons of training speed have everywhere here", "与本项目比较训练速度时处处采用的界限相同"),
)
VANISHING = _threshold(
    "vanishing",
    0.1,
    0.5,
    ("share that is left of what vanishes or is almost zero", "“消失”或“几乎为零”的量所剩的比例"),
    (
        "one half is smaller, but neither gone nor almost zero, and a learning rate makes up for it",
        "剩下一半只能算变小，谈不上消失或几乎为零，调整学习率即可弥补",
    ),
)
ALMOST_ALL = _threshold(
    "almost_all",
    0.9,
    0.8,
    ("share that is nearly all, or guaranteed", "“几乎全部”或“保证”所对应的比例"),
    ("one in ten is left out", "只有十分之一例外"),
)
MOST = _threshold(
    "most",
    0.5,
    0.9,
    ("share that is most, or usual", "“大部分”或“通常”所对应的比例"),
    ("the word asks for more than half", "字面含义就是超过一半"),
)
NEARLY_ONE = _threshold(
    "nearly_one",
    0.95,
    0.99,
    ("weight that is nearly 1", "“接近 1”的权重"),
    ("all other keys share one part in twenty", "其余各键合计只占二十分之一"),
)
EASILY = _threshold(
    "easily",
    0.05,
    0.1,
    ("share of cases in which something is reached easily", "“很容易达到”所对应的比例"),
    ("what happens less often than once in twenty is called rare", "少于二十分之一的情形称为罕见"),
)
ALIGNED = _threshold(
    "aligned",
    0.9,
    0.95,
    ("correlation of two quantities of which one stands for the other", "一个量可以代表另一个量时的相关系数"),
    ("four fifths of the variance are then shared", "此时两者共有五分之四的方差"),
)
SEVERAL = _threshold(
    "several",
    3.0,
    2.0,
    ("number of keys that are several", "“多个”键的个数"),
    ("two are a pair", "两个只是一对"),
)
CONCENTRATED = _threshold(
    "concentrated",
    0.5,
    0.25,
    (
        "entropy of a row, as a share of that of equal weights, up to which softmax is saturated",
        "行的熵与等权重时之比，不超过此值即视为 softmax 饱和",
    ),
    ("the row then has the entropy of equal weights on √n of its n keys", "此时该行的熵只相当于在 √n 个键上等权重"),
)
SENSITIVE = _threshold(
    "sensitive",
    0.1,
    0.25,
    ("change of a weight that is large", "算作“很大”的权重变化"),
    ("a tenth of the weight goes to another key", "十分之一的权重转到了别的键上"),
)
NOT_LEARNED = _threshold(
    "not_learned",
    0.9,
    0.5,
    ("share of the loss of guessing at which nothing was learned", "视为“什么也没学到”的损失与随机猜测损失之比"),
    ("less than a tenth of what could be learned was learned", "可以学到的只学到不足十分之一"),
)
NATS = _threshold(
    "nats",
    0.05,
    0.02,
    ("difference of two final losses in nats", "两个最终损失之差（nat）"),
    ("the margin that comparisons of losses have everywhere here", "与本项目比较损失时处处采用的界限相同"),
)
RIGHT = _threshold(
    "right",
    0.1,
    0.02,
    ("difference of two shares of right answers that is key to a task", "对任务至关重要的正确率之差"),
    ("one answer in ten depends on it", "每十个答案中有一个取决于它"),
)
NOISE = _threshold(
    "noise",
    0.5,
    0.25,
    (
        "alignment of queries with the keys that they should find, over that with the scale, of maps that are noise",
        "注意力图“几乎全是噪声”时，查询与目标键的对齐程度（与缩放时之比）",
    ),
    ("less than half of what was learned is there", "学到的对齐不到一半"),
)
DIGIT = _threshold(
    "digit",
    0.5,
    1.0,
    ("error of a printed number, in units of its last digit", "印出数字的误差，以末位为单位"),
    ("more is no rounding", "超过半个末位就不是四舍五入"),
)
HUNDREDS = _threshold(
    "hundreds",
    2.0,
    1.0,
    ("number of hundreds that are hundreds", "“数百”所对应的百位数"),
    ("the plural starts at two", "“数百”至少为二百"),
)
ROUNDING = _threshold(
    "rounding",
    1e-9,
    1e-6,
    ("difference of two numbers that are equal but for rounding", "除舍入外应当相等的两个数之差"),
    ("double precision is far better", "双精度的误差远小于此"),
)
ALL = tuple(one for one in globals().values() if isinstance(one, Threshold))
"""All thresholds, in the order in which the report states them."""
