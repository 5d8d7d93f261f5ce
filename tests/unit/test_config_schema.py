"""Every key is described, the files that ship are valid, and the guide to them is up to date."""

import copy
import re
import shlex

import numpy as np
import pytest
import yaml
from config_help import DEFAULTS, ROOT, SCHEMA, snakemake_config, understood
from jsonschema import Draft202012Validator

from sqrtdk.config.guide import render
from sqrtdk.config.validation import allowed, with_registries
from sqrtdk.sampling import ensembles
from sqrtdk.variants import scalings


def every_key(schema, prefix=""):
    for key, part in schema["properties"].items():
        yield f"{prefix}{key}", part, key in schema.get("required", ())
        entry = part.get("additionalProperties")
        if isinstance(entry, dict):
            yield f"{prefix}{key}.*", entry, True
            yield from every_key(entry, f"{prefix}{key}.*.")


def test_the_schema_is_valid_and_closed():
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMA["additionalProperties"] is False
    assert SCHEMA["properties"]["dumps"]["additionalProperties"]["additionalProperties"] is False


@pytest.mark.parametrize(("key", "part", "required"), [*every_key(with_registries(SCHEMA))])
def test_every_key_is_described(key, part, required):
    assert part["description"][0].isupper()
    assert part["description"].endswith(".")
    assert part["unit"]
    assert part["examples"]
    assert required or "default" in part or part["unset"]
    bounded = {"integer": "maximum", "number": "maximum", "array": "minItems", "boolean": "type"}
    bounded |= {"object": "maxProperties" if not key.endswith("*") else "required"}
    if part["type"] in bounded:
        assert bounded[part["type"]] in part
    elif key != "ensembles.*.family":
        assert "enum" in part or "maxLength" in part
    assert allowed(part)


@pytest.mark.slow
def test_examples_and_defaults_are_understood(tmp_path):
    np.savez(tmp_path / "my-heads.npz", q=np.zeros((1, 1, 3, 2)), k=np.zeros((1, 1, 3, 2)))
    for key, part in SCHEMA["properties"].items():
        for example in part["examples"]:
            assert understood({key: example}, folders=[tmp_path, ROOT])[key] != DEFAULTS[key] or key == "language"
        assert understood({key: part["default"]}) == DEFAULTS


def test_config_yaml_is_the_definitive_run():
    path = ROOT / "config/config.yaml"
    written = yaml.safe_load(path.read_text())
    assert set(written) == set(SCHEMA["properties"])
    assert understood(written, files=[path]) == DEFAULTS
    assert list(understood(written, files=[path])["ensembles"]) == list(DEFAULTS["ensembles"])


def test_quick_yaml_is_an_overlay():
    paths = [ROOT / "config/quick.yaml", ROOT / "config/config.yaml"]
    overlay, base = (yaml.safe_load(path.read_text()) for path in paths)
    merged = {**base, **overlay, "ensembles": {**base["ensembles"], **overlay["ensembles"]}}
    result = understood(merged, files=paths)
    assert set(result["ensembles"]) < set(DEFAULTS["ensembles"])
    assert {key for key in result if result[key] != DEFAULTS[key]} == set(overlay)
    assert len(result["d_k"]) >= 4
    assert max(result["d_k"]) < max(DEFAULTS["d_k"])


def test_the_guide_names_everything():
    text = render(SCHEMA)
    for key, part, _ in every_key(SCHEMA):
        assert f"### `{key.replace('*', '<name>')}`" in text or key.endswith("*")
        assert part["description"] in text or key.endswith("*")
    for name, family in ensembles.families().items():
        assert f"### {name}\n" in text
        for parameter in family.parameters():
            assert f"| `{parameter.name}` | {parameter.description} | {parameter.domain} |" in text
    for name in scalings.names():
        assert f"| `{name}` |" in text
    assert not [line for line in text.splitlines() if line != line.rstrip()]


@pytest.mark.slow
def test_the_guides_command_lines_and_yaml_work(tmp_path):
    np.savez(tmp_path / "my-heads.npz", q=np.zeros((1, 1, 3, 2)), k=np.zeros((1, 1, 3, 2)))
    text = render(SCHEMA)
    commands = re.findall(r"`--config (.+)`(?: \||,)", text)
    assert len(commands) == len(SCHEMA["properties"]) + 1
    for command in commands:
        arguments = shlex.split(command)
        understood(snakemake_config(*arguments), arguments=arguments, folders=[tmp_path, ROOT])
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        config = {"ensembles": copy.deepcopy(SCHEMA["properties"]["ensembles"]["default"])}
        for name, spec in yaml.safe_load(block)["ensembles"].items():
            config["ensembles"][name] = {**config["ensembles"].get(name, {}), **spec} if spec else None
        understood(config)
