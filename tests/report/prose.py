"""Texts of the words and of a page, and what of them is English."""

import re
from html.parser import HTMLParser
from pathlib import Path

from sqrtdk.words import texts as language_words

REPORT = Path(__file__).resolve().parents[2] / "report"
OTHERS = sorted({path.name for path in (REPORT / "words").iterdir()} - {"en"})
"""The languages of the report beside English."""


def leaves(tree: dict, before: str = "") -> dict[str, str]:
    """Return the texts of the words by their dotted keys."""
    found = {}
    for key, value in tree.items():
        found |= leaves(value, f"{before}{key}.") if isinstance(value, dict) else {f"{before}{key}": value}
    return found


def words(language: str = "en") -> dict[str, str]:
    """Return the texts of a language by dotted key, without its catalogue of phrases."""
    return {key: text for key, text in leaves(language_words.read(REPORT, language)).items() if key[:7] != "phrases"}


def english(text: str, at_least: int) -> list[str]:
    """Return the runs of so many words or more in Latin letters, outside formulas, code, tags and placeholders."""
    text = re.sub(r"<code>.*?</code>|\$[^$]*\$|<[^>]*>|\[@[^\]]*\]|\{\w+\}", "·", text)
    return re.findall(rf"(?:[A-Za-z][A-Za-z'’-]*[\s,;]+){{{at_least - 1},}}[A-Za-z][A-Za-z'’-]*", text)


class Prose(HTMLParser):
    """Collect the texts of a page that are prose: what is no code, data, formula, picture or reference."""

    SKIPPED = ("code", "pre", "svg", "math", "style", "script", "cite")
    ELSEWHERE = ("references",)
    VOID = ("meta", "link", "br", "img", "input", "hr")

    def __init__(self, page: str):
        super().__init__()
        self.open: list[bool] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.texts += [values[name] for name in ("aria-label", "alt") if values.get(name)]
        if values.get("name") == "description":
            self.texts.append(values["content"])
        if tag not in self.VOID:
            self.open.append(tag in self.SKIPPED or values.get("id") in self.ELSEWHERE or "literal" in values.values())

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            self.open.pop()

    def handle_data(self, text):
        if not any(self.open):
            self.texts.append(text)
