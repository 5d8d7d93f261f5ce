"""Figures as they are published: words of the run's language, metadata, citation, and a manifest with hashes."""

import hashlib
import json
import shutil

import pytest
import synthetic_results as synthetic
import yaml
from figure_cases import REPORT, load, word_files

import draw_figure
import publish_figures
from sqrtdk.figures import catalogue

NAMES = ("calibration", "freezing")
pytestmark = pytest.mark.slow  # draws them


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Draw two figures, and return the folder."""
    folder = tmp_path_factory.mktemp("drawn")
    frames = synthetic.frames()
    for name in NAMES:
        tables = [folder / "tables" / f"{table}.csv" for table in load(name).INPUTS]
        synthetic.write(folder / "tables", {path.stem: frames[path.stem] for path in tables})
        files = {kind: folder / f"fig-{name}.{kind}" for kind in ("svg", "pdf", "png", "csv", "json")}
        draw_figure.draw_figure(name, tables, "report", {}, word_files(name), "en", **files)
    return folder


def publish(drawn, folder, language: str = "en", words=None) -> dict:
    files = sorted(drawn.glob("*.json"))
    words = words or sorted((REPORT / "words" / language).glob("*.yaml"))
    publish_figures.publish_figures(
        files, words, language, "ab" * 32, REPORT.parent / "CITATION.cff", folder / "out/manifest.json"
    )
    return json.loads((folder / "out/manifest.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_manifest_lists_figures_in_order_with_all_files_and_their_hashes(drawn, tmp_path):
    manifest = publish(drawn, tmp_path)
    assert manifest["configuration_sha256"] == "ab" * 32
    assert list(manifest["figures"]) == sorted(NAMES, key=catalogue.names().index)
    for name, figure in manifest["figures"].items():
        found = {path.name: path for path in (tmp_path / "out").glob(f"fig-{name}.*")}
        assert set(figure["files"]) == set(found) == {f"fig-{name}.{kind}" for kind in KINDS}
        for file, digest in figure["files"].items():
            assert digest == hashlib.sha256(found[file].read_bytes()).hexdigest()
        assert figure["data"] == [f"results/{table}.csv" for table in load(name).INPUTS]
        assert (figure["rule"], figure["parameters"]) == ("draw_figure", {"figure_target": "report"})
        record = json.loads(found[f"fig-{name}.json"].read_text(encoding="utf-8"))
        assert {part: record[part] for part in ("number", "title", "caption", "alt")} == {
            part: figure[part] for part in ("number", "title", "caption", "alt")
        }
        assert record["files"]["csv"]["sha256"][:12] in found[f"fig-{name}.bib"].read_text()
        inclusion = found[f"fig-{name}.tex"].read_text()
        assert f"{{fig-{name}.pdf}}" in inclusion
        assert f"\\cite{{sqrtdk-{name}}}" in inclusion
        assert f"@misc{{sqrtdk-{name}," in found[f"fig-{name}.bib"].read_text()


KINDS = ("svg", "pdf", "png", "csv", "bib", "tex", "json")


def test_publishing_again_and_elsewhere_gives_the_same_bytes(drawn, tmp_path):
    for name in ("one", "two"):
        publish(drawn, tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "one/out").iterdir() if path.is_file())
    assert len(files) == len(NAMES) * len(KINDS) + 1
    for name in files:
        assert (tmp_path / "one/out" / name).read_bytes() == (tmp_path / "two/out" / name).read_bytes()


def test_figures_of_another_version_leave_and_other_files_stay(drawn, tmp_path):
    folder = tmp_path / "out"
    (folder / "captions").mkdir(parents=True)
    old = ("fig-old.svg", "fig-freezing.eps", "captions/fig-old.rst", ".fig-freezing.svg.1.part", "notes.txt")
    for name in old:
        (folder / name).write_text("old")
    listed = {name for figure in publish(drawn, tmp_path)["figures"].values() for name in figure["files"]}
    assert {path.name for path in folder.iterdir()} == listed | {"manifest.json", "captions", "notes.txt"}
    assert {path.name for path in (folder / "captions").iterdir()} == {f"fig-{name}.rst" for name in NAMES}


def test_another_language_changes_words_and_no_data(drawn, tmp_path):
    english, chinese = (publish(drawn, tmp_path / language, language)["figures"] for language in ("en", "zh"))
    for name in ("freezing",):
        assert english[name]["caption"] != chinese[name]["caption"]
        assert english[name]["files"][f"fig-{name}.csv"] == chinese[name]["files"][f"fig-{name}.csv"]


def test_a_missing_word_is_named(drawn, tmp_path):
    tree = {"figure-freezing": {"title": "T"}, "lists": {"between_sentences": " "}}
    path = tmp_path / "words/xx/all.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(tree))
    with pytest.raises(ValueError, match="no 'figure-freezing.question'"):
        publish(drawn, tmp_path, "xx", [path])


def test_a_file_that_is_not_as_it_was_drawn_is_named(drawn, tmp_path):
    copied = shutil.copytree(drawn, tmp_path / "drawn")
    (copied / "fig-freezing.png").write_bytes(b"another")
    for _ in range(2):
        with pytest.raises(SystemExit, match=r"fig-freezing\.png is not as it was drawn: remove .*/drawn, "):
            publish(copied, tmp_path)
        (copied / "fig-freezing.png").unlink(missing_ok=True)
