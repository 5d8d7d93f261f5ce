"""One sequence of a head from its arrays: what a mask forbids and adds, what is padding, and what is not finite.

What is left out is said, and what is wrong with the arrays themselves is a finding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sqrtdk.heads import masks
from sqrtdk.heads.errors import InputError
from sqrtdk.heads.findings import BUG, NOTE, Finding
from sqrtdk.heads.limits import ABSURD, HALF_MAXIMUM, IN_SCORES, ROWS_OF_WEIGHTS, WEIGHTS_SUM
from sqrtdk.heads.regression import TRUSTED, slope_of
from sqrtdk.heads.tally import Block

INVERTED, OVERFLOW = "mask may be inverted", "overflow of float16"
NAMED = 5
"""Tokens that a finding names."""


@dataclass
class Arrays:
    """Arrays of one sequence of one head, as they were read.

    q (n, d_k) and k (m, d_k), or scores (n, m), or all three; scores may have a column more, that of a sink. mask (n or
    1, m), as it was written down. allowed: what causality and window allow, beside the mask. softcap, sink, positions:
    as of a Block. where: names of q, k and scores for messages.
    """

    q: np.ndarray | None = None
    k: np.ndarray | None = None
    scores: np.ndarray | None = None
    mask: np.ndarray | None = None
    allowed: np.ndarray | None = None
    softcap: float | None = None
    sink: float | np.ndarray | None = None
    positions: np.ndarray | None = None
    where: Mapping[str, str] = field(default_factory=dict)

    @property
    def pair(self) -> tuple[np.ndarray, np.ndarray]:
        """Queries and keys, where they were read."""
        assert self.q is not None
        assert self.k is not None
        return self.q, self.k

    @property
    def given(self) -> np.ndarray:
        """The scores, where they were read."""
        assert self.scores is not None
        return self.scores

    @property
    def shape(self) -> tuple[int, int]:
        """How many queries and how many keys there are."""
        return self.given.shape if self.q is None else (len(self.pair[0]), len(self.pair[1]))

    @property
    def shared(self) -> bool:
        """Whether query i and key i are the same token."""
        return self.shape[0] == self.shape[1] and self.positions is None

    def name(self, role: str) -> str:
        """Return what an array is called in a message."""
        return self.where.get(role, f"'{role}'")


def block_of(arrays: Arrays, told: set[str]) -> Block:
    """Return one sequence of a head; `told` gets what was assumed and left out, in words.

    Raises InputError for attention weights in the place of logits, and for numbers beyond all proportion.
    """
    arrays = _without_sink(arrays, told)
    n, m = arrays.shape
    given = _given_mask(arrays)
    bias = None if arrays.mask is None else masks.as_bias(arrays.mask)
    allowed = np.broadcast_to(np.True_ if given is None else given, (n, m))
    bad = [~np.isfinite(x).all(axis=1) if x is not None else np.zeros(size, bool) for x, size in _sides(arrays)]
    padding = _padding(arrays, allowed)
    plain = (arrays.shared, arrays.softcap, arrays.sink)
    if given is None and arrays.scores is None and not any(side.any() for side in (*bad, *padding)):
        _check_size(arrays.name("q"), arrays.q)
        _check_size(arrays.name("k"), arrays.k)
        return Block(arrays.q, arrays.k, None, None, *plain, None, arrays.positions)
    findings = [] if given is None else _mask_findings(arrays, given, "the mask", "mask may be transposed")
    scores, finite = arrays.scores, ~bad[0][:, None] & ~bad[1]
    if scores is not None:
        here = allowed & finite & ~padding[0][:, None] & ~padding[1]
        _refuse_weights(arrays, here)
        scores, own, known = _read_scores(arrays, here, findings)
        finite = finite & known
        if not own.all():
            told.add("mask read off the scores (−∞, or numbers far below all others)")
            findings, allowed = _masked_in_scores(arrays, given, allowed, own, findings)
        padding = _padding(arrays, allowed & ~np.isneginf(arrays.given))
    findings += _not_finite(arrays, bad, padding)
    allowed = allowed & finite & ~padding[0][:, None] & ~padding[1]
    gone = [one | other for one, other in zip(bad, padding, strict=True)]
    q, k = (
        None if x is None else np.where(out[:, None], 0.0, x) for (x, _), out in zip(_sides(arrays), gone, strict=True)
    )
    if scores is not None:
        scores = np.where(allowed, scores, 0.0)
    for role, x in (("q", q), ("k", k), ("scores", scores)):
        _check_size(arrays.name(role), x)
    bias = None if bias is None else np.where(allowed, bias, 0.0)
    seen = None if allowed.all() else allowed
    left_out = int((padding[0] & padding[1]).sum()) if arrays.shared else int(padding[0].sum() + padding[1].sum())
    block = Block(q, k, scores, seen, *plain, bias, arrays.positions, tuple(dict.fromkeys(findings)), left_out)
    return block if bias is None else _with_bias(block, arrays, told)


def _sides(arrays: Arrays) -> tuple[tuple[np.ndarray | None, int], ...]:
    """Return q and k, each with the number of its tokens."""
    return (arrays.q, arrays.shape[0]), (arrays.k, arrays.shape[1])


def _masked_in_scores(
    arrays: Arrays, given: np.ndarray | None, allowed: np.ndarray, own: np.ndarray, findings: list[Finding]
) -> tuple[list[Finding], np.ndarray]:
    """Return the findings and where attention is allowed by the mask that the scores have in them too."""
    if given is None:
        found = _mask_findings(arrays, own & allowed, "what is masked in the scores", "scores may be transposed")
        return findings + found, allowed & own
    if _nothing_left(allowed & own) and not _nothing_left(own):
        words = "the scores are masked where the mask allows attention, and not where it forbids"
        rest = [one for one in findings if one.kind != INVERTED]
        return [*rest, _inverted(words, "the mask of the scores is taken")], own
    return findings, allowed & own


def _check_size(name: str, x: np.ndarray | None) -> None:
    if x is not None and np.abs(x).max() > ABSURD:
        raise InputError(f"{name} holds values beyond {ABSURD:g}, which no activation is")


def _without_sink(arrays: Arrays, told: set[str]) -> Arrays:
    """Return the arrays with the column of a learned sink taken off the scores."""
    scores = arrays.scores
    if scores is None:
        return arrays
    n, m = scores.shape
    if arrays.k is not None:
        more = m == len(arrays.k) + 1
    else:
        # Of scores alone, a column that all queries share.
        last = scores[:, -1]
        more = n > 1 and m == n + 1 and np.isfinite(last).all() and not np.ptp(last) and bool(np.ptp(scores[:, :-1]))
    if not more:
        return arrays
    told.add("the last column of the scores stands beside no key: a learned sink")
    return replace(arrays, scores=scores[:, :-1], sink=scores[:, -1])


def _given_mask(arrays: Arrays) -> np.ndarray | None:
    found = [one for one in (arrays.allowed, arrays.mask) if one is not None]
    if not found:
        return None
    return np.logical_and.reduce([np.broadcast_to(masks.as_allowed(one), arrays.shape) for one in found])


# --- masks that look wrong


def _inverted(evidence: str, taken: str) -> Finding:
    advice = f"{taken}; in PyTorch's own attention true allows, in nn.MultiheadAttention it forbids"
    return Finding(INVERTED, NOTE, None, (), evidence, advice)


def _mask_findings(arrays: Arrays, allowed: np.ndarray, words: str, kind: str) -> list[Finding]:
    """Note a mask under which tokens do not see themselves, or only what comes later."""
    if not arrays.shared or len(allowed) < 3:
        return []
    earlier, later = np.tril(allowed, -1).any(), np.triu(allowed, 1).any()
    asking = allowed.any(axis=1)
    if earlier and not later:
        # Behind a causal mask tokens of padding, which nobody sees, may ask all the same.
        asking = asking & allowed.any(axis=0)
    own = allowed.diagonal()[asking]
    if own.size and own.mean() < 0.5:
        seen = "no query may see its own token" if not own.any() else f"{(~own).sum()} of {own.size} queries may not"
        evidence = f"by {words}, {seen}" + ("" if not own.any() else " see their own token")
        return [_inverted(f"{evidence}: is it inverted?", "true or 1 was taken to allow")]
    if later and not earlier:
        advice = "queries come before keys in the last two axes; a causal mask lets query i see keys up to i"
        evidence = f"by {words}, queries see their own and later tokens only: is it transposed?"
        return [Finding(kind, NOTE, None, (), evidence, advice)]
    return []


def _nothing_left(allowed: np.ndarray) -> bool:
    return not (allowed.sum(axis=1) > 1).any()


# --- what is not finite


def _not_finite(arrays: Arrays, bad: Sequence[np.ndarray], padding: Sequence[np.ndarray]) -> list[Finding]:
    """Find NaN and infinite values of queries and keys that are no padding."""
    found = []
    for role, (x, _), wrong, out in zip("qk", _sides(arrays), bad, padding, strict=True):
        met = np.flatnonzero(wrong & ~out)
        if x is None or not met.size:
            continue
        nan, infinite = int(np.isnan(x[met]).sum()), int(np.isinf(x[met]).sum())
        evidence = f"{role} holds {_kinds(nan, infinite)} at {_tokens(met)}"
        advice = "every row that meets it is NaN: look at what comes before; if this is padding, give its mask"
        kind = "not finite"
        if infinite and np.abs(x[np.isfinite(x)]).max(initial=0.0) <= HALF_MAXIMUM:
            kind, evidence = OVERFLOW, f"{evidence}: float16 ends at 65504"
            advice = f"compute {role} in bfloat16 or float32, or scale it before; {advice}"
        found.append(Finding(kind, BUG, None, (), evidence, advice))
    return found


def _padded(arrays: Arrays, allowed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which queries and keys are masked for all; a token that no query sees is no query either."""
    asking = np.ones(len(allowed), bool) if arrays.q is None else np.isfinite(arrays.q).all(axis=1)
    queries = ~np.any(allowed, axis=1)
    # What a query of NaN sees cannot be told from its scores.
    keys = ~np.any(allowed[asking] if asking.any() else allowed, axis=0)
    # Where no token sees itself, the last key is seen by none without being padding.
    if arrays.shared and allowed.diagonal().any():
        queries = queries | keys
    return queries, keys


def _kinds(nan: int, infinite: int) -> str:
    return " and ".join([*([f"{nan} NaN"] if nan else []), *([f"{infinite} infinite values"] if infinite else [])])


def _tokens(places: np.ndarray) -> str:
    words = ", ".join(map(str, places[:NAMED]))
    more = f" and {len(places) - NAMED} more" if len(places) > NAMED else ""
    return f"token{'s' if len(places) > 1 else ''} {words}{more}"


def _padding(arrays: Arrays, allowed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which queries and keys are padding: masked for all, or all zero where others are not."""
    queries, keys = _padded(arrays, allowed)
    if arrays.q is not None:
        zero = [~x.any(axis=1) for x in arrays.pair]
    else:
        used = np.where(allowed, arrays.given, 0.0)
        zero = [~used.any(axis=1), ~used.any(axis=0)]
    if arrays.shared:
        both = zero[0] & zero[1]
        zero = [both, both]
    else:
        # A single key of zeros may be meant, as that of add_zero_attn.
        zero = [one & (one.sum() > 1) for one in zero]
    zero = [one & (not one.all()) for one in zero]
    return queries | zero[0], keys | zero[1]


# --- given scores


def _refuse_weights(arrays: Arrays, allowed: np.ndarray) -> None:
    inside = np.where(allowed, arrays.given, 0.0)
    if not (np.isfinite(inside).all() and inside.min() >= -1e-6 and inside.max() <= 1 + WEIGHTS_SUM):
        return
    sums = inside.sum(axis=1)
    sums = sums[inside.any(axis=1)]
    if len(sums) > 1 and (np.abs(sums - 1) < WEIGHTS_SUM).mean() >= ROWS_OF_WEIGHTS:
        words = "these are attention weights: rows sum to 1; give the logits, as they enter softmax"
        raise InputError(f"{arrays.name('scores')}: {words}")


def _read_scores(
    arrays: Arrays, allowed: np.ndarray, findings: list[Finding]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the scores, with what float16 could not hold put right, where they were not masked, and are known."""
    scores = arrays.given
    known = allowed & np.isfinite(scores)
    low = known & (scores <= IN_SCORES)
    own = np.ones(scores.shape, bool)
    read = allowed & ~np.isnan(scores) & ~np.isposinf(scores)
    found = masks.from_scores(scores[read])
    if found is not None:
        own[read] = found
    endless = allowed & np.isinf(scores)
    products = None
    if arrays.q is not None and (endless.any() or (low & ~own).any()):
        q, k = (np.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0) for x in arrays.pair)
        products = q @ k.T
        if (low & ~own).any() and _explained(products, scores, known):
            # What q·k makes of a query and a key is no mask, however low.
            own |= low
    unknown = np.isnan(scores)
    if (unknown & allowed).any():
        place = np.argwhere(allowed & unknown)[0]
        count = int((unknown & allowed).sum())
        evidence = f"scores hold {count} NaN, the first at query {place[0]}, key {place[1]}"
        advice = "the row's weights are NaN: look for ∞ − ∞ and for rows without a key"
        findings.append(Finding("not finite", BUG, None, (), evidence, advice))
    beyond = np.zeros_like(unknown)
    if endless.any():
        scores, beyond = _overflowed(arrays, endless, known & own, products, findings)
        own |= beyond
    return scores, own, ~unknown & (np.isfinite(scores) | ~beyond)


def _explained(products: np.ndarray, scores: np.ndarray, use: np.ndarray) -> bool:
    r2 = slope_of(products, scores, use).r2
    return r2 is not None and r2 >= TRUSTED


def _overflowed(
    arrays: Arrays, endless: np.ndarray, known: np.ndarray, products: np.ndarray | None, findings: list[Finding]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores and which are infinite without a mask; where q·k tells what these should be, that is put in."""
    scores = arrays.given
    beyond = endless & np.isposinf(scores)
    words = "float16 ends at 65504"
    if products is not None:
        fit = slope_of(products, scores, known)
        if fit.r2 is not None and fit.r2 >= TRUSTED:
            should = fit.factor * products
            beyond |= endless & (np.abs(should) >= 0.99 * HALF_MAXIMUM) & (np.sign(should) == np.sign(scores))
            if beyond.any():
                largest = float(np.abs(should[beyond]).max())
                words = f"by q·k up to {largest:.6g}, {largest / HALF_MAXIMUM:.4g} times what float16 holds (65504)"
                scores = np.where(beyond, should, scores)
    if beyond.any():
        place = np.argwhere(beyond)[0]
        first = f"the first at query {place[0]}, key {place[1]}"
        evidence = f"{int(beyond.sum())} of {scores.size} scores are infinite, {first}: {words}"
        advice = "scale q before the product, keep scores and softmax in float32, or use bfloat16"
        findings.append(Finding(OVERFLOW, BUG, None, (), evidence, advice))
    return scores, beyond


def _with_bias(block: Block, arrays: Arrays, told: set[str]) -> Block:
    """Return a block whose scores, if there are any, hold the finite numbers of the mask."""
    if block.scores is None:
        told.add("finite numbers of the mask are added to the logits")
        return block
    use = np.ones(block.scores.shape, bool) if block.allowed is None else block.allowed
    if block.q is not None:
        q, k = block.pair
        products = q @ k.T
        r2 = [slope_of(products, one, use).r2 or 0.0 for one in (block.scores, block.scores - block.bias)]
        inside = r2[1] > r2[0]
    else:
        # Scores that were masked had the whole mask added, which the bias is from.
        assert arrays.mask is not None
        forbidden = ~np.broadcast_to(masks.as_allowed(arrays.mask), use.shape)
        inside = bool(forbidden.any() and (arrays.given[forbidden] <= IN_SCORES).all())
    if inside:
        told.add("finite numbers of the mask are in the scores already")
        return block
    told.add("finite numbers of the mask are added to the scores")
    return replace(block, scores=np.where(use, block.scores + block.bias, 0.0))
