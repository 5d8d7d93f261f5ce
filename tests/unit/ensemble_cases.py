"""What the tests of the families share: scores of independent blocks, and a mean in units of its standard error."""

import itertools
import math

import numpy as np

from sqrtdk.sampling import ensembles, streams


def spec_id(spec: dict) -> str:
    """Name a specification in the list of tests."""
    return "-".join(str(value) for value in spec.values())


def with_every_family(specs: list[dict]) -> list[dict]:
    """Return specifications, and behind them the examples of each family that has none there."""
    present = {spec["family"] for spec in specs}
    others = {name: family for name, family in ensembles.families().items() if name not in present}
    found = [*specs, *({"family": name, **example} for name in others for example in others[name].examples)]
    assert {spec["family"] for spec in found} >= set(ensembles.families())
    return found


def widths(ensemble, *wanted: int) -> list[int]:
    """Return the least width at which there is such an ensemble, and the wanted ones above it."""
    least = next(d_k for d_k in itertools.count(1) if ensemble.undefined_at(d_k) is None)
    return [least, *(d_k for d_k in wanted if d_k > least)]


def draw_scores(ensemble, name: str, n_blocks: int, n_queries: int, n_keys: int, d_k: int, at_once: int = 2000):
    """Draw scores (n_blocks, n_queries, n_keys) in float64, a few blocks at a time."""
    rng = streams.generator(1, name, d_k)
    return np.concatenate(
        [
            np.matmul(q, k.transpose(0, 2, 1)).astype(float)
            for q, k in (ensemble.draw(rng, at_once, n_queries, n_keys, d_k) for _ in range(-(-n_blocks // at_once)))
        ]
    )


def away(values: np.ndarray, expected: float) -> float:
    """Count the standard errors from `expected` to the mean of independent values; none if that is only rounding."""
    difference = values.mean() - expected
    if abs(difference) < 1e-6 * (1 + abs(expected)):
        return 0.0
    return difference / (values.std() / math.sqrt(len(values)))


def product_moments(query: np.ndarray, key: np.ndarray) -> tuple[float, float]:
    """Variance and excess kurtosis of a Gaussian score from explicit covariance matrices."""
    product = query @ key
    return np.trace(product), 6 * np.trace(product @ product) / np.trace(product) ** 2
