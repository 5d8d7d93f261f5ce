"""Whether the audit finds what is wrong and leaves alone what is right: heads simulated with every known mistake.

    python benchmarks/audit_study.py [--trials 100] [--healthy 1000] [--seed 1] [--largest 1024]

Each trial draws d_k (16 to 256), a number of tokens (32 to 1024) and of heads (1 to 16), half of the scale mistakes
through given scores and half through a declared scale. A mistake counts as found where the right explanation is among
those named and its factor is exact (to 1e-3 where the scale was declared, within five standard errors where it was
measured). Where the wrong number is also the right one, such as 1/√(number of heads) of 16 heads of width 16, nothing
may be found. Inputs of other kinds than independent normal tokens (`audit_kinds.py`) get a scale mistake each, or none.
Rates are by kind: at least 99 % of the mistakes are to be found, and at most one sound head in 1000 may get a bug or a
warning. Prints a table and writes nothing.
"""

import argparse
import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded
sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "scripts")]

import numpy as np  # noqa: E402 - after the environment and the path are set
from audit_kinds import KINDS  # noqa: E402

from sqrtdk.heads.cases import ERRORS, Options  # noqa: E402
from sqrtdk.heads.conventions import convention, scale  # noqa: E402
from sqrtdk.heads.dumps import dump_of  # noqa: E402
from sqrtdk.heads.findings import BUG, NOTE  # noqa: E402
from sqrtdk.heads.verdict import Verdict, audit  # noqa: E402

WIDTHS = (16, 32, 64, 80, 96, 128, 256)
LENGTHS = (32, 64, 128, 256, 512, 1024)
HEADS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Size:
    """Width of a head, number of tokens, number of heads."""

    d: int
    n: int
    h: int


def draw_size(rng, largest: int) -> Size:
    lengths = [n for n in LENGTHS if n <= largest]
    return Size(int(rng.choice(WIDTHS)), int(rng.choice(lengths)), int(rng.choice(HEADS)))


def draw(rng, size: Size, gain: float = 1.0) -> dict:
    """Return queries and keys of heads of unit-variance components, (head, token, d_k)."""
    return {role: gain * rng.normal(size=(size.h, size.n, size.d)) for role in "qk"}


def judge(arrays, declared=None, name=None, stage="unknown", factor=None, mask="auto", **sizes) -> list[Verdict]:
    """Audit arrays; `factor` adds the scores that this number gives, in float32 as models have them."""
    if factor is not None:
        scores = factor * (arrays["q"] @ arrays["k"].swapaxes(-1, -2))
        arrays = arrays | {"scores": scores.astype(np.float32)}
    options = Options(convention(name), None if declared is None else scale(declared).of, stage, **sizes)
    return audit([dump_of(arrays, mask=mask)], options)


# --- mistakes


@dataclass(frozen=True)
class Mistake:
    """How a mistake is made, the factor it applies to q·k, and the explanation that has to be named."""

    factor: Callable[[Size, dict], float]
    explanation: str


def _sizes(rng, size: Size) -> dict:
    ratio = float(rng.choice((0.5, 2, 4)))
    return {"d_model": size.h * size.d, "num_heads": size.h, "d_v": int(ratio * size.d)}


SCALES = {
    "no scale": Mistake(lambda s, o: 1.0, "no scale"),
    "1/d_k": Mistake(lambda s, o: 1 / s.d, "1/d_k"),
    "applied twice": Mistake(lambda s, o: 1 / s.d, "applied twice"),
    "inverted": Mistake(lambda s, o: math.sqrt(s.d), "inverted"),
    "d_model": Mistake(lambda s, o: o["d_model"] ** -0.5, "d_model in place of d_k"),
    "number of heads": Mistake(lambda s, o: o["num_heads"] ** -0.5, "number of heads in place of d_k"),
    "d_v": Mistake(lambda s, o: o["d_v"] ** -0.5, "d_v in place of d_k"),
    "zero": Mistake(lambda s, o: 0.0, "zero scale"),
}


def wrong_scale(mistake: Mistake, rng, size: Size) -> bool:
    options = _sizes(rng, size)
    arrays, factor = draw(rng, size), mistake.factor(size, options)
    measured = rng.random() < 0.5
    told = {"factor": factor} if measured else {"declared": repr(factor)}
    verdicts = judge(arrays, stage=str(rng.choice(("init", "trained", "unknown"))), **told, **options)
    ratio = factor * math.sqrt(size.d)
    if abs(ratio - 1) < 1e-9:
        return all(not bugs(verdict) for verdict in verdicts)
    return all(named(verdict, mistake.explanation, ratio, measured) for verdict in verdicts)


def bugs(verdict: Verdict) -> list:
    return [finding for finding in verdict.findings if finding.level == BUG]


def named(verdict: Verdict, explanation: str, ratio: float, measured: bool) -> bool:
    slack = 1e-3 * ratio
    if measured and verdict.row["measured_factor_se"]:
        right = verdict.row["measured_factor"] / ratio
        slack = max(slack, ERRORS * verdict.row["measured_factor_se"] / abs(right or 1.0))
    return any(
        explanation in finding.explanations and abs(finding.factor - ratio) <= slack for finding in bugs(verdict)
    )


def padded_width(rng, size: Size) -> bool:
    arrays = draw(rng, size)
    width = size.d + int(rng.integers(8, size.d + 1))
    pad = ((0, 0), (0, 0), (0, width - size.d))
    arrays = {role: np.pad(array, pad) for role, array in arrays.items()}
    verdicts = judge(arrays, repr(width**-0.5))
    return all(named(v, "padded width in place of d_k", math.sqrt(size.d / width), False) for v in verdicts)


def constant(rng, size: Size) -> bool:
    other = int(rng.choice([d for d in WIDTHS if d != size.d]))
    dumps = [
        dump_of(draw(rng, one), name=name, order=order)
        for order, (name, one) in enumerate((("first", size), ("second", Size(other, size.n, size.h))))
    ]
    verdicts = audit(dumps, Options(convention(None), scale(repr(size.d**-0.5)).of))
    right, wrong = verdicts[: size.h], verdicts[size.h :]
    words = "a constant that does not follow d_k"
    return all(not bugs(v) for v in right) and all(named(v, words, math.sqrt(other / size.d), False) for v in wrong)


def unnormalised_tokens(rng, size: Size) -> bool:
    arrays = draw(rng, size)
    arrays["q"] *= np.exp(rng.normal(size=(size.h, size.n, 1)))
    arrays["k"] *= np.exp(rng.normal(size=(size.h, size.n, 1)))
    verdicts = judge(arrays, "1/sqrt(d_k)", stage="init")
    return all(has(v, "broken normalisation", BUG) for v in verdicts)


def normalised(arrays: dict, length: float) -> dict:
    return {role: length * a / np.linalg.norm(a, axis=-1, keepdims=True) for role, a in arrays.items()}


def one_side_normalised(rng, size: Size) -> bool:
    raw = draw(rng, size)
    arrays = normalised(raw, math.sqrt(size.d))
    side = "qk"[int(rng.integers(2))]
    arrays[side] = raw[side]
    verdicts = judge(arrays, "1/sqrt(d_k)", "normalised", "init")
    words = f"{side}: not normalised per head, as the convention says"
    return all(any(f.kind == "broken normalisation" and f.explanations == (words,) for f in bugs(v)) for v in verdicts)


def unit_vectors_scaled(rng, size: Size) -> bool:
    arrays = normalised(draw(rng, size), 1.0)
    verdicts = judge(arrays, "1/sqrt(d_k)", stage="init")
    found = [[f for f in bugs(v) if f.kind == "broken normalisation"] for v in verdicts]
    return all(one and abs(one[0].factor * size.d - 1) < 1e-3 for one in found)


def has(verdict: Verdict, kind: str, level: str) -> bool:
    return any(finding.kind == kind and finding.level == level for finding in verdict.findings)


def too_large_start(rng, size: Size) -> bool:
    gain = float(rng.choice((2.0, 3.0, 5.0)))
    verdicts = judge(draw(rng, size, gain), "1/sqrt(d_k)", stage="init")
    for verdict in verdicts:
        found = [f for f in bugs(verdict) if f.kind == "too-large initialisation"]
        error = verdict.row["row_score_std_se"] / verdict.row["row_score_std"]
        if not found or abs(math.log(found[0].factor / gain**2)) > ERRORS * error:
            return False
        if "weights initialised too large" not in found[0].explanations:
            return False
    return True


def norms_unscaled(rng, size: Size) -> bool:
    stage = str(rng.choice(("init", "unknown")))
    verdicts = judge(normalised(draw(rng, size), size.d**0.5), "1", None, stage)
    return all(has(v, "scale may be missing", "warning") and not bugs(v) for v in verdicts)


def entropy_collapse(rng, size: Size) -> bool:
    arrays, head = draw(rng, size), int(rng.integers(size.h))
    arrays["q"][head] *= 60
    verdicts = judge(arrays, "1/sqrt(d_k)", stage="trained")
    clean = all(not v.findings for place, v in enumerate(verdicts) if place != head)
    return clean and has(verdicts[head], "entropy collapse", "note") and not bugs(verdicts[head])


def logit_growth(rng, size: Size) -> bool:
    gains = (1.0, 1.4, 2.0)
    dumps = [dump_of(draw(rng, size, gain**0.5), name=str(gain), order=i) for i, gain in enumerate(gains)]
    verdicts = audit(dumps, Options(convention(None), scale("1/sqrt(d_k)").of, "trained"))
    last, first = verdicts[-size.h :], verdicts[: size.h]
    for one, other in zip(last, first, strict=True):
        error = math.hypot(*(v.row["row_logit_std_se"] / v.row["row_logit_std"] for v in (one, other)))
        found = [f for f in one.findings if f.kind == "logit growth"]
        if math.log(2) < ERRORS * error:
            continue  # Not scored: the factor does not exceed five standard errors.
        # An estimate below the threshold where the factor is near it is no miss of more than its error.
        if not found or abs(math.log(found[0].factor / 2)) > ERRORS * error:
            return False
    return True


def precision_at_risk(rng, size: Size) -> bool:
    arrays = draw(rng, size)
    arrays["q"][:, 0] = arrays["k"][:, 1] = 20.0
    verdicts = judge(arrays, "1/sqrt(d_k)", stage="trained")
    risky = 400 * math.sqrt(size.d) >= 128
    return all(has(v, "precision at risk", "note") == risky for v in verdicts)


def dead_head(rng, size: Size) -> bool:
    arrays, head = draw(rng, size), int(rng.integers(size.h))
    arrays["q"][head] *= 1e-3
    verdicts = judge(arrays, "1/sqrt(d_k)", stage="trained")
    return all(has(v, "dead head", "note") == (place == head) for place, v in enumerate(verdicts))


GRAVE = ("no scale", "1/d_k", "inverted")
"""Scale mistakes that an input of any kind may have."""


def wrong_scale_in(kind: str, rng, size: Size) -> bool:
    """Give an input of a kind a scale mistake, in its scores or as declared, and ask for its name and factor."""
    given = KINDS[kind](rng, size)
    width = given.q.shape[-1]
    factor = {"no scale": 1.0, "1/d_k": 1 / width, "inverted": math.sqrt(width)}[name := str(rng.choice(GRAVE))]
    measured = given.scored or rng.random() < 0.5
    options = Options(convention(None), None if measured else scale(repr(factor)).of, "trained")
    verdicts = audit([dump_of(given.arrays(factor if measured else None))], options)
    ratio = factor * math.sqrt(width)
    return all(named(verdict, name, ratio, measured) for verdict in verdicts)


def right_scale_in(kind: str, rng, size: Size, stage: str) -> list[Verdict]:
    """Judge an input of a kind with the usual scale, in its scores or as declared."""
    given = KINDS[kind](rng, size)
    factor = given.q.shape[-1] ** -0.5
    measured = given.scored or rng.random() < 0.5
    options = Options(convention(None), scale("1/sqrt(d_k)").of, "trained" if kind == "real text" else stage)
    return audit([dump_of(given.arrays(factor if measured else None))], options)


MISTAKES: dict[str, Callable[[np.random.Generator, Size], bool]] = {
    **{name: lambda rng, size, m=mistake: wrong_scale(m, rng, size) for name, mistake in SCALES.items()},
    "padded width": padded_width,
    "constant scale": constant,
    "normalisation: none before": unnormalised_tokens,
    "normalisation: one side": one_side_normalised,
    "normalisation: length 1": unit_vectors_scaled,
    "normalisation: no scale after": norms_unscaled,
    "too-large start": too_large_start,
    "entropy collapse": entropy_collapse,
    "logit growth": logit_growth,
    "precision at risk": precision_at_risk,
    "dead head": dead_head,
    **{kind: lambda rng, size, kind=kind: wrong_scale_in(kind, rng, size) for kind in KINDS},
}


# --- heads that are right


def _prescaled(rng, s, split: bool) -> dict:
    arrays = draw(rng, s)
    if split:
        return {role: array * s.d**-0.25 for role, array in arrays.items()}
    return arrays | {"q": arrays["q"] * s.d**-0.5}


def _shared_keys(rng, s) -> dict:
    arrays = draw(rng, s)
    return arrays | {"k": arrays["k"][: max(1, s.h // 2)]}


def _crossed(rng, s) -> dict:
    arrays = draw(rng, s)
    return arrays | {"k": arrays["k"][:, : max(24, s.n // 2)]}


HEALTHY: dict[str, Callable[[np.random.Generator, Size, str], list[Verdict]]] = {
    "1/√d_k, declared": lambda rng, s, t: judge(draw(rng, s), "1/sqrt(d_k)", stage=t),
    "1/√d_k, in the scores": lambda rng, s, t: judge(draw(rng, s), stage=t, factor=s.d**-0.5),
    "1/√d_k, rounded": lambda rng, s, t: judge(draw(rng, s), f"{s.d**-0.5:.4f}", stage=t),
    "nothing declared": lambda rng, s, t: judge(draw(rng, s), stage=t),
    "q pre-scaled": lambda rng, s, t: judge(_prescaled(rng, s, False), "none", "pre-scaled", t),
    "split over q and k": lambda rng, s, t: judge(_prescaled(rng, s, True), "none", "split", t),
    "T5, folded": lambda rng, s, t: judge(_prescaled(rng, s, False), "1", "folded", t),
    "muP 1/d_k": lambda rng, s, t: judge(draw(rng, s), "1/d_k", "mup", t),
    "muP 8/d_k, in the scores": lambda rng, s, t: judge(draw(rng, s), None, "8/d_k", t, factor=8 / s.d),
    "RMS-normalised, 1/√d_k": lambda rng, s, t: judge(
        normalised(draw(rng, s), s.d**0.5), "1/sqrt(d_k)", "normalised", t
    ),
    "RMS-normalised, scale 1": lambda rng, s, t: judge(normalised(draw(rng, s), s.d**0.5), "1", "normalised", t),
    "RMS-normalised, gains as the scale": lambda rng, s, t: judge(normalised(draw(rng, s), s.d**0.25), "1", None, t),
    "unit length, g = 10": lambda rng, s, t: judge(normalised(draw(rng, s), 1.0), "10", "normalised", t),
    "learned multiplier": lambda rng, s, t: judge(draw(rng, s), repr(1.7 * s.d**-0.5), "learned", t),
    "Gemma, fixed width": lambda rng, s, t: judge(draw(rng, s), repr(224**-0.5), "1/sqrt(224)", t),
    "trained, spread 3": lambda rng, s, t: judge(draw(rng, s, 3**0.5), "1/sqrt(d_k)", stage="trained"),
    "He initialisation, trained": lambda rng, s, t: judge(draw(rng, s, 2**0.5), "1/sqrt(d_k)", stage="trained"),
    "nn.Linear's start": lambda rng, s, t: judge(draw(rng, s, 3**-0.5), "1/sqrt(d_k)", stage=t),
    "causal": lambda rng, s, t: judge(draw(rng, s), "1/sqrt(d_k)", stage=t, mask="causal"),
    "grouped-query": lambda rng, s, t: judge(_shared_keys(rng, s), "1/sqrt(d_k)", stage=t),
    "cross-attention": lambda rng, s, t: judge(_crossed(rng, s), "1/sqrt(d_k)", stage=t),
    **{kind: lambda rng, s, t, kind=kind: right_scale_in(kind, rng, s, t) for kind in KINDS},
}


def sensitivity(name: str, trials: int, seed: int, largest: int) -> tuple[int, list[Size]]:
    """Return how often a mistake was found, and the sizes where it was not."""
    missed = []
    for trial in range(trials):
        rng = np.random.default_rng([seed, *name.encode(), trial])
        size = draw_size(rng, largest)
        if not MISTAKES[name](rng, size):
            missed.append(size)
    return trials - len(missed), missed


def false_alarms(name: str, heads: int, seed: int, largest: int) -> tuple[int, int, int]:
    """Return how many heads were judged, how many got a bug or a warning and how many a note, over so many heads."""
    judged = alarms = notes = trial = 0
    while judged < heads:
        rng = np.random.default_rng([seed, *name.encode(), trial])
        stage = ("init", "trained", "unknown")[trial % 3]
        for verdict in HEALTHY[name](rng, draw_size(rng, largest), stage):
            judged += 1
            alarms += any(finding.level != NOTE for finding in verdict.findings)
            notes += verdict.level == NOTE
        trial += 1
    return judged, alarms, notes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--healthy", type=int, default=1000, help="heads of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--largest", type=int, default=1024, help="most tokens")
    given = parser.parse_args()
    start, bad = time.process_time(), 0
    print(f"{'mistake':32} found of {given.trials}")
    for name in MISTAKES:
        found, missed = sensitivity(name, given.trials, given.seed, given.largest)
        bad += found < 0.99 * given.trials
        print(f"{name:32} {found:5}  {'' if not missed else missed[:3]}", flush=True)
    total, alarms, notes = 0, 0, 0
    print(f"\n{'healthy heads':32} judged bugs, warnings  notes")
    for name in HEALTHY:
        counts = false_alarms(name, given.healthy, given.seed, given.largest)
        bad += counts[1] > counts[0] / 1000
        total, alarms, notes = (a + b for a, b in zip((total, alarms, notes), counts, strict=True))
        print(f"{name:32} {counts[0]:6} {counts[1]:14} {counts[2]:6}", flush=True)
    print(f"{'all':32} {total:6} {alarms:14} {notes:6}   {time.process_time() - start:.0f} CPU s")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
