"""Monte Carlo of normalisers: estimates beside exact values, and streams of their own."""

import math

import numpy as np
import pandas as pd
import pytest

from sqrtdk.report.tables import normalisers
from sqrtdk.report.tables.cells import NONE
from sqrtdk.studies import normalisation
from sqrtdk.studies.normalisation import measures, simulate_kernels, simulate_normalisers
from sqrtdk.variants.normalisers import Sink, Softmax, Softmax1, Sparsemax
from sqrtdk.words import numbers


@pytest.fixture(scope="module")
def rows():
    return pd.DataFrame(simulate_normalisers(1, 64_000))


@pytest.fixture(scope="module")
def kernel_rows():
    return pd.DataFrame(simulate_kernels(1, n_blocks=64))


def test_measures_by_hand():
    z = np.log(np.array([[1.0, 2.0, 5.0]]))
    found = {name: float(values[0]) for name, values in measures(Sink(b=math.log(2)), z).items()}
    p, n = np.array([0.1, 0.2, 0.5]), 8.0
    jacobian = np.diag(p) - np.outer(p, p)
    assert found == pytest.approx(
        {
            "row_sum": 0.8,
            "max_weight": 0.5,
            "participation_ratio": 30 / n**2,
            "effective_keys": n**2 / 30,
            "support": 3,
            "one_hot_share": 0,
            "null_mass": 0.2,
            "jacobian_frobenius": np.linalg.norm(jacobian),
            "zero_gradient_mass": 0,
        }
    )


def test_rows_without_a_gradient_or_a_weight_are_counted():
    found = measures(Sparsemax(), np.array([[3.0, 0.0], [0.5, 0.0]]))
    assert found["one_hot_share"].tolist() == found["zero_gradient_mass"].tolist() == [1, 0]
    assert "null_mass" not in found
    # The sink takes all: weights underflow, and nothing is divided by zero.
    nothing = measures(Sink(b=2000), np.zeros((1, 2)))
    assert nothing["effective_keys"] == nothing["row_sum"] == nothing["support"] == 0
    assert nothing["null_mass"] == 1
    # A single key with a sink is one-hot and has a gradient all the same.
    single = measures(Softmax1(), np.zeros((1, 1)))
    assert single["one_hot_share"] == 1
    assert single["zero_gradient_mass"] == 0


@pytest.mark.slow
def test_every_combination_has_one_row(rows):
    keys = ["normaliser", "logit_std", "n_keys", "measure"]
    assert not rows.duplicated(keys).any()
    cells = len(normalisation.NORMALISERS) * len(normalisation.LOGIT_STDS) * len(normalisation.N_KEYS)
    # null_mass is that of softmax1 and of the sink.
    assert len(rows) == cells * 8 + cells * 2 // len(normalisation.NORMALISERS)
    assert (rows["median"].notna() == (rows["measure"] == "jacobian_frobenius")).all()


def test_rows_that_are_all_equal_have_no_error_of_rounding(rows):
    equal = (rows["logit_std"] == 0) & (rows["measure"] != "jacobian_frobenius")
    assert (rows.loc[equal, "se"] == 0).all()
    whole = (rows["measure"] == "row_sum") & (rows["exact"] == 1)
    assert (rows.loc[whole, "se"] == 0).all()


def test_means_of_rare_rows_have_no_error(rows):
    """At s = 16 the mean null mass is that of the few rows without a large logit, and far from its exact value."""
    null = rows[rows["measure"].isin(["null_mass", "row_sum"]) & rows["normaliser"].isin(["softmax1", "sink(b=4)"])]
    wide = null["logit_std"] == 16
    assert null.loc[wide, "se"].isna().all()
    assert null.loc[null["logit_std"] <= 1, "se"].notna().all()
    assert rows.drop(null.index)["se"].notna().all()
    rare = null[wide & (null["measure"] == "null_mass")]
    assert (abs(rare["estimate"] / rare["exact"] - 1) > 0.2).any()


def test_estimates_agree_with_exact_values(rows):
    known = rows[rows["exact"].notna() & rows["se"].notna()]
    assert len(known) > 300
    shares = known["measure"].isin(["one_hot_share", "zero_gradient_mass"])
    binomial = np.sqrt(known["exact"] * (1 - known["exact"]).clip(lower=0) / known["n_rows"])
    # A share of which no row was seen has no measured error.
    se = known["se"].where(~shares, binomial)
    z = (known["estimate"] - known["exact"]).abs() / (se + 1e-9 * known["exact"].clip(lower=1e-3))
    assert z.max() < 4.5, known.loc[z.idxmax()]


def test_errors_are_the_spread_of_estimates_between_seeds():
    runs = pd.DataFrame(
        [row for seed in range(200) for row in simulate_normalisers(seed, 6400, [Sparsemax()], [2], [64])]
    )
    for measure in ("max_weight", "effective_keys", "one_hot_share", "jacobian_frobenius"):
        some = runs[runs["measure"] == measure]
        ratio = some["estimate"].var() / (some["se"] ** 2).mean()
        assert abs(ratio - 1) < 4.5 * math.sqrt(2 / 199), measure


def test_another_normaliser_or_spread_changes_no_number(rows):
    few = pd.DataFrame(simulate_normalisers(1, 64_000, [Sparsemax()], [8], [64]))
    same = rows[(rows["normaliser"] == "sparsemax") & (rows["logit_std"] == 8) & (rows["n_keys"] == 64)]
    pd.testing.assert_frame_equal(few, same.reset_index(drop=True))


def test_softmax1_and_a_sink_do_not_reduce_saturation(rows):
    """The weights relative to their sum are those of softmax, row by row."""
    table = rows[rows["measure"] == "effective_keys"].pivot(
        index=["logit_std", "n_keys"], columns="normaliser", values="estimate"
    )
    for name in ("softmax1", "sink(b=4)", "post_scale(a=2)"):
        np.testing.assert_allclose(table[name], table["softmax"], rtol=1e-9)


@pytest.mark.slow
def test_kernels_agree_with_exact_values(kernel_rows):
    known = kernel_rows[kernel_rows["exact"].notna()]
    relu = known[known["attention"] == "relu"]
    assert (relu["estimate"] == 0).all()
    rest = known.drop(relu.index)
    assert len(rest) == 3 * 4
    assert ((rest["estimate"] - rest["exact"]).abs() < 4.5 * rest["se"]).all()


def test_what_the_scale_does_to_each_kind_of_attention(kernel_rows):
    between = kernel_rows[kernel_rows["measure"] == "total_variation_between_scales"]
    found = between[between["d_k"] == 64].set_index("attention")["estimate"]
    assert found["relu"] == 0
    assert 0 < found["elu+1"] < 0.05
    assert found["softmax"] > 0.5
    from_softmax = kernel_rows[
        (kernel_rows["measure"] == "total_variation_from_softmax") & (kernel_rows["d_k"] == 64)
    ].set_index("scaling")["estimate"]
    assert from_softmax["none"] > 0.8
    # Better with the scale, and still far off: 2√d_k is in the exponent of the variance.
    assert 0.3 < from_softmax["1/sqrt(d_k)"] < 0.7


def test_table_says_what_the_rows_say(rows):
    table = normalisers.normalisers(rows)
    assert [row[0].text.values["text"] for row in table.rows] == [one.spelling for one in normalisation.NORMALISERS]
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    here = rows[(rows["normaliser"] == Softmax().spelling) & (rows["n_keys"] == 64)]
    for s, part in ((1, "text"), (8, "note")):
        frame = here[here["logit_std"] == s].set_index("measure")
        keys, norm = frame.loc["effective_keys"], frame.loc["jacobian_frobenius"]
        assert getattr(cells["effective_keys"], part) == numbers.with_error(keys["estimate"], keys["se"])
        assert getattr(cells["jacobian_rms"], part) == numbers.with_error(norm["estimate"], norm["se"])
        assert getattr(cells["jacobian_median"], part) == numbers.with_error(norm["median"], norm["median_se"])


def test_table_of_linear_attention_has_a_dash_for_what_is_not_measured(kernel_rows):
    table = normalisers.linear_attention(kernel_rows)
    found = {row[0].text: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert list(found) == ["softmax", "relu", "elu+1", "favor+", "additive"]
    assert found["relu"]["change"].text == "0"
    assert found["relu"]["change"].note == "0"
    for name, cells in found.items():
        assert (cells["error_scaled"] == NONE) == (name != "favor+")
        assert cells["effective_scaled"].number
    assert table.values == {"d_k": "64", "n_keys": "64"}
