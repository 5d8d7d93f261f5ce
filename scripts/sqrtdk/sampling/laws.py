"""Candidate laws of the variance, the mean and the quartiles of q·k against d_k, their weighted fits, and the choice.

A law is one pure function whose docstring is its formula, registered once in VARIANCE_LAWS, MEAN_LAWS or SPREAD_LAWS.
Variances and interquartile ranges are fitted as logarithms with standard error se / value (delta method): in linear
space the fit would trust estimates that are too small. Means may be zero or negative and are fitted as they are. All
laws of one quantity share one data space, so their chi2 and AICc compare.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize, special

from sqrtdk.results.picking import simulated
from sqrtdk.statistics.intervals import t_quantile, welch_dof

POSITIVE = ("variance", "interquartile_range")  # fitted as logarithms
SELECTION_MARGIN = 6.0  # ASSUME within this AICc distance of the best the simplest law is the one to select
REJECTED = 0.001  # ASSUME a selected law with a smaller p-value is the best of a bad lot
EXPONENTS = np.linspace(-4.0, 4.0, 161)  # grid on which a power law's exponent is sought
NONZERO_SIGMAS = 4.0  # ASSUME a mean must differ from zero by this much before its exponent means anything
ZERO_SE = 1e-9  # an exact parameter smaller than this many standard errors is zero but for rounding
ROUNDING = 1e-12  # a relative standard error below this is rounding, not sampling
_OPTIMISER = {"ftol": 1e-15, "xtol": 1e-15, "maxfev": 10_000}  # a law that misses by thousands of se converges slowly
_TINY = 1e-300  # stands in for ln of a value <= 0 while the optimiser tries a step it will reject
_MAX_CONDITION = 1e10

Numbers = Sequence[float] | np.ndarray
"""One number for each parameter of a law."""


@dataclass(frozen=True)
class Law:
    """Hold one candidate law: its function of (d_k, *parameters), the partial derivatives, and a start for the fit.

    The parameter names are those of the function, the formula is its docstring. `start(law, d_k, values, se, positive)`
    returns first parameter values, and `refusal`, of the same arguments with the start last, a reason not to fit or
    nothing. A law with `tail` is fitted to large d_k only and is never selected.
    """

    name: str
    function: Callable[..., np.ndarray]
    gradient: Callable[..., tuple[Any, ...]]
    start: Callable[..., np.ndarray]
    refusal: Callable[..., str] = lambda *_: ""
    tail: bool = False

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Name the parameters in the order of the function's arguments."""
        return tuple(inspect.signature(self.function).parameters)[1:]

    @property
    def formula(self) -> str:
        """Return the formula in plain text."""
        return inspect.getdoc(self.function) or ""

    @property
    def points_needed(self) -> int:
        """Count the d_k that a fit needs: one more than parameters, or nothing tests the law."""
        return len(self.parameters) + 1

    def __call__(self, d_k: np.ndarray, *parameters: float) -> np.ndarray:
        """Evaluate the law at d_k, shape (n,)."""
        return self.function(np.asarray(d_k, dtype=float), *parameters)

    def columns(self, d_k: np.ndarray, parameters: Numbers) -> np.ndarray:
        """Stack the partial derivatives at d_k, shape (n, number of parameters)."""
        return np.stack(self.gradient(d_k, *parameters), axis=1)


def _start_basis(law: Law, d_k: np.ndarray, values: np.ndarray, se: np.ndarray, positive: bool) -> np.ndarray:
    """Solve a law that is linear in its parameters; non-negative parameters where the law must be positive."""
    columns = law.columns(d_k, np.ones(len(law.parameters))) / se[:, None]
    scale = np.linalg.norm(columns, axis=0)  # d_k**2 reaches 4e9: unscaled columns would lose digits
    if positive:
        return optimize.nnls(columns / scale, values / se)[0] / scale
    return np.linalg.lstsq(columns / scale, values / se)[0] / scale


def _start_power(law: Law, d_k: np.ndarray, values: np.ndarray, se: np.ndarray, positive: bool) -> np.ndarray:
    """Scan the exponent with the best prefactor, of either sign, at each."""
    shapes = d_k ** EXPONENTS[:, None] / se
    prefactors = shapes @ (values / se) / (shapes**2).sum(axis=1)
    best = np.argmin(((prefactors[:, None] * shapes - values / se) ** 2).sum(axis=1))
    return np.array([prefactors[best], EXPONENTS[best]])


def _refuse_exponent(law: Law, d_k: np.ndarray, values: np.ndarray, se: np.ndarray, start: np.ndarray) -> str:
    """Refuse an exponent of a mean that is hardly there: noise has one too."""
    gain = np.sum((values / se) ** 2) - np.sum(((values - law(d_k, *start)) / se) ** 2)
    if gain < NONZERO_SIGMAS**2:
        return f"the mean differs from zero by less than {NONZERO_SIGMAS:g} standard errors: it has no exponent"
    if abs(start[1]) >= EXPONENTS[-1]:
        return f"no exponent between {EXPONENTS[0]:g} and {EXPONENTS[-1]:g} fits"
    return ""


def zero(d_k: np.ndarray) -> np.ndarray:
    """y = 0"""
    return np.zeros_like(d_k)


def linear(d_k: np.ndarray, slope: float) -> np.ndarray:
    """y = slope * d_k"""
    return slope * d_k


def square_root(d_k: np.ndarray, scale: float) -> np.ndarray:
    """y = scale * d_k**0.5"""
    return scale * d_k**0.5


def power(d_k: np.ndarray, prefactor: float, exponent: float) -> np.ndarray:
    """y = prefactor * d_k**exponent"""
    return prefactor * d_k**exponent


def affine(d_k: np.ndarray, intercept: float, slope: float) -> np.ndarray:
    """y = intercept + slope * d_k"""
    return intercept + slope * d_k


def quadratic(d_k: np.ndarray, linear: float, quadratic: float) -> np.ndarray:
    """y = linear * d_k + quadratic * d_k**2"""
    return linear * d_k + quadratic * d_k**2


_ZERO = Law("zero", zero, lambda d_k: (), lambda *_: np.empty(0))
_LINEAR = Law("linear", linear, lambda d_k, slope: (d_k,), _start_basis)
_SQUARE_ROOT = Law("square_root", square_root, lambda d_k, scale: (d_k**0.5,), _start_basis)
_POWER = Law("power", power, lambda d_k, a, b: (d_k**b, a * d_k**b * np.log(d_k)), _start_power)
_AFFINE = Law("affine", affine, lambda d_k, a, b: (np.ones_like(d_k), d_k), _start_basis)
_QUADRATIC = Law("quadratic", quadratic, lambda d_k, a, b: (d_k, d_k**2), _start_basis)

VARIANCE_LAWS = {
    law.name: law for law in (_LINEAR, _POWER, _AFFINE, _QUADRATIC, replace(_AFFINE, name="affine_tail", tail=True))
}
MEAN_LAWS = {law.name: law for law in (_ZERO, _LINEAR, replace(_POWER, refusal=_refuse_exponent))}
SPREAD_LAWS = {law.name: law for law in (_SQUARE_ROOT, _POWER, replace(_POWER, name="power_tail", tail=True))}


@dataclass(frozen=True)
class Fit:
    """Hold one fitted law; where `estimable` is false every number is None or empty and `reason` says why."""

    law: Law
    n_points: int
    reason: str = ""
    estimates: tuple[float, ...] = ()
    se: tuple[float, ...] = ()
    ci_low: tuple[float, ...] = ()
    ci_high: tuple[float, ...] = ()
    ci_dof: tuple[float, ...] = ()
    chi2: float | None = None
    dof: int | None = None
    p_value: float | None = None
    aicc: float | None = None

    @property
    def estimable(self) -> bool:
        """Tell whether the fit holds numbers."""
        return self.chi2 is not None


def fit_law(
    law: Law,
    d_k: np.ndarray,
    values: np.ndarray,
    se: np.ndarray,
    n_blocks: np.ndarray | None = None,
    *,
    log: bool,
) -> Fit:
    """Fit a law by weighted least squares, in ln(values) if `log`, with standard errors and 95 % intervals.

    d_k, values, se: shape (n,), distinct d_k, se > 0 in the units of values (values > 0 if `log`), else ValueError.
    n_blocks: shape (n,), number of blocks behind each se; None means that the se are known exactly.

    Estimated weights cost precision, make the usual covariance too small and chi2 too large. To first order in
    1 / (n_blocks - 1) the se are repaired after P. Meier, Biometrics 9 (1953) 59, written with leverages for several
    parameters, and the p-value after S. Johansen, Biometrika 67 (1980) 85; chi2 itself is the plain sum. The intervals
    use Student's t with the Welch-Satterthwaite degrees of freedom. They hold the parameters of a law that is true, or
    those of the same fit to exact values; what a wrong law is wrong by shows in chi2, not in the se.
    """
    d_k, values, se = (np.asarray(x, dtype=float) for x in (d_k, values, se))
    _check(d_k, values, se, n_blocks, log)
    n, k = d_k.size, len(law.parameters)
    if n < law.points_needed:
        return Fit(law, n, f"the {law.name} law needs at least {law.points_needed} d_k, usable: {n}")
    target, sigma = (np.log(values), se / values) if log else (values, se)

    def residuals(parameters: Numbers) -> np.ndarray:
        model = law(d_k, *parameters)
        return ((np.log(np.maximum(model, _TINY)) if log else model) - target) / sigma

    def jacobian(parameters: Numbers) -> np.ndarray:
        weight = law(d_k, *parameters) * sigma if log else sigma
        return law.columns(d_k, parameters) / weight[:, None]

    spread = np.zeros(n) if n_blocks is None else 1.0 / (np.asarray(n_blocks, dtype=float) - 1.0)
    if k == 0:
        return _finish(law, residuals(()), (), (), (), (), spread.sum())
    start = law.start(law, d_k, values, se, log)
    if refusal := law.refusal(law, d_k, values, se, start):
        return Fit(law, n, refusal)
    with np.errstate(over="ignore"):  # a trial exponent may overflow; the step is then rejected
        estimates, *_ = optimize.leastsq(residuals, start, Dfun=jacobian, full_output=True, **_OPTIMISER)
    rest, whitened = residuals(estimates), jacobian(estimates)
    scale = np.linalg.norm(whitened, axis=0)
    if not (np.all(np.isfinite(whitened)) and scale.min() > 0 and np.linalg.cond(whitened / scale) < _MAX_CONDITION):
        return Fit(law, n, f"the {law.name} law's parameters are not determined by these d_k")
    q, r = np.linalg.qr(whitened / scale)
    step, size = float(np.linalg.norm(q.T @ rest)), float(np.linalg.norm(rest))
    if step > 1e-4 * max(1.0, size):  # the step that remains, in standard errors
        return Fit(law, n, f"the fit of the {law.name} law did not converge")
    influence = np.linalg.solve(r, q.T) / scale[:, None]  # (k, n): d estimate / d whitened datum
    freedom = 1.0 - (q**2).sum(axis=1)  # 1 - leverage: the share of a point that its own fit does not absorb
    uncertainty = _uncertainty(influence**2, freedom, spread)
    return _finish(law, rest, estimates + 0.0, *uncertainty, np.sum(freedom**2 * spread))  # + 0.0: no -0.0


def _uncertainty(
    parts: np.ndarray, freedom: np.ndarray, spread: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return standard errors, 95 % half widths and degrees of freedom (infinite where the se are known exactly).

    parts: each point's part of each parameter's variance, shape (k, n).
    """
    errors = np.sqrt((parts * (1.0 + 4.0 * freedom * spread)).sum(axis=1))
    dof = welch_dof(parts, spread)
    return errors, t_quantile(dof) * errors, dof


def _check(d_k: np.ndarray, values: np.ndarray, se: np.ndarray, n_blocks: np.ndarray | None, log: bool) -> None:
    if not (d_k.shape == values.shape == se.shape and d_k.ndim == 1):
        raise ValueError(f"d_k, values, se must be vectors of one length, not {d_k.shape}, {values.shape}, {se.shape}")
    if np.unique(d_k).size != d_k.size:
        raise ValueError("d_k must be distinct")
    if not (np.all(np.isfinite(values)) and np.all(np.isfinite(se)) and np.all(se > 0) and np.all(d_k > 0)):
        raise ValueError("values must be finite, d_k and se positive and finite")
    if n_blocks is not None and not np.all(np.asarray(n_blocks, dtype=float) >= 2):
        raise ValueError("a standard error comes from at least 2 blocks")
    if log and np.any(values <= 0):
        raise ValueError("a fit of ln(values) needs positive values")


def _finish(
    law: Law,
    rest: np.ndarray,
    estimates: Numbers,
    errors: Numbers,
    half_widths: Numbers,
    ci_dof: Numbers,
    spread: float,
) -> Fit:
    """Add the chi-squared test and AICc to the estimates; AICc = chi2 + 2k + 2k(k+1)/(n-k-1).

    spread: Johansen's A, the sum of (1 - leverage)**2 / (n_blocks - 1); chi2 / (dof + 2A - 6A/(dof+2)) is F-distributed
    with dof and dof (dof+2) / (3A) degrees of freedom.
    """
    n, k = rest.size, len(law.parameters)
    chi2, dof = float(rest @ rest), n - k
    aicc = chi2 + 2 * k + 2 * k * (k + 1) / (dof - 1) if dof > 1 else None
    p_value = special.chdtrc(dof, chi2)
    if spread > 0:
        p_value = special.fdtrc(dof, dof * (dof + 2) / (3 * spread), chi2 / (dof + 2 * spread - 6 * spread / (dof + 2)))
    ends = np.subtract(estimates, half_widths), np.add(estimates, half_widths)
    value, se, low, high, freedom = (tuple(map(float, x)) for x in (estimates, errors, *ends, ci_dof))
    return Fit(law, n, "", value, se, low, high, freedom, chi2, dof, float(p_value), aicc)


def select(fits: list[Fit]) -> tuple[str | None, str]:
    """Name the simplest full-range law within dAICc < 6 of the best, or None, and say what the reader must know.

    Fewest parameters first, lowest AICc among equals. Nothing is selected unless there are points enough for the AICc
    of every candidate: with fewer, the one-parameter law would win unopposed.
    """
    fits = [fit for fit in fits if not fit.law.tail]
    needed, points = max(fit.law.points_needed for fit in fits) + 1, max(fit.n_points for fit in fits)
    if points < needed:
        return None, f"no law selected: AICc of every law needs at least {needed} d_k, usable: {points}"
    comparable = [(fit.aicc, fit) for fit in fits if fit.aicc is not None]
    if not comparable:
        return None, "no law selected: none is estimable"
    best = min(aicc for aicc, _ in comparable)
    near = [(len(fit.law.parameters), aicc, fit) for aicc, fit in comparable if aicc - best < SELECTION_MARGIN]
    *_, chosen = min(near, key=lambda candidate: candidate[:2])
    rejected = chosen.p_value is not None and chosen.p_value < REJECTED
    return chosen.law.name, f"best of the candidates, but its chi2 rejects it (p < {REJECTED:g})" if rejected else ""


def fit_variance_laws(moments: pd.DataFrame, tail_d_k: int) -> pd.DataFrame:
    """Fit every law of the variance to every simulated ensemble of a moments table; one row per parameter.

    Enumerated rows (real heads) are skipped. `affine_tail` is fitted to d_k >= tail_d_k. `exact` is the same weighted
    fit to the exact variances. A cell without sampling error or without a standard error is left out, and `reason`
    names it.
    """
    return _fit_table(moments, "variance", VARIANCE_LAWS, tail_d_k)


def fit_mean_laws(moments: pd.DataFrame) -> pd.DataFrame:
    """Fit every law of the mean to every simulated ensemble; columns and conventions of `fit_variance_laws`.

    The zero law has no parameter and one row with an empty parameter name.
    """
    return _fit_table(moments, "mean", MEAN_LAWS, tail_d_k=1)


def fit_spread_laws(moments: pd.DataFrame, tail_d_k: int) -> pd.DataFrame:
    """Fit every law of the interquartile range; columns and conventions of `fit_variance_laws`.

    Quartiles have an error however heavy the tails are. `power_tail` is fitted to d_k >= tail_d_k; `exact` is empty.
    """
    return _fit_table(moments, "interquartile_range", SPREAD_LAWS, tail_d_k)


def _fit_table(moments: pd.DataFrame, quantity: str, laws: dict[str, Law], tail_d_k: int) -> pd.DataFrame:
    rows = []
    for ensemble, cells in simulated(moments).groupby("ensemble", sort=False):
        cells = cells.sort_values("d_k")
        whole, tail = usable(cells, quantity), usable(cells[cells["d_k"] >= tail_d_k], quantity)
        results = [_fit_cells(law, *(tail if law.tail else whole), quantity) for law in laws.values()]
        chosen, remark = select([fit for fit, *_ in results])
        for fit, exact, left_out, first in results:
            selected = fit.law.name == chosen
            note = remark if selected or (chosen is None and fit.estimable and not fit.law.tail) else ""
            if fit.estimable and fit.aicc is None and not note:
                note = f"AICc needs at least {fit.law.points_needed + 1} d_k, usable: {fit.n_points}"
            why_not = "" if left_out and fit.n_points == 0 else fit.reason  # with no point left, the cause says it all
            of_law = {name: getattr(fit, name) for name in ("chi2", "dof", "p_value", "aicc")} | {
                "selected": selected,
                "estimable": fit.estimable,
                "reason": "; ".join(filter(None, (left_out, why_not, note))),
                "d_k_min": tail_d_k if fit.law.tail else first,
                "n_points": fit.n_points,
            }
            of_parameters = {
                "estimate": fit.estimates,
                "se": fit.se,
                "ci_low": fit.ci_low,
                "ci_high": fit.ci_high,
                "ci_dof": [None if math.isinf(dof) else dof for dof in fit.ci_dof],  # an se that is known exactly
                "exact": exact,
            }
            for i, parameter in enumerate(fit.law.parameters or ("",)):
                row = {"ensemble": ensemble, "law": fit.law.name, "parameter": parameter}
                row |= {name: x[i] if i < len(x) else None for name, x in of_parameters.items()}
                rows.append(row | of_law)
    # object first: one empty dof or d_k_min would turn the others into 11.0
    frame = pd.DataFrame(rows, dtype=object)
    floats = ("chi2", "p_value", "aicc", "estimate", "se", "ci_low", "ci_high", "ci_dof", "exact")
    types = dict.fromkeys(floats, float) | {"selected": bool, "estimable": bool, "n_points": int}
    return frame.astype(types) if rows else frame


def usable(cells: pd.DataFrame, quantity: str) -> tuple[pd.DataFrame, str]:
    """Split off the cells that cannot be weighted, with the reason in words."""
    name = quantity.replace("_", " ")
    value, se = cells[quantity].to_numpy(float), cells[f"{quantity}_se"].to_numpy(float)
    why = np.full(len(cells), "", dtype=object)
    for i, (own, stopped_by) in enumerate(zip(cells["reason"], cells["stopped_by"], strict=True)):
        if not (np.isfinite(value[i]) and np.isfinite(se[i])):
            why[i] = own if isinstance(own, str) and own else f"the {name} estimate has no standard error"
        elif quantity in POSITIVE and value[i] <= 0:
            why[i] = f"zero {name}" if value[i] == 0 else f"the {name} estimate is negative"
        elif se[i] <= ROUNDING * abs(value[i]) or (quantity == "variance" and stopped_by == "degenerate"):
            why[i] = f"the {name} estimate has no sampling error, so it has no weight"
    d_k = cells["d_k"].to_numpy()
    texts = []
    for text in dict.fromkeys(filter(None, why)):
        which = ", ".join(str(d) for d in d_k[why == text])
        texts.append(text if np.all(why == text) else f"left out d_k = {which}: {text}")
    return cells[why == ""], "; ".join(texts)


def _fit_cells(
    law: Law, cells: pd.DataFrame, left_out: str, quantity: str
) -> tuple[Fit, tuple[Any, ...], str, int | None]:
    """Fit one law to usable cells and, with the same weights, to their exact values."""
    log = quantity in POSITIVE
    d_k, value, se, blocks = (cells[name].to_numpy(float) for name in ("d_k", quantity, f"{quantity}_se", "n_blocks"))
    exact = cells[f"exact_{quantity}"].to_numpy(float) if f"exact_{quantity}" in cells else np.full(d_k.size, np.nan)
    fit = fit_law(law, d_k, value, se, blocks, log=log)
    truth: tuple[float, ...] = ()
    if fit.estimable and np.all(np.isfinite(exact)):
        # the same weights: in log space it is the relative error that weighs
        truth = fit_law(law, d_k, exact, se / value * exact if log else se, log=log).estimates
        # an intercept of 3e-16 is a zero; the lengths differ where the exact values have no exponent
        truth = tuple(0.0 if abs(x) < ZERO_SE * s else x for x, s in zip(truth, fit.se, strict=False))
    return fit, truth, left_out, int(d_k[0]) if d_k.size else None
