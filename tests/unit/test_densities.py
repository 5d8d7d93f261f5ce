"""The exact law of the Gaussian score against closed forms, integrals and other implementations."""

import mpmath
import numpy as np
import pytest
from scipy import integrate, special

from sqrtdk import densities

WIDTHS = (1, 2, 3, 8, 64, 101, 512, 4096)
SCORES = np.array([1e-6, 0.01, 0.3, 1.0, 2.5, 7.0, 40.0])


def _integral(function, d_k):
    """Integrate over the line: twice the right half, from the peak outwards."""
    reach = 60 + 12 * d_k**0.5
    pieces = [0, 1e-4, 1e-2, 0.5, d_k**0.5, 4 * d_k**0.5, reach]
    return 2 * sum(integrate.quad(function, a, b, limit=200)[0] for a, b in zip(pieces, pieces[1:], strict=False))


def test_one_component_is_bessel_k0_over_pi():
    assert densities.gaussian_density(SCORES, 1) == pytest.approx(special.k0(SCORES) / np.pi, rel=1e-12)


def test_two_components_are_the_laplace_law():
    assert densities.gaussian_density(SCORES, 2) == pytest.approx(np.exp(-SCORES) / 2, rel=1e-12)
    assert densities.gaussian_cumulative(SCORES, 2) == pytest.approx(1 - np.exp(-SCORES) / 2, rel=1e-12)


def test_four_components_have_a_closed_form():
    expected = (1 + SCORES) * np.exp(-SCORES) / 4
    assert densities.gaussian_density(SCORES, 4) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("d_k", WIDTHS)
def test_mass_and_moments(d_k):
    def moment(order):
        return _integral(lambda s: s**order * float(densities.gaussian_density(s, d_k)), d_k)

    assert moment(0) == pytest.approx(1, rel=1e-7)
    assert moment(2) == pytest.approx(d_k, rel=1e-7)
    assert moment(4) / d_k**2 - 3 == pytest.approx(6 / d_k, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("d_k", [3, 5, 8, 64])
def test_numeric_inversion_of_the_characteristic_function(d_k):
    for score in (0.2, 1.0, 3.0):
        inverse = integrate.quad(lambda t: (1 + t * t) ** (-d_k / 2), 0, np.inf, weight="cos", wvar=score)[0] / np.pi
        assert densities.gaussian_density(score, d_k) == pytest.approx(inverse, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("d_k", [1, 2, 7, 64, 99, 100, 101, 102, 103, 1024, 4096])
def test_logarithm_against_multiprecision_on_both_sides_of_the_expansion(d_k):
    with mpmath.workdps(40):
        order = mpmath.mpf(d_k - 1) / 2
        for score in (1e-30, 1e-5, 0.1, 1.0, 20.0, 300.0):
            s = mpmath.mpf(score)
            density = s**order * mpmath.besselk(order, s)
            density /= mpmath.sqrt(mpmath.pi) * mpmath.gamma(mpmath.mpf(d_k) / 2) * mpmath.mpf(2) ** order
            assert densities.log_gaussian_density(score, d_k) == pytest.approx(float(mpmath.log(density)), abs=1e-11)


@pytest.mark.parametrize("d_k", [2, 3, 64, 101, 4096])
def test_height_at_zero(d_k):
    height = np.exp(special.gammaln((d_k - 1) / 2) - special.gammaln(d_k / 2)) / (2 * np.sqrt(np.pi))
    assert densities.gaussian_density(0.0, d_k) == pytest.approx(height, rel=1e-11)


def test_one_component_is_infinite_at_zero_and_symmetric_elsewhere():
    assert densities.gaussian_density(0.0, 1) == np.inf
    assert densities.gaussian_density(-SCORES, 1) == pytest.approx(densities.gaussian_density(SCORES, 1), rel=0)


def test_cumulative_law():
    for d_k in WIDTHS:
        edges = np.array([-np.inf, -np.sqrt(d_k), 0.0, np.sqrt(d_k), np.inf])
        cumulative = densities.gaussian_cumulative(edges, d_k)
        assert cumulative[[0, 2, 4]] == pytest.approx([0, 0.5, 1], abs=1e-9)
        inside = _integral(lambda s, d=d_k: float(densities.gaussian_density(s, d)) * (s <= d**0.5), d_k)
        assert cumulative[3] - cumulative[1] == pytest.approx(inside, abs=1e-6)


@pytest.mark.parametrize(("d_k", "distance"), [(8, 0.01710), (64, 0.002152)])
def test_largest_distance_from_the_normal_law(d_k, distance):
    score = np.linspace(-4, 4, 2001)
    apart = np.abs(densities.gaussian_cumulative(score * d_k**0.5, d_k) - special.ndtr(score)).max()
    assert apart == pytest.approx(distance, rel=5e-3)


@pytest.mark.parametrize("d_k", [1, 8, 256])
def test_scores_drawn_as_sums_of_products_follow_the_law(d_k):
    rng = np.random.default_rng(20170612 + d_k)
    n = 3000
    scores = np.sort((rng.standard_normal((n, d_k)) * rng.standard_normal((n, d_k))).sum(1))
    exact = densities.gaussian_cumulative(scores, d_k)
    # 1.95/√n is the Kolmogorov distance that chance exceeds once in a thousand times.
    assert np.abs(exact - (np.arange(n) + 0.5) / n).max() < 1.95 / n**0.5
    if d_k == 1:  # negative control: the normal law is refused by the same test
        assert np.abs(special.ndtr(scores) - (np.arange(n) + 0.5) / n).max() > 1.95 / n**0.5


def test_no_width_below_one():
    with pytest.raises(ValueError, match="at least 1"):
        densities.gaussian_density(1.0, 0)
