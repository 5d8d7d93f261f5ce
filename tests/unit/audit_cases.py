"""Small heads and what the audit says of them, for the tests of what it reads and of what it explains."""

import audit_files
import numpy as np
import pytest

from sqrtdk.heads import command, page

STANDARD = "1/sqrt(d_k)"
LOGITS = ("logit_min", "logit_max", "row_logit_std", "row_logit_std_low", "entropy", "entropy_se", "max_weight")
LOGITS += ("max_weight_low", "saturated_share", "jacobian", "jacobian_high", "sink_share", "sink_key", "iid_entropy")
"""Facts of the logits and of what softmax makes of them."""


def heads(gain=1.0, seed=1, **sizes):
    """Return q and k of float16, as they are saved, and their product."""
    q, k = audit_files.normal(seed, **({"d": 64, "n": 48} | sizes))
    q, k = (np.asarray(gain * x, np.float16) for x in (q, k))
    shared = np.repeat(k, len(q) // len(k), axis=0).astype(float)
    return {"q": q, "k": k}, q.astype(float) @ shared.swapaxes(1, 2)


def weights_of(z):
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def found(judgement):
    """Return findings as (level, kind, explanations), each once."""
    groups = page.grouped(judgement.heads)
    return {(one.finding.level, one.finding.kind, one.finding.explanations) for one in groups}


def kinds(judgement):
    return {(level, kind) for level, kind, _ in found(judgement)}


def exit_code(tmp_path, arrays, *options):
    np.savez(tmp_path / "heads.npz", **arrays)
    return command.main([str(tmp_path / "heads.npz"), *options])


def same_facts(one, other, names=LOGITS):
    for a, b in zip(one.heads, other.heads, strict=True):
        for name in names:
            value = b.row[name]
            assert a.row[name] == (None if value is None else pytest.approx(value, rel=1e-9)), name
