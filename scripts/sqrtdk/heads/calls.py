"""Calls of attention as they were captured: queries, keys and all that turns q·k into logits. No framework is known."""

import fnmatch
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from sqrtdk.heads.errors import InputError
from sqrtdk.heads.judgement import Judgement, audit
from sqrtdk.heads.reading import ABOUT

FORMAT = 1
SOURCES = ("argument", "default", "measured", "unknown")
"""Where a scale comes from: given to attention, left to its default, regressed from the scores, or not known."""


@dataclass(frozen=True)
class Call:
    """One call of attention of a module.

    q: (batch, head, query, d_k), k: (batch, kv_head, key, d_k): after rotation and normalisation, before grouping is
    expanded. scale: what q·k is multiplied by, None where unknown; scale_from: one of SOURCES. gains: what q and k were
    multiplied by between their projections and attention, None where it cannot be told. mask: (batch or 1, head or 1,
    query or 1, key), true allows, or added to the logits. causal: query i sees keys up to `positions[i]`. window: how
    many keys a query sees at most. softcap: logits z become softcap · tanh(z / softcap). sinks: a logit per head that
    takes weight and gives no value. scores: logits as they enter softmax. positions: place of each query among the
    keys. heads: indices of the heads that were kept. layer: number in the module's path. overflow: values that float16
    could not hold. expected: the scale that the model's configuration asks for, and its name there. calls: how often
    the module was called; the first call is kept.
    """

    path: str
    q: np.ndarray
    k: np.ndarray
    scale: float | None
    scale_from: str = "unknown"
    gains: tuple[float | None, float | None] = (None, None)
    mask: np.ndarray | None = None
    causal: bool = False
    window: int | None = None
    softcap: float | None = None
    sinks: np.ndarray | None = None
    scores: np.ndarray | None = None
    positions: np.ndarray | None = None
    heads: tuple[int, ...] | None = None
    layer: int | None = None
    module: str = ""
    overflow: int = 0
    expected: tuple[float, str] | None = None
    d_model: int | None = None
    calls: int = 1

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what a file holds of this call, by the last part of the name."""
        found: dict[str, Any] = {"q": self.q, "k": self.k, "scale": self.scale, "softcap": self.softcap}
        found |= {"window": self.window, "sinks": self.sinks, "mask": self.mask, "scores": self.scores}
        found |= {"positions": self.positions, "causal": True if self.causal else None}
        if any(gain is not None for gain in self.gains):
            found["gains"] = [1.0 if gain is None else gain for gain in self.gains]
        if self.expected is not None:
            found["expected"] = self.expected[0]
        return {name: np.asarray(value) for name, value in found.items() if value is not None}

    def about(self) -> dict[str, Any]:
        """Return what a file says of this call in words."""
        found: dict[str, Any] = {"scale_from": self.scale_from, "module": self.module, "layer": self.layer}
        found |= {"calls": self.calls, "overflow": self.overflow, "d_model": self.d_model}
        found["gains_unknown"] = [name for name, gain in zip("qk", self.gains, strict=True) if gain is None]
        found |= {"expected_from": self.expected[1] if self.expected else None, "heads": self.heads}
        return {name: value for name, value in found.items() if value is not None}

    def __repr__(self) -> str:
        shown = [f"q={self.q.shape}", f"k={self.k.shape}", f"scale={self.scale} ({self.scale_from})"]
        for one in fields(self)[5:]:
            value = getattr(self, one.name)
            if value is not None and not isinstance(value, np.ndarray) and value != one.default:
                shown.append(f"{one.name}={value!r}")
        return f"Call({self.path!r}, {', '.join(shown)})"


@dataclass
class Capture(Mapping[str, Call]):
    """Calls of attention by module path, in the order in which the model made them.

    notes: what was left out or could not be told, in words.
    """

    calls: dict[str, Call] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __getitem__(self, path: str) -> Call:
        if path not in self.calls:
            raise KeyError(f"{path!r}: no attention was seen there; seen were {', '.join(self.calls) or 'none'}")
        return self.calls[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self.calls)

    def __len__(self) -> int:
        return len(self.calls)

    def __repr__(self) -> str:
        lines = [repr(call) for call in self.calls.values()]
        return "\n".join([f"Capture of {len(lines)} attention modules", *lines, *self.notes])

    def named(self, pattern: str) -> "Capture":
        """Return the calls whose path matches a pattern such as `decoder.*`."""
        return Capture({path: self[path] for path in fnmatch.filter(self.calls, pattern)}, list(self.notes))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what a file holds: arrays named `<path>.q`, `<path>.k` and so on, and `sqrtdk`, the rest as JSON.

        Raises InputError, with the reason, where nothing was captured.
        """
        if not self.calls:
            raise InputError("; ".join(["nothing was captured", *self.notes]))
        found = {f"{path}.{name}": x for path, call in self.calls.items() for name, x in call.arrays().items()}
        about = {"format": FORMAT, "layout": "BHSD", "notes": self.notes}
        about["calls"] = {path: call.about() for path, call in self.calls.items()}
        return found | {ABOUT: np.asarray(json.dumps(about))}

    def save(self, path: str | Path) -> Path:
        """Write an .npz file that `sqrtdk audit` reads without an option, and return its path.

        It holds queries, keys and what is named beside them: no tokens, no text, no weights. Raises InputError where
        nothing was captured or the file has another suffix.
        """
        path = Path(path)
        if path.suffix != ".npz":
            raise InputError(f"{path}: a capture is saved as .npz")
        np.savez(path, allow_pickle=False, **self.arrays())
        return path

    def audit(self, **options: Any) -> Judgement:
        """Judge what was captured; options as of `sqrtdk.audit`."""
        return audit(self, **options)
