"""The words beside a figure in one language, from what its module says of the numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from sqrtdk.figures import selection, style
from sqrtdk.figures.catalogue import Description
from sqrtdk.statistics import intervals, shares
from sqrtdk.words import numbers
from sqrtdk.words.sentences import Listing, Sentence, decode, encode, with_keys

if TYPE_CHECKING:
    import pandas as pd

    from sqrtdk.words.texts import Words

    Frames = Mapping[str, pd.DataFrame]
    Describe = Callable[[pd.DataFrame, Frames], Description]

PARTS = ("caption", "alt", "reading", "caveat", "title")
"""In the order of a Description."""
SHARED = "shared."
"""Words that several figures use stand under this key; all others stand under `figure-<name>`."""


def described(data: Callable[[Frames], pd.DataFrame]) -> Callable[[Describe], Callable[[Frames], Description]]:
    """Make `describe(table, frames)` a function of the result tables; without a row to show it says `nothing`."""

    def decorated(describe: Describe) -> Callable[[Frames], Description]:
        @functools.wraps(describe)
        def description(frames: Frames) -> Description:
            table, nothing = selection.table(data, frames), (Sentence("nothing"),)
            return Description(nothing, nothing, nothing) if table.empty else describe(table, frames)

        return description

    return decorated


def record(description: Description) -> dict[str, Any]:
    """Return a description as plain data, without a language."""
    return {part: [encode(sentence) for sentence in getattr(description, part)] for part in PARTS}


def speak(say: Words, name: str, sentences: Iterable[object]) -> str:
    """Return sentences of a figure as plain text; a list from `record` will do as well."""

    def place(key: str) -> str:
        return key if key.startswith(SHARED) else f"figure-{name}.{key}"

    placed = (cast(Sentence, with_keys(decode(sentence), place)) for sentence in sentences)
    return say.text("lists.between_sentences").join(say.plain(sentence.key, **sentence.values) for sentence in placed)


def words(say: Words, name: str, parts: dict[str, Any]) -> dict[str, str]:
    """Return question and all parts of a record as plain text."""
    spoken = {"question": speak(say, name, [Sentence("question")])}
    return spoken | {part: speak(say, name, parts[part]) for part in PARTS}


def counts(values: Iterable[int]) -> Listing:
    """Return whole numbers as a listing: 16, 64 and 256."""
    return Listing(tuple(numbers.count(value) for value in values))


def ends(texts: Iterable[object]) -> object:
    """Return the ends of a range as the language spells it: `a to b`, or `a` where there is one only."""
    low, *rest = texts
    return Sentence("shared.range", {"low": low, "high": rest[-1]}) if rest else low


def span(values: Any) -> object:
    """Return the range of whole numbers: 64, or 64 to 4096."""
    return ends(dict.fromkeys(numbers.count(value) for value in (min(values), max(values))))


def counted(number: int, key: str, **values: object) -> Sentence:
    """Return a number with its noun: the words at `key` have one text for `one` and one for `many`, both with `{n}`."""
    return Sentence(f"{key}.{'one' if number == 1 else 'many'}", {"n": numbers.count(number), **values})


def rule(name: str) -> Sentence:
    """Return a scale rule in the words of a sentence: `without a scale`, `with 1/√d_k`."""
    if name == "none":
        return Sentence("shared.rule.none")
    return Sentence("shared.rule.with", {"rule": style.scaling_words(name).removeprefix("with ")})


def coverage(inside: int, total: int, quantity: object, unit: str) -> Sentence:
    """Say how many 95 % intervals hold the exact value, and whether that is what 95 % allows.

    quantity: what is estimated, as a value of a sentence. unit: the key of words with `one` and `many`, for `counted`.
    """
    if not total:
        return Sentence("shared.coverage.nothing", {"quantity": quantity})
    values = {"inside": numbers.count(inside), "of": counted(total, unit), "share": numbers.percent(inside / total)}
    nominal = shares.is_nominal(inside / total, total)
    verdict = "nominal" if nominal else "few" if inside < intervals.LEVEL * total else "many"
    return Sentence(f"shared.coverage.{verdict}", values | {"quantity": quantity})


def change(first: float, first_se: float, last: float, last_se: float, small: float) -> Sentence:
    """Say whether a quantity falls, rises or stays, with both values and their errors.

    It stays where the change is under three combined standard errors or under `small` of the larger value.
    """
    spelled = {"first": numbers.with_error(first, first_se), "last": numbers.with_error(last, last_se)}
    if spelled["first"] == spelled["last"]:
        return Sentence("shared.change.stays", spelled)
    if abs(last - first) <= max(selection.noise(first_se, last_se), small * max(abs(first), abs(last))):
        return Sentence("shared.change.level", spelled)
    return Sentence(f"shared.change.{'rises' if last > first else 'falls'}", spelled)


def move(pair: selection.Ends, by: str, small: float) -> Sentence:
    """Say how the estimate changes between the ends of a series; what it is where they are one."""
    first, last = pair
    if first[by] == last[by]:
        return Sentence("shared.change.single", {"last": numbers.with_error(last["estimate"], last["se"])})
    return change(first["estimate"], first["se"], last["estimate"], last["se"], small)


def few(items: Iterable[object], most: int = 6) -> Listing:
    """Return items as a listing; of many the first ones, and how many others there are."""
    shown = list(items)
    if len(shown) > most + 1:
        shown[most:] = [Sentence("shared.others", {"n": numbers.count(len(shown) - most)})]
    return Listing(tuple(shown))


def widths(values: Any) -> Sentence:
    """Return the widths of heads that a figure spans: from d_k = 1 to 4096, or at d_k = 64."""
    low, high = min(values), max(values)
    spelled = {"low": numbers.count(low), "high": numbers.count(high)}
    return Sentence(f"shared.widths.{'one' if low == high else 'many'}", spelled)


def at_width(ensemble: str, d_k: int) -> Sentence:
    """Return a cell of the simulation by its ensemble and width: Gaussian at d_k = 64."""
    return Sentence("shared.at_width", {"label": style.ensemble_label(ensemble), "d_k": numbers.count(d_k)})


def series(ensemble: str, texts: list[str]) -> Sentence:
    """Return what an ensemble has at the ends of its series: Gaussian 1.00(1) to 4096(3), or that it has nothing."""
    values = {"label": style.ensemble_label(ensemble)} | ({"ends": ends(texts)} if texts else {})
    return Sentence(f"shared.series.{'told' if texts else 'missing'}", values)


def opening(name: str) -> Sentence:
    """Return a scale rule as the first words of a sentence: `Without a scale`, `With 1/√d_k`."""
    sentence = rule(name)
    return Sentence(f"shared.opening.{sentence.key.rpartition('.')[2]}", sentence.values)
