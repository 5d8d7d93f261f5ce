"""Say what a release needs a run, a measurement or a translator for; nothing is written and nothing run.

python scripts/check_release.py            # make release-check
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

import plan_run
import ship_training
from sqrtdk import __version__
from sqrtdk.config import costs, validation
from sqrtdk.report import provenance
from sqrtdk.sampling import ensembles
from sqrtdk.variants import normalisers, scalings
from sqrtdk.words import texts

ROOT = Path(__file__).resolve().parent.parent
TOLD = 5
"""How many of several things a line names."""


def front_page() -> Iterator[str]:
    """Compare the configuration and version of the front page's numbers with those of today."""
    headline = json.loads((ROOT / "docs/headline.json").read_text(encoding="utf-8"))
    made = provenance.text_hash(provenance.canonical(validation.settings(plan_run.read_configuration([]))))
    if headline["configuration_sha256"] != made:
        yield "the front page's numbers and figure are of another configuration: make readme"
    if headline["version"] != __version__:
        yield f"the front page's numbers are of version {headline['version']}, this is {__version__}: make readme"


def prices() -> Iterator[str]:
    """Compare the default run that prices were fitted to with the one that is planned today."""
    table = yaml.safe_load(plan_run.TABLE.read_text(encoding="utf-8"))
    planned = costs.forecast(plan_run.read_configuration([]), table).n_jobs
    measured = [run["jobs"] for run in table["measured"] if run["overlay"] is None]
    if planned not in measured:
        yield (
            f"the plan has {planned} jobs, the run that its prices were fitted to {', '.join(map(str, measured))}: "
            "python scripts/plan_run.py --calibrate results"
        )


def benchmarks() -> Iterator[str]:
    """Compare the versions that were measured with those that are pinned."""
    page = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    pinned = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    measured = dict(re.findall(r"^- (\w+): ([\d.]+)$", page, re.MULTILINE))
    changed = [
        f"{name} {measured[name]}"
        for name, version in re.findall(r"^(\w+)==(\S+)", pinned, re.MULTILINE)
        if measured.get(name, version) != version
    ]
    if changed:
        yield f"docs/benchmarks.md was measured with {', '.join(changed)}: make bench"


def shipped_training() -> Iterator[str]:
    """Compare the configuration of the training that ships with that of the overlay that it is made with."""
    made = json.loads((ROOT / "resources/training/provenance.json").read_text(encoding="utf-8"))
    if any(made[key] != value for key, value in ship_training.configuration().items()):
        yield "the training that ships is of another configuration: scripts/ship_training.py after a run of train.yaml"


def registered() -> set[str]:
    """Return the phrases that families, scale rules and normalisers say of themselves."""
    said = {text for family in ensembles.families().values() for text in (family.summary, family.source)}
    said |= {text for rule in scalings.SCALINGS.values() for text in (rule.source, rule.remark) if text}
    return said | {kind.source for kind in normalisers.NORMALISERS.values()}


def untranslated(language: str) -> list[str]:
    """Return those phrases that a language of the report has no counterpart of, so that they stay English there."""
    phrases = texts.Words(texts.read(ROOT / "report", language)).phrases
    return sorted(text for text in registered() if phrases(text) is None)


def translations() -> Iterator[str]:
    """List what each language lacks."""
    for folder in sorted((ROOT / "report/words").iterdir()):
        if lacking := untranslated(folder.name):
            more = f"; and {len(lacking) - TOLD} more" if len(lacking) > TOLD else ""
            yield f"report/words/{folder.name}/phrases.yaml has no counterpart of: {'; '.join(lacking[:TOLD])}{more}"


CHECKS = (front_page, prices, benchmarks, shipped_training, translations)


def stale() -> list[str]:
    """Return what is out of date, each with what brings it up to date."""
    return [line for check in CHECKS for line in check()]


def main() -> int:
    """Print what is out of date; return the exit code."""
    lines = stale()
    print("\n".join(lines) or "nothing is out of date")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
