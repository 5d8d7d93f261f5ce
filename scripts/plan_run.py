"""Say before a run what it will take: jobs, core hours, wall time, memory, disk. Needs no Snakemake.

    python scripts/plan_run.py --configfile config/large.yaml --cores 2 100 10000
    python scripts/plan_run.py --calibrate results

The costs are in resources/costs.yaml; --calibrate measures them anew from the logs of finished runs, replaces that file
and writes the plans in docs/scaling.md.
"""

import argparse
import json
import re
import sys
from pathlib import Path

import yaml

from sqrtdk.config import costs, loading, planning, validation
from sqrtdk.results.writing import write_text

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "resources/costs.yaml"
GUIDE = ROOT / "docs/scaling.md"
CORES = [1, 2, 100, 10_000]
NEEDED = ("run.json", "provenance.json", "logs", "cells")
"""What a finished run has in its folder of results."""
SHOWN = 0.005
"""Rules with less of the CPU time than this are put together."""
HEADER = "# Written by: python scripts/plan_run.py --calibrate RESULTS...   What it means: docs/scaling.md.\n"


def read_configuration(overlays: list[Path]) -> dict:
    """Return the default configuration under overlays, validated; ConfigError with every mistake."""
    files = [ROOT / "config/config.yaml", *overlays]
    values, problems = [], []
    for path in files:
        try:
            values.append(loading.load_file(path))
        except validation.ConfigError as error:
            problems += error.problems
    if problems:
        raise validation.ConfigError(problems)
    schema = validation.load_schema(ROOT / "workflow/schemas/config.schema.yaml")
    return validation.validate(planning.merged(*values), schema, files=reversed(files), folders=[Path("."), ROOT])


def table_text(forecast: costs.Forecast, cores: list[int]) -> str:
    """Lay a forecast out for the terminal, the most expensive rule first."""
    lines = [f"{'rule':<26}{'jobs':>7}{'CPU time':>12}{'longest':>12}{'memory':>10}"]
    shown = [rule for rule in forecast.rules if rule.cpu_seconds >= SHOWN * forecast.cpu_seconds]
    for rule in sorted(shown, key=lambda rule: -rule.cpu_seconds):
        times = f"{duration(rule.cpu_seconds):>12}{duration(rule.longest):>12}"
        lines.append(f"{rule.rule:<26}{rule.n_jobs:>7}{times}{rule.memory_mb:>7.0f} MB")
    others = [rule for rule in forecast.rules if rule not in shown]
    name, n_jobs = f"({len(others)} others)", sum(rule.n_jobs for rule in others)
    lines.append(f"{name:<26}{n_jobs:>7}{duration(sum(rule.cpu_seconds for rule in others)):>12}")
    lines.append(f"{'snakemake':<26}{'':>7}{duration(forecast.snakemake_seconds):>12}")
    total = f"{forecast.n_jobs} jobs, {forecast.cpu_seconds / 3600:.3g} core hours"
    walls = ", ".join(f"{duration(forecast.wall_seconds(n))} on {n} core{'s' * (n > 1)}" for n in cores)
    lines += ["", f"total:  {total}", f"wall:   {walls}"]
    lines.append(f"memory: {forecast.memory_mb:.0f} MB for the largest process; disk: {forecast.disk_mb:.0f} MB")
    return "\n".join(lines)


def duration(seconds: float) -> str:
    """Write seconds with a unit that suits them: 41 s, 8 min, 3.2 h, 12 days."""
    for size, unit, most in ((1, "s", 120), (60, "min", 120), (3600, "h", 100)):
        if seconds / size < most:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 86400:,.0f} days"


def positive(text: str) -> int:
    """Return the whole number of at least 1 that a text spells; ValueError without one."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no whole number of at least 1")
    return int(text)


def main(arguments: list[str] | None = None) -> int:
    """Print the plan, or write the table of costs; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--configfile", type=Path, nargs="+", default=[], help="laid over config/config.yaml in order")
    parser.add_argument("--cores", type=positive, nargs="+", default=CORES, help="wall times are given for")
    parser.add_argument("--calibrate", type=Path, nargs="+", metavar="RESULTS", help="folders of finished runs")
    given = parser.parse_args(arguments)
    if given.calibrate:
        absent = [
            str(results / name) for results in given.calibrate for name in NEEDED if not (results / name).exists()
        ]
        if absent:
            parser.error(f"--calibrate needs folders of finished runs; there is no {', '.join(absent)}")
        table = costs.calibrate(given.calibrate)
        # Rules that were not run keep what was measured before.
        kept = yaml.safe_load(TABLE.read_text("utf-8"))["rules"] if TABLE.exists() else {}
        table["rules"] = kept | table["rules"]
        table["measured"] = [origin(results) | costs.record_of(results) for results in given.calibrate]
        write_text(TABLE, HEADER + yaml.safe_dump(table, sort_keys=False, width=120))
        write_text(GUIDE, with_plans(GUIDE.read_text("utf-8")))
        return 0
    try:
        print(plan_text(given.configfile, given.cores))
    except validation.ConfigError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def plan_text(overlays: list[Path], cores: list[int]) -> str:
    """Return the plan of the default configuration under overlays; ConfigError with every mistake."""
    return table_text(costs.forecast(read_configuration(overlays), yaml.safe_load(TABLE.read_text("utf-8"))), cores)


def with_plans(guide: str) -> str:
    """Return the guide with the plans of the configurations that it marks places for."""
    marked = r"(<!-- (\w+\.yaml):begin -->\n).*?(<!-- \2:end -->)"

    def plan(found: re.Match) -> str:
        text = plan_text([ROOT / "config" / found[2]], CORES)
        return f"{found[1]}```text\n{text}\n```\n{found[3]}"

    return re.sub(marked, plan, guide, flags=re.DOTALL)


def origin(results: Path) -> dict:
    """Return a run's commit and its overlay in config/: None for the default, `other` for none of these."""
    record = json.loads((results / "provenance.json").read_text(encoding="utf-8"))
    made = record["configuration"]
    for overlay in (None, *sorted((ROOT / "config").glob("*.yaml"))):
        here = validation.settings(read_configuration([overlay] if overlay else []))
        if {key: here[key] for key in made} == made:
            return {"overlay": overlay and str(overlay.relative_to(ROOT)), "commit": record["commit"]}
    return {"overlay": "other", "commit": record["commit"]}


if __name__ == "__main__":
    sys.exit(main())
