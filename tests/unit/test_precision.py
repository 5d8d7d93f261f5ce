"""Formats of few bits: rounding by a second implementation, overflow, exact probabilities and errors."""

import functools
import math

import ml_dtypes
import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from sqrtdk.studies import rounding
from sqrtdk.studies.rounding import FORMATS, N_KEYS

LIMIT = {"bfloat16": 2.0**128 - 2.0**119, "float16": 65520.0, "float8_e4m3fn": 464.0, "float8_e5m2": 61440.0}


@functools.lru_cache
def table() -> pd.DataFrame:
    rows = [row for d_k in (1, 16, 64, 1024) for row in rounding.simulate(d_k, 60_000, 5)]
    return pd.DataFrame(rows)


def pick(**where) -> dict:
    rows = table()
    for column, value in where.items():
        rows = rows[rows[column] == value]
    assert len(rows) == 1, where
    return rows.iloc[0].to_dict()


# ---- rounding --------------------------------------------------------------------------------------------------------


def bfloat16_by_bits(x: np.ndarray) -> np.ndarray:
    """Round float32 to its upper 16 bits, to nearest and ties to even, by integer arithmetic."""
    bits = x.astype(np.float32).view(np.uint32)
    bits = bits + 0x7FFF + ((bits >> 16) & 1)
    return (bits & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)


def by_steps(x: np.ndarray, bits: int, least: int) -> np.ndarray:
    """Round by division by the spacing of the binade, which np.rint does to nearest and even."""
    exponent = np.maximum(np.frexp(x)[1] - 1, least)
    step = 2.0 ** (exponent - bits)
    return np.rint(x / step) * step


def numbers_to_round() -> np.ndarray:
    rng = np.random.default_rng(1)
    spread = rng.standard_normal(20_000) * 2.0 ** rng.integers(-20, 9, 20_000)
    ties = (np.arange(-600, 600) + 0.5) / 2.0 ** rng.integers(0, 9, 1200)
    return np.float32(np.concatenate([spread, ties, [0.0, 1.0, -1.0, 447.9]])).astype(np.float64)


def test_rounding_agrees_with_a_second_implementation():
    x = numbers_to_round()
    assert np.array_equal(FORMATS["bfloat16"].round(x), bfloat16_by_bits(x))
    assert np.array_equal(FORMATS["float32"].round(x), x)
    for name in ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"):
        form = FORMATS[name]
        inside = x[np.abs(x) < min(form.largest, 448)]
        assert np.array_equal(form.round(inside), by_steps(inside, form.bits, form.least)), name


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS.get)
def test_bits_exponents_and_limits_are_those_of_the_type(form):
    info = ml_dtypes.finfo(form.dtype)
    assert (form.bits, form.least, form.largest) == (info.nmant, info.minexp, float(info.max))
    assert float(info.eps) == 2.0**-form.bits
    assert form.round(np.array([1 + 2.0**-form.bits]))[0] == 1 + 2.0**-form.bits
    assert form.round(np.array([1 + 2.0 ** -(form.bits + 2)]))[0] == 1.0 or form.name == "float32"


@pytest.mark.parametrize("name", rounding.ROUNDED)
def test_overflow_begins_where_it_should_and_is_what_the_format_says(name):
    form = FORMATS[name]
    assert form.overflow == LIMIT[name]
    below, above = form.round(np.array([form.overflow * (1 - 1e-6), form.overflow * (1 + 1e-6)]))
    assert below == form.largest
    assert np.isnan(above) if name == "float8_e4m3fn" else np.isposinf(above)


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "tolerance"), [("bfloat16", 1e-4), ("float16", 1e-4), ("float8_e4m3fn", 3e-3)])
@pytest.mark.parametrize("scale", [1.0, 8.0])
def test_rms_error_by_quadrature(name, tolerance, scale):
    form = FORMATS[name]
    x = np.linspace(0, 10 * scale, 2_000_001)[:-1] + 5e-6 * scale / 2
    density = 2 * stats.norm.pdf(x, scale=scale)
    # Double precision into the format directly: a second path.
    direct = x.astype(form.dtype).astype(np.float64)
    expected = math.sqrt(np.sum((direct - x) ** 2 * density) / density.sum())
    assert form.rms_error(lambda y: 2 * stats.norm.sf(y / scale)) == pytest.approx(expected, rel=tolerance)


@pytest.mark.slow
def test_logit_errors_agree_with_their_law_and_grow_with_the_logits():
    rows = table()
    rows = rows[(rows["measure"] == "logit_error") & rows["exact"].notna()]
    assert len(rows) == 2 * 2 * 2 * 4  # two formats, two places, two rules, four widths
    assert (abs(rows["estimate"] - rows["exact"]) < 4.5 * rows["se"]).all()
    plain, scaled = (
        pick(format="bfloat16", rounded="logits", measure="logit_error", d_k=64, scaling=rule)
        for rule in rounding.RULES
    )
    # A factor of 8 is a power of 2: binary rounding commutes with it exactly.
    assert plain["estimate"] == pytest.approx(8 * scaled["estimate"], rel=1e-12)
    assert pick(format="bfloat16", rounded="logits", measure="logit_error", d_k=1024, scaling="none")[
        "estimate"
    ] == pytest.approx(0.0533, rel=0.05)


def test_error_of_rounded_logits_grows_and_then_stays():
    error = {
        d_k: pick(format="bfloat16", rounded="logits", measure="total_variation", d_k=d_k, scaling="none")["estimate"]
        for d_k in (1, 16, 64, 1024)
    }
    assert error[16] > 4 * error[1]
    assert error[1024] < 1.5 * error[64]  # not linear in the logits any more: rows are almost one-hot
    scaled = [
        pick(format="bfloat16", rounded="logits", measure="total_variation", d_k=d_k, scaling="1/sqrt(d_k)")
        for d_k in (16, 64, 1024)
    ]
    assert np.ptp([row["estimate"] for row in scaled]) < 4.5 * max(row["se"] for row in scaled)


def test_distance_of_weights_is_that_of_its_definition():
    exact, rounded = np.array([[0.5, 0.25, 0.25]]), np.array([[0.4, 0.3, 0.25]])
    found = rounding._distance(rounded, exact, np.array([0]))
    assert found["total_variation"] == pytest.approx(np.array([0.075]))
    assert found["top_weight_error"] == pytest.approx(np.array([0.2]))


def test_numbers_that_a_format_holds_have_no_error():
    q = np.eye(4, dtype=np.float32)[None]
    k = np.float32([[[1, 0.5, -2, 4]] * 4])
    found = rounding._row_values(q, k, 1.0)
    for name in rounding.ROUNDED:
        for place in ("inputs", "logits"):
            assert (found[name, place, "total_variation"] == 0).all()


# ---- overflow --------------------------------------------------------------------------------------------------------


def test_overflow_agrees_with_the_exact_law():
    rows = table()
    rows = rows[rows["exact"].notna() & rows["measure"].isin(["overflow_share", "undefined_rows"])]
    told = rows[(rows["exact"] * rows["n_rows"] > 20) & (rows["se"] > 0)]
    assert len(told) > 10
    assert (abs(told["estimate"] - told["exact"]) < 4.5 * told["se"]).all()
    rare = rows[rows["exact"] * rows["n_rows"] * N_KEYS < 1e-3]
    assert len(rare) > 20
    assert (rare["estimate"] == 0).all()


def test_half_precision_overflows_in_eight_percent_of_unscaled_exponentials():
    row = pick(format="float16", rounded="naive_exp", measure="overflow_share", d_k=64, scaling="none")
    assert row["exact"] == pytest.approx(0.0820, abs=5e-5)
    scaled = pick(format="float16", rounded="naive_exp", measure="overflow_share", d_k=64, scaling="1/sqrt(d_k)")
    assert scaled["exact"] == pytest.approx(7.0e-20, rel=0.01)
    assert math.log(FORMATS["float16"].overflow) == pytest.approx(11.09, abs=0.001)
    assert math.log(FORMATS["float32"].overflow) == pytest.approx(88.72, abs=0.01)


@pytest.mark.parametrize(("d_k", "threshold"), [(1, 6.0), (16, 11.09), (64, 11.09)])
def test_probability_that_a_row_overflows_by_quadrature(d_k, threshold):
    def integrand(norm):
        none = stats.norm.cdf(threshold / norm) ** N_KEYS
        return stats.chi.pdf(norm, d_k) * (1 - none)

    expected, _ = integrate.quad(integrand, 1e-9, d_k**0.5 + 12, limit=400, epsabs=1e-13)
    assert rounding._any_above(threshold, d_k) == pytest.approx(expected, rel=1e-7)


def test_a_row_with_an_overflow_is_nan_naively_and_not_when_the_maximum_is_subtracted():
    logits = np.array([[12.0, 1.0, 0.0], [3.0, 1.0, 0.0]])
    powers, naive = rounding._naive_weights(logits, FORMATS["float16"])
    assert np.isinf(powers).tolist() == [[True, False, False], [False, False, False]]
    assert np.isnan(naive[0, 0])
    assert np.isfinite(naive[1]).all()
    assert np.isfinite(rounding._weights(logits)).all()
    # What the format has no number for cannot be saved by subtracting.
    for value in (np.inf, np.nan):
        assert np.isnan(rounding._weights(np.array([[value, 1.0]]))).any()
    assert (table().query("rounded == 'logits' and measure == 'undefined_rows'")["estimate"] == 0).all()


def test_logits_beyond_a_format_are_counted():
    q, k = np.full((1, 1, 1), 500, np.float32), np.float32([[[1.0], [-1.0], [0.5], [0.1]]])
    found = rounding._row_values(q, k, 1.0)
    assert found["float8_e4m3fn", "logits", "overflow_share"] == pytest.approx(0.5)
    assert found["float8_e4m3fn", "logits", "undefined_rows"] == 1
    assert found["float16", "logits", "overflow_share"] == 0


def test_numbers_belong_to_the_width_and_the_seed():
    one, again, other = (rounding.simulate(4, 4000, seed) for seed in (1, 1, 2))
    assert one == again
    errors = [[row["estimate"] for row in rows if row["measure"] == "logit_error"] for rows in (one, other)]
    assert not set(errors[0]) & set(errors[1])
