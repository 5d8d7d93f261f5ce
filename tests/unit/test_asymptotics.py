"""Laws of the hot and the frozen phase: against simulation of the limit, against exact averages, and their ends."""

import math

import numpy as np
import pytest
from scipy import stats

from sqrtdk.theory import asymptotics, energy_grid, random_energy


def exact(n, s):
    return energy_grid.exact(vars(random_energy.averages(n, s)))


@pytest.mark.slow
@pytest.mark.parametrize("m", [0.3, 0.6])
def test_frozen_laws_are_those_of_poisson_dirichlet_weights(m):
    """Weights U_i^{−1/m} over the arrival times U_i of a Poisson process; the mean of the times left out is added."""
    n_rows, n_times = 4000, 3000
    times = np.cumsum(np.random.default_rng(1).exponential(size=(n_rows, n_times)), axis=1)
    x = times ** (-1 / m)
    z = x.sum(axis=1) + times[:, -1] ** (1 - 1 / m) * m / (1 - m)
    p = x / z[:, None]
    square, cube = (p**2).sum(axis=1), (p**3).sum(axis=1)
    measured = {
        "participation_ratio": square,
        "cube": cube,
        "jacobian_trace": 1 - square,
        "entropy": -(p * np.log(p)).sum(axis=1),
        "jacobian_frobenius": square - 2 * cube + square**2,
    }
    n = 64
    laws = asymptotics.frozen(n, asymptotics.critical_spread(n) / m)
    laws["jacobian_frobenius"] = laws["jacobian_frobenius"] ** 2
    for name, values in measured.items():
        # The times left out lack from the entropy alone, by less than n_times^{1 − 1/m} ln n_times.
        slack = 0.02 if name == "entropy" and m > 0.5 else 1e-4
        se = values.std() / math.sqrt(n_rows)
        assert abs(values.mean() - laws[name]) < 4.5 * se + slack, name
    # ln Z of the points b − ln(U)/a, stretched by s = a/m.
    rate, spread = asymptotics.hazard(n), asymptotics.hazard(n) / m
    log_z = spread * asymptotics.threshold(n) + np.log(z)
    law = asymptotics.hazard_corrected(n, spread)["log_partition"]
    assert abs(log_z.mean() - law) < 4.5 * log_z.std() / math.sqrt(n_rows)
    assert spread / rate == pytest.approx(1 / m)


def test_numbers_of_the_thresholds():
    for n in (2, 64, 2**20):
        b, a = asymptotics.threshold(n), asymptotics.hazard(n)
        assert n * stats.norm.sf(b) == pytest.approx(1, rel=1e-12)
        assert a == pytest.approx(stats.norm.pdf(b) / stats.norm.sf(b), rel=1e-12)
        assert a < asymptotics.critical_spread(n) == pytest.approx(math.sqrt(2 * math.log(n)))
    ratios = [asymptotics.hazard(2**power) / asymptotics.critical_spread(2**power) for power in (4, 8, 16, 32)]
    assert ratios == sorted(ratios)
    assert 0.95 < ratios[-1] < 1


def test_numbers_at_64_keys():
    for spread, leading, corrected in ((8, 0.640, 0.686), (32, 0.910, 0.9216)):
        assert asymptotics.frozen(64, spread)["participation_ratio"] == pytest.approx(leading, abs=6e-4)
        assert asymptotics.hazard_corrected(64, spread)["participation_ratio"] == pytest.approx(corrected, abs=6e-4)
    assert exact(64, 8.0)["participation_ratio"] == pytest.approx(0.712, abs=5e-4)
    assert asymptotics.hot(64, 1)["entropy"] == pytest.approx(3.688, abs=5e-4)
    assert exact(64, 1.0)["entropy"] == pytest.approx(3.685, abs=5e-4)


@pytest.mark.parametrize("n", [2, 64, 2**20])
def test_no_law_speaks_outside_its_phase(n):
    critical, rate = asymptotics.critical_spread(n), asymptotics.hazard(n)
    s = np.geomspace(0.01, 1000, 301)
    for laws, phase in (
        (asymptotics.frozen(n, s), s > critical),
        (asymptotics.hazard_corrected(n, s), s > rate),
    ):
        for name, values in laws.items():
            assert (np.isfinite(values) == phase).all(), name
    ends = {"cube": critical / 5**0.5, "log_partition": critical}
    for name, values in asymptotics.hot(n, s).items():
        assert (np.isfinite(values) == (s < ends.get(name, critical / 3**0.5))).all(), name


@pytest.mark.parametrize(("law", "relative"), [("hot", 0.35), ("frozen", 2.5), ("hazard", 2.5)])
def test_laws_are_approached_as_the_keys_become_many(law, relative):
    errors = {}
    for n in (64, 4096, 2**20):
        s = relative * asymptotics.critical_spread(n)
        values, truth = asymptotics.APPROXIMATIONS[law](n, s), exact(n, s)
        for name in truth.keys() & values.keys():
            if (law, name) not in (("hot", "cube"), ("hot", "jacobian_trace")):  # out of its phase; all but exact
                errors.setdefault(name, []).append(abs(float(values[name]) / truth[name] - 1))
    for name, found in errors.items():
        # ‖J‖ is at its maximum there, and its error is small at any n.
        assert found == sorted(found, reverse=True) or max(found) < 0.03, (name, found)


def test_the_correction_is_better_than_the_limit():
    for n in (16, 256, 2**16):
        for spread in (8.0, 32.0):
            truth, limit, corrected = (
                exact(n, spread),
                *(asymptotics.APPROXIMATIONS[name](n, spread) for name in ("frozen", "hazard")),
            )
            for name in ("participation_ratio", "cube", "entropy", "jacobian_trace", "log_partition"):
                assert abs(corrected[name] - truth[name]) < abs(limit[name] - truth[name]), (n, spread, name)


@pytest.mark.slow
def test_ranges_end_where_the_tolerance_is_passed():
    n, spreads = 64, np.geomspace(0.05, 64, 200)
    every = [exact(n, float(s)) for s in spreads]
    values = {name: np.array([one[name] for one in every]) for name in every[0]}
    rows = asymptotics.ranges(n, spreads, values)
    assert len(rows) == 3 * 6 * 2
    for row in rows:
        law = asymptotics.APPROXIMATIONS[row["approximation"]](n, spreads)[row["measure"]]
        error = np.abs(law / values[row["measure"]] - 1)
        assert row["worst"] == np.nanmax(error)
        assert error[list(spreads).index(row["worst_logit_std"])] == row["worst"]
        if math.isnan(row["from_logit_std"]):
            assert not (error <= row["tolerance"]).any()
            continue
        first, last = (list(spreads).index(row[f"{end}_logit_std"]) for end in ("from", "to"))
        assert (error[first : last + 1] <= row["tolerance"]).all()
        for outside in (first - 1, last + 1):
            assert not 0 <= outside < len(spreads) or not error[outside] <= row["tolerance"]
    found = {(row["approximation"], row["measure"], row["tolerance"]): row for row in rows}
    frozen = found["frozen", "participation_ratio", 0.1]
    assert frozen["to_logit_std"] == spreads[-1]
    assert frozen["from_logit_std"] > 2 * asymptotics.critical_spread(n)


def test_the_longest_of_several_runs_is_taken():
    spreads = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    truth = {"entropy": np.ones(6)}

    def law(_n, _s):
        return {"entropy": np.array([1.0, 1.0, 2.0, 1.0, 1.01, 1.04])}

    original = asymptotics.APPROXIMATIONS.copy()
    try:
        asymptotics.APPROXIMATIONS.clear()
        asymptotics.APPROXIMATIONS["hot"] = law
        rows = asymptotics.ranges(4, spreads, truth)
    finally:
        asymptotics.APPROXIMATIONS.update(original)
    assert [(row["from_logit_std"], row["to_logit_std"]) for row in rows] == [(1.0, 2.0)] * 2
    assert rows[0]["worst"] == 1
