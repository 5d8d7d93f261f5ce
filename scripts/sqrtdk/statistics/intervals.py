"""Two-sided intervals around an estimate: Student's t and its limit, the normal law, as they are and on a log scale.

NumPy is loaded where it is used: figures are listed without it.
"""

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

LEVEL = 0.95
"""How often an interval holds the truth, unless another level is asked for."""
NORMAL = 1.959963984540054
"""Standard errors in half an interval at LEVEL whose error is known."""
MOST_LOG = 500.0
"""Natural logarithm of the largest ratio of an end of an interval to its middle: more is no number to be written."""


def t_quantile(dof: "ArrayLike", level: float = LEVEL) -> "np.ndarray":
    """Return how many standard errors half an interval has; the normal law's where dof is infinite, NaN for none.

    dof: degrees of freedom, a number or an array.
    """
    import numpy as np
    from scipy import special

    share, dof = 0.5 + level / 2, np.asarray(dof, dtype=float)
    known = np.isinf(dof)
    widths: np.ndarray = np.where(known, special.ndtri(share), special.stdtrit(np.where(known, 1.0, dof), share))[()]
    return widths


def welch_dof(parts: "np.ndarray", spread: "np.ndarray") -> "np.ndarray":
    """Return the Welch-Satterthwaite degrees of freedom of sums over the last axis.

    parts: variances that are summed; spread: 1 / (n_blocks - 1) of each, 0 where a variance is known exactly.
    """
    import numpy as np

    with np.errstate(divide="ignore"):
        dof: np.ndarray = parts.sum(axis=-1) ** 2 / (parts**2 * spread).sum(axis=-1)
    return dof


def t_quantile_by_series(n_values: int) -> float:
    """Return `t_quantile(n_values − 1)` to 1e-3, from 9 values on, for jobs that load no SciPy for anything else.

    Abramowitz & Stegun (1964), 26.7.5.
    """
    if n_values < 9:
        raise ValueError("a 95 % interval needs at least 9 values")
    z, dof = NORMAL, float(n_values - 1)
    terms = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + sum(term / dof**power for power, term in enumerate(terms, start=1))


def half_width(se: "ArrayLike", n_values: "ArrayLike") -> "np.ndarray":
    """Return half the width of the interval of a mean of so many independent values; NaN where se is, or for one."""
    import numpy as np

    width: np.ndarray = np.asarray(se, dtype=float) * t_quantile(np.asarray(n_values, dtype=float) - 1)
    return width


def interval(value: float, se: float, dof: float, level: float = LEVEL) -> tuple[float, float]:
    """Return the ends of the interval of an estimate."""
    reach = float(t_quantile(dof, level)) * se
    return value - reach, value + reach


def log_interval(value: float, log_se: float, dof: float, level: float = LEVEL) -> tuple[float, float]:
    """Return the ends of the interval of a positive estimate from the standard error of its logarithm."""
    factor = math.exp(min(float(t_quantile(dof, level)) * log_se, MOST_LOG))
    return value / factor, value * factor


def log_error(low: float, high: float, dof: float, level: float = LEVEL) -> float:
    """Return the standard error of the logarithm that makes `log_interval` reach from low to high."""
    return math.log(high / low) / (2 * float(t_quantile(dof, level)))
