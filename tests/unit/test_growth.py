"""The benchmark of growth, thinned: its fit on known laws, and one real point. No test depends on how fast it runs."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "growth.py"


@pytest.fixture(scope="module")
def growth():
    spec = importlib.util.spec_from_file_location("growth_benchmark", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SIZES = [2**power for power in range(10, 21)]


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_exponents_of_known_laws(growth, power):
    slope, error, n = growth.exponent(SIZES, [1e-6 * size**power for size in SIZES])
    assert slope == pytest.approx(power, abs=1e-9)
    assert error < 1e-6
    assert 3 <= n < len(SIZES)


def test_the_error_of_an_exponent_is_that_of_repeated_fits(growth):
    rng = np.random.default_rng(1)
    fits = [
        growth.exponent(SIZES, [1e-6 * n * np.exp(0.05 * rng.standard_normal()) for n in SIZES]) for _ in range(400)
    ]
    slopes, errors, _ = np.array(fits).T
    assert abs(slopes.mean() - 1) < 4.5 * slopes.std() / 20
    assert slopes.std() == pytest.approx(np.sqrt((errors**2).mean()), rel=0.15)


def test_fixed_costs_are_no_growth(growth):
    with pytest.raises(ValueError, match="fewer than three"):
        growth.exponent(SIZES, [1.0] * len(SIZES))
    slope, _, _ = growth.exponent(SIZES, [0.01 + 1e-6 * size for size in SIZES])
    assert 0.8 < slope <= 1


@pytest.mark.slow
def test_a_point_is_measured_in_its_own_process(growth):
    seconds, peak = growth.measure({"family": "gaussian"}, 4, 2**15, 32 * 2**15)
    assert seconds > 0
    assert 10 < peak < 1000
    with pytest.raises(RuntimeError, match="failed"):
        growth.measure({"family": "no such family"}, 4, 16, 1000)
