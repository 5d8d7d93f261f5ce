"""Runs: one scale rule at one width, trained at several rates from several seeds, and what is seen on the way.

Runs of one seed share their data and, at one width, their initial weights, whatever rule, optimiser and rate they have.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sqrtdk.sampling import streams
from sqrtdk.statistics import estimates
from sqrtdk.training import model, rules
from sqrtdk.training.model import Parameters, Shape
from sqrtdk.training.optimisers import POWER, Optimiser
from sqrtdk.training.rules import Rule
from sqrtdk.training.tasks import TASKS

EVALUATION = 16
"""Sequences of the held-out data on which a model is measured."""
SCORES = ("w_q", "w_k", "b_q", "b_k")
"""The parameters that make the scores."""
SCHEDULES = ("constant", "warm_up_and_decay")
WARM_UP = 0.1
"""Share of the steps over which a learning rate rises."""
PER_DECADE = 4
SATURATED = 0.99  # ASSUME a row whose largest weight is above this is saturated
DIGITS = 6
"""Significant digits of what is logged."""
TRAINED_IN = np.float32
"""What models are trained in, as everywhere; what is logged of them is measured in double precision."""


def logged_steps(steps: int) -> list[int]:
    """Return the steps at which a model is measured: the first, the last, and four for each factor of 10 between."""
    between = (round(10 ** (i / PER_DECADE)) for i in range(PER_DECADE, 60))
    return sorted({0, *between, steps} & set(range(steps + 1)))


def stack(models: Sequence[Parameters]) -> Parameters:
    """Put the parameters of several models on a leading axis."""
    return {name: np.stack([one[name] for one in models]) for name in models[0]}


def initial(shape: Shape, rule: Rule, task: str, seed: int, seeds: Sequence[int]) -> Parameters:
    """Draw the initial weights of a model for each seed, the same for every rule."""
    identity = "training", task, shape.d_k, "weights"
    return stack([model.initial(shape, rule, streams.generator(seed, *identity, one)) for one in seeds])


def _batch(
    task: str, generators: Sequence[np.random.Generator], n: int, held_out: bool
) -> tuple[np.ndarray, np.ndarray]:
    inputs, targets = zip(*(TASKS[task].draw(rng, n, held_out) for rng in generators), strict=True)
    return np.stack(inputs), np.stack(targets)


def _cast(p: Parameters, precision: type) -> Parameters:
    return {name: value.astype(precision) for name, value in p.items()}


def batches(
    task: str, seed: int, seeds: Sequence[int], batch: int | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield batch after batch, (seeds, B, ...), each seed from a stream of its own; B is the task's unless given."""
    generators = [streams.generator(seed, "training", task, "data", one) for one in seeds]
    while True:
        yield _batch(task, generators, batch or TASKS[task].batch, False)


def held_out(task: str, seed: int, seeds: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Draw the data on which the models of each seed are measured."""
    generators = [streams.generator(seed, "training", task, "held out", one) for one in seeds]
    return _batch(task, generators, EVALUATION, True)


def part_of_rate(schedule: str, step: int, steps: int) -> float:
    """Return the part of the learning rate for the step after `step` steps.

    All of it, or a linear rise over the first tenth of the steps and half a cosine down to 0 over the rest.
    """
    if schedule == "constant":
        return 1.0
    rise = max(1, round(WARM_UP * steps))
    if step < rise:
        return (step + 1) / rise
    return (1 + math.cos(math.pi * (step - rise) / (steps - rise))) / 2


def _norm(gradients: Parameters, *names: str) -> np.ndarray:
    """Return the Euclidean norm, for each model, of all gradients whose name ends in one of these."""
    total: np.ndarray | float = 0.0
    for name, g in gradients.items():
        if name.endswith(names):
            total = total + np.sum(np.square(g), axis=(-2, -1))
    return np.sqrt(total)


def measure(shape: Shape, rule: Rule, p: Parameters, inputs: np.ndarray, targets: np.ndarray) -> dict[str, np.ndarray]:
    """Return what a logged step holds, an array over models for each column.

    Scores are q·k, logits what enters softmax. All layers and heads count; rows that see a single key do not.
    """
    loss, accuracy, gradients, layers = model.loss_and_gradients(shape, rule, p, inputs, targets)
    found = {"loss": loss, "accuracy": accuracy}
    for name, ends in {"qk": (".w_q", ".w_k"), "q": (".w_q",), "k": (".w_k",), "v": (".w_v",)}.items():
        found[f"grad_norm_{name}"] = _norm(gradients, *ends)
    of_outputs = [np.sum(np.square(seen.output_gradient), axis=(-3, -2, -1)) for seen in layers]
    found["grad_norm_output"] = np.sqrt(sum(of_outputs))
    parts = [_rows(seen) for seen in layers]

    def pooled(name: str) -> np.ndarray:
        values = np.stack([part[name] for part in parts], axis=1)
        return values.reshape(len(values), -1)

    scores, spread, weight = pooled("scores"), pooled("spread"), pooled("weight")
    found |= {"score_mean": scores.mean(axis=1), "score_min": scores.min(axis=1), "score_max": scores.max(axis=1)}
    found["logit_std"] = np.sqrt(np.mean(spread, axis=1))
    found["largest_logit"] = np.abs(pooled("logits")).max(axis=1)
    found["alignment"] = _alignment(shape, layers[-1])
    found |= {"entropy": pooled("entropy").mean(axis=1), "max_weight": weight.mean(axis=1)}
    found["max_weight_p10"], found["max_weight_p90"] = np.sort(weight, axis=1)[
        :, [weight.shape[1] // 10, weight.shape[1] * 9 // 10]
    ].T
    return found | {"saturated_share": np.mean(weight > SATURATED, axis=1)}


def _alignment(shape: Shape, seen: model.LayerAttention) -> np.ndarray:
    """Return the mean cosine of the last layer's queries with the keys that they have to find; NaN where none is."""
    if not shape.wanted:
        return np.full(len(seen.q), math.nan)
    q, k = seen.q[..., shape.answers, :], seen.k[..., shape.wanted, :]
    return (np.vecdot(q, k) / np.sqrt(np.vecdot(q, q) * np.vecdot(k, k))).mean(axis=(-3, -2, -1))


def _rows(seen: model.LayerAttention) -> dict[str, np.ndarray]:
    """Return, for each model, the scores and logits of the keys that are seen, and measures of each row."""
    allowed = np.ones(seen.weights.shape[-2:], bool) if seen.allowed is None else seen.allowed
    several = allowed.sum(axis=-1) > 1
    allowed, count = allowed[several], allowed[several].sum(axis=-1)
    weights, logits = seen.weights[..., several, :], seen.logits[..., several, :]
    centre = np.where(allowed, logits, 0.0).sum(axis=-1) / count
    spread = np.where(allowed, (logits - centre[..., None]) ** 2, 0.0).sum(axis=-1) / (count - 1)
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return {
        "scores": seen.scores[..., several, :][..., allowed],
        "logits": logits[..., allowed],
        "spread": spread,
        "entropy": -np.vecdot(weights, logs),
        "weight": weights.max(axis=-1),
    }


def start(
    shape: Shape, rule: Rule, p: Parameters, inputs: np.ndarray, targets: np.ndarray, variance: float = 1.0
) -> list[dict[str, Any]]:
    """Return rows of training_start.csv: the size of queries, keys and logits in each layer before the first step.

    Weights have the variance 1/D, so that a component of q has the mean square of its token h, E[q_i²] = |h|²/D, and
    logits that are c q·k have the within-row variance c² d_k (|h|²/D) Σ_j |h_j − h̄|²/((n − 1) D) over the keys' tokens.
    The prediction takes h as it comes into the layer; se is that between the models of all seeds. W_q and W_k of
    another start have `variance` times that variance.
    """
    _, _, _, layers = model.loss_and_gradients(shape, rule, p, inputs, targets)
    rows = []
    for number, seen in enumerate(layers):
        readers, sources = seen.tokens
        found = {
            "query_variance": (np.mean(seen.q**2, axis=(-4, -3, -2, -1)), np.mean(readers**2, axis=(-3, -2, -1))),
            "key_variance": (np.mean(seen.k**2, axis=(-4, -3, -2, -1)), np.mean(sources**2, axis=(-3, -2, -1))),
        }
        if rule.size is None and not rule.cosine and seen.allowed is None:
            spread = np.var(sources, axis=-2, ddof=1).mean(axis=-1)[..., None] * np.mean(readers**2, axis=-1)
            factor = rule.factor * (1.0 if rule.start is None else rule.start)
            predicted = variance * factor**2 * shape.d_k * spread.mean(axis=(-2, -1))
            found["logit_variance"] = np.mean(_rows(seen)["spread"], axis=(-3, -2, -1)), predicted
        rows += [
            {"layer": number, "quantity": name} | _estimate(values, variance * predictions)
            for name, (values, predictions) in found.items()
        ]
    return rows


def _estimate(values: np.ndarray, predictions: np.ndarray) -> dict[str, float | None]:
    value, se = estimates.mean(values)
    return {"estimate": value, "se": se if len(values) > 1 else None, "prediction": float(np.mean(predictions))}


def train(
    task: str,
    optimiser: str,
    scaling: str,
    d_k: int,
    rates: Sequence[float],
    n_seeds: int,
    steps: int,
    seed: int,
    batch: int | None = None,
    schedule: str = "constant",
    mirrored: bool = False,
    **settings: Any,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Train one model for each rate and seed; return the logged steps and the sizes at the start.

    Args:
        task, optimiser, scaling: names. d_k: width of a query and a key. rates: learning rates.
        n_seeds: independent runs at each rate. steps: batches of each run. seed: root seed.
        batch: sequences of a batch, in place of the task's. schedule: one of SCHEDULES.
        mirrored: whether the components of queries and keys are in reverse order: the same models, rounded otherwise.
        settings: of the task's `Shape`, in place of its own.

    Returns:
        Rows of training.csv: a run whose loss is not finite has diverged, and its rows from there on hold nothing else.
        Rows of training_start.csv. Both lack what they share.
    """
    shape = TASKS[task].shape(d_k, **settings)
    seeds = range(n_seeds)
    data, evaluation = batches(task, seed, seeds, batch), held_out(task, seed, seeds)
    base, halves = rules.taken_apart(scaling)
    rule = rules.build(base, d_k, shape.memory or evaluation[0].shape[-2])
    first = initial(shape, rule, task, seed, seeds)
    of_scores = [name for name in first if name.endswith(SCORES)]
    weights = d_k**-0.25 if "start" in halves else 1.0
    for name in of_scores:
        first[name] = weights * (_mirrored(first[name], shape.heads) if mirrored else first[name])
    factors = dict.fromkeys(of_scores, d_k ** (-POWER[optimiser] / 2)) if "rate" in halves else {}
    models = [_cast(first, TRAINED_IN) for _ in rates]
    optimisers = [Optimiser(optimiser, np.full(n_seeds, rate), factors=factors) for rate in rates]
    log = logged_steps(steps)
    rows = []
    # A diverging run leaves the range of numbers; its models are alone, and its loss says so.
    with np.errstate(all="ignore"):
        sizes = start(shape, rule, first, *evaluation, weights**2)
        lost = np.zeros((len(rates), n_seeds), bool)
        for step in range(steps + 1):
            if step in log:
                for i, p in enumerate(models):
                    seen = measure(shape, rule, _cast(p, np.float64), *evaluation)
                    rows += _logged(rates[i], step, seen, lost[i])
            if step < steps:
                drawn = next(data)
                part = part_of_rate(schedule, step, steps)
                for p, move in zip(models, optimisers, strict=True):
                    move.step(p, model.loss_and_gradients(shape, rule, p, *drawn)[2], part)
    return sorted(rows, key=lambda row: (row["learning_rate"], row["seed"], row["step"])), sizes


def _mirrored(weights: np.ndarray, heads: int) -> np.ndarray:
    """Return weights (..., heads d_k) with the components of each head in reverse order."""
    return weights.reshape(*weights.shape[:-1], heads, -1)[..., ::-1].reshape(weights.shape)


def _logged(rate: float, step: int, found: dict[str, np.ndarray], lost: np.ndarray) -> list[dict[str, Any]]:
    """Return a row for each seed, and note in `lost` which runs have diverged."""
    lost |= ~np.isfinite(found["loss"])
    return [
        {"learning_rate": rate, "seed": seed, "step": step}
        | {name: _short(values[seed]) if not lost[seed] else None for name, values in found.items()}
        | {"diverged": bool(lost[seed])}
        for seed in range(len(lost))
    ]


def _short(value: float) -> float | None:
    return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None
