"""The one place for colours, markers, dashes, labels and order. Colour is never the only sign.

Every colour has a contrast of at least 3 to 1 against a white and against a near-black page (tested). Ink is one colour
with opacity, so that a page can swap it for its own text colour.
"""

import dataclasses
from dataclasses import dataclass

INK = "#1a1a1a"
FAINT = 0.13
MUTED = 0.68
WIDTH = 5.6

SOLID, DASHED, DOTTED, DASHDOT = (0, ()), (0, (4.5, 1.8)), (0, (1.2, 1.6)), (0, (5, 1.6, 1.2, 1.6))
_COLOURS = ("#2b83d6", "#d55e00", "#009e73", "#c44fb0", "#8a5e10", "#2e767f", "#8158ee", "#d81e4a", "#8c8c8c")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "d")
_DASHES = (SOLID, DASHED, DOTTED, DASHDOT, (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)), (0, (6, 1.5, 2, 1.5)))
# Purple to olive through blue and green: an order that survives grey printing of neither end, hence markers too.
_SEQUENCE = ("#8158ee", "#2b83d6", "#149488", "#8a8a00", "#c46a00")


@dataclass(frozen=True)
class Look:
    """How one series is drawn: its label, colour, marker and dash pattern."""

    label: str
    colour: str
    marker: str
    dash: tuple


_ENSEMBLES = {
    "gaussian": "Gaussian",
    "uniform": "uniform",
    "rademacher": "Rademacher",
    "laplace": "Laplace",
    "student_t": "Student t",
    "shifted": "shifted means",
    "equicorrelated": "equicorrelated",
    "ar1": "AR(1)",
    "aligned": "aligned q, k",
    "lognormal": "lognormal",
    "sparse": "sparse",
    "uniform01": "uniform on (0, 1)",
    "student_t_3": "Student t (3 df)",
    "student_t_heavy": "Student t (heavy)",
    "unequal": "unequal sizes",
    "one_sided": "correlated q only",
    "power_law_correlation": "power-law corr.",
    "power_law_spectrum": "power-law spectr.",
    "low_rank_shared": "low rank (shared)",
    "low_rank_gaussian": "low rank (random)",
    "low_rank_independent": "low rank (apart)",
    "outliers_aligned": "outliers aligned",
    "outliers_misaligned": "outliers apart",
    "scale_mixture": "scale mixture",
    "multivariate_t": "multivariate t",
    "tied": "tied q = k",
    "shared_tokens": "similar tokens",
    "random_weights": "random weights",
    "raw_tokens": "raw tokens",
    "rmsnorm_tokens": "RMSNorm tokens",
    "layernorm_tokens": "LayerNorm tokens",
    "fixed_weights": "fixed weights",
    "fixed_weights_rmsnorm": "fixed W RMSNorm",
    "fixed_weights_layernorm": "fixed W LayerNorm",
    "rmsnorm": "RMSNorm (q, k)",
    "layernorm": "LayerNorm (q, k)",
    "l2norm": "cosine (L2 norm)",
    "rmsnorm_exponential": "RMSNorm (skewed)",
    "rope": "RoPE",
    "rope_aligned": "RoPE aligned",
    "rope_equicorrelated": "RoPE equicorr.",
}
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


class UnknownKey(KeyError):
    """A scale rule, measure or series that this module has no look for."""

    def __init__(self, kind: str, key: str, known):
        super().__init__(key)
        self.message = f"no style for the {kind} {key!r}; styles exist for {', '.join(known)}"

    def __str__(self) -> str:
        return self.message


def _look_up(kind: str, table: dict, key: str):
    if key not in table:
        raise UnknownKey(kind, key, table)
    return table[key]


def _look(label: str, position: int) -> Look:
    # The three cycles have pairwise different lengths, so a look repeats only after hundreds of series.
    return Look(
        label,
        _COLOURS[position % len(_COLOURS)],
        _MARKERS[position % len(_MARKERS)],
        _DASHES[position % len(_DASHES)],
    )


def ensembles(names: list[str]) -> dict[str, Look]:
    """Return a look for each ensemble, in the given order.

    A built-in ensemble always looks the same, whatever else is in the run; others take the next free looks by position
    and are labelled with their own name, literally.
    """
    known = list(_ENSEMBLES)
    others = [name for name in dict.fromkeys(names) if name not in _ENSEMBLES]
    return {
        name: _look(_ENSEMBLES[name], known.index(name))
        if name in _ENSEMBLES
        else _look(str(name), len(known) + others.index(name))
        for name in dict.fromkeys(names)
    }


def ensemble_label(name: str) -> str:
    """Return the label of an ensemble: fixed words for a built-in one, else its own name."""
    return _ENSEMBLES.get(name, str(name))


def scaling(name: str) -> Look:
    """Return the look of a scale rule or variant; one that cannot be read raises UnknownKey."""
    if name in _SCALINGS:
        return _SCALINGS[name]
    from sqrtdk.variants import notation, scalings

    try:
        variant = notation.parse(name)
    except notation.VariantError:
        raise UnknownKey("scale rule", name, scalings.names()) from None
    # Any other has a look of its own, in none of the colours of the usual three: its place in the registry gives it,
    # and a transform moves it on.
    taken = {look.colour for look in _SCALINGS.values()}
    free = [colour for colour in _COLOURS if colour not in taken]
    position = len(_SCALINGS) + list(scalings.SCALINGS).index(variant.scaling.name) + 7 * len(variant.transforms)
    look = _look(variant.text, position)
    return dataclasses.replace(look, colour=free[position % len(free)])


def scaling_words(name: str) -> str:
    """Return a scale rule in the words of a sentence; one that cannot be read raises UnknownKey."""
    return _SCALING_WORDS.get(name) or f"with {scaling(name).label}"


def scalings(names) -> list[str]:
    """Return the scale rules present, in the order in which figures show them; an unknown one raises UnknownKey."""
    present = list(dict.fromkeys(names))
    for name in present:
        scaling(name)
    return [*(name for name in _SCALINGS if name in present), *(name for name in present if name not in _SCALINGS)]


def measure(name: str) -> str:
    """Return the axis label of a measure; an unknown one raises UnknownKey."""
    return _look_up("measure", _MEASURES, name)


def sequence(values: list) -> dict:
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
