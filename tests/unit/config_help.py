"""What the tests of the configuration share: the schema, the defaults, and messages fit for people."""

from pathlib import Path

import pytest
import yaml

from sqrtdk.config.validation import ConfigError, load_schema, validate

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = load_schema(ROOT / "workflow/schemas/config.schema.yaml")
DEFAULTS = validate({}, SCHEMA, folders=[ROOT])
NAN, INF = float("nan"), float("inf")


def understood(config, **options):
    return validate(config, SCHEMA, **{"folders": [ROOT], **options})


def problems(config, **options):
    """Return {key: "what is allowed | nearest"} of every mistake."""
    with pytest.raises(ConfigError) as caught:
        understood(config, **options)
    assert_readable(str(caught.value))
    return {p.key: f"{p.allowed}{f' | {p.nearest}' if p.nearest else ''}" for p in caught.value.problems}


def assert_readable(text):
    assert text.encode("utf-8")
    for machine in ("Traceback", "NotUnderstood", "$schema", "additionalProperties", "Problem(", "0x7f", "jsonschema"):
        assert machine not in text
    assert max(map(len, text.splitlines())) < 600


def snakemake_config(*arguments):
    """Return what Snakemake makes of `--config` over the defaults."""
    from snakemake.cli import parse_config
    from snakemake.utils import update_config

    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    update_config(config, parse_config(list(arguments)))
    return config


def assert_page(text):
    """Hold a message to what a person reads at once."""
    assert_readable(text)
    assert len(text) < 10_000
    assert text.count("\n") < 50
