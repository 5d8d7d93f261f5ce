"""The figures of softmax over Gaussian logits: marks where they belong, and words that turn with the numbers."""

import re

import numpy as np
import pytest
import synthetic_energy
from figure_cases import describe
from scipy.optimize import minimize_scalar

from sqrtdk.figures import energy_curves, panels
from sqrtdk.figures.catalogue import load
from sqrtdk.theory import asymptotics, random_energy
from sqrtdk.words import numbers


@pytest.fixture
def frames():
    return synthetic_energy.tables(knots=70)


def lines(axes, label):
    return [line for line in axes.get_lines() if line.get_label() == label]


def reading(name, frames):
    return describe(name, frames).reading


@pytest.mark.slow
def test_values_read_from_curves_are_those_of_the_integrals(frames):
    curves = frames["random_energy_curves"]
    half = energy_curves.crossing(curves, 64, "participation_ratio", 0.5)
    assert half == pytest.approx(4.40, abs=0.01)
    assert energy_curves.value(curves, 64, "participation_ratio", 8.0) == pytest.approx(0.712, abs=0.002)
    assert energy_curves.value(curves, 64, "participation_ratio", 1000.0) is None
    place, height = energy_curves.peak(curves, 64, "jacobian_frobenius")
    direct = minimize_scalar(lambda s: -random_energy.averages(64, s).jacobian_square, bounds=(2, 6), method="bounded")
    assert place == pytest.approx(direct.x, rel=0.005)
    assert height**2 == pytest.approx(-direct.fun, rel=1e-3)
    assert energy_curves.peak(curves, 64, "jacobian_trace") is None


@pytest.mark.slow
def test_the_frozen_phase_is_shaded_and_both_spreads_are_marked(frames):
    figure = load("freezing").draw(frames)
    for axes, n in zip(figure.get_axes()[:3], (16, 256, 4096), strict=True):
        assert axes.get_title(loc="left") == f"n = {n}"
        (shade,) = axes.patches
        assert shade.get_x() == pytest.approx(asymptotics.critical_spread(n))
        assert [line.get_xdata()[0] for line in lines(axes, "_mark")] == [1.0, 8.0]
        assert len(lines(axes, "_theory")) == 4


def test_entropy_is_shown_over_its_maximum(frames):
    data = load("freezing").data(frames)
    entropy = data[(data["measure"] == "entropy") & data["estimate"].notna() & (data["logit_std"] == 0.5)]
    assert entropy["estimate"].between(0.9, 1).all()
    raw = frames["random_energy"].query("measure == 'entropy' and logit_std == 0.5 and n_keys == 256").iloc[0]
    row = entropy[entropy["n_keys"] == 256].iloc[0]
    assert row["estimate"] == pytest.approx(raw["estimate"] / np.log(256))
    assert row["se"] == pytest.approx(raw["se"] / np.log(256))


@pytest.mark.slow
def test_an_error_that_is_not_trusted_is_shown_hollow_and_not_counted(frames):
    table = frames["random_energy"]
    table["trusted"] = True
    for name in ("freezing", "jacobian"):
        assert "Hollow" not in describe(name, frames).caption
    table.loc[table["logit_std"] == 4, "trusted"] = False
    table.loc[table["logit_std"] == 4, "estimate"] *= 2
    for name in ("freezing", "jacobian"):
        assert "Hollow" in describe(name, frames).caption
        points = [p for axes in load(name).draw(frames).get_axes() for p in lines(axes, panels.POINTS)]
        hollow = [p for p in points if p.get_markerfacecolor() == "none"]
        assert {x for p in hollow for x in p.get_xdata()} == {4.0}
    assert "wrong somewhere" not in reading("freezing", frames)


def test_freezing_is_read_from_the_numbers(frames):
    text = reading("freezing", frames)
    assert "one half at s = 3.18 for n = 16 (√(2 ln n) is 2.35), 5.41 for n = 256" in text
    assert "nowhere half frozen" in text
    assert "more than half frozen for all these n" in text
    assert re.search(
        r"1 − √\(2 ln n\)/s misses the exact value by 10 % to 12 %, the corrected limit misses .* 4 %", text
    )
    assert re.search(r"1 − √\(2 ln n\)/s from 3\.\d\d to 2\.\d\d, the corrected limit from 1\.9\d to 1\.\d\d", text)
    use = frames["random_energy"]
    use = use[use["trusted"] & use["exact"].notna()]
    z = (use["estimate"] - use["exact"]) / use["se"]
    assert f"the farthest is {z.abs().max():.1f} standard errors away" in text
    assert numbers.percent((z.abs() < 1.96).mean()) in text
    frames["random_energy"]["exact"] *= 1.2
    assert "wrong somewhere" in reading("freezing", frames)
    frames["random_energy_curves"]["exact"] = frames["random_energy_curves"]["exact"].where(
        frames["random_energy_curves"]["measure"] != "participation_ratio", 0.1
    )
    turned = reading("freezing", frames)
    assert "one half at" not in turned
    assert turned.count("nowhere half frozen") == 2


def test_the_jacobian_is_read_from_the_numbers(frames):
    text = reading("jacobian", frames)
    assert re.search(r"largest at s = 2\.0\d for n = 16 \(0\.342\), s = 3\.4\d for n = 64 \(0\.320\)", text)
    assert "the trace Σp(1 − p) only falls" in text
    assert "the two say the opposite for some of these n" in text
    assert "There the typical row passes little" in text
    curves, table = frames["random_energy_curves"], frames["random_energy"]
    trace = curves["measure"] == "jacobian_trace"
    curves.loc[trace, "exact"] = 2 - curves.loc[trace, "exact"]
    rms = table["measure"] == "jacobian_median"
    table.loc[rms, "estimate"] = 0.3
    turned = reading("jacobian", frames)
    assert "does not always fall" in turned
    assert "There the typical row" not in turned


def test_medians_err_by_a_factor(frames):
    data = load("jacobian").data(frames)
    row = data[(data["measure"] == "jacobian_median") & (data["logit_std"] == 16)].iloc[0]
    assert row["high"] / row["estimate"] == pytest.approx(row["estimate"] / row["low"])
