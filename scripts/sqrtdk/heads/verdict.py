"""The audit itself: facts of every head of every dump, then findings, which also look at neighbours and other dumps."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from sqrtdk.heads import facts
from sqrtdk.heads.blocks import INVERTED
from sqrtdk.heads.cases import Case, Options
from sqrtdk.heads.conventions import ByLayer, Convention, Scale
from sqrtdk.heads.diagnoses import diagnose
from sqrtdk.heads.dumps import Dump, Head
from sqrtdk.heads.ellipsoids import on_ellipsoid
from sqrtdk.heads.errors import InputError
from sqrtdk.heads.findings import Finding, worst
from sqrtdk.heads.regression import TRUSTED, ScoreSlope, measure
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
ALL_COLUMNS = (*COLUMNS, *CAPTURED, *facts.MORE)
"""Columns of a table for people, where later ones stand at the end."""
UNMEASURED = "unmeasured"
"""Where the scale of a head comes from of which nothing is left to measure."""
DISTINCT_COUNTS = 6


@dataclass(frozen=True)
class Verdict:
    """A head's row of facts and its findings."""

    row: dict[str, Any]
    findings: tuple[Finding, ...]

    @property
    def level(self) -> str:
        """The gravest level of the findings."""
        return worst(self.findings)


def audit(dumps: list[Dump], options: Options, reading: Callable[[float], None] | None = None) -> list[Verdict]:
    """Return the verdict on every head, in the order of the dumps.

    `reading` is told the seconds that it took to read each head. Raises InputError as reading does.
    """
    heads = [head for dump in dumps for head in dump.heads]
    if isinstance(options.scale, ByLayer):
        options.scale.check({head.layer for head in heads})
    cases = []
    for head in heads:
        start = time.perf_counter()
        blocks = head.blocks()
        if reading:
            reading(time.perf_counter() - start)
        cases.append(_case(head, blocks, _own(head, options)))
    if cases and all(case.facts["scale_source"] == UNMEASURED for case in cases):
        raise InputError(f"{heads[0].dump}: nothing can be judged: {cases[0].found[0].evidence}")
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


def _case(head: Head, blocks: list[Block], options: Options) -> Case:
    """Return a head with its facts; InputError where there is nothing to measure, and nothing is wrong with that."""
    fits, blocks, measured = _measured(head, blocks)
    group = head.group
    case = Case({}, options, options.num_heads or group.n_heads, layer=head.layer, key_heads=group.key_heads)
    case.shape = (group.n_heads, *blocks[0].shape)
    found = dict.fromkeys(finding for block in blocks for finding in block.findings)
    if any(block.allowed is None for block in blocks):
        # A mask that lets one sequence see all its tokens is no inverted one: others are short.
        found = {finding: None for finding in found if finding.kind != INVERTED}
    case.found = tuple(found)
    captured = head.factor if blocks[0].q is not None else None
    case.facts = {"captured_factor": captured, "fits": fits, "biased": measured.biased, "reach": measured.reach}
    case.facts["captured_from"] = head.given.source(head.place[1]) if captured is not None else ""
    try:
        case.facts |= _facts(blocks, case, measured)
    except facts.Unmeasurable as error:
        if not case.found:
            raise InputError(f"{head.dump}: layer {head.layer}, head {head.head}: {error}") from error
        case.facts |= dict.fromkeys((*COLUMNS, *facts.MORE)) | {"scale_source": UNMEASURED}
    if measured.biased:
        group.told.add(f"the scores hold {measured.biased} beside q·k")
    if measured.reach is not None:
        group.told.add(
            "queries have factors of their own: q·k is multiplied by {:.4g} to {:.4g}".format(*measured.reach)
        )
    if measured.softcap is not None and head.given.softcap is None:
        group.told.add(f"the scores carry a soft cap of {measured.softcap:g}")
    return case


def _measured(head: Head, blocks: list[Block]) -> tuple[str, list[Block], ScoreSlope]:
    """Return how the scores fit q·k, where not as given, the blocks by which they do, and what they say of the factor.

    Where q·k does not explain the scores, other ways to lay heads and axes out are tried.
    """
    measured = measure(blocks)
    if measured.r2 is None or measured.r2 >= TRUSTED:
        return "", blocks, measured
    group, (layer, place) = head.group, head.place
    others: dict[str, dict[str, Any]] = {}
    if group.key_heads and 1 < group.key_heads < group.n_heads:
        others["tiled"] = {"key_head": place % group.key_heads}
    if all(n == m for n, m in (block.shape for block in blocks)):
        others["transposed"] = {"transposed": True}
    for name, way in others.items():
        found = group.blocks(layer, place, **way)
        again = measure(found)
        if again.r2 is not None and again.r2 >= TRUSTED:
            return name, found, again
    return "", blocks, measured


def _facts(blocks: list[Block], case: Case, measured: ScoreSlope) -> dict[str, Any]:
    """Return the facts of a head at the factor at work, and where that is known from."""
    captured = case.facts["captured_factor"]
    alone = blocks[0].q is None
    factor, source, vectors = 1.0, "scores", facts.vectors(blocks)
    if not alone:
        # What a declared scale and a convention need to know.
        keys = float(np.log(_counts(blocks)).mean())
        asked = vectors | measured.facts() | {"uniform_entropy": keys, "q_on_ellipsoid": False, "k_on_ellipsoid": False}
        probe = replace(case, facts=case.facts | asked)
        stated = captured if captured is not None else probe.declared
        source = "captured" if captured is not None else "declared" if stated is not None else "assumed"
        if probe.measured is not None and (stated is None or not probe.same(probe.measured, stated)):
            # The scores say what the factor is, whatever was declared.
            factor, source = probe.measured, "measured"
        elif stated is None:
            # Where any factor is right, the usual one is as good as another, and marked as assumed.
            factor = (probe.right or (1 / math.sqrt(probe.width),))[0]
        else:
            factor = stated
            if probe.measured is not None and source == "declared":
                source = "measured"
    row = facts.describe(blocks, factor, measured, vectors)
    row |= {"q_on_ellipsoid": False, "k_on_ellipsoid": False, "scale_source": source}
    known = replace(case, facts=case.facts | row)
    if not alone and case.options.convention.assumed and known.actual is not None and not known.is_right(known.actual):
        # Only asked where the answer would turn a finding, since it takes as long as all facts together.
        row |= {f"{side}_on_ellipsoid": on_ellipsoid(_used(blocks, side)) for side in "qk"}
    row["iid_entropy"] = iid_entropy(row["row_logit_std"], _counts(blocks))
    return row


def _used(blocks: list[Block], side: str) -> np.ndarray:
    """Return the vectors of q or k of the tokens that take part."""
    return np.concatenate([getattr(block, side)[block.used()["qk".index(side)]] for block in blocks])


def _counts(blocks: list[Block]) -> np.ndarray:
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
    layers: dict[tuple[Any, ...], list[Case]] = {}
    series: dict[tuple[Any, ...], list[Case]] = {}
    for head, case in zip(heads, cases, strict=True):
        layers.setdefault((head.order, head.module, head.layer), []).append(case)
        series.setdefault((head.module, head.layer, head.head), []).append(case)
    for group in layers.values():
        for case in group:
            case.peers = [one.facts for one in group if one is not case and one.facts["row_logit_std"] is not None]
    for order in {head.order for head in heads}:
        group = [case for head, case in zip(heads, cases, strict=True) if head.order == order]
        spreads = [case.facts["row_score_std"] for case in group if case.facts["row_score_std"] is not None]
        ratios: dict[int, set[float]] = {}
        for head, case in zip(heads, cases, strict=True):
            if head.order == order and case.d_k and case.actual and case.right:
                ratios.setdefault(head.layer, set()).add(float(f"{case.actual / case.right[0]:.3g}"))
        steady = sorted((layer, min(found)) for layer, found in ratios.items() if len(found) == 1)
        for case in group:
            case.usual_spread = float(np.median(spreads)) if spreads else math.inf
            case.layers = steady if len({ratio for _, ratio in steady}) > 1 and len(steady) == len(ratios) else []
    for group in series.values():
        if len({case.d_k for case in group}) == 1:
            group[-1].before = [case.facts for case in group[:-1]]
    factors = sorted({(case.d_k, case.actual) for case in cases if case.d_k and case.actual})
    if len({d_k for d_k, _ in factors}) > 1:
        for case in cases:
            case.others = factors


def _verdict(head: Head, case: Case) -> Verdict:
    findings = tuple(case.found if case.facts["scale_source"] == UNMEASURED else diagnose(case))
    row = case.facts | dict(zip(PLACE, (head.dump, head.layer, head.head), strict=True))
    row |= {
        "module": head.module,
        "scale": case.facts["factor"],
        "convention": case.options.convention.name,
        "stage": case.options.stage,
        "findings": "; ".join(summary(finding) for finding in findings),
    }
    row["verdict"] = worst(findings)
    return Verdict({name: row[name] for name in ALL_COLUMNS}, findings)


def summary(finding: Finding) -> str:
    """Spell a finding in one phrase: level, kind, factor and explanations."""
    factor = "" if finding.shown_factor is None else f" × {finding.shown_factor:.4g}"
    causes = f" ({' / '.join(finding.explanations)})" if finding.explanations else ""
    return f"{finding.level}: {finding.kind}{factor}{causes}"
