"""The numbers in the prose of a page, and whether the results hold them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd

RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"
_NUMBER = re.compile(
    rf"(?<![A-Za-z0-9_.])(?P<sign>[−-]?)(?P<digits>\d[\d\u202f]*(?:\.\d+)?)"
    rf"(?:\((?P<error>\d+(?:\.\d+)?)\)| ± (?P<plus_minus>\d+(?:\.\d+)?))?"
    rf"(?:\)? × 10(?P<power>[{RAISED}]+))?(?P<percent>\s?%)?(?![A-Za-z0-9_])"
)


@dataclass(frozen=True)
class Number:
    """A number as a text has it: its value, half a unit of its last digit, and its standard error if it has one."""

    text: str
    value: float
    half: float
    error: float | None = None
    half_error: float = 0.0

    def other(self) -> "Number":
        """Return another number as precise as this one: its last digit is larger by three."""
        return replace(self, value=self.value + 6 * self.half)


def numbers(text: str) -> Iterator[Number]:
    """Yield the numbers of a text in the notation of `sqrtdk.numbers`; a percentage is a share of 1."""
    for match in _NUMBER.finditer(text):
        digits = match["digits"].replace("\u202f", "")
        scale = 10.0 ** int((match["power"] or "⁰").translate(str.maketrans(RAISED, "0123456789-")))
        scale *= 0.01 if match["percent"] else 1.0
        unit, error = 10.0 ** -len(digits.partition(".")[2]), match["error"] or match["plus_minus"]
        if error:
            error = float(error) * (1.0 if "." in error or match["plus_minus"] else unit) * scale
        elif "." not in digits and not match["power"]:
            # A whole number may be rounded: 450 stands for 453.
            unit = max(unit, min(10.0 ** (len(digits) - len(digits.rstrip("0"))), 0.1 * float(digits)))
        value = float(digits) * (-1 if match["sign"] else 1)
        yield Number(match[0], value * scale, 0.5 * unit * scale, error, 0.5 * unit * scale)


class Prose(HTMLParser):
    """The text of a page by the ids of its sections and figures: paragraphs, captions, and what stands in lists."""

    TEXT, LEFT_OUT = (
        {"p", "figcaption", "dd", "li"},
        {"table", "pre", "svg", "script", "style", "nav", "link", "index", "cite"},
    )
    RAISED = {"sub", "sup", "msub", "msup", "msubsup", "munder", "mover", "munderover"}
    VOID = {"meta", "link", "br", "img", "input", "hr", "use", "path", "rect"}

    def __init__(self, page: str):
        super().__init__()
        self.open: list[tuple[str, str]] = []
        self.found: dict[str, list[str]] = {}
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            values = dict(attributes)
            # A link within the page names a figure, a table or a reference by its number.
            quoted = values.get("class") == "fact"
            name = "link" if tag == "a" and values.get("href", "").startswith("#") and not quoted else tag
            self.open.append((name, values.get("id") or "" if tag in ("section", "figure") else ""))
            if tag in self.TEXT:
                self.found.setdefault(self.section, []).append("")

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            self.open.pop()

    def handle_data(self, data):
        tags = {tag for tag, _ in self.open}
        if tags & self.TEXT and not tags & (self.LEFT_OUT | self.RAISED):
            self.found[self.section][-1] += data

    @property
    def section(self) -> str:
        return next((name for _, name in reversed(self.open) if name), "")


def comparisons(columns) -> list[tuple[str, str, str]]:
    """Return which columns hold a value, its standard error, and its exact value or nothing."""
    found = []
    for place, value in enumerate(columns):
        errors = [name for name in columns[place + 1 : place + 2] if name in ("se", f"{value}_se")]
        for error in errors:
            names = ("theory", "prediction", "exact") if error == "se" else ()
            exact = [name for name in (f"exact_{value}", *names) if name in columns]
            found.append((value, error, exact[0] if exact else ""))
    return found


class Known:
    """Numbers that the results hold, and pairs of a number with its standard error."""

    def __init__(self):
        self.values: list[np.ndarray] = []
        self.pairs: list[np.ndarray] = []
        self.sorted: np.ndarray | None = None

    def add(self, values) -> "Known":
        found = np.asarray(values, float).ravel()
        self.values.append(found[np.isfinite(found)])
        self.sorted = None
        return self

    def add_pairs(self, values, errors) -> "Known":
        self.pairs.append(np.column_stack([np.asarray(values, float), np.asarray(errors, float)]))
        return self.add(values)

    def add_logits(self, moments: pd.DataFrame) -> "Known":
        """Take up the standard deviations of logits with the scale 1/√d_k: the root of the variance over d_k."""
        rows = moments[moments["variance"] > 0]
        std = (rows["variance"] / rows["d_k"]) ** 0.5
        return self.add_pairs(std, std * rows["variance_se"] / rows["variance"] / 2)

    def add_table(self, table: pd.DataFrame) -> "Known":
        """Take up the cells, each number with its error, and what a table says as a whole.

        That is of each column its count, ends, middle and different values, how often each name in it occurs, and how
        many intervals hold the exact value; of what is counted also the share.
        """
        numeric = table.select_dtypes(["number", "bool"]).astype(float)
        for place, column in enumerate(table.columns):
            if column in numeric:
                self._add_column(numeric, column)
            follows = table.columns[place + 1] if place + 1 < len(table.columns) else ""
            if follows in ("se", f"{column}_se") and column in numeric:
                self.add_pairs(numeric[column], numeric[follows])
            names = table[column].value_counts()
            if len(names) < 60:
                self.add(names).add(names / len(table))
        for exact in [name for name in numeric if "exact" in name or name in ("theory", "curve")]:
            for low in [name for name in numeric if name.endswith("low") and f"{name[:-3]}high" in numeric]:
                high = f"{low[:-3]}high"
                inside = numeric[numeric[high] > numeric[low]].dropna(subset=[exact])
                held = ((inside[low] <= inside[exact]) & (inside[exact] <= inside[high])).sum()
                self.add([held, len(inside), held / max(len(inside), 1)])
        for value, error, exact in comparisons(numeric.columns):
            self._add_comparison(numeric[value], numeric[error], numeric[exact] if exact else None)
        return self.add(len(table))

    def _add_comparison(self, value: pd.Series, error: pd.Series, exact: pd.Series | None) -> None:
        """Take up the largest and the middle relative error, and how far estimates are from their exact values."""
        relative = (error / value.abs())[(error > 0) & (value != 0)]
        if len(relative):
            self.add([relative.max(), relative.median()])
        if exact is not None:
            apart = ((value - exact).abs() / error)[error > 0].dropna()
            inside = apart <= 1.959963984540054
            self.add(apart).add([len(apart), inside.sum(), inside.mean() if len(apart) else 0.0])
            self.add((value / exact - 1).abs()[exact != 0].max())

    def _add_column(self, numeric: pd.DataFrame, column: str) -> None:
        values = numeric[column].dropna()
        self.add(values)
        if len(values):
            self.add([values.min(), values.max(), values.median(), values.mean(), values.sum()])
            self.add([len(values), values.nunique(), values.abs().max(), values.abs().min()])

    def holds(self, number: Number) -> bool:
        if number.error is not None:
            near = 1.0 + 1e-9
            for pairs in self.pairs:
                value = np.abs(pairs[:, 0] - number.value) <= number.half * near
                error = np.abs(pairs[:, 1] - number.error) <= number.half_error * near
                if (value & error).any():
                    return True
            return False
        if self.sorted is None:
            self.sorted = np.unique(np.concatenate([np.zeros(0), *self.values]))
        reach = number.half * (1 + 1e-9) + 1e-15
        place = np.searchsorted(self.sorted, number.value - reach)
        return bool(place < len(self.sorted) and self.sorted[place] <= number.value + reach)
