"""The last words of a run in which jobs failed: the last message of a log, the job of a group that is to blame."""

import os
from types import SimpleNamespace

import pytest

import explain_failures
from program import CPU_LINE

RAISED = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    f()\n    ^^^\n'
ENDED = CPU_LINE.format("1.250", "1.500") + "\n"


class Cells:
    """Jobs with logs, as Snakemake describes them."""

    def __init__(self, folder):
        self.folder = folder

    def job(self, rule: str, said: str | None, age: float = 0.0, **wildcards):
        log = self.folder / f"{rule}{''.join(wildcards.values())}.log"
        if said is not None:
            log.write_text(said, encoding="utf-8")
            os.utime(log, (1000 - age, 1000 - age))
        rule = SimpleNamespace(name=rule)
        return SimpleNamespace(rule=rule, wildcards_dict=wildcards, log=[str(log)], is_group=lambda: False)

    def group(self, *jobs):
        return SimpleNamespace(jobs=jobs, is_group=lambda: True)


@pytest.fixture
def cells(tmp_path):
    return Cells(tmp_path)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (RAISED + "ValueError: no keys\n", "ValueError: no keys"),
        (RAISED + "ValueError: two\n\n  lines\n", "ValueError: two\n  lines"),
        (
            f"a warning\n{RAISED}KeyError: 'a'\n\nDuring handling of the above, another came:\n\n{RAISED}E: b\n",
            "E: b",
        ),
        ('  File "a.py", line 1\n    f(\n     ^\nSyntaxError: never closed\n', "SyntaxError: never closed"),
        ("bash: line 1: python: command not found\n", "bash: line 1: python: command not found"),
        (RAISED, "    ^^^"),  # stopped while it wrote
        ("", ""),
    ],
)
def test_the_last_message_is_the_exception_without_its_traceback(said, message):
    assert explain_failures.last_message(said) == message


def test_a_long_message_is_cut():
    assert len(explain_failures.last_message(RAISED + "E: " + "x" * 10_000)) == explain_failures.LONGEST + 1


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 3. TiB", "fewer jobs at once"),
        ("OSError: [Errno 122] Disk quota exceeded: 'a'", "room on the disk"),
        ("ModuleNotFoundError: No module named 'numpy'", "install the pinned packages"),
        ("ValueError: no keys", "mend the file or the setting"),
    ],
)
def test_what_to_do_goes_by_the_message(message, remedy):
    assert explain_failures.diagnose(RAISED + message)[0] == message
    assert remedy in explain_failures.diagnose(RAISED + message)[1]


def test_no_failure_has_no_words(cells):
    assert explain_failures.explain(set(), since=1000) == ""


def test_a_log_of_an_earlier_run_or_none_says_nothing_of_this_one(cells):
    jobs = [cells.job("old", RAISED + "ValueError: yesterday\n", age=500), cells.job("none", None)]
    said = explain_failures.explain(jobs, since=1000)
    assert "yesterday" not in said
    assert said.count(explain_failures.STOPPED) == 2


def test_of_a_group_the_job_that_says_what_went_wrong_is_named(cells):
    ended = cells.job("moments", ENDED, d_k="1")
    raised = cells.job("moments", RAISED + "ValueError: here\n", d_k="2")
    stopped = cells.job("moments", "", d_k="4")
    waiting = cells.job("moments", None, d_k="8")
    said = explain_failures.explain([cells.group(ended, raised, stopped, waiting)], since=1000)
    assert said.startswith("1 job failed:\n  moments: d_k = 2\n      ValueError: here\n")
    silent = explain_failures.explain([cells.group(ended, stopped, waiting)], since=1000)
    assert silent.startswith(f"1 job failed:\n  moments: d_k = 4\n      {explain_failures.STOPPED}\n")


def test_of_a_group_that_never_began_all_are_named(cells):
    jobs = [cells.job("moments", None, d_k=str(d_k)) for d_k in (1, 2)]
    assert explain_failures.explain([cells.group(*jobs)], since=1000).startswith("2 jobs failed:")


def test_jobs_come_in_order_whatever_order_they_failed_in(cells):
    jobs = [cells.job("b", "x"), cells.job("a", "x", d_k="2"), cells.job("a", "x", d_k="1")]
    said = [line for line in explain_failures.explain(jobs, since=1000).splitlines() if line[:3].strip()]
    assert said[1:4] == ["  a: d_k = 1", "  a: d_k = 2", "  b"]
