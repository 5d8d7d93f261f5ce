"""Barriers for readers who do not see the page, or do not point at it: what axe-core finds."""

from pathlib import Path

import axe_playwright_python
import example
import pytest

pytestmark = pytest.mark.browser

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
# axe-core's time grows with the page. A figure is one image to a reader and a formula one expression, whatever they are
# made of, and the rows of a table are all alike.
SHORTEN = """() => {
    for (const svg of document.querySelectorAll('figure svg')) svg.replaceChildren(svg.querySelector('title'));
    for (const math of document.querySelectorAll('math')) math.replaceChildren(math.textContent);
    for (const row of document.querySelectorAll('tbody tr:nth-child(n+7)')) row.remove();
    for (const details of document.querySelectorAll('details')) details.open = true;
}"""


def violations(page, rules: str) -> list[str]:
    """Return what axe-core objects to, with everything open."""
    page.evaluate(SHORTEN)
    page.evaluate(AXE)
    found = page.evaluate(f"axe.run(document, {rules})")
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found["violations"]]


@pytest.mark.parametrize("language", example.languages())
def test_axe_finds_nothing(visit, report_in, language):
    # The contrast of every text, in both themes, is measured in test_browser.py, in a fraction of axe-core's time.
    assert violations(visit(report_in(language)).page, "{rules: {'color-contrast': {enabled: false}}}") == []


def test_axe_would_find_something(visit, report):
    page = visit(report).page
    page.evaluate("document.querySelector('main').append(document.createElement('input'), new Image())")
    found = violations(page, "{runOnly: ['label', 'image-alt']}")
    assert [one.split(":")[0] for one in found] == ["image-alt", "label"]
