"""Laws of variance and mean: closed forms, second implementations, invariances, coverage, choice, refusals."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

import fit_variance_laws as script
from sqrtdk.results import reading
from sqrtdk.results.described import columns
from sqrtdk.results.writing import write_table
from sqrtdk.sampling.laws import (
    MEAN_LAWS,
    VARIANCE_LAWS,
    fit_law,
    fit_mean_laws,
    fit_spread_laws,
    fit_variance_laws,
    select,
)

FULL = 2.0 ** np.arange(13)  # 1 to 4096
GRIDS = {"full": FULL, "wide": 2.0 ** np.arange(17), "quick": 4.0 ** np.arange(5), "shortest": 8.0 ** np.arange(4)}
ONE_OF_EACH = [("linear", (1.0,)), ("power", (1.0, 1.5)), ("affine", (5.0, 2.0)), ("quadratic", (0.91, 0.09))]
TRUTHS = [*ONE_OF_EACH, ("power", (2.0, 0.6)), ("affine", (-0.5, 1.0)), ("quadratic", (1.0, 1e-4))]
NUMBERS = ["estimate", "se", "ci_low", "ci_high", "exact", "chi2", "dof", "p_value", "aicc"]


def moments(ensemble, d_k, variance, variance_se, mean=0.0, mean_se=0.01, **columns):
    """Make the rows of one ensemble in moments.csv, as far as the fits read them."""
    defaults = {"n_blocks": 200, "stopped_by": "precision", "exact_mean": np.nan, "exact_variance": np.nan}
    values = {"variance": variance, "variance_se": variance_se, "mean": mean, "mean_se": mean_se}
    values |= {"interquartile_range": np.sqrt(np.abs(variance)), "interquartile_range_se": 0.01}
    frame = {"ensemble": ensemble, "d_k": np.asarray(d_k, dtype=int), "reason": np.nan} | defaults | values | columns
    return pd.DataFrame({name: pd.Series(np.broadcast_to(x, len(d_k))) for name, x in frame.items()})


def study(law, parameters, d_k, rng, n_blocks=None):
    """Simulate estimates with relative errors 0.001 to 0.03 and, with n_blocks, estimated standard errors."""
    truth = law(d_k, *parameters)
    se = np.abs(truth) * np.exp(rng.uniform(np.log(0.001), np.log(0.03), d_k.size))
    values = truth + se * rng.standard_normal(d_k.size)
    return values, se if n_blocks is None else se * np.sqrt(rng.chisquare(n_blocks - 1, d_k.size) / (n_blocks - 1))


def noisy(name, parameters, seed=7):
    return study(VARIANCE_LAWS[name], parameters, FULL, np.random.default_rng(seed))


def fit_all(laws, d_k, values, se, n_blocks=None, log=True):
    blocks = None if n_blocks is None else np.full(d_k.size, n_blocks)
    return {law.name: fit_law(law, d_k, values, se, blocks, log=log) for law in laws.values() if not law.tail}


def rows(frame, law, ensemble=None):
    chosen = frame["law"].eq(law) & (frame["ensemble"].eq(ensemble) if ensemble else True)
    return frame[chosen].set_index("parameter")


@pytest.mark.parametrize("law", [*VARIANCE_LAWS.values(), *MEAN_LAWS.values()], ids=lambda law: law.name)
def test_formula_and_gradient_belong_to_the_function(law):
    theta, d_k, step = np.array([0.7, 1.3])[: len(law.parameters)], GRIDS["quick"], 1e-6
    named = dict(zip(law.parameters, theta, strict=True))
    np.testing.assert_allclose(law(d_k, *theta), eval(law.formula.removeprefix("y = "), {"d_k": d_k} | named) + 0 * d_k)
    for i in range(theta.size):
        shift = step * np.eye(theta.size)[i]
        difference = (law(d_k, *(theta + shift)) - law(d_k, *(theta - shift))) / (2 * step)
        np.testing.assert_allclose(law.columns(d_k, theta)[:, i], difference, rtol=1e-8)


@pytest.mark.parametrize("grid", ["full", "wide", "quick"])
@pytest.mark.parametrize(("name", "parameters"), TRUTHS)
def test_exact_variances_give_the_parameters_back(name, parameters, grid):
    law, d_k = VARIANCE_LAWS[name], GRIDS[grid]
    truth = law(d_k, *parameters)
    fit = fit_law(law, d_k, truth, 0.001 * truth, log=True)
    np.testing.assert_allclose(fit.estimates, parameters, rtol=1e-10)
    assert fit.dof == d_k.size - len(parameters)
    assert (fit.chi2, fit.p_value) == pytest.approx((0, 1), abs=1e-12)


@pytest.mark.parametrize("parameters", [(0.5, 1.0), (-0.125, 1.0), (-2.0, 0.5), (1.0, 0.0)])
def test_exact_means_of_either_sign_give_the_parameters_back(parameters):
    law, d_k = MEAN_LAWS["power"], GRIDS["wide"]
    fit = fit_law(law, d_k, law(d_k, *parameters), 0.01 * np.sqrt(d_k), log=False)
    np.testing.assert_allclose(fit.estimates, parameters, rtol=1e-9, atol=1e-9)
    only_first = fit_law(law, d_k, np.where(d_k == 1, 1.0, 0.0), np.full(17, 1e-3), log=False)
    assert (only_first.estimable, only_first.reason) == (False, "no exponent between -4 and 4 fits")


def test_impossible_data_raise():
    good = {"d_k": [1, 2, 4], "values": [1, 2, 3], "se": [0.1, 0.1, 0.1], "n_blocks": None}
    bad = {"distinct": {"d_k": [1, 2, 2]}, "one length": {"values": [1, 2]}, "finite": {"values": [1, np.nan, 3]}}
    bad |= {"positive values": {"values": [1, -2, 3]}, "se positive": {"se": [0.1, 0, 0.1]}}
    for message, change in (bad | {"at least 2 blocks": {"n_blocks": [64, 1, 64]}}).items():
        with pytest.raises(ValueError, match=message):
            fit_law(VARIANCE_LAWS["linear"], **(good | change), log=True)


def test_linear_law_is_the_weighted_mean_of_log_ratios():
    values, se = noisy("linear", (2.5,))
    weight, ratio = (values / se) ** 2, np.log(values / FULL)
    mean = np.average(ratio, weights=weight)
    slope, chi2 = np.exp(mean), np.sum(weight * (ratio - mean) ** 2)
    fit = fit_law(VARIANCE_LAWS["linear"], FULL, values, se, log=True)
    assert fit.estimates[0] == pytest.approx(slope, abs=1e-6 * fit.se[0])
    assert fit.se[0] == pytest.approx(slope / np.sqrt(weight.sum()), rel=1e-9)
    assert (fit.chi2, fit.aicc) == pytest.approx((chi2, chi2 + 2 + 4 / 11), rel=1e-10)
    assert fit.p_value == pytest.approx(stats.chi2(12).sf(chi2), rel=1e-9)
    normal = stats.norm(fit.estimates[0], fit.se[0]).interval(0.95)
    np.testing.assert_allclose((fit.ci_low[0], fit.ci_high[0]), normal, rtol=1e-12)


def test_linear_mean_law_is_the_weighted_ratio():
    se = 0.01 * np.sqrt(FULL)
    values = 0.3 * FULL + se * np.random.default_rng(8).standard_normal(13)
    fit = fit_law(MEAN_LAWS["linear"], FULL, values, se, log=False)
    information = np.sum(FULL**2 / se**2)
    assert fit.estimates[0] == pytest.approx(np.sum(FULL * values / se**2) / information, rel=1e-12)
    assert fit.se[0] == pytest.approx(information**-0.5, rel=1e-12)


def test_estimated_errors_repair_se_interval_and_p_value_as_in_the_papers():
    """Meier's variance of a weighted mean, Satterthwaite's t, and Welch's F of k means, all for equal weights."""
    values = FULL * (1 + 0.02 * np.random.default_rng(6).standard_normal(13))
    fit = fit_law(VARIANCE_LAWS["linear"], FULL, values, 0.01 * values, np.full(13, 11), log=True)
    se = fit.estimates[0] * 0.01 / np.sqrt(13) * np.sqrt(1 + 4 / 10 * 12 / 13)
    assert fit.se[0] == pytest.approx(se, rel=1e-9)
    assert (fit.ci_high[0] - fit.ci_low[0]) / 2 == pytest.approx(se * stats.t(130).ppf(0.975), rel=1e-9)
    unequal = 13 * (1 - 1 / 13) ** 2 / 10
    welch = fit.chi2 / 12 / (1 + 2 * 11 / (13**2 - 1) * unequal)
    assert fit.p_value == pytest.approx(stats.f(12, (13**2 - 1) / (3 * unequal)).sf(welch), rel=1e-9)


def test_power_law_is_numpy_polyfit_of_logarithms():
    values, se = noisy("power", (1.0, 1.5))
    fit = fit_law(VARIANCE_LAWS["power"], FULL, values, se, log=True)
    line, covariance = np.polyfit(np.log(FULL), np.log(values), 1, w=values / se, cov="unscaled")
    np.testing.assert_allclose(fit.estimates, (np.exp(line[1]), line[0]), rtol=1e-9)
    np.testing.assert_allclose(fit.se, np.sqrt(np.diag(covariance))[::-1] * (np.exp(line[1]), 1), rtol=1e-8)


@pytest.mark.parametrize(("name", "parameters"), TRUTHS)
def test_curve_fit_agrees(name, parameters):
    values, se = noisy(name, parameters)
    law, weights = VARIANCE_LAWS[name], {"sigma": se / values, "absolute_sigma": True}
    fit = fit_law(law, FULL, values, se, log=True)
    best, covariance = optimize.curve_fit(lambda d, *x: np.log(law(d, *x)), FULL, np.log(values), parameters, **weights)
    errors = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((np.array(fit.estimates) - best) / errors, 0, atol=1e-4)  # in standard errors
    np.testing.assert_allclose(fit.se, errors, rtol=1e-4)


@pytest.mark.parametrize("parameters", [(1.0, 1.5), (2.0, 0.6), (0.5, 1.2)])
@pytest.mark.parametrize(("name", "scale"), [("affine", 1.0), ("quadratic", FULL)])
def test_a_law_that_misses_by_thousands_of_errors_still_finds_its_minimum(name, scale, parameters):
    values, se = noisy("power", parameters, seed=9)

    def chi2(ends):  # the same law by its values at both ends of the range, which keep it positive in between
        model = scale * (np.exp(ends[0]) + (np.exp(ends[1]) - np.exp(ends[0])) * (FULL - 1) / 4095)
        return np.sum((np.log(model / values) * values / se) ** 2)

    start, exactly = np.log((values / scale)[[0, -1]]), {"xatol": 1e-10, "fatol": 1e-6}
    other = optimize.minimize(chi2, start, method="Nelder-Mead", options=exactly)
    assert fit_law(VARIANCE_LAWS[name], FULL, values, se, log=True).chi2 == pytest.approx(other.fun, rel=1e-6)


@pytest.mark.parametrize(("name", "parameters"), TRUTHS)
def test_scaling_the_variance_scales_the_parameters(name, parameters):
    law, (values, se) = VARIANCE_LAWS[name], noisy(name, parameters)
    one, many = (fit_law(law, FULL, c * values, c * se, log=True) for c in (1, 1e4))
    factor = [1.0 if p == "exponent" else 1e4 for p in law.parameters]
    np.testing.assert_allclose(many.estimates, np.multiply(factor, one.estimates), rtol=1e-7)
    np.testing.assert_allclose(many.se, np.multiply(factor, one.se), rtol=1e-7)
    assert many.chi2 == pytest.approx(one.chi2, rel=1e-9)


@pytest.fixture(scope="module")
def table():
    """Make a table of three ensembles and a real head."""
    rng, frames = np.random.default_rng(10), []
    for name, law, parameters, slope in (
        ("gaussian", "linear", (1.0,), 0.0),
        ("equicorrelated", "quadratic", (0.91, 0.09), 0.0),
        ("aligned", "linear", (1.25,), 0.5),
    ):
        values, se = study(VARIANCE_LAWS[law], parameters, FULL, rng)
        mean_se = 0.003 * np.sqrt(FULL)
        mean = slope * FULL + mean_se * rng.standard_normal(13)
        exact = {"exact_variance": VARIANCE_LAWS[law](FULL, *parameters), "exact_mean": slope * FULL}
        frames.append(moments(name, FULL, values, se, mean, mean_se, **exact))
    return pd.concat([*frames, moments("minilm_l0_h00", [32], 5.0, 0.1, stopped_by="enumerated")], ignore_index=True)


def test_table_has_the_columns_rows_and_order_of_its_contract(table):
    frame, means = fit_variance_laws(table, 64), fit_mean_laws(table)
    laws = ["linear slope", "power prefactor", "power exponent", "affine intercept", "affine slope"]
    laws += ["quadratic linear", "quadratic quadratic", "affine_tail intercept", "affine_tail slope"]
    assert set(frame.columns) == set(means.columns) == set(columns("variance_laws"))
    assert frame["ensemble"][::9].tolist() == ["gaussian", "equicorrelated", "aligned"]  # real heads are not fitted
    assert (frame["law"] + " " + frame["parameter"]).tolist() == 3 * laws
    assert (means["law"] + " " + means["parameter"]).tolist() == 3 * ["zero ", *laws[:3]]
    assert frame["estimable"].all()
    assert np.isfinite(frame[NUMBERS].to_numpy(float)).all()
    where = [
        set(zip(x["d_k_min"], x["n_points"], strict=True)) for _, x in frame.groupby(frame["law"] == "affine_tail")
    ]
    assert where == [{(1, 13)}, {(64, 7)}]


def test_table_selects_laws_and_refuses_exponents_of_nothing(table):
    variance, mean = fit_variance_laws(table, 64), fit_mean_laws(table)
    chosen = [dict(x[x["selected"]].groupby("ensemble")["law"].first()) for x in (variance, mean)]
    assert chosen[0] == {"gaussian": "linear", "equicorrelated": "quadratic", "aligned": "linear"}
    assert chosen[1] == {"gaussian": "zero", "equicorrelated": "zero", "aligned": "linear"}
    exponent = rows(mean, "power", "aligned").loc["exponent"]
    assert abs(exponent["estimate"] - 1) < 5 * exponent["se"]
    assert "has no exponent" in rows(mean, "power", "gaussian").loc["exponent", "reason"]


def test_exact_is_the_same_weighted_fit_to_exact_values(table):
    variance, mean = fit_variance_laws(table, 64), fit_mean_laws(table)
    cells = table[table["ensemble"] == "equicorrelated"]
    exponent = rows(variance, "power", "equicorrelated").loc["exponent"]
    weights = cells["variance"] / cells["variance_se"]
    line = np.polyfit(np.log(FULL), np.log(cells["exact_variance"]), 1, w=weights)
    assert exponent["exact"] == pytest.approx(line[0], rel=1e-9)
    assert abs(exponent["estimate"] - exponent["exact"]) < 5 * exponent["se"]
    np.testing.assert_allclose(rows(variance, "quadratic", "equicorrelated")["exact"], (0.91, 0.09), rtol=1e-9)
    assert rows(mean, "linear", "aligned").loc["slope", "exact"] == pytest.approx(0.5, rel=1e-12)
    assert [*rows(mean, "linear", "gaussian")["exact"], rows(variance, "affine", "gaussian")["exact"].iloc[0]] == [0, 0]
    gap = table.copy()
    gap.loc[gap["d_k"] == 8, "exact_variance"] = np.nan
    variance = fit_variance_laws(gap, 64)
    assert (variance["exact"].isna() == (variance["law"] != "affine_tail")).all()


def test_order_of_rows_changes_nothing_but_the_order_of_ensembles(table):
    shuffled, keys = table.sample(frac=1, random_state=1), ["ensemble", "law", "parameter"]
    for fitted in (lambda x: fit_variance_laws(x, 64), fit_mean_laws):
        one, other = (fitted(x).sort_values(keys, ignore_index=True) for x in (table, shuffled))
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    order = shuffled["ensemble"].drop_duplicates().drop(table.index[-1])
    assert fit_mean_laws(shuffled)["ensemble"].unique().tolist() == order.tolist()


def calibration(law, parameters, n, n_blocks, factor=1.0, told=True):
    """Count 95 % intervals that hold their parameter, and p-values below 0.05, in n studies with se times factor."""
    rng, log = np.random.default_rng([12, n_blocks, *law.name.encode()]), parameters[0] > 0  # our means are negative
    inside, rejected = np.zeros(len(parameters)), 0
    for _ in range(n):
        values, se = study(law, parameters, FULL, rng, n_blocks)
        fit = fit_law(law, FULL, values, factor * se, np.full(13, n_blocks) if told else None, log=log)
        inside += (np.array(fit.ci_low) <= parameters) & (parameters <= np.array(fit.ci_high))
        rejected += fit.p_value < 0.05
    return [(count - n * p) / np.sqrt(n * p * (1 - p)) for count, p in ((inside, 0.95), (rejected, 0.05))]


MEANS = [(MEAN_LAWS["linear"], (-0.125,)), (MEAN_LAWS["power"], (-0.125, 1.0))]


@pytest.mark.slow
@pytest.mark.parametrize(("law", "parameters"), [*((VARIANCE_LAWS[name], x) for name, x in ONE_OF_EACH), *MEANS])
def test_intervals_cover_and_p_values_are_uniform(law, parameters):
    coverage, rejection = calibration(law, parameters, 1000, 64)
    assert np.abs([*coverage, rejection]).max() < 3  # binomial standard errors


@pytest.mark.slow
def test_few_blocks_are_calibrated_and_negative_control_is_not():
    law = VARIANCE_LAWS["linear"]
    told, untold = (calibration(law, (1.0,), 1000, 16, told=told) for told in (True, False))
    assert np.abs([told[0][0], told[1]]).max() < 3
    assert untold[0][0] < -3  # the same se taken for exact
    assert untold[1] > 3


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_negative_control_standard_errors_wrong_by_two_are_caught(factor):
    coverage, rejection = calibration(VARIANCE_LAWS["power"], (1.0, 1.5), 300, 64, factor)
    assert np.abs([coverage[1], rejection]).min() > 3


@pytest.mark.slow
def test_an_estimate_that_carries_its_own_error_does_not_bias_the_fit():
    rng, fits = np.random.default_rng(15), []
    for _ in range(400):
        values = FULL * (1 + 0.03 * rng.standard_normal(13))
        pair = (VARIANCE_LAWS["linear"], True), (MEAN_LAWS["linear"], False)
        fits.append([fit_law(law, FULL, values, 0.03 * values, log=log).estimates[0] for law, log in pair])
    z = (np.mean(fits, axis=0) - 1) / (0.03 / np.sqrt(13 * 400))
    assert abs(z[0]) < 3
    assert z[1] < -3  # in linear space too small an estimate weighs too much


@pytest.mark.slow
@pytest.mark.parametrize("grid", ["full", "quick", "shortest"])
@pytest.mark.parametrize(("name", "parameters"), ONE_OF_EACH)
def test_the_true_law_is_selected_in_at_least_95_of_100_studies(name, parameters, grid):
    rng, right = np.random.default_rng([16, *name.encode()]), 0
    for _ in range(100):
        values, se = study(VARIANCE_LAWS[name], parameters, GRIDS[grid], rng, 100)
        right += select(list(fit_all(VARIANCE_LAWS, GRIDS[grid], values, se, 100).values()))[0] == name
    assert right >= 95


@pytest.mark.parametrize(("name", "parameters"), [("zero", ()), ("linear", (-0.125,)), ("power", (0.5, 0.5))])
def test_the_true_mean_law_is_selected_in_at_least_95_of_100_studies(name, parameters):
    rng, se, right, exponents = np.random.default_rng([17, *name.encode()]), 0.003 * np.sqrt(FULL), 0, 0
    for _ in range(100):
        values = MEAN_LAWS[name](FULL, *parameters) + se * rng.standard_normal(13)
        fits = fit_all(MEAN_LAWS, FULL, values, se, log=False)
        right += select(list(fits.values()))[0] == name
        exponents += fits["power"].estimable
    assert right >= 95
    assert exponents == 100 if name != "zero" else exponents <= 1


def test_negative_control_quadratic_data_do_not_select_the_linear_law():
    fits = fit_all(VARIANCE_LAWS, FULL, *noisy("quadratic", (1.0, 0.001)))
    assert select(list(fits.values()))[0] == "quadratic"
    assert fits["linear"].p_value < 1e-6


@pytest.mark.parametrize(("n", "estimable"), [(1, 0), (2, 1), (3, 4), (4, 4)])
def test_one_two_and_three_points_say_what_is_missing(n, estimable):
    d_k = FULL[:n]
    fitted = fit_variance_laws(moments("gaussian", d_k, d_k, d_k * 0.001, exact_variance=d_k), 64)
    accepted, refused = fitted[fitted["estimable"]], fitted[~fitted["estimable"]]
    assert accepted["law"].nunique() == estimable
    assert refused[NUMBERS].isna().all(axis=None)
    assert refused["reason"].str.contains(r"law needs at least \d d_k, usable: \d").all()
    assert set(fitted[fitted["selected"]]["law"]) == ({"linear"} if n == 4 else set())
    few = "" if n == 4 else f"no law selected: AICc of every law needs at least 4 d_k, usable: {n}"
    assert (accepted["reason"] == few).all()
    assert (accepted["aicc"].isna() == (accepted["dof"] == 1)).all()


def test_heavy_tails_carry_the_reason_of_the_moments():
    reason = "infinite fourth moment of the components: the variance estimate has no standard error"
    heavy = moments("student_t", FULL, FULL * 3, np.nan, reason=reason)
    fitted, lost = fit_variance_laws(heavy, 64), fit_mean_laws(moments("cauchy", FULL, np.nan, np.nan, np.nan, np.nan))
    for frame, why in ((fitted, reason), (lost, "the mean estimate has no standard error")):
        assert not frame[["estimable", "selected"]].any(axis=None)
        assert set(frame["reason"]) == {why}
    assert fit_mean_laws(heavy)["selected"].any()  # the mean itself is fine


@pytest.mark.parametrize(("noise", "stopped_by"), [(0.0, "degenerate"), (0.0, "minimum"), (1e-17, "precision")])
def test_a_point_without_sampling_error_gets_no_weight_and_is_named(noise, stopped_by):
    values, se = noisy("linear", (1.0,), seed=18)
    values[0], se[0] = 1.0, noise
    stops = {"stopped_by": [stopped_by] + ["precision"] * 12}
    fitted = fit_variance_laws(moments("rademacher", FULL, values, se, **stops), 64)
    without = fit_variance_laws(moments("rademacher", FULL[1:], values[1:], se[1:]), 64)
    pd.testing.assert_frame_equal(fitted.drop(columns="reason"), without.drop(columns="reason"), check_exact=True)
    full = fitted[fitted["law"] != "affine_tail"]
    assert set(full["reason"]) == {"left out d_k = 1: the variance estimate has no sampling error, so it has no weight"}
    assert set(zip(full["d_k_min"], full["n_points"], strict=True)) == {(2, 12)}


def test_zero_variance_is_refused_in_words():
    fitted = fit_variance_laws(moments("constant", FULL, 0.0, 0.0), 64)
    assert set(zip(fitted["estimable"], fitted["reason"], strict=True)) == {(False, "zero variance")}
    odd = rows(fit_variance_laws(moments("odd", FULL[:5], [0, -1e-3, 4, 8, 16], 0.1), 64), "linear").loc["slope"]
    assert odd["reason"].startswith(
        "left out d_k = 1: zero variance; left out d_k = 2: the variance estimate is negative"
    )


@pytest.mark.slow
def test_script_writes_the_same_bytes_from_the_shell_and_from_python(tmp_path, table):
    named = table.replace({"ensemble": {"gaussian": "null"}})  # a name that pandas would take for a gap
    write_table(tmp_path / "moments.csv", named.reindex(columns=[*columns("moments")]).to_dict("records"))
    names = ("variance_laws", "mean_laws", "spread_laws", "local_exponents")
    one, two = ([tmp_path / run / f"{name}.csv" for name in names] for run in "12")
    arguments = ["--moments", tmp_path / "moments.csv", "--tail-d-k", 64]
    for name, path in zip(names, one, strict=True):
        arguments += [f"--{name.replace('_', '-')}", path]
    program = Path(script.__file__).with_name("fit_variance_laws.py")
    subprocess.run([sys.executable, program, *map(str, arguments)], check=True, capture_output=True)
    script.main(tmp_path / "moments.csv", 64, *two)
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
    fits = (fit_variance_laws(named, 64), fit_mean_laws(named), fit_spread_laws(named, 64))
    for first, expected in zip(one, fits, strict=False):
        text = first.read_text()
        assert text.startswith(",".join(columns("variance_laws")) + "\nnull,")
        assert not {"nan", "inf", "-inf"} & set(text.lower().replace("\n", ",").split(","))
        np.testing.assert_allclose(reading.table(first)["estimate"], expected["estimate"], rtol=1e-15)
        assert all(row["dof"].isdecimal() for row in reading.texts(first) if row["dof"])  # 12, not 12.0
