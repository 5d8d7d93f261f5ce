"""The plan of a run: its jobs and work, prices fitted to logs, and the forecast held against recorded runs."""

import json
import sys
from pathlib import Path

import pytest
import yaml

from sqrtdk.config import costs, planning

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import plan_run  # noqa: E402
from program import CPU_LINE, MEMORY_LINE  # noqa: E402

TABLE = yaml.safe_load((ROOT / "resources/costs.yaml").read_text(encoding="utf-8"))
PROFILE = yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text(encoding="utf-8"))
DEFAULT = plan_run.read_configuration([])
RECORDED = [run for run in TABLE["measured"] if run["overlay"] != "other"]
SMALL = planning.merged(DEFAULT, {"d_k": [1, 64], "n_keys": [16], "training": {"recall": {"seeds": 2, "steps": 10}}})


def total(configuration: dict, rule: str, unit: str) -> float:
    return sum(work[unit] for work in planning.jobs(configuration)[rule].values())


def test_the_default_run_is_among_the_recorded_ones():
    assert [run for run in RECORDED if run["overlay"] is None]


@pytest.mark.slow
@pytest.mark.parametrize("run", RECORDED, ids=lambda run: str(run["overlay"]))
def test_a_forecast_is_within_a_factor_of_one_and_a_half_of_the_recorded_run(run):
    overlay = [ROOT / run["overlay"]] if run["overlay"] else []
    forecast = costs.forecast(plan_run.read_configuration(overlay), TABLE)
    predicted = {
        "jobs": forecast.n_jobs,
        "wall_seconds": forecast.wall_seconds(run["cores"]),
        "cpu_seconds": forecast.cpu_seconds,
        "memory_mb": forecast.memory_mb,
        "disk_mb": forecast.disk_mb,
    }
    wrong = {name: (value, run[name]) for name, value in predicted.items() if not 1 / 1.5 < value / run[name] < 1.5}
    assert wrong == {}


@pytest.mark.slow
def test_every_rule_has_a_price():
    for configuration in (DEFAULT, SMALL):
        assert costs.forecast(configuration, TABLE).cpu_seconds > 0
    assert planning.jobs(DEFAULT).keys() == TABLE["rules"].keys()


def test_work_follows_the_configuration():
    free = planning.merged(SMALL, {"ensembles": {name: {"max_scalars": 10**12} for name in SMALL["ensembles"]}})
    precise = planning.merged(free, {"precision": free["precision"] / 2})
    numbers = [total(c, "simulate_moments", "random numbers") for c in (SMALL, free, precise)]
    assert numbers[0] < numbers[1] < numbers[2]
    once, twice = (planning.jobs(c)["simulate_moments"]["gaussian/64"]["scores"] for c in (free, precise))
    assert twice / once == pytest.approx(4, rel=0.1)
    double = planning.merged(SMALL, {"training": {"recall": {"seeds": 4}}})
    seeds, twice = (planning.jobs(c)["train_models"]["recall/none/64"]["steps"] for c in (SMALL, double))
    assert twice == 2 * seeds


def test_softmax_costs_more_with_more_logits_up_to_what_its_goals_need():
    def logits(n: int) -> float:
        entry = {"gaussian": {"softmax_logits": n}}
        return planning.jobs(planning.merged(SMALL, {"ensembles": entry}))["simulate_softmax"]["gaussian/64"]["logits"]

    assert logits(10_000) < logits(100_000) <= logits(10**8) == logits(10**9)


@pytest.mark.slow
def test_wall_time_is_shared_until_something_else_limits_it():
    forecast = costs.forecast(DEFAULT, TABLE)
    assert forecast.wall_seconds(1) == pytest.approx(forecast.cpu_seconds)
    assert forecast.wall_seconds(2) == pytest.approx(forecast.cpu_seconds / 2)
    least = forecast.wall_seconds(10**6)
    assert least == max(forecast.snakemake_seconds, costs.SNAKEMAKE_START + forecast.chain_seconds)
    assert least > max(rule.longest for rule in forecast.rules)


def finished_run(folder: Path, prices: dict[str, dict[str, float]]) -> Path:
    """Write the logs that a run of SMALL would leave if its jobs cost exactly these prices."""
    spent = 0.0
    jobs = planning.jobs(SMALL)
    for rule, works in jobs.items():
        for name, work in works.items():
            seconds = sum(amount * prices[rule][unit] for unit, amount in (work or {"jobs": 1}).items())
            log = folder / "logs" / rule / f"{name}.log" if name else folder / f"logs/{rule}.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            said = ("words", MEMORY_LINE.format("123"), CPU_LINE.format(repr(seconds), repr(seconds + 0.25)), "")
            log.write_text("\n".join(said), encoding="utf-8")
            spent += seconds + 0.25
    n_jobs = sum(map(len, jobs.values()))
    record = {"cores": 2, "wall_seconds": spent, "cpu_seconds": spent + costs.SNAKEMAKE_START + 0.125 * n_jobs}
    (folder / "run.json").write_text(json.dumps(record | {"peak_memory_mb": 200.0}), encoding="utf-8")
    (folder / "provenance.json").write_text(json.dumps({"configuration": SMALL}), encoding="utf-8")
    for rule in costs.CELL_FOLDERS:
        (folder / "cells" / rule).mkdir(parents=True)
        (folder / "cells" / rule / "a.csv").write_bytes(b"0" * 100_000)
    return folder


def test_calibration_finds_the_prices_that_made_the_logs(tmp_path):
    # The work of single jobs, and of cells that differ in no unit but one, determines no more than their sum.
    prices = {
        rule: {unit: 2.0 / max(1.0, max(work.get(unit, 1) for work in works.values())) for unit in units}
        for rule, works in planning.jobs(SMALL).items()
        for units in [next(iter(works.values()), {}) or {"jobs": 1}]
    }
    run = finished_run(tmp_path, prices)
    table = costs.calibrate([run])
    for unit, price in prices["simulate_moments"].items():
        assert table["rules"]["simulate_moments"]["seconds"][unit] == pytest.approx(price, rel=0.01)
    assert table["snakemake_per_job"] == pytest.approx(0.125)
    assert table["rules"]["render_report"] == {"start": 0.25, "memory_mb": 123, "seconds": {"jobs": 2.0}}
    forecast, recorded = costs.forecast(SMALL, table), costs.record_of(run)
    assert forecast.cpu_seconds == pytest.approx(recorded["cpu_seconds"], rel=0.01)
    assert forecast.memory_mb == 200
    assert recorded["jobs"] == forecast.n_jobs


def test_overlays_merge_entry_by_entry_and_leave_what_they_cover():
    first = {"a": {"x": 1, "y": [1, 2]}, "b": 3}
    assert planning.merged(first, {"a": {"y": [9]}}, {"c": {"z": 1}}) == {
        "a": {"x": 1, "y": [9]},
        "b": 3,
        "c": {"z": 1},
    }
    assert first == {"a": {"x": 1, "y": [1, 2]}, "b": 3}


def test_the_command_prints_totals_and_refuses_what_the_workflow_would_refuse(tmp_path, capsys):
    assert plan_run.main(["--configfile", str(ROOT / "config/quick.yaml"), "--cores", "1", "64"]) == 0
    printed = capsys.readouterr().out
    assert "on 1 core, " in printed
    assert "on 64 cores" in printed
    assert "simulate_moments" in printed
    bad = tmp_path / "bad.yaml"
    bad.write_text("precision: -1\n", encoding="utf-8")
    assert plan_run.main(["--configfile", str(bad)]) == 1
    assert "precision" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file"),
        (b"- precision\n", "holds ['precision']; allowed: a mapping"),
        (b"precision: [\n", "is no YAML: line 2: "),
        (b"title: \xe9\n", "is no text in UTF-8: byte 7 (0xe9)"),
    ],
)
def test_the_command_names_each_file_that_is_no_configuration(tmp_path, capsys, content, said):
    bad, other = tmp_path / "bad.yaml", tmp_path / "other.yaml"
    if content is not None:
        bad.write_bytes(content)
    assert plan_run.main(["--configfile", str(bad), str(other)]) == 1
    printed = capsys.readouterr().err
    assert "2 mistakes" in printed
    assert all(name in printed for name in ("bad.yaml", "other.yaml", said))


@pytest.mark.parametrize("cores", ["0", "-3", "x"])
def test_the_command_wants_at_least_one_core(capsys, cores):
    with pytest.raises(SystemExit):
        plan_run.main(["--cores", cores])
    assert "--cores" in capsys.readouterr().err


def test_calibration_names_what_a_folder_lacks_and_leaves_the_prices(tmp_path, capsys):
    before = plan_run.TABLE.read_bytes()
    with pytest.raises(SystemExit):
        plan_run.main(["--calibrate", str(tmp_path)])
    assert "run.json" in capsys.readouterr().err
    assert plan_run.TABLE.read_bytes() == before


@pytest.mark.parametrize(
    ("seconds", "text"), [(41.2, "41.2 s"), (600, "10 min"), (2 * 3600, "2 h"), (10 * 86400, "10 days")]
)
def test_durations_have_a_unit_that_suits_them(seconds, text):
    assert plan_run.duration(seconds) == text


@pytest.mark.slow
def test_the_cluster_profile_names_rules_and_groups_that_exist():
    rules = planning.jobs(DEFAULT).keys()
    assert PROFILE["set-resources"].keys() <= rules
    assert PROFILE["groups"].keys() <= rules
    assert set(PROFILE["groups"].values()) == PROFILE["group-components"].keys()


@pytest.mark.slow
def test_the_cluster_profile_grants_what_the_default_run_was_measured_to_need():
    snakemakes = 2 * 140
    for rule in costs.forecast(DEFAULT, TABLE).rules:
        granted = PROFILE["default-resources"] | PROFILE["set-resources"].get(rule.rule, {})
        minutes = eval(str(granted["runtime"]), {"attempt": 1})  # as Snakemake does
        assert rule.memory_mb + snakemakes < granted["mem_mb"]
        assert 2 * rule.longest / 60 < minutes
    # In a group, one job at a time: another would not fit.
    assert PROFILE["resources"]["mem_mb"] < 2 * PROFILE["default-resources"]["mem_mb"]
