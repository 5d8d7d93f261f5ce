"""What a person reads last when jobs fail: which cells, what went wrong in each, what to do, and where the log is."""

import os
import re
import subprocess

import pipeline
import pytest
from pipeline import DUMPS, ENSEMBLES, WIDTHS, edit, small

FAILING = len(ENSEMBLES) * (1 + len(WIDTHS)) + len(DUMPS) + 2


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    """Run a copy of the source in which programs fail, each in its own way; return its folder and its last words."""
    folder = pipeline.copy_source(tmp_path_factory.mktemp("it's a run"))
    pipeline.lend_environment(folder)
    scripts = folder / "scripts"
    edit(
        scripts / "describe_heads.py",
        "    arrays, scaling = ",
        "    raise ValueError('the dump\\nhas no keys')\n    arrays, scaling = ",
    )
    full = "raise OSError(28, 'No space left on device')"
    edit(scripts / "simulate_moments.py", "drawn = ", f"{full}\n            drawn = ")
    edit(scripts / "simulate_softmax.py", "run(simulate_softmax)", "raise MemoryError")
    edit(scripts / "simulate_alternatives.py", "run(simulate_alternatives)", "__import__('os').abort()")
    edit(scripts / "simulate_depth.py", "    write_table(output, depth.simulate(n_stacks, seed))", "    pass")
    small(folder)
    targets = "results/moments.csv results/softmax_saturation.csv results/depth.csv results/cells/alternatives/4.csv"
    arguments = f"{targets} --configfile small.yaml --latency-wait 0"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "report", f"ARGS={arguments}"]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode != 0, done.stdout
    start = re.search(r"^\d+ jobs failed:$", done.stdout, re.MULTILINE)
    assert start, done.stdout
    return folder, done.stdout[start.start() :]


def words(failed, cell: str) -> list[str]:
    """Return the lines about a cell."""
    block = re.search(rf"^  {re.escape(cell)}\n((?: {{6}}.*\n)+)", failed[1], re.MULTILINE)
    assert block, failed[1]
    return [line.strip() for line in block[1].splitlines()]


def test_the_cell_its_message_and_its_log_are_named(failed):
    message, more, remedy, log = words(failed, "describe_heads: dump = minilm_l6")
    assert (message, more) == ("ValueError: the dump", "has no keys")
    assert remedy.startswith("to do: mend the file or the setting")
    assert log == f"log:   {failed[0]}/results/logs/describe_heads/minilm_l6.log"
    assert "ValueError" in (failed[0] / "results/logs/describe_heads/minilm_l6.log").read_text(encoding="utf-8")


def test_a_full_disk_has_its_own_remedy(failed):
    message, cell, remedy, _ = words(failed, "simulate_moments: ensemble = aligned, part = all")
    assert (message, remedy) == ("OSError: [Errno 28] No space left on device", "to do: make room on the disk")
    assert cell == f"in the cell of aligned at d_k = {WIDTHS[0]}"


def test_a_program_that_was_killed_is_said_to_be_silent(failed):
    message, remedy, _ = words(failed, "simulate_alternatives: d_k = 4")
    assert "stopped" in message
    assert "more memory or time" in remedy


def test_a_program_that_made_no_file_is_not_taken_for_one_that_failed(failed):
    message, remedy, _ = words(failed, "simulate_depth")
    assert "ended well" in message
    assert "--latency-wait" in remedy


def test_ten_are_named_and_the_rest_are_counted(failed):
    assert failed[1].startswith(f"{FAILING} jobs failed:")
    assert len(re.findall(r"^  \w+(: .* = .*)?$", failed[1], re.MULTILINE)) == 10
    assert f"\n  and {FAILING - 10} more\n" in failed[1]


def test_nothing_but_the_word_of_make_comes_after(failed):
    *_, last, word_of_make = failed[1].splitlines()
    assert last == "Then give the same command again: what is finished is kept."
    assert word_of_make.startswith("make: ***")
    for noise in ("Traceback", "CalledProcessError", "set -euo", "Complete log", "WorkflowError"):
        assert noise not in failed[1]
