"""The words of the report: one tree of texts per language, and sentences that name a text and fill its placeholders."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from markupsafe import Markup

from sqrtdk.words.mathml import MissingPart, glued, inline, prose
from sqrtdk.words.phrases import Phrases
from sqrtdk.words.sentences import Listing, Phrase, Quantity, Sentence

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Ten times as fast where PyYAML was built with libyaml."""

_HAN = "\u4e00-\u9fff"
_BEFORE_LATIN = re.compile(rf"(?<=[{_HAN}])(?=(?:<\w[^<>]*>)*[A-Za-z0-9√−½])")
_AFTER_LATIN = re.compile(rf"([A-Za-z0-9%½ₖ)](?:</\w+>)*)(?=[{_HAN}])")


def tree(sources: Mapping[str, str], language: str) -> dict[str, Any]:
    """Return the words of a language from the report's sources, all `words/<language>/*.yaml`; no key stands twice.

    Raises MissingPart where there is no such file.
    """
    found: dict[str, Any] = {}
    owner: dict[str, str] = {}
    for name in sorted(sources):
        if re.fullmatch(rf"words/{re.escape(language)}/[\w-]+\.yaml", name):
            for key, entry in (yaml.load(sources[name], Loader=LOADER) or {}).items():
                if key in found:
                    raise ValueError(f"{name} and {owner[key]} both hold the words {key!r}")
                found[key], owner[key] = entry, name
    if not found:
        raise MissingPart(f"the report's sources have no words/{language}/*.yaml")
    return found


def read(report: Path, language: str) -> dict[str, Any]:
    """Return the words of a language from the folder of the report's sources."""
    files = (report / "words" / language).glob("*.yaml")
    return tree({path.relative_to(report).as_posix(): path.read_text(encoding="utf-8") for path in files}, language)


class Words:
    """The words of one language: `words("a.b", x=...)` is the text at a.b as HTML, with its placeholders filled.

    The text is trusted HTML with `$tex$` for formulas and `[@key]` for references; the values are not, and are escaped.
    `constants` are values that every text may name.
    """

    markup = Markup

    def __init__(
        self,
        tree: dict[str, Any],
        references: Mapping[str, Any] | None = None,
        constants: Mapping[str, Any] | None = None,
    ):
        self.tree = tree
        self.constants = constants or {}
        self.references = references or {}
        self.numbers = {key: number for number, key in enumerate(references or {}, start=1)}
        self.used: set[str] = set()
        self.phrases = Phrases(tree.get("phrases") or {})

    def entry(self, key: str) -> Any:
        """Return what stands at a dotted key: a text, a list or a mapping."""
        here: Any = self.tree
        for part in key.split("."):
            if not isinstance(here, dict) or part not in here:
                raise MissingPart(f"the words have no {key!r}")
            here = here[part]
        return here

    def has(self, key: str) -> bool:
        """Say whether there is a text at this key."""
        try:
            return isinstance(self.entry(key), str)
        except MissingPart:
            return False

    def text(self, key: str) -> str:
        """Return the text at a key as it stands in the words. Raises MissingPart where there is none."""
        text = self.entry(key)
        if not isinstance(text, str):
            raise MissingPart(f"the words at {key!r} are no text")
        self.used.add(key)
        return text

    def plain(self, key: str, **values: object) -> str:
        """Return a text without any markup, for attributes and the page's title."""
        text = self.text(key)
        if "$" in text or "[@" in text or re.search(r"<[a-zA-Z/]", text):
            raise ValueError(f"the words at {key!r} are used where markup cannot stand")
        return self.fill(key, text, values)

    def __call__(self, key: str, **values: object) -> Any:
        """Return the text at a key as HTML, with its placeholders filled. Raises MissingPart where there is none."""
        parts = self.text(key).split("$")
        values = {**self.constants, **values}
        if len(parts) % 2 == 0:
            raise ValueError(f"the words at {key!r} have an odd number of $")
        # Every second part stands between two dollar signs.
        pieces = (
            self.formula(part, values) if number % 2 else self.fill(key, self.prepare(key, part), values)
            for number, part in enumerate(parts)
        )
        return self.finish(self.markup("").join(pieces))

    def prepare(self, key: str, text: str) -> Markup:
        """Return a part of a text without formulas as markup with its placeholders still open."""
        return self.markup(self.cite(key, text))

    def formula(self, tex: str, values: Mapping[str, object]) -> Markup:
        """Return a formula as markup, its placeholders filled."""
        return inline(tex, values)

    def prose(self, text: str) -> Markup:
        """Return plain text as markup, its symbols set as formulas."""
        return prose(text)

    def quantity(self, value: Quantity) -> Markup:
        """Return a number as a link to its line in the list of numbers, which shows its full spelling."""
        link, text = (
            '<a class="fact" href="#number-{}" data-full="{}">{}</a>',
            value.text.replace(" %", "\N{NO-BREAK SPACE}%"),
        )
        return Markup(link).format(value.name, value.full, text)

    def finish(self, whole: Any) -> Any:
        """Return a whole text with what no line may part kept together."""
        return glued(whole)

    def fill(self, key: str, text: str, values: Mapping[str, object]) -> str:
        """Return a text with its placeholders filled. Raises MissingPart where one has no value."""
        markup = isinstance(text, self.markup)
        try:
            filled = text.format(**{name: self.spell(value, markup) for name, value in values.items()})
        except (KeyError, IndexError) as error:
            raise MissingPart(f"the words at {key!r} need a value for {error}") from None
        if "{" not in text:
            return filled
        # What is filled in may be Chinese or not: the space between is set here.
        return type(text)(_AFTER_LATIN.sub(r"\1 ", _BEFORE_LATIN.sub(" ", filled)))

    def cite(self, key: str, text: str) -> str:
        """Return a text with links for its references. Raises MissingPart for an unknown one."""

        def link(match: re.Match[str]) -> str:
            if match[1] not in self.numbers:
                raise MissingPart(f"the words at {key!r} cite {match[1]!r}, which is not among the references")
            return f'<a class="cite" href="#ref-{match[1]}">[{self.numbers[match[1]]}]</a>'

        return re.sub(r"\[@([\w-]+)\]", link, text)

    def phrase(self, text: str) -> str:
        """Return the counterpart of an English phrase; one without, such as a new family's summary, stays English.

        `make release-check` lists what has no counterpart.
        """
        return self.phrases(text) or text

    def spell(self, value: object, markup: bool = True) -> object:
        """Return a value as the language spells it: a sentence in words, a listing joined, anything else as it is."""
        if isinstance(value, Sentence):
            return self(value.key, **value.values) if markup else self.plain(value.key, **value.values)
        if isinstance(value, Phrase):
            return self.prose(self.phrase(value.text)) if markup else self.phrase(value.text)
        if isinstance(value, Quantity):
            return self.quantity(value) if markup else value.text
        if not isinstance(value, Listing):
            return value
        if not value.items:
            return self.spell(Sentence("lists.nothing"), markup)
        spelled = (self.spell(item, markup) for item in value.items)
        items: list[str] = [self.markup.escape(item) if markup else str(item) for item in spelled]
        between = self.entry(f"lists.{'semicolon' if value.kind == 'semicolon' else 'comma'}")
        last = self.entry("lists.last") if value.kind == "and" else between
        parts = items[:1]
        for place, item in enumerate(items[1:], start=2):
            parts += [last if place == len(items) else between, item]
        return (self.markup("") if markup else "").join(parts)
