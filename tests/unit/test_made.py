"""What stands behind a figure, and the keys of the configuration in Snakefiles."""

import re

import pytest
from config_help import ROOT

import workflow_graph
from sqrtdk.report.article import made

RULES = {
    "draw": {"after": [], "makes": ["results/cells/{d_k}.csv"], "keys": ["seed", "d_k"]},
    "collect": {"after": ["draw"], "makes": ["results/moments.csv", "results/heads.csv"], "keys": ["d_k"]},
    "fit": {"after": ["collect", "draw"], "makes": ["results/laws.csv"], "keys": ["tail"]},
    "other": {"after": [], "makes": ["results/other.csv"], "keys": ["n"]},
    "page": {"after": ["draw", "collect", "fit", "other"], "makes": ["results/report.html"], "keys": ["title"]},
    "alone": {"after": [], "makes": ["results/README.md"], "keys": []},
}
FIGURES = [
    {"number": "2", "anchor": "fig-b", "inputs": ["laws", "moments"]},
    {"number": "1", "anchor": "fig-a", "inputs": ["moments"]},
]


def names(listing) -> tuple[str, ...]:
    return tuple(one.values["text"] for one in listing.items)


def test_behind_a_figure_stand_its_rules_and_their_keys():
    second, first = made.sources(RULES, FIGURES)
    assert first.figure == "fig-a"
    assert (names(first.rules), names(first.keys)) == (("draw", "collect"), ("d_k", "seed"))
    assert (names(second.rules), names(second.keys)) == (("draw", "collect", "fit"), ("d_k", "seed", "tail"))
    assert names(second.tables) == ("laws", "moments")


def test_a_figure_of_a_table_that_no_rule_makes_is_an_error():
    with pytest.raises(KeyError, match="nothing"):
        made.sources(RULES, [{"anchor": "fig-x", "inputs": ["nothing"]}])


def test_without_rules_nothing_stands_behind_a_figure():
    assert made.sources({}, FIGURES) == []


def test_keys_are_found_in_a_rule_and_in_what_it_uses():
    text = """
CELLS = [name for name in CONFIG["ensembles"]]


def effort(key):
    return CONFIG[key]


def inner():
    return CELLS


rule one:
    input:
        inner,
    params:
        seed=CONFIG["seed"],
        goal=lambda wildcards: effort(wildcards.x, "precision"),
    shell:
        "true"


rule two:
    output:
        "seed",
    shell:
        "echo CELLSX"


onstart:
    print(CONFIG["title"])
"""
    assert workflow_graph.keys_by_rule([text]) == {"one": {"ensembles", "seed", "precision"}, "two": set()}


def test_every_rule_of_the_workflow_is_read():
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "workflow/rules").glob("*.smk")]
    names = {name for text in texts for name in re.findall(r"^rule (\w+):", text, re.MULTILINE)}
    found = workflow_graph.keys_by_rule(texts)
    assert found.keys() == names
    assert found["simulate_moments"] == {"d_k", "ensembles", "seed", "precision", "max_scalars"}
