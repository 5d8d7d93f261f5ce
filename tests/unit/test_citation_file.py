"""CITATION.cff: valid by the schema of the Citation File Format, and nothing in it is invented."""

import importlib.resources
import json
from pathlib import Path

import jsonschema
import pytest
import yaml

import sqrtdk

ROOT = Path(__file__).parents[2]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
SCHEMAS = importlib.resources.files("check_jsonschema") / "builtin_schemas/vendor"
SCHEMA = json.loads((SCHEMAS / "citation-file-format.json").read_text(encoding="utf-8"))


def mistakes(citation: dict) -> list[str]:
    validator = jsonschema.Draft7Validator(SCHEMA, format_checker=jsonschema.FormatChecker())
    return [error.message for error in validator.iter_errors(citation)]


def test_the_file_is_valid():
    assert SCHEMA["$id"].startswith("https://citation-file-format.github.io/1.2.0/")
    assert mistakes(CITATION) == []


@pytest.mark.parametrize(
    "change",
    [{"license": "MTI"}, {"doi": "none"}, {"authors": []}, {"type": "report"}, {"autors": []}, {"version": [0, 1]}],
    ids=str,
)
def test_a_mistake_would_be_seen(change):
    assert mistakes(CITATION | change) != []


def test_it_names_this_version_and_no_person_date_or_identifier_that_does_not_exist():
    assert CITATION["version"] == sqrtdk.__version__
    assert CITATION["authors"] == [{"name": "The sqrtdk developers"}]
    assert CITATION["license"] == "MIT"
    assert not {"doi", "identifiers", "repository-code", "url", "contact"} & CITATION.keys()
