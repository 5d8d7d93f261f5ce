"""The browser of these tests: the system's chromium, offline. Where there is none, the run says so loudly."""

import functools
import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

import sharing
from needs import Need

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "unit")]

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def missing() -> str:
    """Say what the browser tests lack on this machine; nothing if they can run."""
    for package in ("playwright", "axe_playwright_python"):
        if importlib.util.find_spec(package) is None:
            return f"the Python package {package}"
    return "" if executable() else f"a browser ({', '.join(NAMES)})"


def executable() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


BROWSER = Need(
    "browser", "opens the report in the system's chromium", missing, "THE REPORT WAS NOT OPENED IN A BROWSER"
)


def pytest_configure(config):
    BROWSER.register(config)


def pytest_collection_modifyitems(config, items):
    BROWSER.leave_out(config, items)


def pytest_terminal_summary(terminalreporter):
    BROWSER.say(terminalreporter)


@pytest.fixture(scope="session")
def report_in():
    """The report with every figure of the project, from synthetic results: report_in(language) is its path."""
    import example

    @functools.cache
    def rendered(language: str) -> Path:
        with sharing.turn(f"report_{language}") as folder:
            if not (folder / "report.html").exists():
                tables = example.frames()
                example.draw_figures(folder, tables, language)
                example.render(folder, tables, language=language)
        return folder / "report.html"

    return rendered


@pytest.fixture(scope="session")
def report(report_in) -> Path:
    """The report in English."""
    return report_in("en")


@pytest.fixture(scope="session")
def browser():
    lacking = missing()
    if lacking:
        pytest.fail(f"the report must be opened in a browser here, and this machine lacks {lacking}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=executable(), args=list(FLAGS))
        yield opened
        opened.close()


class Opened:
    """A page opened from a file, with all that it asked for and all that it said."""

    def __init__(self, context, path: Path, anchor: str = ""):
        self.requests: list[str] = []
        self.failures: dict[str, str] = {}
        self.messages: list[str] = []
        context.set_offline(True)
        self.page = context.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("requestfailed", lambda request: self.failures.update({request.url: request.failure}))
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("dialog", lambda dialog: self.messages.append(dialog.message) or dialog.dismiss())
        self.url = path.as_uri()
        self.page.goto(self.url + anchor)


@pytest.fixture
def visit(browser):
    """Open a file: visit(path, anchor="", **options of a browser context)."""
    contexts = []

    def opened(path: Path, anchor: str = "", **options) -> Opened:
        contexts.append(browser.new_context(**options))
        return Opened(contexts[-1], path, anchor)

    yield opened
    for context in contexts:
        context.close()
