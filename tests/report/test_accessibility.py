"""Barriers: what axe-core finds, and colours that some readers cannot tell apart."""

from pathlib import Path

import axe_playwright_python
import example
import pytest

pytestmark = pytest.mark.browser

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
# A figure is one image to a reader and a formula one expression: what they are made of is no part of the page.
WHERE = "{exclude: ['figure svg *', 'math *']}"


def violations(page, rules: str = "{}") -> list[str]:
    """Return what axe-core objects to, with everything open."""
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    page.evaluate(AXE)
    found = page.evaluate(f"axe.run({WHERE}, {rules})")
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found["violations"]]


@pytest.mark.parametrize("language", example.languages())
def test_axe_finds_nothing(visit, report_in, language):
    opened = visit(report_in(language), color_scheme="dark")
    assert violations(opened.page) == []
    # In the light the page differs by its colours alone.
    opened.page.emulate_media(color_scheme="light")
    assert violations(opened.page, "{runOnly: ['color-contrast']}") == []


def test_axe_finds_nothing_without_controls(visit, report):
    page = visit(report).page
    page.evaluate("document.querySelectorAll('.tools, #status, #explore-panel').forEach(part => part.remove())")
    assert violations(page, "{rules: {'color-contrast': {enabled: false}}}") == []


def test_axe_would_find_something(visit, report):
    page = visit(report).page
    page.evaluate(
        "document.querySelector('main').insertAdjacentHTML('beforeend', '<p><input><img src=\"data:,\"></p>')"
    )
    found = violations(page, "{runOnly: ['label', 'image-alt']}")
    assert [one.split(":")[0] for one in found] == ["image-alt", "label"]
