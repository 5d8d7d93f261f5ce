"""What the results say, before a language puts it into words."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sentence:
    """A sentence of the report: the key of its words, and the values of its placeholders.

    A value is plain text or a number, a Sentence, or a Listing.
    """

    key: str
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Listing:
    """Several values joined as the language joins them: `and` (a, b and c), `comma` or `semicolon`."""

    items: tuple
    kind: str = "and"
