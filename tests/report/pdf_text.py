"""The text of a PDF file that Chromium printed, with nothing but the standard library."""

import re
import unicodedata
import zlib

_OBJECT = re.compile(rb"(\d+) 0 obj\b(.*?)\bendobj", re.DOTALL)
_STREAM = re.compile(rb"stream\r?\n(.*)\r?\nendstream", re.DOTALL)
# A glyph that a font has for a sign and for the radical that looks the same may come back as the radical. NFKC knows
# few of those; the signs are those of Unicode's EquivalentUnifiedIdeograph.txt.
_RADICALS = str.maketrans(
    "⺁⺄⺈⺊⺌⺎⺒⺜⺝⺠⺧⺩⺫⺬⺮⺶⺼⺽⻄⻅⻆⻉⻊⻋⻑⻓⻔⻗⻘⻙⻚⻛⻜⻝⻡⻢⻣⻤⻥⻦⻧⻨⻩⻫⻬⻮⻰",
    "厂乙刀卜小兀巳日月民牛王目示竹羊肉臼西见角贝足车長长门雨青韦页风飞食首马骨鬼鱼鸟卤麦黄斉齐齿龙",
)
_GLYPH = re.compile(rb"^<([0-9A-F]+)> <([0-9A-F]+)>(?: <([0-9A-F]+)>)?$", re.MULTILINE)


def squeeze(text: str) -> str:
    """Return the letters alone: mathematical ones as plain ones, no space, no root sign (a page draws its own)."""
    return re.sub(r"[\s√]", "", unicodedata.normalize("NFKC", text).translate(_RADICALS))


def pdf_text(data: bytes) -> str:
    """Return the text of all pages in order of the file, with glyphs mapped back by the fonts' ToUnicode tables.

    Chromium names a font in the pages' streams by the number of its object: /F12 is object 12.
    """
    objects = {int(match[1]): match[2] for match in _OBJECT.finditer(data)}
    fonts = {}
    for number, body in objects.items():
        table = re.search(rb"/ToUnicode (\d+) 0 R", body)
        if table:
            fonts[number] = _glyphs(_stream(objects[int(table[1])]))
    pieces = []
    for body in objects.values():
        page = _stream(body) if b"/Subtype" not in body[:200] else b""
        if b"BT" in page:
            pieces.append(_shown(page, fonts))
    return "".join(pieces)


def _stream(body: bytes) -> bytes:
    match = _STREAM.search(body)
    if match is None:
        return b""
    return zlib.decompress(match[1]) if b"FlateDecode" in body[: match.start()] else match[1]


def _glyphs(table: bytes) -> dict[int, str]:
    """Read the lines `<glyph> <letters>` and `<first> <last> <letters of the first>`."""
    glyphs = {}
    for first, last, text in _GLYPH.findall(table.partition(b"endcodespacerange")[2]):
        start, end = int(first, 16), int(last if text else first, 16)
        letters = bytes.fromhex((text or last).decode()).decode("utf-16-be")
        for glyph in range(start, end + 1):
            glyphs[glyph] = letters[:-1] + chr(ord(letters[-1]) + glyph - start)
    return glyphs


def _shown(page: bytes, fonts: dict[int, dict[int, str]]) -> str:
    text, font = [], {}
    for name, glyphs in re.findall(rb"/F(\d+) [\d.]+ Tf|<([0-9A-F]+)>", page):
        if name:
            font = fonts.get(int(name), {})
        else:
            text += [font.get(int(glyphs[place : place + 4], 16), "") for place in range(0, len(glyphs), 4)]
    return "".join(text)
