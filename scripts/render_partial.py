"""Render what a run has in which jobs failed: results/report-partial.html, with each missing part named.

    python scripts/render_partial.py [options of the run]

Only what is up to date by Snakemake's own record is shown; no claim and no citation is, since these rest on all of it.
The exit code is 1 where something is missing, and 0, without a page, where nothing is.
"""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

import explain_failures
from sqrtdk import __version__
from sqrtdk.figures import catalogue, inline, speaking
from sqrtdk.report import rendering
from sqrtdk.results import dictionary
from sqrtdk.results.writing import write_text
from sqrtdk.words import texts

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("results/report-partial.html")


class Job(NamedTuple):
    """A job that did not end well: what it is, what it said last, what to do, where its log is."""

    name: str
    fault: str
    remedy: str
    log: str


def render_partial(arguments: list[str]) -> int:
    """Write the page of the run that Snakemake makes with these options in this folder; return the exit code."""
    state = states(arguments)
    current = {row["output_file"] for row in state if row["plan"] == "no update"}
    jobs = {row["log-file(s)"]: row for row in state if row["output_file"] not in current}
    if not jobs:
        PAGE.unlink(missing_ok=True)
        print("nothing is missing: results/report.html is whole")
        return 0
    failed = sorted(job for log, row in jobs.items() if (job := fault(row["rule"], Path(log))))
    cells = [row for row in state if row["output_file"] not in current and "/cells/" in row["output_file"]]
    waiting = sorted({name(row["rule"], Path(row["log-file(s)"])) for row in cells} - {job.name for job in failed})
    tables = [file for file in dictionary.FILES if file.endswith(".csv") and file != "claims.csv"]
    drawn = {one: Path(f"results/drawn/fig-{one}.json") for one in catalogue.places()}
    there = {one: path for one, path in drawn.items() if path.as_posix() in current}
    records = {one: json.loads(path.read_text("utf-8")) for one, path in there.items()}
    language = next((record["language"] for record in records.values()), "en")
    sources = rendering.read_sources([ROOT / "report"])
    say = texts.Words(texts.tree(sources, language))
    context = {
        "version": __version__,
        "failed": failed,
        "waiting": waiting,
        "figures": [shown(say, one, path, records[one]) for one, path in there.items()],
        "figures_missing": [(place.number, one) for one, place in catalogue.places().items() if one not in there],
        "tables": [file for file in tables if f"results/{file}" in current],
        "tables_missing": [file for file in tables if f"results/{file}" not in current],
    }
    write_text(PAGE, rendering.render(sources, language, context, {}, "partial.html.jinja"))
    print(f"{len(failed)} jobs failed; what there is stands in {PAGE}", file=sys.stderr)
    return 1


def states(arguments: list[str]) -> list[dict[str, str]]:
    """Return what Snakemake knows of each file of a run; `plan` is `no update` where all behind it is current."""
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--summary", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=False)
    if done.returncode:
        sys.exit(done.returncode)
    lines = done.stdout.splitlines()
    return list(
        csv.DictReader(
            lines[next(at for at, line in enumerate(lines) if line.startswith("output_file\t")) :], delimiter="\t"
        )
    )


def name(rule: str, log: Path) -> str:
    """Return what a job is called: its rule, and what its log is called by."""
    parts = log.with_suffix("").parts[log.parts.index("logs") + 2 :]
    return f"{rule}: {', '.join(parts)}" if parts else rule


def fault(rule: str, log: Path) -> Job | None:
    """Return a job that began and did not end well, by its log."""
    said = log.read_text("utf-8", errors="replace") if log.is_file() else None
    if said is None or explain_failures.ended_well(said):
        return None
    return Job(name(rule, log), *explain_failures.diagnose(said), log.as_posix())


def shown(say: texts.Words, figure: str, path: Path, record: dict) -> dict:
    """Return what the page shows of a figure that is drawn."""
    words, number = speaking.words(say, figure, record["words"]), catalogue.places()[figure].number
    svg = inline.svg_for_page(path.with_suffix(".svg").read_text("utf-8"), path.stem, words["title"], f"f{number}-")
    return words | {"anchor": path.stem, "number": number, "svg": Markup(svg)}


if __name__ == "__main__":
    sys.exit(render_partial(sys.argv[1:]))
