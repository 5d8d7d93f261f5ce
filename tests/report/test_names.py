"""Names that look like numbers, truth values or nothing stay names: on the page, in LaTeX, JSON and figures' data."""

import functools
import json
import re

import example
import pytest
import synthetic_results

from sqrtdk.figures import catalogue
from sqrtdk.results import reading, writing

NAMES = {
    "ensemble": {"gaussian": "inf", "rademacher": "nan", "equicorrelated": "infinity", "aligned": "1e5"},
    "dump": {"minilm_l6": "true"},
    "experiment": {"recall": "null"},
}


def renamed(tables: dict) -> dict:
    """Return tables in which what carries a name of the configuration has another one."""
    kept = {
        name: table[table["stopped_by"] != "enumerated"] if name == "moments" else table
        for name, table in tables.items()
    }
    return {
        name: table.replace({column: NAMES[column] for column in NAMES if column in table})
        for name, table in kept.items()
    }


@functools.cache
def tables() -> dict:
    # In these the names are those of other ensembles.
    others = synthetic_results.frames() | {"score_histograms": synthetic_results.histograms((1, 64), 20_000)}
    return renamed(example.frames()), renamed(others)


def test_the_page_and_latex_and_json_hold_the_names(tmp_path):
    frames, _ = tables()
    settings = example.configuration(tuple(NAMES["ensemble"].values()))
    settings["dumps"] = {"true": settings["dumps"]["minilm_l6"]}
    page = example.render(tmp_path, frames, settings)
    for name in NAMES["ensemble"].values():
        assert re.search(rf">\s*{name}\s*<", page), name
    out = example.write_latex(tmp_path, frames, settings)
    families = (out / "latex/tab-families.tex").read_text(encoding="utf-8")
    for name in NAMES["ensemble"].values():
        assert re.search(rf"\b{name}\b", families), name
    numbers = json.loads((out / "numbers.json").read_text(encoding="utf-8"))["numbers"]
    rows = [number["source"]["row"] for number in numbers.values()]
    for column, names in NAMES.items():
        found = {row[column] for row in rows if column in row}
        assert found
        assert found <= set(names.values())


@pytest.mark.parametrize("name", catalogue.names())
def test_the_data_of_figures_hold_the_names(tmp_path, name):
    module, (usual, others) = catalogue.load(name), tables()
    given = {table: (others if table not in usual else usual)[table] for table in module.INPUTS}
    synthetic_results.write(tmp_path, given)
    frames = reading.tables([tmp_path / f"{table}.csv" for table in given])
    assert module.describe(frames).alt
    writing.write_frame(tmp_path / "data.csv", module.data(frames), digits=6)
    for row in reading.texts(tmp_path / "data.csv"):
        for column, names in NAMES.items():
            known = {*names.values(), ""} | {
                value for table in given.values() if column in table for value in table[column]
            }
            assert row.get(column, "") in known
