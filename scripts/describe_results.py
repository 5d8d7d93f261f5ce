"""Write results/README.md: what each generated file is and what its columns mean."""

from pathlib import Path

import yaml

from program import run, write_text


def describe_results(words: Path, readme: Path):
    """Lay the data dictionary out as Markdown."""
    dictionary = yaml.safe_load(words.read_text("utf-8"))
    lines = ["# What is in this folder", "", dictionary["introduction"].strip(), ""]
    for name, file in dictionary["files"].items():
        lines += [f"## `{name}`", "", file["what"].strip(), ""]
        if "columns" in file:
            lines += ["| column | meaning |", "|---|---|"]
            lines += [f"| `{column}` | {meaning} |" for column, meaning in file["columns"].items()]
            lines.append("")
    write_text(readme, "\n".join(lines))


if __name__ == "__main__":
    run(describe_results)
