"""What stands around an exported picture, and its labels in another language: title and definition above, source below.

All is added to a drawn figure, outside its canvas, so that the page can leave it away.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAD = 6.0
"""Points around and between the parts."""
_LINE = 1.3
"""Height of a line over the size of its type."""
_EM = {"bold": 0.68, "normal": 0.6}
"""Mean width of a letter over the size of the type (DejaVu Sans); a sign of Chinese is as wide as high."""
_FONTS = ("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei")
_MORE_FONTS = ("PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", "SimHei")
_LATIN = "DejaVu Sans"


@dataclass(frozen=True)
class Frame:
    """Points that a frame adds above and below a figure."""

    top: float
    bottom: float


def add(figure: Figure, title: str, definition: str, source: str, size: float) -> Frame:
    """Write title and definition above a figure and its source below it; return the room that they take.

    size: points of the figure's type.
    """
    width, height = 72 * figure.get_size_inches()
    lines = [(line, "bold", 1.04 * size) for line in _lines(title, "bold", 1.04 * size, width)]
    lines += [(line, "normal", 0.84 * size) for line in _lines(definition, "normal", 0.84 * size, width)]
    top = PAD + sum(_LINE * points for _, _, points in lines) + PAD
    y = height + top - PAD
    for line, weight, points in lines:
        _write(figure, y / height, line, points, weight)
        y -= _LINE * points
    below = [(line, 0.7 * size) for line in _lines(source, "normal", 0.7 * size, width)]
    y = -PAD
    for line, points in below:
        _write(figure, y / height, line, points, "normal")
        y -= _LINE * points
    return Frame(top, PAD + _LINE * sum(points for _, points in below) + PAD / 2)


def _write(figure: Figure, y: float, text: str, size: float, weight: str) -> None:
    x = PAD / 72 / figure.get_figwidth()
    figure.text(x, y, text, fontsize=size, fontweight=weight, va="top", ha="left", gid=f"{GROUP}{len(figure.texts)}")


GROUP = "frame"
"""How the ids of what a frame adds begin."""


def _lines(text: str, weight: str, size: float, width: float) -> Iterator[str]:
    """Break a text into lines of a width in points, at spaces, or between signs of Chinese."""
    room, line, used = (width - 2 * PAD) / size, "", 0.0
    for word in _words(text.replace("d_k", "dₖ")):
        wide = sum(1.0 if unicodedata.east_asian_width(sign) in "WF" else _EM[weight] for sign in word)
        if line.strip() and used + wide > room:
            yield line.strip()
            line, used = "", 0.0
        line, used = line + word, used + wide
    if line.strip():
        yield line.strip()


def _words(text: str) -> Iterator[str]:
    word = ""
    for sign in text:
        word += sign
        if sign == " " or unicodedata.east_asian_width(sign) in "WF":
            yield word
            word = ""
    yield word


def remove(figure: Figure) -> None:
    """Take the frame away again."""
    for text in [text for text in figure.texts if str(text.get_gid()).startswith(GROUP)]:
        text.remove()


def translate(figure: Figure, translated: Callable[[str], str | None]) -> None:
    """Put the labels of a figure into another language; what has no counterpart stays as it is."""
    from matplotlib.text import Text

    def said(text: str) -> str:
        return (translated(text) if text.strip() else text) or text

    for axis in (axis for axes in figure.get_axes() for axis in (axes.xaxis, axes.yaxis)):
        labels = [label.get_text() for label in axis.get_majorticklabels()]
        if (other := [said(label) for label in labels]) != labels:
            axis.set_ticks(axis.get_majorticklocs(), other)
    for text in figure.findobj(Text):
        text.set_text(said(text.get_text()))


def font(sample: str) -> str | None:
    """Return the name of a font at hand with all wide signs of a text, empty where it has none; None without a font."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    def missing(name: str) -> bool:
        signs = get_font(findfont(FontProperties(family=name), fallback_to_default=False)).get_charmap()
        return any(ord(sign) not in signs for sign in beyond)

    beyond = {sign for sign in sample if unicodedata.east_asian_width(sign) in "WF"}
    if not beyond:
        return ""
    for name in (*_FONTS, *_MORE_FONTS):
        try:
            if not missing(name):
                return name
        except ValueError:
            continue
    return None


def use_font(figure: Figure, name: str) -> None:
    """Draw the signs that DejaVu Sans does not have with another font."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_fontfamily([_LATIN, name])
