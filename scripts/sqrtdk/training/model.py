"""A small transformer with a hand-written exact backward pass, for many models at once.

Leading axes of parameters are models that have nothing to do with each other; inputs broadcast against them. Each piece
returns its output and the way back from ∂L/∂output, in the precision of the parameters.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sqrtdk.training.rules import Rule

NORM_EPSILON = 1e-5
MASKED = -1e30
INVISIBLE = 1e-16
"""A gradient of a logit below this moves no weight in single precision, where products with it would be subnormal, on
which a processor is many times slower: it is taken for 0 there. Double precision keeps it."""
Parameters = dict[str, np.ndarray]
"""Parameters by name, or their gradients."""
Back = Callable[[np.ndarray], np.ndarray]
"""∂L/∂output -> ∂L/∂input. The ways back below put the gradients of parameters into a dict that they are given."""


@dataclass(frozen=True)
class Shape:
    """What a model looks like.

    d_model: width of a token. d_k: width of a query and a key of one head; values have d_model/heads.
    inputs, outputs: numbers of symbols. mlp: hidden units after each attention, 0 for none.
    memory: so many first positions are what all others attend to and do not attend themselves; 0: all attend to all.
    causal: whether a position sees none after itself. asked: from this reader on, something is asked for.
    wanted: of each of these readers, the key that it has to find; none where there is no such key.
    """

    inputs: int
    outputs: int
    d_k: int
    d_model: int = 64
    layers: int = 1
    heads: int = 1
    mlp: int = 0
    layer_norm: bool = True
    causal: bool = False
    memory: int = 0
    asked: int = 0
    wanted: tuple[int, ...] = ()

    @property
    def sources(self) -> slice:
        """The positions that keys come from."""
        return slice(0, self.memory or None)

    @property
    def readers(self) -> slice:
        """The positions that attend and carry the result on."""
        return slice(self.memory, None)

    @property
    def answers(self) -> slice:
        """The readers that are asked for something."""
        return slice(self.asked, None)

    def seen(self, length: int) -> np.ndarray | None:
        """Return the keys that each query sees in sequences of a length, (m, n) truth values; None for all."""
        return np.tri(length, dtype=bool) if self.causal else None


@dataclass
class LayerAttention:
    """What one layer's attention looked like: scores q·k, logits, weights (..., B, H, m, n); ∂L/∂output after `back`.

    allowed: (m, n) truth values, or None. q, k: queries and keys, (..., B, H, ·, d_k).
    tokens: what they are made of, each (..., B, ·, d_model).
    """

    scores: np.ndarray
    logits: np.ndarray
    weights: np.ndarray
    allowed: np.ndarray | None
    q: np.ndarray
    k: np.ndarray
    tokens: tuple[np.ndarray, np.ndarray]
    output_gradient: np.ndarray = field(init=False)


def initial(shape: Shape, rule: Rule, rng: np.random.Generator) -> Parameters:
    """Draw the weights of one model: variance 1/fan-in (LeCun), biases 0, tokens of unit variance.

    The rule adds parameters and draws nothing, so that models of all rules start from the same weights.
    """
    d, wide = shape.d_model, shape.heads * shape.d_k

    def weights(rows: int, columns: int) -> np.ndarray:
        return rng.standard_normal((rows, columns)) / math.sqrt(rows)

    found = {"embedding": rng.standard_normal((shape.inputs, d)) / math.sqrt(2)}
    for layer in range(shape.layers):
        found |= {f"{layer}.w_q": weights(d, wide), f"{layer}.w_k": weights(d, wide)}
        found |= {f"{layer}.b_q": np.zeros(wide), f"{layer}.b_k": np.zeros(wide)}
        found |= {f"{layer}.w_v": weights(d, d), f"{layer}.w_o": weights(d, d)}
        if rule.start is not None:
            found[f"{layer}.gain"] = np.full(shape.heads, float(rule.start))
        if shape.mlp:
            found |= {f"{layer}.w_1": weights(d, shape.mlp), f"{layer}.b_1": np.zeros(shape.mlp)}
            found[f"{layer}.w_2"] = weights(shape.mlp, d)
    return found | {"unembedding": weights(d, shape.outputs)}


def _norm(x: np.ndarray) -> tuple[np.ndarray, Back]:
    """LayerNorm without gain and bias over the last axis."""
    average = np.full(x.shape[-1], 1 / x.shape[-1], x.dtype)
    y = x - (x @ average)[..., None]
    inverse = 1 / np.sqrt(np.vecdot(y, y) / y.shape[-1] + x.dtype.type(NORM_EPSILON))[..., None]
    y *= inverse

    def back(g: np.ndarray) -> np.ndarray:
        g_x = y * (np.vecdot(g, y) / -y.shape[-1])[..., None]
        g_x += g
        g_x -= (g @ average)[..., None]
        g_x *= inverse
        return g_x

    return y, back


def _same(x: np.ndarray) -> tuple[np.ndarray, Back]:
    # A copy, since the stream is added to in place.
    return x.copy(), lambda g: g


def _flat(x: np.ndarray) -> np.ndarray:
    """Put the tokens of all sequences on one axis."""
    return x.reshape(*x.shape[:-3], -1, x.shape[-1])


def _linear(
    x: np.ndarray, w: np.ndarray, b: np.ndarray | None = None
) -> tuple[np.ndarray, Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray | None]]]:
    """Multiply tokens (..., B, T, rows) by weights (..., rows, columns); the way back gives (∂x, ∂w, ∂b)."""
    flat = _flat(x)
    y = flat @ w
    if b is not None:
        y += b[..., None, :]

    def back(g: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        g = _flat(g)
        g_x = (g @ w.swapaxes(-1, -2)).reshape(*g.shape[:-2], *x.shape[-3:])
        return g_x, flat.swapaxes(-1, -2) @ g, None if b is None else g.sum(axis=-2)

    return y.reshape(*y.shape[:-2], *x.shape[-3:-1], y.shape[-1]), back


def _split(x: np.ndarray, heads: int) -> np.ndarray:
    return x.reshape(*x.shape[:-1], heads, -1).swapaxes(-2, -3)


def _merge(x: np.ndarray) -> np.ndarray:
    x = x.swapaxes(-2, -3)
    return x.reshape(*x.shape[:-2], -1)


def softmax(z: np.ndarray) -> np.ndarray:
    """Return softmax along the last axis, stable and fast."""
    p = z - z.max(axis=-1, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=-1, keepdims=True)
    return p


def _attention(
    queries: np.ndarray, sources: np.ndarray, p: Parameters, layer: str, shape: Shape, rule: Rule
) -> tuple[np.ndarray, Callable[[np.ndarray, Parameters], tuple[np.ndarray, np.ndarray]], LayerAttention]:
    """Attend from one set of tokens to another; return the output, the way back and what was seen."""
    parts = {"q": (queries, "b_q"), "k": (sources, "b_k"), "v": (sources, None)}
    projected = {
        name: _linear(x, p[f"{layer}.w_{name}"], None if bias is None else p[f"{layer}.{bias}"])
        for name, (x, bias) in parts.items()
    }
    q, k, v = (_split(projected[name][0], shape.heads) for name in "qkv")
    allowed = shape.seen(k.shape[-2])
    z, scores, back_to_vectors = rule.logits(q, k, p.get(f"{layer}.gain"), allowed)
    weights = softmax(z if allowed is None else np.where(allowed, z, z.dtype.type(MASKED)))
    mixed = weights @ v
    if rule.after != 1:
        mixed *= rule.after
    output, back_to_mixed = _linear(_merge(mixed), p[f"{layer}.w_o"])
    seen = LayerAttention(scores, z, weights, allowed, q, k, (queries, sources))

    def back(g: np.ndarray, found: Parameters) -> tuple[np.ndarray, np.ndarray]:
        seen.output_gradient = g
        g_mixed, found[f"{layer}.w_o"], _ = back_to_mixed(g)
        g_mixed = _split(g_mixed, shape.heads)
        if rule.after != 1:
            g_mixed = g_mixed * rule.after
        g_v = weights.swapaxes(-1, -2) @ g_mixed
        g_z = g_mixed @ v.swapaxes(-1, -2)
        g_z -= np.vecdot(g_z, weights)[..., None]
        g_z *= weights
        if g_z.dtype == np.float32:
            g_z[np.abs(g_z) < INVISIBLE] = 0
        g_q, g_k, g_gain = back_to_vectors(g_z)
        if g_gain is not None:
            found[f"{layer}.gain"] = g_gain
        into = {}
        for name, gradient in zip("qkv", (g_q, g_k, g_v), strict=True):
            into[name], found[f"{layer}.w_{name}"], bias = projected[name][1](_merge(gradient))
            if bias is not None:
                found[f"{layer}.b_{name}"] = bias
        return into["q"], into["k"] + into["v"]

    return output, back, seen


def _mlp(x: np.ndarray, p: Parameters, layer: str) -> tuple[np.ndarray, Callable[[np.ndarray, Parameters], np.ndarray]]:
    hidden, back_to_x = _linear(x, p[f"{layer}.w_1"], p[f"{layer}.b_1"])
    active = hidden > 0
    y, back_to_hidden = _linear(hidden * active, p[f"{layer}.w_2"])

    def back(g: np.ndarray, found: Parameters) -> np.ndarray:
        g_hidden, found[f"{layer}.w_2"], _ = back_to_hidden(g)
        g_x, found[f"{layer}.w_1"], bias = back_to_x(g_hidden * active)
        assert bias is not None  # this layer has one
        found[f"{layer}.b_1"] = bias
        return g_x

    return y, back


def forward(
    shape: Shape, rule: Rule, p: Parameters, inputs: np.ndarray
) -> tuple[np.ndarray, Callable[[np.ndarray], Parameters], list[LayerAttention]]:
    """Return the output logits (..., B, answers, outputs), the way back to all gradients, and each `LayerAttention`.

    Args:
        p: parameters, each (*models, ...). inputs: (..., B, T, symbols), how often each symbol stands at each position;
            broadcasts against the models.
    """
    norm = _norm if shape.layer_norm else _same
    table = p["embedding"]
    flat = _flat(inputs)
    x = flat @ table
    x = x.reshape(*x.shape[:-2], *inputs.shape[-3:-1], x.shape[-1])
    backs, seen = [], []
    for layer in map(str, range(shape.layers)):
        h, back_norm = norm(x)
        a, back_attention, what = _attention(h[..., shape.readers, :], h[..., shape.sources, :], p, layer, shape, rule)
        seen.append(what)
        x[..., shape.readers, :] += a
        back_mlp = None
        if shape.mlp:
            h, back_norm_mlp = norm(x[..., shape.readers, :])
            y, back_y = _mlp(h, p, layer)
            x[..., shape.readers, :] += y
            back_mlp = back_y, back_norm_mlp
        backs.append((back_norm, back_attention, back_mlp))
    h, back_norm_last = norm(x[..., shape.readers, :][..., shape.answers, :])
    logits, back_last = _linear(h, p["unembedding"])

    def back(g: np.ndarray) -> Parameters:
        found: Parameters = {}
        g_h, found["unembedding"], _ = back_last(g)
        g_x = np.zeros_like(x)
        g_x[..., shape.readers, :][..., shape.answers, :] = back_norm_last(g_h)
        for back_norm, back_attention, back_mlp in reversed(backs):
            if back_mlp:
                back_y, back_norm_mlp = back_mlp
                g_x[..., shape.readers, :] += back_norm_mlp(back_y(g_x[..., shape.readers, :], found))
            g_queries, g_sources = back_attention(g_x[..., shape.readers, :].copy(), found)
            g_h = np.zeros_like(x)
            g_h[..., shape.readers, :] += g_queries
            g_h[..., shape.sources, :] += g_sources
            g_x += back_norm(g_h)
        found["embedding"] = flat.swapaxes(-1, -2) @ _flat(g_x)
        return found

    return logits, back, seen


def cross_entropy(logits: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return loss and accuracy of each model, and ∂loss/∂logits.

    Args:
        logits: (*models, B, answers, outputs). targets: (..., B, answers), indices of outputs.
    """
    targets = np.broadcast_to(targets, logits.shape[:-1])[..., None]
    correct = logits.argmax(axis=-1) == targets[..., 0]
    shifted = logits - logits.max(axis=-1, keepdims=True)
    p = np.exp(shifted)
    total = p.sum(axis=-1, keepdims=True)
    loss = np.log(total) - np.take_along_axis(shifted, targets, axis=-1)
    p /= total
    np.put_along_axis(p, targets, np.take_along_axis(p, targets, axis=-1) - 1, axis=-1)
    p /= loss.shape[-3] * loss.shape[-2]
    return loss.mean(axis=(-3, -2, -1)), correct.mean(axis=(-2, -1)), p


def loss_and_gradients(
    shape: Shape, rule: Rule, p: Parameters, inputs: np.ndarray, targets: np.ndarray
) -> tuple[np.ndarray, np.ndarray, Parameters, list[LayerAttention]]:
    """Return loss and accuracy of each model, the gradient of each parameter, and each layer's `LayerAttention`."""
    logits, back, seen = forward(shape, rule, p, inputs)
    loss, accuracy, g = cross_entropy(logits, targets)
    return loss, accuracy, back(g), seen
