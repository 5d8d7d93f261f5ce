"""What is seen of a run: one line that moves on a terminal, few lines elsewhere, all of it in the log."""

import io
import logging

import pytest
from snakemake.logging import LogEvent

import show_progress

TOTAL = 500


class Terminal(io.StringIO):
    def isatty(self):
        return True


def events():
    """The records of a run as Snakemake makes them, with a warning in between and its last words."""
    for done in range(1, TOTAL + 1):
        yield logging.INFO, " Rule: x", {"event": LogEvent.JOB_INFO, "rule_name": "draw_figure"}
        yield logging.INFO, "Finished jobid: 1", {"event": LogEvent.JOB_FINISHED}
        yield logging.INFO, None, {"event": LogEvent.PROGRESS, "done": done, "total": TOTAL}
        yield logging.INFO, "Select jobs to execute...", {}
        if done == 250:
            yield logging.WARNING, "the disk is slow", {}
            yield logging.INFO, "Trying to restart job 17.", {}
    yield logging.INFO, "Complete log(s): here", {}


def told(stream):
    """Return what a stream and a log file hold of a run."""
    logger, log = logging.Logger("snakemake"), io.StringIO()
    for name, to in (("DefaultStreamHandler", stream), ("DefaultLogFileHandler", log)):
        handler = logging.StreamHandler(to)
        handler.name = name
        handler.addFilter(lambda record: getattr(record, "event", None) != LogEvent.JOB_INFO)
        logger.addHandler(handler)
    show_progress.show(logger)
    for level, text, extra in events():
        logger.log(level, text, extra=extra)
    return stream.getvalue(), log.getvalue()


def test_elsewhere_a_run_is_a_few_plain_lines():
    said, log = told(io.StringIO())
    lines = said.splitlines()
    assert len(lines) == 13
    assert lines[0].startswith("50 of 500 jobs, ")
    assert lines[0].endswith(" s left: draw_figure")
    assert lines[-3:] == ["450" + lines[-3][3:], lines[-2], "Complete log(s): here"]
    assert lines[-2].startswith("500 of 500 jobs, ")
    assert "the disk is slow" in lines
    assert "Trying to restart job 17." in lines
    assert "\r" not in said
    assert log.count(" Rule: x") == log.count("Finished jobid") == TOTAL


def test_on_a_terminal_one_line_moves_and_nothing_overwrites_what_else_is_said():
    said, _ = told(Terminal())
    assert said.count("\n") == 4
    assert "\r\033[Kthe disk is slow\n" in said
    assert said.count("\r\033[K") == TOTAL + 3


@pytest.mark.parametrize("columns", [20, 80])
def test_the_line_that_moves_fits_into_the_terminal(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    said, _ = told(Terminal())
    assert (
        max(len(part) for part in said.replace("\033[K", "").replace("\n", "\r").split("\r") if "jobs" in part)
        < columns
    )
