"""The kernels against what people write and against their floors: precision for the time, and time for the same work.

A kernel's floor draws the same random numbers and multiplies the same matrices, and does nothing else.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from bench_timing import Goal, Line, Spread, in_turn, number, ratios

from sqrtdk.rows import gradients, softmax
from sqrtdk.sampling import blocks, ensembles, moments, streams
from sqrtdk.statistics import estimates

PRECISION = 1e-3
PLAIN_SCALARS = 2**21
"""Random numbers of one estimate by plain NumPy, whose precision for the time does not depend on them."""
WIDTHS = tuple(2**power for power in range(13))
NEVER_BELOW = 1.0
WANTED = {64: 30.0, 512: 100.0, 1024: 100.0, 2048: 100.0, 4096: 100.0}
"""Goals for Gaussian components."""
FLOOR = Goal(1.3, least=False)
FACTORS = 3
"""Scale rules that share a row: none, 1/√d_k and 1/d_k."""
ROW_LOGITS = 2**19
ROWS = ((64, 64), (64, 1024), (1024, 256), (4096, 64))
"""(d_k, n_keys) for the kernels of rows."""
SPECTRAL_SHARE = 16


# What everybody writes: pairs (q, k), one score each.


def _gaussian(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return rng.standard_normal((2, n, d))


def _laplace(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return rng.laplace(0.0, np.sqrt(0.5), (2, n, d))


def _equicorrelated(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return np.sqrt(0.7) * rng.standard_normal((2, n, d)) + np.sqrt(0.3) * rng.standard_normal((2, n, 1))


def _ar1(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    x = rng.standard_normal((2, n, d))
    phi = np.array([[0.8], [0.5]])
    for i in range(1, d):
        x[..., i] = phi * x[..., i - 1] + np.sqrt(1 - phi**2) * x[..., i]
    return x


@dataclass(frozen=True)
class Ensemble:
    """An ensemble of the configuration, how plain NumPy draws it, and most random numbers of an estimate."""

    spec: dict
    plain: Callable[[np.random.Generator, int, int], np.ndarray]
    max_scalars: float = 1e7


ENSEMBLES = {
    "gaussian": Ensemble({"family": "gaussian"}, _gaussian, 1.2e8),
    "laplace": Ensemble({"family": "laplace"}, _laplace),
    "equicorrelated": Ensemble({"family": "equicorrelated", "query_rho": 0.3, "key_rho": 0.3}, _equicorrelated),
    "ar1": Ensemble({"family": "ar1", "query_phi": 0.8, "key_phi": 0.5}, _ar1),
}


def precision(relative_variance: float, seconds: float) -> float:
    """Return the precision for the time: 1/(relative variance × CPU seconds), the same however long one goes on."""
    return 1 / (relative_variance * seconds)


def relative_variance(sums: moments.BlockSums) -> float:
    """Return the relative variance of the variance that a pass over blocks estimates, from between the blocks."""
    found = estimates.bias_corrected(moments.central_variance, sums.powers)
    return (found.se / found.value) ** 2


def plain_relative_variance(excess_kurtosis: float, n: int) -> float:
    """Return that of the variance of n independent scores, to first order in 1/n."""
    return (excess_kurtosis + 2) / n


def plan(ensemble, d_k: int, max_scalars: float) -> blocks.Plan:
    """Return the plan of a cell of the default run."""

    def pilot(one: blocks.Plan) -> float:
        sums = moments.sum_blocks(ensemble, d_k, one, streams.generator(0, "bench", "pilot", d_k), 0.0, None)
        return one.n_products * relative_variance(sums)

    return blocks.plan(ensemble, d_k, PRECISION, max_scalars, pilot)


def _draws(ensemble, d_k: int, chosen: blocks.Plan, rng: np.random.Generator) -> Iterator[tuple]:
    """Draw what `blocks.batches` draws of a plan."""
    m, n = chosen.n_queries, chosen.n_keys
    at_once = max(1, blocks.BATCH_SCALARS // ((m + n) * d_k))
    for first in range(0, chosen.n_products, at_once):
        yield ensemble.draw(rng, min(at_once, chosen.n_products - first), m, n, d_k)


def moment_lines(pairs: int, widths=WIDTHS, names=tuple(ENSEMBLES)) -> Iterator[Line]:
    """Yield the lines on Var(q·k): precision for the time against plain NumPy, and the kernel against its floor."""
    for name in names:
        one = ENSEMBLES[name]
        ensemble = ensembles.build(one.spec)
        for d_k in widths:
            yield from _of_width(name, one, ensemble, d_k, pairs)


def _of_width(name: str, one: Ensemble, ensemble, d_k: int, pairs: int) -> Iterator[Line]:
    exact = ensemble.exact(d_k)
    chosen, n = plan(ensemble, d_k, one.max_scalars), max(512, PLAIN_SCALARS // (2 * d_k))
    # A stream of its own for each call, the same for the kernel and its floor.
    numbers = {kind: iter(range(10**6)) for kind in ("plain", "kernel", "floor", "draws")}
    errors = []

    def rng(kind: str) -> np.random.Generator:
        return streams.generator(1, "bench", name, d_k, next(numbers[kind]))

    def plain():
        q, k = one.plain(np.random.default_rng(next(numbers["plain"])), n, d_k)
        return (q * k).sum(1).var()

    def kernel():
        errors.append(relative_variance(moments.sum_blocks(ensemble, d_k, chosen, rng("kernel"), exact.mean, None)))

    def floor():
        for q, k in _draws(ensemble, d_k, chosen, rng("floor")):
            np.matmul(q, k.transpose(0, 2, 1))

    def draws():
        for _ in _draws(ensemble, d_k, chosen, rng("draws")):
            pass

    theirs, ours, least, drawing = in_turn(pairs, plain, kernel, floor, draws)
    own_error, plain_error = float(np.mean(errors)), plain_relative_variance(exact.excess_kurtosis, n)
    gain = ratios(theirs, ours, plain_error / own_error)
    ours_per_second, theirs_per_second = (
        number(precision(error, Spread.of(seconds).median))
        for error, seconds in ((own_error, ours), (plain_error, theirs))
    )
    parts = [Spread.of(seconds).median for seconds in (drawing, least, ours)]
    shares = [part / parts[-1] for part in (parts[0], parts[1] - parts[0], parts[2] - parts[1])]
    profile = "draws {:.0%}, products {:.0%}, sums over scores {:.0%}".format(*shares)
    wanted = WANTED.get(d_k, NEVER_BELOW) if name == "gaussian" else NEVER_BELOW
    yield Line(
        "1 precision per CPU second",
        f"{name}, d_k = {d_k}",
        ours_per_second,
        f"{theirs_per_second} plain NumPy",
        gain,
        Goal(wanted, least=True),
        profile,
    )
    if name == "gaussian":
        yield Line(
            "2 kernel over its floor",
            f"{name}, d_k = {d_k}, blocks of {chosen.n_queries} × {chosen.n_keys}",
            f"{number(1e3 * parts[2])} ms",
            f"{number(1e3 * parts[1])} ms",
            ratios(ours, least),
            FLOOR,
            profile,
        )


def row_lines(pairs: int, cases=ROWS) -> Iterator[Line]:
    """Yield the lines on the kernels of rows: saturation and gradients against exponentials and products alone."""
    ensemble = ensembles.build({"family": "gaussian"})
    for d_k, n_keys in cases:
        work = RowWork.draw(ensemble, d_k, n_keys)
        case = f"d_k = {d_k}, n_keys = {n_keys}"
        for name, kernel, floor in (
            ("saturation", work.saturation, work.saturation_floor),
            ("gradients", work.gradients, work.gradients_floor),
        ):
            ours, least = in_turn(pairs, kernel, floor)
            per_logit = 1e9 / (FACTORS * work.n_logits)
            nanoseconds = [f"{number(per_logit * Spread.of(x).median)} ns per logit" for x in (ours, least)]
            yield Line(f"3 {name} over their floor", case, *nanoseconds, ratios(ours, least))


@dataclass(frozen=True)
class RowWork:
    """A batch of blocks of rows, as the saturation stage has them in its hands."""

    q: np.ndarray
    k: np.ndarray
    upstream: tuple[np.ndarray, np.ndarray]
    heads: np.ndarray
    factors: tuple[float, ...]

    @classmethod
    def draw(cls, ensemble, d_k: int, n_keys: int) -> "RowWork":
        rng, m = streams.generator(1, "bench", "rows", d_k, n_keys), 32
        n_blocks = max(1, ROW_LOGITS // (m * n_keys))
        q, k = ensemble.draw(rng, n_blocks, m, n_keys, d_k)
        upstream = tuple(rng.standard_normal((2, n_blocks, m, n_keys)))
        return cls(q, k, upstream, np.concatenate(upstream, axis=-2, dtype=np.float32), (1.0, d_k**-0.5, 1 / d_k))

    @property
    def n_logits(self) -> int:
        return self.upstream[0].size

    def scores(self) -> np.ndarray:
        return self.q @ self.k.swapaxes(-1, -2)

    def saturation(self) -> None:
        ranked = softmax.rank(self.scores())
        few = slice(max(1, self.q.shape[1] // SPECTRAL_SHARE))
        for factor in self.factors:
            row = ranked.soften(factor)
            for measure in softmax.MEASURES.values():
                measure.of(row[:, few] if measure.costly else row)

    def saturation_floor(self) -> None:
        scores = self.scores().astype(np.float64)
        scores -= scores.max()
        for factor in self.factors:
            np.exp(factor * scores)

    def gradients(self) -> None:
        ranked = softmax.rank(self.scores())
        query_norm = np.sqrt(np.vecdot(self.q, self.q).astype(np.float64))
        differences = [gradients.from_top(ranked.top, v) for v in self.upstream]
        for factor in self.factors:
            gradients.norms(ranked.soften(factor), differences, query_norm, self.k, factor)

    def gradients_floor(self) -> None:
        scores = self.scores().astype(np.float64)
        scores -= scores.max()
        for factor in self.factors:
            np.exp(factor * scores)
            self.heads @ self.k
