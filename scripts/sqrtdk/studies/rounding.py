"""Attention in floating-point formats of few bits: errors of softmax, and logits or exponentials that overflow.

Numbers are rounded to the nearest, ties to even, as conversions without saturation do: what is too large becomes
infinite, or nan in float8_e4m3fn, which has no infinity. All arithmetic in between is in double precision.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from sqrtdk.sampling import streams
from sqrtdk.sampling.densities import score_gaussian
from sqrtdk.statistics import estimates
from sqrtdk.variants.notation import parse

RULES = ("none", "1/sqrt(d_k)")
N_KEYS = 64
MIN_BLOCKS, MOST_BLOCKS, MOST_QUERIES = 32, 128, 64
MAX_SCALARS = 10_000_000
"""Random numbers for q and k at one width, unless the fewest blocks need more."""
BATCH_SCALARS = 2**20


@dataclass(frozen=True)
class Format:
    """A binary floating-point format.

    bits: digits after the binary point of a normal number. least: exponent of the smallest normal number.
    largest: the largest finite number. overflow: from here on (exclusive at a tie that rounds down) nothing is finite.
    """

    name: str
    dtype: type
    bits: int
    least: int
    largest: float

    @property
    def overflow(self) -> float:
        """Half-way from the largest finite number to what the next would be."""
        return self.largest + 2.0 ** (math.frexp(self.largest)[1] - 2 - self.bits)

    def round(self, x: np.ndarray) -> np.ndarray:
        """Round to this format; float64 in and out, by way of float32, in which accelerators hold what they convert."""
        with np.errstate(over="ignore"):
            return np.asarray(x, np.float32).astype(self.dtype).astype(np.float64)

    def rms_error(self, share: Callable[[np.ndarray], np.ndarray]) -> float:
        """Return the root mean square rounding error of a centred symmetric variable that does not overflow.

        Within a binade an error is uniform over the spacing of the numbers there, to second order of that spacing.

        Args:
            share: P(|X| > x) for an array of x.
        """
        exponents = np.arange(self.least, min(math.frexp(self.largest)[1], self.least + 400))
        above = np.append(share(2.0**exponents), 0.0)
        square = 4.0 ** (exponents - self.bits) / 12
        # Subnormal numbers are as far apart as the smallest normal ones.
        return float(math.sqrt((1 - above[0]) * square[0] + np.sum(-np.diff(above) * square)))


FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        Format("float32", np.float32, 23, -126, float(np.finfo(np.float32).max)),
        Format("bfloat16", ml_dtypes.bfloat16, 7, -126, float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)),
        Format("float16", np.float16, 10, -14, 65504.0),
        Format("float8_e4m3fn", ml_dtypes.float8_e4m3fn, 3, -6, 448.0),
        Format("float8_e5m2", ml_dtypes.float8_e5m2, 2, -14, 57344.0),
    )
}
"""Every format by name. float32 is there to compare overflows with: its rounding errors are not measured."""
ROUNDED = tuple(FORMATS)[1:]
PLACES = ("inputs", "logits", "probabilities", "naive_exp")
ACCURATE_BITS = 7
"""From so many bits on `Format.rms_error` is right to 1e-4; with fewer, to a few thousandths."""


def _distance(rounded: np.ndarray, exact: np.ndarray, top: np.ndarray) -> dict[str, np.ndarray]:
    """Return the total variation distance of rows of weights, and the relative error of the largest exact weight."""
    first = top[..., None]
    largest, taken = (np.take_along_axis(p, first, axis=-1)[..., 0] for p in (exact, rounded))
    return dict(
        total_variation=np.abs(rounded - exact).sum(axis=-1) / 2, top_weight_error=np.abs(taken - largest) / largest
    )


def _weights(logits: np.ndarray) -> np.ndarray:
    """Softmax with the maximum subtracted; nan in rows that hold a nan or +inf, as in any implementation."""
    with np.errstate(invalid="ignore"):
        p = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return p / p.sum(axis=-1, keepdims=True)


def _naive_weights(logits: np.ndarray, form: Format) -> tuple[np.ndarray, np.ndarray]:
    """Return exp(z) rounded to a format, and the softmax made of it without subtracting the maximum."""
    with np.errstate(over="ignore", invalid="ignore"):
        powers = form.round(np.exp(logits))
        return powers, powers / powers.sum(axis=-1, keepdims=True)


def _row_values(q: np.ndarray, k: np.ndarray, factor: float) -> dict[tuple[str, str, str], np.ndarray]:
    """Return (format, place, measure) -> values of the rows of a batch of blocks (block, row)."""
    logits = factor * (q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2))
    exact = _weights(logits)
    top = logits.argmax(axis=-1)
    values: dict[tuple[str, str, str], np.ndarray] = {}
    for name, form in FORMATS.items():
        powers, naive = _naive_weights(logits, form)
        found = {
            ("naive_exp", "overflow_share"): _share(~np.isfinite(powers)),
            ("naive_exp", "undefined_rows"): np.isnan(naive).any(axis=-1) * 1.0,
        }
        if name in ROUNDED:
            rounded = form.round(logits)
            inputs = factor * (form.round(q) @ form.round(k).swapaxes(-1, -2))
            found[("logits", "overflow_share")] = _share(~np.isfinite(rounded))
            found[("logits", "undefined_rows")] = np.isnan(_weights(rounded)).any(axis=-1) * 1.0
            found[("logits", "logit_error")] = np.mean((rounded - logits) ** 2, axis=-1)
            found[("inputs", "logit_error")] = np.mean((inputs - logits) ** 2, axis=-1)
            for place, weights in (
                ("inputs", _weights(inputs)),
                ("logits", _weights(rounded)),
                ("probabilities", form.round(exact)),
            ):
                found |= {(place, measure): x for measure, x in _distance(weights, exact, top).items()}
        values |= {(name, *key): x for key, x in found.items()}
    return values


def _share(hit: np.ndarray) -> np.ndarray:
    return hit.mean(axis=-1)


def _any_above(threshold: float, d_k: int) -> float:
    """Return the probability that one of N_KEYS scores of standard normal q and k is above a threshold.

    Given ‖q‖² ~ χ²(d_k) the scores of a row are independent N(0, ‖q‖²); the trapezoid rule in ln ‖q‖² does the rest.
    """
    from scipy.special import gammaln, log_ndtr

    t = np.linspace(math.log(d_k) - 12 / math.sqrt(d_k) - 40 / d_k, math.log(d_k) + 12 / math.sqrt(d_k) + 5 / d_k, 2001)
    log_density = d_k / 2 * (t - math.log(2)) - np.exp(t) / 2 - gammaln(d_k / 2)
    none = np.exp(N_KEYS * log_ndtr(threshold / np.exp(t / 2)))
    return float(np.trapezoid(np.exp(log_density) * (1 - none), t))


def exact(form: Format, place: str, measure: str, d_k: int, factor: float) -> float | None:
    """Return the exact value of a measure for standard normal q and k, or None where none is known.

    `logit_error` is right to second order in the spacing of the format's numbers and given where that is small. A row
    is also nan where all its exponentials are rounded to 0, which over N_KEYS keys never happens.
    """
    from scipy.special import erfc

    law = score_gaussian(d_k)

    def both(x: float | np.ndarray) -> Any:
        return 2 * law.sf(np.asarray(x, dtype=float) / factor)

    if (place, measure) == ("logits", "overflow_share"):
        return float(both(form.overflow))
    if (place, measure) == ("naive_exp", "overflow_share"):
        return float(law.sf(math.log(form.overflow) / factor))
    if (place, measure) == ("naive_exp", "undefined_rows"):
        return _any_above(math.log(form.overflow) / factor, d_k)
    if measure == "logit_error" and form.bits < ACCURATE_BITS:
        return None
    if (place, measure) == ("logits", "logit_error"):
        return form.rms_error(both)
    if (place, measure) == ("inputs", "logit_error"):
        # Errors of q_i and of k_i alike, each against the other's variance of 1.
        return factor * math.sqrt(2 * d_k) * form.rms_error(lambda x: erfc(x / math.sqrt(2)))
    return None


def simulate(d_k: int, n_logits: int, seed: int) -> list[dict[str, Any]]:
    """Measure every format at one width, for standard normal q and k; all see the same numbers.

    Returns:
        Rows format, rounded, scaling, d_k, n_keys, measure, estimate, se, exact, n_rows, n_blocks. `logit_error` is a
        root mean square, all others are means over rows; se from between blocks of rows that share their keys. An
        error that some overflow has made infinite is None.
    """
    n_queries = max(8, min(MOST_QUERIES, n_logits // (MOST_BLOCKS * N_KEYS)))
    scalars = (n_queries + N_KEYS) * d_k
    n_blocks = max(MIN_BLOCKS, min(MOST_BLOCKS, MAX_SCALARS // scalars))
    batch = max(1, BATCH_SCALARS // scalars)
    rng = streams.generator(seed, "precision", d_k)
    factors = {rule: parse(rule).constant(d_k, N_KEYS) for rule in RULES}
    blocks: dict[tuple[Any, ...], list[Any]] = {}
    for first in range(0, n_blocks, batch):
        n = min(batch, n_blocks - first)
        q = streams.standard_normal(rng, (n, n_queries, d_k))
        k = streams.standard_normal(rng, (n, N_KEYS, d_k))
        for rule, factor in factors.items():
            for key, values in _row_values(q, k, factor).items():
                blocks.setdefault((rule, *key), []).append(values.mean(axis=-1))
    rows = []
    for (rule, name, place, measure), parts in blocks.items():
        means = np.concatenate(parts)
        summary = estimates.rms if measure == "logit_error" else estimates.mean
        estimate, se = summary(means) if np.isfinite(means).all() else (None, None)
        rows.append(
            dict(format=name, rounded=place, scaling=rule, d_k=d_k, n_keys=N_KEYS, measure=measure)
            | dict(estimate=estimate, se=se, exact=exact(FORMATS[name], place, measure, d_k, factors[rule]))
            | dict(n_rows=n_blocks * n_queries, n_blocks=n_blocks)
        )
    return rows
