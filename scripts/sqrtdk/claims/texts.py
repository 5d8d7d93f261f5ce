"""Texts that stand in code, in every language of the report."""

import dataclasses
from dataclasses import dataclass

from sqrtdk.words.mathml import MissingPart


@dataclass(frozen=True, kw_only=True)
class Text:
    """One text in every language of the report, which stand together; none may be left out or empty."""

    en: str
    zh: str

    def __post_init__(self) -> None:
        for name, text in dataclasses.asdict(self).items():
            if not text.strip():
                raise ValueError(f"a text has no words in the language {name!r}")

    def language(self, name: str) -> str:
        """Return the text in a language; raises MissingPart for one that has none."""
        texts = dataclasses.asdict(self)
        if name not in texts:
            raise MissingPart(f"the claims have no texts in {name!r}, which would go with words/{name}/")
        return texts[name]
