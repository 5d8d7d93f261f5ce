"""The one place for colours, markers, dashes, labels and order. Colour is never the only sign.

Every colour has a contrast of at least 3 to 1 against a white and against a near-black page (tested). Ink is one colour
with opacity, so that a page can swap it for its own text colour.
"""

import contextlib
import dataclasses
import itertools
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

INK = "#1a1a1a"
FAINT = 0.13
MUTED = 0.68
WIDTH = 5.6

Dash = tuple[int, tuple[float, ...]]
"""Offset and lengths of strokes and gaps, in line widths."""
SOLID, DASHED, DOTTED, DASHDOT = (0, ()), (0, (4.5, 1.8)), (0, (1.2, 1.6)), (0, (5, 1.6, 1.2, 1.6))
_COLOURS = ("#2b83d6", "#d55e00", "#009e73", "#c44fb0", "#8a5e10", "#2e767f", "#8158ee", "#d81e4a", "#8c8c8c")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "d")
_DASHES = (SOLID, DASHED, DOTTED, DASHDOT, (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)), (0, (6, 1.5, 2, 1.5)))
_OTHER_COLOURS = _COLOURS[3:]
"""Colours of what is no scale rule of the usual three: one colour means one thing through the whole page."""
_SIGNS = len(_MARKERS) * len(_DASHES)
"""Looks that differ in print without colour."""
# Purple to brown through slate and olive, in none of the colours of the usual scale rules; hence markers too.
_SEQUENCE = ("#8158ee", "#6f7396", "#6b7f45", "#8a8a00", "#a3701a")


@dataclass(frozen=True)
class Look:
    """How one series is drawn: its label, colour, marker and dash pattern."""

    label: str
    colour: str
    marker: str
    dash: Dash


# In the order of their looks, which readers know: no name is ever moved. Any other takes a free look by its spelling.
_ENSEMBLES = (
    *("gaussian", "uniform", "rademacher", "laplace", "student_t", "shifted", "equicorrelated", "ar1", "aligned"),
    *("lognormal", "sparse", "uniform01", "student_t_3", "student_t_heavy", "unequal", "one_sided"),
    *("power_law_correlation", "power_law_spectrum", "low_rank_shared", "low_rank_gaussian", "low_rank_independent"),
    *("outliers_aligned", "outliers_misaligned", "scale_mixture", "multivariate_t", "tied", "shared_tokens"),
    *("random_weights", "raw_tokens", "rmsnorm_tokens", "layernorm_tokens", "fixed_weights", "fixed_weights_rmsnorm"),
    *("fixed_weights_layernorm", "rmsnorm", "layernorm", "l2norm", "rmsnorm_exponential"),
    *("rope", "rope_aligned", "rope_equicorrelated"),
)
_RULES = (
    *("none", "1/sqrt(d_k)", "1/d_k", "8/d_k", "learnable", "ln(n)/d_k", "sqrt(ln(n)/d_k)", "ssmax"),
    *("row_std", "row_mean_abs", "row_median_abs", "row_max_abs"),
    *("global_std", "global_mean_abs", "global_median_abs", "global_max_abs"),
    *("qk_norm", "qk_norm_length", "cosine", "qk_rmsnorm", "yarn", "qwen_logn", "fixed_width", "constant"),
    *("d_model_for_d_k", "heads_for_d_k", "d_v_for_d_k", "applied_twice", "inverted"),
    *("qk_norm_and_root", "qk_rmsnorm_unscaled"),
)
_SCALINGS = {
    "none": Look("unscaled, q·k", "#d55e00", "s", DASHED),
    "1/sqrt(d_k)": Look("q·k / √dₖ", "#2b83d6", "o", SOLID),
    "1/d_k": Look("q·k / dₖ", "#009e73", "^", DASHDOT),
}
_SCALING_WORDS = {
    "none": "without a scale",
    "1/sqrt(d_k)": "with 1/√d_k",
    "1/d_k": "with 1/d_k",
}
_MEASURES = {
    "entropy": "entropy of a row (nats)",
    "normalised_entropy": "entropy / ln n",
    "max_weight": "largest weight",
    "participation_ratio": "participation ratio Σp²",
    "effective_keys": "effective keys 1/Σp²",
    "saturated_share": "rows with a weight > 0.99",
    "jacobian_trace": "trace of the Jacobian",
    "jacobian_frobenius": "Frobenius norm of the Jacobian",
    "jacobian_spectral": "spectral norm of the Jacobian",
    "vanishing_share": "rows with Jacobian norm < 0.001",
    "vanishing_share_relative": "rows below 1 % of the uniform row's norm",
    "grad_logits": "gradient, logits",
    "grad_query": "gradient, query",
    "grad_key": "gradient, keys",
}


_labels: ContextVar[Mapping[str, str]] = ContextVar("labels", default=MappingProxyType({}))
_said: ContextVar[Callable[[str], str]] = ContextVar("said", default=str)


class UnknownKey(KeyError):
    """A scale rule, measure or series that this module has no look for."""

    def __init__(self, kind: str, key: str, known: Iterable[str]) -> None:
        super().__init__(key)
        self.message = f"no style for the {kind} {key!r}; styles exist for {', '.join(known)}"

    def __str__(self) -> str:
        return self.message


def _look(label: str, position: int) -> Look:
    # The three cycles have pairwise different lengths, so a look repeats only after hundreds of series.
    return Look(
        label,
        _OTHER_COLOURS[position % len(_OTHER_COLOURS)],
        _MARKERS[position % len(_MARKERS)],
        _DASHES[position % len(_DASHES)],
    )


def _chosen(names: Iterable[str], first: int, end: int) -> dict[str, int]:
    """Give each name the place from `first` to before `end` that its spelling chooses, or the next that is free.

    When all are taken they begin again in other colours.
    """
    chosen: dict[str, int] = {}
    for name in names:
        lap = end * (len(chosen) // (end - first))
        wanted = zlib.crc32(name.encode())
        places = (first + (wanted + step) % (end - first) + lap for step in itertools.count())
        chosen[name] = next(place for place in places if place not in chosen.values())
    return chosen


@contextlib.contextmanager
def labelled(labels: Mapping[str, str], said: Callable[[str], str] = str) -> Iterator[None]:
    """Call ensembles by these labels in what is drawn and said inside; any other by its own name, literally.

    said: puts a label into the language of what is said.
    """
    tokens = _labels.set(labels), _said.set(said)
    try:
        yield
    finally:
        _labels.reset(tokens[0])
        _said.reset(tokens[1])


def ensembles(names: list[str]) -> dict[str, Look]:
    """Return a look for each ensemble, in the given order; one looks the same whatever else is in the run.

    Only two that are not known here may choose one look: the later of them then takes another.
    """
    names = list(dict.fromkeys(names))
    chosen = _chosen((name for name in names if name not in _ENSEMBLES), len(_ENSEMBLES), _SIGNS)
    places = {name: place for place, name in enumerate(_ENSEMBLES)} | chosen
    return {name: _look(ensemble_label(name), places[name]) for name in names}


def apart(looks: Mapping[str, Look]) -> dict[str, Look]:
    """Return the looks of a figure of few series with a colour for each: the later of two takes the next free one."""
    taken: dict[str, Look] = {}
    for name, look in looks.items():
        used = {other.colour for other in taken.values()}
        free = [colour for colour in (look.colour, *_OTHER_COLOURS) if colour not in used]
        taken[name] = dataclasses.replace(look, colour=(free or [look.colour])[0])
    return taken


def ensemble_label(name: str) -> str:
    """Return the label of an ensemble: that of its entry in the configuration, else its own name."""
    return _said.get()(_labels.get().get(name, str(name)))


def scaling(name: str) -> Look:
    """Return the look of a scale rule or variant; one that cannot be read raises UnknownKey."""
    if name in _SCALINGS:
        return _SCALINGS[name]
    from sqrtdk.variants import notation, scalings

    try:
        variant = notation.parse(name)
    except notation.VariantError:
        raise UnknownKey("scale rule", name, scalings.names()) from None
    # Any other has a look of its own, in none of the colours of the usual three, and a transform moves it on.
    places = {rule: place for place, rule in enumerate(_RULES)}
    others = (rule for rule in scalings.SCALINGS if rule not in places)
    places |= _chosen(others, len(_RULES), len(_OTHER_COLOURS) * _SIGNS)
    place = len(_SCALINGS) + places[variant.scaling.name] + 7 * len(variant.transforms)
    return _look(variant.text, place)


def scaling_words(name: str) -> str:
    """Return a scale rule in the words of a sentence; one that cannot be read raises UnknownKey."""
    return _SCALING_WORDS.get(name) or f"with {scaling(name).label}"


def scalings(names: Sequence[str]) -> list[str]:
    """Return the scale rules present, in the order in which figures show them; an unknown one raises UnknownKey."""
    present = list(dict.fromkeys(names))
    for name in present:
        scaling(name)
    return [*(name for name in _SCALINGS if name in present), *(name for name in present if name not in _SCALINGS)]


def measure(name: str) -> str:
    """Return the axis label of a measure; an unknown one raises UnknownKey."""
    if name not in _MEASURES:
        raise UnknownKey("measure", name, _MEASURES)
    return _MEASURES[name]


def sequence(values: list[Any]) -> dict[Any, Look]:
    """Return looks for an ordered quantity such as the number of keys: ordered colours, different marks."""
    last = max(len(values) - 1, 1)
    return {
        value: Look(
            str(value),
            _blend(position * (len(_SEQUENCE) - 1) / last if len(values) > 1 else 1.0),
            _MARKERS[position % len(_MARKERS)],
            _DASHES[position % len(_DASHES)],
        )
        for position, value in enumerate(values)
    }


def _blend(position: float) -> str:
    """Return the colour at a place along the ordered palette, between its neighbours."""
    low = min(int(position), len(_SEQUENCE) - 2)
    weight = position - low
    pair = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in _SEQUENCE[low : low + 2]]
    return "#" + "".join(f"{round((1 - weight) * a + weight * b):02x}" for a, b in zip(*pair, strict=True))
