"""What is kept of a call of attention: as NumPy arrays, sampled, with the scale that was at work."""

import math
import re
from typing import Any

import numpy as np
import torch

from sqrtdk.heads.calls import Call, Capture
from sqrtdk.heads.capture.expected import expected_scale, width_of_model
from sqrtdk.heads.capture.places import Places
from sqrtdk.heads.capture.scales import gain_of, measured_scale
from sqrtdk.heads.capture.wanted import Wanted
from sqrtdk.heads.capture.watching import Projection, Seen
from sqrtdk.heads.errors import InputError
from sqrtdk.heads.limits import ADDITIVE, HALF_MAXIMUM, IN_SCORES

AGREES = 1e-2
"""How far a measured scale may be from the one that attention was given: low precision rounds the scores."""
HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "nhead", "heads")


class Keeper:
    """Turn what was seen into calls of a capture: the first call at each place, how often there were more."""

    def __init__(self, capture: Capture, wanted: Wanted, places: Places) -> None:
        self.capture, self.wanted, self.places = capture, wanted, places
        self.passed: dict[str, None] = {}

    def keep(self, seen: Seen, projections: list[Projection]) -> None:
        """Keep the first call of attention at a place that is wanted, and count the others."""
        path = self.places.path(seen.module)
        numbers = re.findall(r"(?<![^._])\d+(?![^._#])", path)
        layer = int(numbers[0]) if numbers else None
        calls = self.capture.calls
        if path in calls:
            object.__setattr__(calls[path], "calls", calls[path].calls + 1)
        elif self.wanted.takes(path, layer):
            with torch._C.DisableTorchFunction(), torch.no_grad():
                calls[path] = self._call(path, layer, seen, projections)
        else:
            self.passed[path] = None

    def _call(self, path: str, layer: int | None, seen: Seen, projections: list[Projection]) -> Call:
        wanted, options = self.wanted, seen.options or {}
        q, k = four_axes(seen.q, seen.k, seen.module, seen.logits)
        n_heads, n, m = q.shape[1], q.shape[2], k.shape[2]
        gains, width = self._gains(q, k, seen, projections)
        cap = _number(options.get("softcap"))
        sinks = options.get("s_aux")
        mask = _four(seen.mask, q, m)
        logits = None if seen.logits is None else seen.logits.reshape(*q.shape[:-1], seen.logits.shape[-1])[..., :m]
        scale, source, more = self._scale(path, seen, q, k, mask, cap, logits)
        mask, causal, positions = _plain_mask(mask, seen.causal, n, m)
        # A mask that softmax saw and nobody was handed is in the logits.
        if logits is not None and seen.options is None and not more:
            mask, causal, positions = _plain_mask(logits > IN_SCORES, False, n, m)
        rows = self._rows(n)
        heads = self._heads(path, n_heads)
        k = ungrouped(k, n_heads)
        if heads is not None:
            k = k[:, heads // (n_heads // k.shape[1])]
            q = q[:, heads]
            mask = mask if mask is None or mask.shape[1] == 1 else mask[:, heads]
            logits = None if logits is None else logits[:, heads]
            sinks = sinks if sinks is None else sinks.reshape(-1)[heads]
        if rows is not None:
            q = q[:, :, rows]
            mask = mask if mask is None or mask.shape[2] == 1 else mask[:, :, rows]
            logits = None if logits is None else logits[:, :, rows]
            positions = rows.numpy() if positions is None else positions[rows.numpy()]
        half = wanted.dtype == "float16"
        q_array, k_array = as_numpy(q, half), as_numpy(k, half)
        return Call(
            path,
            q_array[0],
            k_array[0],
            scale,
            source,
            gains,
            None if mask is None else as_numpy(mask, False)[0],
            causal,
            _whole(options.get("sliding_window")),
            cap,
            None if sinks is None else as_numpy(sinks.reshape(-1), False)[0],
            as_numpy(logits, False)[0] if logits is not None and (wanted.scores or more) else None,
            positions,
            None if heads is None else tuple(heads.tolist()),
            layer,
            type(seen.module).__name__ if seen.module is not None else "",
            q_array[1] + k_array[1],
            expected_scale(seen.module, q.shape[-1]),
            width_of_model(seen.module, width, n_heads * q.shape[-1]),
        )

    def _gains(
        self, q: torch.Tensor, k: torch.Tensor, seen: Seen, projections: list[Projection]
    ) -> tuple[tuple[float | None, float | None], int | None]:
        """Return what q and k were multiplied by after their projections, and the width of a projection's input."""
        if isinstance(seen.module, torch.nn.MultiheadAttention):
            return (1.0, 1.0), None
        found = [gain_of(x, projections) for x in (q, k)]
        width = next((one.width for one in found if one is not None), None)
        q_gain, k_gain = (None if one is None else one.gain for one in found)
        for factor in self.places.rotations:
            # What YaRN multiplies both by is of the positions, and no scale.
            if all(gain is not None and abs(gain / factor - 1) < AGREES for gain in (q_gain, k_gain)):
                q_gain, k_gain = 1.0, 1.0
        return (q_gain, k_gain), width

    def _scale(
        self,
        path: str,
        seen: Seen,
        q: torch.Tensor,
        k: torch.Tensor,
        mask: torch.Tensor | None,
        cap: float | None,
        logits: torch.Tensor | None,
    ) -> tuple[float | None, str, bool]:
        """Return the scale, where it comes from, and whether more than q·k is in the logits."""
        given = _number(seen.scale)
        usual = (given, "argument") if given is not None else (q.shape[-1] ** -0.5, "default")
        if logits is None:
            known = given is not None or seen.fused or seen.options is not None
            return (*(usual if known else (None, "unknown")), False)
        slope = measured_scale(q, k, logits, mask, cap)
        if not slope.known:
            return (*(usual if seen.options is not None else (None, "unknown")), True)
        if seen.options is not None:
            if abs(slope.scale - usual[0]) <= AGREES * abs(usual[0]):
                return (*usual, slope.biased)
            words = "was given" if given is not None else "would have by default"
            self.capture.notes.append(
                f"{path}: attention {words} a scale of {usual[0]:.6g}, and its scores show {slope.scale:.6g}"
            )
        return slope.scale, "measured", slope.biased

    def _rows(self, n: int) -> torch.Tensor | None:
        if self.wanted.tokens is None or n <= self.wanted.tokens:
            return None
        chosen = np.random.default_rng([self.wanted.seed, n]).choice(n, self.wanted.tokens, replace=False)
        return torch.from_numpy(np.sort(chosen))

    def _heads(self, path: str, count: int) -> torch.Tensor | None:
        wanted = self.wanted.heads
        if wanted is None or (isinstance(wanted, int) and wanted >= count):
            return None
        if isinstance(wanted, int):
            chosen = np.random.default_rng([self.wanted.seed, count]).choice(count, wanted, replace=False)
        else:
            chosen = np.array([head for head in wanted if 0 <= head < count], int)
            if not chosen.size:
                raise InputError(f"heads={list(wanted)}: {path} has {count} heads, 0 to {count - 1}")
        return torch.from_numpy(np.sort(chosen))


def four_axes(
    q: torch.Tensor, k: torch.Tensor, module: Any, logits: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return q and k as (batch, head, token, d_k), with as many heads of k as it has."""
    lead = q.shape[:-2]
    if logits is not None and logits.ndim == 4:
        lead = logits.shape[:2]
    elif len(lead) == 1:
        count = next((n for name in HEADS if isinstance(n := getattr(module, name, None), int)), lead[0])
        lead = (lead[0] // count, count) if count and lead[0] % count == 0 else (1, lead[0])
    elif len(lead) == 0:
        lead = (1, 1)
    q = q.reshape(lead[0], -1, *q.shape[-2:])
    return q, k.reshape(lead[0] if k.ndim > 2 else 1, -1, *k.shape[-2:]).expand(lead[0], -1, -1, -1)


def ungrouped(k: torch.Tensor, n_heads: int) -> torch.Tensor:
    """Return keys (batch, head, key, d_k) without the copies that grouped queries were given of them, side by side."""
    same = 1
    while k.shape[1] == n_heads and same < n_heads and torch.equal(k[:, same], k[:, 0]):
        same += 1
    if same > 1 and n_heads % same == 0:
        few = k[:, ::same]
        if torch.equal(few.repeat_interleave(same, dim=1), k):
            return few
    return k


def _four(mask: torch.Tensor | None, q: torch.Tensor, m: int) -> torch.Tensor | None:
    if mask is None or not isinstance(mask, torch.Tensor) or mask.ndim > 4 or mask.shape[-1] < m:
        return None
    mask = mask[..., :m]
    if mask.ndim == 3 and mask.shape[0] == q.shape[0] * q.shape[1]:
        return mask.reshape(q.shape[0], q.shape[1], *mask.shape[1:])
    return mask.reshape(*(1,) * (4 - mask.ndim), *mask.shape)


def _plain_mask(
    mask: torch.Tensor | None, causal: bool, n: int, m: int
) -> tuple[torch.Tensor | None, bool, np.ndarray | None]:
    """Return the mask in its shortest form, whether it is causal, and the queries' places where they are not plain."""
    if mask is None:
        # PyTorch's own flag lets query i see keys up to i, whatever the number of keys.
        return None, causal, np.arange(n) if causal and n != m else None
    for axis in (0, 1):
        first = mask.narrow(axis, 0, 1)
        if mask.shape[axis] > 1 and torch.equal(mask, first.expand_as(mask)):
            mask = first
    if mask.dtype != torch.bool:
        allowed = mask > ADDITIVE
        if not torch.where(allowed, mask, 0.0).any():
            mask = allowed
    if mask.dtype != torch.bool:
        return mask, False, None
    if mask.all():
        return None, False, None
    keys = torch.arange(m, device=mask.device)
    for offset in dict.fromkeys((m - n, 0)):
        places = torch.arange(n, device=mask.device) + offset
        if mask.shape[:3] == (1, 1, n) and torch.equal(mask[0, 0], keys <= places[:, None]):
            return None, True, None if n == m else places.cpu().numpy()
    return mask, False, None


def as_numpy(x: torch.Tensor, half: bool) -> tuple[np.ndarray, int]:
    """Return an array as float16 where it fits, else float32, and how many of its finite values do not fit."""
    x = x.detach()
    if x.dtype == torch.bool:
        return x.cpu().numpy(), 0
    x = x.float()
    beyond = int(((x.abs() > HALF_MAXIMUM) & x.isfinite()).sum()) if half else 0
    return (x.half() if half and not beyond else x).cpu().numpy(), beyond


def _number(value: Any) -> float | None:
    if value is None or (isinstance(value, torch.Tensor) and value.numel() != 1):
        return None
    value = float(value)
    return value if math.isfinite(value) else None


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int) and value > 0 else None
