"""An SVG file made ready to stand inside an HTML page among others."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from sqrtdk.figures import compact, framing, style

_SVG = "{http://www.w3.org/2000/svg}"
_DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"
_REFERENCE = re.compile(r"url\((['\"]?)#([^)'\"]+)\1\)")
# The layout is measured in DejaVu Sans; Verdana has the same widths.
_FONT = "DejaVu Sans, Verdana, sans-serif"
_TARGET = re.compile(r"""(?:href=["']|url\(['"]?)#([^)'"]+)""")
_INHERITED = re.compile(r"^\*\{(stroke-linejoin: ?round; ?stroke-linecap: ?butt)\}$")


class Sheet:
    """What the figures of one page share: a number for each figure's ids."""

    css = ""
    """No look of a figure needs a style sheet, so that it stays right where policies forbid inline ones."""

    def __init__(self) -> None:
        self.figures = 0

    def prefix(self) -> str:
        """Return the beginning of the ids of the next figure."""
        self.figures += 1
        return f"f{self.figures}-"


def svg_for_page(svg_text: str, name: str, sheet: Sheet, title: str | None = None) -> str:
    """Return an SVG element to be pasted into HTML: no prologue, own ids, and ink in the text colour of the page.

    Looks become presentation attributes, which no policy on inline styles forbids. Ids that something refers to become
    short ones of this figure, others are dropped; the ink colour becomes `currentColor`, fonts are those of the layout
    or as wide, and width and height are left to the page, as is the frame. The title, by which a screen reader calls
    it, is that of the file's metadata unless given; what describes it is the element `<name>-alt` of the page. A style
    sheet inside, which would apply to the whole page, raises ValueError; matplotlib's own one-liner becomes the look of
    the figure.
    """
    root = ET.fromstring(svg_text)
    title = title if title is not None else _metadata(root, "title")
    inherited = _remove_style_sheet(root)
    for child in list(root):
        if child.tag in (f"{_SVG}title", f"{_SVG}desc", f"{_SVG}metadata"):
            root.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    _unframe(root)
    compact.order_axes(root)
    referred = set(_TARGET.findall(svg_text))
    used = [own for element in root.iter() if (own := element.get("id", "")) in referred]
    prefix = sheet.prefix()
    ids = {own: f"{prefix}{number:x}" for number, own in enumerate(dict.fromkeys(used))}
    for element in root.iter():
        _localise(element, ids)
    compact.compact(root, prefix)
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.attrib |= {"role": "img", "aria-labelledby": f"{name}-title", "aria-describedby": f"{name}-alt"}
    heading = ET.Element("title", {"id": f"{name}-title"})
    heading.text = title
    root.insert(0, heading)
    root.set("xmlns", _SVG.strip("{}"))
    root.set("style", inherited)
    root.set("font-family", _FONT)
    for element in root.iter():
        for declaration in filter(None, element.attrib.pop("style", "").split(";")):
            name, _, value = declaration.partition(":")
            if value:
                element.set(name, value)
    # In texts and attributes > is escaped.
    return ET.tostring(root, encoding="unicode").replace(" />", "/>")


def _unframe(root: ET.Element) -> None:
    """Leave away what stands around the figure, which the page says itself."""
    if body := root.attrib.pop("data-body", None):
        root.set("viewBox", body)
    for parent in list(root.iter("g")):
        for child in [child for child in parent if child.get("id", "").startswith(framing.GROUP)]:
            parent.remove(child)


def _metadata(root: ET.Element, name: str) -> str:
    return next((element.text or "" for element in root.iter(_DUBLIN_CORE + name)), "")


def _remove_style_sheet(root: ET.Element) -> str:
    """Take out matplotlib's style sheet and return its declarations."""
    declarations = ""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{_SVG}style":
                match = _INHERITED.match((child.text or "").strip())
                if not match:
                    raise ValueError(f"a style sheet inside an SVG would apply to the whole page: {child.text!r}")
                declarations = match[1].replace(" ", "")
                parent.remove(child)
    return declarations


def _localise(element: ET.Element, ids: dict[str, str]) -> None:
    """Strip namespaces, give ids and references their new names, and swap ink and fonts, in one element."""
    attributes = {}
    for key, value in element.attrib.items():
        key = key.rpartition("}")[2]
        if key == "id":
            if value not in ids:
                continue
            value = ids[value]
        elif key == "href":
            if not value.startswith("#"):
                raise ValueError(f"a reference out of the file: {value!r}")
            value = f"#{ids[value[1:]]}"
        elif key == "style":
            value = ";".join(_declarations(value, ids))
        else:
            value = _refer(value, ids)
        attributes[key] = value
    element.attrib.clear()
    element.attrib.update(attributes)


def _declarations(text: str, ids: dict[str, str]) -> Iterator[str]:
    for declaration in filter(None, map(str.strip, text.split(";"))):
        name, _, value = declaration.partition(":")
        value = value.strip()
        if name == "font-family":
            continue
        if value.lower() == style.INK:
            value = "currentColor"
        yield f"{name}:{_refer(value, ids)}"


def _refer(value: str, ids: dict[str, str]) -> str:
    return _REFERENCE.sub(lambda match: f"url(#{ids[match[2]]})", value)
