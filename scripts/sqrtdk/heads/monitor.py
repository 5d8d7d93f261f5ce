"""Watch attention in a training run: running statistics, the latest numbers for a logger, and what went wrong when.

Arrays of any framework are read; PyTorch is loaded by `attach` alone.
"""

import math
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sqrtdk.heads.scores import ROWS, ScoreFacts, ScoreRows, as_array, products_of, rows_of, some_rows, to_shape

HIGH_LOGIT = 100.0
"""A logit beyond is told: where QK-clip starts to act (Kimi K2, 2025), and softmax in bfloat16 errs by a quarter."""
COLLAPSED = 0.1
"""Entropy over its maximum below which a layer is told to have collapsed."""
FORBIDS = -50.0
"""An added number at or below this leaves no weight in any precision."""
SUMS = ("nonfinite",)
MAXIMA = ("max_logit", "worst_layer", "worst_head")


@dataclass
class Running:
    """Count, mean, standard deviation, extremes and last value of a number that comes step by step (Welford)."""

    count: int = 0
    mean: float = 0.0
    square: float = 0.0
    low: float = math.inf
    high: float = -math.inf
    last: float = math.nan

    def add(self, value: float) -> None:
        """Add the value of one step."""
        self.count += 1
        change = value - self.mean
        self.mean += change / self.count
        self.square += change * (value - self.mean)
        self.low, self.high, self.last = min(self.low, value), max(self.high, value), value

    @property
    def std(self) -> float:
        """Standard deviation, NaN below two values."""
        return math.sqrt(self.square / (self.count - 1)) if self.count > 1 else math.nan


@dataclass(frozen=True)
class Trouble:
    """What went wrong, and when it was first seen: `kind` is nonfinite, max_logit, entropy or gradient."""

    step: int
    name: str
    head: int | None
    kind: str
    value: float
    words: str

    def __str__(self) -> str:
        where = self.name + ("" if self.head is None else f", head {self.head}")
        return f"step {self.step}: {where}: {self.words}"


@dataclass
class AttentionMonitor:
    """Statistics of scores and gradients over the steps of a training run, by name.

    every: only every so many steps are measured (without `step`, observations of a name). rows: queries looked at in
    each matrix, others from step to step; None for all, which makes maxima exact. max_logit, entropy: beyond and below
    these a problem is told. scaler: a GradScaler, whose factor is taken off gradients.

        monitor = AttentionMonitor(every=10)
        monitor.attach(model)                         # or scores = monitor.watch("layer 3", scores) in one's own code
        ...                                           # forward, backward, optimizer step
        monitor.step(); log(monitor.latest())         # a flat dictionary of floats
        for problem in monitor.problems(): ...        # what went wrong, where and since when
    """

    every: int = 1
    rows: int | None = ROWS
    max_logit: float = HIGH_LOGIT
    entropy: float = COLLAPSED
    scaler: Any = None
    statistics: dict[str, dict[str, Running]] = field(default_factory=dict)
    steps: int = 0
    _seen: dict[tuple[str, str], int] = field(default_factory=dict)
    _stepping: bool = False
    _observed: int = 0
    _latest: dict[str, dict[str, float]] = field(default_factory=dict)
    _heads: dict[str, list[ScoreFacts | None]] = field(default_factory=dict)
    _problems: dict[tuple[str, str, int | None], Trouble] = field(default_factory=dict)
    _attached: Any = None

    def __post_init__(self) -> None:
        if self.every < 1 or (self.rows is not None and self.rows < 1):
            raise ValueError(f"every={self.every}, rows={self.rows}: both have to be at least 1")

    def _due(self, name: str, kind: str) -> bool:
        if _recomputing() and kind == "scores":
            # Activation checkpointing runs the forward pass again: that is no new observation.
            return False
        if self._stepping or self._attached is not None:
            return self.steps % self.every == 0
        seen = self._seen.get((name, kind), 0)
        self._seen[name, kind] = seen + 1
        return seen % self.every == 0

    def _add(self, name: str, values: dict[str, float]) -> None:
        kept = self.statistics.setdefault(name, {})
        self._observed += 1
        self._latest.setdefault(name, {}).update(values)
        for key, value in values.items():
            kept.setdefault(key, Running()).add(value)

    def _tell(self, name: str, head: int | None, kind: str, value: float, words: str) -> None:
        self._problems.setdefault((name, kind, head), Trouble(self.steps, name, head, kind, value, words))

    # --- what is observed

    def observe(self, name: str, scores: Any, mask: Any = None) -> ScoreFacts | None:
        """Add logits (..., head, query, key) of one step; return their facts, or None where nothing is measured.

        Logits that are not finite are a problem, told with step, name and head, and the rest is measured.
        """
        if not self._due(name, "scores"):
            return None
        return self._measured(name, rows_of(scores, mask, self.rows, self.steps))

    def observe_qk(
        self, name: str, q: Any, k: Any, scale: float, mask: Any = None, *, causal: bool = False, softcap: float = 0.0
    ) -> ScoreFacts | None:
        """Add the logits of fused attention, computed again for a sample of rows of q (..., head, query, d_k).

        k: (..., kv_head, key, d_k). mask: as of `measure`, where finite numbers of an additive one are added.
        """
        if not self._due(name, "scores"):
            return None
        n, m = q.shape[-2], k.shape[-2]
        places = some_rows(np.arange(n)[:, None], self.rows, self.steps) + m - n
        part = np.asarray(as_array(some_rows(q, self.rows, self.steps)), np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            z = scale * products_of(part, np.asarray(as_array(k), np.float64))
        z = softcap * np.tanh(z / softcap) if softcap else z
        if mask is not None:
            mask = as_array(some_rows(mask, self.rows, self.steps) if tuple(mask.shape[-2:-1]) == (n,) else mask)
            mask = to_shape(mask, z.shape)
            mask = np.where(mask, 0.0, -np.inf) if mask.dtype == bool else mask
            # Swin's −100 forbids too, and is no logit that anybody should be told of.
            z = np.where(mask > FORBIDS, z + mask, -np.inf)
        if causal:
            z = np.where(np.arange(m) <= places, z, -np.inf)
        return self._measured(name, rows_of(z, np.isneginf(z) == 0, None))

    def observe_max(self, name: str, largest: Any) -> None:
        """Add the largest logit of each head, as a fused kernel returns it: (..., head) or one number."""
        if not self._due(name, "scores"):
            return
        values = np.asarray(as_array(largest), np.float64)
        values = values.reshape(-1, values.shape[-1]).max(axis=0) if values.ndim else values[None]
        for head in np.flatnonzero(~np.isfinite(values)):
            self._tell(name, int(head), "nonfinite", math.nan, "the largest logit is not finite")
        if np.isfinite(values).any():
            top = int(np.where(np.isfinite(values), values, -np.inf).argmax())
            self._high(name, top if values.size > 1 else None, float(values[top]))
            self._add(name, {"largest": float(values[top])})

    def _measured(self, name: str, rows: ScoreRows) -> ScoreFacts | None:
        n_heads = rows.sound.shape[-2] if rows.sound.ndim > 1 else 1
        per_head = [self._of_head(rows, head) for head in range(n_heads)]
        self._heads[name] = per_head
        values: dict[str, float] = {}
        if rows.broken.any():
            by_head = rows.broken.reshape(-1, n_heads, rows.broken.shape[-1]).sum(axis=(0, 2))
            for head in map(int, np.flatnonzero(by_head)):
                words = f"{by_head[head]} of the rows looked at hold NaN or infinite logits"
                self._tell(name, head if n_heads > 1 else None, "nonfinite", float(by_head[head]), words)
            values["nonfinite"] = float(rows.broken.sum())
        facts = rows.facts()
        if facts is not None:
            values |= {key: float(value) for key, value in vars(facts).items() if key != "rows"}
            tops = [-math.inf if one is None else one.largest for one in per_head]
            self._high(name, int(np.argmax(tops)) if n_heads > 1 else None, facts.largest)
            for head, one in enumerate(per_head):
                if one is not None and one.entropy < self.entropy:
                    words = f"entropy is {one.entropy:.3g} of its maximum, largest logit {one.largest:.4g}"
                    self._tell(name, head if n_heads > 1 else None, "entropy", one.entropy, words)
        self._add(name, values)
        return facts

    def _of_head(self, rows: ScoreRows, head: int) -> ScoreFacts | None:
        return rows.facts((..., head, slice(None))) if rows.sound.ndim > 1 else rows.facts()

    def _high(self, name: str, head: int | None, largest: float) -> None:
        if largest > self.max_logit:
            self._tell(name, head, "max_logit", largest, f"the largest logit is {largest:.4g}")

    def observe_gradient(self, name: str, gradient: Any) -> float | None:
        """Add the gradient (..., queries, anything) of one step; return the root mean square of its rows' norms.

        One that is not finite, as GradScaler makes on purpose while it looks for its factor, is counted and left out.
        """
        if not self._due(name, "gradient"):
            return None
        some = np.asarray(as_array(some_rows(gradient, self.rows, self.steps)), np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            norm = math.sqrt(float(np.vecdot(some, some).mean()))
        norm /= float(self.scaler.get_scale()) if self.scaler is not None else 1.0
        if not math.isfinite(norm):
            self._tell(name, None, "gradient", norm, "the gradient is not finite; under GradScaler some steps are")
            self.statistics.setdefault(name, {}).setdefault("gradients_left_out", Running()).add(1.0)
            return None
        self._add(name, {"gradient_norm": norm})
        return norm

    def watch(self, name: str, scores: Any, mask: Any = None) -> Any:
        """Observe logits, and their gradient where they have `register_hook`; return them as they are."""
        self.observe(name, scores, mask)
        if hasattr(scores, "register_hook") and getattr(scores, "requires_grad", True):

            def backward(gradient: Any) -> None:  # What a hook returns would replace the gradient.
                self.observe_gradient(name, gradient)

            scores.register_hook(backward)
        return scores

    def hook(self, name: str, pick: Callable[[Any], Any] = lambda output: output) -> Callable[..., None]:
        """Return a forward hook, (module, inputs, output) -> None, that watches what `pick` takes of the output."""

        def forward(module: Any, inputs: Any, output: Any) -> None:
            self.watch(name, pick(output))

        return forward

    def attach(self, model: Any) -> None:
        """Watch all attention of a PyTorch model, whatever computes it, until `detach`; call `step` after each step.

        What is compiled runs as it is written on the steps that are measured, and compiled on the others.
        """
        from sqrtdk.heads.capture.attaching import Attached

        self.detach()
        self._attached = Attached(model, self)
        self._attached.start(self.steps % self.every == 0)

    def detach(self) -> None:
        """Take off all that `attach` put on."""
        if self._attached is not None:
            self._attached.stop()
        self._attached = None

    def step(self) -> None:
        """End a step: the next one is measured if it is due. Warns where a step that was due saw nothing."""
        if self.steps % self.every == 0 and not self._observed:
            warnings.warn(f"step {self.steps}: the monitor saw no attention", RuntimeWarning, stacklevel=2)
        self._stepping, self._observed = True, 0
        self.steps += 1
        if self._attached is not None:
            self._attached.start(self.steps % self.every == 0)

    def reset(self) -> None:
        """Forget all that was seen; steps go on being counted."""
        for kept in (self.statistics, self._seen, self._latest, self._heads, self._problems):
            kept.clear()

    # --- what it says

    def problems(self) -> list[Trouble]:
        """Return what went wrong, each with the step at which it was first seen, in order."""
        return sorted(self._problems.values(), key=lambda problem: problem.step)

    def worst(self) -> tuple[str, int, float] | None:
        """Return name, head and largest logit of the head whose logits are largest, of the last measured step."""
        tops = [
            (facts.largest, name, head)
            for name, heads in self._heads.items()
            for head, facts in enumerate(heads)
            if facts is not None
        ]
        return (lambda top: (top[1], top[2], top[0]))(max(tops)) if tops else None

    def latest(self, heads: bool = False, reduced: bool = False) -> dict[str, float]:
        """Return the numbers of the last measured step as a flat dictionary of plain floats, for any logger.

        `attention/max_logit`, `attention/entropy`, `attention/layer_03/entropy` and so on; a value that does not exist
        is left out. heads: also `attention/layer_03/head_01/...`. reduced: over the ranks of `torch.distributed`: the
        largest of maxima, the sum of counts, the mean of the rest; all ranks have to call it.
        """
        found: dict[str, float] = {}
        keys = _keys(list(self._latest))
        for name, values in self._latest.items():
            for fact, value in values.items():
                found[f"attention/{keys[name]}/{_FACTS.get(fact, fact)}"] = float(value)
            for head, facts in enumerate(self._heads.get(name, []) if heads else []):
                for fact, value in vars(facts).items() if facts is not None else ():
                    if fact != "rows":
                        found[f"attention/{keys[name]}/head_{head:02d}/{_FACTS.get(fact, fact)}"] = float(value)
        for fact, join in (("max_logit", max), ("entropy", _mean), ("nonfinite", sum), ("gradient_norm", _mean)):
            values_of = [
                found[f"attention/{key}/{fact}"] for key in keys.values() if f"attention/{key}/{fact}" in found
            ]
            if values_of:
                found[f"attention/{fact}"] = float(join(values_of))
        found = {key: value for key, value in found.items() if math.isfinite(value)}
        return _over_ranks(found) if reduced else found

    def report(self) -> list[dict[str, Any]]:
        """Return a row for each name and statistic: count, mean, std, low, high and last over the steps."""
        return [
            {"name": name, "statistic": key, "count": one.count, "mean": one.mean, "std": one.std}
            | {"low": one.low, "high": one.high, "last": one.last}
            for name, kept in self.statistics.items()
            for key, one in kept.items()
        ]


_FACTS = {"largest": "max_logit"}


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _keys(names: list[str]) -> dict[str, str]:
    """Return a piece of a metric's name for each name: its layer's number, or its path where that is not enough."""
    numbers = {name: re.findall(r"\d+", name) for name in names}
    short = {name: f"layer_{int(found[0]):02d}" for name, found in numbers.items() if found}
    long = {name: re.sub(r"\W", "_", re.sub(r"^(\d)", r"_\1", name)) for name in names}
    unique = len(short) == len(names) and len(set(short.values())) == len(names)
    return short if unique else long


def _recomputing() -> bool:
    """Say whether PyTorch is in a backward pass, without loading it."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "_C") and torch._C._current_graph_task_id() != -1


def _over_ranks(values: dict[str, float]) -> dict[str, float]:
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return values
    every: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(every, values)
    found = {}
    for key in dict.fromkeys(key for one in every for key in one):
        numbers = [one[key] for one in every if key in one]
        last = key.rsplit("/", 1)[-1]
        found[key] = max(numbers) if last in MAXIMA else sum(numbers) if last in SUMS else _mean(numbers)
    return found
