"""Tests that need a program of the system: on a machine without it they are left out, loudly; in CI they fail."""

import os
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Need:
    """What the tests with a marker need; `missing` names what this machine lacks of it, or nothing."""

    marker: str
    purpose: str
    missing: Callable[[], str]
    heading: str

    def lacking(self) -> str:
        return "" if os.environ.get("CI") else self.missing()

    def register(self, config) -> None:
        config.addinivalue_line("markers", f"{self.marker}: {self.purpose}")

    def leave_out(self, config, items) -> None:
        out = [item for item in items if item.get_closest_marker(self.marker)]
        if out and self.lacking():
            items[:] = [item for item in items if item not in out]
            config.hook.pytest_deselected(items=out)

    def say(self, terminalreporter) -> None:
        # Not by what was deselected: with pytest-xdist that happens in another process.
        if lacking := self.lacking():
            terminalreporter.section(self.heading, sep="!", red=True, bold=True)
            text = f"Its tests were left out because this machine lacks {lacking} (what CI installs: .ci/run)."
            terminalreporter.line(text, red=True)
