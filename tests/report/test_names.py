"""Names that look like numbers, truth values or nothing stay names, and no thing has two of them."""

import functools
import json
import re

import example
import pytest
import synthetic_results
import yaml
from figure_cases import describe
from prose import leaves

from sqrtdk.config import rules
from sqrtdk.figures import catalogue, style
from sqrtdk.report import contents, figure_numbers, rendering
from sqrtdk.results import reading, writing
from sqrtdk.words import texts

CONFIGURED = yaml.safe_load((example.ROOT / "config/config.yaml").read_text(encoding="utf-8"))
LABELS = rules.labels({"ensembles": {name: entry for name, entry in CONFIGURED["ensembles"].items() if entry}})

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
    # What ships with the project has names of its own.
    sources = [number["source"] for number in numbers.values()]
    rows = [source["row"] for source in sources if source["file"] != catalogue.source("start_rate")]
    for column, names in NAMES.items():
        found = {row[column] for row in rows if column in row}
        assert found
        assert found <= set(names.values())


def code_names(folder, labels: dict, language: str = "en") -> dict[str, int]:
    """Return how often the page and the texts for LaTeX call an ensemble by its name in files, but for the glossary."""
    renamed = {"gaussian": "name_in_files"}
    frames = {name: table.replace({"ensemble": renamed}) for name, table in example.frames().items()}
    settings = example.configuration(("name_in_files", "rademacher", "equicorrelated", "aligned"))
    page = example.render(folder, frames, settings, language=language, labels=labels)
    out = example.write_latex(folder, frames, settings, language, labels=labels)
    shown = re.sub(r"<script.*?</script>|<style.*?</style>|<pre.*?</pre>", "", page, flags=re.DOTALL)
    glossary = re.search(r'<div class="table[^>]*id="tab-families">.*?</table>', shown, re.DOTALL)[0]
    numbers = json.loads((out / "numbers.json").read_text(encoding="utf-8"))["numbers"].values()
    texts = {
        "glossary": glossary,
        "page": re.sub(r"<[^>]+>", " ", shown.replace(glossary, "")),
        "descriptions": " ".join(number["description"] for number in numbers),
        "macros": (out / "latex/numbers.tex").read_text(encoding="utf-8").replace("\\_", "_"),
        **{
            path.stem: re.sub(r"\\allowbreak\{\}|\\(?=_)", "", path.read_text(encoding="utf-8"))
            for path in (out / "latex").glob("tab-*.tex")
        },
    }
    return {place: n for place, text in texts.items() if (n := text.count("name_in_files"))}


@pytest.mark.parametrize("language", example.languages())
def test_no_ensemble_has_two_names(tmp_path, language):
    # Its name in files stands once, in the table that says what each ensemble is.
    assert code_names(tmp_path, {"name_in_files": "Planted"}, language) == {"glossary": 1, "tab-families": 1}


def test_a_second_name_would_be_seen(tmp_path):
    found = code_names(tmp_path, {})
    assert found["page"] > 3
    assert found["descriptions"] > 3


def test_no_model_and_no_rule_has_two_names():
    """What the code draws and says calls a rule by its formula, with or without the score before it."""
    for rule in ("1/sqrt(d_k)", "1/d_k"):
        said = style.scaling_words(rule).removeprefix("with ")
        drawn = style.scaling(rule).label.replace(" ", "").replace("ₖ", "_k")
        assert drawn == f"q·k/{said.removeprefix('1/')}"
        shown = re.sub(r"<[^>]+>", "", str(rendering.scale_rule(rule)))
        assert shown.replace(" ", "").replace("dk", "d_k") == said
    readme = re.sub(r"```.*?```", "", (example.ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    for name in (*LABELS, *CONFIGURED["dumps"]):
        if LABELS.get(name) != name:
            assert not re.search(rf"(?<![\w`{{.-]){re.escape(name)}(?![\w`}}-])", readme), name


TERMS = yaml.safe_load((example.ROOT / "docs/terms.zh.yaml").read_text(encoding="utf-8"))


def second_names(texts: dict[str, str]) -> set[tuple[str, str]]:
    """Return the names in Chinese texts that docs/terms.zh.yaml replaces, each with the key of its text."""
    unused = [name for names in TERMS.values() for name in names]
    return {(key, name) for key, text in texts.items() for name in unused if name in text}


def test_no_thing_has_two_names_in_chinese():
    words = texts.read(example.ROOT / "report", "zh")
    phrases = words.pop("phrases") | words.pop("drawn")
    del words["quotations"]
    claims = {
        path.name: " ".join(re.findall(r'zh=((?:\s*"[^"]*")+)', path.read_text(encoding="utf-8")))
        for path in (example.ROOT / "scripts/sqrtdk/claims").glob("*.py")
    }
    assert second_names(leaves(words) | phrases | claims) == set()


def test_a_second_chinese_name_would_be_seen():
    assert second_names({"a": "不缩放时为 1", "b": "无缩放时为 1 奈特"}) == {("b", "无缩放"), ("b", "奈特")}


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


NUMERAL = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?(?: %)?")
PLACES = re.compile(
    r"d_k = \d+ to \d+|(?<!from )d_k = \d+|(?:of|over) \d+|\d+ keys\b|0\.9 to 1\.1|deviation 1\b|1/|0\.05 nats"
)
"""Where a number was taken, and margins, which are no results."""


def test_every_number_that_a_title_of_the_article_prints_can_be_quoted():
    frames, configuration = example.frames(), example.configuration()
    longer = {"start_rate": example.halves()}
    facts = contents.facts(frames, longer, configuration)
    named = figure_numbers.titles(contents.setting(frames, configuration), facts)
    drawn = synthetic_results.frames() | frames | longer
    # The widest head of the maps is the widest of these rows.
    widest = {drawn["attention_maps"]["d_k"].max(): frames["softmax_saturation"]["d_k"].max()}
    drawn["attention_maps"] = drawn["attention_maps"].replace({"d_k": widest})
    asked = 0
    for name, place in catalogue.places().items():
        if place.part == "article":
            title = describe(name, drawn).title
            found = set(NUMERAL.findall(PLACES.sub("", title)))
            assert found <= {one.reading for one in named.get(name, ())}, (name, title)
            asked += len(found)
    assert asked > 12
