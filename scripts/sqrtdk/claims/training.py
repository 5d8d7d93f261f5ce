"""Claims on training, decided by small models trained from scratch with the scale and without."""

import math
from dataclasses import replace

import numpy as np

from sqrtdk.claims.core import Measured, Missing, Outcome, Test, Text, at_least, at_most, claim, every, under
from sqrtdk.claims.lookup import REFERENCE, TINY, Results
from sqrtdk.statistics import estimates
from sqrtdk.training import cells
from sqrtdk.training.cells import Choice, Sweep

RULES = ("none", REFERENCE)
SIZE, WIDE = 64, 256
VANISHING = 0.5
NOT_LEARNED = 0.9
"""A loss of at least this share of guessing has hardly fallen."""
LEARNED = 0.1
HURTS, NO_GAIN = 0.05, -0.05
"""Nats by which a final loss is higher, or not lower, than with 1/√d_k: near 0, ratios of losses mean nothing."""
WORKS = 0.5
"""A rate gets half of the way where the mean progress of the runs, 1 − loss/guess, is at least this.

Less than what `usable` asks for: there both rules learn, and the two sides of the claim would be one.
"""
LATE = 2 / 3
"""The last third of the steps is late."""


class Runs:
    """The runs of the first experiment of this run that has both rules, at the width nearest to the one asked for.

    Each half of the seeds is given the learning rate that the other half chooses.
    """

    def __init__(self, results: Results, d_k: int) -> None:
        curves = results.frame("training_curves")
        both = [set(curves.loc[curves["scaling"] == scaling, "experiment"]) for scaling in RULES]
        names = [name for name in dict.fromkeys(curves["experiment"]) if all(name in names for names in both)]
        if not names:
            raise Missing(f"training_curves: scaling = {', '.join(RULES)}")
        self.at = results.row("training_curves", d_k=d_k, experiment=names[0]).at
        logs = results.select("training", experiment=names[0], d_k=self.at["d_k"][0])
        found = {cell.key["scaling"]: cell for cell in cells.cells(logs[logs["scaling"].isin(RULES)])}
        if len(found) < len(RULES):
            raise Missing(f"training: scaling = {', '.join(RULES)}")
        self.plain, self.scaled = (found[scaling] for scaling in RULES)

    def top_rates(self) -> tuple[Choice, Choice]:
        """Return the largest rate, of those tried with both rules, that gets half of the way with 1/√d_k.

        As indices among the rates without the scale, and with it.
        """
        rates = np.intersect1d(self.plain.rates, self.scaled.rates)
        here, there = (np.searchsorted(cell.rates, rates) for cell in (self.plain, self.scaled))

        def largest(progress: np.ndarray) -> int:
            if not (progress >= WORKS).any():
                raise Missing(f"training: progress of {REFERENCE}")
            return int(np.flatnonzero(progress >= WORKS).max())

        chosen = cells.choose(rates, self.scaled.progress[there], largest)
        return replace(chosen, index=here[chosen.index]), replace(chosen, index=there[chosen.index])

    def final_loss(self, cell: Sweep, choice: Choice) -> Measured:
        """Return the final loss as a share of that of guessing, a geometric mean over seeds."""
        # A run that diverged counts as guessing.
        losses = np.nan_to_num(choice.of(cell.losses[..., -1]), nan=cell.guess)
        return self._geometric(np.log(np.maximum(losses, TINY) / cell.guess))

    def gradient_ratio(self, choices: tuple[Choice, Choice], late: bool) -> Measured:
        """Return the norm of the gradient of W_q and W_k without the scale over that with it, of equal seeds.

        Before the first step, or over the last third of the steps (their geometric mean).
        """
        plain, scaled = (
            np.mean(np.log(np.maximum(choice.of(cell.gradient)[:, _when(cell, late)], TINY)), axis=1)
            for cell, choice in zip((self.plain, self.scaled), choices, strict=True)
        )
        return self._geometric(plain - scaled)

    def _geometric(self, logs: np.ndarray) -> Measured:
        # Runs that diverged have no gradient.
        logs = logs[np.isfinite(logs)]
        if len(logs) < 2:
            raise Missing("training: two seeds")
        log, log_se = estimates.mean(logs)
        centre = math.exp(log)
        return Measured(centre, centre * log_se, cells.halved(len(logs)), log=True, at=self.at)


def _when(cell: Sweep, late: bool) -> np.ndarray:
    return cell.steps > LATE * cell.steps[-1] if late else cell.steps == 0


TELEMETRY = ("training", "training_curves")
VERDICTS = ("training_verdicts", "training_summary", "shipped_training_verdicts", "shipped_training_summary")


@claim(
    "C14",
    source="A",
    kind="trained",
    says=Text(
        en="The growing variance is the root of the trouble: it makes gradients vanish and training unstable.",
        zh="方差增长是问题的根源：它导致梯度消失和训练不稳定。",
    ),
    measures=Text(
        en="its first effect: norm of the gradient of W_q and W_k before any step, without the scale over with it",
        zh="其中第一种后果：第一步之前 W_q 与 W_k 的梯度范数，不缩放与缩放之比",
    ),
    evidence="fig-training-telemetry",
    reads=TELEMETRY,
    widespread=True,
)
def first_gradient(results: Results) -> Test:
    runs = Runs(results, SIZE)
    best = runs.plain.best_rates(), runs.scaled.best_rates()
    return at_most(runs.gradient_ratio(best, late=False), VANISHING)


@claim(
    "C20",
    source="A",
    kind="trained",
    says=Text(
        en="Without the scale the loss does not go down at all.",
        zh="不加缩放因子，损失完全不下降。",
    ),
    measures=Text(
        en="final loss without the scale, as a share of that of guessing",
        zh="不缩放时的最终损失与随机猜测的损失之比",
    ),
    holds_if=Text(
        en="the learning rate is the largest at which training with the scale still gets half of the way",
        zh="学习率取加缩放时训练仍能完成一半的最大值",
    ),
    not_if=Text(
        en="it is the best one without the scale",
        zh="学习率取不缩放时的最佳值",
    ),
    evidence="fig-training-curves",
    reads=TELEMETRY,
    widespread=True,
)
def no_progress(results: Results) -> Outcome:
    runs = Runs(results, SIZE)
    high, own = (runs.final_loss(runs.plain, choice) for choice in (runs.top_rates()[0], runs.plain.best_rates()))
    return under(at_least(high, NOT_LEARNED), at_least(own, NOT_LEARNED))


@claim(
    "C23",
    source="A",
    kind="trained",
    says=Text(
        en="A factor that is learned brings next to no gain over 1/√d_k.",
        zh="可学习的缩放因子相对 1/√d_k 几乎没有收益。",
    ),
    measures=Text(
        en="final loss minus that with 1/√d_k in nats, each at its own best learning rate",
        zh="各取最佳学习率时，最终损失与 1/√d_k 的最终损失之差（nat）",
    ),
    evidence="tab-training-shipped",
    reads=VERDICTS,
)
def learned_factor(results: Results) -> Test:
    return at_least(results.against_reference("learnable", "loss", SIZE), NO_GAIN)


@claim(
    "C27",
    source="A",
    kind="trained",
    says=Text(
        en="Without the scale rows are one-hot and the norm of the gradient drops sharply.",
        zh="不缩放时，注意力行接近 one-hot，梯度范数急剧下降。",
    ),
    measures=Text(
        en="norm of the gradient of W_q and W_k without the scale over with it, at the largest rate at which training "
        "with it still gets half of the way",
        zh="在加缩放时训练仍能完成一半的最大学习率下，W_q 与 W_k 的梯度范数：不缩放与缩放之比",
    ),
    holds_if=Text(
        en="it is the last third of the training",
        zh="处于训练的最后三分之一",
    ),
    not_if=Text(
        en="it is before the first step",
        zh="处于第一步之前",
    ),
    evidence="fig-training-telemetry",
    reads=TELEMETRY,
)
def late_gradient(results: Results) -> Outcome:
    runs = Runs(results, SIZE)
    late, first = (runs.gradient_ratio(runs.top_rates(), late) for late in (True, False))
    return under(at_most(late, VANISHING), at_most(first, VANISHING))


@claim(
    "C30",
    source="A",
    kind="trained",
    says=Text(
        en="Taking the width of the values for d_k makes the factor too small, and attention degenerates in the end.",
        zh="把值的宽度误当作 d_k 会使缩放因子过小，注意力在训练后期退化。",
    ),
    measures=Text(
        en="final loss of the longest runs minus that with the right width in nats, for values 2 and 4 times as wide",
        zh="值的宽度为 2 倍和 4 倍时，最长训练的最终损失与使用正确宽度时之差（nat）",
    ),
    evidence="tab-training-shipped",
    reads=VERDICTS,
)
def width_of_values(results: Results) -> Outcome:
    rules = (f"d_v_for_d_k(ratio={ratio})" for ratio in (2, 4))
    return every(*(at_least(results.against_reference(rule, "loss", SIZE), HURTS) for rule in rules))


@claim(
    "C37",
    source="A",
    kind="trained",
    says=Text(
        en="In a standard model the right scale is all that is needed for stable training.",
        zh="在标准模型中，只要缩放正确，训练就足够稳定。",
    ),
    measures=Text(
        en="final loss with the scale, as a share of that of guessing",
        zh="加缩放时的最终损失与随机猜测的损失之比",
    ),
    holds_if=Text(
        en="the learning rate is the best of those tried",
        zh="学习率取所试各值中的最佳值",
    ),
    not_if=Text(
        en="it is the largest of those tried",
        zh="学习率取所试各值中的最大值",
    ),
    evidence="fig-training-curves",
    reads=TELEMETRY,
)
def scale_is_enough(results: Results) -> Outcome:
    runs = Runs(results, SIZE)
    choices = runs.scaled.best_rates(), runs.scaled.last_rates()
    best, last = (runs.final_loss(runs.scaled, choice) for choice in choices)
    return under(at_most(best, LEARNED), at_most(last, LEARNED))


@claim(
    "C49",
    source="B",
    kind="trained",
    says=Text(
        en="Without the scale no gradient gets back, and learning stands completely still.",
        zh="不缩放就没有梯度回传，学习会完全停滞。",
    ),
    measures=Text(
        en="final loss of a wide head without the scale at its best rate, as a share of that of guessing",
        zh="宽头在不缩放、取最佳学习率时的最终损失与随机猜测的损失之比",
    ),
    evidence="fig-training-curves",
    reads=TELEMETRY,
    widespread=True,
)
def standstill(results: Results) -> Test:
    runs = Runs(results, WIDE)
    return at_least(runs.final_loss(runs.plain, runs.plain.best_rates()), NOT_LEARNED)
