"""Provenance: hashes that depend on what they should and on nothing else, and the records of run and figures."""

import hashlib
import json
import platform

import pytest

import write_provenance
from sqrtdk.report import citing, provenance

CONFIG = {"seed": 1, "d_k": [1, 2], "ensembles": {"a": {"family": "gaussian"}, "b": {"family": "uniform"}}}


def test_hash_of_a_configuration_ignores_the_order_of_keys_alone():
    turned = {key: CONFIG[key] for key in reversed(CONFIG)}
    assert provenance.canonical(turned) == provenance.canonical(CONFIG)
    assert provenance.canonical(CONFIG | {"d_k": [2, 1]}) != provenance.canonical(CONFIG)
    assert provenance.text_hash("√") == hashlib.sha256("√".encode()).hexdigest()


def test_difference_is_listed_entry_by_entry():
    changed = {"seed": 1, "d_k": [1, 2, 4], "ensembles": {"a": {"family": "laplace"}}, "new": None}
    assert provenance.difference(changed, CONFIG) == [
        {"key": "d_k", "value": [1, 2, 4], "default": [1, 2]},
        {"key": "ensembles.a.family", "value": "laplace", "default": "gaussian"},
        {"key": "ensembles.b", "value": None, "default": {"family": "uniform"}},
        {"key": "new", "value": None, "default": None},
    ]
    assert provenance.difference(CONFIG, CONFIG) == []


def test_difference_tells_true_from_one_and_knows_that_an_int_is_a_float():
    assert provenance.difference({"a": True}, {"a": 1}) != []


def test_sources_go_by_their_path_below_the_root(tmp_path):
    (tmp_path / "repo" / "scripts").mkdir(parents=True)
    inside, outside = tmp_path / "repo" / "scripts" / "a.py", tmp_path / "mine.yaml"
    inside.write_bytes(b"1")
    outside.write_bytes(b"2")
    found = provenance.source_hashes([outside, inside, inside], tmp_path / "repo")
    assert found == {"mine.yaml": hashlib.sha256(b"2").hexdigest(), "scripts/a.py": hashlib.sha256(b"1").hexdigest()}
    assert list(found) == sorted(found)


def test_two_sources_of_one_name_are_refused(tmp_path):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.yaml").write_text(folder)
    (tmp_path / "repo").mkdir()
    with pytest.raises(ValueError, match=r"a\.yaml"):
        provenance.source_hashes([tmp_path / "x" / "a.yaml", tmp_path / "y" / "a.yaml"], tmp_path / "repo")


def test_versions_of_python_and_packages():
    found = provenance.versions(("numpy", "no-such-package-anywhere"))
    import numpy

    assert found == {
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "no-such-package-anywhere": "not installed",
    }
    assert set(provenance.PACKAGES) < set(provenance.versions())


def test_record_hashes_the_sources_by_name_and_content():
    records = [provenance.record(CONFIG, CONFIG, sources, "abc") for sources in ({"a": "1"}, {"a": "2"}, {"b": "1"})]
    assert len({record["sources_sha256"] for record in records}) == 3
    assert len({record["configuration_sha256"] for record in records}) == 1


def test_entry_of_the_report_is_tex_and_names_the_run():
    record = provenance.record(CONFIG, CONFIG, {}, "abc123")
    entry = provenance.report_entry("50 % of √d_k {x}", "1.2", record)
    assert entry.startswith("@misc{sqrtdk-report,\n")
    assert "title        = {{" + citing.tex("50 % of √d_k {x}") + "}}" in entry
    assert "commit abc123" in entry
    assert record["configuration_sha256"][:12] in entry
    assert entry.count("{") - entry.count(r"\{") == entry.count("}") - entry.count(r"\}")
    assert "commit" not in provenance.report_entry("x", "1", record | {"commit": ""})


def test_script_writes_the_same_record_each_time_and_no_path_of_the_machine(tmp_path):
    source = write_provenance.ROOT / "scripts" / "program.py"
    texts = []
    for name in ("a.json", "b.json"):
        write_provenance.write_provenance(CONFIG, CONFIG | {"seed": 2}, [source], "abc", {}, tmp_path / name)
        texts.append((tmp_path / name).read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    record = json.loads(texts[0])
    assert list(record["sources"]) == ["scripts/program.py"]
    assert record["difference"] == [{"key": "seed", "value": 1, "default": 2}]
    assert str(write_provenance.ROOT) not in texts[0]
