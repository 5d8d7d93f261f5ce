"""Any continuous distribution of scipy.stats as the law of i.i.d. components; imported only when one is named."""

import math
import time
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import integrate, special, stats

from sqrtdk.sampling.ensembles.base import SpecError, SpecProblem
from sqrtdk.sampling.ensembles.iid import Iid
from sqrtdk.sampling.parameters import Parameter

REFUSED = "a distribution whose moments can be checked and that can be drawn fast"
REACH, STEP = 90.0, 0.0625
"""Range and step of the sum over t = ln(u/(1 − u)): it reaches probabilities of 1e-39."""
KINK = 1e-4
"""Relative error that the sum may have where the quantiles are not smooth."""
PATIENCE = 3.0
"""CPU seconds that checking a distribution may take, whatever else the machine does."""
SLOWEST_DRAW = 5e-6
"""CPU seconds that one random number may take."""


def distributions() -> list[str]:
    """Names of the continuous distributions of scipy.stats."""
    return sorted(name for name in dir(stats) if isinstance(getattr(stats, name), stats.rv_continuous))


def shape_parameters(distribution: str) -> tuple[Parameter, ...]:
    """Return the shape parameters of a distribution; SciPy itself checks their joint domain."""
    shapes = getattr(stats, distribution).shapes or ""
    return tuple(
        Parameter(name.strip(), f"shape parameter of scipy.stats.{distribution}")
        for name in shapes.split(",")
        if name.strip()
    )


class _Refused(ValueError):
    """Why a distribution cannot be used."""


def _density_integral(frozen: Any, order: int) -> float:
    """E X^order by quadrature of the density, NaN where it does not converge."""
    low, high = frozen.support()
    cuts = [low, *(q for q in frozen.ppf([1e-9, 1e-3, 0.5, 0.999, 1 - 1e-9]) if low < q < high), high]
    pieces, began = [], time.process_time()
    for a, b in zip(cuts, cuts[1:], strict=False):
        if time.process_time() - began > PATIENCE:
            raise _Refused("its density takes too long to compute")
        if a < b:
            found = integrate.quad(lambda x: x**order * frozen.pdf(x), a, b, limit=200, epsrel=1e-10, full_output=True)
            pieces.append(found[0] if len(found) == 3 else math.nan)
    return sum(pieces)


def _quantile_integral(frozen: Any, order: int) -> float:
    """E X^order = ∫ ppf(u)^order du with u = 1/(1 + e^−t), by a trapezoidal sum over t.

    In quantiles the ends of a bounded support and heavy tails alike become a smooth exponential decay.
    """
    t = np.arange(-REACH, REACH + STEP / 2, STEP)
    share = special.expit(t)
    x, began = np.empty_like(t), time.process_time()
    for start in range(0, len(t), 16):
        part = slice(start, start + 16)
        x[part] = np.where(t[part] < 0, frozen.ppf(share[part]), frozen.isf(special.expit(-t[part])))
        if time.process_time() - began > PATIENCE:
            raise _Refused("its quantiles take too long to compute")
    return float(np.sum(x**order * share * special.expit(-t)) * STEP)


def finite_moments(frozen: Any, orders: range, tolerance: float) -> list[float]:
    """Moments that SciPy's formula and numerical integration agree on, up to the first that is not finite.

    Raises _Refused where the formula gives a finite moment that the integral does not confirm: nothing that rests on
    it could be trusted.
    """
    moments = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for order in orders:
            formula = float(frozen.moment(order))
            if not math.isfinite(formula):
                break
            size = abs(formula) + (frozen.std() ** order if order > 1 else 1.0)
            if not abs(_density_integral(frozen, order) - formula) <= tolerance * size and not (
                abs(_quantile_integral(frozen, order) - formula) <= max(tolerance, KINK) * size
            ):
                raise _Refused(f"E X^{order} is {formula:g} by SciPy's formula, which integration does not confirm")
            moments.append(formula)
    return moments


@dataclass(frozen=True, kw_only=True)
class ScipyIid(Iid):
    """Standardised i.i.d. components of a scipy.stats distribution; with no finite variance, as they come."""

    distribution: str
    shapes: tuple[tuple[str, float], ...]
    moments: tuple[float, ...]
    order: float

    family: ClassVar[str] = "scipy"

    @property
    def summary(self) -> str:  # type: ignore[override]  # no family of ours: it knows what it is once it is built
        """The distribution in words."""
        return f"independent components of scipy.stats.{self.distribution}"

    @property
    def finite_moment(self) -> float:
        return self.order

    @property
    def spec(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("query_mean", "key_mean", "query_sd", "key_sd")}
        return {"family": self.distribution, **dict(self.shapes), **own}

    @property
    def _centre(self) -> tuple[float, float]:
        if len(self.moments) < 2:
            return 0.0, 1.0
        return self.moments[0], math.sqrt(self.moments[1] - self.moments[0] ** 2)

    def shape(self) -> tuple[float, float | None]:
        if len(self.moments) < 4:
            return 0.0, None
        mean, sd = self._centre
        m1, m2, m3, m4 = self.moments[:4]
        third = m3 - 3 * m1 * m2 + 2 * m1**3
        fourth = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
        return third / sd**3, fourth / sd**4

    def standardised(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        x = np.asarray(getattr(stats, self.distribution).rvs(**dict(self.shapes), size=size, random_state=rng), float)
        mean, sd = self._centre
        x -= mean
        x /= sd
        return x


def build(distribution: str, shapes: dict[str, float], placement: dict[str, float]) -> ScipyIid:
    """Make the ensemble, or raise SpecError with why SciPy or the moments refuse it."""
    family = getattr(stats, distribution)
    if not np.all(family._argcheck(*(shapes[p.name] for p in shape_parameters(distribution)))):
        given = ", ".join(f"{name} = {value:g}" for name, value in shapes.items())
        raise SpecError([SpecProblem(None, given, f"shape parameters inside the domain of scipy.stats.{distribution}")])
    frozen = family(**shapes)
    try:
        moments = finite_moments(frozen, range(1, 5), 1e-6)
        if len(moments) >= 2 and not moments[1] - moments[0] ** 2 > 1e-12 * moments[1]:
            raise _Refused("its variance is not positive beside its mean")
        began = time.process_time()
        frozen.rvs(size=2000, random_state=np.random.default_rng(0))
        if (time.process_time() - began) / 2000 > SLOWEST_DRAW and time.process_time() - began > 0.1:
            raise _Refused("SciPy draws from it too slowly")
        order = _order_of_trust(frozen) if len(moments) == 4 else (1.0, 2.0, 4.0, 4.0)[len(moments)]
    except (ValueError, ArithmeticError, RuntimeError, NotImplementedError, TypeError) as error:
        reason = str(error) if isinstance(error, _Refused) else "SciPy cannot compute its moments"
        raise SpecError([SpecProblem("family", distribution, f"{REFUSED} ({reason})")]) from error
    return ScipyIid(
        distribution=distribution,
        shapes=tuple(shapes.items()),
        moments=tuple(moments),
        order=order,
        **placement,
    )


def _order_of_trust(frozen: Any) -> float:
    """Infinity where the eighth moment is finite by formula and integral, else 8: no kurtosis error is trusted."""
    try:
        return math.inf if len(finite_moments(frozen, range(8, 9), 1e-3)) == 1 else 8.0
    except _Refused:
        return 8.0
