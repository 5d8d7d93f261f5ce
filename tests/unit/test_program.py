"""What the scripts share: tables that read back as they were written."""

import pytest

from program import read_rows, write_rows


def test_rows_read_back_as_the_texts_that_were_written(tmp_path):
    rows = [
        {"name": 'a, "b"', "value": 0.1, "flag": True, "none": None},
        {"name": "c\n√", "value": 1e-300, "flag": False, "none": 2},
    ]
    write_rows(tmp_path / "table.csv", rows)
    assert read_rows(tmp_path / "table.csv") == [
        {"name": 'a, "b"', "value": "0.1", "flag": "true", "none": ""},
        {"name": "c\n√", "value": "1e-300", "flag": "false", "none": "2"},
    ]


def test_a_table_without_rows_keeps_its_columns(tmp_path):
    write_rows(tmp_path / "empty.csv", [], ("one", "two"))
    assert (tmp_path / "empty.csv").read_text(encoding="utf-8") == "one,two\n"
    assert read_rows(tmp_path / "empty.csv") == []


def test_a_row_of_other_columns_is_refused(tmp_path):
    with pytest.raises(ValueError, match="differs in its columns: \\['two'\\]"):
        write_rows(tmp_path / "table.csv", [{"one": 1}, {"one": 1, "two": 2}])
    assert not (tmp_path / "table.csv").exists()
