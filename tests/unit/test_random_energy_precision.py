"""Exact averages against another formula: derivatives of E ln Z in s, by sums over g itself and with mpmath.

With L = E ln Z: L' = s (1 − E Σp²), and as E f(sg) has the derivative s Σ_j E ∂²f/∂z_j²,
d E Σp²/ds = s (6 E‖J‖² − 4 E Σp² + 4 E Σp³).
"""

import math

import mpmath
import numpy as np
import pytest

from sqrtdk.theory.random_energy import averages


def derivatives(n, s):
    """L, L' and L'' from L = ∫ (e^{−t} − φⁿ) du, differentiated under the integral."""
    step_g = min(0.1, 0.4 / s)
    g = np.arange(-9, 9, step_g)
    weight = np.exp(-(g**2) / 2) * step_g / math.sqrt(2 * math.pi)
    step = 0.2
    total = np.zeros(3)
    for u in np.array_split(np.arange(-9 * s - 5, 9 * s + math.log(n) + 40, step), 40):
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            a = np.exp(np.minimum(s * g - u[:, None], 500))
            tail = np.exp(-a)
            first, second = -(tail * a * g) @ weight, (tail * (a - 1) * a * g**2) @ weight
            log_phi = np.log1p(np.expm1(-a) @ weight / weight.sum())
            power, lower, lowest = (np.nan_to_num(np.exp((n - k) * log_phi)) for k in range(3))
            total[0] += np.sum(np.exp(-np.exp(-u)) - power) * step
            total[1] += np.sum(-n * lower * first) * step
            total[2] += np.sum(-n * lower * second - n * (n - 1) * lowest * first**2) * step
    return total


def high_precision(n, s):
    """The same with 25 digits."""
    with mpmath.workdps(25):
        n, s = mpmath.mpf(n), mpmath.mpf(s)
        step_g, step = mpmath.mpf("0.3") / max(s, 2), mpmath.mpf("0.3")
        g = [step_g * i for i in range(-int(12 / step_g), int(12 / step_g) + 1)]
        weight = [mpmath.npdf(x) * step_g for x in g]
        exponentials = [mpmath.exp(s * x) for x in g]
        total = [mpmath.mpf(0)] * 3
        for i in range(int((-6 * s - 5) / step), int((8 * s + math.log(n) + 32) / step)):
            scale = mpmath.exp(-step * i)
            phi = first = second = mpmath.mpf(0)
            for x, w, e in zip(g, weight, exponentials, strict=True):
                a = e * scale
                if a < 60:
                    share = w * mpmath.exp(-a)
                    phi += share
                    first -= share * a * x
                    second += share * (a - 1) * a * x * x
            total[0] += (mpmath.exp(-scale) - phi**n) * step
            total[1] -= n * phi ** (n - 1) * first * step
            total[2] -= n * phi ** (n - 2) * (phi * second + (n - 1) * first**2) * step
        return [float(x) for x in total]


def check(n, s, found, tolerance):
    value, slope, bend = found
    a = averages(n, s)
    assert a.log_partition == pytest.approx(value, rel=tolerance)
    assert a.trace == pytest.approx(slope / s, rel=tolerance)
    assert a.participation == pytest.approx(1 - slope / s, rel=tolerance)
    assert a.entropy == pytest.approx(value - s * slope, rel=tolerance * max(1, s * slope / a.entropy / 10))
    growth = (slope / s - bend) / s**2
    assert 6 * a.jacobian_square - 4 * a.participation + 4 * a.cube == pytest.approx(growth, rel=tolerance)


@pytest.mark.parametrize(
    ("n", "s"), [(2, 0.5), (2, 64), (3, 20), (16, 0.8), (64, 3), (1024, 6), (65536, 16), (2**20, 4), (2**20, 64)]
)
def test_derivatives_of_ln_z_agree(n, s):
    check(n, s, derivatives(n, s), 1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "s"), [(2**20, 2.0), (48, 3.0)])
def test_high_precision_agrees(n, s):
    check(n, s, high_precision(n, s), 1e-9)
