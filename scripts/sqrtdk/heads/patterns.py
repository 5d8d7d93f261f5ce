"""Where the largest weights of a head stand: the token before, the first one, a single one, or each elsewhere."""

from typing import Any

import numpy as np

from sqrtdk.heads.tally import Block, Tally

MOST = 0.5
"""A pattern holds where it holds for so many of the rows; the words give the share."""
OFFSETS = {-1: "previous token", 0: "own token", 1: "next token"}
NORMAL = {
    "previous token": "such heads are part of most trained language models",
    "own token": "normal in trained models, above all in early layers",
    "next token": "normal in encoders; behind a causal mask it is none",
    "fixed offset": "normal for heads that learned a distance",
    "first token": "a sink: in trained models that means that the head has nothing to add for most tokens",
    "single token": "normal where it is a separator or full stop; else look at this key's norm",
    "learned sink": "the head is off for most tokens, which is what the sink is for",
    "spread out": "each query has a key of its own, as trained heads have that match content",
}
"""Patterns, and what is normal of each."""


def pattern_of(blocks: list[Block], tallies: list[Tally]) -> dict[str, Any]:
    """Return the pattern of the largest weights, its offset or key (None where it has none), and its share of rows."""
    rows, offsets, on_key, on_first, on_sink = 0, [], 0, 0, 0
    key = None
    for block, tally in zip(blocks, tallies, strict=True):
        n, m = block.shape
        chosen = tally.top >= 0
        rows += int(chosen.sum())
        on_sink += int((tally.top == m).sum())
        chosen &= tally.top < m
        if not chosen.any():
            continue
        top = tally.top[chosen]
        places = np.arange(n) + max(m - n, 0) if block.positions is None else np.asarray(block.positions)
        offsets.append(top - places[chosen])
        counts = np.bincount(top, minlength=m)
        key = int(counts.argmax()) if key is None else key
        on_key += int(counts.max())
        first = int(np.flatnonzero(block.used()[1])[0])
        on_first += int(counts[first])
    found: list[tuple[str, int | None, int]] = [("spread out", None, 0)]
    numbers = np.concatenate(offsets) if offsets else np.zeros(0, int)
    if numbers.size:
        values, counts = np.unique(numbers, return_counts=True)
        offset = int(values[counts.argmax()])
        found.append((OFFSETS.get(offset, "fixed offset"), offset, int(counts.max())))
        found.append(("single token", key, on_key))
        found.append(("first token", 0, on_first))
    found.append(("learned sink", None, on_sink))
    # Of several that hold for as many rows, the last says most.
    name, at, count = max(reversed(found), key=lambda one: one[2])
    if count < MOST * rows:
        name, at, count = found[0]
    share = count / rows if name != "spread out" else None
    return {"pattern": name, "pattern_at": at, "pattern_share": share}


def words_of(facts: dict[str, Any]) -> tuple[str, str]:
    """Return a head's pattern in words, and what is normal of it."""
    name, at = facts["pattern"], facts["pattern_at"]
    if name == "spread out":
        return "the largest weights are spread out over keys", NORMAL[name]
    place = {
        "fixed offset": f"a fixed offset of {at:+d}" if at is not None else "",
        "single token": f"one token, key {at}",
    }
    place |= {"first token": "the first token", "learned sink": "the learned sink"}
    where = place.get(name, f"the {name}")
    return f"{100 * facts['pattern_share']:.0f} % of the rows have their largest weight on {where}", NORMAL[name]
