"""The simulated grid of softmax over Gaussian logits: honest errors against the exact averages, however it is drawn."""

import math
import tracemalloc

import numpy as np
import pytest

from sqrtdk.rows import softmax
from sqrtdk.sampling import streams
from sqrtdk.theory import energy_grid, random_energy
from sqrtdk.theory.energy_grid import simulate

N_KEYS = (2, 16, 64, 256, 1024, 4096, 65536, 2**20)
SPREADS = (0.125, 0.25, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 11.3, 16, 22.6, 32, 64)


def exact(n, s):
    return energy_grid.exact(vars(random_energy.averages(n, s))) | {"identity": 0.0}


@pytest.fixture(scope="module")
def z_scores():
    """(n, s, measure) -> z of trusted estimates; every s has draws of its own, so that all cells are independent."""
    found = {}
    for n in N_KEYS:
        for i, s in enumerate(SPREADS):
            truth = exact(n, s)
            for row in simulate(n, [s], 1000 + i, 250_000):
                if row["measure"] in truth and row["trusted"]:
                    found[n, s, row["measure"]] = (row["estimate"] - truth[row["measure"]]) / row["se"]
    return found


@pytest.mark.slow
def test_the_whole_grid_agrees_with_the_exact_averages(z_scores):
    assert max(map(abs, z_scores.values())) < 5
    for measure in exact(2, 1.0):
        z = np.array([value for key, value in z_scores.items() if key[2] == measure])
        assert len(z) > 80, measure
        inside, share = np.sum(np.abs(z) < 1.96), 0.95
        assert abs(inside - share * len(z)) < 3 * math.sqrt(share * (1 - share) * len(z)), (measure, inside, len(z))
        # Errors that are too large are not seen by counting.
        assert abs(np.mean(z**2) - 1) < 4 * math.sqrt(2 / len(z)), measure


@pytest.mark.slow
def test_a_wrong_exact_value_or_error_is_seen(z_scores):
    """Negative control: errors half as large do not pass."""
    z = np.array([value for key, value in z_scores.items() if key[2] == "entropy"])
    assert np.sum(np.abs(2 * z) < 1.96) < 0.95 * len(z) - 3 * math.sqrt(0.95 * 0.05 * len(z))


@pytest.mark.slow
def test_drawing_by_groups_has_the_law_of_drawing_every_key():
    n, n_rows, spreads = 2048, 12_000, (0.5, 3.0, 6.0, 20.0)
    grouped = list(energy_grid.GroupedRows(n, spreads)(streams.generator(1, "grouped"), n_rows))
    plain = [[] for _ in spreads]
    for i in range(12):
        rows = energy_grid.plain_rows(streams.generator(1, "plain", i), n, 500, spreads)
        for k, (row, largest) in enumerate(rows):
            plain[k].append(energy_grid.row_measures(row, largest, spreads[k]))
    for s, (row, largest), every in zip(spreads, grouped, plain, strict=True):
        assert row.n_keys == n
        one, other = energy_grid.row_measures(row, largest, s), np.concatenate(every, axis=1)
        for name, x, y in zip(energy_grid.ROW_MEASURES, one, other, strict=True):
            error = math.hypot(x.std() / len(x) ** 0.5, y.std() / len(y) ** 0.5)
            assert abs(x.mean() - y.mean()) < 4.5 * error, (s, name)
            # The spread of single rows too, by the spread of their squared deviations.
            squares = [(v - v.mean()) ** 2 for v in (x, y)]
            error = math.hypot(*(v.std() / len(v) ** 0.5 for v in squares))
            assert abs(squares[0].mean() - squares[1].mean()) < 4.5 * error, (s, name)


def test_cells_of_any_small_width_give_the_same_averages(monkeypatch):
    """Half the width leaves the averages where they are, and a coarse one does too: cell averages are exact."""
    n, s = 65536, 3.0
    for cell in (1 / 48, 1 / 4):
        monkeypatch.setattr(energy_grid, "CELL", cell)
        for row in simulate(n, [s], 5, 2_000_000):
            if row["measure"] in ("entropy", "log_partition", "participation_ratio"):
                assert abs(row["estimate"] - exact(n, s)[row["measure"]]) < 4.5 * row["se"], (cell, row["measure"])


def test_another_spread_leaves_the_numbers_of_the_others():
    for n in (16, 1024):
        alone, both = simulate(n, [4.0], 7, 50_000), simulate(n, [1.0, 4.0], 7, 50_000)
        assert [row for row in both if row["logit_std"] == 4] == alone
        assert simulate(n, [4.0], 8, 50_000)[0]["estimate"] != alone[0]["estimate"]


def test_rows_are_what_softmax_measures():
    g = np.random.default_rng(2).standard_normal((50, 9))
    row, s = softmax.rank(g).soften(3.0), 3.0
    values = dict(zip(energy_grid.ROW_MEASURES, energy_grid.row_measures(row, s * g.max(axis=1), s), strict=True))
    p = softmax.softmax(s * g)
    np.testing.assert_allclose(values["cube"], (p**3).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(values["log_partition"], np.log(np.exp(s * g).sum(axis=1)), rtol=1e-12)
    np.testing.assert_allclose(
        values["identity"], -(p * s * g).sum(axis=1) + s**2 * (1 - (p**2).sum(axis=1)), rtol=1e-9
    )
    assert set(energy_grid.ROW_MEASURES) == set(values)


def test_running_moments_are_those_of_all_rows():
    values = np.random.default_rng(3).exponential(size=(2, 1000)) + np.array([[0.0], [1e6]])
    running = energy_grid.RowMoments()
    for part in np.split(values, [10, 500], axis=1):
        running.add(part)
    mean, se, skewness = running.summary()
    np.testing.assert_allclose(mean, values.mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(se, values.std(axis=1, ddof=1) / 1000**0.5, rtol=1e-8)
    third = ((values - values.mean(axis=1, keepdims=True)) ** 3).mean(axis=1) / values.std(axis=1) ** 3
    np.testing.assert_allclose(skewness, third / 1000**0.5, rtol=1e-6)


def test_the_error_of_a_median_is_that_of_its_repetitions():
    rng = np.random.default_rng(4)
    samples = np.exp(3 * rng.standard_normal((400, 500)))
    found = [energy_grid.median(sample) for sample in samples]
    z = [math.log(centre) / (se / centre) for centre, se in found]
    assert 0.85 < np.std(z) < 1.15
    assert energy_grid.median(np.zeros(9)) == (0.0, 0.0)


def test_goals_that_are_missed_and_errors_that_cannot_be_trusted_are_said():
    rows = {(row["logit_std"], row["measure"]): row for row in simulate(2**20, [1.0, 2.5], 1, 500_000)}
    assert rows[1.0, "entropy"]["precise"] is True
    assert rows[1.0, "log_partition"]["precise"] is None
    # Σp³ at s = 2.5 comes from one row in thousands.
    assert rows[2.5, "cube"]["trusted"] is False
    assert rows[2.5, "participation_ratio"]["precise"] is False
    assert (1.0, "jacobian_spectral") not in rows


def test_a_million_keys_need_little_memory():
    tracemalloc.start()
    simulate(2**20, SPREADS, 1, 2_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
