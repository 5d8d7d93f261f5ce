"""The exact law of the Gaussian score against closed forms, integrals and other implementations."""

import mpmath
import numpy as np
import pytest
from scipy import integrate, special

from sqrtdk.sampling import densities

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


@pytest.mark.slow
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


# ---- the laws as distributions ---------------------------------------------------------------------------------------

CORRELATIONS = (0.0, 0.5, -0.9, 0.99)


def _tail(d_k, rho, score):
    """Integrate the density from a score to infinity with mpmath."""
    with mpmath.workdps(18):
        v, rest = mpmath.mpf(d_k - 1) / 2, 1 - mpmath.mpf(rho) ** 2
        scale = mpmath.sqrt(mpmath.pi * rest) * mpmath.gamma(mpmath.mpf(d_k) / 2) * 2**v

        def density(s):
            return s**v * mpmath.exp(rho * s / rest) * mpmath.besselk(v, s / rest) / scale

        return float(mpmath.quad(density, [score, score + 5, score + 30, score + 150]))


@pytest.mark.slow
@pytest.mark.parametrize(("d_k", "rho"), [(1, 0.0), (2, -0.5), (3, 0.5), (16, 0.0), (64, 0.5)])
def test_tails_against_multiprecision_where_differences_would_lose_all_digits(d_k, rho):
    law = densities.score_gaussian(d_k, rho)
    for score in (0.5, 30.0):
        assert float(law.sf(score)) == pytest.approx(_tail(d_k, rho, score), rel=1e-9)
        assert float(densities.score_gaussian(d_k, -rho).cdf(-score)) == pytest.approx(float(law.sf(score)), rel=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("rho", CORRELATIONS)
@pytest.mark.parametrize("d_k", [1, 2, 64, 4096])
def test_distribution_is_the_integral_of_the_density_and_the_quantile_its_inverse(d_k, rho):
    law = densities.score_gaussian(d_k, rho)
    scores = law.mean() + law.std() * np.array([-5.0, -1.0, 0.0, 0.5, 2.0, 8.0])
    for low, high in zip(scores, scores[1:], strict=False):
        inside = integrate.quad(law.pdf, low, high, epsabs=0, epsrel=1e-10, points=[0] if low < 0 < high else None)[0]
        apart = law.cdf(high) - law.cdf(low) if high <= law.mean() else law.sf(low) - law.sf(high)
        assert apart == pytest.approx(inside, rel=1e-8)
    shares = np.array([1e-200, 1e-9, 0.03, 0.5, 0.7, 1 - 1e-9])
    assert law.cdf(law.ppf(shares)) == pytest.approx(shares, rel=1e-9)
    assert law.sf(law.isf(shares)) == pytest.approx(shares, rel=1e-9)
    x = law.mean() + law.std() * np.array([-3.0, -0.5, 0.1])
    assert law.ppf(law.cdf(x)) == pytest.approx(x, rel=1e-7, abs=1e-7 * law.std())
    assert law.cdf(scores) + law.sf(scores) == pytest.approx(1, abs=1e-11)


def test_both_ways_to_the_independent_law_agree():
    for d_k in (1, 8, 512):
        scores = np.sqrt(d_k) * np.array([-4.0, -0.3, 0.0, 1.0, 6.0])
        law = densities.score_gaussian(d_k)
        assert law.cdf(scores) == pytest.approx(densities.gaussian_cumulative(scores, d_k), abs=1e-9)
        assert law.pdf(scores) == pytest.approx(densities.gaussian_density(scores, d_k))
    assert densities.score_gaussian(2).cdf(np.array([-np.inf, np.inf])) == pytest.approx([0, 1], abs=1e-14)
    assert densities.score_gaussian(2).ppf(np.array([0.0, 1.0])).tolist() == [-np.inf, np.inf]
    assert np.isnan(densities.score_gaussian(2).ppf(np.array([-0.1, 1.1]))).all()


@pytest.mark.parametrize("rho", CORRELATIONS)
@pytest.mark.parametrize("d_k", [1, 5, 64])
def test_moments_of_the_correlated_law_by_integration(d_k, rho):
    law = densities.score_gaussian(d_k, rho)
    reach = [law.mean() + law.std() * x for x in (-40, -8, -2, 0, 2, 8, 60)]
    cuts = sorted({*reach, 0.0, -1e-3, 1e-3})

    def moment(order):
        return sum(
            integrate.quad(lambda s: (s - law.mean()) ** order * float(law.pdf(s)), a, b, limit=300)[0]
            for a, b in zip(cuts, cuts[1:], strict=False)
        )

    assert moment(0) == pytest.approx(1, rel=1e-6)
    assert moment(1) == pytest.approx(0, abs=1e-5 * law.std())
    assert moment(2) == pytest.approx(law.var(), rel=1e-5)
    assert moment(3) / law.std() ** 3 == pytest.approx(law.skewness(), rel=1e-5, abs=1e-5)
    assert moment(4) / law.var() ** 2 - 3 == pytest.approx(law.kurtosis(), rel=1e-4, abs=1e-4)


def _kolmogorov(scores, law) -> float:
    """Return √n times the largest distance of the empirical distribution; chance exceeds 1.95 once in a thousand."""
    ordered, n = np.sort(scores), len(scores)
    return float(np.abs(law.cdf(ordered) - (np.arange(n) + 0.5) / n).max() * n**0.5)


@pytest.mark.slow
@pytest.mark.parametrize(("d_k", "rho"), [(1, 0.5), (8, -0.7), (64, 0.9), (3, 1.0), (3, -1.0)])
def test_correlated_scores_follow_the_law(d_k, rho):
    rng = np.random.default_rng([20170612, d_k])
    q, z = rng.standard_normal((2, 1000, d_k))
    scores = (q * (rho * q + np.sqrt(1 - rho**2) * z)).sum(1)
    law = densities.score_gaussian(d_k, rho)
    assert _kolmogorov(scores, law) < 1.95
    assert _kolmogorov(law.rvs(1000, rng), law) < 1.95
    # Negative control: another correlation is refused.
    assert _kolmogorov(scores, densities.score_gaussian(d_k, 0.0)) > 1.95


@pytest.mark.parametrize("m", [2, 3, 8, 64])
def test_cosine_of_a_uniform_direction_follows_the_law_of_the_sphere(m):
    rng = np.random.default_rng([7, m])
    direction = rng.standard_normal((2000, m))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    other = np.ones(m) / m**0.5  # only one of the two needs to be uniform
    law = densities.score_sphere(m)
    assert _kolmogorov(direction @ other, law) < 1.95
    assert _kolmogorov(direction @ other, densities.score_sphere(m + 2)) > 1.95 or m == 64
    assert law.var() == pytest.approx(1 / m)
    assert float(law.stats("k")) == pytest.approx(-6 / (m + 2))
    t = np.array([-0.7, 0.1, 0.9]) * min(1, 2.5 / m**0.5)
    height = special.gamma(m / 2) / (np.sqrt(np.pi) * special.gamma((m - 1) / 2)) * (1 - t**2) ** ((m - 3) / 2)
    assert law.pdf(t) == pytest.approx(height)
    assert law.ppf(law.cdf(t)) == pytest.approx(t)


def test_layernorm_takes_one_dimension_of_the_sphere():
    rng, d_k = np.random.default_rng(9), 4
    q, k = rng.standard_normal((2, 3000, d_k))
    q, k = (x - x.mean(1, keepdims=True) for x in (q, k))
    cosine = (q * k).sum(1) / np.linalg.norm(q, axis=1) / np.linalg.norm(k, axis=1)
    assert _kolmogorov(cosine, densities.score_sphere(d_k - 1)) < 1.95
    assert _kolmogorov(cosine, densities.score_sphere(d_k)) > 1.95


def test_distance_from_the_normal_law_falls_as_its_first_edgeworth_term():
    assert densities.normal_distance_law() == pytest.approx(0.5506 / 4, abs=1e-4)
    for d_k, within in ((8, 0.02), (64, 0.002), (1024, 2e-4)):
        assert densities.normal_distance(d_k) * d_k == pytest.approx(densities.normal_distance_law(), rel=within)
    score = np.linspace(-4, 4, 4001)
    apart = np.abs(densities.gaussian_cumulative(score * 2, 4) - special.ndtr(score)).max()
    assert densities.normal_distance(4) == pytest.approx(apart, rel=1e-4)


@pytest.mark.parametrize("make", [lambda: densities.score_gaussian(0), lambda: densities.score_gaussian(4, 1.5)])
def test_laws_that_do_not_exist_are_refused(make):
    with pytest.raises(ValueError, match="d_k must be at least 1 and rho within"):
        make()
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        densities.score_sphere(1)
    with pytest.raises(ValueError, match="within"):
        densities.log_gaussian_density(1.0, 4, 1.0)
