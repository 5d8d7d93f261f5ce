"""The scale at work: regressed from what entered softmax, and what q and k were multiplied by on their way there."""

from dataclasses import dataclass

import torch

from sqrtdk.heads.capture.watching import Projection
from sqrtdk.heads.limits import IN_SCORES

ROWS = 32
"""Queries from which a scale is measured; it is one number."""
SEQUENCES = 4
EXPLAINED = 0.999
"""Share of the logits' variance within rows that q·k has to explain, for the slope to be the scale."""
STEADY = 2e-3
"""Variation of a ratio of norms between tokens below which it is one number; bfloat16 rounds a norm by less."""
TOKENS = 64


@dataclass(frozen=True)
class Slope:
    """The slope of logits on q·k within rows, whether it is the scale, and whether a bias beside q·k was left out."""

    scale: float
    known: bool
    biased: bool = False


def measured_scale(
    q: torch.Tensor, k: torch.Tensor, logits: torch.Tensor, mask: torch.Tensor | None = None, cap: float | None = None
) -> Slope:
    """Measure the scale from logits, without the part that a mask adds.

    Where q·k explains less, sequences of a batch are compared: what positions add is the same in all of them.

    q (batch, head, query, d_k), k (batch, kv_head, key, d_k), logits (batch, head, query, key).
    """
    rows = slice(None, None, max(1, -(-q.shape[2] // ROWS)))
    some = slice(SEQUENCES)
    q, z = q[some, :, rows].double(), logits[some, :, rows].double()
    k = k[some].double().repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    x = q @ k.mT
    allowed = z > IN_SCORES
    if mask is not None:
        part = (mask if mask.shape[2] == 1 else mask[:, :, rows])[some]
        if mask.dtype == torch.bool:
            allowed = allowed & part
        else:
            allowed = allowed & (part > IN_SCORES)
            z = z - torch.where(part > IN_SCORES, part, 0.0)
    if cap:
        # A row whose maximum was subtracted first cannot be told from here; a cap and sinks do not come together.
        z = cap * torch.atanh((z / cap).clamp(-1 + 1e-6, 1 - 1e-6))
    allowed = allowed & x.isfinite() & z.isfinite()
    slope, explained = _regress(_centred(x, allowed, -1), _centred(z, allowed, -1))
    if explained >= EXPLAINED:
        return Slope(slope, True)
    if len(x) > 1:
        shared = allowed.all(dim=0, keepdim=True).expand_as(allowed)
        x, z = (_centred(one, shared, 0) for one in (x, z))
        slope, explained = _regress(_centred(x, shared, -1), _centred(z, shared, -1))
    return Slope(slope, explained >= EXPLAINED, True)


def _centred(x: torch.Tensor, allowed: torch.Tensor, axis: int) -> torch.Tensor:
    """Return x without its means along an axis, 0 where it is not allowed."""
    x = torch.where(allowed, x, 0.0)
    return torch.where(allowed, x - x.sum(axis, keepdim=True) / allowed.sum(axis, keepdim=True).clamp(min=1), 0.0)


def _regress(x: torch.Tensor, z: torch.Tensor) -> tuple[float, float]:
    xx, xz, zz = float((x * x).sum()), float((x * z).sum()), float((z * z).sum())
    if not xx > 0:
        return 0.0, 0.0
    return xz / xx, xz * xz / (xx * zz) if zz > 0 else 1.0


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
        if one.changed or output.shape[-1] % d_k or output.numel() != batch * n * output.shape[-1]:
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
