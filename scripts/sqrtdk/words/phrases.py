"""Phrases that the library and its tables say in English, put into the language of a report."""

import re
from collections.abc import Mapping
from functools import cached_property

_LITERAL = r"[^\s,;]+(?:, [^\s,;]+)*"
"""What a placeholder stands for: a number, a name, or several with commas between them."""


class Phrases:
    """A catalogue from English phrases to those of another language; an empty one leaves them as they are.

    `{name}` in a phrase is a number or a name, or a list of them, and is kept. `{phrase}`, or a name that begins so, is
    itself a phrase of the catalogue.
    """

    def __init__(self, catalogue: Mapping[str, str]):
        self.catalogue = catalogue
        self.used: set[str] = set()
        self._found: dict[str, str | None] = {}

    def __call__(self, text: str) -> str | None:
        """Return the counterpart of a phrase, None where the catalogue has none."""
        if not self.catalogue or not text:
            return text
        # Kept, since a phrase of many parts can be divided in many ways.
        if text not in self._found:
            self._found[text] = self._look_up(text)
        return self._found[text]

    def _look_up(self, text: str) -> str | None:
        if text in self.catalogue:
            self.used.add(text)
            return self.catalogue[text]
        for english, pattern, found in self.patterns:
            if match := pattern.fullmatch(text):
                values = {name: self(part) if _nested(name) else part for name, part in match.groupdict().items()}
                if None not in values.values():
                    self.used.add(english)
                    return found.format(**values)
        return None

    @cached_property
    def patterns(self) -> list[tuple[str, re.Pattern[str], str]]:
        """The phrases with placeholders; those of several phrases twice, as where one ends can depend on the next."""
        found = []
        for english, other in self.catalogue.items():
            parts = re.split(r"\{(\w+)\}", english)
            several = sum(map(_nested, parts[1::2])) > 1
            for phrase in (".+?", ".+") if several else (".+",) if len(parts) > 1 else ():
                pieces = (
                    re.escape(part) if place % 2 == 0 else f"(?P<{part}>{phrase if _nested(part) else _LITERAL})"
                    for place, part in enumerate(parts)
                )
                found.append((english, re.compile("".join(pieces)), other))
        return found


def _nested(name: str) -> bool:
    return name.startswith("phrase")
