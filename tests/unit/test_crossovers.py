"""Where the unscaled gradient falls below the scaled one, and the factors of their ratio."""

import csv
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sqrtdk.results.described import columns
from sqrtdk.results.writing import write_table
from sqrtdk.rows import softmax
from sqrtdk.sampling import ensembles
from sqrtdk.studies import crossovers, gradients_by_keys, saturation
from sqrtdk.studies.crossovers import crossing
from sqrtdk.theory import asymptotics, random_energy

WIDTHS = [1, 4, 16, 64, 256]
NOISE = [0.01] * 5


def line(d_k):
    """Return a straight line in ln d_k that is 0 at 36."""
    return np.log(36 / d_k) / 2


def test_crossing_of_a_line_in_the_logarithm_of_d_k():
    """The error of its ends shifts the logarithm by twice the error, for the slope is −1/2."""
    found = crossing(WIDTHS, [line(d) for d in WIDTHS], NOISE, 2.0)
    assert found["d_k_star"] == pytest.approx(36)
    assert found["reason"] is None
    share = math.log(36 / 16) / math.log(4)
    half = math.exp(2 * 2 * 0.01 * math.hypot(1 - share, share))
    assert (found["ci_low"], found["ci_high"]) == (pytest.approx(36 / half), pytest.approx(36 * half))


def test_the_interval_of_two_widths_alone_reaches_from_one_to_the_other():
    found = crossing([16, 64], [line(16), line(64)], [0.0, 0.0], 2.0)
    assert found["d_k_star"] == pytest.approx(36)
    assert found["ci_low"] <= 16 < 64 <= found["ci_high"] * 1.0000001


@pytest.mark.parametrize(
    ("ratio", "reason"),
    [
        ([0.0, 0.5, 0.6, 0.7, 0.8], "not below at the largest width"),
        ([0.0, -0.5, -0.6, -0.7, 0.1], "not below at the largest width"),
        ([0.0, -0.5, -0.6, -0.7, -0.8], "below from the second width on"),
        ([-0.1, -0.5, -0.6, -0.7, -0.8], "below at every width"),
    ],
)
def test_no_crossing_has_a_reason(ratio, reason):
    found = crossing(WIDTHS, ratio, NOISE, 2.0)
    assert found == dict.fromkeys(("d_k_star", "ci_low", "ci_high")) | {"reason": reason}


def test_the_last_crossing_counts():
    found = crossing(WIDTHS, [0.0, -0.01, 0.3, -0.3, -1.0], NOISE, 2.0)
    # Where the points lie on no straight line, the interval includes that between the neighbours.
    assert found["ci_low"] < 36 < found["d_k_star"] < 64


@pytest.mark.parametrize("n_keys", [8, 16, 32, 64, 128])
def test_the_interval_includes_what_is_not_known_between_the_widths(n_keys):
    """Root mean squares of the logits' gradient are exact: between widths a factor of 2 apart only the curve is not."""
    exact = gradients_by_keys.RootMeanSquares(n_keys, gradients_by_keys.exact_averages([n_keys])[n_keys])

    def log_ratio(d_k):
        return exact.log_ratios(d_k)["grad_logits"].value

    widths = gradients_by_keys.WIDTHS
    found = crossing(widths, [log_ratio(d_k) for d_k in widths], [0.0] * len(widths), 2.0)
    assert log_ratio(found["ci_low"]) > 0 > log_ratio(found["ci_high"])
    assert found["ci_low"] > 0.7 * found["d_k_star"]


def test_intervals_of_a_crossing_cover():
    """More often than in 95 %, for what is not known of the curve is there beside the noise."""
    rng, inside = np.random.default_rng(1), 0
    exact = np.array([line(d) for d in WIDTHS])
    for _ in range(400):
        found = crossing(WIDTHS, exact + 0.02 * rng.standard_normal(5), [0.02] * 5, 1.96)
        inside += found["ci_low"] <= 36 <= found["ci_high"]
    assert 0.95 - 3.5 * math.sqrt(0.95 * 0.05 / 400) < inside / 400 < 1


def test_frozen_crossover():
    """Science of the frozen phase, and a simulation of the median of ‖J‖_F for Gaussian logits of s = √d_k and 1."""
    values = [asymptotics.frozen_crossover(n) for n in (16, 64, 256, 1024)]
    assert values == pytest.approx([20, 68, 161, 317], rel=0.01)
    ranked = softmax.rank(np.random.default_rng(2).standard_normal((20_000, 64)))
    spreads = [math.sqrt(d) for d in (40, 50, 60, 70, 80, 100)]
    medians = [np.median(softmax.jacobian_frobenius(ranked.soften(s))) for s in (*spreads, 1.0)]
    ratio = np.log(np.array(medians[:-1]) / medians[-1])
    found = crossing([s * s for s in spreads], ratio, [0.01] * 6, 2.0)
    assert found["d_k_star"] == pytest.approx(asymptotics.frozen_crossover(64), rel=0.1)


def sizes(plain, scaled, measure="grad_logits", quantity="median"):
    cells = {}
    for d_k, value, other in zip(WIDTHS, plain, scaled, strict=True):
        cells[d_k, "none"] = value, 0.01 * value, 64
        cells[d_k, "1/sqrt(d_k)"] = other, 0.01 * other, 64
    return {("mine", 64, measure, quantity): cells}


def test_rows_of_the_table():
    falling = [0.2 * math.exp(line(d)) for d in WIDTHS]
    (row,) = crossovers.crossovers(sizes(falling, [0.2] * 5))
    assert set(row) == set(columns("gradient_crossovers"))
    assert row["d_k_star"] == pytest.approx(36)
    assert row["d_k_formula"] is None
    (row,) = crossovers.crossovers(sizes(falling, [0.2] * 5, "jacobian_frobenius"), ["mine"])
    assert row["d_k_formula"] == asymptotics.frozen_crossover(64)
    (row,) = crossovers.crossovers(sizes(falling, [0.2] * 5, "jacobian_frobenius"), ["another"])
    assert row["d_k_formula"] is None
    (row,) = crossovers.crossovers(sizes([*falling[:4], 0.0], [0.2] * 5))
    assert row["d_k_star"] == pytest.approx(36)  # no curve is laid through a gradient of 0
    (row,) = crossovers.crossovers(sizes(falling, [0.0] * 5))
    assert row["reason"] == "the scaled gradient is zero"
    (row,) = crossovers.crossovers({("mine", 64, "grad_query", "rms"): {(4, "none"): (1.0, 0.1, 64)}})
    assert row["reason"] == "one of the two scale rules is missing"


def gaussian_rows(d_k, n_keys):
    _, rows, _ = saturation.simulate_cell(
        ensembles.build({"family": "gaussian"}), d_k, [n_keys], ["none", "1/sqrt(d_k)", "1/d_k"], 3, "g", 1_000_000
    )
    return rows


@pytest.mark.slow
def test_decomposition_against_the_identity_for_gaussian_keys():
    """E‖g_q‖² = c²(d_k − 1) E‖J‖²_F + E[‖Jz‖²/‖q‖²], integrated over the query's norm for every factor."""
    d_k, n_keys = 8, 16
    rows = gaussian_rows(d_k, n_keys)
    assert {row["theory"] for row in rows} == {None}
    norms = np.sqrt(np.random.default_rng(4).chisquare(d_k, 300))
    exact = {}
    for scaling, factor in (("none", 1.0), ("1/sqrt(d_k)", d_k**-0.5), ("1/d_k", 1 / d_k)):
        found = [random_energy.averages(n_keys, factor * norm) for norm in norms]
        jacobian = np.mean([one.jacobian_square for one in found])
        pull = np.mean([one.pull for one in found])
        exact[scaling] = jacobian**0.5, (factor**2 * ((d_k - 1) * jacobian + pull)) ** 0.5
    for row in rows:
        if not row["measure"].endswith("_values"):
            row["theory"] = {"grad_logits": exact[row["scaling"]][0]}.get(row["measure"], exact[row["scaling"]][1])
    table = crossovers.decomposition(rows)
    assert [row["scaling"] for row in table] == ["none", "1/d_k"]
    for row in table:
        assert set(row) == set(columns("gradient_decomposition"))
        assert row["total"] == pytest.approx(row["scale_part"] * row["softmax_part"] * row["rest"])
        assert row["exact_total"] == pytest.approx(row["scale_part"] * row["exact_softmax_part"] * row["exact_rest"])
        assert abs(row["total"] / row["exact_total"] - 1) < 0.04
        assert abs(row["softmax_part"] - row["exact_softmax_part"]) < 4.5 * row["softmax_part_se"] + 0.03
        assert row["exact_rest"] == pytest.approx(row["rest"], abs=4.5 * row["rest_se"])
    plain, soft = table
    assert plain["scale_part"] == pytest.approx(8**0.5)
    assert soft["scale_part"] == pytest.approx(8**-0.5)


def test_decomposition_without_a_size_or_a_reference():
    zero = [{**row, "estimate": 0.0, "se": 0.0} for row in gaussian_rows(2, 1)]
    for row in crossovers.decomposition(zero):
        assert (row["total"], row["rest"]) == (None, None)
    alone = [row for row in gaussian_rows(2, 4) if row["scaling"] == "none"]
    assert crossovers.decomposition(alone) == []


@pytest.mark.slow
def test_script_writes_both_tables(tmp_path):
    scripts = Path(crossovers.__file__).parents[2]
    gradients, distribution = [], []
    for d_k in (4, 64, 256):
        _, rows, more = saturation.simulate_cell(
            ensembles.build({"family": "gaussian"}), d_k, [8], ["none", "1/sqrt(d_k)"], 3, "g", 50_000
        )
        gradients, distribution = gradients + rows, distribution + more
    options = ("magnitude", "distribution", "crossings", "decomposition")
    tables = ("gradient_magnitude", "gradient_distribution", "gradient_crossovers", "gradient_decomposition")
    names = {option: tmp_path / f"{table}.csv" for option, table in zip(options, tables, strict=True)}
    write_table(names["magnitude"], gradients)
    write_table(names["distribution"], distribution)
    options = [text for name, path in names.items() for text in (f"--{name}", str(path))]
    options += ["--standard", '["g"]']
    subprocess.run([sys.executable, str(scripts / "compare_gradients.py"), *options], check=True)
    texts = [names[name].read_text(encoding="utf-8") for name in ("crossings", "decomposition")]
    crossed, parts = (list(csv.DictReader(text.splitlines())) for text in texts)
    keys = [(row["measure"], row["quantity"]) for row in crossed]
    assert keys == [
        ("jacobian_frobenius", "median"),
        *((measure, quantity) for measure in ("grad_logits", "grad_query") for quantity in ("median", "rms")),
    ]
    assert {row["d_k_formula"] for row in crossed} == {""}  # of 8 keys
    assert 4 < float(crossed[0]["ci_low"]) < float(crossed[0]["d_k_star"]) < float(crossed[0]["ci_high"]) < 64
    assert [row["d_k"] for row in parts] == ["4", "64", "256"]
    assert float(parts[1]["scale_part"]) == pytest.approx(8)
