"""What a file says beside queries and keys: the scale at work, the mask's kind, caps, and where each comes from."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sqrtdk.heads.errors import InputError
from sqrtdk.heads.reading import Tensor


@dataclass(frozen=True)
class Given:
    """What is known of attention beside its arrays; docs/file-format.md says each.

    scale: what multiplies q·k as attention does it, one number or one per head; None where it is not given. gains: what
    q and k were multiplied by before. expected: the scale that the model's configuration asks for, expected_from: its
    name there. unchecked: which of q and k may carry a factor that nobody looked for. heads: the numbers of the heads
    where some were left out.
    """

    scale: tuple[float, ...] | None = None
    scale_from: str = "file"
    gains: tuple[float, float] = (1.0, 1.0)
    unchecked: tuple[str, ...] = ("q", "k")
    expected: float | None = None
    expected_from: str = ""
    causal: bool = False
    window: int | None = None
    softcap: float | None = None
    sinks: tuple[float, ...] | None = None
    positions: np.ndarray | None = None
    d_model: int | None = None
    heads: tuple[int, ...] | None = None
    overflow: int = 0

    def factor(self, head: int) -> float | None:
        """Return what q·k, before all scaling, is multiplied by in a head; None where the file does not say."""
        return None if self.scale is None else _of_head(self.scale, head) * self.gains[0] * self.gains[1]

    def sink(self, head: int) -> float | None:
        """Return the logit of a head's learned sink, None where it has none."""
        return None if self.sinks is None else _of_head(self.sinks, head)

    def source(self, head: int) -> str:
        """Say where the factor comes from, where there is one, in words for a finding."""
        assert self.scale is not None
        words = {"argument": "was given", "default": "has by default", "measured": "shows in its scores"}
        parts = [f"attention {words.get(self.scale_from, 'has, as the file says,')} {_of_head(self.scale, head):.6g}"]
        parts += [
            f"{name} was multiplied by {gain:.6g} before"
            for name, gain in zip("qk", self.gains, strict=True)
            if gain != 1
        ]
        return ", ".join(parts)

    def allowed(self, n: int, m: int, rows: slice = slice(None)) -> np.ndarray | None:
        """Return where causality and window allow attention of some queries, (rows, m); None for everywhere."""
        if not self.causal and self.window is None:
            return None
        # By default the last query is at the last key.
        places = np.arange(n) + (m - n) if self.positions is None else self.positions
        keys, places = np.arange(m), places[rows, None]
        seen = keys <= places if self.causal else np.ones((len(places), m), bool)
        return seen if self.window is None else seen & (keys > places - self.window)


def _of_head(values: tuple[float, ...], head: int) -> float:
    return values[head] if len(values) > 1 else values[0]


_SOUND: dict[str, tuple[Callable[[np.ndarray], np.ndarray], str]] = {
    **dict.fromkeys(("softcap", "expected"), (lambda x: x > 0, "above 0")),
    **dict.fromkeys(("divisor", "gains"), (lambda x: x != 0, "other than 0")),
    "window": (lambda x: x >= 1, "at least 1"),
    "positions": (lambda x: (x >= 0) & (x % 1 == 0), "whole numbers of at least 0"),
}
"""What numbers beside q and k have to be, and in words."""


def given_of(beside: dict[str, Tensor], about: dict[str, Any], n_heads: int, n_queries: int) -> Given:
    """Return what arrays and words of a file say of one call; InputError for what cannot be."""
    said: dict[str, Any] = {}
    for role, tensor in beside.items():
        values = np.asarray(tensor.finite(), np.float64).ravel()
        sizes = {"scale": (1, n_heads), "divisor": (1, n_heads), "sinks": (1, n_heads), "gains": (2,)}
        sizes |= {"positions": (n_queries,)}
        if values.size not in sizes.get(role, (1,)):
            raise InputError(
                f"{tensor.where} has shape {tensor.shape}, not {' or '.join(map(str, sizes.get(role, (1,))))} numbers"
            )
        sound, words = _SOUND.get(role, (np.isfinite, ""))
        if not sound(values).all():
            raise InputError(f"{tensor.where} holds {values[~sound(values)][0]:g}, and has to be {words}")
        said[role] = values
    if "divisor" in said:
        said.setdefault("scale", 1 / said["divisor"])
    unknown = about.get("gains_unknown", [] if "gains" in said else ["q", "k"])
    return Given(
        tuple(said["scale"].tolist()) if "scale" in said else None,
        str(about.get("scale_from", "file")),
        tuple(said["gains"].tolist()) if "gains" in said else (1.0, 1.0),
        tuple(str(name) for name in unknown),
        float(said["expected"][0]) if "expected" in said else None,
        str(about.get("expected_from", "the file")),
        bool(said["causal"][0]) if "causal" in said else False,
        int(said["window"][0]) if "window" in said else None,
        float(said["softcap"][0]) if "softcap" in said else None,
        tuple(said["sinks"].tolist()) if "sinks" in said else None,
        said["positions"].astype(int) if "positions" in said else None,
        _count(about.get("d_model")),
        _numbers_of_heads(about.get("heads"), n_heads),
        _count(about.get("overflow")) or 0,
    )


def _numbers_of_heads(listed: list[Any] | None, n_heads: int) -> tuple[int, ...] | None:
    if not listed:
        return None
    if len(listed) != n_heads or not all(isinstance(head, int) for head in listed):
        raise InputError(f"'sqrtdk' lists the heads {listed}, and there are {n_heads}")
    return tuple(listed)


def _count(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and math.isfinite(value) and value > 0 else None


def about_of(path: Path, text: str | None) -> dict[str, Any]:
    """Return what a file says in words, from its JSON; InputError where it is none, {} where it says nothing."""
    if text is None:
        return {}
    try:
        found = json.loads(text)
        calls = found.get("calls", {})
        if not all(isinstance(one, dict) for one in (found, calls, *calls.values())):
            raise ValueError("not a mapping of mappings")
        lists = [found.get("notes"), *(one.get(name) for one in calls.values() for name in ("heads", "gains_unknown"))]
        if not all(one is None or isinstance(one, list) for one in lists):
            raise ValueError("notes, heads and gains_unknown are lists")
    except (ValueError, AttributeError) as error:
        raise InputError(f"{path}: 'sqrtdk' is no description of a capture ({error})") from error
    return found
