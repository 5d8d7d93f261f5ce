"""Write every document that is made from the sources alone, in seconds and without a run.

python scripts/write_docs.py            # make docs
python scripts/write_docs.py --check    # say which are out of date, and write nothing
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

import yaml

import plan_run
import write_readme_numbers
from sqrtdk.config import guide, schema
from sqrtdk.results.writing import write_text
from sqrtdk.words import texts

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "workflow/schemas/config.schema.yaml"
HEADER = "# Copied from config/config.yaml by make docs: what a key has that no file gives.\n"


def defaults(_: str) -> str:
    """Return what config.yaml says, without its comments."""
    values = yaml.safe_load((ROOT / "config/config.yaml").read_text(encoding="utf-8"))
    return HEADER + yaml.safe_dump(values, sort_keys=False, allow_unicode=True, default_flow_style=None, width=1000)


def config_guide(_: str) -> str:
    """Return the description of every key, family and scale rule."""
    return guide.render(schema.load_schema(SCHEMA))


def front_page(text: str) -> str:
    """Return README.md with the headline that the last `make readme` recorded."""
    return write_readme_numbers.with_block(text, json.loads((ROOT / "docs/headline.json").read_text(encoding="utf-8")))


def check_your_model(_: str) -> str:
    """Return the guide for those who have a model, from the words and the code of the page."""
    say = texts.Words(texts.read(ROOT / "report", "en"))
    code = yaml.safe_load((ROOT / "report/code.yaml").read_text(encoding="utf-8"))

    def said(key: str) -> str:
        return write_readme_numbers.markdown(say.text(f"check.{key}"), {})

    def block(name: str, language: str = "python") -> str:
        return f"```{language}\n{code[name].rstrip()}\n```"

    normal = say.entry("check.normal")
    rows = [name for name, entry in normal.items() if isinstance(entry, dict)]
    columns = ("sign", "meaning", "do")
    lines = [f"| {' | '.join(said(f'normal.{name}') for name in columns)} |", "|---|---|---|"]
    lines += [f"| {' | '.join(said(f'normal.{row}.{name}') for name in columns)} |" for row in rows]
    parts = [
        f"# {said('title')}",
        MADE,
        said("lead"),
        f"1. {said('capture')}",
        *(block("install", "sh"), block("capture")),
        f"2. {said('audit')}",
        block("audit"),
        f"3. {said('read')} {said('sample')}",
        *(block("verdict", "text"), said("other"), block("command", "sh")),
        *(f"## {said('normal.title')}", "\n".join(lines)),
        *(said("watch"), block("assertion"), block("monitor")),
        "\n".join(f"- {said(f'kinds.{name}')}" for name in say.entry("check.kinds")),
        said("more"),
    ]
    return "\n\n".join(parts) + "\n"


MADE = "<!-- Made by make docs from report/words/en/check.yaml and report/code.yaml, as the page has it. -->"
DOCUMENTS: dict[str, Callable[[str], str]] = {
    # First, since the others are made from what it says.
    f"workflow/schemas/{schema.DEFAULTS}": defaults,
    "config/README.md": config_guide,
    "docs/scaling.md": plan_run.with_plans,
    "docs/check-your-model.md": check_your_model,
    "README.md": front_page,
}
"""What is generated: a document's path, and its new text from the one that it has."""


def write_docs(check: bool = False) -> list[str]:
    """Bring each document up to date and return those that were not; with `check` leave them as they are."""
    changed = []
    for name, made in DOCUMENTS.items():
        path = ROOT / name
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        text = made(before)
        if text != before:
            changed.append(name)
            if not check:
                write_text(path, text)
    return changed


def main(arguments: list[str] | None = None) -> int:
    """Write the documents, or check them; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where one is out of date")
    check = parser.parse_args(arguments).check
    for name in (changed := write_docs(check)):
        print(f"{name} {'is out of date: run make docs' if check else 'was written'}")
    return int(check and bool(changed))


if __name__ == "__main__":
    sys.exit(main())
