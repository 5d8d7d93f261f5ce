"""Random streams that belong to what they simulate, never to a position in a list or a worker; fast float32 draws."""

import hashlib
import json
import math

import numpy as np

CHUNK = 2**15
"""Numbers transformed at a time, so that the temporaries stay in the inner cache and their memory is used again."""


def generator(seed: int, *identity: str | int) -> np.random.Generator:
    """Return the random stream of one named piece of work.

    The identity is hashed into the spawn key, which SeedSequence keeps apart from the entropy; passed as entropy
    `42` and `[42, 0]` would be one stream.

    Args:
        seed: root seed of the run, a non-negative integer of any size.
        identity: what the stream is for, such as `"moments", "gaussian", 64`.
    """
    digest = hashlib.sha256(json.dumps(identity).encode()).digest()
    spawn_key = tuple(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 32, 4))
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(entropy=seed, spawn_key=spawn_key)))


def _bits(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw n uint32, all of whose bits are random."""
    return rng.bit_generator.random_raw(-(-n // 2)).view(np.uint32)[:n]


def _open_uniform(bits: np.ndarray, width: int) -> np.ndarray:
    """Turn whole numbers below 2^width into float32 on (0, 1], as fine near 0 as the bits allow."""
    x = bits.astype(np.float32)
    x += np.float32(0.5)
    x *= np.float32(2.0**-width)
    return x


def standard_normal(rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    """Draw float32 standard normals by the transform of Box and Muller (1958), up to 6.8 standard deviations.

    Whole-array logarithms and sines cost less than half of the generator's own method, and drawing is what a cell
    spends its time on. The finite grid changes the second moment by less than 1e-6 and the fourth by less than 1e-5.
    """
    n = math.prod(size)
    x = np.empty(n + n % 2, np.float32)
    for start in range(0, n, 2 * CHUNK):
        piece = x[start : start + 2 * CHUNK]
        half = len(piece) // 2
        uniform = _open_uniform(_bits(rng, 2 * half), 32)
        radius, angle = uniform[:half], uniform[half:]
        np.log(radius, out=radius)
        radius *= -2
        np.sqrt(radius, out=radius)
        angle *= np.float32(2 * np.pi)
        np.cos(angle, out=piece[:half])
        np.sin(angle, out=piece[half:])
        piece[:half] *= radius
        piece[half:] *= radius
    return x[:n].reshape(size)


def standard_laplace(rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    """Draw float32 Laplace numbers of variance 1: an exponential of 31 bits, the spare bit for the sign."""
    n = math.prod(size)
    x = np.empty(n, np.float32)
    for start in range(0, n, CHUNK):
        piece = x[start : start + CHUNK]
        bits = _bits(rng, len(piece))
        np.log(_open_uniform(bits >> np.uint32(1), 31), out=piece)
        piece *= np.float32(math.sqrt(0.5))
        piece.view(np.uint32)[:] ^= bits << np.uint32(31)
    return x.reshape(size)


def student_t(rng: np.random.Generator, df: float, size: tuple[int, ...]) -> np.ndarray:
    """Draw Student-t numbers (not standardised) by the polar method of Bailey (1994).

    float32, and float64 for df of at most 2. For df of at least 8 the finite grid cuts the law off beyond probabilities
    of 1e-10, which moves the fourth moment by less than 1e-4; heavier tails are drawn on the grid of 1e-16.
    """
    n = math.prod(size)
    x = np.empty(n, np.float32 if df > 2 else np.float64)
    for start in range(0, n, CHUNK):
        piece = x[start : start + CHUNK]
        # t² = df (U^(−2/df) − 1) cos²
        if df >= 8:
            uniform = _open_uniform(_bits(rng, 2 * len(piece)), 32)
            square, angle = uniform[: len(piece)], uniform[len(piece) :]
        else:
            square = (rng.bit_generator.random_raw(len(piece)) >> np.uint64(11)).astype(np.float64)
            square += 0.5
            square *= 2.0**-53
            angle = _open_uniform(_bits(rng, len(piece)), 32)
        np.log(square, out=square)
        square *= -2 / df
        square = square.astype(piece.dtype, copy=False)
        with np.errstate(over="ignore"):
            np.exp(square, out=square)
        square -= 1
        square *= df
        np.sqrt(square, out=square)
        angle *= np.float32(2 * np.pi)
        np.multiply(square, np.cos(angle, out=angle), out=piece)
    return x.reshape(size)


def signs(rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    """Draw float32 numbers that are +1 or -1 with equal probability, 64 from each random word."""
    n = math.prod(size)
    words = rng.bit_generator.random_raw(-(-n // 64))
    x = np.unpackbits(words.view(np.uint8), count=n).astype(np.float32)
    x *= 2
    x -= 1
    return x.reshape(size)
