"""The small models written a second time, for autograd: one model at a time, no backward pass, no sharing of code."""

import autograd
import autograd.numpy as anp
import numpy as np

from sqrtdk.training.model import NORM_EPSILON


def _norm(x, on):
    if not on:
        return x
    x = x - anp.mean(x, axis=-1, keepdims=True)
    return x / anp.sqrt(anp.mean(x**2, axis=-1, keepdims=True) + NORM_EPSILON)


def _length(x):
    return anp.sqrt(anp.sum(x**2, axis=-1, keepdims=True))


def _logits(rule, q, k, gain, allowed):
    """q (B, m, d), k (B, n, d), one head."""
    if rule.cosine:
        q, k = q / _length(q), k / _length(k)
    scores = anp.einsum("bmi,bni->bmn", q, k)
    if rule.size is None:
        return scores * rule.factor * (1.0 if gain is None else gain)
    sizes = anp.abs(scores) * allowed
    if rule.size == "MEAN_ABS":
        h = anp.sum(sizes, axis=-1, keepdims=True) / anp.sum(allowed, axis=-1)[:, None]
    else:
        h = anp.max(sizes, axis=-1, keepdims=True)
    return scores / h


def loss(p, shape, rule, inputs, targets):
    """Return the loss of one model; p as in `model.initial`, inputs (B, T, symbols), targets (B, answers)."""
    x = anp.einsum("bts,sd->btd", inputs, p["embedding"])
    memory, stream = (x[:, : shape.memory], x[:, shape.memory :]) if shape.memory else (None, x)
    for layer in range(shape.layers):
        w = {name.split(".")[1]: value for name, value in p.items() if name.startswith(f"{layer}.")}
        h = _norm(stream, shape.layer_norm)
        h_keys = h if memory is None else _norm(memory, shape.layer_norm)
        m, n = h.shape[1], h_keys.shape[1]
        allowed = np.array([[not shape.causal or j <= i for j in range(n)] for i in range(m)], float)
        heads, width = [], shape.d_model // shape.heads
        for head in range(shape.heads):
            own, values = (slice(head * size, (head + 1) * size) for size in (shape.d_k, width))
            q = anp.dot(h, w["w_q"][:, own]) + w["b_q"][own]
            k = anp.dot(h_keys, w["w_k"][:, own]) + w["b_k"][own]
            z = _logits(rule, q, k, w["gain"][head] if "gain" in w else None, allowed)
            z = anp.where(allowed > 0, z, -1e30)
            e = anp.exp(z - anp.max(z, axis=-1, keepdims=True))
            weights = e / anp.sum(e, axis=-1, keepdims=True)
            heads.append(rule.after * anp.einsum("bmn,bnv->bmv", weights, anp.dot(h_keys, w["w_v"][:, values])))
        stream = stream + anp.dot(anp.concatenate(heads, axis=-1), w["w_o"])
        if shape.mlp:
            hidden = anp.dot(_norm(stream, shape.layer_norm), w["w_1"]) + w["b_1"]
            stream = stream + anp.dot(anp.maximum(hidden, 0.0), w["w_2"])
    out = anp.dot(_norm(stream[:, shape.asked :], shape.layer_norm), p["unembedding"])
    top = anp.max(out, axis=-1, keepdims=True)
    logs = out - top - anp.log(anp.sum(anp.exp(out - top), axis=-1, keepdims=True))
    return -anp.mean(anp.sum(logs * np.eye(shape.outputs)[targets], axis=-1))


loss_and_gradients = autograd.value_and_grad(loss)
