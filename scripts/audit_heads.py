"""Audit every head of the dumps: facts with intervals, and what is wrong by the declared scale and convention."""

from pathlib import Path

from program import run
from sqrtdk.heads.cases import Options
from sqrtdk.heads.conventions import convention, scale
from sqrtdk.heads.dumps import read_dumps
from sqrtdk.heads.errors import InputError
from sqrtdk.heads.reading import words_of
from sqrtdk.heads.verdict import audit
from sqrtdk.results.described import columns
from sqrtdk.results.writing import write_table


def audit_heads(dumps: dict, files: list[Path], output: Path):
    """Write one row for each head; `dumps` maps names to entries of the configuration, in the order of `files`."""
    rows = []
    for (name, entry), file in zip(dumps.items(), files, strict=True):
        options = Options(convention(entry.get("convention")), declared(entry), entry.get("stage", "unknown"))
        # A capture says its axes.
        layout = "LHSD" if words_of(file) is None else "auto"
        verdicts = audit(read_dumps([file], layout=layout), options)
        rows += [{column: verdict.row[column] for column in columns("audit")} | {"dump": name} for verdict in verdicts]
    write_table(output, rows)


def declared(entry: dict):
    """Return the scale of an entry, or None where its rule depends on the data and no number can be declared."""
    try:
        return scale(entry["scaling"]).of
    except InputError:
        return None


if __name__ == "__main__":
    run(audit_heads)
