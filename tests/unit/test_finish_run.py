"""What a run cost: CPU seconds from the logs of its programs, divided without a gap among what they went into."""

import json
import os

import pytest

import finish_run
from program import CPU_LINE

SAID = {
    "simulate_moments/gaussian/64": (1.5, 1.75),
    "simulate_moments/gaussian/128": (0.5, 0.75),
    "train_models/recall/none/16": (4.0, 4.25),
    "tabulate_softmax_theory/16": (1.0, 1.5),
    "draw_figure/depth": (2.0, 3.0),
    "collect_moments": (0.25, 0.5),
    "render_report": (0.5, 1.5),
}


@pytest.fixture
def results(tmp_path):
    for name, (work, total) in SAID.items():
        log = tmp_path / "logs" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"some words\n{CPU_LINE.format(f'{work:.3f}', f'{total:.3f}')}\n", encoding="utf-8")
    (tmp_path / "logs" / "failed.log").write_text("Traceback\n", encoding="utf-8")
    return tmp_path


def test_programs_are_added_up_by_rule(results):
    found = finish_run.programs(results / "logs")
    assert found["simulate_moments"] == (2.0, 0.5)
    assert found["draw_figure"] == (2.0, 1.0)
    assert set(found) == {name.split("/")[0] for name in SAID}


def test_logs_of_an_earlier_run_do_not_count(results):
    os.utime(results / "logs/draw_figure/depth.log", (1000, 1000))
    assert "draw_figure" not in finish_run.programs(results / "logs", since=2000)


def test_every_second_is_in_one_part(results):
    parts = finish_run.divide(finish_run.programs(results / "logs"), snakemake=3.0, jobs=15.0)
    assert parts == {
        "kernels": 7.0,
        "drawing": 2.0,
        "other_programs": 0.75,
        "imports": 3.5,
        "snakemake": 3.0,
        "rest": 1.75,
    }
    assert sum(parts.values()) == 18.0


def test_every_rule_that_simulates_is_a_kernel_and_none_that_collects():
    """The names of the rules' programs, as they are: a new one is sorted by its first word."""
    scripts = {path.stem for path in finish_run.Path(finish_run.__file__).parent.glob("*.py")}
    kernels = {name for name in scripts if name.startswith(finish_run.KERNELS)}
    assert {
        "simulate_moments",
        "simulate_softmax",
        "train_models",
        "describe_heads",
        "tabulate_softmax_theory",
    } < kernels
    assert not {name for name in kernels if name.startswith(("collect_", "draw_", "render_", "write_", "fit_"))}


def test_the_record_of_a_run_holds_the_parts(results):
    finish_run.finish_run(0.0, 2, results, ())
    record = json.loads((results / "run.json").read_text("utf-8"))
    assert record["cpu_seconds_in"]["kernels"] == 7.0
    assert sum(record["cpu_seconds_in"].values()) == pytest.approx(record["cpu_seconds"])
    assert record["kernel_share"] == pytest.approx(7.0 / record["cpu_seconds"])


def test_a_run_on_a_cluster_claims_no_cost_that_it_cannot_know(results):
    said = finish_run.finish_run(0.0, None, results, ())
    assert "s on a cluster\n" in said
    assert "MB" not in said
    record = json.loads((results / "run.json").read_text("utf-8"))
    unknown = {name for name, value in record.items() if value is None}
    assert unknown == {"cores", "cpu_seconds", "cpu_seconds_in", "kernel_share", "peak_memory_mb"}
    assert record["wall_seconds"] > 0


def test_a_report_is_named_only_where_there_is_one(results):
    assert "report:" not in finish_run.finish_run(0.0, 2, results, ())
    (results / "report.html").touch()
    assert f"report:   {results / 'report.html'}\n" in finish_run.finish_run(0.0, 2, results, ())


def test_cells_of_removed_entries_are_said(results):
    kept, other = results / "cells/moments/gaussian/all.npz", results / "cells/moments/removed/all.npz"
    for path in (kept, other):
        path.parent.mkdir(parents=True)
        path.touch()
    said = finish_run.finish_run(0.0, 2, results, [str(kept)])
    assert f"kept:     1 file of cells that this configuration does not have, such as {other}" in said
    assert "kept:" not in finish_run.finish_run(0.0, 2, results, [str(kept), str(other)])
