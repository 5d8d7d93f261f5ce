"""The figures: what is plotted is in the data, and nothing odd in a run breaks them."""

import functools
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import synthetic_results as synthetic
from figure_cases import ENGLISH, NAMES, SPOKEN, data_of, describe, figure_of, small, words_of

from sqrtdk.figures import catalogue, grouping, inline, panels, saving, style
from sqrtdk.figures.catalogue import load
from sqrtdk.results import dictionary

MAPS = ("attention-maps", "phase-map")
"""Figures whose data are colours and not points; test_map_figures.py looks at those."""
SCRIPTS = Path(panels.__file__).parents[2]
POINTS_PER_ROW = {"exponents": 2}
SIDEWAYS = ("exponents", "kurtosis", "initialisation", "alternatives", "training-start", "gradient-distribution")
"""Figures whose values lie along the horizontal axis."""

# ---- the registry ----------------------------------------------------------------------------------------------------


def test_figures_are_numbered_as_they_stand_and_read_tables_that_there_are():
    numbers = [place.number for place in catalogue.places().values()]
    article = [place for place in catalogue.places().values() if place.part == "article"]
    atlas = len(numbers) - len(article)
    assert numbers == [*map(str, range(1, len(article) + 1)), *(f"E{number}" for number in range(1, atlas + 1))]
    assert sorted(numbers, key=catalogue.order) == numbers
    assert numbers.index("10") < numbers.index("E1")
    assert NAMES[0] == "hero"
    assert len(article) <= 1 + 10
    topics = [catalogue.TOPICS.index(place.topic) for place in article]
    assert topics == sorted(topics)
    for name in NAMES:
        assert {f"{table}.csv" for table in load(name).INPUTS} <= dictionary.FILES.keys(), name


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (
            {"one.py": 'PLACE = "book/scores"\n'},
            "the place 'book/scores'; a place is article or atlas",
        ),
        ({"one.py": 'PLACE = "atlas/ducks"\n'}, "'atlas/ducks'; a place is .* one of answer, scores"),
        ({"one.py": "def describe(frames):\n    pass\n"}, "the figure one has no line PLACE = "),
    ],
)
def test_figures_that_cannot_be_put_in_order_are_told(tmp_path, monkeypatch, texts, said):
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(catalogue, "__file__", str(tmp_path / "catalogue.py"))
    catalogue.places.cache_clear()
    with pytest.raises(ValueError, match=said):
        catalogue.names()


def test_an_unknown_figure_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"no figure 'nonsense'; figures: \w"):
        load("nonsense")


def test_reading_what_figures_there_are_imports_nothing_heavy():
    code = (
        "import sys; from sqrtdk.figures import catalogue as c; [c.load(name) for name in c.names()];"
        "print({'numpy', 'scipy', 'pandas', 'matplotlib'} & set(sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# ---- what is plotted -------------------------------------------------------------------------------------------------


def _plotted(figure) -> list[np.ndarray]:
    """Return the coordinates of all points that claim to be data."""
    return [
        line.get_xydata()
        for axes in figure.get_axes()
        for line in axes.get_lines()
        if line.get_label() == panels.POINTS and len(line.get_xydata())
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in MAPS])
def test_every_plotted_point_is_in_the_data_and_every_row_is_plotted(name):
    figure, data = figure_of(name), data_of(name)
    known = data.select_dtypes("number").to_numpy().ravel()
    known = np.sort(known[np.isfinite(known)])
    points = np.concatenate(_plotted(figure))
    heights = points[:, 0 if name in SIDEWAYS else 1]
    heights = heights[np.isfinite(heights)]
    nearest = known[np.clip(np.searchsorted(known, heights), 0, len(known) - 1)]
    before = known[np.clip(np.searchsorted(known, heights) - 1, 0, len(known) - 1)]
    assert np.minimum(abs(nearest - heights), abs(before - heights)).max() <= 1e-12 * abs(heights).max()
    rows = len(data)
    if name == "score-density":  # bins without an end or without a score have no place on a log axis
        rows = sum((data[column] > 0).sum() for column in ("density", "measured_distance"))
        rows += data["exact_quantile"].notna().sum()
    if name == "variance-law":  # what is proportional to d_k stands in both panels
        rows += (data["growth"] == grouping.PROPORTIONAL).sum()
    if name in ("planted-key", "freezing", "jacobian"):  # the exact values reach further than the simulation
        rows = data["estimate"].notna().sum()
    if name == "gradient-distribution":  # of the quantiles the median alone is a point, others are ends of a line
        rows = (data["share_of_rows"] == 0.5).sum()
    assert len(heights) == POINTS_PER_ROW.get(name, 1) * rows


@pytest.mark.slow
def test_bars_of_the_gradients_are_what_the_top_tenth_holds():
    shares, _ = figure_of("gradient-distribution").axes
    bars = sorted(bar.get_width() for bar in shares.patches)
    data = data_of("gradient-distribution").drop_duplicates(["d_k", "scaling"])
    assert bars == sorted(data["top_tenth"])
    assert len(bars) > 3


@pytest.mark.parametrize("name", ["variance-law", "kurtosis", "calibration"])
def test_real_heads_are_not_shown_as_simulated_ensembles(name):
    data, words = data_of(name), words_of(name)
    assert not data["ensemble"].str.startswith("minilm").any()
    assert "minilm" not in words.alt


def test_a_kurtosis_that_is_not_trusted_is_shown_hollow_and_not_held_against_the_exact_one():
    moments = synthetic.moments(heads=0)
    untrusted = int((~moments["kurtosis_trusted"]).sum())
    assert untrusted == 9
    calibrated = data_of("calibration")
    assert (calibrated["quantity"] == "excess_kurtosis").sum() == len(moments) - untrusted
    points = [line for axes in figure_of("kurtosis").get_axes() for line in axes.get_lines()]
    hollow = [line for line in points if line.get_label() == panels.POINTS and line.get_markerfacecolor() == "none"]
    shown = data_of("kurtosis")
    assert sum(len(line.get_xydata()) for line in hollow) == (~shown["trusted"]).sum() == 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["variance-law", "score-density", "kurtosis", "calibration"])
def test_theory_is_drawn(name):
    figure = figure_of(name)
    lines = [line for axes in figure.get_axes() for line in axes.get_lines() if line.get_label() == "_theory"]
    assert lines
    assert all(np.isfinite(line.get_ydata()).any() for line in lines)


def test_one_width_leaves_a_mark_of_theory_and_no_line():
    figure = load("variance-law").draw(small(d_k=(64,)))
    theory = [line for line in figure.get_axes()[0].get_lines() if line.get_label() == "_theory"]
    assert [line.get_marker() for line in theory] == ["_"]


def test_uncertainty_is_drawn_to_the_quantile_of_student():
    from scipy import stats

    data = load("variance-law").data(synthetic.frames())
    row = data[data["ensemble"] == "uniform"].iloc[0]
    expected = stats.t.interval(0.95, row["n_blocks"] - 1, row["variance"], row["variance_se"])
    assert (row["low"], row["high"]) == pytest.approx(expected, rel=1e-9)


# ---- odd runs --------------------------------------------------------------------------------------------------------


def _hostile() -> dict[str, pd.DataFrame]:
    names_ = ("<b>$x_{$", "null", "a" * 60)
    return small(ensembles=names_, scalings=("1/d_k",))


def _without_theory() -> dict[str, pd.DataFrame]:
    frames = small()
    for frame in frames.values():
        for column in frame.columns:
            if column.startswith("exact") or column == "theory":
                frame[column] = np.nan
    return frames


def _zeros() -> dict[str, pd.DataFrame]:
    frames = small()
    for frame in frames.values():
        for column in frame.columns:
            if column in ("variance", "excess_kurtosis", "estimate", "median", "count", "within_row_logit_std"):
                frame[column] = frame[column] * 0
            if column.endswith("_se") or column == "se":
                frame[column] = 0.0
    return frames


def _empty() -> dict[str, pd.DataFrame]:
    return {name: frame.iloc[:0] for name, frame in small().items()}


def _unestimable() -> dict[str, pd.DataFrame]:
    """All estimates missing, as for a single ensemble without moments."""
    frames = small(ensembles=("gaussian",))
    moments = frames["moments"]
    for column in ("variance", "variance_se", "excess_kurtosis", "excess_kurtosis_se"):
        moments[column] = np.nan
    moments["kurtosis_trusted"] = False
    frames["variance_laws"]["estimable"] = False
    return frames


ODD = {
    "one of each": lambda: small(ensembles=("ar1",), d_k=(64,), n_keys=(64,), scalings=("none",), heads=1),
    "hostile names": _hostile,
    "no theory": _without_theory,
    "zeros": _zeros,
    "header only": _empty,
    "no estimates": _unestimable,
}


@functools.lru_cache
def odd_frames(odd: str) -> dict[str, pd.DataFrame]:
    return ODD[odd]()


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(("name", "language"), SPOKEN)
def test_odd_runs_still_give_words(name, language, odd):
    words = describe(name, odd_frames(odd), language)
    for text in (words.caption, words.alt, words.reading):
        assert text
        assert not re.search(r"\bnan\b|\bNone\b", text)
        assert language == "en" or not ENGLISH.search(text)


@pytest.mark.slow
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", NAMES)
def test_odd_runs_still_give_a_figure(name, odd):
    frames = odd_frames(odd)
    module = load(name)
    figure = module.draw(frames)
    assert module.data(frames) is not None
    svg = saving.save(figure, "svg").decode()
    page = inline.svg_for_page(svg, name)
    assert ET.fromstring(page) is not None
    if odd == "hostile names" and name in ("variance-law", "exponents", "kurtosis"):
        assert "&lt;b&gt;$x_{$" in page
        assert "<b>" not in page
        assert "a" * 60 not in re.sub(r"<desc.*?</desc>", "", page)


def _sign(handle) -> tuple:
    """Return how a legend entry is drawn, but for its colour."""
    from matplotlib.lines import Line2D

    if not isinstance(handle, Line2D):
        return type(handle).__name__, handle.get_hatch(), handle.get_alpha()
    lined = handle.get_linestyle() != "None"
    dash = (str(handle._unscaled_dash_pattern), handle.get_linewidth()) if lined else None
    return "line", handle.get_marker(), handle.get_markerfacecolor() == "none", dash


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_entries_of_a_legend_differ_by_more_than_colour(name):
    figure = figure_of(name)
    holders = [figure, *figure.subfigs]
    legends = [legend for holder in holders for legend in holder.legends]
    legends += [axes.get_legend() for axes in figure.get_axes() if axes.get_legend()]
    for legend in legends:
        signs = [_sign(handle) for handle in legend.legend_handles]
        assert len(set(signs)) == len(signs)


CROWDED = ("exponents", "local-exponents", "kurtosis", "calibration")


@pytest.mark.slow
@pytest.mark.parametrize("name", CROWDED)
def test_thirty_ensembles_fit(name):
    frames, module = synthetic.crowd(), load(name)
    figure, words = module.draw(frames), describe(name, frames)
    assert len(inline.svg_for_page(saving.save(figure, "svg").decode(), name).encode()) < 75_000
    assert figure.get_size_inches()[1] < 14
    for text in (words.caption, words.alt, words.reading):
        assert not re.search(r"\bnan\b|\bNone\b|\binf\b", text)
    if name not in ("calibration", "local-exponents"):
        shown = set(module.data(frames)["ensemble"])
        assert len(shown) == 30 - len(synthetic.HEAVY) * (name == "kurtosis")


def test_of_many_ensembles_those_of_one_law_and_the_fastest_and_slowest_are_shown():
    data = load("variance-law").data(synthetic.crowd())
    shown = data.drop_duplicates("ensemble").set_index("ensemble")["growth"].to_dict()
    law = [name for name, growth in shown.items() if growth == grouping.PROPORTIONAL]
    assert law == ["gaussian", "uniform", "rademacher"]
    assert shown["low_rank_shared"] == grouping.FASTER
    assert shown["l2norm"] == grouping.SLOWER
    assert len(shown) == 5
    figure = load("variance-law").draw(synthetic.crowd())
    assert len(figure.get_axes()) == 2
    law, flat = figure.get_axes()
    said = [text.get_text() for text in law.texts]
    assert "3 distributions\n∝ dₖ" in said
    # Each has its own symbol in the key below.
    assert [text.get_text() for text in flat.get_legend().get_texts()] == ["Gaussian", "uniform", "Rademacher"]
    assert any("∝ dₖ²" in text for text in said)


def test_ensembles_are_alike_where_their_exact_values_agree_and_not_where_one_is_missing():
    table = pd.DataFrame(
        [("a", d, d) for d in (1, 2, 4)]
        + [("b", d, d * (1 + 1e-12)) for d in (2, 4)]  # exists at fewer widths
        + [("c", d, d + 0.01) for d in (1, 2, 4)]
        + [("d", d, np.nan) for d in (1, 2, 4)],
        columns=["ensemble", "d_k", "exact"],
    )
    assert grouping.alike(table) == [["a", "b"], ["c"], ["d"]]
    assert grouping.end_slope([1, 4, 2], [1.0, 16.0, 4.0]) == pytest.approx(2)
    assert grouping.end_slope([1, 2], [np.nan, 2.0]) is None


def test_simultaneous_intervals_are_sidaks():
    from scipy import stats

    table = load("exponents").data(synthetic.crowd())
    told = table[table["estimable"]]
    level = 1 - (1 - 0.95 ** (1 / len(told))) / 2
    half = (told["all_high"] - told["estimate"]) / told["se"]
    assert half.to_numpy() == pytest.approx(stats.norm.ppf(level), rel=1e-9)
    assert (told["all_low"] < told["ci_low"]).all()
    assert (told["ci_high"] < told["all_high"]).all()


def test_a_crossover_is_marked_where_the_exact_exponent_is_half_way():
    figure = load("local-exponents").draw(synthetic.crowd())
    marks = {
        axes.get_title(loc="left"): [
            line.get_xdata()[0] for line in axes.get_lines() if line.get_label() == "_crossover"
        ]
        for axes in figure.get_axes()
    }
    # Equal parts of V = a d + b d² at d = a/b = 10.1; between two widths the exponent is that of their mean.
    assert marks["equicorrelated"] == [pytest.approx(10.1 * 2**0.25, rel=0.15)]
    assert "low rank (shared)" not in marks  # its exponent is 2 at every width
    assert marks["Student t (3 df) (IQR²)"] == []


@pytest.mark.slow
def test_many_ensembles_of_exponent_one_are_told_apart_where_they_are_far_from_it():
    frames = synthetic.crowd()
    table = frames["local_exponents"]
    off = (table["ensemble"] == "proportional_3") & (table["quantity"] == "variance")
    table.loc[off, "exponent"] += 10 * table.loc[off, "se"]
    entries = [text.get_text() for text in load("local-exponents").draw(frames).get_axes()[0].get_legend().get_texts()]
    assert "proportional_3" in entries
    assert len(entries) == 7
    assert entries[-1] == "others"
    assert "In colour are the 6 with" in describe("local-exponents", frames).caption
    few = small()
    legend = load("local-exponents").draw(few).get_axes()[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["Gaussian"]
    assert "In colour" not in describe("local-exponents", few).caption


def test_an_unknown_scale_rule_is_refused_and_not_drawn_as_another():
    table = synthetic.softmax_saturation(("gaussian",), (4,), (16,), ("none",), n_rows=20)
    with pytest.raises(style.UnknownKey, match="'other'"):
        load("saturation").draw({"softmax_saturation": table.assign(scaling="other")})
