"""Tables of results/: each file of the dictionary reads back as it was written, whatever names look like."""

import itertools
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import workflow_support
from sqrtdk.results import columns, dictionary, picking, reading, writing

SCRIPTS = Path(workflow_support.__file__).parent
TABLES = [name.removesuffix(".csv") for name, file in dictionary.FILES.items() if file.columns]
NAMES = (
    *("true", "False", "null", "None", "NA", "nan", "inf", "-inf", "1e5", "1_000", "007", "0x10", "yes", "2020-01-01"),
    *('a, "b"', "c\nd", " √ ", "none"),
)
"""Names that a reader might take for something else."""
VALUES = {
    columns.TEXT: NAMES,
    columns.WHOLE: (0, -3, 2**53 - 1, 7),
    columns.NUMBER: (0.1, -math.inf, 1e-300, math.inf, 3.0),
    columns.TRUTH: (True, False),
}


def rows(table: str, missing: bool = False) -> list[dict]:
    """Return rows of a table with every kind of value, in an order of its columns that is not that of the file."""
    described = reversed(dictionary.FILES[f"{table}.csv"].columns.items())
    cycles = {name: itertools.cycle(VALUES[column.type]) for name, column in described}
    found = [{name: next(values) for name, values in cycles.items()} for _ in NAMES]
    return [*found, dict.fromkeys(cycles)] if missing else found


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("table", TABLES)
class TestRoundTrip:
    def test_rows_read_back_as_values_of_the_declared_types(self, tmp_path, table, missing):
        path = tmp_path / f"{table}.csv"
        writing.write_table(path, rows(table, missing))
        found = reading.rows(path)
        assert found == rows(table, missing)
        assert [[type(value) for value in row.values()] for row in found] == [
            [type(row[name]) for name in dictionary.FILES[path.name].columns] for row in rows(table, missing)
        ]
        assert writing.table_text(table, found) == path.read_text(encoding="utf-8")

    def test_a_frame_holds_the_same_and_writes_the_same_bytes(self, tmp_path, table, missing):
        path, expected = tmp_path / f"{table}.csv", rows(table, missing)
        writing.write_table(path, expected)
        frame = reading.table(path)
        kinds = {columns.WHOLE: "f" if missing else "i", columns.NUMBER: "f", columns.TRUTH: "O" if missing else "b"}
        for name, column in dictionary.FILES[path.name].columns.items():
            known = [row[name] for row in expected if row[name] is not None]
            assert frame[name].dropna().tolist() == known
            assert frame[name].isna().sum() == len(expected) - len(known)
            assert frame[name].dtype.kind == kinds.get(column.type, frame[name].dtype.kind)
        assert writing.table_text(table, frame.to_dict("records")) == path.read_text(encoding="utf-8")
        pd.testing.assert_frame_equal(reading.frame(table, expected), frame)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_without_rows_keeps_its_columns(tmp_path, table):
    path = tmp_path / f"{table}.csv"
    writing.write_table(path, [])
    assert path.read_text(encoding="utf-8") == ",".join(dictionary.FILES[path.name].columns) + "\n"
    assert reading.rows(path) == []
    frame = reading.table(path)
    assert frame.empty
    assert [*frame.columns] == [*dictionary.FILES[path.name].columns]


def test_names_stay_names_where_tables_are_merged_and_spelled_for_figures(tmp_path):
    laws = reading.frame("variance_laws", rows("variance_laws"))
    merged = laws.merge(reading.frame("mean_laws", rows("mean_laws")), on="ensemble", validate="one_to_one")
    writing.write_frame(tmp_path / "figure.csv", merged[["ensemble", "law_x", "n_points_x"]], digits=6)
    assert [row["ensemble"] for row in reading.texts(tmp_path / "figure.csv")] == [*NAMES]


class TestMistakes:
    @pytest.mark.parametrize("edit", [{"scaling": "none"}, {"count": None}, {"count": None, "counts": 1}])
    def test_a_row_of_other_columns_is_refused(self, tmp_path, edit):
        row = {name: value for name, value in (rows("score_histograms")[0] | edit).items() if value is not None}
        with pytest.raises(ValueError, match=r"score_histograms.csv.*count|score_histograms.csv.*scaling"):
            writing.write_table(tmp_path / "score_histograms.csv", [row])
        assert not (tmp_path / "score_histograms.csv").exists()

    @pytest.mark.parametrize("reader", [reading.rows, reading.table])
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("d_k,scaling\n1,none\n", "entropy_scale.csv differs from its description in its columns: achieved, n"),
            ("d_k,n_keys,normalised_entropy,scale,scale_times_sqrt_d_k,achieved\n", "columns: their order"),
            ("n_keys,d_k,normalised_entropy,scale,scale_times_sqrt_d_k,achieved\n1,1.5,1,1,1,1\n", "d_k .* whole"),
            ("n_keys,d_k,normalised_entropy,scale,scale_times_sqrt_d_k,achieved\n1,1,1,true,1,1\n", "scale .* number"),
            ("n_keys,d_k,normalised_entropy,scale,scale_times_sqrt_d_k,achieved\n1,1,1,1,1,x\n", "achieved .* number"),
            ("", "columns: achieved, d_k"),
        ],
    )
    def test_another_table_is_refused_and_its_column_named(self, tmp_path, reader, text, words):
        (tmp_path / "entropy_scale.csv").write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=words):
            reader(tmp_path / "entropy_scale.csv")

    @pytest.mark.parametrize("reader", [reading.rows, reading.table])
    def test_what_is_no_truth_value_is_refused(self, tmp_path, reader):
        path = tmp_path / "depth.csv"
        writing.write_table(path, rows("depth"))
        path.write_text(path.read_text(encoding="utf-8").replace(",false,", ",0,"), encoding="utf-8")
        with pytest.raises(ValueError, match=r"depth.csv: residual holds something that is no truth value"):
            reader(path)

    def test_a_file_that_is_not_described_is_refused(self, tmp_path):
        (tmp_path / "fig-depth.csv").write_text("d_k\n", encoding="utf-8")
        with pytest.raises(ValueError, match=r"describes no file fig-depth.csv"):
            reading.table(tmp_path / "fig-depth.csv")


class TestCells:
    def test_rows_read_back_as_the_texts_that_were_written(self, tmp_path):
        given = [{"name": 'a, "b"', "value": 0.1, "flag": True, "none": None}, {"flag": np.False_, "none": 2}]
        given[1] |= {"name": "c\n√", "value": np.float64(1e-300)}
        writing.write_rows(tmp_path / "cell.csv", given)
        assert reading.texts(tmp_path / "cell.csv") == [
            {"name": 'a, "b"', "value": "0.1", "flag": "true", "none": ""},
            {"name": "c\n√", "value": "1e-300", "flag": "false", "none": "2"},
        ]

    def test_a_row_of_other_columns_is_refused(self, tmp_path):
        with pytest.raises(ValueError, match=r"cell.csv differs in its columns: two"):
            writing.write_rows(tmp_path / "cell.csv", [{"one": 1}, {"one": 1, "two": 2}])
        assert not (tmp_path / "cell.csv").exists()


class TestDictionary:
    def test_every_meaning_is_one_line_that_a_table_of_markdown_holds(self):
        for name, file in dictionary.FILES.items():
            assert file.meaning.strip(), name
            for column, (kind, meaning) in file.columns.items():
                assert kind in VALUES, (name, column)
                assert meaning == meaning.strip() != "", (name, column)
                assert "\n" not in meaning, (name, column)


class TestPicking:
    def test_a_missing_truth_value_is_false(self):
        column = pd.Series([True, None, False, np.nan], dtype=object)
        assert picking.truth(column).tolist() == [True, False, False, False]
        assert picking.truth(column[:0]).dtype == bool

    frame = pd.DataFrame({"a": [1, 1, 2], "b": ["x", "y", None], "stopped_by": ["enumerated", "precision", "x"]})

    def test_rows_are_found_by_their_values(self):
        assert picking.pick(self.frame, "it", a=1, b="y") == {"a": 1, "b": "y", "stopped_by": "precision"}
        assert picking.find(self.frame, a=1)["b"] == "x"
        assert picking.find(self.frame, a=3) is None
        assert picking.at(self.frame, a=1)["b"].tolist() == ["x", "y"]
        assert picking.simulated(self.frame)["a"].tolist() == [1, 2]
        for where in ({"a": 1}, {"a": 3}):
            with pytest.raises(ValueError, match=f"it has {2 if where['a'] == 1 else 0} rows for"):
                picking.pick(self.frame, "it", **where)


class TestWorkflow:
    def test_every_rule_that_reads_or_writes_a_table_depends_on_its_columns(self):
        table = re.compile(r'results/\w+\.csv"|citable_table\(|=TABLES|CLAIM_TABLES|figure_tables|SHIPPED_TRAINING')
        found = []
        for file in sorted((SCRIPTS.parent / "workflow/rules").glob("*.smk")):
            for rule in re.split(r"(?m)^(?=rule )", file.read_text(encoding="utf-8"))[1:]:
                rule = rule.split("\n\n\n")[0]
                if table.search(rule):
                    found.append(name := rule.split(":")[0].removeprefix("rule "))
                    by_figure = "lambda wildcards: workflow_support.columns_hash(figure_tables(wildcards))"
                    hashed = by_figure if name == "draw_figure" else f'described("{name}")'
                    assert f"        columns={hashed},\n" in rule, rule
        assert len(found) >= 24

    def test_a_type_changes_what_jobs_depend_on_and_a_meaning_does_not(self, monkeypatch):
        files = [
            "results/depth.csv",
            "results/cells/x/64.csv",
            "results/figures/fig-depth.csv",
            "results/provenance.json",
        ]
        before = workflow_support.columns_hash(files)
        assert before == workflow_support.columns_hash(files[:1]) != workflow_support.columns_hash([])
        file, changes = dictionary.FILES["depth.csv"], []
        for column in (columns.text("another meaning"), columns.whole("whether a layer adds to its input")):
            changed = file._replace(columns={**file.columns, "residual": column})
            monkeypatch.setitem(dictionary.FILES, "depth.csv", changed)
            changes.append(workflow_support.columns_hash(files))
        turned = file._replace(columns=dict(reversed(file.columns.items())))
        monkeypatch.setitem(dictionary.FILES, "depth.csv", turned)
        changes.append(workflow_support.columns_hash(files))
        kept = file._replace(columns={**file.columns, "residual": columns.truth("another meaning")})
        monkeypatch.setitem(dictionary.FILES, "depth.csv", kept)
        assert workflow_support.columns_hash(files) == before
        assert len({before, *changes}) == 4


def test_a_column_is_added_by_its_producer_and_its_description_alone(tmp_path):
    scripts = tmp_path / "scripts"
    shutil.copytree(SCRIPTS, scripts, ignore=shutil.ignore_patterns("__pycache__"))
    edits = {
        "studies/attention_maps.py": ('"largest_weight":', '"least_weight": min(weights), "largest_weight":'),
        "results/dictionary/examples.py": ("range(1, 17)},", 'range(1, 17)}, least_weight=number("least of all"),'),
    }
    for name, (before, after) in edits.items():
        text = (scripts / "sqrtdk" / name).read_text(encoding="utf-8")
        assert text.count(before) == 1, name
        (scripts / "sqrtdk" / name).write_text(text.replace(before, after), encoding="utf-8")
    path, readme = tmp_path / "attention_maps.csv", tmp_path / "README.md"
    use = f"""
from pathlib import Path
import describe_results, sample_attention_maps
from sqrtdk.results import reading
table, readme = Path({str(path)!r}), Path({str(readme)!r})
sample_attention_maps.sample_attention_maps(1, table)
describe_results.describe_results(readme)
assert all(row["least_weight"] == min(row[f"weight_{{key}}"] for key in range(1, 17)) for row in reading.rows(table))
assert reading.table(table)["least_weight"].dtype == float
"""
    environment = os.environ | {"PYTHONPATH": str(scripts)}
    subprocess.run([sys.executable, "-c", use], env=environment, check=True)
    assert ",weight_16,least_weight,largest_weight," in path.read_text(encoding="utf-8")
    assert "| `least_weight` | number | least of all |" in readme.read_text(encoding="utf-8")
