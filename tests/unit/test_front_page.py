"""README.md: its numbers are the generated ones. Places and commands that it and CONTRIBUTING.md name exist."""

import hashlib
import json
import re
import tomllib
from pathlib import Path

import article_cases
import pytest
import synthetic_results

import write_readme_numbers
from sqrtdk.results.writing import write_text
from sqrtdk.words import numbers
from sqrtdk.words import texts as words

ROOT = Path(__file__).parents[2]
PYTHONS = {"3.11", "3.12", "3.13"}
README = (ROOT / "README.md").read_text(encoding="utf-8")
TYPED = README.partition(write_readme_numbers.START)[0] + README.partition(write_readme_numbers.END)[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
REPORT = ROOT / "report"


def test_the_figure_on_the_front_page_is_that_of_its_numbers():
    headline = json.loads((ROOT / "docs" / "headline.json").read_text(encoding="utf-8"))
    image = (ROOT / "docs" / "hero.png").read_bytes()
    assert hashlib.sha256(image).hexdigest() == headline["figure"]["sha256"]


def test_no_measured_number_is_typed_on_the_front_page():
    assert set(re.findall(r"\d+\.\d+", TYPED)) <= PYTHONS | {"4.0"}  # versions of Python and of the licence
    assert not re.search(r"\d\s*(%|times|seconds|minutes)", TYPED)


def test_the_front_page_is_one_screen_or_two():
    assert len(README.splitlines()) <= 120
    assert all(len(text) <= 300 for text in re.findall(r"!\[([^\]]*)\]", README))


@pytest.mark.parametrize("text", [TYPED, GUIDE], ids=["README.md", "CONTRIBUTING.md"])
def test_places_and_targets_that_are_named_exist(text):
    quoted = re.findall(r"`([^`\n]+)`", text)
    places = {place for place in quoted if re.fullmatch(r"[\w./-]*(/|\.\w+)|Snakefile|LICENSE", place)}
    roots = (ROOT, ROOT / "config", ROOT / "tests", ROOT / "scripts" / "sqrtdk")
    absent = {place for place in places if not any((root / place).exists() for root in roots)}
    assert {place for place in absent if not place.startswith(("results/", ".venv", "scipy."))} == set()
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z][\w-]*)\b(?=[`\s])", text)) <= targets


def test_the_map_has_the_rooms_in_the_order_of_their_contract():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (layers,) = (contract["layers"] for contract in declared["contracts"] if contract["type"] == "layers")
    rooms = re.findall(r"^\| `(\w+)` \|", GUIDE, re.MULTILINE)
    assert rooms == [room for layer in reversed(layers) for room in layer.split(" | ")]


def leaves(tree: dict, key: str = "") -> dict[str, str]:
    """Return the texts of a tree of words by dotted key."""
    if isinstance(tree, str):
        return {key: tree}
    return {name: text for part, below in tree.items() for name, text in leaves(below, f"{key}.{part}").items()}


def test_every_sentence_of_the_answer_has_a_plain_spelling():
    texts = leaves(words.read(REPORT, "en")["article"]["chapters"])
    told = {key: text for key, text in texts.items() if re.match(r"\.lede\.|\.\w+\.card\.", key)}
    assert len(told) > 15
    for text in told.values():
        names = set(re.findall(r"\{(\w+)\}", text)) - {"d_k"}
        spelled = write_readme_numbers.markdown(text, dict.fromkeys(names, "12") | {"d_k": "64"})
        assert not re.search(r"[$\\<>{}]", spelled)
        assert spelled.count("12") >= len(names)


def test_formula_without_a_plain_spelling_is_refused():
    with pytest.raises(ValueError, match="no plain spelling"):
        write_readme_numbers.markdown(r"The sum $\sum_j p_j$.", {})


def test_front_page_is_written_from_the_results_and_nothing_else_of_it_changes(tmp_path):
    results, docs, readme = tmp_path / "results", tmp_path / "docs", tmp_path / "README.md"
    tables = article_cases.frames()
    synthetic_results.write(results, tables)
    configuration = {"ensembles": article_cases.SPECS}
    write_text(results / "provenance.json", json.dumps({"configuration": configuration, "configuration_sha256": "0"}))
    figure = {"alt": "Lines that rise.", "files": {"png": {"sha256": "1"}}}
    write_text(results / "figures" / "fig-hero.json", json.dumps(figure))
    write_text(results / "figures" / "fig-hero.png", "picture")
    readme.write_text(f"before\n{write_readme_numbers.START}\noutdated\n{write_readme_numbers.END}\nafter\n")
    for _ in range(2):
        write_readme_numbers.write_readme_numbers(results, REPORT, docs, readme)
        written = readme.read_text(encoding="utf-8")
        assert written.startswith(f"before\n{write_readme_numbers.START}\n")
        assert "\n![Lines that rise.](docs/hero.png)\n" in written
        assert written.endswith(f"\n{write_readme_numbers.END}\nafter\n")
        assert "outdated" not in written
    (said,) = [line for line in written.splitlines() if "softmax listens" in line]
    rows = tables["softmax_saturation"].query("d_k == 64 and n_keys == 64 and measure == 'effective_keys'")
    for rule in ("none", "1/sqrt(d_k)"):
        assert numbers.significant(rows.set_index("scaling").loc[rule, "estimate"], 2) in said
    assert (docs / "hero.png").read_text() == "picture"
    readme.write_text("no markers")
    with pytest.raises(ValueError, match="lacks the markers"):
        write_readme_numbers.with_block("no markers", json.loads((docs / "headline.json").read_text()))


def test_a_folder_that_is_no_finished_run_is_named_and_nothing_is_written(tmp_path):
    docs, readme = tmp_path / "docs", tmp_path / "README.md"
    with pytest.raises(SystemExit, match=r"no .*moments\.csv, .*provenance\.json, .*fig-hero\.png"):
        write_readme_numbers.write_readme_numbers(tmp_path, REPORT, docs, readme)
    assert list(tmp_path.iterdir()) == []
