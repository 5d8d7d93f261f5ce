"""How large logits are before any training: what initial weights and normalisations make of them.

A query is q = W_q x and a key k = W_k x', with independent weights of mean 0 and d_model inputs. For given inputs the
variance of c q·k within a row is then, on average over the weights and whatever their law,
c² d_k Var(W_q) Var(W_k) ‖x‖² (mean of ‖x'_j‖² − mean of x'_j·x'_l over pairs of keys).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sqrtdk.rows.norms import l2_normalise, layer_normalise, rms_normalise
from sqrtdk.sampling import streams
from sqrtdk.statistics import estimates

N_TOKENS = 128
"""Tokens that ask and, drawn apart from them, tokens that are asked, in each draw of the weights."""
COMMON_MEAN = 3.0  # ASSUME
"""Mean of every component of inputs with a common mean, in units of their standard deviation."""


@dataclass(frozen=True)
class LayerWidths:
    """Widths of a layer: of the model, and of each of its heads."""

    d_model: int
    n_heads: int

    @property
    def d_k(self) -> int:
        """Width of a query or a key."""
        return self.d_model // self.n_heads


BASE = LayerWidths(512, 8)
"""The base model of Vaswani et al. 2017."""
WIDE = LayerWidths(1024, 8)


@dataclass(frozen=True)
class Initialisation:
    """A law of the initial weights of one head's projections, both (d_k, d_model), with mean 0.

    formula: TeX of the variance of a weight, with D for d_model; of W_q and W_k where they differ.
    query, key: LayerWidths -> variance of a weight of W_q and of W_k.
    uniform: whether weights are uniform, else normal. scaled: whether the model multiplies q·k by 1/√d_k.
    shapes: the layers that it is shown for.
    """

    name: str
    label: str
    formula: str
    source: str
    query: Callable[[LayerWidths], float]
    key: Callable[[LayerWidths], float] | None = None
    uniform: bool = False
    scaled: bool = True
    shapes: tuple[LayerWidths, ...] = (BASE,)

    def variances(self, shape: LayerWidths) -> tuple[float, float]:
        """Return Var(W_q) and Var(W_k)."""
        return self.query(shape), (self.key or self.query)(shape)

    def draw(self, rng: np.random.Generator, shape: LayerWidths) -> tuple[np.ndarray, np.ndarray]:
        """Draw W_q and W_k, float32 (d_k, d_model)."""
        size = (shape.d_k, shape.d_model)
        query, key = (np.float32(math.sqrt(variance)) * self._unit(rng, size) for variance in self.variances(shape))
        return query, key

    def _unit(self, rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
        if self.uniform:
            return np.float32(math.sqrt(12)) * (rng.random(size, dtype=np.float32) - np.float32(0.5))
        return streams.standard_normal(rng, size)


_INITIALISATIONS = (
    Initialisation(
        name="lecun_normal",
        label="LeCun",
        formula=r"\frac{1}{D}",
        source="LeCun et al. 1998, section 4.6: the variance of the input is kept",
        query=lambda shape: 1 / shape.d_model,
    ),
    Initialisation(
        name="xavier_uniform",
        label="Xavier D → D",
        formula=r"\frac{2}{D + D}",
        source="Glorot and Bengio 2010, equation 16, for the projection of all heads together",
        query=lambda shape: 2 / (shape.d_model + shape.d_model),
        uniform=True,
    ),
    Initialisation(
        name="xavier_normal",
        label="Xavier normal D → D",
        formula=r"\frac{2}{D + D}",
        source="Glorot and Bengio 2010, equation 12, with normal weights",
        query=lambda shape: 2 / (shape.d_model + shape.d_model),
    ),
    Initialisation(
        name="xavier_per_head",
        label="Xavier D → dₖ",
        formula=r"\frac{2}{D + d_k}",
        source="Glorot and Bengio 2010, for a projection of each head by itself",
        query=lambda shape: 2 / (shape.d_model + shape.d_k),
        uniform=True,
    ),
    Initialisation(
        name="xavier_fused",
        label="PyTorch attention",
        formula=r"\frac{2}{D + 3 D}",
        source="PyTorch, nn.MultiheadAttention: Xavier on the matrix (3D, D) of queries, keys and values together",
        query=lambda shape: 2 / (shape.d_model + 3 * shape.d_model),
        uniform=True,
    ),
    Initialisation(
        name="linear_default",
        label="PyTorch linear layer",
        formula=r"\frac{1}{3 D}",
        source="PyTorch, nn.Linear: uniform on ±1/√D, which is kaiming_uniform with a = √5",
        query=lambda shape: 1 / (3 * shape.d_model),
        uniform=True,
    ),
    Initialisation(
        name="kaiming_normal",
        label="He normal",
        formula=r"\frac{2}{D}",
        source="He et al. 2015, equation 10, whose gain of √2 is meant for rectifiers",
        query=lambda shape: 2 / shape.d_model,
    ),
    Initialisation(
        name="normal_0.02",
        label="N(0, 0.02²)",
        formula="0.02^2",
        source="Devlin et al. 2019 (BERT) and Radford et al. 2019 (GPT-2), at the widths of four models",
        query=lambda shape: 0.02**2,
        shapes=(LayerWidths(768, 12), LayerWidths(1600, 25), LayerWidths(4096, 32), LayerWidths(12288, 96)),
    ),
    Initialisation(
        name="t5",
        label="T5 (no scale)",
        formula=r"\frac{1}{D d_k} , \; \frac{1}{D}",
        source="Raffel et al. 2020, mesh-tensorflow: the factor 1/√d_k is in the weights of the query",
        query=lambda shape: 1 / (shape.d_model * shape.d_k),
        key=lambda shape: 1 / shape.d_model,
        scaled=False,
    ),
    Initialisation(
        name="xavier_gain_2",
        label="Xavier with gain 2",
        formula=r"2^2 \frac{2}{D + D}",
        source="an initialisation that is too large by a factor of 2",
        query=lambda shape: 4 * 2 / (shape.d_model + shape.d_model),
        uniform=True,
    ),
)

INITIALISATIONS: dict[str, Initialisation] = {one.name: one for one in _INITIALISATIONS}
"""Every initialisation by name, in the order of figures and tables."""
LECUN = INITIALISATIONS["lecun_normal"]


def _as_it_is(x: np.ndarray) -> np.ndarray:
    return x


def _direction_square(mean: float, width: int) -> float:
    """Return the squared length of E[x/‖x‖] for x of components N(mean, 1): the mean cosine of two such vectors."""
    from scipy.special import gammaln, hyp1f1

    centre = mean * math.sqrt(width)
    log_factor = math.log(centre / math.sqrt(2)) + gammaln((width + 1) / 2) - gammaln(width / 2 + 1)
    return float((math.exp(log_factor) * hyp1f1(0.5, width / 2 + 1, -(centre**2) / 2)) ** 2)


@dataclass(frozen=True)
class Inputs:
    """Inputs of a layer: components N(mean, variance), then normalised.

    size: d_model -> E‖x‖²/d_model. spread: d_model -> (E‖x‖² − E x·x')/d_model, without what all tokens share.
    """

    normalise: Callable[[np.ndarray], np.ndarray] = _as_it_is
    mean: float = 0.0
    sd: float = 1.0
    size: Callable[[int], float] = lambda width: 1.0
    spread: Callable[[int], float] = lambda width: 1.0

    def draw(self, rng: np.random.Generator, width: int) -> np.ndarray:
        """Draw N_TOKENS inputs for queries and as many for keys, float32 (2, N_TOKENS, width)."""
        x = streams.standard_normal(rng, (2, N_TOKENS, width))
        x *= np.float32(self.sd)
        x += np.float32(self.mean)
        return self.normalise(x)


NORMALISED = Inputs(layer_normalise)


@dataclass(frozen=True)
class Layer:
    """A layer whose logits are measured: weights, what they are applied to, what is done to q and k, and the factor.

    group: what varies, `weights`, `inputs` or `heads`.
    normalise: applied to every query and key. length, directions: d_k -> ‖q‖² after it, and the number of dimensions in
    which the directions of normal q are then uniform; None where q and k stay as they are.
    factor: d_k -> what multiplies q·k.
    effort: draws of the weights are so many times the usual number, where one draw says little.
    """

    group: str
    name: str
    label: str
    source: str
    weights: Initialisation = LECUN
    inputs: Inputs = NORMALISED
    normalise: Callable[[np.ndarray], np.ndarray] = _as_it_is
    length: Callable[[int], float] | None = None
    directions: Callable[[int], int] = lambda d_k: d_k
    factor: Callable[[int], float] = lambda d_k: 1 / math.sqrt(d_k)
    effort: int = 1
    shapes: tuple[LayerWidths, ...] = (BASE,)

    def exact(self, shape: LayerWidths) -> dict[str, float]:
        """Return the exact mean of every quantity over weights and inputs."""
        if self.length is not None:
            square = self.length(shape.d_k)
            query = key = square / shape.d_k
            logits = square**2 / self.directions(shape.d_k)
        else:
            query, key = (shape.d_model * variance for variance in self.weights.variances(shape))
            size, spread = self.inputs.size(shape.d_model), self.inputs.spread(shape.d_model)
            # Queries and keys come from different tokens, so the two sizes are independent.
            query, key, logits = query * size, key * size, shape.d_k * query * size * key * spread
        logits *= self.factor(shape.d_k) ** 2
        return dict(query_variance=query, key_variance=key, logit_variance=logits, logit_std=math.sqrt(logits))

    def measure(self, rng: np.random.Generator, shape: LayerWidths) -> tuple[float, float, float]:
        """Return mean q_i², mean k_i² and the mean variance of the logits within a row, for one draw of the weights."""
        x_q, x_k = self.inputs.draw(rng, shape.d_model)
        w_q, w_k = self.weights.draw(rng, shape)
        q, k = (self.normalise((x @ w.T).astype(np.float64)) for x, w in ((x_q, w_q), (x_k, w_k)))
        logits = self.factor(shape.d_k) * (q @ k.T)
        return np.mean(q**2), np.mean(k**2), np.mean(np.var(logits, axis=1, ddof=1))


def _unscaled(d_k: int) -> float:
    return 1.0


def _weights(one: Initialisation) -> Layer:
    factor: dict[str, Any] = {} if one.scaled else dict(factor=_unscaled)
    return Layer("weights", one.name, one.label, one.source, one, shapes=one.shapes, **factor)


_COMMON_EFFORT = 36
"""All queries of a draw share W_q times the common mean, whose squared length scatters by √(2/d_k)."""
_INPUTS = (
    Layer(
        "inputs", "layernorm_x", "LayerNorm", "Ba et al. 2016: d_model − 1 directions, the squared length is d_model"
    ),
    Layer(
        "inputs",
        "rmsnorm_x",
        "RMSNorm",
        "Zhang and Sennrich 2019: the squared length is d_model",
        inputs=Inputs(rms_normalise),
    ),
    Layer("inputs", "raw_x", "variance 1", "components N(0, 1)", inputs=Inputs()),
    Layer(
        "inputs",
        "variance_4_x",
        "variance 4",
        "components N(0, 4), as where a normalisation is left out",
        inputs=Inputs(sd=2.0, size=lambda width: 4.0, spread=lambda width: 4.0),
    ),
    Layer(
        "inputs",
        "common_mean_x",
        "common mean",
        "components N(3, 1): all tokens share a mean, which cancels within a row only on the side of the keys",
        inputs=Inputs(mean=COMMON_MEAN, size=lambda width: 1 + COMMON_MEAN**2),
        effort=_COMMON_EFFORT,
    ),
    Layer(
        "inputs",
        "rmsnorm_common_mean_x",
        "RMSNorm of common mean",
        "components N(3, 1), then RMSNorm, which keeps the mean: tokens of mean cosine 0.9",
        inputs=Inputs(rms_normalise, COMMON_MEAN, spread=lambda width: 1 - _direction_square(COMMON_MEAN, width)),
        effort=_COMMON_EFFORT,
    ),
    Layer(
        "inputs",
        "layernorm_common_mean_x",
        "LayerNorm of common mean",
        "components N(3, 1), then LayerNorm, which takes a mean of all components away",
        inputs=Inputs(layer_normalise, COMMON_MEAN),
    ),
)

LEARNED_G = math.log2(N_TOKENS**2 - N_TOKENS)
"""Start of a learned g after Henry et al. 2020, log₂(L² − L), for as many keys as are measured here."""


def _head(name: str, label: str, source: str, **how: Any) -> Layer:
    return Layer("heads", name, label, source, shapes=(BASE, WIDE), **how)


_UNIT = dict(normalise=l2_normalise, length=_unscaled)
_RMS = dict(normalise=rms_normalise, length=float)
_MEANLESS = dict(normalise=layer_normalise, length=float, directions=lambda d_k: d_k - 1)
_HEADS = (
    _head("plain", "plain q·k / √dₖ", "Vaswani et al. 2017"),
    _head("plain_unscaled", "plain q·k (no scale)", "Luong et al. 2015", factor=_unscaled),
    _head("rmsnorm", "RMSNorm / √dₖ", "on q and k, as in Gemma 3 and Qwen 3, before its gain is trained", **_RMS),
    _head("rmsnorm_unscaled", "RMSNorm (no scale)", "the same without a scale", **_RMS, factor=_unscaled),
    _head("layernorm", "LayerNorm / √dₖ", "Dehghani et al. 2023 (ViT-22B)", **_MEANLESS),
    _head("l2_1", "L2 with g = 1", "cosines, without a temperature", **_UNIT, factor=_unscaled),
    _head("l2_10", "L2 with g = 10", "Liu et al. 2022 (Swin V2), start of g", **_UNIT, factor=lambda d_k: 10.0),
    _head("l2_learned", "L2 with learned g", "Henry et al. 2020, start of g", **_UNIT, factor=lambda d_k: LEARNED_G),
    _head("l2_sqrt", "L2 with g = √dₖ", "the g that gives the spread of the usual scale", **_UNIT, factor=math.sqrt),
    _head("l2_twice", "L2 / √dₖ", "a mistake: what is normalised is scaled once more", **_UNIT),
)

LAYERS: tuple[Layer, ...] = (*(_weights(one) for one in _INITIALISATIONS), *_INPUTS, *_HEADS)
"""Everything that is measured, in the order of figures and tables."""
LABELS = {(layer.group, layer.name): layer.label for layer in LAYERS}
"""What a figure or a table calls a layer."""
QUANTITIES = ("query_variance", "key_variance", "logit_variance", "logit_std")


def simulate(layer: Layer, shape: LayerWidths, n_draws: int, seed: int) -> list[dict[str, Any]]:
    """Measure a layer for independent draws of weights and inputs; return one row for each of `QUANTITIES`.

    Returns:
        Rows group, scheme, d_model, d_k, n_heads, quantity, estimate, se, exact, n_blocks; se from between draws.
    """
    rng = streams.generator(seed, "initialisation", layer.group, layer.name, shape.d_model, shape.n_heads)
    n_blocks = n_draws * layer.effort
    query, key, logits = np.array([layer.measure(rng, shape) for _ in range(n_blocks)]).T
    found = zip(QUANTITIES, (query, key, logits, logits), layer.exact(shape).values(), strict=True)
    place = dict(group=layer.group, scheme=layer.name, d_model=shape.d_model, d_k=shape.d_k, n_heads=shape.n_heads)
    rows = []
    for quantity, values, exact in found:
        estimate, se = (estimates.rms if quantity == "logit_std" else estimates.mean)(values)
        rows.append(place | dict(quantity=quantity, estimate=estimate, se=se, exact=exact, n_blocks=n_blocks))
    return rows


def simulate_all(n_draws: int, seed: int) -> list[dict[str, Any]]:
    """Measure every layer of `LAYERS` at each of its shapes; see `simulate`."""
    return [row for layer in LAYERS for shape in layer.shapes for row in simulate(layer, shape, n_draws, seed)]
