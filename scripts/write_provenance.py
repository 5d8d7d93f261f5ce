"""Write what the results were made from: configuration, versions, source hashes, commit and rules."""

import json
from pathlib import Path

from program import run
from sqrtdk.report import provenance
from sqrtdk.results.writing import write_text

ROOT = Path(__file__).resolve().parent.parent


def write_provenance(configuration: dict, default: dict, sources: list[Path], commit: str, rules: dict, output: Path):
    """Write provenance.json; source files are named by their path below the repository."""
    record = provenance.record(configuration, default, provenance.source_hashes(sources, ROOT), commit, rules)
    write_text(output, json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


if __name__ == "__main__":
    run(write_provenance)
