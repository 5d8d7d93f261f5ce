"""Calibration of all intervals, from block sums to fitted exponents, and errors that it must catch.

A thinned version of benchmarks/coverage.py: fewer studies, and one ensemble of each kind.
"""

import importlib.util
import math
from dataclasses import dataclass
from pathlib import Path

import pytest

from sqrtdk.sampling import blocks, ensembles, laws
from sqrtdk.sampling.ensembles.correlated import Equicorrelated

pytestmark = pytest.mark.slow  # simulates hundreds of studies
PATH = Path(__file__).parents[2] / "benchmarks" / "coverage.py"
WIDTHS = (4, 8, 16, 32)
STUDIES = 60
SPECS = {
    "gaussian": {"family": "gaussian"},
    "laplace": {"family": "laplace"},
    "shifted": {"family": "gaussian", "query_mean": 0.5, "key_mean": -0.25, "query_sd": 1.5, "key_sd": 0.8},
    "equicorrelated": {"family": "equicorrelated", "query_rho": 0.3, "key_rho": 0.3},
    "ar1": {"family": "ar1", "query_phi": 0.8, "key_phi": 0.5},
    "aligned": {"family": "aligned", "rho": 0.5},
}


@pytest.fixture(scope="module")
def coverage():
    """The benchmark as a module."""
    spec = importlib.util.spec_from_file_location("coverage_benchmark", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def studies(coverage):
    """Rows of small studies of each ensemble, simulated once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "PILOT_SCORES", 2**9)
        return {
            name: [coverage.simulate(ensembles.build(spec), name, seed, 1e5, WIDTHS) for seed in range(STUDIES)]
            for name, spec in SPECS.items()
        }


def failures(coverage, studies: dict[str, list]) -> list[tuple[str, str]]:
    """Return the ensembles and quantities whose intervals do not hold the truth as often as they say."""
    totals = {name: coverage.total([coverage.tally(rows) for rows in found]) for name, found in studies.items()}
    return [
        (name, quantity)
        for name, shares in totals.items()
        for quantity, (inside, n) in shares.items()
        if not coverage.calibrated(inside, n, len(studies))
    ]


def test_intervals_of_variances_and_exponents_cover(coverage, studies):
    assert failures(coverage, studies) == []
    sums = coverage.total([coverage.tally(rows) for found in studies.values() for rows in found])
    assert {name: n for name, (_, n) in sums.items()} == {
        "variance": 4 * STUDIES * len(SPECS),
        "exponent": STUDIES * len(SPECS),
        "local exponent": 2 * STUDIES * len(SPECS),
    }
    # All ensembles together are a sharper test than each of them.
    for inside, n in sums.values():
        assert coverage.calibrated(inside, n)


def test_a_wrong_exact_variance_is_caught(coverage, studies):
    # The mean square in place of the variance: right for centred components alone.
    wrong = [[row | {"exact_variance": row["exact_variance"] + row["exact_mean"] ** 2} for row in rows]
             for rows in studies["aligned"]]  # fmt: skip
    caught = failures(coverage, {"aligned": wrong})
    assert {quantity for _, quantity in caught} == set(coverage.QUANTITIES)
    # A factor that is wrong by 4 % is no matter for exponents, and is caught in the variance.
    wrong = [[row | {"exact_variance": 1.04 * row["exact_variance"]} for row in rows] for rows in studies["gaussian"]]
    assert failures(coverage, {"gaussian": wrong}) == [("gaussian", "variance")]


def test_a_sampler_with_the_wrong_correlation_is_caught(coverage):
    @dataclass(frozen=True, kw_only=True)
    class Wrong(Equicorrelated):
        def draw(self, rng, n_blocks, n_queries, n_keys, d_k):
            other = Equicorrelated(query_rho=self.query_rho, key_rho=self.key_rho + 0.2)
            return other.draw(rng, n_blocks, n_queries, n_keys, d_k)

    ensemble = Wrong(query_rho=0.3, key_rho=0.3)
    found = [coverage.simulate(ensemble, "wrong", seed, 1e5, WIDTHS) for seed in range(STUDIES)]
    caught = {quantity for _, quantity in failures(coverage, {"wrong": found})}
    assert {"variance", "exponent"} <= caught


@pytest.mark.parametrize("name", ["gaussian", "equicorrelated"])
def test_an_error_that_takes_the_entries_of_a_block_as_independent_is_caught(coverage, studies, name):
    def naive(row: dict) -> dict:
        spread = (2 + row["exact_excess_kurtosis"]) / row["n_scores"]
        return row | {"variance_se": row["exact_variance"] * math.sqrt(spread)}

    wrong = [[naive(row) for row in rows] for rows in studies[name]]
    # Errors that are too small by the same share at each width leave fewer exponents out than variances.
    assert {"variance", "local exponent"} <= {quantity for _, quantity in failures(coverage, {name: wrong})}
    right = [row["variance_se"] for rows in studies[name] for row in rows]
    small = [row["variance_se"] for rows in wrong for row in rows]
    assert sum(small) < 0.7 * sum(right)


def test_heavy_tails_say_that_they_have_no_interval(coverage):
    for df, words in ((3.0, "no finite fourth moment"), (1.5, "no finite variance")):
        rows = coverage.simulate(ensembles.build({"family": "student_t", "df": df}), "heavy", 1, 1e4, WIDTHS)
        assert words in coverage.refusal(rows)
    assert coverage.refusal(coverage.simulate(ensembles.build(SPECS["gaussian"]), "few", 1, 1e4, (4, 8)))


def test_verdict_allows_three_errors_for_one_ensemble_and_sidaks_more_for_many(coverage):
    assert coverage.allowed(1) == pytest.approx(3)
    assert 3.9 < coverage.allowed(35) < 4
    assert coverage.calibrated(380, 400)
    assert not coverage.calibrated(364, 400)  # 3.7 standard errors
    assert coverage.calibrated(364, 400, 36)
    assert not coverage.calibrated(400, 400)  # too wide is wrong as well


def test_the_table_names_what_is_wrong_and_what_cannot_be_told(coverage):
    good = dict.fromkeys(coverage.QUANTITIES, (95, 100))
    found = {"right": ("", good), "wrong": ("", good | {"exponent": (50, 100)}), "heavy": ("tails", {})}
    text, verdict = coverage.report(found)
    assert not verdict
    assert "heavy  no interval: tails" in text
    assert "exponent: -20.6 standard errors" in text
    assert "NOT CALIBRATED" in text
    assert coverage.report({"right": ("", good)})[1]


def test_every_ensemble_of_the_configuration_can_be_studied(coverage):
    specs = coverage.configured()
    assert len(specs) >= 9
    for name, spec in specs.items():
        ensemble = ensembles.build(spec)
        usable = sum(not ensemble.undefined_at(d_k) for d_k in coverage.WIDTHS)
        assert usable >= laws.VARIANCE_LAWS["power"].points_needed, name
