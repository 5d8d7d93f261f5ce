"""Put the summary of a run of config/train.yaml into resources/training, with what it was made from."""

import json
import platform
from importlib.metadata import version
from pathlib import Path

import yaml

from finish_run import programs
from program import run
from sqrtdk.config import validation
from sqrtdk.results import reading
from sqrtdk.results.writing import write_table, write_text

ROOT = Path(__file__).resolve().parents[1]
TABLES = ("training_summary", "training_verdicts", "training_transfer", "training_growth", "start_rate")
DIGITS = 4
COMMAND = "snakemake --cores 1 results/training_summary.csv --configfile config/train.yaml"


def ship_training(results: Path, folder: Path = ROOT / "resources/training"):
    """Write the tables, rounded to four digits, and provenance.json: what was run, with the time it took, and no date.

    results: the folder of a run with config/train.yaml that has the tables on training.
    """
    for name in TABLES:
        rows = reading.rows(results / f"{name}.csv")
        write_table(folder / f"{name}.csv", [{key: _short(value) for key, value in row.items()} for row in rows])
    versions = {"python": platform.python_version()} | {name: version(name) for name in ("numpy", "scipy", "pandas")}
    made = {"command": COMMAND, "cpu_seconds": cpu_seconds(results)} | configuration() | {"versions": versions}
    text = json.dumps(made, ensure_ascii=False, indent=2)
    write_text(folder / "provenance.json", text + "\n")


def cpu_seconds(results: Path) -> dict[str, int]:
    """Return the CPU seconds that the models of each experiment took, as their programs said."""
    return {name: round(sum(spent)) for name, spent in sorted(programs(results / "logs/train_models").items())}


def configuration() -> dict:
    """Return seed and experiments of config/train.yaml on top of config/config.yaml, understood and complete."""
    files = [ROOT / "config/train.yaml", ROOT / "config/config.yaml"]
    overlay, base = (yaml.safe_load(file.read_text("utf-8")) for file in files)
    merged = base | {"training": base["training"] | overlay["training"]}
    schema = validation.load_schema(ROOT / "workflow/schemas/config.schema.yaml")
    found = validation.validate(merged, schema, files=files, folders=[ROOT])
    return {"seed": found["seed"], "training": found["training"]}


def _short(value):
    """Round a number with decimals, and leave everything else as it is."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


if __name__ == "__main__":
    run(ship_training)
