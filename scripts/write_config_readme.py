"""Write config/README.md from the schema, the families of ensembles and the scale rules."""

from pathlib import Path

from program import run, write_text
from sqrtdk.config.guide import render
from sqrtdk.config.validation import load_schema


def write_config_readme(
    schema: Path = Path("workflow/schemas/config.schema.yaml"), output: Path = Path("config/README.md")
) -> None:
    """Describe every key of the configuration for people."""
    write_text(output, render(load_schema(schema)))


if __name__ == "__main__":
    run(write_config_readme)
