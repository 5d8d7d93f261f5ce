"""What a person sees of a run: on a terminal one line that moves, elsewhere a line now and then; the log has it all."""

import logging
import shutil
import time

from snakemake.logging import LogEvent

LINES = 10
"""How many are written in a run where none can move."""
TOLD = ("Complete log", "Trying to restart job")
"""What else Snakemake says that a person wants to know: where the log is, and that a job failed and is tried again."""


class Progress:
    """A filter of what Snakemake writes to its stream: of jobs the progress alone, of all else warnings and errors."""

    def __init__(self, stream) -> None:
        self.stream, self.moving = stream, stream.isatty()
        self.started, self.said, self.rule = time.monotonic(), 0, ""

    def __call__(self, record: logging.LogRecord) -> bool:
        """Say whether Snakemake shall write the record itself, and keep it apart from the line that moves."""
        event = getattr(record, "event", None)
        if event == LogEvent.JOB_INFO:
            self.rule = record.rule_name
        elif event == LogEvent.PROGRESS:
            self._show(record.done, record.total)
        shown = record.levelno >= logging.WARNING or str(record.msg).startswith(TOLD)
        if shown and self.moving:
            self.stream.write("\r\033[K")
        return shown

    def _show(self, done: int, total: int) -> None:
        took = time.monotonic() - self.started
        text = f"{done} of {total} jobs, {took:.0f} s"
        if done < total:
            text += f", about {took * (total - done) / done:.0f} s left: {self.rule}"
        if self.moving:
            width = shutil.get_terminal_size().columns - 1
            self.stream.write(f"\r\033[K{text[:width]}" + "\n" * (done == total))
        elif LINES * done // total > self.said:
            self.said = LINES * done // total
            self.stream.write(f"{text}\n")
        self.stream.flush()


def show(logger: logging.Logger) -> None:
    """Change the handlers of Snakemake's logger, which it calls by name: the stream says little and the file all."""
    for handler in logger.handlers:
        if handler.name == "DefaultStreamHandler":
            handler.filters.insert(0, Progress(handler.stream))
        elif handler.name == "DefaultLogFileHandler":
            handler.filters.clear()
