"""Any continuous distribution of scipy.stats as the law of i.i.d. components; imported only when one is named."""

import math
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import integrate, stats

from .base import Parameter, Problem, SpecError
from .iid import Iid

REFUSED = "a distribution whose moments can be computed"


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


def integrated_moment(frozen, order: int) -> float | None:
    """E X^order by numerical integration of the density, None where the integral does not converge."""
    low, high = frozen.support()
    cuts = [low, *(q for q in frozen.ppf([1e-9, 1e-3, 0.5, 0.999, 1 - 1e-9]) if low < q < high), high]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error", integrate.IntegrationWarning)
        try:
            pieces = [
                integrate.quad(lambda x: x**order * frozen.pdf(x), a, b, limit=200, epsrel=1e-10)[0]
                for a, b in zip(cuts, cuts[1:], strict=False)
                if a < b
            ]
        except (integrate.IntegrationWarning, OverflowError, ZeroDivisionError):
            return None
    total = math.fsum(pieces)
    return total if math.isfinite(total) else None


def finite_moments(frozen, orders: range, tolerance: float) -> list[float]:
    """Moments that SciPy's formula and numerical integration agree on, up to the first that is not finite.

    A moment whose integral does not converge counts as not finite: nothing that rests on it could be checked.
    Raises ValueError where both are finite and differ: then the moments cannot be trusted.
    """
    moments = []
    for order in orders:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            formula = float(frozen.moment(order))
        integral = integrated_moment(frozen, order) if math.isfinite(formula) else None
        if integral is None:
            break
        scale = abs(formula) + (abs(frozen.mean()) + frozen.std()) ** order if order > 1 else abs(formula) + 1.0
        if abs(integral - formula) > tolerance * scale:
            raise ValueError(f"E X^{order} is {formula:g} by SciPy's formula and {integral} by integration")
        moments.append(formula)
    return moments


@dataclass(frozen=True, kw_only=True)
class ScipyIid(Iid):
    """Standardised i.i.d. components of a scipy.stats distribution; with no finite variance, as they come."""

    distribution: str
    shapes: tuple[tuple[str, float], ...]
    moments: tuple[float, ...]
    finite_moment: float

    family: ClassVar[str] = "scipy"

    @property
    def summary(self):
        return f"independent components of scipy.stats.{self.distribution}"

    @property
    def spec(self):
        own = {name: getattr(self, name) for name in ("query_mean", "key_mean", "query_sd", "key_sd")}
        return {"family": self.distribution, **dict(self.shapes), **own}

    @property
    def _centre(self) -> tuple[float, float]:
        if len(self.moments) < 2:
            return 0.0, 1.0
        return self.moments[0], math.sqrt(self.moments[1] - self.moments[0] ** 2)

    def shape(self):
        if len(self.moments) < 4:
            return 0.0, None
        mean, sd = self._centre
        m1, m2, m3, m4 = self.moments[:4]
        third = m3 - 3 * m1 * m2 + 2 * m1**3
        fourth = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
        return third / sd**3, fourth / sd**4

    def standardised(self, rng, size):
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
        raise SpecError([Problem(None, given, f"shape parameters inside the domain of scipy.stats.{distribution}")])
    frozen = family(**shapes)
    try:
        moments = finite_moments(frozen, range(1, 5), 1e-6)
        if len(moments) >= 2 and not moments[1] - moments[0] ** 2 > 0:
            raise ValueError("its variance is not positive")
    except ValueError as error:
        raise SpecError([Problem("family", distribution, f"{REFUSED} ({error})")]) from error
    finite_moment = float(len(moments)) if len(moments) < 4 else _order_of_trust(frozen)
    return ScipyIid(
        distribution=distribution,
        shapes=tuple(shapes.items()),
        moments=tuple(moments),
        finite_moment=finite_moment if len(moments) == 4 else {0: 1.0, 1: 2.0, 2: 4.0, 3: 4.0}[len(moments)],
        **placement,
    )


def _order_of_trust(frozen) -> float:
    """Infinity where the eighth moment is finite by formula and integral, else 8: no kurtosis error is trusted."""
    try:
        return math.inf if len(finite_moments(frozen, range(8, 9), 1e-3)) == 1 else 8.0
    except ValueError:
        return 8.0
