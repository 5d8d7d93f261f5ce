"""Write the manifest of the figures: what each one is, its files with their hashes, and what it was made from."""

import json
from pathlib import Path

from program import run, write_text
from sqrtdk import provenance


def write_manifest(files: list[Path], rule: str, parameters: dict, output: Path):
    """Describe every figure whose `fig-<id>.json` is among the files; the others belong to the figure of their stem.

    `rule` and `parameters` name the rule that drew the figures and what it was given besides its data.
    """
    figures = {}
    for path in sorted(path for path in files if path.suffix == ".json"):
        figure = json.loads(path.read_text(encoding="utf-8"))
        own = sorted(file for file in files if file.stem == path.stem)
        figures[figure["id"]] = {
            "number": figure["number"],
            "title": figure["title"],
            "caption": figure["caption"],
            "alt": figure["alt"],
            "files": {file.name: provenance.file_hash(file) for file in own},
            "data": [f"results/{name}.csv" for name in figure["inputs"]],
            "rule": rule,
            "parameters": parameters,
        }
    orphans = sorted(path.name for path in files if path.with_suffix(".json") not in files)
    if orphans:
        raise ValueError(f"these files belong to no figure: {', '.join(orphans)}")
    ordered = dict(sorted(figures.items(), key=lambda item: item[1]["number"]))
    write_text(output, json.dumps({"figures": ordered}, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    run(write_manifest)
