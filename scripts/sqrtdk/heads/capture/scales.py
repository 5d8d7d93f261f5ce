"""The scale at work: regressed from what entered softmax, and what q and k were multiplied by on their way there."""

from dataclasses import dataclass

import torch

from sqrtdk.heads.capture.watching import Projection

ROWS = 32
"""Queries from which a scale is measured; it is one number."""
MASKED = -5000.0
EXPLAINED = 0.999
"""Share of the logits' variance within rows that q·k has to explain, for the slope to be the scale."""
STEADY = 2e-3
"""Variation of a ratio of norms between tokens below which it is one number; bfloat16 rounds a norm by less."""
TOKENS = 64


def measured_scale(q, k, logits, mask=None, cap: float | None = None) -> tuple[float, bool]:
    """Return the slope of logits on q·k within rows, without the part that a mask adds, and whether it explains them.

    q (batch, head, query, d_k), k (batch, kv_head, key, d_k), logits (batch, head, query, key).
    """
    rows = slice(None, None, max(1, -(-q.shape[2] // ROWS)))
    q, z = q[:1, :, rows].double(), logits[:1, :, rows].double()
    k = k[:1].double().repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    x = q @ k.mT
    allowed = z > MASKED
    if mask is not None and mask.dtype != torch.bool:
        added = mask[:1] if mask.shape[2] == 1 else mask[:1, :, rows]
        allowed = allowed & (added > MASKED)
        z = z - torch.where(added > MASKED, added, 0.0)
    elif mask is not None:
        allowed = allowed & (mask[:1] if mask.shape[2] == 1 else mask[:1, :, rows])
    if cap:
        # A row whose maximum was subtracted first cannot be told from here; a cap and sinks do not come together.
        z = cap * torch.atanh((z / cap).clamp(-1 + 1e-6, 1 - 1e-6))
    allowed = allowed & x.isfinite() & z.isfinite()
    count = allowed.sum(-1, keepdim=True).clamp(min=1)
    x, z = (torch.where(allowed, one, 0.0) for one in (x, z))
    x, z = (torch.where(allowed, one - one.sum(-1, keepdim=True) / count, 0.0) for one in (x, z))
    xx, xz, zz = float((x * x).sum()), float((x * z).sum()), float((z * z).sum())
    if not xx > 0 or not zz > 0:
        return 0.0, bool(xx > 0)
    return xz / xx, xz * xz / (xx * zz) >= EXPLAINED


@dataclass(frozen=True)
class Gain:
    """What a projection's output was multiplied by, and the width of the projection's input."""

    gain: float
    width: int


def gain_of(x: torch.Tensor, projections: list[Projection]) -> Gain | None:
    """Return the gain of x (batch, head, token, d_k) over the output of a projection, or None where none fits.

    Rotation leaves the norm of a head's vector as it is, so the ratio of norms is one number for all tokens and heads
    where only a factor lies between. Heads are looked for at every multiple of d_k, in whatever order a fused
    projection has them.
    """
    batch, heads, n, d_k = x.shape
    if n < 4 or d_k < 2:
        return None
    step = max(1, n // TOKENS)
    log_x = x[:1, :, ::step].float().norm(dim=-1).log()[0]
    if not log_x.isfinite().all() or float(log_x.std(dim=-1).min()) < 5 * STEADY:
        return None
    for one in reversed(projections):
        output = one.output
        if output._version != one.version or output.shape[-1] % d_k or output.numel() != batch * n * output.shape[-1]:
            continue
        parts = output.reshape(batch, n, -1, d_k)[0, ::step].float().norm(dim=-1).log().T
        difference = log_x[:, None] - parts[None]
        wobble, place = difference.std(dim=-1).min(dim=1)
        if not wobble.isfinite().all() or float(wobble.max()) > STEADY:
            continue
        ratios = difference.mean(dim=-1).gather(1, place[:, None])
        if float(ratios.max() - ratios.min()) < 2 * STEADY:
            gain = float(ratios.mean().exp())
            return Gain(1.0 if abs(gain - 1) < STEADY else gain, one.width)
    return None
