"""Claims on gradients before training: how much of them is left, and for which rows."""

from typing import Any

from sqrtdk.claims.core import Measured, Outcome, Test, Text, at_least, at_most, claim, every, under
from sqrtdk.claims.lookup import REFERENCE, Results

SIZE, N_KEYS = 64, 64
VANISHING = 0.5
"""A gradient that is called vanishing has to be at most half of that with the scale."""
ALMOST_ZERO = 0.1
"""One that is called almost zero, at most a tenth of that of the healthy example."""


def _query_gradient(results: Results, d_k: int, n_keys: int, value: str, se: str) -> Measured:
    """Return the norm of ∂L/∂q without the scale over that with it."""
    setting: dict[str, Any] = dict(ensemble=results.ensemble("standard"), measure="grad_query")
    rows = (
        results.row("gradient_magnitude", d_k=d_k, n_keys=n_keys, scaling=scaling, **setting)
        for scaling in ("none", REFERENCE)
    )
    plain, scaled = (row.estimate(value, se) for row in rows)
    return plain.over(scaled)


@claim(
    "C11",
    source="A",
    kind="simulated",
    says=Text(
        en="Without the scale attention is almost one-hot at initialisation, so that its gradient vanishes.",
        zh="不缩放时，初始化阶段的注意力几乎是 one-hot，因此梯度消失。",
    ),
    measures=Text(
        en="median over rows of the norm of ∂L/∂q, without the scale over with it",
        zh="各行 ∂L/∂q 范数的中位数：不缩放与缩放之比",
    ),
    holds_if=Text(
        en="the head is very wide, d_k = 1024 with n = 16",
        zh="头非常宽，d_k = 1024、n = 16",
    ),
    not_if=Text(
        en="d_k = 64 with n = 64",
        zh="d_k = 64、n = 64",
    ),
    evidence="fig-gradients",
    reads=("gradient_magnitude",),
    widespread=True,
)
def typical_row(results: Results) -> Outcome:
    wide = _query_gradient(results, 1024, 16, "median", "median_se")
    usual = _query_gradient(results, SIZE, N_KEYS, "median", "median_se")
    return under(at_most(wide, VANISHING), at_most(usual, VANISHING))


@claim(
    "C18",
    source="A",
    kind="simulated",
    says=Text(
        en="At d_k = 64 the scale keeps softmax where it is sensitive, so that a row passes on more gradient.",
        zh="d_k = 64 时，缩放使 softmax 处于敏感区，从而让每一行传回更多梯度。",
    ),
    measures=Text(
        en="width above which the Jacobian of the median row is larger with the scale than without",
        zh="中位行的雅可比矩阵在缩放后反而更大的临界宽度",
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

    return under(at_most(crossover(16), SIZE), at_most(crossover(1024), SIZE))


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
    return at_most(large.over(small), ALMOST_ZERO)


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
    return at_most(results.check("loss_formula_error").exact(), 0.01)


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

    return under(at_least(ratio(3), 1.0), at_least(ratio(N_KEYS), 1.0))


@claim(
    "C56",
    source="B",
    kind="simulated",
    says=Text(
        en="The chain: variance grows, softmax saturates, and by that gradients vanish, which the scale repairs.",
        zh="因果链：方差增大，softmax 饱和，于是梯度消失，而缩放修复了这一切。",
    ),
    measures=Text(
        en="its weakest link: root mean square of the norm of ∂L/∂q, which adds up to the gradient of the weights, "
        "without the scale over with it; at both places of C11",
        zh="其中最薄弱的一环：∂L/∂q 范数的均方根（它累积成权重的梯度），不缩放与缩放之比；取 C11 的两处条件",
    ),
    evidence="fig-gradients",
    reads=("gradient_magnitude",),
    widespread=True,
)
def chain(results: Results) -> Outcome:
    places = ((1024, 16), (SIZE, N_KEYS))
    return every(*(at_most(_query_gradient(results, *place, "estimate", "se"), VANISHING) for place in places))
