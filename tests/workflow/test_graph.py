"""The graph of the rules that the report shows: Snakemake's own, and the keys that start them."""

import json
import re

import pytest
from edits import EDITS
from pipeline import small, snakemake


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Return the rules as the provenance of a run holds them, and the edges that Snakemake prints."""
    folder = tmp_path_factory.mktemp("graph")
    options = small(folder)
    snakemake(folder, "--cores", "1", "results/provenance.json", *options)
    rules = json.loads((folder / "results/provenance.json").read_text(encoding="utf-8"))["rules"]
    printed = snakemake(folder, "--rulegraph", *options).stdout
    names = dict(re.findall(r'^\s*(\d+)\[label = "(\w+)"', printed, re.MULTILINE))
    edges = {(names[one], names[other]) for one, other in re.findall(r"^\s*(\d+) -> (\d+)$", printed, re.MULTILINE)}
    return rules, {(one, other) for one, other in edges if other != "all"}, set(names.values()) - {"all"}


def test_rules_and_edges_are_those_of_snakemake(graphs):
    rules, edges, names = graphs
    assert len(edges) > 40
    assert set(rules) == names
    # Provenance is made here already, so that Snakemake leaves out what only it needs.
    assert {(one, name) for name, rule in rules.items() for one in rule["after"]} == edges


def test_a_rule_comes_after_all_that_it_needs(graphs):
    names = list(graphs[0])
    for name, rule in graphs[0].items():
        assert all(names.index(one) < names.index(name) for one in rule["after"])


def test_what_an_edit_of_a_key_starts_is_what_the_key_reaches(graphs):
    rules = graphs[0]

    def reached(names: set[str]) -> set[str]:
        more = {name for name, rule in rules.items() if names & set(rule["after"])} | names
        return names if more == names else reached(more)

    started: dict[str, set[str]] = {}
    for change, jobs in EDITS.items():
        started.setdefault(change.split("=")[0], set()).update(jobs)
    for key, jobs in started.items():
        readers = {name for name, rule in rules.items() if key in rule["keys"]}
        # What reads a key is started by an edit of it; the record of all keys, and the title page, are by themselves.
        assert readers <= jobs | {"describe_heads", "publish_figures", "render_report", "write_provenance"}, key
        # What is started is reached by the key, or makes new cells for what is.
        cells = {one for name in readers for one in rules[name]["after"]}
        assert jobs <= reached(readers | cells | {"write_provenance"}), key
