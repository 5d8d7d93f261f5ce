"""Write results/README.md: what each generated file is and what its columns mean."""

import inspect
from pathlib import Path

from program import run
from sqrtdk.results import dictionary
from sqrtdk.results.writing import write_text


def describe_results(readme: Path):
    """Lay the data dictionary out as Markdown."""
    lines = ["# What is in this folder", "", dictionary.INTRODUCTION.strip(), ""]
    for name, file in dictionary.FILES.items():
        lines += [f"## `{name}`", "", inspect.cleandoc(file.meaning), ""]
        if file.columns:
            lines += ["| column | type | meaning |", "|---|---|---|"]
            lines += [f"| `{name}` | {column.type} | {column.meaning} |" for name, column in file.columns.items()]
            lines.append("")
    write_text(readme, "\n".join(lines))


if __name__ == "__main__":
    run(describe_results)
