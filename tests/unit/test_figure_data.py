"""Every mark of a figure can be drawn again from the figure's CSV: each drawn number stands there, in one row.

What may differ is said here: places of names, marks moved sideways so that none hides another, and the few things that
follow from the columns by a formula.
"""

import io

import numpy as np
import pandas as pd
import pytest
from figure_cases import NAMES, data_of, figure_of
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.lines import Line2D

from sqrtdk.results import writing

pytestmark = pytest.mark.slow  # draws figures
PLACED = dict.fromkeys(
    ("exponents", "kurtosis", "alternatives", "initialisation", "training-start", "gradient-distribution"), "y"
)
"""Figures that list names along this axis: there a mark has a place and no number."""
MOVED = {"local-exponents": ("d_k", 0.3), "variance-law": ("d_k", 0.15), "real-heads": ("layer", 0.5)}
"""Figures whose marks are moved sideways, from which column, and at most by how much (of a logarithm on a log axis)."""
DERIVED = {
    "variance-law": lambda table: {"exact_per_width": table["exact"] / table["d_k"]},
    "score-density": lambda table: {"middle": (table["low"] + table["high"]) / 2},
}
"""Columns that follow from those of the CSV."""
GUIDES = {"_reference"}
"""Marks that show no result: the diagonal of equal values, the line at 1."""
ALONE = {
    ("planted-key", "_capacity"): ("capacity", "formula"),
}
"""Marks whose abscissa is a number of these columns, and whose height is a place on a curve or in the panel."""
CURVES = {("score-density", "_theory"), ("calibration", "_theory")}
"""Smooth lines of theory on a finer grid than the data; tested on their own."""
OTHER = {("attention-maps", "_one_hot")}
"""Tested on their own."""


def as_read(name: str) -> pd.DataFrame:
    """Return a figure's data as they are read from its file."""
    text = io.StringIO(newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "write_text", lambda path, content: text.write(content))
        writing.write_frame("x", data_of(name), digits=17)
    text.seek(0)
    return pd.read_csv(text, keep_default_na=False, na_values=[""])


def marks(name: str):
    """Yield each line, row of points and set of bars in data coordinates: axes, label, x, y."""
    for axes in figure_of(name).axes:
        for artist in axes.get_children():
            if isinstance(artist, Line2D):
                if artist.get_transform().contains_branch_seperately(axes.transData) != (True, True):
                    continue  # a line across the whole panel
                x, y = artist.get_data()
            elif isinstance(artist, PathCollection):
                x, y = np.ma.filled(np.ma.asarray(artist.get_offsets(), float), np.nan).T
            elif isinstance(artist, LineCollection) and artist.get_segments():
                x, y = np.concatenate(artist.get_segments()).T
            else:
                continue
            x, y = (np.asarray(values, float) for values in (x, y))
            # The smallest number stands for the lower edge of a log axis, to which an interval runs that reaches 0.
            shown = np.isfinite(x) & np.isfinite(y) & (y != np.finfo(float).tiny)
            if shown.any() and artist.get_label() not in GUIDES:
                yield axes, artist.get_label(), x[shown], y[shown]


def rounded(value: float) -> str:
    return f"{value:.9e}"


class Rows:
    """The numbers of a table, and in which rows each of them stands."""

    def __init__(self, table: pd.DataFrame):
        self.rows: dict[str, set[int]] = {}
        for column in table.select_dtypes("number"):
            for row, value in enumerate(table[column].to_numpy(float)):
                if np.isfinite(value):
                    self.rows.setdefault(rounded(value), set()).add(row)

    def __call__(self, value: float) -> set[int]:
        return self.rows.get(rounded(value), set())


def strangers(name: str, table: pd.DataFrame) -> tuple[list[tuple], int]:
    """Return the drawn points that no row of the table holds, and how many points were looked for."""
    table = table.assign(**DERIVED.get(name, lambda _: {})(table))
    rows, found, count = Rows(table), [], 0
    column, most = MOVED.get(name, (None, 0.0))
    for axes, label, x, y in marks(name):
        if (name, label) in CURVES | OTHER:
            continue
        alone = Rows(table[list(ALONE.get((name, label), ()))])
        for across, height in zip(x, y, strict=True):
            count += 1
            if name in PLACED:
                known = rows(across)
            elif column and label in ("_points", "_intervals", "_medians"):
                homes = table[column].to_numpy(float)
                away = np.abs(np.log(homes / across) if axes.get_xscale() == "log" else homes - across)
                known = any(away[row] <= most for row in rows(height))
            else:
                known = rows(across) & rows(height) or alone(across)
            if not known:
                found.append((label, across, height))
    return found, count


@pytest.mark.parametrize("name", NAMES)
def test_every_drawn_number_stands_in_the_csv(name):
    found, count = strangers(name, as_read(name))
    assert found == []
    assert count > 5 or name in ("attention-maps", "phase-map")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("attention-maps", "phase-map")])
def test_other_numbers_in_the_csv_would_be_seen(name):
    table = as_read(name)
    wrong = table.assign(**{column: table[column] * 1.01 for column in table.select_dtypes("float").columns})
    found, count = strangers(name, wrong)
    assert len(found) > 0.5 * count


def test_the_map_marks_models_of_its_csv_which_holds_the_whole_grid():
    table = as_read("phase-map")
    cells = table[table["kind"] == "exact"].groupby("scaling")[["d_k", "n_keys"]].nunique()
    assert (table["kind"] == "exact").sum() == cells.prod(axis=1).sum()
    assert {label for _, label, _, _ in marks("phase-map")} == {"_models"}
    assert strangers("phase-map", table.assign(n_keys=table["n_keys"] + 1))[0] != []


def test_curves_of_theory_run_through_the_densities_of_the_csv():
    table, compared = as_read("score-density"), 0
    for axes in figure_of("score-density").axes:
        curves = [(x, y) for where, label, x, y in marks("score-density") if where is axes and label == "_theory"]
        title = axes.get_title(loc="left")
        part = table[("dₖ = " + table["d_k"].astype(str) == title) & table["exact_density"].notna()]
        middle = ((part["low"] + part["high"]) / 2).to_numpy()
        part, middle = part[np.abs(middle) > 1], middle[np.abs(middle) > 1]  # where no density has a pole
        for column in ("exact_density", "normal_density") if len(part) else ():
            apart = [np.abs(np.interp(middle, x, y) - part[column]).max() for x, y in curves]
            assert min(apart) < 0.05 * part[column].max(), (title, column)
            compared += 1
    assert compared == 2 * table.loc[table["panel"] == "density", "d_k"].nunique()


def test_dots_of_the_attention_maps_mark_the_weights_above_one_half():
    table, dots = as_read("attention-maps"), 0
    weights = table[[column for column in table if column.startswith("weight_")]].to_numpy()
    for _, label, x, y in marks("attention-maps"):
        assert label == "_one_hot"
        dots += len(x)
        assert np.allclose([x % 1, y % 1], 0.5)
    assert dots == (weights > 0.5).sum()


def test_calibration_compares_with_the_diagonal():
    for _, label, x, y in marks("calibration"):
        if label == "_theory" and len(x) == 2:
            assert np.array_equal(x, y)
