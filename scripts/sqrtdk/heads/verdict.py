"""The audit itself: facts of every head of every dump, then findings, which also look at neighbours and other dumps."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from sqrtdk.heads import facts
from sqrtdk.heads.conventions import Convention, Scale
from sqrtdk.heads.diagnoses import BUG, CONSTANT_NORM, Case, Finding, Options, diagnose
from sqrtdk.heads.dumps import Dump, Head
from sqrtdk.heads.errors import InputError
from sqrtdk.heads.tally import Block

PLACE = ("dump", "layer", "head")
VERDICT = ("verdict", "findings")
COLUMNS = (
    *PLACE,
    *("scale", "scale_source", "convention", "stage", *VERDICT),
    *facts.PLAIN,
    *(f"{name}{end}" for name in facts.ESTIMATES for end in ("", "_low", "_high", "_se")),
)
"""Columns of the table of heads."""
CAPTURED = ("module", "captured_factor", "captured_from")
"""Columns of what a capture knows beside: the module's path, the factor at work and where it was seen."""
DISTINCT_COUNTS = 6


@dataclass(frozen=True)
class Verdict:
    """A head's row of facts and its findings."""

    row: dict
    findings: tuple[Finding, ...]

    @property
    def level(self) -> str:
        levels = {finding.level for finding in self.findings}
        return BUG if BUG in levels else "note" if levels else "healthy"


def audit(dumps: list[Dump], options: Options, reading: Callable[[float], None] | None = None) -> list[Verdict]:
    """Return the verdict on every head, in the order of the dumps.

    `reading` is told the seconds that it took to read each head. Raises InputError as reading does.
    """
    heads = [head for dump in dumps for head in dump.heads]
    cases = []
    for head in heads:
        start = time.perf_counter()
        blocks = head.blocks()
        if reading:
            reading(time.perf_counter() - start)
        own = _own(head, options)
        cases.append(Case(_facts(head, blocks, own), own, options.num_heads or head.group.n_heads))
    _acquaint(heads, cases)
    return [_verdict(head, case) for head, case in zip(heads, cases, strict=True)]


def _own(head: Head, options: Options) -> Options:
    """Return the options for a head: what its file says stands where nothing was declared."""
    given = head.given
    if isinstance(options.scale, Scale):
        options = replace(options, scale=options.scale.at(head.layer))
    if given.expected is not None and options.convention.assumed:
        value = given.expected
        right = Convention(f"{value:.6g}", given.expected_from, lambda d, n: (value,))
        options = replace(options, convention=right)
    return replace(options, d_model=options.d_model or given.d_model)


def _facts(head: Head, blocks: list[Block], options: Options) -> dict:
    captured = head.factor if blocks[0].q is not None else None
    if blocks[0].q is None:
        factor = 1.0
    elif captured is not None:
        factor = captured
    else:
        probe = _probe(blocks)
        case = Case(probe, options, 1)
        factor = case.declared
        if factor is None:
            # Where any factor is right, the usual one is as good as another, and marked as assumed.
            factor = (case.right or (1 / math.sqrt(case.d_k),))[0]
    try:
        row = _at(blocks, factor)
    except facts.Unmeasurable as error:
        raise InputError(f"{head.dump}: layer {head.layer}, head {head.head}: {error}") from error
    row |= {"q_on_ellipsoid": False, "k_on_ellipsoid": False, "captured_factor": captured}
    row["captured_from"] = head.given.source(head.place[1]) if captured is not None else ""
    case = Case(row, options, 1)
    row["scale_source"] = "scores" if blocks[0].q is None else "declared" if options.scale else "assumed"
    if captured is not None:
        row["scale_source"] = "captured"
    known = captured is not None or options.scale is not None
    if case.measured is not None and (not known or not case.same(case.measured, factor)):
        # The scores say what the factor is, whatever was declared.
        if case.measured != factor:
            row |= _at(blocks, case.measured, row)
        row["scale_source"] = "measured"
    row |= _on_ellipsoid(blocks, case)
    row["iid_entropy"] = iid_entropy(row["row_logit_std"], _counts(blocks))
    return row


def _at(blocks: list[Block], factor: float, row: dict | None = None) -> dict:
    """Return the facts at a factor; a negative one is that of the same size on −k, whose logits are the same.

    row: the facts at another factor, if there are any.
    """
    if factor >= 0:
        return facts.describe(blocks, factor)
    found = facts.describe([replace(block, k=-block.k) for block in blocks], -factor)
    row = facts.describe(blocks, -factor) if row is None else row
    # What is said of q·k, and not of the logits, is said of k as it was given.
    of_scores = {name: row[name] for name in found if name.startswith(("score_", "cosine", "measured_"))}
    return found | of_scores | {"factor": factor}


def _probe(blocks) -> dict:
    """Return what a declared scale and a convention need to know before anything is measured."""
    q, k = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("q", "k"))
    norms = {"q": np.sqrt(np.vecdot(q, q)), "k": np.sqrt(np.vecdot(k, k))}
    cv = {f"{name}_norm_cv": n.std() / n.mean() if n.mean() > 0 else None for name, n in norms.items()}
    return cv | {
        "d_k": q.shape[1],
        "effective_d_k": int((q.any(axis=0) | k.any(axis=0)).sum()),
        "uniform_entropy": float(np.log(_counts(blocks)).mean()),
        "measured_r2": None,
        **{f"{name}_norm": float(n.mean()) for name, n in norms.items()},
        "q_on_ellipsoid": False,
        "k_on_ellipsoid": False,
    }


def _on_ellipsoid(blocks: list[Block], case: Case) -> dict:
    """Say of queries and keys whether Σ w_i x_i² = 1 for some weights, as after RMSNorm with learned weights.

    Only asked where the answer would turn a finding, since it takes as long as all facts together.
    """
    found = {"q_on_ellipsoid": False, "k_on_ellipsoid": False}
    asked = case.options.convention.assumed and case.actual is not None and blocks[0].q is not None
    if asked and not any(case.same(case.actual, right) for right in case.right):
        for side in "qk":
            squares = np.concatenate([getattr(block, side) for block in blocks]) ** 2
            squares = squares[:, squares.any(axis=0)]
            if len(squares) >= 2 * squares.shape[1] > 2:
                weights = np.linalg.lstsq(squares, np.ones(len(squares)))[0]
                found[f"{side}_on_ellipsoid"] = bool((squares @ weights).std() < 2 * CONSTANT_NORM)
    return found


def _counts(blocks) -> np.ndarray:
    """Return how many keys each query sees, of the queries that have a choice."""
    counts = np.concatenate(
        [
            np.full(block.shape[0], block.shape[1])
            if block.allowed is None
            else np.broadcast_to(block.allowed.sum(axis=-1), block.shape[:1])
            for block in blocks
        ]
    )
    return counts[counts > 1] if (counts > 1).any() else np.array([2])


def iid_entropy(spread: float | None, counts: np.ndarray) -> float | None:
    """Return the mean entropy of independent Gaussian logits of this spread, for rows of these numbers of keys."""
    if spread is None or spread > 90:
        return None
    sizes, times = np.unique(counts, return_counts=True)
    if len(sizes) > DISTINCT_COUNTS:
        # The entropy is smooth in ln n: a few numbers of keys carry the rest.
        knots = np.unique(np.round(np.geomspace(sizes[0], sizes[-1], DISTINCT_COUNTS)).astype(int))
        values = np.interp(np.log(sizes), np.log(knots), [_iid(int(n), round(spread, 4)) for n in knots])
    else:
        values = [_iid(int(n), round(spread, 4)) for n in sizes]
    return float(np.average(values, weights=times))


@lru_cache(4096)
def _iid(n_keys: int, spread: float) -> float:
    from sqrtdk.theory.random_energy import averages

    return averages(n_keys, spread).entropy


def _acquaint(heads: list[Head], cases: list[Case]) -> None:
    """Tell each case of the other heads of its layer, of earlier dumps of the same head, and of other widths."""
    layers, series = {}, {}
    for head, case in zip(heads, cases, strict=True):
        layers.setdefault((head.order, head.module, head.layer), []).append(case)
        series.setdefault((head.module, head.layer, head.head), []).append(case)
    for group in layers.values():
        for case in group:
            case.peers = [other.facts for other in group if other is not case]
    for order in {head.order for head in heads}:
        group = [case for head, case in zip(heads, cases, strict=True) if head.order == order]
        spread = float(np.median([case.facts["row_score_std"] for case in group]))
        for case in group:
            case.usual_spread = spread
    for group in series.values():
        if len({case.d_k for case in group}) == 1:
            group[-1].before = [case.facts for case in group[:-1]]
    factors = sorted({(case.d_k, case.actual) for case in cases if case.d_k and case.actual})
    if len({d_k for d_k, _ in factors}) > 1:
        for case in cases:
            case.others = factors


def _verdict(head: Head, case: Case) -> Verdict:
    findings = tuple(diagnose(case))
    row = case.facts | dict(zip(PLACE, (head.dump, head.layer, head.head), strict=True))
    row |= {
        "module": head.module,
        "scale": case.facts["factor"],
        "convention": case.options.convention.name,
        "stage": case.options.stage,
        "findings": "; ".join(summary(finding) for finding in findings),
    }
    verdict = Verdict(row, findings)
    row["verdict"] = verdict.level
    return verdict


def summary(finding: Finding) -> str:
    """Spell a finding in one phrase: level, kind, factor and explanations."""
    factor = "" if finding.shown_factor is None else f" × {finding.shown_factor:.4g}"
    causes = f" ({' / '.join(finding.explanations)})" if finding.explanations else ""
    return f"{finding.level}: {finding.kind}{factor}{causes}"
