"""The drawing of the workflow and what stands behind a figure; the keys of the configuration in Snakefiles."""

import itertools
import re

import pytest
from config_help import ROOT

import workflow_graph
from sqrtdk.report.article import workflow

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


def closure(after: dict) -> set[tuple[str, str]]:
    found, todo = set(), [(one, name) for name, several in after.items() for one in several]
    while todo:
        one, name = pair = todo.pop()
        if pair not in found:
            found.add(pair)
            todo += [(before, name) for before in after[one]]
    return found


def test_lines_that_follow_from_others_are_left_out_and_no_others():
    whole = {name: rule["after"] for name, rule in RULES.items()}
    thin = workflow.reduced(RULES)
    assert thin == {
        "draw": [],
        "collect": ["draw"],
        "fit": ["collect"],
        "other": [],
        "page": ["fit", "other"],
        "alone": [],
    }
    assert closure(thin) == closure(whole)


def test_each_rule_stands_to_the_right_of_what_it_needs():
    columns = workflow.columns(workflow.reduced(RULES))
    place = {name: number for number, column in enumerate(columns) for name in column}
    assert sorted(place) == sorted(RULES)
    for name, rule in RULES.items():
        assert all(place[one] < place[name] for one in rule["after"])
    # Beside what needs it, not at the far left.
    assert place["other"] == place["page"] - 1


def test_boxes_lie_within_the_drawing_and_apart():
    drawing = workflow.drawing(RULES, {})
    assert [node.rule for node in drawing.nodes] == list(RULES)
    for node in drawing.nodes:
        assert node.x >= 0
        assert node.x + node.width <= drawing.width
        assert node.y >= 0
        assert node.y + workflow.HEIGHT <= drawing.height
    for one, other in itertools.combinations(drawing.nodes, 2):
        beside = one.x + one.width <= other.x or other.x + other.width <= one.x
        assert beside or abs(one.y - other.y) >= workflow.HEIGHT
    assert len(drawing.paths) == 4
    assert all(re.fullmatch(r"M\d+ \d+C\d+ \d+ \d+ \d+ \d+ \d+", path) for path in drawing.paths)


def test_a_box_leads_to_the_first_figure_of_its_table_else_to_the_table():
    anchors = workflow.anchors(FIGURES, ["heads", "other"])
    assert (anchors["moments"], anchors["laws"], anchors["other"]) == ("fig-a", "fig-b", "tab-other")
    found = {node.rule: node.anchor for node in workflow.drawing(RULES, anchors).nodes}
    assert found == {"draw": "", "collect": "fig-a", "fit": "fig-b", "other": "tab-other", "page": "", "alone": ""}


def test_behind_a_figure_stand_its_rules_and_their_keys():
    second, first = workflow.sources(RULES, FIGURES)
    assert (first.figure, first.rules, first.keys) == ("fig-a", ("draw", "collect"), ("d_k", "seed"))
    assert (second.rules, second.keys) == (("draw", "collect", "fit"), ("d_k", "seed", "tail"))


def test_a_figure_of_a_table_that_no_rule_makes_is_an_error():
    with pytest.raises(KeyError, match="nothing"):
        workflow.sources(RULES, [{"anchor": "fig-x", "inputs": ["nothing"]}])


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
    assert found["simulate_moments"] == {"ensembles", "seed", "precision", "max_scalars"}
