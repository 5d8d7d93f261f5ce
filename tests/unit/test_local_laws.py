"""Local exponents and laws of the interquartile range: identities, closed forms, coverage, refusals."""

import numpy as np
import pandas as pd
import pytest
from test_laws import FULL, VARIANCE_LAWS, moments, rows, study

from sqrtdk.results.described import columns
from sqrtdk.sampling import local_laws
from sqrtdk.sampling.laws import SPREAD_LAWS, fit_spread_laws, fit_variance_laws
from sqrtdk.statistics.intervals import t_quantile


def table(law="quadratic", parameters=(0.91, 0.09), d_k=FULL, seed=3, **columns):
    values, se = study(VARIANCE_LAWS[law], parameters, d_k, np.random.default_rng(seed))
    exact = VARIANCE_LAWS[law](d_k, *parameters)
    spread = {"interquartile_range": 1.3 * np.sqrt(exact), "interquartile_range_se": 0.001 * np.sqrt(exact)}
    return moments("one", d_k, values, se, **spread, exact_variance=exact, **columns)


def local(frame, quantity="variance"):
    found = local_laws.local_exponents(frame)
    return found[found["quantity"] == quantity].reset_index(drop=True)


def test_exponent_of_a_doubling_is_the_binary_logarithm_of_the_ratio():
    frame = table()
    found = local(frame)
    assert set(found.columns) == set(columns("local_exponents"))
    assert found["d_k_low"].tolist() == FULL[:-1].tolist()
    assert found["exponent"].to_numpy() == pytest.approx(np.diff(np.log2(frame["variance"])))
    assert found["exact"].to_numpy() == pytest.approx(np.diff(np.log2(frame["exact_variance"])))
    relative = (frame["variance_se"] / frame["variance"]).to_numpy()
    assert found["se"].to_numpy() == pytest.approx(np.hypot(relative[1:], relative[:-1]) / np.log(2))
    assert local(frame, "interquartile_range")["exponent"].to_numpy() == pytest.approx(found["exact"].to_numpy() / 2)
    # V = a d + b d² has local exponent log2(2 (a + 2 b d)/(a + b d)), half-way from 1 to 2 near d = a/b.
    low = FULL[:-1]
    assert found["exact"].to_numpy() == pytest.approx(np.log2(2 * (0.91 + 0.18 * low) / (0.91 + 0.09 * low)))


def test_weighted_sum_of_local_exponents_is_the_exponent_of_the_power_law():
    for frame in (table(), table("power", (2.0, 0.6), FULL[[0, 1, 3, 7, 12]])):
        found = local(frame)
        power = rows(fit_variance_laws(frame, 64), "power").loc["exponent"]
        assert found["weight"].sum() == pytest.approx(1)
        assert (found["weight"] > 0).all()
        assert (found["weight"] * found["exponent"]).sum() == pytest.approx(power["estimate"], rel=1e-9)
        assert (found["weight"] * found["exact"]).sum() == pytest.approx(power["exact"], rel=1e-9)


def test_an_end_that_is_known_exactly_has_no_weight_but_an_exponent():
    frame = table("linear", (1.0,))
    frame.loc[0, ["variance", "variance_se"]] = [1.0, 0.0]
    frame.loc[0, "stopped_by"] = "degenerate"
    found = local(frame)
    assert found["weight"].iloc[0] == pytest.approx(0, abs=1e-9)
    assert found["se"].iloc[0] == pytest.approx(frame["variance_se"][1] / frame["variance"][1] / np.log(2))
    power = rows(fit_variance_laws(frame, 64), "power").loc["exponent"]
    assert (found["weight"] * found["exponent"]).sum() == pytest.approx(power["estimate"], rel=1e-9)


def test_missing_ends_say_why_and_keep_the_exact_exponent():
    frame = table().astype({"reason": object})
    frame.loc[4, "variance_se"], frame.loc[4, "reason"] = np.nan, "tails too heavy"
    frame.loc[7, "variance"] = -1.0
    found = local(frame)
    numbers = ["exponent", "se", "ci_low", "ci_high", "weight"]
    assert found[numbers].isna().all(axis=1).tolist() == [i in (3, 4, 6, 7) for i in range(12)]
    assert found["exact"].notna().all()
    assert found["reason"][3] == "left out d_k = 16: tails too heavy"
    assert found["reason"][6] == "left out d_k = 128: the variance estimate is negative"
    assert (found["reason"] == "").sum() == 8


def test_one_width_and_real_heads_have_no_local_exponent():
    assert local_laws.local_exponents(moments("one", [4], 4.0, 0.1)).empty
    assert local_laws.local_exponents(moments("head", [32], 4.0, 0.1, stopped_by="enumerated")).empty


def coverage(factor=1.0, n_studies=400, n_blocks=8):
    """Count the local intervals that hold the exact exponent, over studies whose se are estimated from few blocks."""
    rng, inside = np.random.default_rng([21, n_blocks]), 0
    for _ in range(n_studies):
        values, se = study(VARIANCE_LAWS["quadratic"], (0.91, 0.09), FULL[:4], rng, n_blocks)
        exact = VARIANCE_LAWS["quadratic"](FULL[:4], 0.91, 0.09)
        found = local(moments("one", FULL[:4], values, se * factor, n_blocks=n_blocks, exact_variance=exact))
        inside += int(((found["ci_low"] <= found["exact"]) & (found["exact"] <= found["ci_high"]))[[0, 2]].sum())
    return inside, 2 * n_studies


@pytest.mark.slow
def test_intervals_cover_even_with_few_blocks_and_a_wrong_error_is_caught():
    inside, total = coverage()
    assert abs(inside - 0.95 * total) < 4 * np.sqrt(0.95 * 0.05 * total)
    inside, total = coverage(0.5)
    assert abs(inside - 0.95 * total) > 4 * np.sqrt(0.95 * 0.05 * total)


def test_columns_of_a_fit_hold_its_interval():
    frame = fit_variance_laws(table(n_blocks=12), 64)
    half = t_quantile(frame["ci_dof"]) * frame["se"]
    assert (frame["ci_high"] - frame["estimate"]).to_numpy() == pytest.approx(half.to_numpy(), rel=1e-9)


@pytest.mark.slow
def test_ranges_of_quartiles_follow_the_square_root_or_another_power():
    assert list(SPREAD_LAWS) == ["square_root", "power", "power_tail"]
    rng = np.random.default_rng(8)
    for exponent, chosen in ((0.5, "square_root"), (0.65, "power")):
        truth, selected, z = 1.35 * FULL**exponent, [], []
        for _ in range(40):
            ranges = truth * (1 + 0.002 * rng.standard_normal(13))
            frame = moments("heavy", FULL, np.nan, np.nan, reason="tails too heavy")
            fitted = fit_spread_laws(
                frame.assign(interquartile_range=ranges, interquartile_range_se=0.002 * ranges), 64
            )
            selected += set(fitted.loc[fitted["selected"], "law"])
            power = rows(fitted, "power").loc["exponent"]
            z.append((power["estimate"] - exponent) / power["se"])
        assert selected.count(chosen) >= 38
        assert abs(np.mean(z)) < 4 / np.sqrt(40)
        assert rows(fitted, "power_tail")["d_k_min"].tolist() == [64, 64]
        assert fitted["exact"].isna().all()
        # The variance of the same cells is refused with the reason of the cells.
        refused = fit_variance_laws(frame, 64)
        assert not refused["estimable"].any()
        assert set(refused["reason"]) == {"tails too heavy"}


def test_ranges_without_scatter_are_refused_in_words():
    frame = table().assign(interquartile_range_se=0.0)
    reasons = set(fit_spread_laws(frame, 64)["reason"])
    assert reasons == {"the interquartile range estimate has no sampling error, so it has no weight"}
    assert local(frame, "interquartile_range")["exponent"].isna().all()


def test_order_of_rows_does_not_matter():
    frame = pd.concat([table(), table("linear", (1.0,), seed=4).assign(ensemble="two")])
    one, other = (local_laws.local_exponents(x) for x in (frame, frame.iloc[::-1]))
    keys = ["ensemble", "quantity", "d_k_low"]
    pd.testing.assert_frame_equal(one.sort_values(keys, ignore_index=True), other.sort_values(keys, ignore_index=True))


@pytest.mark.slow
def test_ar1_tail_slope_agrees_with_its_theory():
    r, rng, z = 0.8 * 0.5, np.random.default_rng(11), []
    slope = (1 + r) / (1 - r)
    exact = FULL * slope - 2 * r * (1 - r**FULL) / (1 - r) ** 2
    for _ in range(50):
        values = exact * (1 + 0.001 * rng.standard_normal(13))
        fitted = fit_variance_laws(moments("ar1", FULL, values, 0.001 * values, exact_variance=exact), 64)
        tail, chosen = rows(fitted, "affine_tail").loc["slope"], fitted[fitted["selected"]]
        assert tail["exact"] == pytest.approx(slope, rel=1e-9)
        z.append((tail["estimate"] - slope) / tail["se"])
        assert set(chosen["law"]) == {"affine"}  # no law of the whole range is true, and the chosen one says so
        assert chosen["reason"].str.contains("rejects it").all()
    assert abs(np.mean(z)) < 4 / np.sqrt(50)
    assert np.mean(np.square(z)) == pytest.approx(1, abs=4 * np.sqrt(2 / 50))
