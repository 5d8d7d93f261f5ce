"""Associative recall trained a second time, on autograd and without a line of the project.

Several seeds at once, on the first axis.
"""

import autograd
import autograd.numpy as anp
import numpy as np

PAIRS, SYMBOLS, D, BATCH = 16, 32, 64, 4
LOGGED = (10, 18, 32, 56, 100, 178, 300)


def batch(rng, seeds, n):
    """Pairs (key, value), then the keys; targets are their values. Each (seeds, n, 16, 64) and (seeds, n, 16)."""
    keys = np.array([[rng.permutation(SYMBOLS)[:PAIRS] for _ in range(n)] for _ in range(seeds)])
    values = rng.integers(SYMBOLS, size=keys.shape)
    eye = np.eye(2 * SYMBOLS)
    return eye[keys] + eye[SYMBOLS + values], eye[keys], values


def normalised(x):
    x = x - anp.mean(x, axis=-1, keepdims=True)
    return x / anp.sqrt(anp.mean(x * x, axis=-1, keepdims=True) + 1e-5)


def outputs(p, scale, pairs, keys):
    """The output logits (seeds, n, 16, 32) of one layer of attention of the keys to the pairs, around a residual."""
    embedding = p["embedding"][:, None]
    memory, stream = anp.matmul(pairs, embedding), anp.matmul(keys, embedding)
    sources, readers = normalised(memory), normalised(stream)
    q = anp.matmul(readers, p["w_q"][:, None]) + p["b_q"][:, None, None]
    k = anp.matmul(sources, p["w_k"][:, None]) + p["b_k"][:, None, None]
    z = scale * anp.matmul(q, anp.swapaxes(k, -1, -2))
    weights = anp.exp(z - anp.max(z, axis=-1, keepdims=True))
    weights = weights / anp.sum(weights, axis=-1, keepdims=True)
    mixed = anp.matmul(weights, anp.matmul(sources, p["w_v"][:, None]))
    stream = stream + anp.matmul(mixed, p["w_o"][:, None])
    return anp.matmul(normalised(stream), p["unembedding"][:, None])


def losses(p, scale, pairs, keys, values):
    """The cross-entropy of each seed."""
    z = outputs(p, scale, pairs, keys)
    top = anp.max(z, axis=-1, keepdims=True)
    logs = z - top - anp.log(anp.sum(anp.exp(z - top), axis=-1, keepdims=True))
    return -anp.mean(anp.sum(logs * np.eye(SYMBOLS)[values], axis=-1), axis=(1, 2))


# Seeds share nothing, so that the gradient of the sum is that of each.
gradients = autograd.grad(lambda *arguments: anp.sum(losses(*arguments)))


def train(scale, d_k, rate, start=1.0, slow=1.0, seeds=8, steps=300, seed=0):
    """Return each seed's losses at 0 and LOGGED steps; what makes scores starts and moves so many times as much."""
    rng = np.random.default_rng(seed)
    shapes = {"embedding": (2 * SYMBOLS, D), "w_q": (D, d_k), "w_k": (D, d_k), "w_v": (D, D), "w_o": (D, D)}
    p = {name: rng.normal(size=(seeds, *shape)) / D**0.5 for name, shape in shapes.items()}
    p["embedding"] *= (D / 2) ** 0.5
    p["unembedding"] = rng.normal(size=(seeds, D, SYMBOLS)) / D**0.5
    p |= {name: np.zeros((seeds, d_k)) for name in ("b_q", "b_k")}
    scores = ("w_q", "w_k", "b_q", "b_k")
    for name in scores:
        p[name] = start * p[name]
    first, second = ({name: np.zeros_like(value) for name, value in p.items()} for _ in range(2))
    evaluation, path = batch(rng, seeds, 16), [losses(p, scale, *batch(rng, seeds, 16))]
    for step in range(1, steps + 1):
        found = gradients(p, scale, *batch(rng, seeds, BATCH))
        for name, g in found.items():
            first[name] = 0.9 * first[name] + 0.1 * g
            second[name] = 0.999 * second[name] + 0.001 * g * g
            size = np.sqrt(second[name] / (1 - 0.999**step)) + 1e-8
            p[name] = p[name] - rate * (slow if name in scores else 1.0) * first[name] / (1 - 0.9**step) / size
        if step in LOGGED:
            path.append(losses(p, scale, *evaluation))
    return np.array(path).T
